"""Motion of many tracks together: maximum likelihood, and how much each track contributes to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import minimize

from .likelihood import BLUR, Floats, Motion, Pieces, Sums, squares_and_logdets, whitening

_MOST = 60.0
"""Largest ρ: less than a hundredth of the steps is motion."""
_STARTS = 6
"""Points of the coarse grid, of the parameter and of ρ each, from the best of which the search starts."""
_STEP = 1e-3
"""Step of numerical derivatives; of the order of a tenth of the error of a million steps."""


@dataclass(frozen=True, eq=False)
class Pooled:
    """Maximum likelihood of a motion that many tracks share.

    Parameters
    ----------
    motion : Motion
    parameter : float
        Of the family of motions.
    log_likelihood : float
        At its maximum, but for a term that is the same for every motion.
    scale : (A,) float64 array
        s, the mean square step along each axis, without localisation error.
    ratio : (A,) float64 array
        ρ of each axis.
    influence : (T, 1 + A) float64 array
        First-order change of the parameter, and of log s of each axis, by the weight of each track: the sum
        over a bootstrap sample, or another draw of links, is the change of the estimate.
    """

    motion: Motion
    parameter: float
    log_likelihood: float
    scale: Floats
    ratio: Floats
    influence: Floats

    def displacement(self, intervals: Floats) -> Floats:
        """Mean square displacement after some intervals, with the localisation error of both ends."""
        after = self.motion.displacement(intervals, self.parameter)
        one = self.motion.displacement(np.ones(1), self.parameter)[0]
        return np.asarray(self.scale.sum() * after / one + 2 * (self.scale * self.ratio).sum())


def pooled(pieces: Pieces, weight: Floats, motion: Motion, fixed: float | None = None) -> Pooled | None:
    """Fit a motion to tracks with the weights (T,); None if there are too few steps.

    Parameters
    ----------
    pieces : Pieces
    weight : (T,) float64 array
    motion : Motion
    fixed : float, optional
        The parameter, if it is not estimated.
    """
    sums, axes = Sums.of(pieces, weight), pieces.step.shape[2]
    still = not (np.trace(sums.moment[:, 0], axis1=1, axis2=2) > 0).all()
    if still or sums.longer.sum() < 4 or len(sums.longer) < 2:
        return None
    steps = float(sums.longer.sum())

    def cost(values: Floats) -> float:
        """Minus the log-likelihood at its best s."""
        parameter, total = (values[-1] if fixed is None else fixed), 0.0
        for axis, ratio in enumerate(_ratio(values[:axes])):
            white = whitening(motion, parameter, ratio, len(sums.longer))
            if white is None:
                return np.inf
            square, logdet = sums.square_and_logdet(white, axis)
            total += 0.5 * (steps * np.log(square / steps) + logdet)
        return float(total)

    ends = [(float(_log(-BLUR)), float(_log(_MOST)))] * axes
    inner = [float(_log(ratio)) for ratio in np.geomspace(0.01, 3, _STARTS)]
    options: list[list[float]] = [[]]
    if fixed is None:
        ends.append((motion.low, motion.high))
        options = [[value] for value in np.linspace(motion.low, motion.high, _STARTS + 2)[1:-1]]
    starts = [np.array([ratio] * axes + option) for ratio, option in product(inner, options)]
    first = min(starts, key=cost)
    found = minimize(
        cost, first, method="Nelder-Mead", bounds=ends,
        options={"xatol": 1e-4, "fatol": 1e-4, "initial_simplex": _simplex(first, ends), "maxiter": 2000},
    )  # fmt: skip
    parameter = float(found.x[-1]) if fixed is None else fixed
    ratio = _ratio(found.x[:axes])
    scale = np.empty(axes)
    for axis in range(axes):
        white = whitening(motion, parameter, ratio[axis], len(sums.longer))
        assert white is not None  # the search was there
        scale[axis] = sums.square_and_logdet(white, axis)[0] / steps
    free = np.array([low + 1e-3 < at < high - 1e-3 for at, (low, high) in zip(found.x, ends, strict=True)])
    influence = _influence(pieces, weight, motion, (parameter, scale, ratio), free)
    return Pooled(motion, parameter, -float(found.fun), scale, ratio, influence)


def _influence(
    pieces: Pieces, weight: Floats, motion: Motion, at: tuple[float, Floats, Floats], free: np.ndarray
) -> Floats:
    """The scores of all tracks times the inverse of the information, for the parameter and log s."""
    parameter, scale, ratio = at
    axes = len(scale)
    values = np.concatenate([[parameter], np.log(scale), _log(ratio)])
    moving = np.concatenate([free[axes:] if len(free) > axes else [False], np.ones(axes, bool), free[:axes]])
    steps = pieces.steps_of()

    def likelihood(where: Floats) -> Floats:
        total = np.zeros(pieces.count)
        for axis in range(axes):
            white = whitening(motion, where[0], float(_ratio(where[1 + axes + axis])), len(pieces.step))
            if white is None:
                return np.full(pieces.count, np.nan)
            square, logdet = squares_and_logdets(white, pieces, axis)
            size = where[1 + axis]
            total -= 0.5 * (square / np.exp(size) + steps * size + logdet)
        return total

    def difference(of: Callable[[Floats], Floats], where: Floats, k: int) -> Floats:
        aside = np.where(np.arange(len(where)) == k, _STEP, 0.0)
        return of(where + aside) - of(where - aside)

    def scores(where: Floats) -> Floats:
        found = np.zeros((pieces.count, len(where)))
        for k in np.flatnonzero(moving).tolist():
            found[:, k] = difference(likelihood, where, k) / (2 * _STEP)
        return found

    own, information = scores(values), np.zeros((len(values), len(values)))
    for k in np.flatnonzero(moving).tolist():
        information[k] = -(weight @ difference(scores, values, k)) / (2 * _STEP)
    some = np.ix_(moving, moving)
    result = np.zeros(own.shape)
    if np.isfinite(information[some]).all():
        symmetric = (information[some] + information[some].T) / 2
        result[:, moving] = own[:, moving] @ np.linalg.pinv(symmetric)
    return result[:, : 1 + axes]


def _ratio(values: Floats) -> Floats:
    return np.asarray(np.exp(values) - 0.25)


def _log(ratio: Floats | float) -> Floats:
    return np.asarray(np.log(np.asarray(ratio) + 0.25))


def _simplex(first: Floats, ends: list[tuple[float, float]]) -> Floats:
    """First simplex of the search: a twelfth of the range along each direction, inwards."""
    corners = [first]
    for k, (low, high) in enumerate(ends):
        corner = first.copy()
        way = (high - low) / 12
        corner[k] += way if first[k] + way < high else -way
        corners.append(corner)
    return np.array(corners)
