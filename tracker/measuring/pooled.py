"""Motion of many tracks together: maximum likelihood, and how much each track contributes to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from .likelihood import BLUR, Floats, Motion, Pieces, Sums, squares_and_logdets, whitening

_MOST = 60.0
"""Largest ρ: less than a hundredth of the steps is motion."""
_GRID = 10
"""Values of the parameter over its range; the search lies between the neighbours of the best one."""
_END = 1e-3
"""Guard: distance of a parameter from the end of its range below which it is taken to be there."""
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
    error : float
        Standard error of the parameter by the likelihood; NaN at an end of its range, or if it is fixed.
    """

    motion: Motion
    parameter: float
    log_likelihood: float
    scale: Floats
    ratio: Floats
    influence: Floats
    error: float

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
    sums = Sums.of(pieces, weight)
    still = not (np.trace(sums.moment[:, 0], axis1=1, axis2=2) > 0).all()
    if still or sums.longer.sum() < 4 or len(sums.longer) < 2:
        return None
    if fixed is None:
        grid = np.linspace(motion.low, motion.high, _GRID)
        best = int(np.argmax([profile(sums, motion, value)[0] for value in grid]))
        ends = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, _GRID - 1)])
        found = minimize_scalar(
            lambda value: -profile(sums, motion, value)[0], bounds=ends, method="bounded",
            options={"xatol": 1e-4},
        )  # fmt: skip
        parameter = float(found.x)
    else:
        parameter = fixed
    likelihood, ratio, scale = profile(sums, motion, parameter)
    free = np.concatenate([
        [fixed is None and motion.low + _END < parameter < motion.high - _END],
        (_log(-BLUR) + _END < _log(ratio)) & (_log(ratio) < _log(_MOST) - _END),
    ])  # fmt: skip
    influence, error = _influence(pieces, weight, motion, (parameter, scale, ratio), free)
    return Pooled(motion, parameter, likelihood, scale, ratio, influence, error)


def profile(sums: Sums, motion: Motion, parameter: float) -> tuple[float, Floats, Floats]:
    """The log-likelihood of a parameter at the best ρ and s of each axis; and these, (A,) each."""
    steps, ends = float(sums.longer.sum()), (float(_log(-BLUR)), float(_log(_MOST)))

    def size_and_cost(value: float, axis: int) -> tuple[float, float]:
        white = whitening(motion, parameter, float(_ratio(value)), len(sums.longer))
        if white is None:
            return np.nan, np.inf
        square, logdet = sums.square_and_logdet(white, axis)
        return square / steps, 0.5 * (steps * np.log(square / steps) + logdet)

    likelihood, ratio, scale = 0.0, [], []
    for axis in range(len(sums.moment)):
        found = minimize_scalar(
            lambda value, axis=axis: size_and_cost(value, axis)[1], bounds=ends, method="bounded",
            options={"xatol": 1e-4},
        )  # fmt: skip
        size, cost = size_and_cost(found.x, axis)
        likelihood -= cost
        ratio.append(float(_ratio(found.x)))
        scale.append(size)
    return likelihood, np.array(ratio), np.array(scale)


def _influence(
    pieces: Pieces, weight: Floats, motion: Motion, at: tuple[float, Floats, Floats], free: np.ndarray
) -> tuple[Floats, float]:
    """Scores of all tracks times the inverse of the information, for the parameter and log s; its error."""
    parameter, scale, ratio = at
    axes = len(scale)
    values = np.concatenate([[parameter], np.log(scale), _log(ratio)])
    moving = np.concatenate([free[:1], np.ones(axes, bool), free[1:]])
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
    result, error = np.zeros(own.shape), np.nan
    if np.isfinite(information[some]).all():
        inverse = np.linalg.pinv((information[some] + information[some].T) / 2)
        result[:, moving] = own[:, moving] @ inverse
        error = float(np.sqrt(inverse[0, 0])) if inverse[0, 0] > 0 else np.nan
    return result[:, : 1 + axes], error


def _ratio(values: Floats | float) -> Floats:
    return np.asarray(np.exp(values) - 0.25)


def _log(ratio: Floats | float) -> Floats:
    return np.asarray(np.log(np.asarray(ratio) + 0.25))
