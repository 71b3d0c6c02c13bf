r"""Registration: displacements from each frame to the next with neighbours moving together, without links.

If a tissue turns or a fluid flows by more than half of the particle spacing, neighbouring links are wrong
together, and the flow estimated from them (`flow`) confirms the errors. Here no links are used. Each
detection has soft matches with all possible successors, normalised to one-to-one (Sinkhorn), and moves to
their weighted mean. Its displacement is then smoothed by a linear fit to those of its neighbours. The matches
are first wide and then narrowed, so that first large regions are aligned, then small ones (softassign with
deterministic annealing: Chui & Rangarajan, A new point matching algorithm for non-rigid registration, 2003,
algorithm RPM; planes instead of splines, which cost as much for each of many particles as for each of few).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._threads import in_threads
from ..neighbours import nearest

NEIGHBOURS = 24
"""Number of neighbours."""
_STAGES = 12
_WIDE, _NARROW = 0.6, 0.3
"""First and last standard deviation of a match, in distances to the nearest neighbour."""
_CROWDS = (16, 6)
"""Numbers of neighbours that move together, of which the one with the best prediction is chosen."""
_SURE = 3.0
"""Standard errors by which each number must improve the prediction: few neighbours are misled by individual
motion."""
_LATER = 12
"""Number of nearest detections in the next frame with which each detection may be matched."""
_ROUNDS, _STRAY = 2, 0.02
"""Rounds of normalisation, and the weight of no match for each detection of both frames."""
_STIFF = 0.2
"""Stiffness: weight of a uniform displacement against the fit to neighbours."""
_FEWEST = 12
"""Least number of detections in a frame."""


def registered(
    frame_start: NDArray[np.int64],
    position: NDArray[np.float64],
    near: NDArray[np.int32],
    distance2: NDArray[np.float64],
    guess: NDArray[np.float64],
    *,
    workers: int = 1,
) -> NDArray[np.float64]:
    """(N, axes) displacements that map the detections of each frame onto those of the next.

    The displacement of a detection does not depend directly on its own matches. So these matches show which
    number of neighbours predicts best, and whether the result is better than the guess. If not, the guess is
    returned; it is also kept in frames with few detections or with many at one position.

    Parameters
    ----------
    frame_start : (F + 1,) int64 array
        Frame f holds the rows frame_start[f] to frame_start[f + 1].
    position : (N, axes) float64 array
    near : (N, NEIGHBOURS) int32 array
        Rows of the nearest other detections in the same frame, -1 for none.
    distance2 : (N, NEIGHBOURS) float64 array
        Squared distances to them.
    guess : (N, axes) float64 array
        Initial displacements.
    workers : int
        Threads; they do not change the result.

    Examples
    --------
    Points that turn, most of them farther than to their neighbours:

    >>> place = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> turned = place @ [[np.cos(0.1), np.sin(0.1)], [-np.sin(0.1), np.cos(0.1)]]
    >>> start, both = np.array([0, 400, 800]), np.concatenate([place, turned])
    >>> near, distance2 = nearest(both, start, np.arange(800), NEIGHBOURS)
    >>> ahead = registered(start, both, near, distance2, np.zeros_like(both))[:400]
    >>> bool(np.median(np.abs(place + ahead - turned)) < 0.01)
    True
    """
    from .registration_cpu import register

    later, axis = _later(frame_start, position, guess, workers), (0.0,) * position.shape[1]
    cuts = np.searchsorted(frame_start, np.linspace(0, len(position), workers + 1)[1:-1]).tolist()
    runs = list(zip([0, *cuts], [*cuts, len(frame_start) - 1], strict=True))

    def carried(crowd: int, width: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        ahead, met = guess.copy(), np.full(len(position), np.nan)

        def carry(run: tuple[int, int]) -> None:
            register(
                *run, frame_start, position, axis, near, distance2, later, width, crowd, _ROUNDS, _STRAY,
                _STIFF, _FEWEST, ahead, met,
            )  # fmt: skip

        list(in_threads(carry, runs, workers))
        return ahead, met[np.isfinite(met)]

    width = np.append(np.geomspace(_WIDE, _NARROW, _STAGES), _NARROW)
    best, (_, so_far) = guess, carried(0, width[-1:])  # as it is, for no stage moves it
    for crowd in _CROWDS:
        ahead, met = carried(crowd, width)
        more = met - so_far
        if more.sum() > _SURE * np.sqrt(np.square(more).sum()):
            best, so_far = ahead, met
    return best


def _later(
    frame_start: NDArray[np.int64], position: NDArray[np.float64], guess: NDArray[np.float64], workers: int
) -> NDArray[np.int32]:
    """(N, _LATER) rows of the next frame nearest to each predicted position, -1 if there are fewer."""
    later = np.full((len(position), _LATER), -1, np.int32)
    if len(frame_start) > 2:
        # As a movie of twice the frames: each where it is guessed to go, and then the next one as it is.
        asking, asked = np.arange(frame_start[-2]), np.arange(frame_start[1], frame_start[-1])
        size, more = np.diff(frame_start), frame_start[1:-1] - frame_start[1]
        both = np.column_stack([size[:-1], size[1:]]).ravel()
        row = asking + np.repeat(more, size[:-1])
        twice = np.empty((len(asking) + len(asked), position.shape[1]))
        twice[row] = position[asking] + guess[asking]
        twice[asked + np.repeat(more, size[1:])] = position[asked]
        near, _ = nearest(twice, np.append(0, np.cumsum(both)), row, _LATER, offset=1, workers=workers)
        more = np.repeat(more, size[:-1]).astype(np.int32)[:, None]
        later[: len(asking)] = np.subtract(near, more, out=near, where=near >= 0)
    return later
