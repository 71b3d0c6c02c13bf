"""AssignmentProblem: costs of pairs, and what it costs to leave a row or a column unmatched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._arrays import array_module, free_memory, kernels, to_host


@dataclass(frozen=True, eq=False)
class DenseCosts:
    """Costs of all pairs.

    Parameters
    ----------
    values : (R, C) array of a real dtype
        ``+inf`` forbids a pair.
    """

    values: NDArray

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape

    def transposed(self) -> DenseCosts:
        return DenseCosts(array_module(self.values).ascontiguousarray(self.values.T))

    def sparse(self) -> SparseCosts:
        """The allowed pairs as `SparseCosts`, columns ascending."""
        allowed = self.values < np.inf
        indptr = np.concatenate([[0], np.cumsum(allowed.sum(axis=1))]).astype(np.int64)
        return SparseCosts(indptr, np.nonzero(allowed)[1].astype(np.int32), self.values[allowed], self.shape)


@dataclass(frozen=True, eq=False)
class SparseCosts:
    """Costs of some pairs, row by row (CSR); a pair that is absent is forbidden, a stored zero is a cost.

    Parameters
    ----------
    indptr : (R + 1,) int64 array
        Row i has the pairs indptr[i] to indptr[i + 1].
    indices : (P,) int32 array
        Column of each pair, in any order, none twice in a row.
    values : (P,) array of a real dtype
        Cost of each pair; finite.
    shape : (int, int)
        R and C.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray
    shape: tuple[int, int]

    @property
    def rows(self) -> NDArray[np.int64]:
        """(P,) int64: row of each pair."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int64), np.diff(self.indptr))

    def transposed(self) -> SparseCosts:
        order = np.argsort(self.indices, kind="stable")
        count = np.bincount(self.indices, minlength=self.shape[1])
        return SparseCosts(
            np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
            self.rows[order].astype(np.int32),
            self.values[order],
            (self.shape[1], self.shape[0]),
        )

    def sparse(self) -> SparseCosts:
        return self


@dataclass(frozen=True, eq=False)
class PointCosts:
    r"""Distances of all pairs of two point sets, evaluated where they are needed and never stored.

    :math:`c_{ij} = |a_i - b_j|`, or its square. Coordinates are subtracted first, so that points far from
    the origin lose nothing.

    Parameters
    ----------
    source : (R, D) float64 array
    target : (C, D) float64 array
        In the same unit.
    metric : {"euclidean", "squared"}

    Examples
    --------
    >>> PointCosts(np.zeros((2, 3)), np.ones((4, 3)), "squared").dense().values[0]
    array([3., 3., 3., 3.])
    """

    source: NDArray[np.float64]
    target: NDArray[np.float64]
    metric: str = "euclidean"

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.source), len(self.target)

    def transposed(self) -> PointCosts:
        return PointCosts(self.target, self.source, self.metric)

    def dense(self) -> DenseCosts:
        """All distances as a matrix.

        Raises
        ------
        ValueError
            If they do not fit into memory.
        """
        from .points import PointMatrix

        needed = 8 * len(self.source) * len(self.target)
        if needed > 0.8 * free_memory():
            raise ValueError(
                f"A matrix of all distances takes {needed / 2**30:.1f} GiB, more than is free. "
                "Choose solver sparsified, which needs none, or gate the pairs."
            )
        return DenseCosts(PointMatrix(self).block(0, len(self.source)))

    def sparse(self) -> SparseCosts:
        """All pairs as `SparseCosts`."""
        return self.dense().sparse()


Costs = DenseCosts | SparseCosts | PointCosts


@dataclass(frozen=True, eq=False)
class AssignmentProblem:
    r"""Match rows to columns at least cost; each at most once.

    With both unmatched costs given, rows and columns are optional:

    .. math:: \min \sum_{(i,j) \in M} c_{ij} + \sum_{i \notin M} r_i + \sum_{j \notin M} s_j

    so a pair that costs :math:`r_i + s_j` or more never helps. With both None every row must be
    matched, or every column if there are more rows than columns (a perfect matching of the smaller
    side).

    Parameters
    ----------
    costs : DenseCosts, SparseCosts or PointCosts
    row_unmatched : (R,) array or None
        Cost :math:`r_i` of leaving row i unmatched; finite.
    col_unmatched : (C,) array or None
        Cost :math:`s_j` of leaving column j unmatched; finite.

    Examples
    --------
    >>> costs = DenseCosts(np.array([[1, 9], [9, 9]]))
    >>> AssignmentProblem(costs, np.array([4, 4]), np.array([4, 4])).shape
    (2, 2)
    """

    costs: Costs
    row_unmatched: NDArray | None = None
    col_unmatched: NDArray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.costs.shape

    @property
    def stored_costs(self) -> DenseCosts | SparseCosts:
        """The costs as they are stored; of points a matrix is made."""
        return self.costs.dense() if isinstance(self.costs, PointCosts) else self.costs

    @property
    def array(self) -> NDArray:
        """An array of the costs, to tell their type and where they live."""
        return self.costs.source if isinstance(self.costs, PointCosts) else self.costs.values

    @property
    def is_perfect(self) -> bool:
        """Whether the smaller side must be matched whole."""
        return self.row_unmatched is None

    @property
    def is_integer(self) -> bool:
        """Whether all costs are integers, so that every sum and the certificate are exact."""
        unmatched = (self.row_unmatched, self.col_unmatched)
        return self.array.dtype.kind in "iub" and all(
            cost is None or cost.dtype.kind in "iub" for cost in unmatched
        )

    def transposed(self) -> AssignmentProblem:
        """The same problem with rows and columns exchanged."""
        return AssignmentProblem(self.costs.transposed(), self.col_unmatched, self.row_unmatched)

    def with_stored_costs(self) -> AssignmentProblem:
        """The same problem with a matrix in place of points."""
        if not isinstance(self.costs, PointCosts):
            return self
        return AssignmentProblem(self.stored_costs, self.row_unmatched, self.col_unmatched)

    def unmatched(self) -> tuple[NDArray, NDArray]:
        """Unmatched costs of rows and columns, as int64 or float64.

        In a perfect matching of all rows that of a row is `forbidden` and that of a column 0.
        """
        dtype = np.int64 if self.is_integer else np.float64
        if self.row_unmatched is None or self.col_unmatched is None:
            xp = array_module(self.array)
            return xp.full(self.shape[0], forbidden(dtype)), xp.zeros(self.shape[1], dtype)
        return self.row_unmatched.astype(dtype), self.col_unmatched.astype(dtype)


def on_host(problem: AssignmentProblem) -> AssignmentProblem:
    """The problem with all its arrays in main memory."""
    costs: Costs = problem.costs
    if isinstance(costs, PointCosts):
        costs = PointCosts(to_host(costs.source), to_host(costs.target), costs.metric)
    elif isinstance(costs, SparseCosts):
        costs = SparseCosts(to_host(costs.indptr), to_host(costs.indices), to_host(costs.values), costs.shape)
    else:
        costs = DenseCosts(to_host(costs.values))
    if problem.row_unmatched is None or problem.col_unmatched is None:
        return AssignmentProblem(costs)
    return AssignmentProblem(costs, to_host(problem.row_unmatched), to_host(problem.col_unmatched))


def forbidden(dtype: type | np.dtype) -> np.int64 | np.float64:
    """A cost no matching can reach: ``inf``, or for integers the eighth part of their range."""
    return np.float64(np.inf) if np.dtype(dtype).kind == "f" else np.int64(2**60)


def check_problem(problem: AssignmentProblem) -> None:
    """Refuse what no solver could answer.

    Raises
    ------
    TypeError
        If costs are objects, strings or complex numbers.
    ValueError
        If shapes disagree, a cost is NaN or minus infinity, an integer is so large that sums could
        overflow, or a stored pair is infinite, out of range or there twice.
    """
    rows, cols = problem.shape
    if (problem.row_unmatched is None) != (problem.col_unmatched is None):
        raise ValueError(
            "Give unmatched costs for rows and columns, or for neither, "
            "which asks for a perfect matching of the smaller side."
        )
    if isinstance(problem.costs, PointCosts):
        _check_points(problem.costs)
        named = []
    else:
        named = [("costs", problem.costs.values)]
    for name, cost, length in (
        ("row_unmatched", problem.row_unmatched, rows),
        ("col_unmatched", problem.col_unmatched, cols),
    ):
        if cost is not None:
            if cost.shape != (length,):
                raise ValueError(f"{name} has shape {cost.shape}; it needs one cost for each of {length}.")
            named.append((name, cost))
    for name, cost in named:
        _check_numbers(name, cost, max(rows, cols))
    if problem.row_unmatched is not None and problem.col_unmatched is not None:
        for name, cost in named[-2:]:
            if cost.dtype.kind == "f" and np.isinf(cost).any():
                raise ValueError(
                    f"{name} holds an infinite cost. Give finite unmatched costs, or None on both sides."
                )
    if isinstance(problem.costs, SparseCosts):
        _check_pairs(problem.costs)


def _check_numbers(name: str, cost: NDArray, terms: int) -> None:
    if cost.dtype.kind not in "iubf":
        raise TypeError(f"{name} must be real numbers; got an array of {cost.dtype}.")
    if cost.size == 0:
        return
    if cost.dtype.kind == "f":
        low = cost.min()
        if np.isnan(low):
            raise ValueError(f"{name} holds NaN at {_where(np.isnan(cost))}. Replace it, or forbid the pair.")
        if low == -np.inf:
            raise ValueError(f"{name} holds minus infinity at {_where(cost == low)}; costs must be larger.")
        largest = largest_number(cost)
        if largest > 1e300 / (terms + 1):
            raise ValueError(
                f"{name} holds {largest:g}, so large that sums overflow. Divide all costs by it."
            )
    elif max(abs(int(cost.min())), abs(int(cost.max()))) * (terms + 1) >= 2**58:
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


def largest_cost(problem: AssignmentProblem) -> float:
    """Largest magnitude among finite costs of pairs and of staying unmatched; of points an upper bound."""
    costs = [cost for cost in (problem.row_unmatched, problem.col_unmatched) if cost is not None]
    if not isinstance(problem.costs, PointCosts):
        return max(largest_number(cost) for cost in [problem.costs.values, *costs])
    points = np.concatenate([problem.costs.source, problem.costs.target])
    extent = float(np.linalg.norm(np.ptp(points, axis=0))) if len(points) else 0.0
    farthest = extent**2 if problem.costs.metric == "squared" else extent
    return max([farthest, *(largest_number(cost) for cost in costs)])


def largest_number(cost: NDArray) -> float:
    """Largest magnitude among finite costs, none of which is NaN; 0 if there are none."""
    if cost.size == 0:
        return 0.0
    low, high = float(cost.min()), float(cost.max())
    if np.isinf(high):
        finite = cost[np.isfinite(cost)]
        return max(abs(float(finite.min())), abs(float(finite.max()))) if finite.size else 0.0
    return max(abs(low), abs(high))


def _check_pairs(costs: SparseCosts) -> None:
    rows, cols = costs.shape
    indptr, indices, values = costs.indptr, costs.indices, costs.values
    if indptr.shape != (rows + 1,) or indices.shape != values.shape or values.ndim != 1:
        raise ValueError(
            f"Sparse costs of {rows} rows need indptr ({rows + 1},) and as many indices as values; "
            f"got {indptr.shape}, {indices.shape} and {values.shape}."
        )
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise ValueError("indptr must start at 0, never decrease and end at the number of pairs.")
    if len(indices) and (indices.min() < 0 or indices.max() >= cols):
        raise ValueError(f"A pair names a column outside 0 to {cols - 1}.")
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(f"Pair {_where(np.isinf(values))} costs infinity. Leave forbidden pairs out.")
    on = kernels("outbid.tracker.assign.certificate", values)
    repeated = on.first_repeated_pair(indptr, indices, cols)
    if repeated >= 0:
        raise ValueError(f"Row {repeated} holds the same column twice. Keep the cheaper of the two pairs.")


def _where(mask: NDArray[np.bool_]) -> str:
    """Index of the first True, as words."""
    return ", ".join(str(int(i)) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
