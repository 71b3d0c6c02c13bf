"""Layers without a time axis, in the plane that is shown: marks of what is selected, and of questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray

from ..layers import RECORD
from .napari_layers import LayerTransform, record_of, take_away

MARKS = "marks"
"""Command in the record of layers that mark others."""

_SIZE = 18
"""Pixels of a mark, at the zoom at which it was made."""
_LOOKS = {
    "blending": "translucent_no_depth", "face_color": "transparent", "border_color": "white",
    "border_width": 0.12, "symbol": "disc",
}  # fmt: skip


def marks(layer: Any) -> bool:
    """Whether a layer marks what is in others."""
    return (record_of(layer) or {}).get("command") == MARKS


class PlaneLayers:
    """Layers of points and vectors without a time axis, in the plane that is shown.

    Parameters
    ----------
    viewer : napari.Viewer
    transform : LayerTransform
        Of the layer that they belong to.
    """

    def __init__(self, viewer: Any, transform: LayerTransform) -> None:
        self._viewer, self._transform, self._drawing = viewer, transform, False
        self._layers: dict[str, Any] = {}
        self._rows: dict[str, NDArray[np.float64]] = {}
        viewer.dims.events.current_step.connect(self._follow)
        viewer.dims.events.ndisplay.connect(self._follow)

    def clear(self) -> None:
        """Take the layers away, lines first: vispy with Mesa may crash where points went before them."""
        self._viewer.dims.events.current_step.disconnect(self._follow)
        self._viewer.dims.events.ndisplay.disconnect(self._follow)
        for layer in sorted(self._layers.values(), key=lambda one: isinstance(one, Points)):
            take_away(self._viewer, layer)
        self._layers.clear()

    def _put(
        self, name: str, rows: NDArray[np.float64], add: Callable[..., Any], changing: dict[str, Any],
        looks: dict[str, Any],
    ) -> None:  # fmt: skip
        """Add a layer, or give the one that is there other rows and what changes with them."""
        layer, self._rows[name] = self._layers.get(name), rows
        if layer is None or layer not in self._viewer.layers:
            in_space = {attribute: values[1:] for attribute, values in vars(self._transform).items()}
            chosen = self._viewer.layers.selection.active
            looks = looks | {"metadata": {RECORD: {"command": MARKS}}}
            self._layers[name] = add(self._shown(rows), name=name, **in_space, **looks | changing)
            if chosen is not None:
                self._viewer.layers.selection.active = chosen
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


class Marks(PlaneLayers):
    """Rings around what is selected."""

    def show(self, position: NDArray[np.float64]) -> None:
        """Mark these places (k, 3), and no others."""
        size = _SIZE / self._viewer.scene.camera.zoom
        self._put("Selected", position, self._viewer.add_points, {"size": size}, _LOOKS)
