"""Launches the GPU kernels of `hungarian`; same names and arguments as hungarian_cpu.py, and the same result.

A search is one cooperative launch, whatever its depth, so the host waits once an iteration. Nothing depends
on the order of threads nor on the launch geometry.
"""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import array_module
from ...compute.cuda import cuda_function, launch, processors

_STAGES, _SEARCH = "assignment/papers/hungarian.cu", "assignment/papers/hungarian_search.cu"
_BLOCK, _ROWS, _SLOTS = 256, 8, 32
"""Threads of a block, rows it works on together, tight pairs of a row that are kept as they are counted."""
_SEARCH_BLOCK = 1024
_STRIPS = 64
"""Parts of the rows in which a column's least is looked for at once."""
_WIDTH = 8
"""Columns whose costs are fetched together; a block of a search takes a multiple of it."""


def row_extremes(costs, low, high, limit, team):  # noqa: ARG001
    """Least cost of each row, and its largest that is not above `limit`; see hungarian_cpu.row_extremes."""
    rows, cols = costs.shape
    _function("row_extremes", costs)(
        (rows,), (_BLOCK,), (costs, np.int64(rows), np.int64(cols), costs.dtype.type(limit), low, high)
    )


def column_reduction(costs, row_dual, col_dual, team):  # noqa: ARG001
    """The second part of Algorithm 1; see hungarian_cpu.column_reduction."""
    rows, cols = costs.shape
    strips = min(rows, _STRIPS)
    least = array_module(costs).empty((strips, cols), col_dual.dtype)
    _function("column_least", costs, row_dual)(
        (-(-cols // _BLOCK), strips), (_BLOCK,), (costs, np.int64(rows), np.int64(cols), row_dual, least)
    )
    col_dual[:] = least.min(axis=0)


def optimality_check(forest):
    """Algorithm 2; see hungarian_cpu.optimality_check."""
    rows, cols = len(forest.col_of_row), len(forest.row_of_col)
    forest.words.fill(0)
    arguments = (forest.col_of_row, np.int64(rows), np.int64(cols), forest.waiting, forest.end_of_root)
    launch(
        cuda_function(_STAGES, "optimality_check"),
        max(rows, cols),
        (*arguments, forest.claim, forest.covered, forest.words),
    )


def grow_trees(costs, forest, never, tie, team):  # noqa: ARG001
    """Algorithms 4 and 9 until a free column is reached; see hungarian_cpu.grow_trees."""
    rows, cols = costs.shape
    width = -(-cols // (processors() * _WIDTH)) * _WIDTH
    function = cuda_function(_SEARCH, "grow_trees", cooperative=True, options=_types(costs, forest.row_dual))
    shared = width * (3 * forest.row_dual.itemsize + 20)
    function.max_dynamic_shared_size_bytes = shared
    key = forest.row_dual.dtype.type
    function(
        (-(-cols // width),),
        (_SEARCH_BLOCK,),
        (
            *(costs, np.int64(rows), np.int64(cols), np.int32(width), key(never)),
            *(forest.row_dual, forest.col_dual, forest.row_of_col, forest.waiting),
            *(forest.entries, forest.bases, forest.row_before, forest.col_before),
            *(forest.col_root, forest.ends, forest.words),
        ),
        shared_mem=shared,
    )


def compress(costs, forest, tie, team):  # noqa: ARG001
    """Pairs without slack as CSR; see hungarian_cpu.compress."""
    xp = array_module(costs)
    rows, cols = costs.shape
    key = forest.row_dual.dtype.type
    fixed = (costs, np.int64(rows), np.int64(cols), forest.row_dual, forest.col_dual, key(tie))
    count, slots = xp.empty(rows, np.int64), xp.empty((rows, _SLOTS), np.int32)
    _function("count_tight", costs, forest.row_dual)((-(-rows // _ROWS),), (_BLOCK,), (*fixed, count, slots))
    indptr = xp.zeros(rows + 1, np.int64)
    xp.cumsum(count, out=indptr[1:])
    indices = xp.empty(int(indptr[-1]), np.int32)
    _function("fill_tight", costs, forest.row_dual)((rows,), (_BLOCK,), (*fixed, indptr, slots, indices))
    return indptr, indices


def forward_pass(indptr, indices, forest):
    """Algorithm 3 until no column is reached; see hungarian_cpu.forward_pass."""
    cuda_function(_SEARCH, "forward_pass", cooperative=True)(
        (processors(),),
        (_BLOCK,),
        (
            *(np.int64(len(forest.col_of_row)), indptr, indices, forest.row_of_col, forest.waiting),
            *(forest.claim, forest.gathered, forest.joined, forest.row_before, forest.roots),
            *(forest.col_before, forest.col_root, forest.ends, forest.covered, forest.words),
        ),
    )


def dual_update(costs, forest, never, team):  # noqa: ARG001
    """Algorithms 7 and 8; see hungarian_cpu.dual_update."""
    rows, cols = costs.shape
    key = forest.row_dual.dtype.type
    duals = (forest.row_dual, forest.col_dual)
    _function("least_slack", costs, forest.row_dual)(
        (-(-rows // _ROWS),),
        (_BLOCK,),
        (costs, np.int64(cols), *duals, forest.covered, forest.joined, forest.words),
    )
    launch(
        _function("shift_duals", costs, forest.row_dual),
        rows,
        (*duals, forest.col_of_row, forest.joined, key(never), forest.words),
    )


def reverse_pass(forest):
    """Algorithm 5; see hungarian_cpu.reverse_pass."""
    arguments = (forest.ends, forest.col_root, forest.end_of_root, forest.words)
    launch(cuda_function(_STAGES, "reverse_pass"), len(forest.row_of_col), arguments)


def augmentation_pass(forest, team):  # noqa: ARG001
    """Algorithm 6; see hungarian_cpu.augmentation_pass."""
    trees = (forest.ends, forest.col_root, forest.end_of_root, forest.row_before, forest.col_before)
    matching = (forest.col_of_row, forest.row_of_col)
    launch(
        cuda_function(_STAGES, "augmentation_pass"), len(forest.row_of_col), (*trees, *matching, forest.words)
    )


def _function(name, *arrays):
    return cuda_function(_STAGES, name, options=_types(*arrays))


def _types(*arrays):
    """Types of costs and keys, for the compiler."""
    return tuple(
        f"-D{name}={array.dtype.str[1:]}" for name, array in zip(("COST", "KEY"), arrays, strict=False)
    )
