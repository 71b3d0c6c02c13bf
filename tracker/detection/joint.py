"""Joint fit of all spots of a frame in the response of a whitened matched filter.

The response at the places x_i of the candidates is Σ_j κ(x_i - x_j) A_j, κ the response to one spot. Their
amplitudes A >= 0 are fitted together, the maxima of what is left join them, and the weakest of neighbours
leave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse
from scipy.spatial import cKDTree
from scipy.special import ndtr

from .joint_cpu import between, mean_depths, sweep, widening
from .position_cpu import AMPLITUDE, X, render
from .response import local_maxima
from .spectrum import Filter, Transform
from .stabilise import Ground

_ROUNDS = 12  # in which candidates join, at most
_MORE = 0.01  # share of candidates that are new, below which the rounds end
_BELOW = 2.0  # standard deviations below 0 where the spread of noise is read
_PRIOR = 2.0  # maxima above that height that a spread of 1 counts for
_SAMPLED_PEAK = 0.75  # of a maximum between voxels, at least, that a voxel has
_SAMPLED = 250_000  # voxels of which a quantile is taken
_WEAKEST = 8  # times that the weakest of neighbours leave in a round
_SWEEPS = 30  # of Gauss-Seidel
_FALSE = 0.5  # share of noise among the candidates; the last one that is kept has .4
_PROFILE = 0.1  # by which share of its light a spot may differ from the profile, a prior
_NEIGHBOURS, _OVERLAP, _RIDGE = 10, 0.1, 0.02  # that widen an error; least overlap; of their matrix
_WINDOW = 4.0  # widths of the window of a local spread
_EVERYWHERE = 0.5  # weight of the spread of all beside it
_LEAST = 0.85  # of the spread of all: in a window less is chance
_FLOOR = 0.8  # of the computed spread: less is light that was taken out with candidates
_SAME = 0.33  # overlap of neighbours of which the weaker leaves
_REACH = 4.5  # widths to which light is drawn: 4e-5 of it is beyond
_SPARROW = 2.0  # widths at which two spots begin to have a maximum each
_STEP = 0.4  # widths that a place moves in a round
_MOST = 1.5  # of the largest response: no amplitude is more


@dataclass(frozen=True, eq=False)
class Candidates:
    """Places where spots may be.

    Parameters
    ----------
    place : (n, 3) float64 array
        In voxels.
    amplitude, error : (n,) float64 array
        Response and its standard error beside all others.
    """

    place: NDArray[np.float64]
    amplitude: NDArray[np.float64]
    error: NDArray[np.float64]

    @property
    def significance(self) -> NDArray[np.float64]:
        """(n,): amplitudes over their errors."""
        return self.amplitude / self.error

    def of(self, rows: NDArray[np.bool_]) -> Candidates:
        """Some of them."""
        return Candidates(self.place[rows], self.amplitude[rows], self.error[rows])

    @staticmethod
    def none() -> Candidates:
        """No candidates."""
        return Candidates(np.empty((0, 3)), np.empty(0), np.empty(0))


def spread_of(values: NDArray, filter_: Filter) -> float:
    """Standard deviation of noise, from the quantile two of them below 0, where no spot is; 1 a priori."""
    part = values.ravel()[:: max(1, values.size // _SAMPLED)]
    measured, maxima = -float(np.quantile(part, ndtr(-_BELOW))) / _BELOW, float(filter_.maxima.above(_BELOW))
    return max(float(np.sqrt((maxima * measured**2 + _PRIOR) / (maxima + _PRIOR))), 1e-9)


class Spread(NamedTuple):
    """Spread of noise around each place, in blocks.

    Parameters
    ----------
    blocks : (Z, Y, X) float64 array
    size : (3,) int64 array
        Voxels of a block.
    """

    blocks: NDArray[np.float64]
    size: NDArray[np.int64]

    def at(self, place: NDArray) -> NDArray[np.float64]:
        """(n,): linear between the middles of blocks."""
        return _at(self.blocks, (place - (self.size - 1) / 2) / self.size)

    def maxima(
        self, values: NDArray[np.float32], least: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Places (n, 3) and heights (n,) of the maxima that stand out by so many times their spread."""
        voxel = local_maxima(values, _SAMPLED_PEAK * least * float(self.blocks.min()))
        place, height = vertices(values, voxel)
        height /= self.at(place)
        return place[height > least], height[height > least]


def spread_around(values: NDArray[np.float32], filter_: Filter) -> Spread:
    """Spread of noise by the negative side of a response: two blocks a standard deviation of the window."""
    whole = spread_of(values, filter_)
    size = np.maximum(1, np.rint(_WINDOW / 2 * filter_.sigma)).astype(np.int64)
    depth = mean_depths(values, size) * np.sqrt(2 * np.pi)  # the spread
    near = ndimage.gaussian_filter(depth, _WINDOW * filter_.sigma / size, mode="reflect")
    least = max(_LEAST * whole, _FLOOR)
    return Spread(np.maximum((near + _EVERYWHERE * whole) / (1 + _EVERYWHERE), least), size)


def spots_of(
    shape: tuple[int, ...],
    place: NDArray[np.float64],
    height: NDArray[np.float64],
    sigma: NDArray[np.float64],
) -> NDArray[np.float32]:
    """The light of spots of one width in a frame."""
    spots = np.zeros((len(place), 7))
    spots[:, : X + 1], spots[:, AMPLITUDE] = place, height
    return render(shape, spots, sigma, _REACH)


def light_of(ground: Ground, seen: Candidates, filter_: Filter) -> NDArray[np.float32]:
    """By how much spots stand out of this ground, in units of the camera's noise."""
    at = tuple(np.rint(seen.place).astype(int).T)
    height = ground.peaks(at, seen.amplitude / filter_.scale)
    return ground.under(spots_of(ground.values.shape, seen.place, height, filter_.sigma))


def vertices(
    values: NDArray[np.float32], voxel: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places (n, 3) and heights (n,) of maxima between voxels, by a parabola along each axis."""
    place, top = voxel.astype(np.float64), values[tuple(voxel.T)].astype(np.float64)
    height = top.copy()
    for axis, size in enumerate(values.shape):
        if size < 3:
            continue
        low, high = voxel.copy(), voxel.copy()
        low[:, axis] = np.maximum(voxel[:, axis] - 1, 0)
        high[:, axis] = np.minimum(voxel[:, axis] + 1, size - 1)
        below, above = (values[tuple(v.T)].astype(np.float64) for v in (low, high))
        shift = np.clip((above - below) / np.maximum(2 * (2 * top - below - above), 1e-9), -0.5, 0.5)
        place[:, axis] = np.clip(place[:, axis] + shift, 0, size - 1)
        height += shift * (above - below) / 4
    return place, height


def _at(values: NDArray, place: NDArray[np.float64]) -> NDArray[np.float64]:
    return ndimage.map_coordinates(values, place.T, order=1, mode="nearest", output=np.float64)


def _overlap(place: NDArray[np.float64], filter_: Filter) -> sparse.csr_matrix:
    """Responses of spots to each other, of a single one 1."""
    kernel, half = filter_.kernel
    pairs = cKDTree(place / (half + 0.999)).query_pairs(1.0, p=np.inf, output_type="ndarray")
    value = between(kernel, place[pairs[:, 0]] - place[pairs[:, 1]] + half) if len(pairs) else np.empty(0)
    n = len(place)
    row = np.concatenate([pairs[:, 0], pairs[:, 1], np.arange(n)])
    column = np.concatenate([pairs[:, 1], pairs[:, 0], np.arange(n)])
    return sparse.csr_matrix((np.concatenate([value, value, np.ones(n)]), (row, column)), shape=(n, n))


def _weaker(overlap: sparse.csr_matrix, u: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,): which have no weaker neighbour."""
    pairs = overlap.tocoo()
    near = (pairs.data > _SAME) & (pairs.row != pairs.col)
    least = np.full(len(u), np.inf)
    np.minimum.at(least, pairs.row[near], u[pairs.col[near]])
    return u <= least


def _fitted(
    place: NDArray, before: Candidates, rest: NDArray, filter_: Filter, noise: Spread, least: float
) -> Candidates:
    """Amplitudes of candidates beside each other; the weakest of neighbours leave until all stand out.

    A Gauss-Newton step from the candidates `before`, whose light is taken out of the response.
    """
    n = len(place)
    overlap = _overlap(np.concatenate([place, before.place]), filter_)
    seen = between(rest, place) + overlap[:n, n:] @ before.amplitude
    overlap, amplitude = overlap[:n, :n], np.maximum(seen, 0)
    for turn in range(_WEAKEST):
        most = _MOST * float(seen.max(initial=0.0))
        sweep(overlap.indptr, overlap.indices, overlap.data, seen, amplitude, most, _SWEEPS)
        others = abs(overlap) @ amplitude - amplitude
        wide = widening(overlap.indptr, overlap.indices, overlap.data, _NEIGHBOURS, _OVERLAP, _RIDGE)
        wall = np.broadcast_to(filter_.wall, rest.shape)[tuple(np.rint(place).astype(int).T)]
        error = wide * np.sqrt((wall * noise.at(place)) ** 2 + (_PROFILE * others) ** 2)
        u = amplitude / error
        drop = (u < least) & _weaker(overlap, u)
        if not drop.any() or drop.all() or turn == _WEAKEST - 1:
            break
        place, seen, amplitude = place[~drop], seen[~drop], amplitude[~drop]
        overlap = overlap[~drop][:, ~drop]
    return Candidates(place, amplitude, error)


def _moved(seen: Candidates, rest: NDArray[np.float32], filter_: Filter) -> NDArray[np.float64]:
    """Places after a Newton step up the slope of what is left: a spot that is displaced leaves a dipole."""
    place = seen.place.copy()
    for axis, size in enumerate(rest.shape):
        if size < 3 or filter_.curvature[axis] <= 0:
            continue
        step = np.zeros(3)
        step[axis] = 0.5
        slope = _at(rest, seen.place + step) - _at(rest, seen.place - step)
        limit = _STEP * float(filter_.sigma[axis])
        shift = slope / np.maximum(seen.amplitude, 1.0) / filter_.curvature[axis]
        place[:, axis] = np.clip(place[:, axis] + np.clip(shift, -limit, limit), 0, size - 1)
    return place


def resolved(seen: Candidates, sigma: NDArray[np.float64], sure: NDArray[np.bool_] | bool) -> Candidates:
    """Without the dimmer of spots nearer than the Sparrow limit, unless sure: it may be part of one."""
    pairs = cKDTree(seen.place / np.where(sigma > 0, sigma, 1)).query_pairs(_SPARROW, output_type="ndarray")
    first = seen.amplitude[pairs[:, 0]] < seen.amplitude[pairs[:, 1]]
    dimmer = np.isin(np.arange(len(seen.place)), np.where(first, pairs[:, 0], pairs[:, 1]))
    return seen.of(~dimmer | sure)


def fit_together(
    values: NDArray[np.float32], ground: Ground, filter_: Filter, how: Transform, start: Candidates
) -> tuple[Candidates, tuple[NDArray[np.float32], Spread], float]:
    """Candidates beside all others, what is left and its spread, and the least significance.

    values: (Z, Y, X) f4, a frame in units of its camera's noise; ground: its light without spots; start: the
    candidates of the pass before, with which the rounds begin.
    """

    def left(without: Candidates) -> NDArray[np.float32]:
        return filter_.respond(how.forward(values - light_of(ground, without, filter_)), how)

    def around(sure: NDArray[np.bool_]) -> tuple[NDArray[np.float32], Spread]:
        """What is left without the sure ones, and its spread: fitted noise would take noise away."""
        plain = (rest if sure.all() else left(seen.of(sure))) / filter_.wall
        return plain, spread_around(plain, filter_)

    seen = resolved(start, filter_.sigma, sure=False)
    rest, sure = left(seen), np.ones(len(seen.place), bool)
    plain, noise = around(sure)
    for turn in range(_ROUNDS):
        least = filter_.least(max(1.0, _FALSE * float(sure.sum())))
        maxima, _ = noise.maxima(rest / filter_.wall, least)
        place = np.concatenate([_moved(seen, rest, filter_), maxima])
        if not len(place):
            break
        before, seen = len(seen.place), _fitted(place, seen, rest, filter_, noise, least)
        sure, rest = seen.significance > filter_.least(), left(seen)
        (plain, now), was = around(sure), noise.at(seen.place)
        seen, noise = replace(seen, error=seen.error * now.at(seen.place) / was), now
        if turn and len(seen.place) - before <= _MORE * before:
            break
    return seen, (plain, noise), least
