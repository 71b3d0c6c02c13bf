"""Split sparse problems into connected components, for solvers that need a dense matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import array_module, to_host
from .problem import AssignmentProblem, SparseCosts
from .solver import Answer

MOST_PAIRS = 1 << 25
"""Largest number of matrix elements for which a sparse problem is solved as one matrix: 256 MiB of int64. The
number is fixed because, if costs tie, the division into parts may determine which optimum is found; this must
not differ between machines."""
_SIDE = 4096
"""Number of rows plus columns of the components that are combined into one matrix."""


def is_split(problem: AssignmentProblem) -> bool:
    """Whether to use `in_batches`: for large sparse problems with optional rows and columns."""
    rows, cols = problem.shape
    return isinstance(problem.costs, SparseCosts) and not problem.is_perfect and rows * cols > MOST_PAIRS


def matrix_bytes(rows: int, cols: int) -> int:
    """Memory for the matrix of a sparse problem: two copies, and one with 32 bits."""
    return 20 * min(rows * cols, MOST_PAIRS)


def in_batches(problem: AssignmentProblem, compute: Callable[[AssignmentProblem], Answer]) -> Answer:
    """Solve a sparse problem in batches of its connected components.

    Rows and columns without a pair stay unmatched. Components are sorted by their first rows and combined
    into batches of about 4,096 rows and columns.

    Examples
    --------
    >>> from outbid.assignment.papers.hungarian import Hungarian
    >>> costs = SparseCosts(np.array([0, 1, 2]), np.array([1, 0], np.int32), np.array([1, 2]), (2, 2))
    >>> answer = in_batches(AssignmentProblem(costs, np.full(2, 9), np.full(2, 9)), Hungarian().compute)
    >>> answer.col_of_row.tolist(), answer.stats["components"]
    ([1, 0], 2)
    """
    xp = array_module(problem.array)
    found = xp.full(problem.shape[0], -1, np.int32)
    v = problem.unmatched()[1].copy()
    stats: dict[str, int | float] = {}
    batch_of, components = _batches(problem.costs.sparse())  # type: ignore[union-attr]
    for part, rows, cols in _parts(problem, batch_of):
        answer = compute(part)
        matched = answer.col_of_row >= 0
        found[rows[matched]] = cols[answer.col_of_row[matched]]
        v[cols] = answer.col_dual
        for name, value in answer.stats.items():
            stats[name] = stats.get(name, 0) + value
    return Answer(found, v, stats | {"components": components})


def _batches(costs: SparseCosts) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], int]:
    """Batch of each row and each column, -1 without a pair; and the number of components."""
    # Imported here: the import takes longer than tracking a small movie.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    rows, cols = costs.shape
    indptr, indices = to_host(costs.indptr), to_host(costs.indices)
    padded = np.concatenate([indptr, np.full(cols, indptr[-1])])
    graph = csr_array((np.ones(len(indices), np.int8), indices + rows, padded), shape=(rows + cols,) * 2)
    count, label = connected_components(graph, directed=False)
    size = np.bincount(label, minlength=count)
    has_pair = size > 1
    size[~has_pair] = 0
    batch = np.where(has_pair, (np.cumsum(size) - size) // _SIDE, -1)[label]
    return (batch[:rows], batch[rows:]), int(has_pair.sum())


@dataclass(frozen=True, eq=False)
class _Side:
    """Rows or columns sorted by batch, and the start of each batch."""

    order: NDArray[np.int64]
    start: NDArray[np.int64]

    @classmethod
    def of(cls, batch: NDArray[np.int64], batches: int) -> _Side:
        order = np.argsort(batch, kind="stable")
        return cls(order, np.searchsorted(batch[order], np.arange(batches + 1)))


def _parts(
    problem: AssignmentProblem, batch_of: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> Iterator[tuple[AssignmentProblem, NDArray, NDArray]]:
    """Yield the problem of each batch with its rows and columns."""
    costs, xp = problem.costs.sparse(), array_module(problem.array)  # type: ignore[union-attr]
    row_unmatched, col_unmatched = problem.unmatched()
    batches = int(batch_of[0].max(initial=-1)) + 1
    rows, cols = (_Side.of(batch, batches) for batch in batch_of)
    place = np.empty(len(cols.order), np.int64)
    place[cols.order] = np.arange(len(cols.order))
    place = xp.asarray(place)
    length = xp.diff(costs.indptr)
    for k in range(batches):
        i = xp.asarray(rows.order[rows.start[k] : rows.start[k + 1]])
        j = xp.asarray(cols.order[cols.start[k] : cols.start[k + 1]])
        indptr = xp.zeros(len(i) + 1, np.int64)
        xp.cumsum(length[i], out=indptr[1:])
        # Positions, in the whole problem, of the pairs in this part.
        pair = xp.arange(int(indptr[-1]))
        pair += (costs.indptr[i] - indptr[:-1])[xp.searchsorted(indptr, pair, side="right") - 1]
        indices = (place[costs.indices[pair]] - int(cols.start[k])).astype(np.int32)
        part = SparseCosts(indptr, indices, costs.values[pair], (len(i), len(j)))
        yield AssignmentProblem(part, row_unmatched[i], col_unmatched[j], largest=problem.largest), i, j
