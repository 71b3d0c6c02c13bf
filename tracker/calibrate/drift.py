"""Drift: motion of whole frames by more than the spacing of the particles.

In this case neighbours cannot reveal the motion (`flow`), because the nearest detection in the next frame is
that of another particle. So all displacements between the detections of two frames are entered in a
histogram, as votes: displacements between different particles spread over all bins, those of the same
particles concentrate in one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..gating import pairs_within
from ..refine.movie import Movie
from .estimates import NeighbourDistances

_TRIED = 3
"""Number of frames whose votes are counted first."""
_FAR = 0.6
"""If the distance to the next frame is below this share of the particle spacing, there is no large drift."""
_VOTERS = 256
"""Number of detections per frame that vote."""
_REACH = 4.0
"""Largest drift, in spacings."""
_FINE, _WIDE = 4, 3
"""Number of bins per spacing, and of bins whose votes are summed."""
_SHARE = 0.2
"""Least share of the votes for the drift."""
_ALONE = 0.6
"""Largest share of the excess votes that another displacement may have: streams may run against each
other."""
_SURE = 6.0
"""Standard deviations by which the votes must exceed the random level, and the votes for no drift."""


def drift_of(movie: Movie, near: NeighbourDistances, *, workers: int = 1) -> NDArray[np.float64] | None:
    """Offset of each frame relative to the first one, if frames drift by about a spacing or more.

    Parameters
    ----------
    movie : Movie
    near : NeighbourDistances
        Distances in some of the frames, which show whether a vote is needed.
    workers : int
        Threads; they do not change the result.

    Returns
    -------
    (F, axes) float64 array or None
        None if no frame drifts that far; smaller drifts are handled by `flow`.

    Examples
    --------
    >>> from ..detections import Detections
    >>> from .estimates import neighbour_distances
    >>> from ..refine.movie import movie_of
    >>> place = np.random.default_rng(0).uniform(0, 9, (300, 3))
    >>> points = np.concatenate([place, place + [0, 0, 2.5]])
    >>> movie = movie_of(Detections.from_table(np.repeat([0, 1], 300), points), (1, 1, 1))
    >>> drift_of(movie, neighbour_distances(movie.position, movie.frame_start))[1].round(1) + 0
    array([0. , 0. , 2.5])
    """
    start = movie.frame_start
    held = np.nonzero(np.diff(start) > 1)[0]
    pairs = list(zip(held[:-1].tolist(), held[1:].tolist(), strict=True))
    ahead = np.zeros((len(start) - 1, movie.axes))

    def vote(before: int, after: int) -> None:
        here, there = (movie.position[start[f] : start[f + 1]] for f in (before, after))
        voters = np.random.default_rng(before).permutation(here)[:_VOTERS]
        ahead[after] = _voted(voters, there, workers)

    # Where particles are crowded strangers are near: votes in a few frames tell whether all have to vote.
    # Over frames that are left out particles are farther from themselves, and nobody asked how far.
    over = sorted((pair for pair in pairs if pair[1] > pair[0] + 1), key=lambda pair: pair[0] - pair[1])
    tried = [(before, before + 1) for before in _doubtful(near)[:_TRIED].tolist()] + over[:_TRIED]
    for before, after in tried:
        vote(before, after)
        if ahead[after].any():
            for pair in pairs:
                vote(*pair)
            return np.cumsum(ahead, axis=0)
    return None


def _doubtful(near: NeighbourDistances) -> NDArray[np.int64]:
    """The frames in which the next frame's detections are as far away as unrelated ones, farthest first."""
    from .drift_cpu import medians

    frames, begins = np.unique(near.frame, return_index=True)
    step, stranger = np.empty((2, len(frames)))
    ends = np.append(begins, len(near.frame))
    for distance, median in ((near.between, step), (near.within, stranger)):
        medians(distance, ends, median)
    far = step / np.maximum(stranger, 1e-300)
    order = np.argsort(-far, kind="stable")
    return frames[order[far[order] > _FAR]]


def _voted(voters: NDArray[np.float64], there: NDArray[np.float64], workers: int) -> NDArray[np.float64]:
    """(axes,) displacement with most votes; 0 if it is not significant or not distinguishable from 0."""
    from .drift_cpu import count_votes

    count, axes = voters.shape
    extent = np.ptp(there, axis=0)
    if extent.min() == 0:  # one particle, or all of them in a plane: they have no spacing
        return np.zeros(axes)
    spacing = math.exp((np.log(extent).sum() - math.log(len(there))) / axes)
    clouds = [np.hstack([cloud, np.zeros((len(cloud), 3 - axes))]) for cloud in (voters, there)]
    ends = [np.array([0, len(cloud)]) for cloud in clouds]
    near = pairs_within(clouds[0], clouds[1], _REACH * spacing, ends[0], ends[1], workers=workers)
    bins = math.ceil(_REACH * _FINE) * 2 + 1
    counted = np.zeros(bins**axes)
    count_votes(
        near.indptr, near.indices, near.rows.point, near.cols.point, axes, _FINE / spacing, counted
    )  # fmt: skip
    votes = _together(counted.reshape((bins,) * axes))
    window = (_WIDE / _FINE) ** axes
    noise = math.sqrt(count * window)
    peak = np.unravel_index(np.argmax(votes), votes.shape)
    middle = votes[(bins // 2,) * axes]
    if votes[peak] < count * (window + _SHARE) or votes[peak] < max(count * window, middle) + _SURE * noise:
        return np.zeros(axes)
    if _rival(votes, peak) - count * window > _ALONE * (votes[peak] - count * window):
        return np.zeros(axes)
    row = near.rows.order[np.repeat(np.arange(count), np.diff(near.indptr))]
    ways = there[near.cols.order[near.indices]] - voters[row]
    way = (np.array(peak) - bins // 2) * spacing / _FINE
    for _ in range(5):  # the mean of a window that follows it
        way = ways[(np.abs(ways - way) < spacing / 2).all(axis=1)].mean(axis=0)
    return np.asarray(way)


def _rival(votes: NDArray[np.float64], peak: tuple[np.intp, ...]) -> float:
    """The largest number of votes for a displacement outside the neighbourhood of the peak."""
    elsewhere = votes.copy()
    elsewhere[tuple(slice(max(int(at) - _WIDE, 0), int(at) + _WIDE + 1) for at in peak)] = 0
    return float(elsewhere.max())


def _together(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of the votes in each bin and the bins around it.

    Examples
    --------
    >>> _together(np.array([1.0, 0, 0, 5])).tolist()
    [1.0, 1.0, 5.0, 5.0]
    """
    for axis in range(votes.ndim):
        alone, votes = votes, votes.copy()
        to, of = np.moveaxis(votes, axis, 0), np.moveaxis(alone, axis, 0)
        for shift in range(1, _WIDE // 2 + 1):
            to[shift:] += of[:-shift]
            to[:-shift] += of[shift:]
    return votes
