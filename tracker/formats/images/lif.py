"""Leica LIF images, read by liffile plane by plane."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ..files.packages import damage_explained, opened
from ..files.units import MICROMETRES
from .stacks import ImageFormat, OpenFile, Stack, refuse_level, scene_in


def open_stack(source: str, scene: int | None, level: int) -> Stack:
    """See `stacks.ImageFormat`."""
    refuse_level(source, level)
    with opened(source, "LIF", "liffile") as liffile:
        opened_file = OpenFile(liffile.LifFile(source))
        images = [each for each in opened_file.file.images if {"Y", "X"} <= {*each.dims}]
        if not images:
            raise InputError(f"{source} holds no image. Check where it was made.")
        number, listed = scene_in(source, scene, [f"{each.name} {dict(each.sizes)}" for each in images])
        image = images[number]
        pixels = _Pixels(opened_file, image, source)
        steps = {axis: _step(values) for axis, values in image.coords.items()}
    spacing = [MICROMETRES * abs(steps.get(axis) or 0.0) or 1.0 for axis in "ZYX"]
    return Stack(
        pixels, "".join(image.dims), (spacing[0], spacing[1], spacing[2]),
        "micrometer" if steps.get("X") else "pixel", steps.get("T"), bool(steps.get("Z")), scenes=listed,
    )  # fmt: skip


def _step(values: NDArray) -> float | None:
    """Mean spacing of coordinates, if there are at least two."""
    return float(values[-1] - values[0]) / (len(values) - 1) if len(values) > 1 else None


class _Pixels:
    """An image of the file as an array that reads planes when it is indexed."""

    def __init__(self, opened_file: OpenFile, image: Any, source: str) -> None:
        self._file, self._image, self._source = opened_file, image, source
        self.shape, self.dtype = tuple(image.shape), image.dtype
        within = image.frames.frame_dims
        self._outside = {axis: image.sizes[axis] for axis in image.dims if axis not in within}

    def __getitem__(self, where: tuple[int | slice, ...]) -> NDArray:
        by_axis = dict(zip(self._image.dims, where, strict=True))
        chosen = {axis: np.atleast_1d(np.arange(size)[by_axis[axis]]) for axis, size in self._outside.items()}
        inside = tuple(by_axis[axis] for axis in self._image.dims if axis not in self._outside)
        with damage_explained(self._source, "LIF"):
            planes = [
                self._image.frame(**dict(zip(self._outside, map(int, index), strict=True)))[inside]
                for index in product(*chosen.values())
            ]
        lengths = [len(chosen[axis]) for axis in self._outside if isinstance(by_axis[axis], slice)]
        return np.stack(planes).reshape(*lengths, *planes[0].shape)


FORMAT = ImageFormat(open_stack)
