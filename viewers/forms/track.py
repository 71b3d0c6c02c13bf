"""The form *Track particles*: points, or an image, in; tracks out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from napari.layers import Image, Labels, Points
from qtpy.QtWidgets import QComboBox
from superqt.utils import signals_blocked

from outbid.assignment.variants import names
from outbid.errors import InputError
from outbid.particles.detections import Detections
from outbid.settings.declare import Declared, bound_by
from outbid.settings.detection import DetectionSettings
from outbid.settings.fixed import known_of
from outbid.settings.fixed import text_of as text_of_known
from outbid.tracking import TrackingRun, TrackingSettings, track

from ..layers import ASKED, points_layer, tracks_layer
from ..nearby import frames_around, part_around
from ..objects import labels_by_track
from .columns import ColumnList, column_in, parts, text_of
from .fields import choice_box
from .form import Form
from .napari_layers import preferences, record_of, show
from .places import ONES, keep_places, keep_places_of_tracks
from .rows import SettingRows
from .said import lasting
from .source import Source, SourceFields, settings_of
from .uncertain_links import ConfidenceBar, UncertainLinks
from .windowed import show_tracks
from .work import Report, Task

COLOURS = {
    "confidence": ("confidence", "speed"),
    "speed": ("speed",),
    "track length": ("track_length",),
    "track": ("track_id",),
}
"""Features that colour tracks: the first one that they have."""
_BOUND = bound_by(TrackingSettings, "max_distance")
"""Settings that have an effect only with a max. distance, or only without one."""
_VERTICES_A_SECOND = 90_000  # that napari adds


@dataclass(frozen=True, eq=False)
class _Tracked:
    """Result of tracking by the form: detections in places, tracks in voxels.

    `used`: detection settings, if spots were detected in images.
    """

    source: Source
    detections: Detections
    run: TrackingRun
    used: DetectionSettings | None


class TrackForm(Form):
    """Form that tracks the particles of a layer."""

    command = "track"
    run_text = "Track"
    counts = "detections"

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.source = SourceFields(self.viewer, Points, Image, Labels)
        solver = choice_box(names())
        solver.setEditable(True)  # settings may follow: auction:fixed(epsilon=1)
        solver.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        solver.setCurrentText(TrackingSettings.solver)
        self.rows = SettingRows(
            TrackingSettings(), {"spacing": self.source.voxel, "solver": solver}, fixed=("spacing",)
        )
        self.columns = ColumnList(self.rows["features"])
        self.colour = choice_box(COLOURS)
        self.colours, self.uncertain = ConfidenceBar(), UncertainLinks(self.viewer)
        self.live.setText("preview around this frame")
        self._spots: tuple[object, Detections] | None = None  # of the last preview of an image
        self._fill()
        self._connect()
        self._source_chosen()

    # ------------------------------------------------------------ what a run is

    def settings(self) -> TrackingSettings:
        """Settings of tracking from the fields of this form.

        Raises
        ------
        SettingsError
            If they make no sense.
        """
        values = self.rows.values()
        silent = self._without_effect(gated=values["max_distance"] is not None)
        values |= {one.name: "" if one.name in ("fixed", "features") else one.default for one in silent}
        texts = {"fixed": known_of(parts(values["fixed"])), "features": column_in(values["features"])}
        return TrackingSettings(**values | texts)

    def set_settings(self, values: Mapping[str, Any]) -> None:
        """Show the settings of a run; the size of a voxel stays that of the layer."""
        settings = settings_of(values, tuple(values.get("spacing") or (1.0, 1.0, 1.0)))
        texts = {"fixed": "; ".join(text_of_known(settings.fixed)), "features": text_of(settings.features)}
        self.rows.show(vars(settings) | texts)

    def missing(self) -> str:
        """What to do where there is no layer."""
        return self.source.missing()

    def task(self) -> Task:
        """Task that tracks the whole movie with the current settings."""
        source, settings = self.source.taken(), self.settings()

        def work(report: Report) -> _Tracked:
            placed, found, used = source.placed, source.points, None
            if placed is None or found is None:
                placed, used = source.detect(DetectionSettings(spacing=settings.spacing), report)
                _refuse_without_spots(placed, source)
                found = source.in_voxels(placed)
            # In places, as the command tracks a file: so both give the same tracks, to the bit.
            run = track(placed, replace(settings, spacing=ONES), progress=report)
            in_voxels = replace(run.tracks, detections=found)
            return _Tracked(source, placed, replace(run, tracks=in_voxels), used)

        return work

    def preview_task(self) -> Task | None:
        """Track a few frames around the one that is shown."""
        if self.source.layers.layer() is None:
            return None
        source, settings = self.source.taken(), self.settings()
        now, middle = self.source.looked_at(source.transform)
        frames = frames_around(now, source.movie.frame_count) if source.points is None else None
        most = preferences().preview.detections
        key = (id(source.image), frames, settings.spacing)
        known = self._spots[1] if self._spots is not None and self._spots[0] == key else source.points

        def work(report: Report) -> _Tracked:
            found = known
            if found is None:
                placed, _ = source.detect(DetectionSettings(spacing=settings.spacing), report, frames)
                _refuse_without_spots(placed, source)
                found = source.in_voxels(placed)
                self._spots = key, found
            part = part_around(found, now, middle, most)
            return _Tracked(source, part, track(part, settings, workers=1, progress=report), None)

        return work

    # ------------------------------------------------------------ what is shown

    def show_result(self, result: _Tracked) -> None:
        """Add the tracks or update the edited layer; of very many, what the view shows is drawn."""
        self._show_tracks(result)
        vertices = len(result.detections)
        if vertices > preferences().window.vertices:
            seconds = vertices / _VERTICES_A_SECOND
            self.show_message(
                f"{_summary(result.run)}\nThe layer draws what the view shows of {vertices:,} detections: to "
                f"draw all takes napari {lasting(seconds)}.",
                offer=("Draw all", lambda: self._show_tracks(result, part=False)),
            )

    def show_preview(self, result: _Tracked) -> None:
        """Show the tracks of the preview, and what was learned from them."""
        voxels = result.source.calibration
        layer = tracks_layer(result.run.tracks, calibration=voxels, name="Preview of tracks")
        self._recolour(self.show_preview_layer(layer, result.source.transform))
        seen = result.detections
        self.show_message(
            f"Frames {seen.first_frame} to {seen.first_frame + seen.frame_count - 1}: {_summary(result.run)}"
        )

    def _show_tracks(self, result: _Tracked, *, part: bool = True) -> None:
        """Show tracks; of very many, `part` of them or all."""
        source, run = result.source, result.run
        if result.used is not None:
            spots = points_layer(run.tracks.detections, name=f"Spots of {source.name}")
            used = result.used
            found = self.record(source.name, asdict(used), used.device, source.calibration)
            found |= {"command": "detect", ASKED: asdict(DetectionSettings(spacing=used.spacing))}
            shown = show(self.viewer, spots, source.transform, record=found)
            keep_places(shown, result.detections.position)
        of = run.settings.as_dict(), str(run.stats["device"]), source.calibration
        record = self.record(source.name, *of)
        if run.learned is not None:
            record["learned"] = run.learned.as_dict()
        name = f"Tracks of {source.name}"
        if not part:
            with signals_blocked(self.result):
                self.result.choose(self.shown)  # which draws a part
        draw = partial(show_tracks, self.viewer, run.tracks, source.transform, name, part=part)
        self._recolour(self.show_by(partial(draw, record=record)))
        keep_places_of_tracks(self.shown, run.tracks, result.detections.position)
        self.uncertain.hold(run.tracks, source.transform)
        if source.labels:
            labels = labels_by_track(source.image, run.tracks)
            name, layers = f"{source.name} by track", self.viewer.layers
            if name in layers and isinstance(layers[name], Labels):
                layers[name].data = labels
            else:
                self.viewer.add_labels(labels, name=name, **vars(source.transform))
        said = None if run.learned is None else run.learned.columns
        self.columns.show_bits({} if said is None else said.links)
        self.show_message(_summary(run))

    def _recolour(self, layer: Any) -> None:
        if layer is not None and layer in self.viewer.layers:
            known = layer.properties_to_color_by
            layer.color_by = next(name for name in COLOURS[self.colour.currentText()] if name in known)

    # ------------------------------------------------------------ what the user does

    def _source_chosen(self) -> None:
        self.rows.set_unit(self.source.symbol, self.source.voxel.values()[2])
        self.columns.hold(self.source.layers.layer())
        self.result.choose(None)  # a result of another layer is not to be replaced unasked
        self.changed()

    def _result_chosen(self) -> None:
        """Show what columns said in the run of the chosen result, too."""
        super()._result_chosen()
        record = record_of(self.result.layer()) or {}
        self.columns.show_bits(record.get("learned", {}).get("columns", {}).get("links", {}))

    def _colour_chosen(self) -> None:
        self.colours.setVisible(self.colour.currentIndex() == 0)
        for layer in (self._preview_layer, self.shown):
            self._recolour(layer)

    def _enable(self) -> None:
        """Enable the fields that apply with a max. distance, or without one."""
        given = self.rows["max_distance"].number() is not None
        silent = [one.name for one in self._without_effect(gated=given)]
        self.rows.enable(tuple(silent), False)
        self.rows.enable(tuple(name for name in _BOUND if name not in silent), True)
        self.columns.setEnabled(not given)

    @staticmethod
    def _without_effect(*, gated: bool) -> list[Declared]:
        """The settings that have no effect with a max. distance, or without one."""
        return [one for one in _BOUND.values() if bool(one.setting.excludes) == gated]

    def _fill(self) -> None:
        form = self.fields
        form.addRow("layer", self.source.layers)
        self.rows.fill(form)
        form.addRow(self.columns)
        form.addRow("colour by", self.colour)
        form.addRow("", self.colours)
        form.addRow("result", self.result)
        form.addRow("live", self.live)
        form.addRow(self.uncertain)
        self._enable()

    def _connect(self) -> None:
        self.rows.connect(self.changed)
        self.rows["max_distance"].valueChanged.connect(self._enable)
        self.source.chosen.connect(self._source_chosen)
        self.colour.currentIndexChanged.connect(self._colour_chosen)


def _refuse_without_spots(found: Detections, source: Source) -> None:
    if not len(found):
        raise InputError(f"{source.name} has no spots that stand out of the noise. Look at Detect spots.")


def _summary(run: TrackingRun) -> str:
    """A summary of the run in a few lines."""
    stats = run.stats
    gap = f"optimality gap {stats['worst_gap']:g}" if stats["worst_gap"] else ""
    events = [f"{stats[name]} {name}" for name in ("divisions", "merges") if stats[name]]
    found = "; ".join(filter(None, [run.summary.removesuffix("."), gap, *events]))
    learned = [] if run.learned is None else [str(run.learned)]
    return "\n".join([f"{found}.", *run.remarks, *filter(None, [run.warning]), *learned])
