"""Spots of many frames in flat arrays on the GPU, in the order of frames."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from ...compute.arrays import cupy_module, to_host


def starts(frame, frames):
    """(frames + 1,) i8: the first row of each frame."""
    xp = cupy_module()
    return xp.searchsorted(frame, xp.arange(frames + 1, dtype=np.int32)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Rows:
    """Spots in responses.

    Parameters
    ----------
    frames : int
        Number of frames.
    frame : (n,) int32 array
        Not falling.
    position : (n, 3) float64 array
    amplitude, error : (n,) float64 array
    """

    frames: int
    frame: object
    position: object
    amplitude: object
    error: object

    def __len__(self):
        return len(self.frame)

    @staticmethod
    def none(frames):
        """No spots."""
        xp = cupy_module()
        return Rows(frames, xp.empty(0, np.int32), xp.empty((0, 3)), xp.empty(0), xp.empty(0))

    @cached_property
    def start(self):
        """(frames + 1,) i8."""
        return starts(self.frame, self.frames)

    @property
    def significance(self):
        """(n,): amplitudes over their errors."""
        return self.amplitude / self.error

    def of(self, rows):
        """Some of them, by a mask or in an order."""
        rows = cupy_module().flatnonzero(rows) if rows.dtype == bool else rows
        taken = {each.name: getattr(self, each.name)[rows] for each in fields(self)[1:]}
        return replace(self, **taken)

    def above(self, least):
        """(n,): which are more significant than the least (frames,) of their frame."""
        return self.significance > least[self.frame]

    def in_frames(self, some):
        """(n,): which are in the frames of a mask (frames,) on the host."""
        return cupy_module().asarray(some)[self.frame]

    def counts(self, rows=None):
        """(frames,) on the host: how many, or how many of a mask."""
        frame = self.frame if rows is None else self.frame[rows]
        return to_host(cupy_module().bincount(frame, minlength=self.frames))

    @staticmethod
    def joined(parts, frames):
        """Rows of several, in the order of frames, and in a frame in that of the parts."""
        xp = cupy_module()
        if not parts:
            return Rows.none(frames)
        columns = [xp.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Rows)[1:]]
        return Rows(frames, *columns).of(in_order(columns[0]))


def in_order(frame):
    """The rows in the order of frames; those of a frame as they are."""
    xp = cupy_module()
    return xp.argsort(frame.astype(np.int64) * len(frame) + xp.arange(len(frame)))
