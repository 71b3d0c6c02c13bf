"""Layers that show a question: detections of two frames, trails, alternatives as numbered arrows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..proofreading import Question, Session
from .frame_pair import COLOURS, FramePair
from .marks import PlaneLayers
from .napari_layers import LayerTransform, go_to

_TRAIL = 2  # frames before and after, in which links are drawn
_CLOSE = 0.7
"""Prior: what is drawn reaches so far from the question, as a multiple of what the view spans."""
_WIDTH = 12.0
"""What the view spans, as a multiple of the median step; of the longest alternative at least three times."""
_LOOKS = {
    "blending": "translucent_no_depth", "face_color": "transparent", "border_width": 0.15,
    }  # fmt: skip
_LABEL = (100.0, 26.0)
"""Pixels of a label: how wide and high."""
_ASIDE = 0.7
"""Prior: of its width, how far the middle of a label is from what it names."""
_NAMED = {
    "blending": "translucent_no_depth", "face_color": "transparent", "border_width": 0.0,
    "text": {"string": "{text}", "size": 13, "color": "gold", "anchor": "center"},
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
        self._pair = FramePair(viewer, transform)
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
            return rows[(away <= _CLOSE * near).all(axis=1)]

        later = [int(seen.frame[to]) for to in asked.link.successors] or [frame + 1]
        self._pair.show(at, (frame, later[0]), _CLOSE * near)
        now, then = (close(np.arange(here.start, here.stop)) for here in map(seen.rows_of, (frame, later[0])))
        begin, stop = (int(np.searchsorted(seen.frame, frame + by)) for by in (-_TRAIL, _TRAIL + 1))
        trails = links[slice(*np.searchsorted(links[:, 0], [begin, stop]))]
        trails = trails[np.isin(trails[:, 0], close(np.arange(begin, stop)))]
        rows = np.concatenate([now, np.setdiff1d(then, ways), ways])
        colours = np.repeat(COLOURS, [len(now), len(rows) - len(now)])
        looks = _LOOKS | {"size": self._near / 45 / self._transform.spacing[2]}
        self._put(
            "Detections of both frames", seen.position[rows], self._viewer.add_points,
            {"border_color": colours}, looks,
        )  # fmt: skip
        yield
        labels, moved = self._labels(seen.position[ways], at)
        texts = [f"{k}: {_known(values[to], asked)}".removesuffix(": ") for k, to in enumerate(values, 1)]
        self._put("Alternatives", labels, self._viewer.add_points, {"features": {"text": texts}}, _NAMED)
        ends = np.concatenate([trails, np.column_stack([np.full(len(ways), row), ways])])
        leaders = np.stack([seen.position[ways], labels], axis=1)[moved]
        lines = np.concatenate([seen.position[ends], leaders])
        colours = np.repeat(["silver", "gold", "dimgray"], [len(trails), len(ways), len(leaders)])
        self._lines("Links", lines, colours, "arrow")
        yield
        ends = links[np.isin(links[:, 0], session.changed)] if len(session.changed) else links[:0]
        self._lines("Changed links", seen.position[ends], np.repeat("deepskyblue", len(ends)), "line")

    def _labels(
        self, ends: NDArray[np.float64], at: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Where the labels of alternatives are, none on another, and which are not beside their ends."""
        pixel = 1 / self._viewer.scene.camera.zoom / np.array(self._transform.spacing[1:])
        aside = np.where(ends[:, 2:] >= at[2], 1.0, -1.0) * [0.0, _ASIDE * _LABEL[0]]
        wanted, places = ends[:, 1:] / pixel + aside, ends.copy()
        placed = spread(wanted)
        places[:, 1:] = placed * pixel
        return places, (placed != wanted).any(axis=1)

    def clear(self) -> None:
        """Take the layers away, and show the movie again."""
        super().clear()
        self._pair.clear()

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


def spread(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places y, x (n, 2) in pixels at which labels do not overlap: each below those in its way.

    Examples
    --------
    >>> spread(np.array([[0.0, 0], [5, 10], [3, 400]])).tolist()
    [[0.0, 0.0], [26.0, 10.0], [3.0, 400.0]]
    """
    placed = places.copy()
    order = np.argsort(places[:, 0], kind="stable")
    for k, row in enumerate(order):
        for _ in range(k):
            above = placed[order[:k]]
            way = (np.abs(above - placed[row]) < [_LABEL[1], _LABEL[0]]).all(axis=1)
            if not way.any():
                break
            placed[row, 0] = above[way, 0].max() + _LABEL[1]
    return placed


def texts_of(asked: Question) -> str:
    """All alternatives as a line."""
    number, named = count(1), {-1: "0 end", -2: "C no particle"}
    texts = (
        f"{named.get(to) or next(number)}: {_known(value, asked)}" for to, value in asked.link.alternatives
    )
    return ", ".join(text.removesuffix(": ") for text in texts)


def _known(value: float, asked: Question) -> str:
    return "" if value != value else f"{value:.0%}" if asked.probable else f"{value:.3g}"
