"""CPU kernels of `hungarian`; numbers refer to the algorithms of Date & Nagi.

No result depends on the order or number of threads. In each stage, every thread works on separate rows or
columns. If several rows reach a column with the same slack, the first row after the index of the column is
chosen.

Shapes: costs (R,C) of i4, i8, f4 or f8, R <= C, C-contiguous; duals and slacks of one type, i4 or i8 for
integer costs and f8 for real ones; `never` is above every slack, `tie` the largest slack that counts as zero.
For the arrays of a `Forest`, see hungarian.py.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import time

import numpy as np

from ...compute.kernels import kernel
from ..matrix_cpu import STRIDE, least_above

_MANY = 1 << 17
"""Number of costs below which a stage uses one thread: each costs 1 ns, waking eight threads .1 ms."""
_OPEN, _COVERED, _REACHED = 0, 1, 2


def row_extremes(costs, low, high, limit, team):
    """Least cost of each row, and its largest cost up to `limit`. Written: low, high (R,)."""
    in_parts(_row_extremes, len(low), costs.size, team, costs, low, high, limit)


def column_reduction(costs, row_dual, col_dual, team):
    """Second part of Algorithm 1: the least reduced cost of each column. Written: col_dual (C,)."""
    in_parts(_column_reduction, len(col_dual), costs.size, team, costs, row_dual, col_dual)


def optimality_check(forest):
    """Algorithm 2: list the unassigned rows and delete all trees. words[0]: their number."""
    waiting = np.nonzero(forest.col_of_row < 0)[0]
    forest.words[:] = 0
    forest.words[0] = len(waiting)
    forest.waiting[: len(waiting)] = waiting
    forest.end_of_root[waiting] = np.iinfo(np.int32).max
    forest.claim.fill(np.iinfo(np.int64).max)
    forest.covered.fill(False)


def grow_trees(costs, forest, never, tie, team):
    """Algorithms 4 and 9: grow trees from all unassigned rows until one reaches a free column.

    Stored slacks are not changed by dual updates; `level` is the sum of these updates. Written: duals, ends
    and predecessors; words: 1 ends, 3 passes over a frontier, 4 dual updates, 5 rows scanned, 6 and 7 time of
    search and of updates.
    """
    cols, dtype, words, far = costs.shape[1], forest.col_dual.dtype, forest.words, far_of(never)
    level, first, last = dtype.type(0), 0, int(words[0])
    forest.joined[:last] = forest.roots[:last] = forest.waiting[:last]
    forest.bases[:last] = forest.row_dual[forest.waiting[:last]]
    trees = (forest.joined, forest.roots, forest.bases)
    slack, state, found_in = np.full(cols, never, dtype), np.zeros(cols, np.int8), np.zeros(cols, np.int64)
    # Bound for a quick check of a stride of costs; `tie` covers its rounding.
    bar = np.full(cols, far, dtype)
    columns = (slack, state, forest.col_before, forest.col_root, found_in, bar)
    joining = (forest.row_of_col, forest.row_dual, forest.row_before, forest.ends, words)
    most = _MANY if team.size > 1 else costs.size
    every, near = np.arange(cols), np.zeros(cols, bool)
    while True:
        start = time.perf_counter_ns()
        while first < last:
            first, last = _passes(
                costs, trees, columns, forest.col_dual, tie, far, joining, level, first, last, most, every
            )
            if first < last:
                words[3] += 1
                part = (costs, trees, columns, forest.col_dual, tie, first, last, words[3], level, near)
                in_parts(_scan_for_near, cols, (last - first) * cols, team, *part)
                first, last = last, _join(trees, columns, far, joining, level, last, np.flatnonzero(near))
        after = time.perf_counter_ns()
        words[6] += after - start
        least = never if words[1] else _least_open(slack, state, never)
        if least >= never:
            break
        level = dtype.type(max(level, least))
        words[4] += 1
        last = _join(trees, columns, far, joining, level, last, every)
        words[7] += time.perf_counter_ns() - after
    words[5] = last
    if words[1]:
        covered = state == _COVERED
        forest.col_dual[covered] -= level - slack[covered]
        forest.row_dual[forest.joined[:last]] = forest.bases[:last] + level


def compress(costs, forest, tie, team):
    """Pairs with zero slack as CSR: indptr (R+1,) i8, indices (P,) i4."""
    indptr = np.zeros(len(costs) + 1, np.int64)
    duals = (forest.row_dual, forest.col_dual, tie)
    in_parts(_count_tight, len(costs), costs.size, team, costs, *duals, indptr[1:])
    np.cumsum(indptr, out=indptr)
    indices = np.empty(indptr[-1], np.int32)
    in_parts(_fill_tight, len(costs), costs.size, team, costs, *duals, indptr, indices)
    return indptr, indices


def forward_pass(indptr, indices, forest):
    """Algorithm 3: breadth-first search along pairs with zero slack until it reaches no further columns.

    Written: predecessors, ends, joined rows, covered columns; words: 1 ends, 3 levels, 5 rows, 9 columns.
    """
    _forward_pass(
        *(indptr, indices, forest.row_of_col, forest.waiting, forest.claim, forest.gathered, forest.joined),
        *(forest.row_before, forest.roots, forest.col_before, forest.col_root, forest.ends, forest.covered),
        forest.words,
    )


def dual_update(costs, forest, never, team):
    """Algorithms 7 and 8: add the least uncovered slack to joined rows, subtract it from their columns."""
    joined = forest.joined[: forest.words[5]]
    duals = (forest.row_dual, forest.col_dual)
    shift_duals(forest, least_uncovered(costs, duals, forest.covered, joined, never, team), never)


def least_uncovered(costs, duals, covered, joined, never, team):
    """Algorithm 7: the least slack between joined rows and uncovered columns, or `never`."""
    least = np.full(len(joined), never, duals[0].dtype)
    arrays = (costs, *duals, covered, joined, least)
    in_parts(_least_slack, len(joined), len(joined) * costs.shape[1], team, *arrays)
    return least.min(initial=never)


def shift_duals(forest, least, never):
    """Algorithm 8: add the least slack to duals of joined rows, subtract it from duals of their columns."""
    if least < never:
        joined = forest.joined[: forest.words[5]]
        forest.words[4] = 1
        forest.row_dual[joined] += least
        held = forest.col_of_row[joined]
        forest.col_dual[held[held >= 0]] -= least


def reverse_pass(forest):
    """Algorithm 5: each tree keeps the first free column that it reached. Written: end_of_root."""
    ends = forest.ends[: forest.words[1]]
    np.minimum.at(forest.end_of_root, forest.col_root[ends], ends)


def augmentation_pass(forest, team):
    """Algorithm 6: augment along the path of each tree that found one. words[2]: their number."""
    ends = forest.ends[: forest.words[1]]
    # Each tree has one end, so the paths share no row or column.
    ends = ends[forest.end_of_root[forest.col_root[ends]] == ends]
    forest.words[2] = len(ends)
    trees = (forest.col_root, forest.row_before, forest.col_before)
    pairs = (forest.col_of_row, forest.row_of_col)
    in_parts(_augmentation_pass, len(ends), len(ends), team, ends, *trees, *pairs)


def in_parts(kernel, length, work, team, *arrays):
    """Run a kernel on blocks of rows or columns, in several threads if there is enough work."""
    count = min(team.size, length) if work > _MANY else 1
    bounds = [length * k // count for k in range(count + 1)]
    team.do(lambda block: kernel(*arrays, *block), list(zip(bounds[:-1], bounds[1:], strict=True)))


def far_of(never):
    """A bound above every cost; its negative is below every cost."""
    if never == np.iinfo(np.int32).max:
        return np.int32(2**30)
    return np.float64(1.5e300) if np.isinf(never) else never


@kernel
def after(row, col, rows):  # pragma: no cover
    """Cyclic distance of a row from the index of a column, as an unsigned 32-bit number."""
    return (row - (col if col < rows else col % rows)) & 0xFFFFFFFF


@kernel
def _row_extremes(costs, low, high, limit, first, last):  # pragma: no cover
    for i in range(first, last):
        row = costs[i]
        least, most = row[0], -limit
        for j in range(len(row)):
            least = min(least, row[j])
            if most < row[j] <= limit:
                most = row[j]
        low[i], high[i] = least, most


@kernel
def _column_reduction(costs, row_dual, col_dual, first, last):  # pragma: no cover
    for j in range(first, last):
        col_dual[j] = costs[0, j] - row_dual[0]
    for i in range(1, len(row_dual)):
        for j in range(first, last):
            left = col_dual.dtype.type(costs[i, j] - row_dual[i])
            col_dual[j] = left if left < col_dual[j] else col_dual[j]  # noqa: FURB136


@kernel
def scan(costs, offset, trees, columns, dual, tie, first, last, number, begin, end):  # pragma: no cover
    """Algorithm 4 for joined rows `first` to `last` and a block of columns that starts at column `offset`."""
    joined, roots, bases = trees
    slack, state, col_before, col_root, found_in, bar = columns
    rows = costs.shape[0]
    for k in range(first, last):
        i, base = joined[k], bases[k]
        row = costs[i]
        for start in range(begin, end, STRIDE):
            stop = min(start + STRIDE, end)
            if least_above(row[start:stop], bar[start:stop]) > base:
                continue
            for j in range(start, stop):
                if state[j] != _OPEN:
                    continue
                key = dual.dtype.type(row[j] - base - dual[j])
                if key < slack[j] or (
                    key == slack[j]
                    and found_in[j] == number
                    and after(i, offset + j, rows) < after(col_before[j], offset + j, rows)
                ):
                    slack[j], col_before[j], col_root[j], found_in[j] = key, i, roots[k], number
                    bar[j] = key + dual[j] + tie


@kernel
def _scan_for_near(
    costs, trees, columns, dual, tie, first, last, number, level, near, begin, end
):  # pragma: no cover
    """`scan`, then mark the columns with zero slack. Written: near (C,)."""
    scan(costs, 0, trees, columns, dual, tie, first, last, number, begin, end)
    for j in range(begin, end):
        near[j] = columns[1][j] == _OPEN and columns[0][j] <= level


@kernel
def _join(trees, columns, far, joining, level, last, some):  # pragma: no cover
    """Cover open columns with zero slack and let their rows join; free columns are listed as ends."""
    joined, roots, bases = trees
    slack, state, col_before, col_root, _, bar = columns
    row_of_col, row_dual, row_before, ends, words = joining
    for j in some:
        if state[j] != _OPEN or slack[j] > level:
            continue
        bar[j] = -far
        i = row_of_col[j]
        if i < 0:
            state[j] = _REACHED
            ends[words[1]] = j
            words[1] += 1
        else:
            state[j] = _COVERED
            joined[last], roots[last], bases[last] = i, col_root[j], row_dual[i] - slack[j]
            row_before[i] = col_before[j]
            last += 1
    return last


@kernel
def _passes(
    costs, trees, columns, dual, tie, far, joining, level, first, last, most, every
):  # pragma: no cover
    """Scan frontiers and let rows join, until none joins or the next frontier is worth several threads."""
    words = joining[4]
    while first < last and (last - first) * costs.shape[1] <= most:
        words[3] += 1
        scan(costs, 0, trees, columns, dual, tie, first, last, words[3], 0, costs.shape[1])
        first, last = last, _join(trees, columns, far, joining, level, last, every)
    return first, last


@kernel
def _least_open(slack, state, never):  # pragma: no cover
    least = never
    for j in range(len(slack)):
        if state[j] == _OPEN and slack[j] < least:
            least = slack[j]
    return least


@kernel
def _count_tight(costs, row_dual, col_dual, tie, count, first, last):  # pragma: no cover
    for i in range(first, last):
        row, found = costs[i], 0
        for j in range(len(row)):
            found += row_dual.dtype.type(row[j] - row_dual[i] - col_dual[j]) <= tie
        count[i] = found


@kernel
def _fill_tight(costs, row_dual, col_dual, tie, indptr, indices, first, last):  # pragma: no cover
    for i in range(first, last):
        row, p = costs[i], indptr[i]
        for start in range(0, len(row), STRIDE):
            if p == indptr[i + 1]:
                break
            stop = min(start + STRIDE, len(row))
            # Twice the tie, because this difference is rounded differently.
            if least_above(row[start:stop], col_dual[start:stop]) > row_dual[i] + 2 * tie:
                continue
            for j in range(start, stop):
                if row_dual.dtype.type(row[j] - row_dual[i] - col_dual[j]) <= tie:
                    indices[p] = j
                    p += 1


@kernel
def _forward_pass(
    indptr,
    indices,
    row_of_col,
    waiting,
    claim,
    gathered,
    joined,
    row_before,
    roots,
    col_before,
    col_root,
    ends,
    covered,
    words,
):  # pragma: no cover
    """A claim (C,) i8 combines the level at which a column was reached and the cyclic distance of the row."""
    rows, unclaimed = len(row_before), np.iinfo(np.int64).max
    count, level, first, last = words[0], 0, 0, words[0]
    while True:
        for k in range(first, last):
            if level == 0:
                i = waiting[k]
                root, joined[k] = i, i
            else:
                j = gathered[k]
                before = (claim[j] + (j if j < rows else j % rows)) & 0xFFFFFFFF
                i, root = row_of_col[j], roots[before]
                if i < 0:
                    ends[words[1]], col_before[j], col_root[j] = j, before, root
                    words[1] += 1
                    continue
                row_before[i], covered[j] = before, 1
                # Each gathered column has its row at the same index here, unless some columns are free.
                if count + k < rows:
                    joined[count + k] = i
            roots[i] = root
            for p in range(indptr[i], indptr[i + 1]):
                j = indices[p]
                key = level << 32 | after(i, j, rows)
                if claim[j] == unclaimed:
                    gathered[words[9]] = j
                    words[9] += 1
                if key < claim[j]:
                    claim[j] = key
        first, last = last if level else 0, words[9]
        if first == last:
            break
        level += 1
    words[3], words[5] = level + 1, count + last - words[1]


@kernel
def _least_slack(costs, row_dual, col_dual, covered, joined, least, first, last):  # pragma: no cover
    for k in range(first, last):
        i, lowest = joined[k], least[k]
        row = costs[i]
        for j in range(len(row)):
            slack = row_dual.dtype.type(row[j] - row_dual[i] - col_dual[j])
            if not covered[j] and slack < lowest:
                lowest = slack
        least[k] = lowest


@kernel
def _augmentation_pass(
    ends, col_root, row_before, col_before, col_of_row, row_of_col, first, last
):  # pragma: no cover
    for k in range(first, last):
        j = ends[k]
        root, i = col_root[j], col_before[j]
        while True:
            left = col_of_row[i]
            col_of_row[i], row_of_col[j] = j, i
            if i == root:
                break
            i, j = row_before[i], left
