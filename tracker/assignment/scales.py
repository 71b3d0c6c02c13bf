"""The scale of the costs in a problem, by which rounding is measured."""

from __future__ import annotations

import numpy as np

from ..compute.arrays import array_module, to_host
from .problem import AssignmentProblem, DenseCosts, PointCosts, SparseCosts, largest_number

_SAMPLE = 1 << 16
"""Number of costs sampled to find the usual scale, of which 1 % are still several hundred."""

FAR = 1000
"""Factor above a low cost from which a cost may stand for something else, such as a forbidden pair."""


def largest_cost(problem: AssignmentProblem) -> float:
    """Largest absolute value of finite pair costs and unmatched costs; for points, an upper bound."""
    unmatched = [cost for cost in (problem.row_unmatched, problem.col_unmatched) if cost is not None]
    largest = [largest_number(cost) for cost in unmatched]
    if isinstance(problem.costs, DenseCosts):
        return max([problem.costs.largest, *largest])
    if isinstance(problem.costs, SparseCosts):
        return max([largest_number(problem.costs.values), *largest])
    points = array_module(problem.array).concatenate([problem.costs.source, problem.costs.target])
    extent = float(np.linalg.norm(to_host(np.ptp(points, axis=0)))) if len(points) else 0.0
    return max([extent**2 if problem.costs.metric == "squared" else extent, *largest])


def cost_scales(problem: AssignmentProblem) -> tuple[float, float]:
    """The scale by which rounding is measured (0 for integers), and the largest cost.

    The scale is the largest cost, unless this is far above most pair costs: large numbers that stand for
    forbidden pairs would hide the differences of the other costs.
    """
    largest, values = largest_cost(problem), problem.array
    if problem.is_integer:
        return 0, largest
    if isinstance(problem.costs, PointCosts) or values.size == 0:
        return largest, largest
    at = np.arange(min(values.size, _SAMPLE), dtype=np.uint64)
    if len(at) < values.size:  # scattered, because lines may differ
        at = at * np.uint64(0x9E3779B97F4A7C15) % np.uint64(values.size)
    at = array_module(values).asarray(at.astype(np.int64))
    some = values[at] if values.ndim == 1 else values[at // values.shape[1], at % values.shape[1]]
    some = np.abs(to_host(some).astype(np.float64))
    some = some[(some > 0) & (some < np.inf)]
    if len(some) == 0:
        return largest, largest
    low = float(np.partition(some, len(some) // 100)[len(some) // 100])
    unmatched = [cost for cost in (problem.row_unmatched, problem.col_unmatched) if cost is not None]
    return min(largest, max([FAR * low, *(largest_number(cost) for cost in unmatched)])), largest


def pair_range(problem: AssignmentProblem) -> tuple[float, float] | None:
    """Least and largest finite pair cost (for points, bounds of them); None if there are no pairs."""
    if isinstance(problem.costs, PointCosts):
        return (0.0, largest_cost(AssignmentProblem(problem.costs))) if min(problem.shape) else None
    values = problem.costs.values
    if isinstance(problem.costs, DenseCosts) and values.size:
        low, high = problem.costs.extremes
        if np.isinf(high):
            finite = values[~array_module(values).isinf(values)]
            return (float(finite.min()), float(finite.max())) if finite.size else None
        return float(low), float(high)
    return (float(values.min()), float(values.max())) if values.size else None
