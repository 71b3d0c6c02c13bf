"""Refuse invalid problems, with advice on how to fix them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import kernels, on_device
from .problem import AssignmentProblem, DenseCosts, PointCosts, SparseCosts, largest_number


def check_problem(problem: AssignmentProblem) -> None:
    """Refuse an invalid problem.

    Raises
    ------
    TypeError
        If it is not an AssignmentProblem, or if its costs are of no known class or not real numbers.
    ValueError
        If shapes disagree, if a cost is NaN or minus infinity, if integers are so large that sums could
        overflow, or if a stored pair is infinite, out of range or a duplicate.
    """
    _check_kind(problem)
    rows, cols = problem.shape
    _check_places(problem)
    if (problem.row_unmatched is None) != (problem.col_unmatched is None):
        raise ValueError(
            "Give unmatched costs for rows and columns, or for neither, "
            "which asks for a perfect matching of the smaller side."
        )
    named = {"row_unmatched": problem.row_unmatched, "col_unmatched": problem.col_unmatched}
    unmatched = {name: cost for name, cost in named.items() if cost is not None}
    costs = {}
    if isinstance(problem.costs, PointCosts):
        _check_points(problem.costs)
    else:
        costs = {"costs": problem.costs.values}
    for (name, cost), length in zip(unmatched.items(), problem.shape, strict=False):
        if cost.shape != (length,):
            raise ValueError(f"{name} has shape {cost.shape}; it needs one cost for each of {length}.")
    for name, cost in (costs | unmatched).items():
        if cost.dtype.kind not in "iubf":
            raise TypeError(f"{name} must be real numbers; got an array of {cost.dtype}.")
        if cost.size:
            if name == "costs" and isinstance(problem.costs, DenseCosts):
                extremes = problem.costs.extremes
            else:
                extremes = cost.min().item(), cost.max().item()
            _check_numbers(name, cost, extremes, max(rows, cols))
    for name, cost in unmatched.items():
        if cost.dtype.kind == "f" and np.isinf(cost).any():
            raise ValueError(
                f"{name} holds an infinite cost. Give finite unmatched costs, or None on both sides."
            )
    if isinstance(problem.costs, SparseCosts):
        _check_pairs(problem.costs)


def _check_kind(problem: AssignmentProblem) -> None:
    """Refuse a plain array, and show what to write instead."""
    if not isinstance(problem, AssignmentProblem):
        raise TypeError("This is no problem. Write assign(AssignmentProblem(DenseCosts(array))).")
    if not isinstance(problem.costs, DenseCosts | SparseCosts | PointCosts):
        raise TypeError("Costs are DenseCosts(array), SparseCosts(…) or PointCosts(…), no bare array.")
    if not all(
        hasattr(cost, "shape")
        for cost in (problem.array, problem.row_unmatched, problem.col_unmatched)
        if cost is not None
    ):
        raise TypeError("Costs are arrays, no lists: np.array(…).")
    if isinstance(problem.costs, DenseCosts) and problem.array.ndim != 2:
        raise ValueError(f"Costs of all pairs need rows and columns; their shape is {problem.array.shape}.")


def _check_places(problem: AssignmentProblem) -> None:
    costs = problem.costs
    arrays = {"row_unmatched": problem.row_unmatched, "col_unmatched": problem.col_unmatched}
    if isinstance(costs, PointCosts):
        arrays["target"] = costs.target
    elif isinstance(costs, SparseCosts):
        arrays |= {"indptr": costs.indptr, "indices": costs.indices}
    for name, array in arrays.items():
        if array is not None and on_device(array) != on_device(problem.array):
            raise TypeError(
                f"{name} and the costs do not live in the same memory. Give all arrays on the GPU, or none."
            )


def _check_numbers(name: str, cost: NDArray, extremes: tuple[int | float, int | float], terms: int) -> None:
    low, high = extremes
    if cost.dtype.kind == "f":
        if np.isnan(low):
            raise ValueError(f"{name} holds NaN at {_where(np.isnan(cost))}. Replace it, or forbid the pair.")
        if low == -np.inf:
            raise ValueError(f"{name} holds minus infinity at {_where(cost == low)}; costs must be larger.")
        largest = largest_number(cost, extremes)
        if largest > 1e300 / (terms + 1):
            raise ValueError(
                f"{name} holds {largest:g}, so large that sums overflow. Divide all costs by it."
            )
    elif max(abs(int(low)), abs(int(high))) * (terms + 1) >= 2**58:
        raise ValueError(
            f"{name} holds integers so large that their sums overflow. Divide them, or use floats."
        )


def _check_points(costs: PointCosts) -> None:
    if costs.metric not in ("euclidean", "squared"):
        raise ValueError(f"There is no metric {costs.metric!r}. Choose one of: euclidean, squared.")
    source, target = costs.source, costs.target
    if source.ndim != 2 or target.ndim != 2 or source.shape[1] != target.shape[1]:
        raise ValueError(
            f"Points need shapes (R, D) and (C, D) with the same D; got {source.shape} and {target.shape}."
        )
    for name, points in (("source", source), ("target", target)):
        if points.dtype != np.float64:
            raise TypeError(f"{name} must be float64; got {points.dtype}. Convert it with astype(float).")
        if not np.isfinite(points).all():
            where = _where(~np.isfinite(points))
            raise ValueError(f"{name} holds a coordinate that is no finite number, at {where}.")
        if points.size and np.abs(points).max() > 1e140:
            raise ValueError(f"{name} holds coordinates whose squares overflow. Divide all by their largest.")


def _check_pairs(costs: SparseCosts) -> None:
    rows, cols = costs.shape
    indptr, indices, values = costs.indptr, costs.indices, costs.values
    if indptr.shape != (rows + 1,) or indices.shape != values.shape or values.ndim != 1:
        raise ValueError(
            f"Sparse costs of {rows} rows need indptr ({rows + 1},) and as many indices as values; "
            f"got {indptr.shape}, {indices.shape} and {values.shape}."
        )
    for name, array in (("indptr", indptr), ("indices", indices)):
        if array.dtype.kind not in "iu":
            raise TypeError(f"{name} must be integers; got an array of {array.dtype}.")
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise ValueError("indptr must start at 0, never decrease and end at the number of pairs.")
    if len(indices) and (indices.min() < 0 or indices.max() >= cols):
        raise ValueError(f"A pair names a column outside 0 to {cols - 1}.")
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(f"Pair {_where(np.isinf(values))} costs infinity. Leave forbidden pairs out.")
    on = kernels("outbid.assignment.certificate", values)
    repeated = on.first_repeated_pair(indptr, indices, cols)
    if repeated >= 0:
        raise ValueError(f"Row {repeated} holds the same column twice. Keep the cheaper of the two pairs.")


def _where(mask: NDArray[np.bool_]) -> str:
    """Text with the index of the first True."""
    return ", ".join(str(int(i)) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
