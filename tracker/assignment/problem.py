"""AssignmentProblem: costs of pairs, and costs of leaving a row or column unmatched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compute.arrays import array_module, on_device, to_device, to_host


@dataclass(frozen=True, eq=False)
class DenseCosts:
    """Costs of all pairs.

    Parameters
    ----------
    values : (R, C) array of a real dtype
        ``+inf`` forbids a pair. Lists of rows and matrix objects become arrays.

    Raises
    ------
    TypeError
        If the array is masked, because the mask would be lost.
    """

    values: NDArray

    def __post_init__(self) -> None:
        if not on_device(self.values):
            object.__setattr__(self, "values", _unmasked(self.values))

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape

    @cached_property
    def extremes(self) -> tuple[int | float, int | float]:
        """Least and largest cost: NaN if any cost is NaN, 0 if there are no costs; computed once."""
        from .matrix import extremes

        return extremes(self.values)

    @cached_property
    def largest(self) -> float:
        """Largest absolute value of the finite costs; computed once."""
        return largest_number(self.values, self.extremes)

    def transposed(self) -> DenseCosts:
        return DenseCosts(array_module(self.values).ascontiguousarray(self.values.T))

    def sparse(self) -> SparseCosts:
        """The allowed pairs as `SparseCosts`, columns ascending."""
        xp = array_module(self.values)
        allowed = self.values < np.inf
        indptr = xp.zeros(self.shape[0] + 1, np.int64)
        indptr[1:] = xp.cumsum(allowed.sum(axis=1))
        return SparseCosts(indptr, xp.nonzero(allowed)[1].astype(np.int32), self.values[allowed], self.shape)

    @classmethod
    def of_gains(cls, gains: NDArray) -> DenseCosts:
        """Costs that are negated gains, so the least cost is the largest gain; ``-inf`` forbids a pair.

        Raises
        ------
        TypeError
            If gains are not real numbers.
        ValueError
            If they are unsigned integers so large that sums overflow.

        Examples
        --------
        >>> DenseCosts.of_gains(np.array([[3, 0]], np.uint8)).values
        array([[-3,  0]])
        """
        gains = gains if on_device(gains) else _unmasked(gains)
        kind = gains.dtype.kind
        if kind not in "iubf":
            raise TypeError(f"Gains must be real numbers; got an array of {gains.dtype}.")
        if kind == "u" and gains.size and int(gains.max()) >= 2**58:
            raise ValueError(
                "Gains hold integers so large that their sums overflow. Divide them, or use floats."
            )
        # The least integer of a dtype cannot be negated in it.
        has_least = kind == "i" and gains.size and int(gains.min()) == np.iinfo(gains.dtype).min
        return cls(-gains.astype(np.int64) if kind in "ub" or has_least else -gains)


@dataclass(frozen=True, eq=False)
class SparseCosts:
    """Costs of some pairs in CSR format; absent pairs are forbidden, and a stored zero is a cost.

    Parameters
    ----------
    indptr : (R + 1,) int64 array
        Row i has the pairs indptr[i] up to, but not including, indptr[i + 1].
    indices : (P,) int32 array
        Column of each pair; within a row in any order, without duplicates.
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
        xp = array_module(self.values)
        if xp is np:
            return np.repeat(np.arange(self.shape[0], dtype=np.int64), np.diff(self.indptr))
        return xp.searchsorted(self.indptr, xp.arange(len(self.indices)), side="right").astype(np.int64) - 1

    def transposed(self) -> SparseCosts:
        xp = array_module(self.values)
        order = xp.argsort(self.indices, kind="stable")
        indptr = xp.zeros(self.shape[1] + 1, np.int64)
        if len(self.indices):
            indptr[1:] = xp.cumsum(xp.bincount(self.indices, minlength=self.shape[1]))
        return SparseCosts(
            indptr,
            self.rows[order].astype(np.int32),
            self.values[order],
            (self.shape[1], self.shape[0]),
        )

    def sparse(self) -> SparseCosts:
        return self


@dataclass(frozen=True, eq=False)
class PointCosts:
    r"""Distances between all pairs of two point sets, computed when needed and never stored.

    :math:`c_{ij} = |a_i - b_j|`, or its square. Coordinates are subtracted first, so that points far from
    the origin lose no precision.

    Parameters
    ----------
    source : (R, D) float64 array
    target : (C, D) float64 array
        In the same unit.
    metric : {"euclidean", "squared"}

    Examples
    --------
    >>> PointCosts(np.zeros((2, 3)), np.ones((4, 3)), "squared").shape
    (2, 4)
    """

    source: NDArray[np.float64]
    target: NDArray[np.float64]
    metric: str = "euclidean"

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.source), len(self.target)

    def transposed(self) -> PointCosts:
        return PointCosts(self.target, self.source, self.metric)


Costs = DenseCosts | SparseCosts | PointCosts


@dataclass(frozen=True, eq=False)
class AssignmentProblem:
    r"""Match rows to columns, each at most once, at the least total cost.

    With both unmatched costs given, rows and columns are optional:

    .. math:: \min \sum_{(i,j) \in M} c_{ij} + \sum_{i \notin M} r_i + \sum_{j \notin M} s_j

    so a pair that costs :math:`r_i + s_j` or more never lowers the total. With both None every row must be
    matched, or every column if there are more rows than columns (a perfect matching of the smaller
    side).

    Parameters
    ----------
    costs : DenseCosts, SparseCosts or PointCosts
    row_unmatched : (R,) array or None
        Cost :math:`r_i` of leaving row i unmatched; finite.
    col_unmatched : (C,) array or None
        Cost :math:`s_j` of leaving column j unmatched; finite.
    largest : int, optional
        Upper bound on the absolute value of all finite costs. By default it is computed from the costs.

    Examples
    --------
    >>> costs = DenseCosts(np.array([[1, 9], [9, 9]]))
    >>> AssignmentProblem(costs, np.array([4, 4]), np.array([4, 4])).shape
    (2, 2)
    """

    costs: Costs
    row_unmatched: NDArray | None = None
    col_unmatched: NDArray | None = None
    largest: int | None = field(default=None, kw_only=True)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.costs.shape

    @property
    def array(self) -> NDArray:
        """The array of the costs (for points, of the sources), with their dtype and device."""
        return self.costs.source if isinstance(self.costs, PointCosts) else self.costs.values

    @property
    def is_perfect(self) -> bool:
        """Whether the smaller side must be matched completely."""
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
        costs = self.costs.transposed()
        return AssignmentProblem(costs, self.col_unmatched, self.row_unmatched, largest=self.largest)

    def unmatched(self) -> tuple[NDArray, NDArray]:
        """Unmatched costs of rows and columns, as int64 or float64; must not be modified.

        If all rows must be matched, the cost is `forbidden` for rows and 0 for columns.
        """
        dtype = np.int64 if self.is_integer else np.float64
        if self.row_unmatched is None or self.col_unmatched is None:
            xp = array_module(self.array)
            return xp.full(self.shape[0], forbidden(dtype)), xp.zeros(self.shape[1], dtype)
        laid = array_module(self.array).ascontiguousarray
        return laid(self.row_unmatched, dtype), laid(self.col_unmatched, dtype)


def _unmasked(values: ArrayLike) -> NDArray:
    """Convert values to an array."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("The array is masked. Forbid pairs by infinity, such as costs.filled(np.inf).")
    return np.asarray(values)


def as_kernels_read(problem: AssignmentProblem) -> AssignmentProblem:
    """The problem with sparse costs in contiguous arrays of the dtypes that GPU kernels require."""
    costs = problem.costs
    if not isinstance(costs, SparseCosts):
        return problem
    laid = array_module(costs.values).ascontiguousarray
    pairs = laid(costs.indptr, np.int64), laid(costs.indices, np.int32), laid(costs.values)
    return replace(problem, costs=SparseCosts(*pairs, costs.shape))


def on_host(problem: AssignmentProblem) -> AssignmentProblem:
    """Copy the problem to main memory."""
    return _moved(problem, to_host)


def on_gpu(problem: AssignmentProblem) -> AssignmentProblem:
    """Copy the problem to the memory of the current GPU."""
    return _moved(problem, to_device)


def _moved(problem: AssignmentProblem, move: Callable[[NDArray], NDArray]) -> AssignmentProblem:
    costs: Costs = problem.costs
    if isinstance(costs, PointCosts):
        costs = PointCosts(move(costs.source), move(costs.target), costs.metric)
    elif isinstance(costs, SparseCosts):
        costs = SparseCosts(move(costs.indptr), move(costs.indices), move(costs.values), costs.shape)
    else:
        costs = DenseCosts(move(costs.values))
    if problem.row_unmatched is None or problem.col_unmatched is None:
        return replace(problem, costs=costs)
    unmatched = move(problem.row_unmatched), move(problem.col_unmatched)
    return AssignmentProblem(costs, *unmatched, largest=problem.largest)


def forbidden(dtype: type | np.dtype) -> np.int64 | np.float64:
    """A cost above that of any matching: ``inf``, or for integers one eighth of their range."""
    return np.float64(np.inf) if np.dtype(dtype).kind == "f" else np.int64(2**60)


def largest_number(cost: NDArray, extremes: tuple[int | float, int | float] | None = None) -> float:
    """Largest absolute value of the finite costs; 0 if there are none. NaN must not occur."""
    if cost.size == 0:
        return 0.0
    low, high = map(float, extremes or (cost.min(), cost.max()))
    if np.isinf(high):
        finite = array_module(cost).where(np.isinf(cost), 0, cost)
        return max(abs(float(finite.min())), abs(float(finite.max())))
    return max(abs(low), abs(high))
