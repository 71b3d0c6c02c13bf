"""Tracks of more links than napari draws in good time: the part around what the view shows is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QTimer

from outbid.particles.tracks import Tracks

from ..from_layers import exact
from ..layers import WHOLE, Layer, tracks_layer
from .napari_layers import LayerTransform, preferences, show

MOST = 60_000
"""Guard: detections that are drawn: napari takes about 90,000 a second."""
_TAIL, _AHEAD = 30, 1
"""Frames before and after the one that is shown, if so many fit: napari's tails are as long."""
_SETTLED = 60  # milliseconds without a step after which another part is drawn
_BEYOND = 1.5  # times the view: what is drawn beside it, so that small moves show it at once


class WindowedTracks(QObject):
    """A layer that draws a part of its tracks: some frames, and in 2D what the view shows of them.

    Parameters
    ----------
    viewer : napari.Viewer
    tracks : Tracks
        All of them, in voxels.
    transform : LayerTransform
    name : str
    record : mapping
    instead_of : napari layer, optional
        As for `show`.
    """

    def __init__(
        self, viewer: Any, tracks: Tracks, transform: LayerTransform, name: str, record: Any, instead_of: Any
    ) -> None:
        super().__init__()
        self.tracks = tracks
        self.places: NDArray[np.float64] | None = None
        """(N, 3) Places of its detections as they were detected, where they are known."""
        self.colours: NDArray[np.float64] | None = None
        """(N, 4) Of its detections, where another form sets them: 0 in the last column hides."""
        layered = np.lexsort((tracks.detections.frame, tracks.track_id))
        self._viewer, self._transform = viewer, transform
        whole = tracks_layer(tracks, name=name)
        by_time = np.lexsort((whole.data[:, 0], whole.data[:, 1]))
        self._whole, self._detection = whole.take(by_time), layered[by_time]
        ends = self._whole.data[:, 1:]
        self._frames, self._record = ends[:, 0], record
        self._corners = np.unique([ends.argmin(axis=0), ends.argmax(axis=0)])
        """Rows that are drawn always, each as a track of its own: so the window can go to all frames."""
        self._settled = QTimer(self, singleShot=True, interval=_SETTLED)
        self._settled.timeout.connect(self.draw)
        self.layer: Any = None
        self.rows = self._chosen()
        self.layer = show(viewer, self._part(), transform, record=record, instead_of=instead_of)
        self._mark()
        for event in (viewer.dims.events.current_step, viewer.scene.camera.events.center):
            event.connect(self._moved)
        viewer.scene.camera.events.zoom.connect(self._moved)

    def draw(self) -> None:
        """Draw the part that the view shows now, unless it is drawn already."""
        if self.layer not in self._viewer.layers or self.layer.metadata.get(WHOLE) is not self:
            return
        rows = self._chosen()
        if np.array_equal(rows, self.rows):
            return
        self.rows, kept = rows, dict(self.layer.metadata)
        self.layer = show(
            self._viewer, self._part(), self._transform, record=self._record, instead_of=self.layer
        )
        self._mark(kept)

    def paint(self, colours: NDArray[np.float64] | None) -> None:
        """Colour what is drawn now, and what is drawn later; None: as napari does."""
        before, self.colours = self.colours, colours
        if colours is not None:
            self.layer.track_colors = colours[self._detection[self.drawn]]
        elif before is not None:
            self.layer.color_by = self.layer.color_by  # which colours anew

    @property
    def drawn(self) -> NDArray[np.int64]:
        """The rows that are drawn, in the order of the layer: by track, then time."""
        by_track = np.lexsort((self._frames[self.rows], self._whole.data[self.rows, 0]))
        return np.append(self.rows[by_track], self._corners)

    def placed(self) -> Tracks:
        """All tracks, in places."""
        order = np.arange(len(self.tracks.detections))
        return replace(self.tracks, detections=exact(self.tracks.detections, self.places, order))

    def _mark(self, kept: Mapping[str, Any] | None = None) -> None:
        self.layer.metadata = {**self.layer.metadata, **(kept or {}), WHOLE: self}
        self.paint(self.colours)

    def _moved(self, _: object = None) -> None:
        self._settled.start()

    def _part(self) -> Layer:
        """The chosen rows as a layer; tracks keep their numbers."""
        part, ids = self._whole.take(self.drawn), self._whole.data[:, 0]
        number = np.unique(ids[self.rows])
        part.data[len(self.rows) :, 0] = ids.max() + 1 + np.arange(len(self._corners))
        there = set(number.astype(int).tolist())
        held = {
            child: [one for one in parents if one in there]
            for child, parents in self._whole.graph.items()
            if child in there
        }
        return replace(part, graph={child: of for child, of in held.items() if of})

    def _chosen(self) -> NDArray[np.int64]:
        """Rows of the frames around the one that is shown, of those in view as many as are drawn in time."""
        now = self._transform.frame_shown(self._viewer)
        first, last = np.searchsorted(self._frames, [now - _TAIL - 0.5, now + _AHEAD + 0.5])
        rows = np.arange(first, last)
        if len(rows) > MOST:
            rows = rows[self._in_view(rows)]
        if len(rows) > MOST:  # the frames nearest to the one that is shown, and those before it
            rows = rows[len(rows) - MOST :]
        return rows if len(rows) else np.arange(min(MOST, len(self._frames)))

    def _in_view(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        if self._viewer.dims.ndisplay == 3:
            return np.ones(len(rows), np.bool_)
        camera, scale = self._viewer.scene.camera, np.asarray(self._transform.scale[-2:])
        centre = (np.array(camera.center[-2:]) - self._transform.translate[-2:]) / scale
        half = _BEYOND * np.array(self._viewer.canvas.size) / 2 / camera.zoom / scale
        return np.asarray((np.abs(self._whole.data[rows, -2:] - centre) <= half).all(axis=1))


def show_tracks(
    viewer: Any, tracks: Tracks, transform: LayerTransform, name: str, *, record: Any = None,
    instead_of: Any = None, part: bool = True,
) -> Any:  # fmt: skip
    """Show tracks: all at once, or, where these are very many and a part is enough, what the view shows."""
    if part and len(tracks.detections) > preferences().window.vertices:
        return WindowedTracks(viewer, tracks, transform, name, record, instead_of).layer
    return show(viewer, tracks_layer(tracks, name=name), transform, record=record, instead_of=instead_of)
