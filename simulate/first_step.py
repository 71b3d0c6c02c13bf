"""First step: step length, share detected again and drift, from nearest neighbours, before any linking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from outbid.compute.threads import computing
from outbid.geometry.neighbours import nearest
from outbid.learned.learn.registration import frame_shifts

_SAMPLE, _SHARE = 10_000, 16
"""Guards: detections whose neighbours are searched in all, and least number of them in each frame."""
_BINS = 60
"""Guard: bins of the distances, of equal counts."""
_STEPS, _SHARES = 120, (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
"""Guards: number of step lengths that are compared, and the shares detected again."""


@dataclass(frozen=True, eq=False)
class NearestDistances:
    """Distances from the detections of some frames to their nearest neighbours.

    Parameters
    ----------
    rows, frame : (M,) increasing and non-decreasing int64 arrays
        The detections, and the frame of each.
    between, within : (M,) float64 arrays
        Distance to the nearest detection in the next frame, and to the nearest other one in the same frame;
        inf if there is none.
    """

    rows: NDArray[np.int64]
    frame: NDArray[np.int64]
    between: NDArray[np.float64]
    within: NDArray[np.float64]

    @classmethod
    def of(
        cls, position: NDArray[np.float64], frame_start: NDArray[np.int64], *, workers: int = 1
    ) -> NearestDistances:
        """The distances of a random sample of equal size in each frame.

        Parameters
        ----------
        position : (N, A) float64 array
        frame_start : (F + 1,) int64 array
        workers : int
            Threads; they do not change the result.
        """
        size = np.diff(frame_start)
        usable = np.flatnonzero((size[:-1] > 1) & (size[1:] > 1))
        share = max(_SAMPLE // max(len(usable), 1), _SHARE)
        rng, empty = np.random.default_rng(0), np.empty(0, np.int64)
        drawn = [np.sort(rng.permutation(size[f])[:share]) + frame_start[f] for f in usable.tolist()]
        rows = np.concatenate([empty, *drawn])
        frame = np.repeat(usable, [len(part) for part in drawn]).astype(np.int64)
        with computing(workers):
            _, between = nearest(position, frame_start, rows, 1, offset=1)
            _, within = nearest(position, frame_start, rows, 1)
        return cls(rows, frame, np.sqrt(between[:, 0]), np.sqrt(within[:, 0]))

    @property
    def spacing(self) -> float:
        """Median distance to the nearest neighbour; 0 if there are no neighbours."""
        within = self.within[np.isfinite(self.within)]
        return float(np.median(within)) if len(within) else 0.0


def drift_of(
    position: NDArray[np.float64], frame_start: NDArray[np.int64], near: NearestDistances
) -> NDArray[np.float64] | None:
    """(F, A) offset of each frame relative to the first one; None if no frame moves significantly.

    Examples
    --------
    >>> place = np.random.default_rng(0).uniform(0, 9, (300, 3))
    >>> both, start = np.concatenate([place, place + [0, 0, 2.5]]), np.array([0, 300, 600])
    >>> drift_of(both, start, NearestDistances.of(both, start))[1].round(1) + 0.0
    array([0. , 0. , 2.5])
    """
    if not near.spacing > 0:
        return None
    ahead = frame_shifts(position / near.spacing, frame_start) * near.spacing
    if not ahead.any():
        return None
    # Registration is as exact as its grid: the median of the residual refines it.
    expected = position + np.repeat(ahead, np.diff(frame_start), axis=0)
    for f in np.flatnonzero(ahead.any(axis=1)).tolist():
        here, there = near.rows[near.frame == f], slice(*frame_start[f + 1 : f + 3].tolist())
        both, start = np.concatenate([expected[here], position[there]]), np.array([0, len(here)])
        found, _ = nearest(both, np.append(start, len(both)), np.arange(len(here)), 1, offset=1)
        ahead[f] += np.median(both[found[:, 0]] - both[: len(here)], axis=0) if len(here) else 0.0
    return np.cumsum(ahead, axis=0) - ahead


def first_step(near: NearestDistances, axes: int) -> tuple[float, float]:
    r"""Standard deviation of a step along an axis, and share detected again.

    The distance from a particle to the nearest detection in the next frame is the smaller of its own step and
    the distance to another particle. Let A be the survival function of the latter, estimated from nearest
    neighbours within frames, and q the share of particles that are detected again. Then

    .. math:: P(R > r) = [1 - q F_\sigma(r)] A(r)

    where F is the distribution function of the length of a Gaussian step. The maximum-likelihood σ and q are
    returned.

    Parameters
    ----------
    near : NearestDistances
    axes : int
        Number of axes.

    Returns
    -------
    float, float
        σ, 0 if there are no distances; q.
    """
    between, within = near.between, np.sort(near.within[np.isfinite(near.within)])
    farthest = float(between.max(initial=0.0))
    if farthest == 0:
        return 0.0, 1.0
    edges = np.unique([0.0, *np.quantile(between, np.linspace(0, 1, _BINS))[1:-1], farthest * (1 + 1e-9)])
    seen = np.histogram(between, edges)[0]
    others = 1 - np.searchsorted(within, edges, side="right") / (len(within) + 1)
    near_by, far = np.quantile(between, (0.02, 0.98)).tolist()
    most = min(farthest, 3 * far) or farthest  # outliers say nothing of steps
    sigmas = np.geomspace(max(near_by / 3, 1e-6 * most), most, _STEPS)
    reached = chi2.cdf(np.square(edges / sigmas[:, None]), axes)
    shares = np.array(_SHARES)[:, None, None]
    chance = np.maximum(-np.diff((1 - shares * reached) * others), 1e-12)
    likelihood = (seen * np.log(chance / chance.sum(axis=-1, keepdims=True))).sum(axis=-1)
    sigma = int(np.argmax(likelihood)) % len(sigmas)
    # That no particle is farther than the farthest step shows the share, where others are far.
    share = int(np.argmax((seen * np.log(chance[:, sigma])).sum(axis=-1)))
    return float(sigmas[sigma]), _SHARES[share]
