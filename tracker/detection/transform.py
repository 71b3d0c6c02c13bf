"""Cosine transforms of frames, and the band of wave numbers in which spots have power.

A Gaussian of width σ has no power beyond some wave numbers 1 / σ. The cosine transform without them is that
of a smaller frame, in which spots have the width `_SAMPLES` and white noise is white with the same variance:
nothing that a matched filter responds to is lost, and large spots cost less than small ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.fft import next_fast_len

from .transform_cpu import cosines

_SHORT = 96
"""Guard: voxels of an axis up to which products with its cosines are quicker than a fast transform."""
_SAMPLES = 1.25
"""Guard: voxels of a smaller frame that a width has at least: 4e-4 of a spot's amplitude is beyond."""


@dataclass(frozen=True)
class CosineTransform:
    """Orthonormal cosine transforms along all axes, by some threads."""

    workers: int = 1

    def forward(self, values: NDArray[np.float32], small: tuple[int, ...] = ()) -> NDArray[np.float32]:
        """The modes of an image, or the first `small` of them along z, y, x."""
        shape = small or values.shape
        if not 1 < values.shape[0] <= _SHORT:
            return self._transformed("dct", values, (0, 1, 2), shape)
        return self._transformed("dct", _along_z(values, shape[0], back=False), (1, 2), shape)

    def back(self, modes: NDArray[np.float32], shape: tuple[int, ...] = ()) -> NDArray[np.float32]:
        """The inverse of `forward`, of the modes with 0 for those that a frame of this shape has besides."""
        shape = shape or modes.shape
        if not 1 < shape[0] <= _SHORT:
            return self._transformed("idct", modes, (2, 1, 0), shape)
        return _along_z(
            self._transformed("idct", modes, (2, 1), (len(modes), *shape[1:])), shape[0], back=True
        )

    def _transformed(
        self, name: str, values: NDArray[np.float32], axes: tuple[int, ...], shape: tuple[int, ...]
    ) -> NDArray[np.float32]:
        """Axis by axis, so that what is cut is not transformed again; an axis of one voxel stays as it is."""
        out, how = values, {"norm": "ortho", "workers": self.workers}
        axes = tuple(axis for axis in axes if max(values.shape[axis], shape[axis]) > 1)
        if shape == values.shape:
            return getattr(fft, f"{name}n")(out, axes=axes, **how) if axes else out
        for axis in axes:
            n = shape[axis] if name == "idct" else values.shape[axis]
            out = getattr(fft, name)(out, n=n, axis=axis, **how)
            if name == "dct":
                out = out[tuple(slice(shape[axis]) if axis == other else slice(None) for other in range(3))]
        return out


def _along_z(values: NDArray[np.float32], size: int, back: bool) -> NDArray[np.float32]:
    """The first modes along z, or so many planes of them, by products with their cosines."""
    matrix = _cosines(*((len(values), size) if back else (size, len(values))))
    out: NDArray[np.float32] = cosines(matrix, np.ascontiguousarray(values).reshape(len(values), -1), back)
    return out.reshape(size, *values.shape[1:])


@cache
def _cosines(few: int, many: int) -> NDArray[np.float32]:
    """The first rows of the orthonormal cosine transform of so many values."""
    rows: NDArray[np.float32] = fft.dct(np.eye(many), axis=0, norm="ortho")[:few].astype(np.float32)
    return rows


class Band(NamedTuple):
    """A frame, and the smaller one.

    Parameters
    ----------
    shape, small : (int, int, int)
        Voxels along z, y, x of both.
    """

    shape: tuple[int, ...]
    small: tuple[int, ...]

    @staticmethod
    def of(shape: tuple[int, ...], sigma: NDArray[np.float64]) -> Band:
        """The band of spots of these widths in voxels.

        Examples
        --------
        >>> Band.of((1, 200, 300), np.array([0.0, 2.5, 1.0])).small
        (1, 100, 300)
        """
        needed = [ceil(n * min(_SAMPLES / s, 1.0)) if s > 0 else n for n, s in zip(shape, sigma, strict=True)]
        return Band(
            shape, tuple(min(next_fast_len(m, real=True), n) for m, n in zip(needed, shape, strict=True))
        )

    @property
    def scale(self) -> NDArray[np.float64]:
        """(3,): voxels of the smaller frame in one of the frame."""
        return np.array(self.small) / np.array(self.shape)

    @property
    def gain(self) -> float:
        """Of a value of both frames, in units of white noise."""
        return float(np.prod(self.scale)) ** -0.5

    def in_frame(self, position: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, 3): positions in the frame of those in the smaller one."""
        return (position + 0.5) / self.scale - 0.5
