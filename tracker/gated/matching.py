"""Match two point sets: gating, costs, assignment, and results in the original row numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from ..assignment import (
    AbstractAssignmentSolver,
    Assignment,
    AssignmentProblem,
    SparseCosts,
    solve_and_certify,
)
from ..assignment.exact_margins import exact_margins
from ..compute.arrays import array_module, kernels
from ..compute.timing import lap
from ..errors import InputError, SettingsError, refuse_unlike
from ..geometry.gating import Candidates, pairs_in_box, pairs_within
from ..settings.costs import check_box, check_costs

_UNITS = 1 << 26
"""Number of integer units in the smaller of the unmatched cost and the cost at the gate."""


@dataclass(frozen=True, eq=False)
class Match:
    """The pairs of an optimal match between two point sets, and its proof.

    Parameters
    ----------
    source, target : (M,) int64 arrays
        Rows of the paired points, source ascending.
    cost : (M,) float64 array
        Cost of each pair: distance or squared distance, in the points' unit.
    margin : (M,) float64 array
        Lower bound on how much the optimum would worsen without each pair, in the same unit.
    assignment : Assignment
        The integer problem that was solved, its rows and columns sorted by cell, with its certificate.
    unit : float
        Cost of one integer unit of `assignment`.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    cost: NDArray[np.float64]
    margin: NDArray[np.float64]
    assignment: Assignment
    unit: float


def match(
    source: NDArray[np.float64],
    target: NDArray[np.float64],
    max_distance: float,
    *,
    cost: str = "euclidean",
    unmatched_cost: float | None = None,
    source_block: NDArray | None = None,
    target_block: NDArray | None = None,
    offsets: tuple[int, int] = (0, 0),
    solver: str | AbstractAssignmentSolver = "bid_and_augment",
    exact: bool = False,
    workers: int = 1,
    most_bytes: int | None = None,
    box: tuple[float, float, float] | None = None,
    forbidden: NDArray[np.int64] | None = None,
) -> Match:
    """Pair points of two sets, each at most once, at the least total cost.

    A point may stay unmatched at `unmatched_cost`. With the default, half of the cost at the gate, a
    pair at the gate costs as much as two unmatched points, so no pair beyond the gate could help.
    Costs are rounded to integers, 2^26 units in the unmatched cost, so the certificate is exact.

    Parameters
    ----------
    source : (R, 3) float64 array
        Axes z, y, x, any unit.
    target : (C, 3) float64 array
        In the same unit. If both are on a GPU (CuPy arrays), the work is done and the result kept there.
    max_distance : float
        Pairs farther apart are not considered; 0 gives no pairs. ``inf`` considers all; without an
        `unmatched_cost` no point then stays unmatched while one of the other set in its block is free.
    cost : {"euclidean", "squared"}
    unmatched_cost : float, optional
        Cost of leaving one point unmatched, source or target.
    source_block, target_block : (R,), (C,) int arrays, optional
        Non-decreasing numbers, such as frames. All points are in one block if they are left out.
    offsets : (int, int)
        A pair is allowed if target_block - source_block is in this range, ends included.
    solver : str or AbstractAssignmentSolver
    exact : bool
        Whether margins are exact, found on the host, instead of lower bounds.
    workers : int
        Threads; they do not change the result.
    most_bytes : int, optional
        Memory that the candidate pairs may take.
    box : (float, float, float), optional
        Size of a periodic box along z, y, x; 0 along an axis that is not periodic. Host only.
    forbidden : (M, 2) int64 array, optional
        Rows of source and target that are no pair.

    Returns
    -------
    Match

    Raises
    ------
    SettingsError
        If a distance or cost is negative, NaN or of an unknown name.
    InputError
        If the points are not arrays of finite real numbers with three columns, or a block number is missing
        or below the one before.
    ResourceError
        If the candidates would take more than `most_bytes`.

    Examples
    --------
    >>> a = np.array([[0, 0, 0], [0, 0, 5.0]])
    >>> b = np.array([[0, 0, 6], [0, 0, 1], [0, 9, 9.0]])
    >>> found = match(a, b, 3.0)
    >>> found.source.tolist(), found.target.tolist(), found.cost.tolist(), found.assignment.gap
    ([0, 1], [1, 0], [1.0, 1.0], 0)
    """
    power = check_costs(max_distance, cost, unmatched_cost)
    refuse_unlike(Integral, "a whole number", {"workers": workers, "most_bytes": most_bytes})
    refuse_unlike((str, AbstractAssignmentSolver), "the name of a solver", {"solver": solver})
    if box is not None:
        check_box(box, "cpu")
    if not (
        isinstance(offsets, Sequence) and len(offsets) == 2 and all(isinstance(k, Integral) for k in offsets)
    ):
        raise SettingsError(f"offsets is {offsets!r}; it must be two whole numbers.")
    if forbidden is not None and not (np.ndim(forbidden) == 2 and np.asarray(forbidden).dtype.kind in "iu"):
        raise SettingsError("forbidden is no array of shape (M, 2): rows of source and target.")
    source, target = _points("source", source), _points("target", target)
    row_start, col_start = _block_starts(len(source), len(target), source_block, target_block)
    radius = max_distance
    if unmatched_cost is not None:
        # What costs more than leaving both unmatched never helps.
        radius = min(radius, (2 * unmatched_cost) ** (1 / power))
    if box is None:
        candidates = pairs_within(
            source, target, radius, row_start, col_start, offsets, workers=workers, most_bytes=most_bytes
        )
    else:
        starts = row_start, col_start
        candidates = pairs_in_box(
            source, target, radius, starts, offsets, box, workers=workers, most_bytes=most_bytes
        )
    if forbidden is not None and len(forbidden):
        candidates = candidates.without(forbidden)
    lap("candidates", source)
    problem, unit = _problem(candidates, radius, power, unmatched_cost)
    lap("costs", source)
    assignment = solve_and_certify(problem, solver)
    margin_of_row = exact_margins(assignment) if exact else assignment.margin
    on = kernels("outbid.gated.matching", source)
    orders = (candidates.rows.order, candidates.cols.order)
    answer = (assignment.col_of_row, margin_of_row)
    rows, cols, pair_cost, margin = on.pairs_as_given(source, target, *orders, *answer, power, unit)
    if box is not None:
        pair_cost = np.linalg.norm(nearest_image(source[rows] - target[cols], box), axis=1) ** power
    lap("certificate", source)
    return Match(rows, cols, pair_cost, margin, assignment, unit)


def nearest_image(step: NDArray[np.float64], box: tuple[float, float, float]) -> NDArray[np.float64]:
    """The shortest of the steps (N, 3) that a periodic box makes the same.

    Examples
    --------
    >>> nearest_image(np.array([[9.0, 9.0, 1.0]]), (10.0, 0.0, 10.0)).tolist()
    [[-1.0, 9.0, 1.0]]
    """
    return step - np.rint(step / np.where(np.array(box) > 0, box, np.inf)) * box


def _points(name: str, points: NDArray) -> NDArray[np.float64]:
    if getattr(points, "shape", (0,))[1:] != (3,):
        raise InputError(f"{name} is no array of shape (N, 3): z, y, x. In a plane, let z be 0.")
    if points.dtype.kind not in "iuf":
        raise InputError(f"{name} must be real numbers; got an array of {points.dtype}.")
    return points.astype(np.float64, copy=False)


def _block_starts(
    rows: int, cols: int, row_block: NDArray | None, col_block: NDArray | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of the first row and of the first column of each block, for all blocks of rows or columns."""
    if row_block is None and col_block is None:
        return np.array([0, rows]), np.array([0, cols])
    for name, block, points in (("source", row_block, rows), ("target", col_block, cols)):
        if block is None or getattr(block, "shape", None) != (points,) or block.dtype.kind not in "iu":
            raise InputError(f"{name}_block needs a number for each of {points} points.")
        if (block[1:] < block[:-1]).any():
            raise InputError(f"{name}_block decreases. Sort the points by it.")
    assert row_block is not None and col_block is not None  # noqa: PT018
    ends = [int(block[end]) for block in (row_block, col_block) if len(block) for end in (0, -1)]
    number = np.arange(min(ends, default=0), max(ends, default=-1) + 2)
    return _first_not_below(row_block, number), _first_not_below(col_block, number)


def _first_not_below(block: NDArray, number: NDArray[np.int64]) -> NDArray[np.int64]:
    """First positions not below each number in a sorted block, searched in the block's own type."""
    if block.dtype == np.int32 and number.size and number[0] >= -(2**31) and number[-1] < 2**31:
        number = number.astype(np.int32)
    return np.searchsorted(block, number)


def _problem(
    candidates: Candidates, radius: float, power: int, unmatched_cost: float | None
) -> tuple[AssignmentProblem, float]:
    """The candidates as an assignment problem with integer costs, and the cost of one unit."""
    rows, cols = len(candidates.rows), len(candidates.cols)
    gate_cost = radius if power == 1 else radius * radius  # which may be infinite; ** would raise
    if math.isinf(gate_cost):
        # With every pair allowed, this much leaves no two points of a block unmatched together.
        farthest2 = float(candidates.distance2.max()) if candidates.distance2.size else 0.0
        unmatched_cost = gate_cost = farthest2 if power == 2 else math.sqrt(farthest2)
    if unmatched_cost is None:
        unmatched_cost = gate_cost / 2
    unit = min(unmatched_cost, gate_cost) / _UNITS
    if unit == 0:
        unit = 1.0
    unmatched = round(unmatched_cost / unit)
    on = kernels("outbid.gated.matching", candidates.distance2)
    values = on.round_costs(candidates.distance2, power, unit)
    both = array_module(values).full(max(rows, cols), unmatched, dtype=np.int64)
    problem = AssignmentProblem(
        SparseCosts(candidates.indptr, candidates.indices, values, (rows, cols)),
        both[:rows],
        both[:cols],
        # No candidate is farther than the gate, but for rounding.
        largest=max(unmatched, math.ceil(gate_cost / unit) + 1),
    )
    return problem, unit
