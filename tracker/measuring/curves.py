"""Curves of a group: mean square displacement with its fit, autocorrelation, distributions of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .groups import Estimate, Samples, distribution, lagged, ratio
from .likelihood import Floats
from .paths import steps_of, turns
from .pooled import Pooled
from .recording import Recording
from .surroundings import Neighbourhood

if TYPE_CHECKING:
    import pyarrow as pa

_MISSED = 4.0
"""Error level: standard errors by which a fit misses a point; of 32 points by chance in one movie of 500."""
_VISIBLE = 0.05
"""Guard: share of a value by which a fit misses it so that a plot shows it."""

Point = tuple[str, str, float, float, float, float, str, str]


def curves_of(
    movie: Recording, name: str, weights: Samples, fit: Pooled | None, near: Neighbourhood | None = None
) -> list[Point]:
    """Points of the curves of a group; the fit is that of the motion that explains its steps best."""
    scale = movie.scale
    square, product, pairs, products, *times = lagged(
        movie.position, movie.frame, movie.owner, movie.time, movie.lag, len(movie.group)
    )
    points: list[Point] = []

    def mean_time(sums: Floats, many: float) -> float:
        """Of all pairs at a lag, without the last digits, in which sums of times differ."""
        return float(f"{(weights.drawn @ sums).mean() / (many or 1.0):.12g}")

    def add(curve: str, at: float, one: Estimate, many: float, units: tuple[str, str]) -> None:
        if many > 0:
            points.append((name, curve, at, one.value, one.error, many, *units))

    for k, number in enumerate(pairs):
        units = scale.unit(0, 1), scale.unit(2, 0)
        many = float((weights.drawn @ number).mean())
        at = mean_time(times[0][k], many)
        add("msd", at, ratio(weights, square[k], number), many, units)
        if fit is not None:
            mean = float(fit.displacement(np.array(at / movie.interval)))
            add("msd_fit", at, Estimate.unknown(mean), many, units)
    for k, number in enumerate(products):
        many = float((weights.drawn @ number).mean())
        one, at = ratio(weights, product[k], number), mean_time(times[1][k], many)
        add("velocity_autocorrelation", at, one, many, (scale.unit(0, 1), scale.unit(2, -2)))
    begin = steps_of(movie.owner)
    begin = begin[movie.frame[begin + 1] - movie.frame[begin] == movie.lag]
    begun = np.flatnonzero(weights.drawn.sum(axis=0))
    begin = begin[np.isin(movie.owner[begin], begun)]
    length = np.linalg.norm(movie.position[begin + 1] - movie.position[begin], axis=1)
    speed = length / (movie.time[begin + 1] - movie.time[begin])
    angle, turning = turns(movie.position, movie.frame, movie.owner, movie.lag)
    of, some = movie.owner[begin], np.isin(turning, begun)
    for kind, values, owner, unit, top in (
        ("step", length, of, scale.unit(1, 0), None), ("speed", speed, of, scale.unit(1, -1), None),
        ("turning_angle", angle[some], turning[some], "deg", 180.0),
    ):  # fmt: skip
        for at, one, many in zip(*distribution(weights, values, owner, top), strict=True):
            add(f"{kind}_distribution", float(at), one, float(many), (unit, f"1/({unit})"))
    for at, one, many in () if near is None else near.correlation(weights):
        add("velocity_correlation", at, one, many, (scale.unit(1, 0), scale.unit(2, -2)))
    return points


def on_fit(points: list[Point]) -> list[str]:
    """A sentence for each group whose mean square displacement the drawn fit misses."""
    rows: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for name, curve, _, value, error, *_ in points:
        if curve in ("msd", "msd_fit"):
            rows.setdefault(name, {}).setdefault(curve, []).append((value, error))
    messages = []
    for name, both in rows.items():
        if "msd_fit" not in both:
            continue
        (value, error), fit = np.array(both["msd"]).T, np.array(both["msd_fit"])[:, 0]
        missed = (np.abs(fit - value) > _MISSED * error) & (np.abs(fit - value) > _VISIBLE * value)
        if missed.any():
            most = float(np.max(np.abs(fit / value - 1)[missed]))
            messages.append(
                f"The fit of group {name} misses the mean square displacement by up to {most:.0%}: no motion "
                "that is the same along all axes explains the steps. Measure some axes alone, as --axes yx."
            )
    return messages


def table_of_curves(points: list[Point]) -> pa.Table:
    """The table of curves, a row a point."""
    import pyarrow as pa

    names = ("group", "curve", "x", "value", "error", "count", "x_unit", "value_unit")
    kinds = [pa.string()] * 2 + [pa.float64()] * 4 + [pa.string()] * 2
    columns = zip(list(zip(*points, strict=True)) or [()] * len(names), kinds, strict=True)
    return pa.table([pa.array(column, kind, from_pandas=True) for column, kind in columns], names)
