"""Layers that show a question: detections of two frames, trails, alternatives as numbered arrows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..proofreading import Question, Session
from .marks import PlaneLayers
from .napari_layers import LayerTransform, go_to

_TRAIL = 2  # frames before and after, in which links are drawn
_WIDTH = 12.0
"""What the view spans, as a multiple of the median step; of the longest alternative at least three times."""
_LOOKS = {
    "blending": "translucent_no_depth", "face_color": "transparent", "border_width": 0.15,
    "text": {"string": "{text}", "size": 13, "color": "gold", "anchor": "upper_left"},
}  # fmt: skip


class QuestionLayers(PlaneLayers):
    """Layers of a viewer without a time axis, in the plane that is shown; only what is near is in them.

    Parameters
    ----------
    viewer : napari.Viewer
    transform : LayerTransform
        Of the layer that is proofread.
    session : Session
    """

    def __init__(self, viewer: Any, transform: LayerTransform, session: Session) -> None:
        super().__init__(viewer, transform)
        source, target = session.tracks.links.T
        position = session.tracks.detections.position
        steps = np.linalg.norm((position[target] - position[source]) * transform.spacing, axis=1)
        self._near = _WIDTH * (float(np.median(steps)) if len(steps) else 0.0) or 10 * max(transform.spacing)

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

    def _lines(self, name: str, ends: NDArray[np.float64], colours: NDArray, style: str) -> None:
        looks = {
            "edge_color": "silver", "edge_width": self._near / 150 / self._transform.spacing[2],
            "vector_style": style, "blending": "translucent_no_depth",
        }  # fmt: skip
        self._put(name, ends, self._viewer.add_vectors, {"edge_color": colours} if len(ends) else {}, looks)


def texts_of(asked: Question) -> str:
    """All alternatives as a line."""
    number, named = count(1), {-1: "0 end", -2: "C no particle"}
    texts = (
        f"{named.get(to) or next(number)}: {_known(value, asked)}" for to, value in asked.link.alternatives
    )
    return ", ".join(text.removesuffix(": ") for text in texts)


def _known(value: float, asked: Question) -> str:
    return "" if value != value else f"{value:.0%}" if asked.probable else f"{value:.3g}"
