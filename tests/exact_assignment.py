"""An assignment solver in exact arithmetic: every float is a whole multiple of a power of two."""

from fractions import Fraction

import numpy as np

from outbid import Assignment, AssignmentProblem, SparseCosts
from outbid.assignment.points import stored_costs

Exact = list[list[int | None]]
"""Rows of whole numbers; None forbids a pair."""


def exact_costs(problem: AssignmentProblem) -> tuple[Exact, list[int] | None, list[int] | None, Fraction]:
    """Costs, and unmatched costs of rows and columns, as whole multiples of a unit."""
    costs = stored_costs(problem)
    table: list[list[Fraction | None]] = [[None] * problem.shape[1] for _ in range(problem.shape[0])]
    if isinstance(costs, SparseCosts):
        for row, col, value in zip(
            costs.rows.tolist(), costs.indices.tolist(), costs.values.tolist(), strict=True
        ):
            table[row][col] = Fraction(value)
    else:
        table = [[None if v == np.inf else Fraction(v) for v in row] for row in costs.values.tolist()]
    given = [problem.row_unmatched, problem.col_unmatched]
    sides = [None if side is None else [Fraction(v) for v in side.tolist()] for side in given]
    numbers = [v for row in table for v in row if v is not None] + [v for side in sides for v in side or []]
    unit = Fraction(1, max([v.denominator for v in numbers], default=1))
    whole: Exact = [[None if v is None else int(v / unit) for v in row] for row in table]
    rows, cols = ([int(v / unit) for v in side] if side is not None else None for side in sides)
    return whole, rows, cols, unit


def least_cost(problem: AssignmentProblem) -> Fraction | None:
    """The cost of the optimum, exactly; None if there is no perfect matching."""
    costs, rows, cols, unit = exact_costs(problem)
    if rows is None or cols is None:
        if problem.shape[0] > problem.shape[1]:
            costs = [list(line) for line in zip(*costs, strict=True)]
        found = _perfect(costs)
    else:
        # A row may take a place of its own, at what it costs unmatched beyond its columns' unmatched costs.
        table: Exact = []
        for i, line in enumerate(costs):
            own: list[int | None] = [None] * len(costs)
            own[i] = rows[i]
            table.append([None if v is None else v - cols[j] for j, v in enumerate(line)] + own)
        found = _perfect(table)
        found = None if found is None else found + sum(cols)
    return None if found is None else found * unit


def _perfect(costs: Exact) -> int | None:
    """The least cost at which every row gets a column (shortest augmenting paths, from column -1)."""
    count = len(costs[0]) if costs else 0
    row_dual, col_dual, owner = [0] * len(costs), [0] * (count + 1), [-1] * (count + 1)
    for start in range(len(costs)):
        owner[-1], at = start, -1
        slack: list[int | None] = [None] * count
        before, done = [-1] * count, [False] * count + [True]
        while owner[at] >= 0:
            done[at], row = True, owner[at]
            for j, value in enumerate(costs[row]):
                if value is not None and not done[j]:
                    reach = value - row_dual[row] - col_dual[j]
                    if slack[j] is None or reach < slack[j]:
                        slack[j], before[j] = reach, at
            open_columns = [j for j in range(count) if not done[j] and slack[j] is not None]
            if not open_columns:
                return None
            at = min(open_columns, key=slack.__getitem__)
            least = slack[at]
            for j in range(-1, count):
                if done[j]:
                    row_dual[owner[j]] += least
                    col_dual[j] -= least
                elif slack[j] is not None:
                    slack[j] -= least
        while at >= 0:
            owner[at], at = owner[before[at]], before[at]
    return sum(costs[row][j] for j, row in enumerate(owner[:-1]) if row >= 0)  # type: ignore[misc]


def paid(answer: Assignment) -> tuple[Fraction, Fraction]:
    """Cost of an answer, and the sum of the magnitudes that are paid, exactly."""
    costs, rows, cols, unit = exact_costs(answer.problem)
    matching = answer.col_of_row.tolist()
    terms = [costs[i][j] for i, j in enumerate(matching) if j >= 0]
    if rows is not None and cols is not None:
        terms += [rows[i] for i, j in enumerate(matching) if j < 0]
        terms += [cols[j] for j in set(range(len(cols))) - set(matching)]
    assert None not in terms, "a forbidden pair is matched"
    return sum(terms) * unit, sum(map(abs, terms)) * unit  # type: ignore[arg-type]
