"""Two frames of a movie on top of each other, in colours that colour-blind people distinguish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from napari.layers import Image
from numpy.typing import NDArray

from .napari_layers import LayerTransform, transform_of

COLOURS = ("magenta", "lime")
"""Of the earlier frame and of the later one; where both are bright it is white."""
_NAMES = ("Earlier frame", "Later frame")
_MAPS = ("magenta", "green")


class FramePair:
    """Crops of two frames of the movie that is shown, instead of the movie.

    Parameters
    ----------
    viewer : napari.Viewer
    transform : LayerTransform
        Of the places at which it is cropped.
    """

    def __init__(self, viewer: Any, transform: LayerTransform) -> None:
        self._viewer, self._axes = viewer, len(transform.scale)
        self._movie: Any = None
        self._layers: list[Any] = []

    def show(self, at: NDArray[np.float64], frames: Sequence[int], near: float) -> None:
        """Show two frames around a place z, y, x, up to `near` in each direction."""
        movie = self._movie if self._movie in self._viewer.layers else self._found()
        if movie is None:
            return
        crops = [_crop(movie, at, frame, near) for frame in frames]
        if any(crop is None for crop in crops):  # beyond the movie
            self.clear()
            return
        self._movie, movie.visible = movie, False
        if not all(layer in self._viewer.layers for layer in self._layers) or not self._layers:
            self._layers = [self._added(movie, *crop, k) for k, crop in enumerate(crops) if crop]
        for layer, crop in zip(self._layers, crops, strict=True):
            assert crop is not None
            layer.data, layer.translate = crop

    def clear(self) -> None:
        """Show the movie again."""
        for layer in self._layers:
            if layer in self._viewer.layers:
                self._viewer.layers.remove(layer)
        if self._movie in self._viewer.layers:
            self._movie.visible = True
        self._layers, self._movie = [], None

    def _found(self) -> Any:
        """The movie on top, if one is shown."""
        movies = [
            layer for layer in self._viewer.layers
            if isinstance(layer, Image) and layer.visible and layer.ndim == self._axes
            and not (layer.multiscale or layer.rgb)
        ]  # fmt: skip
        return movies[-1] if movies else None

    def _added(self, movie: Any, data: NDArray, translate: Sequence[float], which: int) -> Any:
        chosen, transform = self._viewer.layers.selection.active, transform_of(movie)
        layer = self._viewer.add_image(
            data, name=_NAMES[which], colormap=_MAPS[which], blending="additive", translate=translate,
            scale=transform.scale[1:], units=transform.units[1:], axis_labels=transform.axis_labels[1:],
            contrast_limits=movie.contrast_limits, gamma=movie.gamma,
        )  # fmt: skip
        self._viewer.layers.move(len(self._viewer.layers) - 1, self._viewer.layers.index(movie) + 1 + which)
        self._viewer.layers.selection.active = chosen
        return layer


def _crop(movie: Any, at: NDArray[np.float64], frame: int, near: float) -> tuple[NDArray, list[float]] | None:
    """The voxels of a frame around a place, and where their first one is; None beyond the movie."""
    if not 0 <= frame < movie.data.shape[0]:
        return None
    transform = transform_of(movie)
    size, shift = np.array(transform.scale[1:]), np.array(transform.translate[1:])
    middle, shape = (at[-len(size) :] - shift) / size, np.array(movie.data.shape[1:])
    low = np.clip(np.floor(middle - near / size), 0, shape - 1).astype(int)
    high = np.clip(np.ceil(middle + near / size) + 1, low + 1, shape).astype(int)
    part = movie.data[(frame, *map(slice, low.tolist(), high.tolist()))]
    return np.asarray(part), (low * size + shift).tolist()
