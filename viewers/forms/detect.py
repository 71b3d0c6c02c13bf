"""The form *Detect spots*: its input is an image or labels, its output points.

The preview shows the effect of the threshold before the whole movie is processed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from napari.layers import Image, Labels
from numpy.typing import NDArray
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QSlider
from superqt.utils import signals_blocked

from outbid.detection.frames import expected_noise
from outbid.detection.preview import Preview, preview
from outbid.particles.detections import Detections
from outbid.settings.detection import DetectionSettings
from outbid.work.jobs import DetectJob

from ..layers import ASKED, points_layer
from .form import Form
from .places import keep_places
from .rows import SettingRows
from .source import Source, SourceFields
from .work import Report, Task

_STEPS = 200
_MOST_SHOWN = 20_000
"""Spots of a preview that are drawn: where there are more, the threshold is far from any choice."""

_OTHER_SIGN = {
    False: " Dark spots stand out more than bright ones: if those are meant, tick them under more.",
    True: " Bright spots stand out more than dark ones: if those are meant, untick dark under more.",
}


@dataclass(frozen=True, eq=False)
class _Detected:
    source: Source
    detections: Detections
    asked: DetectionSettings
    used: DetectionSettings


@dataclass(frozen=True, eq=False)
class _Looked:
    """Candidates for spots in one frame, from which the preview shows those above the threshold."""

    source: Source
    frame: int
    seen: Preview


class DetectForm(Form):
    """Form that detects spots in an image layer."""

    command = "detect"
    run_text = "Detect"
    counts = "frames"

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.source = SourceFields(self.viewer, Image, Labels)
        self.rows = SettingRows(DetectionSettings(), {"spacing": self.source.voxel}, fixed=("spacing",))
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, _STEPS)
        self.slider.setEnabled(False)
        self._looked: _Looked | None = None
        self._fill()
        self._connect()
        self._source_chosen()
        self.live.setChecked(True)

    # ------------------------------------------------------------ what a run is

    def settings(self) -> DetectionSettings:
        """Settings of detection from the fields of this form.

        Raises
        ------
        SettingsError
            If they make no sense.
        """
        return DetectionSettings(**self.rows.values())

    def set_settings(self, values: Mapping[str, Any]) -> None:
        """Show the settings of a run; the size of a voxel stays that of the layer."""
        known = {one.name: values[one.name] for one in fields(DetectionSettings) if one.name in values}
        settings = DetectionSettings(**(known | {"spacing": tuple(values["spacing"])}))
        self.rows.show(vars(settings))

    def missing(self) -> str:
        """What to do where there is no layer."""
        return self.source.missing()

    def task(self) -> Task:
        """Detect in the whole movie."""
        source, settings = self.source.taken(), self.settings()

        def work(report: Report) -> _Detected:
            found, used = source.detect(settings, report)
            return _Detected(source, found, settings, used)

        return work

    def preview_task(self) -> Task | None:
        """Task that detects spots in the shown frame; radii are estimated in the first frame, as in a run."""
        layer = self.source.layers.layer()
        if layer is None or isinstance(layer, Labels):
            return None
        source, settings = self.source.taken(), self.settings()
        frame = min(max(self.source.looked_at(source.transform)[0], 0), source.movie.frame_count - 1)

        def work(_: Report) -> _Looked:
            free = replace(settings, threshold=None)
            learned = DetectJob(free, workers=2).learned(source.movie)
            return _Looked(source, frame, preview([*source.movie.frames([frame])], free, learned=learned))

        return work

    # ------------------------------------------------------------ what is shown

    def show_result(self, result: _Detected) -> None:
        """Add the points, or give them to the layer that is edited."""
        source, found, used = result.source, result.detections, result.used
        settings = asdict(used) | {"labels": source.labels}
        record = self.record(source.name, settings, used.device, source.calibration)
        record[ASKED] = asdict(result.asked) | {"labels": source.labels}
        spots = points_layer(source.in_voxels(found), name=f"Spots of {source.name}")
        shown = self.show_layer(spots, source.transform, record)
        keep_places(shown, found.position)
        self._size_of(shown, used)
        frames = source.movie.frame_count
        many = f"{frames} frame{'s' * (frames != 1)}"
        what = "labels" if source.labels else f"spots of {_size(used)} {source.transform.symbol}"
        noise = (
            "" if source.labels or not len(found) else f"about {expected_noise(found):.0f} of them noise; "
        )
        self.show_message(
            f"{len(found)} {what} in {many}, {len(found) / frames:.1f} in each; {noise}"
            f"{source.calibration.of_places}."
        )

    def show_preview(self, result: _Looked) -> None:
        """Show the spots above the threshold, and let the slider choose another one."""
        self._looked = result
        self.slider.setEnabled(len(result.seen.quality) > 0)
        self._show_threshold()

    def _show_again(self, _: object = None) -> None:
        """Show the rings of another view: of planes or of the whole."""
        if self._preview_layer is not None:
            self._show_threshold()

    def _show_threshold(self) -> None:
        """Show the spots above the threshold; nothing is filtered again, so the slider responds at once."""
        if self._looked is None or not self.live.isChecked():
            return
        seen, source, frame = self._looked.seen, self._looked.source, self._looked.frame
        chosen = self.rows["threshold"].number()
        threshold = seen.automatic if chosen is None else chosen
        count = int(seen.count_above(threshold))
        spots = Detections.from_table(*self._rings(seen, min(count, _MOST_SHOWN), frame))
        shown = self.show_preview_layer(points_layer(spots, name="Preview of spots"), source.transform)
        self._size_of(shown, seen.settings)
        with signals_blocked(self.slider):
            self.slider.setValue(_step_of(threshold, seen))
        automatic = "the automatic threshold" if chosen is None else f"{threshold:.4g}"
        self.show_message(
            f"Frame {frame}: {count} spots, about {seen.false_above(threshold):.0f} noise, above {automatic}"
            + (f" ({threshold:.4g})" if chosen is None else f" (automatic: {seen.automatic:.4g})")
            + f"; {_size(seen.settings)} {source.transform.symbol}."
            + (_OTHER_SIGN[seen.settings.dark] if seen.other_sign else "")
        )

    def _rings(self, seen: Preview, count: int, frame: int) -> tuple[NDArray, NDArray]:
        """Frames, and positions in voxels, of rings around some spots: in 2D in all planes that they reach.

        So the planes that napari shows together stay as they are: those of the image would change, too.
        """
        position = seen.position[:count] / seen.settings.spacing
        reach = seen.settings.radius_z or seen.settings.radius or 0.0
        planes = round(reach / seen.settings.spacing[0]) if self.viewer.dims.ndisplay == 2 else 0
        beside = np.arange(-planes, planes + 1) if self.viewer.dims.ndim > 3 else np.zeros(1)
        rings = np.repeat(position, len(beside), axis=0)
        rings[:, 0] += np.tile(beside, len(position))
        return np.full(len(rings), frame), rings

    def _size_of(self, points: Any, used: DetectionSettings) -> None:
        """Draw rings as wide as the spots."""
        if used.radius is not None:
            points.size = max(2 * used.radius / used.spacing[2], 3.0)

    # ------------------------------------------------------------ what the user does

    def _source_chosen(self) -> None:
        self.rows.set_unit(self.source.symbol, 2 * self.source.voxel.values()[2])
        self.result.choose(None)  # a result of another layer is not to be replaced unasked
        layer = self.source.layers.layer()
        self.rows.enable(("radius", "radius_z", "threshold", "dark", "device"), not isinstance(layer, Labels))
        self._forget()

    def _forget(self) -> None:
        self._looked = None
        self.slider.setEnabled(False)
        self.changed()

    def _slid(self, step: int) -> None:
        if self._looked is not None:
            low, high = _range_of(self._looked.seen)
            self.rows["threshold"].setValue(float(f"{low * (high / low) ** (step / _STEPS):.4g}"))

    def _fill(self) -> None:
        form = self.fields
        form.addRow("image", self.source.layers)
        self.rows.fill(form)
        form.insertRow(form.getWidgetPosition(self.rows["threshold"])[0] + 1, "", self.slider)
        form.addRow("result", self.result)
        form.addRow("live", self.live)

    def _connect(self) -> None:
        self.rows.connect(self._forget, "radius", "radius_z", "dark")
        self.source.chosen.connect(self._source_chosen)
        self.rows["threshold"].valueChanged.connect(self._show_threshold)
        self.slider.valueChanged.connect(self._slid)
        self.viewer.dims.events.ndisplay.connect(self._show_again)


def _range_of(seen: Preview) -> tuple[float, float]:
    """Least and greatest threshold of the slider."""
    best = float(seen.quality[0])
    return max(min(float(seen.quality[-1]), best / 2), best / 1000), best


def _step_of(threshold: float, seen: Preview) -> int:
    if len(seen.quality) == 0:
        return 0
    low, high = _range_of(seen)
    share = np.log(max(threshold, low) / low) / np.log(high / low)
    return int(np.clip(round(_STEPS * share), 0, _STEPS))


def _size(used: DetectionSettings) -> str:
    along = "" if used.radius_z in (None, used.radius) else f", along z {used.radius_z:.3g}"
    return f"radius {used.radius or 0:.3g}{along}"
