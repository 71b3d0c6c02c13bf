"""Costs of links: their names, and what makes a gate or a periodic box valid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

from ..errors import SettingsError, refuse_unlike

COSTS = {"euclidean": 1, "squared": 2}
"""Exponent of the distance for each cost function."""


def check_costs(max_distance: float, cost: str, unmatched_cost: float | None) -> int:
    """The exponent of the distance for the name `cost`.

    Raises
    ------
    SettingsError
        As `match`.
    """
    if not isinstance(cost, str) or cost not in COSTS:
        raise SettingsError(f"There is no cost {cost!r}. Choose one of: {', '.join(COSTS)}.")
    refuse_unlike(Real, "a number", {"max_distance": max_distance, "unmatched_cost": unmatched_cost})
    if max_distance is None or math.isnan(max_distance) or max_distance < 0:
        raise SettingsError(f"max_distance is {max_distance}; it must be 0 or more.")
    if 0 < max_distance < 1e-140:
        raise SettingsError(f"max_distance is {max_distance}, whose square is no float. Choose another unit.")
    if unmatched_cost is not None:
        if not (math.isfinite(unmatched_cost) and unmatched_cost >= 0):
            raise SettingsError(f"unmatched_cost is {unmatched_cost}; it must be finite and 0 or more.")
        if unmatched_cost > 1000 * math.prod([max_distance] * COSTS[cost]):
            raise SettingsError(
                f"unmatched_cost is {unmatched_cost:g}, over 1000 times the cost at max_distance "
                f"{max_distance:g}; a larger one changes nothing. Lower it."
            )
    return COSTS[cost]


def check_box(box: tuple[float, ...], device: str) -> None:
    """Refuse a periodic box that makes no sense, or one on a GPU.

    Raises
    ------
    SettingsError
        The message says what is needed.
    """
    sizes = list(box) if isinstance(box, Sequence) else []
    if (
        len(sizes) != 3
        or not all(isinstance(size, Real) and 0 <= size < math.inf for size in sizes)
        or not any(sizes)
    ):
        raise SettingsError(f"periodic is {box}; it must be three sizes, 0 where not periodic.")
    if device == "gpu":
        raise SettingsError("In a periodic box the CPU links: use --device auto or cpu.")
