"""Conditions of several movies: a movie is the unit of replication; and conditions compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.special import erfc
from scipy.stats import t as student
from scipy.stats import ttest_ind

from .edge import LEVELS
from .groups import Estimate

_MOVIES, _TRACKS = "Welch's t test of movies", "bootstrap over tracks"
_COLUMNS = (
    "quantity", "group", "other", "value", "other_value", "difference", "difference_error", "low_95",
    "high_95", "movies", "other_movies", "p", "p_of_tracks", "test",
)  # fmt: skip


def over_movies(movies: Sequence[Estimate], together: Estimate) -> Estimate:
    """The mean over the movies of a condition, with the standard error of that mean.

    Every movie counts alike, whatever the number of its tracks. Of a single movie, its own estimate. Limits
    of a value that is not below 0 are those of Student's t.

    Parameters
    ----------
    movies : sequence of Estimate
    together : Estimate
        That of all tracks of the condition.
    """
    known = [one for one in movies if np.isfinite(one.value)]
    if len(known) < 2:
        return together
    values = np.array([one.value for one in known])
    within = float(np.sqrt(np.nanmean([one.error**2 for one in known])))
    mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    limits = together.limits
    if np.isfinite(limits[0]):
        reach = error * student.ppf(0.5 + np.repeat(LEVELS, 2) / 2, len(values) - 1)
        limits = np.maximum(mean + np.array([-1, 1, -1, 1]) * reach, 0.0)
    return replace(together, value=mean, error=error, movies=values, within=within, limits=limits)


def compared(groups: Mapping[str, Mapping[str, Estimate]]) -> dict[str, list]:
    """Differences between all pairs of groups: value, standard error, 95 % interval, two-sided p.

    Between conditions of several movies each, by Welch's t test of the means of movies. A condition of one
    movie has no p: its interval comes from tracks, as does `p_of_tracks`, which takes them as independent.
    """
    rows: dict[str, list] = {name: [] for name in _COLUMNS}
    for (one, first), (two, second) in combinations(groups.items(), 2):
        for name in first:
            row = _difference(first[name], second[name])
            if row is not None:
                for column, cell in zip(rows.values(), (name, one, two, *row), strict=True):
                    column.append(cell)
    return rows


def _difference(a: Estimate, b: Estimate) -> tuple[object, ...] | None:
    """The cells of a row behind its names; None if nothing can be compared."""
    apart = b.samples - a.samples
    apart, by = apart[np.isfinite(apart)], b.value - a.value
    counts = max(len(a.movies), 1), max(len(b.movies), 1)
    if not np.isfinite(by):
        return None
    if min(counts) > 1:
        test = ttest_ind(b.movies, a.movies, equal_var=False)
        error = float(np.hypot(a.error, b.error))
        ends = map(float, test.confidence_interval(0.95))
        return a.value, b.value, by, error, *ends, *counts, float(test.pvalue), np.nan, _MOVIES
    if len(apart) < 2:
        return None
    error = float(apart.std(ddof=1))
    p = float(erfc(abs(by) / (error * np.sqrt(2)))) if error > 0 else np.nan
    ends = map(float, np.quantile(apart, [0.025, 0.975]))
    return a.value, b.value, by, error, *ends, *counts, np.nan, p, _TRACKS
