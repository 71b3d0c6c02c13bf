"""Motion of single tracks: maximum likelihood, given the localisation error of all tracks together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.interpolate import CubicSpline

from .likelihood import BLUR, Floats, Motion, Pieces, squares_and_logdets, whitening
from .pooled import Pooled

_SCALES = np.linspace(np.log(1e-3), np.log(30.0), 28)
"""Log of s of a track relative to that of all tracks; below it a track stands still."""
_COARSE = np.linspace(np.log(0.01), np.log(20.0), 22)
"""The same where another parameter is estimated."""
_POINTS = 20
"""Values of the parameter of a motion."""
_BLOCK = 1 << 14
"""Tracks that are fitted at a time: about 60 MB for their likelihoods."""
_FINE = 400
"""Points at which the spline through a likelihood is evaluated."""


def scales(pieces: Pieces, common: Pooled) -> tuple[Floats, Floats]:
    """Scale of the motion of each track relative to that of all, and its standard error; (T,) each.

    Parameters
    ----------
    pieces : Pieces
    common : Pooled
        The fit of a motion to all tracks, which gives its parameter and the localisation error.
    """

    def fit(block: Pieces) -> Floats:
        found = _likelihood(block, common, common.motion, np.array([common.parameter]), _SCALES)[:, 0]
        return _summary(found, _SCALES, block.steps_of() > 0)

    place, width, _ = _in_blocks(pieces, fit)
    return np.exp(place), np.exp(place) * width


def parameters(pieces: Pieces, common: Pooled, motion: Motion) -> tuple[Floats, Floats, Floats]:
    """Parameter of the motion of each track, its standard error, and what the lowest one loses; (T,) each.

    That is twice the log-likelihood lost. NaN below three steps.

    Parameters
    ----------
    pieces : Pieces
    common : Pooled
        The fit of the same family to all tracks.
    motion : Motion
    """
    grid = np.linspace(motion.low, motion.high, _POINTS)

    def fit(block: Pieces) -> Floats:
        found = _peak(_likelihood(block, common, motion, grid, _COARSE))
        return _summary(found, grid, block.steps_of() > 2)

    place, width, lost = _in_blocks(pieces, fit)
    return place, width, lost


def _in_blocks(pieces: Pieces, fit: Callable[[Pieces], Floats]) -> Floats:
    """Fit some tracks at a time, (3, T), so that the memory does not grow with their number."""
    found = np.full((3, pieces.count), np.nan)
    for first in range(0, pieces.count, _BLOCK):
        many = min(_BLOCK, pieces.count - first)
        some = (pieces.owner >= first) & (pieces.owner < first + many)
        if some.any():
            block = Pieces(pieces.step[:, some], pieces.length[some], pieces.owner[some] - first, many)
            found[:, first : first + many] = fit(block)
    return found


def _likelihood(pieces: Pieces, common: Pooled, motion: Motion, grid: Floats, size: Floats) -> Floats:
    """(T, G, S) log-likelihood of each track by parameter and log of relative scale."""
    steps, longest = pieces.steps_of(), len(pieces.step)
    found = np.zeros((pieces.count, len(grid), len(size)))
    for g, parameter in enumerate(grid):
        for s, relative in enumerate(size):
            for axis, (scale, ratio) in enumerate(zip(common.scale, common.ratio, strict=True)):
                own = max(float(ratio / np.exp(relative)), -BLUR)
                white = whitening(motion, float(parameter), own, longest)
                while white is None:  # less blur than diffusion allows
                    own = own / 2 if own < -1e-3 else own + 1e-3
                    white = whitening(motion, float(parameter), own, longest)
                square, logdet = squares_and_logdets(white, pieces, axis)
                whole = np.log(scale) + relative
                found[:, g, s] -= 0.5 * (square / np.exp(whole) + steps * whole + logdet)
    return found


def _peak(values: Floats) -> Floats:
    """The maximum along the last axis, a grid, by the parabola through the three points at the highest."""
    best = np.clip(np.argmax(values, axis=-1), 1, values.shape[-1] - 2)[..., None]
    low, middle, high = (np.take_along_axis(values, best + k, -1)[..., 0] for k in (-1, 0, 1))
    bend = np.minimum(low - 2 * middle + high, -1e-12)
    rise = np.where(middle >= np.maximum(low, high), -np.square(high - low) / (8 * bend), 0.0)
    return np.maximum(values.max(axis=-1), middle + rise)


def _summary(likelihood: Floats, grid: Floats, enough: np.ndarray) -> Floats:
    """(3, T) maximum, width of the likelihood as a distribution, and twice its drop at the low end."""
    found = np.full((3, len(likelihood)), np.nan)
    if not enough.any():
        return found
    fine = np.linspace(grid[0], grid[-1], _FINE)
    curve = CubicSpline(grid, likelihood[enough], axis=1)(fine)
    weight = np.exp(curve - curve.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    mean = weight @ fine
    width = np.sqrt((weight * np.square(fine - mean[:, None])).sum(axis=1))
    lost = 2 * (curve.max(axis=1) - curve[:, 0])
    found[:, enough] = fine[np.argmax(curve, axis=1)], width, lost
    return found
