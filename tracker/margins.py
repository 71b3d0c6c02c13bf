"""Exact margins of links: the increase of the total cost of the assignment without each link."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .assignment.exact_margins import exact_margins
from .divisions import Branches
from .refine.choose import best_of
from .refine.linking import Linking


def with_exact_margins(linking: Linking, branches: Branches, solver: str) -> Linking:
    """Compute exact margins of links in place of lower bounds; divisions and merges stay fixed.

    Parameters
    ----------
    linking : Linking
        The best links of its odds.
    branches : Branches
        Links beside those; who is in no other one is taken by them.
    solver : str
    """
    count = len(linking.follower)
    taken = np.zeros((2, count), dtype=np.bool_)
    taken[0, branches.source] = linking.follower[branches.source] < 0
    taken[1, branches.target] = linking.before[branches.target] < 0
    gain = np.where(taken[0, linking.row] | taken[1, linking.col], 0.0, linking.odds)
    answer, unit, _ = best_of(linking, gain, solver)
    # Where others are as good, those found here are not those that were chosen.
    same = (answer.col_of_row == linking.follower) & (linking.follower >= 0)
    return replace(linking, margin=np.where(same, exact_margins(answer) * unit, linking.margin))
