"""The model in the terms of `refine`, with one motion in place of the classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..model import Model
from ..motion import Motion
from ..refine.linking import LinkModel

LEAST_RATE = 1e-6
"""Guard: least rate, because rates of a `LinkModel` must be between 0 and 1."""
_SHORT = 0.5
"""Error level: persistence in frames below which there is no velocity."""


def ornstein_uhlenbeck(
    moved: NDArray[np.float64], kept: tuple[float, float], noise: tuple[float, ...]
) -> Motion:
    """The motion with step variances (A,) and step correlations at lags 1 and 2."""
    lasting = min(kept[1] / kept[0], 1 - LEAST_RATE) if kept[0] > 0 else 0.0
    if lasting <= np.exp(-1 / _SHORT):
        return Motion.static(tuple(np.sqrt(moved).tolist()), noise)
    time = -1 / float(np.log(lasting))
    unit = float(Motion((0.0,), (1.0,), time, (0.0,)).step_variance(1)[0])
    speed2 = np.minimum(moved * kept[0] / (time * (1 - lasting)) ** 2, moved / unit)
    diffusion = np.sqrt(np.maximum(moved - speed2 * unit, 0.0))
    return Motion(tuple(diffusion.tolist()), tuple(np.sqrt(speed2).tolist()), time, noise)


def link_model(model: Model, motion: Motion, gate: tuple[float, ...]) -> LinkModel:
    """The rates of a model, with a motion and a gate."""
    rates = model.association
    real = 1 - rates.clutter
    end, start = (
        float(np.clip(1 - real * delay.sum(), LEAST_RATE, 1 - LEAST_RATE))
        for delay in (rates.delay, rates.delay_back)
    )
    clutter = min(rates.clutter, (1 - LEAST_RATE) * min(end, start))
    follow = real * rates.delay
    follow *= (1 - end) / max(float(follow.sum()), 1 - end)
    return LinkModel(motion, tuple(follow.tolist()), end, start, gate, clutter=clutter)
