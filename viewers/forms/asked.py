"""Layers that show a question: detections of two frames, trails, alternatives as numbered arrows."""

from __future__ import annotations

from typing import Any

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray

from ..proofreading import Question, Session
from .shown import Place, go_to, take_away

_TRAIL = 2  # frames before and after, in which links are drawn
_WIDTH = 5.0
"""What the view spans, as a multiple of the longest alternative, or of the median step near by."""
_REACH = 1.5
"""How far detections and links are drawn, as a multiple of what the view spans."""


class AskedLayers:
    """Layers of a viewer without a time axis, in the plane that is shown; only what is near is in them.

    Parameters
    ----------
    viewer : napari.Viewer
    place : Place
        Of the layer that is proofread.
    """

    def __init__(self, viewer: Any, place: Place) -> None:
        self._viewer, self._place = viewer, place
        self._layers: dict[str, Any] = {}
        self._rows: dict[str, NDArray[np.float64]] = {}
        viewer.dims.events.current_step.connect(self._follow)
        viewer.dims.events.ndisplay.connect(self._follow)

    def draw(self, session: Session, asked: Question) -> None:
        """Show a question in the middle of the view."""
        seen, doubt = session.tracks.detections, asked.doubt
        at, frame = seen.position[doubt.row], int(seen.frame[doubt.row])
        spacing = np.asarray(self._place.spacing)
        begin, stop = (int(np.searchsorted(seen.frame, frame + by)) for by in (-_TRAIL, _TRAIL + 1))
        links = session.tracks.links
        links = links[slice(*np.searchsorted(links[:, 0], [begin, stop]))]
        ways = [(row, value) for row, value in doubt.alternatives if row >= 0]
        steps = np.linalg.norm((seen.position[links[:, 1]] - seen.position[links[:, 0]]) * spacing, axis=1)
        far = [float(np.linalg.norm((seen.position[row] - at) * spacing)) for row, _ in ways]
        near = _WIDTH * (max([*far, float(np.median(steps)) if len(steps) else 0.0]) or max(spacing))
        links = links[self._are_near(seen.position[links[:, 0]], at, near)]
        self._points("Frame t", seen.position[seen.rows_of(frame)], at, near, "red")
        self._points("Frame t + 1", seen.position[seen.rows_of(frame + 1)], at, near, "lime")
        self._lines("Trails", seen.position[links], near / 400, "silver", "line")
        ends = np.array([[at, seen.position[row]] for row, _ in ways]).reshape(-1, 2, 3)
        self._lines("Alternatives", ends, near / 150, "gold", "arrow")
        texts = [f"{k}: {_known(value, asked)}" for k, (_, value) in enumerate(ways, 1)]
        self._points("Numbers", ends[:, 1], at, near, "transparent", texts)
        self.changed(session, near)
        go_to(self._viewer, [frame, *at], self._place, near)
        self._viewer.scene.camera.zoom = min(self._viewer.canvas.size) / near

    def changed(self, session: Session, near: float) -> None:
        """Show the links of detections whose successors changed."""
        links = session.tracks.links
        ends = session.tracks.detections.position[links[np.isin(links[:, 0], session.changed)]]
        self._lines("Changed links", ends, near / 120, "magenta", "line")

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

    def _are_near(
        self, position: NDArray[np.float64], at: NDArray[np.float64], near: float
    ) -> NDArray[np.bool_]:
        return (np.abs((position - at) * self._place.spacing) <= _REACH * near / 2).all(axis=-1)

    def _points(
        self, name: str, position: NDArray[np.float64], at: NDArray[np.float64], near: float, colour: str,
        texts: list[str] | None = None,
    ) -> None:  # fmt: skip
        rows = position if texts else position[self._are_near(position, at, near)]
        size, features = near / 45 / self._place.spacing[2], {} if texts is None else {"text": texts}
        self._rows[name] = rows
        layer = self._layers.get(name)
        if layer is None or layer not in self._viewer.layers:
            text = (
                None
                if texts is None
                else {"string": "{text}", "size": 13, "color": "gold", "anchor": "upper_left"}
            )
            looks = {"face_color": "transparent", "border_color": colour, "border_width": 0.15}
            self._layers[name] = self._viewer.add_points(
                self._shown(rows), name=name, features=features, text=text, size=size, **looks,
                **self._where(),
            )  # fmt: skip
            return
        layer.data = self._shown(rows)
        layer.size = size
        if texts is not None:
            layer.features = features
            layer.refresh_text()

    def _lines(self, name: str, ends: NDArray[np.float64], width: float, colour: str, style: str) -> None:
        self._rows[name] = ends
        layer = self._layers.get(name)
        if layer is None or layer not in self._viewer.layers:
            self._layers[name] = self._viewer.add_vectors(
                self._shown(ends), name=name, edge_color=colour, vector_style=style, **self._where()
            )
        else:
            layer.data = self._shown(ends)
        self._layers[name].edge_width = width / self._place.spacing[2]

    def _where(self) -> dict[str, Any]:
        place = self._place
        return {
            "scale": place.scale[1:], "translate": place.translate[1:], "units": place.units[1:],
            "axis_labels": place.axis_labels[1:], "blending": "translucent_no_depth",
        }  # fmt: skip

    def _shown(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows (n, 3) or ends of lines (n, 2, 3) as layers have them; in 2D all are in the plane shown."""
        rows = rows.copy()
        if len(self._place.scale) == 3:
            rows = rows[..., 1:]
        elif self._viewer.dims.ndisplay == 2:
            rows[..., 0] = (self._viewer.dims.point[-3] - self._place.translate[1]) / self._place.scale[1]
        if rows.ndim == 3:
            rows[:, 1] -= rows[:, 0]  # napari's vectors: start and direction
        return rows

    def _follow(self, _: object = None) -> None:
        """Keep what is shown in the plane that is shown."""
        if len(self._place.scale) == 4:
            for name, layer in self._layers.items():
                if layer in self._viewer.layers:
                    layer.data = self._shown(self._rows[name])


def texts_of(asked: Question) -> str:
    """All alternatives as a line."""
    number, texts = 0, []
    for row, value in asked.doubt.alternatives:
        number += row >= 0
        key = f"{number}" if row >= 0 else {-1: "0 end", -2: "C no particle"}[row]
        texts.append(f"{key}: {_known(value, asked)}".removesuffix(": "))
    return ", ".join(texts)


def _known(value: float, asked: Question) -> str:
    return "" if value != value else f"{value:.0%}" if asked.probable else f"{value:.3g}"
