"""The form *Track particles*: points, or an image, in; tracks out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from napari.layers import Image, Points, Tracks
from qtpy.QtWidgets import QCheckBox, QComboBox, QFormLayout, QWidget
from superqt import QCollapsible

from outbid.tracker.assign import SOLVERS
from outbid.tracker.detect import detect
from outbid.tracker.detections import Detections
from outbid.tracker.errors import InputError, SettingsError
from outbid.tracker.match import COSTS
from outbid.tracker.spots import DetectionSettings
from outbid.tracker.track import DEVICES, TrackingRun, TrackingSettings, track

from ..layers import points_layer, tracks_layer
from ..nearby import part_around
from ..taken import detections_from, frame_count, frames_from
from .fields import AxesBox, CountBox, LayerBox, NumberBox
from .form import Form
from .shown import Place, place_of, show
from .work import Task, Tell

COLOURS = {
    "confidence": ("link_probability", "link_margin", "speed"),
    "speed": ("speed",),
    "track length": ("track_length",),
    "track": ("track_id",),
}
"""What tracks are coloured by: the first of these features that they have."""
MOST_VERTICES = 1_000_000
_RECORD = "outbid"


@dataclass(frozen=True, eq=False)
class _Source:
    """What is tracked, taken from a layer before a run: detections, or the image in which they are found."""

    name: str
    place: Place
    points: Detections | None
    image: Any = None

    def detections(self, tell: Tell, frames: range | None = None) -> Detections:
        """The detections, of some frames if they are to be found first; in voxels."""
        if self.points is not None:
            return self.points
        spacing = self.place.spacing
        found, _ = detect(
            frames_from(self.image, frames), DetectionSettings(spacing=spacing),
            count=frame_count(self.image.shape) if frames is None else len(frames), progress=tell,
        )  # fmt: skip
        start = frames.start if frames is not None else 0
        return replace(
            found, frame=found.frame + start, position=found.position / spacing, unit=self.place.unit
        )


@dataclass(frozen=True, eq=False)
class _Tracked:
    source: _Source
    detections: Detections
    run: TrackingRun
    window: tuple[int, int] | None = None


class TrackForm(Form):
    """Track particles."""

    run_text = "Track"

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.source = LayerBox(self.viewer, _can_be_tracked)
        self.voxel = AxesBox((1, 1, 1), 1e-6)
        self.max_distance = NumberBox(None, automatic="learned from the movie")
        self.max_gap = CountBox(None, -1, automatic="automatic")
        self.divisions = QCheckBox("find where particles divide")
        self.divisions.setChecked(True)
        self.cost = _choice(COSTS)
        self.unmatched_cost = NumberBox(None, automatic="half of the gate's")
        self.gap_distance = NumberBox(None, automatic="as max. distance")
        self.solver = _choice(SOLVERS)
        self.device = _choice(DEVICES)
        self.colour = _choice(COLOURS)
        self.result = LayerBox(self.viewer, _is_result, first="a new layer")
        self.live = QCheckBox("preview around this frame")
        self._preview_layer: Any = None
        self._fill()
        self._connect()
        self._source_chosen()

    # ------------------------------------------------------------ what a run is

    def settings(self) -> TrackingSettings:
        """The fields as settings.

        Raises
        ------
        SettingsError
            If they make no sense.
        """
        distance = self.max_distance.number()
        return TrackingSettings(
            max_distance=distance,
            cost="euclidean" if distance is None else self.cost.currentText(),
            unmatched_cost=None if distance is None else self.unmatched_cost.number(),
            spacing=self.voxel.values(),
            max_gap=self.max_gap.number(),
            gap_distance=None if distance is None else self.gap_distance.number(),
            divisions=self.divisions.isChecked(),
            solver=self.solver.currentText(),
            device=self.device.currentText(),
        )

    def set_settings(self, settings: TrackingSettings) -> None:
        """Show settings in the fields; the voxel size stays that of the layer."""
        self.max_distance.set_number(settings.max_distance)
        self.cost.setCurrentText(settings.cost)
        self.unmatched_cost.set_number(settings.unmatched_cost)
        self.max_gap.set_number(settings.max_gap)
        self.gap_distance.set_number(settings.gap_distance)
        self.divisions.setChecked(settings.divisions)
        self.solver.setCurrentText(settings.solver)
        self.device.setCurrentText(settings.device)

    def task(self) -> Task:
        """Track the whole movie."""
        source, settings = self._taken(), self.settings()

        def work(tell: Tell) -> _Tracked:
            found = source.detections(tell)
            return _Tracked(source, found, track(found, settings, progress=tell))

        return work

    def preview_task(self) -> Task | None:
        """Track a few frames around the one that is shown."""
        if not self.live.isChecked() or self.source.layer() is None:
            return None
        source, settings = self._taken(), self.settings()
        now, middle = self._looked_at(source.place)

        def work(tell: Tell) -> _Tracked:
            frames = None
            if source.points is None:
                count = frame_count(source.image.shape)
                first = max(min(now - 2, count - 5), 0)
                frames = range(first, min(first + 5, count))
            part = part_around(source.detections(tell, frames), now, middle)
            run = track(part, settings, workers=1, progress=tell)
            window = (part.first_frame, part.first_frame + part.frame_count - 1)
            return _Tracked(source, part, run, window)

        return work

    # ------------------------------------------------------------ what is shown

    def show_result(self, result: _Tracked) -> None:
        """Add the tracks, or give them to the layer that is edited."""
        self._drop_preview()
        vertices = len(result.detections)
        if vertices > MOST_VERTICES:
            self.offer(
                f"{_summary(result.run)}\nnapari takes about {vertices / 90_000:.0f} s to show "
                f"{vertices:,} detections, and the window stands still meanwhile.",
                "Show the tracks", lambda: self._add(result),
            )  # fmt: skip
        else:
            self._add(result)

    def show_preview(self, result: _Tracked) -> None:
        """Show the tracks of the preview, and what was learned from them."""
        if not self.live.isChecked():
            return
        first, last = result.window or (0, 0)
        layer = tracks_layer(result.run.tracks, spacing=result.source.place.spacing, name="Preview of tracks")
        self._preview_layer = show(self.viewer, layer, result.source.place, instead_of=self._preview_layer)
        self._recolour(self._preview_layer)
        self.tell(f"Preview of frames {first} to {last}: {_summary(result.run)}")

    def _add(self, result: _Tracked) -> None:
        place, run, source = result.source.place, result.run, result.source
        if source.points is None:
            show(self.viewer, points_layer(result.detections, name=f"Spots of {source.name}"), place)
        layer = tracks_layer(run.tracks, spacing=place.spacing, name=f"Tracks of {source.name}")
        shown = show(
            self.viewer, layer, place,
            metadata={_RECORD: _record(result)}, instead_of=self.result.layer(),
        )  # fmt: skip
        self._recolour(shown)
        self.result.renew()
        self.result.blockSignals(True)  # its settings are those in the fields
        self.result.choose(shown)
        self.result.blockSignals(False)
        self.tell(_summary(run))

    def _recolour(self, layer: Any) -> None:
        if layer is not None and layer in self.viewer.layers:
            known = layer.properties_to_color_by
            layer.color_by = next(name for name in COLOURS[self.colour.currentText()] if name in known)

    def _drop_preview(self) -> None:
        if self._preview_layer is not None and self._preview_layer in self.viewer.layers:
            self.viewer.layers.remove(self._preview_layer)
        self._preview_layer = None

    # ------------------------------------------------------------ what is taken

    def _taken(self) -> _Source:
        layer = self.source.layer()
        if layer is None:
            raise InputError(
                "There is nothing to track. Add a points layer with the detections of all frames, or open a "
                "movie as an image."
            )
        place = place_of(layer)
        if isinstance(layer, Points):
            return _Source(layer.name, place, detections_from(layer.data, unit=place.unit))
        data = layer.data[0] if layer.multiscale else layer.data
        if layer.rgb:
            raise InputError("The image has colours. Split its channels and choose the one with the spots.")
        frame_count(data.shape)
        return _Source(layer.name, place, None, data)

    def _looked_at(self, place: Place) -> tuple[int, tuple[float, float]]:
        """Number of the frame that is shown, and the middle of the view in voxels."""
        missing = self.viewer.dims.ndim - len(place.scale)
        time = self.viewer.dims.point[missing] if missing >= 0 else 0.0
        y, x = (
            (centre - move) / size
            for centre, move, size in zip(
                self.viewer.camera.center[-2:], place.translate[-2:], place.scale[-2:], strict=True
            )
        )
        return round((time - place.translate[0]) / place.scale[0]), (y, x)

    # ------------------------------------------------------------ what the user does

    def _source_chosen(self) -> None:
        layer = self.source.layer()
        if layer is not None and layer.ndim >= 3:
            place = place_of(layer)
            self.voxel.set_values(place.spacing, place.symbol)
            self.voxel.boxes[0].setEnabled(layer.ndim > 3)
            for box in (self.max_distance, self.gap_distance):
                box.setSuffix(f" {place.symbol}")
        self.changed()

    def _voxel_edited(self) -> None:
        """The size of a voxel belongs to the layer: all that is made of it lies where it lies."""
        layer = self.source.layer()
        if layer is not None and layer.ndim >= 3:
            layer.scale = (*layer.scale[: -min(layer.ndim - 1, 3)], *self.voxel.values()[1 - layer.ndim :])
        self.changed()

    def _result_chosen(self) -> None:
        layer = self.result.layer()
        if layer is None:
            return
        try:
            self.set_settings(_settings_of(layer.metadata[_RECORD]))
        except SettingsError as error:
            self.tell_error(error)
            return
        self.tell(f"These are the settings of {layer.name}. A run replaces its tracks.")

    def _enable(self) -> None:
        """Fields count with a max. distance, or without."""
        told = self.max_distance.number() is not None
        for box in (self.cost, self.unmatched_cost, self.gap_distance, self.device):
            box.setEnabled(told)
        self.divisions.setEnabled(not told)

    def _live_toggled(self) -> None:
        if self.live.isChecked():
            self.changed()
        else:
            self._stop_preview()
            self._drop_preview()
            self.tell("")

    def _layer_removed(self, _: object = None) -> None:
        """A preview that the user deletes is not wanted any more."""
        if self._preview_layer is not None and self._preview_layer not in self.viewer.layers:
            self._preview_layer = None
            self.live.setChecked(False)

    def _fill(self) -> None:
        form = self.fields
        form.addRow("points or image", self.source)
        form.addRow("voxel size z, y, x", self.voxel)
        form.addRow("max. distance", self.max_distance)
        form.addRow("missing frames", self.max_gap)
        form.addRow("divisions", self.divisions)
        more = QCollapsible("more")
        inside = QWidget()
        rows = QFormLayout(inside)
        rows.addRow("cost", self.cost)
        rows.addRow("cost of no link", self.unmatched_cost)
        rows.addRow("distance over gaps", self.gap_distance)
        rows.addRow("solver", self.solver)
        rows.addRow("device", self.device)
        more.addWidget(inside)
        form.addRow(more)
        form.addRow("colour by", self.colour)
        form.addRow("result", self.result)
        form.addRow("live", self.live)
        self._enable()

    def _connect(self) -> None:
        for number in (self.max_distance, self.max_gap, self.unmatched_cost, self.gap_distance):
            number.valueChanged.connect(self.changed)
        for choice in (self.cost, self.solver, self.device):
            choice.currentIndexChanged.connect(self.changed)
        self.divisions.toggled.connect(self.changed)
        self.max_distance.valueChanged.connect(self._enable)
        self.source.chosen.connect(self._source_chosen)
        self.voxel.edited.connect(self._voxel_edited)
        self.result.chosen.connect(self._result_chosen)
        self.colour.currentIndexChanged.connect(self._colour_chosen)
        self.live.toggled.connect(self._live_toggled)
        self.viewer.dims.events.current_step.connect(self.changed)
        self.viewer.layers.events.removed.connect(self._layer_removed)

    def _colour_chosen(self) -> None:
        for layer in (self._preview_layer, self.result.layer()):
            self._recolour(layer)


def _choice(names: Any) -> QComboBox:
    box = QComboBox()
    box.addItems(list(names))
    return box


def _can_be_tracked(layer: Any) -> bool:
    return isinstance(layer, Points | Image)


def _is_result(layer: Any) -> bool:
    record = layer.metadata.get(_RECORD) if isinstance(layer, Tracks) else None
    return isinstance(record, Mapping) and record.get("command") == "track"


def _summary(run: TrackingRun) -> str:
    """What came of it, in a few lines."""
    told = run.stats
    proved = "proved optimal" if told["worst_gap"] == 0 else f"worst gap {told['worst_gap']:g}"
    lines = [f"{told['tracks']} tracks, {told['links']} links, {told['divisions']} divisions; {proved}."]
    return "\n".join([*lines, str(run.learned)] if run.learned is not None else lines)


def _record(result: _Tracked) -> dict[str, object]:
    """A run record as that of `outbid track`."""
    run = result.run
    record: dict[str, object] = {
        "command": "track", "version": version("outbid"), "input": {"name": result.source.name},
        "settings": run.settings.as_dict(), "seed": None, "device": run.settings.device,
    }  # fmt: skip
    return record if run.learned is None else record | {"learned": run.learned.as_dict()}


def _settings_of(record: Any) -> TrackingSettings:
    """The settings in a run record.

    Raises
    ------
    SettingsError
        If they are none of this version.
    """
    told = record.get("settings")
    try:
        return TrackingSettings(**(dict(told) | {"spacing": tuple(told["spacing"])}))
    except (TypeError, KeyError, ValueError) as error:
        raise SettingsError(f"The settings of this layer cannot be read ({error}). Set the fields.") from None
