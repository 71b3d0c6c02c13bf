"""Layers that show a question: detections of two frames, trails, alternatives as numbered arrows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray

from ..proofreading import Question, Session
from .napari_layers import LayerTransform, go_to, take_away

_TRAIL = 2  # frames before and after, in which links are drawn
_WIDTH = 12.0
"""What the view spans, as a multiple of the median step; of the longest alternative at least three times."""
_LOOKS = {
    "blending": "translucent_no_depth", "face_color": "transparent", "border_width": 0.15,
    "text": {"string": "{text}", "size": 13, "color": "gold", "anchor": "upper_left"},
}  # fmt: skip


class QuestionLayers:
    """Layers of a viewer without a time axis, in the plane that is shown; only what is near is in them.

    Parameters
    ----------
    viewer : napari.Viewer
    transform : LayerTransform
        Of the layer that is proofread.
    session : Session
    """

    def __init__(self, viewer: Any, transform: LayerTransform, session: Session) -> None:
        self._viewer, self._transform, self._drawing = viewer, transform, False
        source, target = session.tracks.links.T
        position = session.tracks.detections.position
        steps = np.linalg.norm((position[target] - position[source]) * transform.spacing, axis=1)
        self._near = _WIDTH * (float(np.median(steps)) if len(steps) else 0.0) or 10 * max(transform.spacing)
        self._layers: dict[str, Any] = {}
        self._rows: dict[str, NDArray[np.float64]] = {}
        viewer.dims.events.current_step.connect(self._follow)
        viewer.dims.events.ndisplay.connect(self._follow)

    def draw(self, session: Session, asked: Question) -> Iterator[None]:
        """Show a question in the middle of the view, in steps between which the window may answer."""
        seen, links, row = session.tracks.detections, session.tracks.links, asked.link.row
        at, frame = seen.position[row], int(seen.frame[row])
        values = {to: value for to, value in asked.link.alternatives if to >= 0}
        ways = np.array(list(values), np.int64)
        far = np.linalg.norm((seen.position[ways] - at) * self._transform.spacing, axis=1).max(initial=0.0)
        near = max(self._near, 3.0 * far)
        self._drawing = True
        go_to(self._viewer, [frame, *at], self._transform, near)
        self._viewer.scene.camera.zoom = min(self._viewer.canvas.size) / near
        self._drawing = False
        yield

        def close(rows: NDArray[np.int64]) -> NDArray[np.int64]:
            away = np.abs((seen.position[rows] - at) * self._transform.spacing)
            return rows[(away <= 0.7 * near).all(axis=1)]

        now, then = (
            close(np.arange(here.start, here.stop)) for here in map(seen.rows_of, (frame, frame + 1))
        )
        begin, stop = (int(np.searchsorted(seen.frame, frame + by)) for by in (-_TRAIL, _TRAIL + 1))
        trails = links[slice(*np.searchsorted(links[:, 0], [begin, stop]))]
        trails = trails[np.isin(trails[:, 0], close(np.arange(begin, stop)))]
        numbers = {to: "\n" * k + f"{k + 1}: {_known(values[to], asked)}" for k, to in enumerate(values)}
        rows = np.concatenate([now, np.setdiff1d(then, ways), ways])
        colours = np.where(np.arange(len(rows)) < len(now), "red", "lime")
        changing = {"features": {"text": [numbers.get(int(to), "") for to in rows]}, "border_color": colours}
        looks = _LOOKS | {"size": self._near / 45 / self._transform.spacing[2]}
        self._put(
            "Detections of frames t and t + 1", seen.position[rows], self._viewer.add_points, changing, looks
        )
        yield
        ends = np.concatenate([trails, np.column_stack([np.full(len(ways), row), ways])])
        colours = np.repeat(["silver", "gold"], [len(trails), len(ways)])
        self._lines("Links", seen.position[ends], colours, "arrow")
        yield
        ends = links[np.isin(links[:, 0], session.changed)] if len(session.changed) else links[:0]
        self._lines("Changed links", seen.position[ends], np.repeat("magenta", len(ends)), "line")

    def blink(self) -> None:
        """Hide changed links, or show them again."""
        layer = self._layers.get("Changed links")
        if layer is not None and layer in self._viewer.layers:
            layer.visible = not layer.visible

    def clear(self) -> None:
        """Take the layers away, lines first: vispy with Mesa may crash where points went before them."""
        self._viewer.dims.events.current_step.disconnect(self._follow)
        self._viewer.dims.events.ndisplay.disconnect(self._follow)
        for layer in sorted(self._layers.values(), key=lambda one: isinstance(one, Points)):
            take_away(self._viewer, layer)
        self._layers.clear()

    def _lines(self, name: str, ends: NDArray[np.float64], colours: NDArray, style: str) -> None:
        looks = {
            "edge_color": "silver", "edge_width": self._near / 150 / self._transform.spacing[2],
            "vector_style": style, "blending": "translucent_no_depth",
        }  # fmt: skip
        self._put(name, ends, self._viewer.add_vectors, {"edge_color": colours} if len(ends) else {}, looks)

    def _put(
        self, name: str, rows: NDArray[np.float64], add: Callable[..., Any], changing: dict[str, Any],
        looks: dict[str, Any],
    ) -> None:  # fmt: skip
        """Add a layer, or give the one that is there other rows and what changes with them."""
        layer, self._rows[name] = self._layers.get(name), rows
        if layer is None or layer not in self._viewer.layers:
            in_space = {attribute: values[1:] for attribute, values in vars(self._transform).items()}
            self._layers[name] = add(self._shown(rows), name=name, **in_space, **looks | changing)
            return
        if not layer.visible:  # napari slices no hidden layer, and then finds no colours for its lines
            layer.visible = True
        layer.data = self._shown(rows)
        for attribute, values in changing.items():
            setattr(layer, attribute, values)

    def _shown(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows (n, 3) or ends of lines (n, 2, 3) as layers have them; in 2D all are in the plane shown."""
        rows = rows.copy()
        if len(self._transform.scale) == 3:
            rows = rows[..., 1:]
        elif self._viewer.dims.ndisplay == 2:
            rows[..., 0] = (
                self._viewer.dims.point[-3] - self._transform.translate[1]
            ) / self._transform.scale[1]
        if rows.ndim == 3:
            rows[:, 1] -= rows[:, 0]  # napari's vectors: start and direction
        return rows

    def _follow(self, _: object = None) -> None:
        """Keep what is shown in the plane that is shown."""
        if len(self._transform.scale) == 4 and not self._drawing:
            for name, layer in self._layers.items():
                if layer in self._viewer.layers:
                    layer.data = self._shown(self._rows[name])


def texts_of(asked: Question) -> str:
    """All alternatives as a line."""
    number, named = count(1), {-1: "0 end", -2: "C no particle"}
    texts = (
        f"{named.get(to) or next(number)}: {_known(value, asked)}" for to, value in asked.link.alternatives
    )
    return ", ".join(text.removesuffix(": ") for text in texts)


def _known(value: float, asked: Question) -> str:
    return "" if value != value else f"{value:.0%}" if asked.probable else f"{value:.3g}"
