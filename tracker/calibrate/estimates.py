"""Estimate motion from steps: step length, persistence, diffusion and noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..motion import Motion
from ..neighbours import nearest

LAGS = 5
"""Number of lags of step covariances that are used, starting from 0."""
ROWS = LAGS + 1
"""Rows of covariances: one per lag, and another one for lag 1 from as many steps as possible. The latter
gives a better estimate of noise for particles without persistence, where noise may be only 1 % of the step
variance."""

_SAMPLE, _SHARE = 10_000, 16
"""Number of detections whose neighbours are sought in all, and least number in each frame."""
LONGEST = 300.0
_TIMES = (0.0, *np.geomspace(0.3, LONGEST, 61).tolist())
"""Grid of persistences, in frames."""
_BINS = 60
_SAME = 1e-6
"""Difference of weighted squares that counts as zero."""
_LEAST = 20
"""Least number of pairs of steps for a covariance."""
_ALL, _NO_DIFFUSION = [0, 1, 2], [0, 2]
"""Components of the variance of steps: velocity, diffusion and noise."""
_BRIEF, _LASTING = 0.8, 1.6
"""Persistences in frames, between which the improvement that is required to add diffusion rises from 0 to
`_CREDIBLE`: a short persistence may be caused by diffusion, a long one may not."""
_CREDIBLE = 12.0
"""Least decrease of the weighted squares for a significant persistence; noise exceeds it once in 100
cases."""


@dataclass(frozen=True, eq=False)
class NeighbourDistances:
    """Distances from the detections of some frames to their nearest neighbours.

    Parameters
    ----------
    frame : (M,) non-decreasing int64 array
        Frame of each detection.
    between, within : (M,) float64 arrays
        Distance to the nearest detection in the next frame, and to the nearest other one in the same frame;
        inf if there is none.
    """

    frame: NDArray[np.int64]
    between: NDArray[np.float64]
    within: NDArray[np.float64]

    @property
    def spacing(self) -> float:
        """Median distance to the nearest neighbour; 0 if there are no neighbours."""
        within = self.within[np.isfinite(self.within)]
        return float(np.median(within)) if len(within) else 0.0

    def unlike(self, first: int, last: int) -> float:
        """Difference, from 0 to 1, between frames first to last - 1 (or a third of the movie) and the rest.

        It is the largest difference between the distribution functions of distances to the next frame
        (Kolmogorov-Smirnov), minus the value that chance exceeds once in 1000 cases.
        """
        thirds = np.quantile(self.frame, [0, 1 / 3, 2 / 3, 1]) if len(self.frame) else np.zeros(4)
        spans = [(first, last - 1), (thirds[0], thirds[1]), (thirds[1], thirds[2]), (thirds[2], thirds[3])]
        order = np.argsort(self.between)
        distance, frame = self.between[order], self.frame[order]
        end_of_ties = np.append(distance[1:] > distance[:-1], True)
        return max(_difference((low <= frame) & (frame <= high), end_of_ties) for low, high in spans)


def _difference(chosen: NDArray[np.bool_], end_of_ties: NDArray[np.bool_]) -> float:
    """Difference between chosen and other detections beyond chance; all are sorted by distance."""
    few = int(chosen.sum())
    many = len(chosen) - few
    if few == 0 or many == 0:
        return 0.0
    below = np.cumsum(np.where(chosen, 1 / few, -1 / many))[end_of_ties]
    chance = 1.95 * np.sqrt(1 / few + 1 / many)
    return max(float(np.abs(below).max()) - float(chance), 0.0)


def neighbour_distances(
    position: NDArray[np.float64], frame_start: NDArray[np.int64], *, workers: int = 1
) -> NeighbourDistances:
    """Distances to the nearest detections, for a random sample of equal size in each frame.

    Parameters
    ----------
    position : (N, axes) float64 array
    frame_start : (F + 1,) int64 array
    workers : int
        Threads; they do not change the result.
    """
    size = np.diff(frame_start)
    usable = np.nonzero((size[:-1] > 1) & (size[1:] > 1))[0]
    if not len(usable):  # who is alone has no strangers to be mistaken for
        usable = np.nonzero((size[:-1] > 0) & (size[1:] > 0))[0]
    # Frames are not all alike: a few of all tell more than all of a few.
    share = max(_SAMPLE // max(len(usable), 1), _SHARE)
    rng, empty = np.random.default_rng(0), np.empty(0, np.int64)
    drawn = [np.sort(rng.permutation(size[f])[:share]) + frame_start[f] for f in usable.tolist()]
    asking = np.concatenate([empty, *drawn])
    frame = np.repeat(usable, [len(rows) for rows in drawn]).astype(np.int64)
    _, between = nearest(position, frame_start, asking, 1, offset=1, workers=workers)
    _, within = nearest(position, frame_start, asking, 1, workers=workers)
    return NeighbourDistances(frame, np.sqrt(between[:, 0]), np.sqrt(within[:, 0]))


def first_step(near: NeighbourDistances, axes: int) -> tuple[float, float]:
    r"""Standard deviation of a step along an axis, and share detected again, estimated before linking.

    The distance from a particle to the nearest detection in the next frame is the smaller of its own step and
    the distance to another particle. Let A be the survival function of the latter, estimated from nearest
    neighbours within frames, and q the share of particles that are detected again. Then

    .. math:: P(R > r) = [1 - q F_\sigma(r)] A(r)

    where F is the distribution function of the length of a Gaussian step. The maximum-likelihood σ and q are
    returned.

    Parameters
    ----------
    near : NeighbourDistances
    axes : int
        Number of axes.

    Returns
    -------
    float, float
        σ, 0 if there are no distances; q.
    """
    from .estimates_cpu import share_within

    between, within = near.between, np.sort(near.within[np.isfinite(near.within)])
    farthest = float(between.max(initial=0.0))
    if farthest == 0:
        return 0.0, 1.0
    edges = np.unique([0.0, *np.quantile(between, np.linspace(0, 1, _BINS))[1:-1], farthest * (1 + 1e-9)])
    seen = np.histogram(between, edges)[0]
    alone = 1 - np.searchsorted(within, edges, side="right") / (len(within) + 1)
    near_by, usual = np.quantile(between, (0.02, 0.98)).tolist()
    most = min(farthest, 3 * usual) or farthest  # what strays tells of no step
    sigmas = np.geomspace(max(near_by / 3, 1e-6 * most), most, 120)
    reached = np.empty((len(sigmas), len(edges)))
    share_within(edges / sigmas[:, None], axes, reached)
    shares = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 1.0])[:, None, None]
    chance = np.maximum(-np.diff((1 - shares * reached) * alone), 1e-12)
    likelihood = (seen * np.log(chance / chance.sum(axis=-1, keepdims=True))).sum(axis=-1)
    sigma = int(np.argmax(likelihood)) % len(sigmas)
    # Where strangers are far it is that nobody is farther than the farthest that tells who is seen again.
    share = int(np.argmax((seen * np.log(chance[:, sigma])).sum(axis=-1)))
    return float(sigmas[sigma]), float(shares[share, 0, 0])


def motion_from(
    covariance: NDArray[np.float64],
    weight: NDArray[np.float64],
    noisy: NDArray[np.float64],
) -> Motion:
    r"""Fit a motion model to measured step covariances.

    For a persistence P the covariances are linear in the squared speed, diffusion and noise:

    .. math:: C_0 = S^2 g_0 + D^2 + 2 \sigma^2, \quad C_1 = S^2 g_1 - \sigma^2, \quad C_k = S^2 g_1 a^{k-1}

    so these follow from non-negative least squares. P is found by a grid search with parabolic interpolation,
    with and without diffusion. If persistence gives no significant improvement, the particles have none, and
    diffusion and noise are estimated from the first and last row alone.

    Parameters
    ----------
    covariance : (ROWS, axes) float64 array
        Mean product of two steps of a particle 0, 1, … frames apart; the last row is again 1 frame apart.
    weight : (ROWS,) float64 array
        Number of pairs of steps for each row.
    noisy : (ROWS,) float64 array
        Noise in each row relative to the formula; 1 unless steps were rescaled to a common scale.
    """
    lag = np.nonzero(weight[:LAGS] >= _LEAST)[0]
    if len(lag) < 2:
        return _walk_from(covariance, weight, noisy)
    variance, root = np.maximum(covariance[0], 1e-300), np.sqrt(weight[lag])[:, None]
    seen = covariance[lag] / variance * root

    def fitted(times: tuple[float, ...], used: list[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return _least_squares((_design(times, lag, noisy) * root)[..., used], seen)

    def likeliest(used: list[int]) -> tuple[float, float, NDArray[np.float64]]:
        """Residual squares, persistence, and components."""
        best = _first_of_least(fitted(_TIMES, used)[1])
        around = _TIMES[max(best - 1, 1)], _TIMES[min(best + 1, len(_TIMES) - 1)]
        times = tuple(np.geomspace(*around, 13).tolist())
        time, parts = _lowest(times, fitted(times, used)[1]), np.zeros((3, len(variance)))
        (parts[used],), (squares,) = fitted((time,), used)
        return float(squares), time, parts

    # Diffusion beside a velocity and noise is hard to tell from either: the longer that lasts, the more
    # clearly it must be needed.
    found, simpler = likeliest(_ALL), likeliest(_NO_DIFFUSION)
    if found[0] >= fitted((0.0,), _ALL)[1][0] - _CREDIBLE:
        return _walk_from(covariance, weight, noisy)
    needed = _CREDIBLE * np.clip((simpler[1] - _BRIEF) / (_LASTING - _BRIEF), 0, 1)
    _, time, parts = simpler if simpler[0] < found[0] + needed else found
    return _motion_of(parts, time, variance)


def _first_of_least(squares: NDArray[np.float64]) -> int:
    """Index of the first minimum up to rounding: with few covariances, many persistences fit exactly.

    Examples
    --------
    >>> _first_of_least(np.array([3.0, 1e-28, 2e-29, 1e-28]))
    1
    """
    return int(np.argmax(squares <= squares.min() + _SAME))


def _lowest(times: tuple[float, ...], squares: NDArray[np.float64]) -> float:
    """Minimum of squares given at times with evenly spaced logarithms, by a parabola.

    Examples
    --------
    >>> times = tuple(np.geomspace(1, 4, 5).tolist())
    >>> round(_lowest(times, np.square(np.log(times) - np.log(2.2))), 3)
    2.2
    """
    best = _first_of_least(squares)
    if best in {0, len(times) - 1}:
        return times[best]
    left, here, right = squares[best - 1 : best + 2].tolist()
    off = (left - right) / (2 * (left - 2 * here + right))
    return float(times[best] * (times[1] / times[0]) ** off)


def _walk_from(
    covariance: NDArray[np.float64], weight: NDArray[np.float64], noisy: NDArray[np.float64]
) -> Motion:
    """Motion without persistence: diffusion, and noise if there are enough pairs."""
    if weight[LAGS] < _LEAST:
        return Motion.static(tuple(np.sqrt(covariance[0]).tolist()))
    variance, root = np.maximum(covariance[0], 1e-300), np.sqrt(weight[[0, LAGS]])[:, None]
    seen = covariance[[0, LAGS]] / variance
    design = _design((0.0,), np.arange(2), noisy[[0, LAGS]])
    return _motion_of(_least_squares(design * root, seen * root)[0][0], 0.0, variance)


def _motion_of(parts: NDArray[np.float64], time: float, variance: NDArray[np.float64]) -> Motion:
    """Motion from the components (3, axes) of the variance: velocity, diffusion and noise."""
    speed, diffusion, noise = np.sqrt(parts * variance)
    return Motion(tuple(diffusion.tolist()), tuple(speed.tolist()), time, tuple(noise.tolist()))


def _design(
    times: tuple[float, ...], lag: NDArray[np.int64], noisy: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(times, lags, 3) step covariances per unit of squared speed, diffusion and noise."""
    along = _remembered(times)[:, lag]
    once = np.broadcast_to(np.where(lag == 0, 1.0, 0.0), along.shape)
    twice = np.broadcast_to(np.where(lag == 0, 2.0, np.where(lag == 1, -1.0, 0.0)), along.shape)
    return np.stack([along, once, noisy[lag] * twice], axis=-1)


@lru_cache(64)
def _remembered(times: tuple[float, ...]) -> NDArray[np.float64]:
    """(times, LAGS) covariances of steps, by persistence time, of a walk whose velocity has variance 1."""
    found = np.empty((len(times), LAGS))
    for covariance, time in zip(found, times, strict=True):
        motion = Motion((0.0,), (1.0,), time, (0.0,))
        kept = motion.transition(1)[0, 1]
        covariance[0] = motion.step_covariance(0)[0]
        covariance[1:] = motion.step_covariance(1)[0] * kept ** np.arange(LAGS - 1)
    return found


def _least_squares(
    design: NDArray[np.float64], seen: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Non-negative least squares for many designs: solutions (T, K, A) and residual squares (T,).

    design (T, L, K), seen (L, A).
    """
    from .estimates_cpu import least_squares

    count, _, unknowns = design.shape
    best, least = np.empty((count, unknowns, seen.shape[1])), np.empty((count, seen.shape[1]))
    least_squares(np.ascontiguousarray(design), seen, best, least)
    return best, least.sum(axis=1)
