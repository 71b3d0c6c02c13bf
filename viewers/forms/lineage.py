"""The form *Lineage*: all tracks of a layer, in which a click selects there and in the image, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray
from qtpy.QtCore import QTimer
from qtpy.QtGui import QHideEvent
from qtpy.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton

from outbid.edit.filter import filter as filtered
from outbid.edit.filter import fulfilling_all
from outbid.errors import InputError, OutbidError
from outbid.particles.tracks import Tracks
from outbid.work.jobs import run_record

from ..coloured import measures_of
from ..explained import why
from ..forest import ORDERS, forest_of
from ..layers import FILTERED, WHOLE, points_layer, tracks_layer
from .colour_box import ColourBox
from .fields import LayerBox, choice_box
from .filter_box import FilterBox
from .forest_plot import ForestPlot
from .form import Form
from .marks import Marks, marks
from .napari_layers import LayerTransform, go_to, show, transform_of
from .pair import can_be_held
from .places import tracks_and_rows
from .work import Report, Task

SCOPES = ("all tracks", "lineage of the selection", "what the image shows")
_FOLLOWS = 80
"""Milliseconds after which the lineage follows what the image shows."""
_MOST_SELECTED = 3
"""Spots: a mother and two daughters."""


class LineageForm(Form):
    """Form with all lineages of a layer of tracks, coloured and filtered as the layer is."""

    command = "filter"

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.tracks: Tracks | None = None  # in places, as in files
        self.number = np.empty(0, np.int64)  # by which the layer calls each track
        self.selected: list[int] = []  # rows of detections, the last one at the end
        self._rows = np.empty(0, np.int64)  # of the layer, in the order of the detections
        self._shown = np.empty(0, np.bool_)  # detections that the filter keeps
        self._coloured: Any = None  # the layer that shows colours and filter
        self._marks: Marks | None = None
        self._transform = LayerTransform((), (), (), ())
        self._job: Task | None = None
        self.layers = LayerBox(self.viewer, self.takes)
        self.find, self.order, self.scope = QLineEdit(), choice_box(ORDERS), choice_box(SCOPES)
        self.fit_button = QPushButton("Show all")
        self.colour, self.filter, self.lineage = ColourBox(), FilterBox(), ForestPlot()
        self.where = QLabel()
        self._following = QTimer(self, singleShot=True, interval=_FOLLOWS)
        self._fill_lineage()
        self._connect_lineage()
        self._hold_layer()

    def missing(self) -> str:
        """What to do without a layer."""
        return (
            "" if self.layers.layer() is not None else "There are no tracks. Open some, or track particles."
        )

    def takes(self, layer: Any) -> bool:
        """Whether a layer can be chosen."""
        return can_be_held(layer) or (isinstance(layer, Points) and not marks(layer))

    # ------------------------------------------------------------ what is held

    def _hold_layer(self) -> None:
        """Show the lineages of the layer that is chosen, with the filters that it had."""
        self._show_filtered()
        self.filter.clear()
        layer = self.layers.layer()
        if layer is None:
            return
        try:
            tracks, rows, number = tracks_and_rows(layer)
        except OutbidError as problem:
            self.show_problem(problem)
            return
        self._transform = transform_of(layer).world
        self.hold_tracks(tracks, rows, number, layer.metadata.get(FILTERED, ()))
        self.fit()

    def hold_tracks(
        self, tracks: Tracks, rows: NDArray[np.int64], number: NDArray[np.int64], where: Sequence[str] = ()
    ) -> None:
        """Show other tracks of the layer.

        Parameters
        ----------
        tracks : Tracks
        rows : (N,) int64 array
            Rows of the layer that the detections are.
        number : (N,) int64 array
            What the rows of the layer call their tracks.
        where : sequence of str
            Conditions to filter by, besides those of the box.
        """
        self.tracks, self._rows = tracks, rows
        self.number = np.zeros(tracks.track_count, np.int64)
        self.number[tracks.track_id[::-1]] = number[rows[::-1]]
        self.selected = [row for row in self.selected if row < len(tracks.detections)]
        self.colour.hold(tracks)
        self.filter.hold(tracks, where)
        self.renew()

    def renew(self, _: object = None) -> None:
        """Filter and draw again."""
        if self.tracks is None:
            return
        try:
            self._shown = fulfilling_all(self.tracks, self.filter.where)
        except OutbidError as problem:
            self.show_problem(problem)
            return
        self._draw_forest()
        self.recolour()
        layer = self.layers.layer()
        if layer is not None and layer.metadata.get(FILTERED, []) != self.filter.where:
            layer.metadata = {**layer.metadata, FILTERED: self.filter.where}  # for sessions
        if self.filter.where:
            ids = self.tracks.track_id
            spots, tracks = int(self._shown.sum()), len(np.unique(ids[self._shown]))
            self.show_message(
                f"The filter keeps {spots:,} of {len(ids):,} spots, {tracks:,} of "
                f"{self.tracks.track_count:,} tracks."
            )

    def _draw_forest(self, _: object = None) -> None:
        if self.tracks is None:
            return
        shown, scope = self._shown, SCOPES.index(self.scope.currentText())
        if scope == 1 and self.selected:
            family = forest_of(self.tracks).family_of(self.tracks.track_id[self.selected])
            shown = shown & np.isin(self.tracks.track_id, family)
        elif scope == 2:
            shown = shown & self._in_image()
        forest = forest_of(self.tracks, None if shown.all() else shown, self.order.currentText())
        self.lineage.hold(forest, self.number, self.colour.coloured.share)
        self.lineage.select(self.selected, go=False)

    def recolour(self, _: object = None) -> None:
        """Colour the lineage and the layer alike; spots that the filter removes are not drawn."""
        if self.tracks is None:
            return
        values = self.colour.coloured
        self.colour.show_range(values)
        self.lineage.colour(values.share, self.colour.table)
        layer = self.layers.layer()
        whole = None if layer is None else layer.metadata.get(WHOLE)
        if layer is None or (whole is None and len(layer.data) != len(self._rows)):
            return
        self._coloured = layer
        if isinstance(layer, Points):
            kept = np.empty(len(self._rows), np.bool_)
            kept[self._rows] = self._shown
            layer.shown = kept
            return
        colours = np.empty((len(self._rows), 4))
        colours[self._rows] = self.colour.colours(values)
        colours[self._rows[~self._shown], 3] = 0.0
        if whole is None:
            layer.track_colors = colours
        else:  # it draws a part of them
            whole.paint(colours)

    def _in_image(self) -> NDArray[np.bool_]:
        """(N,) The detections in what the image shows, at any time and depth."""
        assert self.tracks is not None
        camera, size = self.viewer.scene.camera, np.array(self.viewer.canvas.size) / 2
        place = self.tracks.detections.position
        if self.viewer.dims.ndisplay == 3:
            return np.ones(len(place), np.bool_)
        away = np.abs(place[:, 1:] - np.array(camera.center[-2:])) * camera.zoom
        return np.asarray((away <= size).all(axis=1))

    # ------------------------------------------------------------ selection

    def select(self, row: int, more: bool = False, go: bool = True) -> None:
        """Select a detection, alone or besides others; the image goes to its frame and marks it."""
        if self.tracks is None:
            return
        others = [one for one in self.selected if one != row][1 - _MOST_SELECTED :]
        self.selected = [*others, row] if more else [row]
        seen = self.tracks.detections
        if go:
            point = [int(seen.frame[row]), *seen.position[row]]
            go_to(self.viewer, point, self._transform, near=np.inf)
        self._mark()
        self.lineage.select(self.selected)
        if self.scope.currentText() == SCOPES[1] and not more:
            self._draw_forest()
        self.where.setText(self.sentence())

    def sentence(self) -> str:
        """What is selected."""
        assert self.tracks is not None
        names = [self.name(row) for row in self.selected]
        if len(names) != 1:
            return f"Selected: {', '.join(names)}."
        tracks, row = self.tracks, self.selected[0]
        links = np.flatnonzero(tracks.links[:, 0] == row)
        if not len(links):
            return f"Selected: {names[0]}. Its track ends."
        chance = tracks.link_probability
        known = "" if chance is None else f" with probability {chance[links[0]]:.2f}"
        return f"Selected: {names[0]}. It goes on{known}. {why(tracks, int(links[0]))}"

    def name(self, row: int) -> str:
        """How a sentence calls a detection."""
        assert self.tracks is not None
        track = self.number[self.tracks.track_id[row]]
        return f"track {track} in frame {self.tracks.detections.frame[row]}"

    def search(self) -> None:
        """Select the first detection of the track whose number was typed."""
        text = self.find.text().strip()
        found = np.flatnonzero(self.number == int(text)) if text.isdecimal() else np.empty(0, np.int64)
        if self.tracks is None or not len(found):
            self.show_message(f"There is no track {text!r}. Type the number of a track.", error=True)
            return
        self.select(int(np.flatnonzero(self.tracks.track_id == found[0])[0]))
        self.lineage.fit(self.selected)

    def fit(self) -> None:
        """Show all lineages."""
        self.lineage.fit()

    def nearest(self, world: Sequence[float], direction: Sequence[float] | None, *, later: int = 0) -> int:
        """Row of the detection of the frame shown, or later, nearest to a click; -1 if there is none."""
        assert self.tracks is not None
        frame, at, along = ray(world, direction, self._transform)
        rows = self.tracks.detections.rows_of(frame + later)
        way = self.tracks.detections.position[rows] - at
        away = np.linalg.norm(way - np.outer(way @ along, along), axis=1)
        away[~self._shown[rows]] = np.inf
        return rows.start + int(away.argmin()) if len(away) and np.isfinite(away.min()) else -1

    def clicked(self, world: Sequence[float], direction: Sequence[float] | None, more: bool) -> None:
        """Select the detection at which the user clicked in the image."""
        row = -1 if self.tracks is None else self.nearest(world, direction)
        if row >= 0:
            self.select(row, more, go=False)

    def _mouse(self, _: Any, event: Any) -> Iterator[None]:
        """Take a click, and no drag."""
        yield
        if event.type == "mouse_release" and self.isVisible():
            direction = event.view_direction if self.viewer.dims.ndisplay == 3 else None
            self.clicked(event.position, direction, "Shift" in event.modifiers)

    def _mark(self) -> None:
        assert self.tracks is not None
        self._marks = self._marks or Marks(self.viewer, self._transform)
        self._marks.show(self.tracks.detections.position[self.selected])

    # ------------------------------------------------------------ what runs in the background

    def task(self) -> Task:
        """What was asked for."""
        if self._job is None:
            raise InputError("There is nothing to do. Choose a layer of tracks.")
        job, self._job = self._job, None
        return job

    def show_result(self, result: Any) -> None:
        """Offer measures of the tracks as colours."""
        self.colour.measured(result)

    def measure(self) -> None:
        """Measure all tracks, to colour by what comes out."""
        tracks = self.tracks
        if tracks is not None and self._work is None:

            def work(report: Report) -> object:
                report(0, 0)
                return measures_of(tracks)

            self._job = work
            self.run()

    def keep(self) -> None:
        """Add what the filter keeps as a layer, whose record states the filter."""
        layer, tracks = self.layers.layer(), self.tracks
        if layer is None or tracks is None:
            return
        settings = {"cut_below": None, "conditions": self.filter.where, "min_confidence": None}
        record = run_record("filter", {"name": layer.name}) | {
            "settings": settings | {"min_length": None, "max_length": None}, "seed": None,
        }  # fmt: skip
        known = tracks.detections.calibration
        record |= {} if known.interval is None else {"calibration": known.as_dict()}
        kept, name = filtered(tracks, where=self.filter.where), f"{layer.name} filtered"
        flat = isinstance(layer, Points)
        made = points_layer(kept.detections, name=name) if flat else tracks_layer(kept, name=name)
        show(self.viewer, made, self._transform, record=record)
        self.show_message(f"{made.name} has {len(made.data):,} spots; its record states the filter.")

    # ------------------------------------------------------------ looks

    def hideEvent(self, event: QHideEvent) -> None:
        """Take the marks away when the form is closed; called by Qt."""
        super().hideEvent(event)
        if not event.spontaneous():
            self._stop_watching()
            self._show_filtered()

    def showEvent(self, event: Any) -> None:
        """Watch clicks in the image while the form is seen; called by Qt."""
        super().showEvent(event)
        self.recolour()
        if self._mouse not in self.viewer.mouse_drag_callbacks:
            self.viewer.mouse_drag_callbacks[:] = [*self.viewer.mouse_drag_callbacks, self._mouse]

    def _show_filtered(self) -> None:
        """Show again what the filter hides in the layer, which has no filter without the form."""
        layer = self._coloured
        if layer not in self.viewer.layers:
            return
        if isinstance(layer, Points):
            layer.shown = True
        elif WHOLE in layer.metadata:
            layer.metadata[WHOLE].paint(None)
        elif layer.track_colors is not None:
            layer.track_colors = layer.track_colors * [1, 1, 1, 0] + [0, 0, 0, 1]

    def _stop_watching(self) -> None:
        self.viewer.mouse_drag_callbacks[:] = [
            one for one in self.viewer.mouse_drag_callbacks if one != self._mouse
        ]
        if self._marks is not None:
            self._marks.clear()
            self._marks = None

    def _follow(self, _: object = None) -> None:
        """Show the frame of the image, and with it what is in view."""
        if self._transform.scale and self.tracks is not None:
            self.lineage.show_frame(self._transform.frame_shown(self.viewer))

    def _follow_view(self, _: object = None) -> None:
        if self.scope.currentText() == SCOPES[2]:
            self._following.start()

    def _fill_lineage(self) -> None:
        self.find.setPlaceholderText("find track …")
        self.find.setFixedWidth(84)
        self.order.setToolTip("By what lineages are put side by side.")
        self.where.setWordWrap(True)
        self.fields.addRow("layer", self.layers)
        self.fields.addRow("colour", self.colour)
        row = QHBoxLayout()
        for widget in (self.find, self.scope, self.order, self.fit_button):
            row.addWidget(widget)
        self.fields.addRow(row)
        self.fields.addRow(self.lineage)
        self.fields.addRow(self.where)
        self.fields.addRow(self.filter)
        self.run_button.hide()

    def _connect_lineage(self) -> None:
        self.layers.chosen.connect(self._hold_layer)
        self.lineage.chosen.connect(self.select)
        self.find.returnPressed.connect(self.search)
        self.fit_button.clicked.connect(lambda _=False: self.fit())
        self.order.currentTextChanged.connect(self._draw_forest)
        self.scope.currentTextChanged.connect(self._draw_forest)
        self.colour.changed.connect(self.recolour)
        self.colour.asked.connect(self.measure)
        self.filter.changed.connect(self.renew)
        self.filter.kept.connect(self.keep)
        self._following.timeout.connect(self._draw_forest)
        self.viewer.dims.events.current_step.connect(self._follow)
        for event in ("center", "zoom"):
            getattr(self.viewer.scene.camera.events, event).connect(self._follow_view)


def ray(
    world: Sequence[float], direction: Sequence[float] | None, transform: LayerTransform
) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """Frame, position and direction of view of a click, in the unit of the voxels; along z in 2D."""
    own = np.asarray(world)[-len(transform.scale) :] - transform.translate
    at, along, axes = np.zeros(3), np.array([1.0, 0.0, 0.0]), len(own) - 1
    at[-axes:] = own[1:]
    if direction is not None:
        along[-axes:] = np.asarray(direction)[-axes:]
    return round(float(own[0]) / transform.scale[0]), at, along / np.linalg.norm(along)
