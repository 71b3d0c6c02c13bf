"""Movie: detections by frame, in units of their spacing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gamma, pi

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import FRAME, ROW, Arrays, array_module, kernels, to_host
from ...compute.tolerances import TINY
from ...geometry.neighbours import nearest
from ...pins.rows import PinnedRows
from .features import Features

NEIGHBOURS, OUTER = 10, 24
"""Prior: number of neighbours for the density, whose relative error is then a third; and for the flow."""


@dataclass(frozen=True, eq=False)
class Movie(Arrays):
    """Detections as arrays, in the coordinates of the inference.

    Parameters
    ----------
    position : (N, D) float64 array
        Unit: the mean distance to the nearest detection of the same frame.
    frame : (N,) int64 array
        Not decreasing, from 0.
    frame_start : (F + 1,) int64 array
        Frame f holds the rows frame_start[f] to frame_start[f + 1].
    density : (N,) float64 array
        Local number of detections per unit volume.
    basis : (A, D) float64 array
        Matrix that converts displacements in the original A axes to these coordinates.
    time : (F,) int64 array, optional
        Time of each frame in intervals, if some frames were not recorded. Default: consecutive frames.
    near : (N, 24) int32 array, optional
        The nearest detections of the same frame, nearest first, -1 where there are no more.
    features : Features, optional
        Columns that help to link.
    pins : PinnedRows, optional
        What a person states of its links.
    """

    position: NDArray[np.float64] = field(metadata=ROW)
    frame: NDArray[np.int64] = field(metadata=ROW)
    frame_start: NDArray[np.int64]
    density: NDArray[np.float64] = field(metadata=ROW)
    basis: NDArray[np.float64]
    time: NDArray[np.int64] | None = field(metadata=FRAME, default=None)
    near: NDArray[np.int32] | None = field(metadata=ROW, default=None)
    features: Features | None = None
    pins: PinnedRows | None = None

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def frames(self) -> int:
        """Number of frames, F."""
        return len(self.frame_start) - 1

    @property
    def axes(self) -> int:
        """Number of axes, D."""
        return self.position.shape[1]

    def at(self, rows: NDArray[np.int64]) -> Movie:
        """The movie of some detections (M,), which increase; all frames stay."""
        start = np.searchsorted(to_host(rows), self.frame_start)
        return replace(self, near=None, frame_start=start).take("row", rows)

    def during(self, frames: slice) -> Movie:
        """The movie, whose detections are in these frames, without the other frames."""
        first = frames.start
        start = self.frame_start[first : frames.stop + 1]
        return replace(self.take("frame", frames), frame=self.frame - first, frame_start=start - start[0])

    def of_frames(self, values: NDArray) -> NDArray:
        """(N, …) values of the frames of the detections, from values (F, …) on the host."""
        return array_module(self.frame).asarray(values)[self.frame]

    @cached_property
    def left(self) -> NDArray[np.int64]:
        """(N,) number of frames that follow the frame of each detection."""
        return self.frames - 1 - self.frame

    @cached_property
    def intervals(self) -> NDArray[np.int64]:
        """(F - 1,) number of intervals from each frame to the next; of a single frame, 1."""
        if self.time is None or self.frames < 2:
            return np.ones(max(self.frames - 1, 1), dtype=np.int64)
        return np.diff(self.time)

    def lasting(self, lag: int) -> NDArray[np.int64]:
        """(F,) number of intervals from each frame to the one `lag` later, or at least one to the last."""
        start = np.concatenate([[0], np.cumsum(self.intervals)])[: self.frames]
        last = np.minimum(np.arange(self.frames) + lag, self.frames - 1)
        return np.maximum(start[last] - start, 1)

    @cached_property
    def when(self) -> NDArray[np.int64]:
        """(N,) time of each detection, in intervals from the first frame."""
        return self.frame if self.time is None else self.of_frames(self.time - self.time[0])

    def variance_here(self, variance: NDArray[np.float64]) -> NDArray[np.float64]:
        """(D,) variances in these coordinates, from variances (A,) along the original axes."""
        return weighted(variance, self.basis**2)

    def variance_given(self, variance: NDArray[np.float64]) -> NDArray[np.float64]:
        """(A,) variances along the original axes, from variances (D,) in these coordinates."""
        inverse: NDArray[np.float64] = np.linalg.pinv(self.basis).astype(np.float64)
        return weighted(variance, inverse**2)

    def mean_by_frame(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(F, D) means of values (N, D) over each frame, on the host; 0 for empty frames."""
        sums = [to_host(summed(self.frame, column, self.frames)) for column in values.T]
        return np.stack(sums, axis=1) / np.maximum(np.diff(self.frame_start), 1)[:, None]

    def mean_square(self, flow: NDArray[np.float64]) -> NDArray[np.float64]:
        """(D,) mean square of displacements (N, D) to the next frame: those of the last frame are none."""
        lead = int(self.frame_start[-2]) if self.frames else 0
        return to_host(np.square(flow[:lead]).sum(axis=0)) / max(lead, 1)


def summed(index: NDArray[np.integer], weight: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """(count,) sums of the weights (E,) of each index (E,)."""
    sums: NDArray[np.float64] = kernels("outbid.learned.model.segments", index).summed(index, weight, count)
    return sums


def of_segments(
    index: NDArray[np.integer], start: NDArray[np.int64], link: NDArray[np.int32], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(N,) sums of values (E,) by index (E,), whose places are link[start[i]:start[i + 1]] for index i."""
    on = kernels("outbid.learned.model.segments", values)
    sums: NDArray[np.float64] = on.of_segments(index, start, link, values)
    return sums


def chain_ends(step: NDArray[np.int64]) -> NDArray[np.int64]:
    """End of each chain of steps; an end points to itself.

    Examples
    --------
    >>> chain_ends(np.array([0, 0, 1, 2, 4])).tolist()
    [0, 0, 0, 0, 4]
    """
    while (step[step] != step).any():  # each looks as far as the one before it has looked
        step = step[step]
    return step


def weighted(weight: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over the first axis of weights (E,) times values (E, …), in the order of rows.

    BLAS is not used, because its sums depend on the number of threads.
    """
    total: NDArray[np.float64] = np.einsum("e,e...->...", weight, values)
    return total


def movie_of(
    position: NDArray[np.float64],
    frame_start: NDArray[np.int64],
    *,
    basis: NDArray[np.float64] | None = None,
    spacing: float | None = None,
    neighbours: int = OUTER,
) -> Movie:
    """A movie in units of its spacing.

    Parameters
    ----------
    position : (N, D) float64 array
        In any unit.
    frame_start : (F + 1,) int64 array
    basis : (A, D) float64 array, optional
        Matrix of previous coordinate changes. Default: identity.
    spacing : float, optional
        The unit. Default: the mean distance to the nearest detection of the same frame.
    neighbours : int
        Number of nearest detections that are kept: those of the density at least.

    Examples
    --------
    >>> movie_of(np.array([[0.0], [2.0], [4.0]]), np.array([0, 3])).position.ravel().tolist()
    [0.0, 1.0, 2.0]
    """
    axes, xp = position.shape[1], array_module(position)
    frame = xp.asarray(np.repeat(np.arange(len(frame_start) - 1), np.diff(frame_start)))
    near, square = nearest(position, frame_start, xp.arange(len(position)), neighbours)
    density, typical = _density(position, near[:, :NEIGHBOURS], square[:, :NEIGHBOURS])
    spacing = typical if spacing is None else spacing
    basis = np.eye(axes) if basis is None else basis
    scaled = xp.ascontiguousarray(position / spacing)
    return Movie(
        position=scaled, frame=frame, frame_start=frame_start, density=density * spacing**axes,
        basis=basis / spacing, near=near,
    )  # fmt: skip


def _density(
    position: NDArray[np.float64], near: NDArray[np.int32], square: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Local number of detections per unit volume, from the distance to a neighbour; and the mean spacing."""
    (count, axes), xp = position.shape, array_module(position)
    many = (near >= 0).sum(axis=1)
    seen = many > 0
    if not seen.any():  # never two in a frame
        extent = np.ptp(position, axis=0)
        spacing = float(extent.max()) or 1.0
        return np.full(count, spacing**-axes / max(count, 1)), spacing  # another one is rarer than 1 in all
    spacing = float(np.sqrt(square[:, 0][seen]).mean()) or 1.0
    farthest = np.sqrt(square[xp.arange(count), np.maximum(many - 1, 0)])
    radius = np.maximum(np.where(seen, farthest, spacing), TINY * spacing)
    ball = pi ** (axes / 2) / gamma(axes / 2 + 1)
    density = np.maximum(many - 0.5, 0.5) / (ball * radius**axes)
    density[~seen] = np.median(density[seen])
    return density, spacing
