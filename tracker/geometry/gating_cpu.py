"""CPU kernels of gating: cell keys, a radix sort, and a sweep over neighbouring cells.

Every kernel releases the GIL, so that several threads can run it on different rows at the same time.
Results do not depend on the order of threads, because every call writes its own rows.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ..compute.kernels import inner_kernel, kernel
from ..compute.threads import in_threads

_DIGIT = 11  # bits a radix pass: 2048 counters stay in the first-level cache


@kernel
def _sort_cells(point, block_start, origin, inverse_edge, size, order, key, sorted_point):  # pragma: no cover
    """Sort the points of every block by the linear index of their cell; equal cells keep their order.

    point (N, 3) f8; block_start (B+1,) i8; origin, inverse_edge (3,) f8; size (3,) i8 cells an axis.
    Written: order (N,) i4 given row of each sorted one; key (N,) i8 sorted; sorted_point (3, N) f8.
    """
    count = len(point)
    raw = np.empty(count, np.int64)
    for i in range(count):
        cell = np.int64(0)
        for axis in range(3):
            c = np.int64((point[i, axis] - origin[axis]) * inverse_edge[axis])
            # One empty cell at either end keeps the neighbours of a border cell from wrapping around.
            cell = cell * size[axis] + min(max(c, 0), size[axis] - 3) + 1
        raw[i] = cell
        order[i] = i
    bits = 0
    last = size[0] * size[1] * size[2]
    while last >> bits:
        bits += 1
    spare = np.empty(count, np.int32)
    counter = np.empty(1 << _DIGIT, np.int64)
    source, target = order, spare
    for shift in range(0, bits, _DIGIT):
        for b in range(len(block_start) - 1):
            start, stop = block_start[b], block_start[b + 1]
            if start == stop:  # there may be millions of them
                continue
            counter[:] = 0
            for i in range(start, stop):
                counter[(raw[source[i]] >> shift) & ((1 << _DIGIT) - 1)] += 1
            total = start
            for d in range(1 << _DIGIT):
                counter[d], total = total, total + counter[d]
            for i in range(start, stop):
                row = source[i]
                d = (raw[row] >> shift) & ((1 << _DIGIT) - 1)
                target[counter[d]] = row
                counter[d] += 1
        source, target = target, source
    for i in range(count):
        row = source[i]
        order[i] = row  # harmless where source is order itself
        key[i] = raw[row]
        for axis in range(3):
            sorted_point[axis, i] = point[row, axis]


@inner_kernel
def _first_not_below(key, start, stop, value):  # pragma: no cover
    """First index in [start, stop) whose key is at least value; fast when it is near start."""
    step = 1
    low = start
    while low + step <= stop and key[low + step - 1] < value:
        low += step
        step *= 2
    high = min(low + step, stop)
    while low < high:
        middle = (low + high) // 2
        if key[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inner_kernel
def _neighbour_ranges(cell, size, key, stop, begin, end):  # pragma: no cover
    """Move the nine ranges of sorted columns around a cell (three cells along x each) to that cell.

    Row points are processed in the order of their grid cells, so each range of column points only moves
    forward.
    """
    r = 0
    for dz in range(-1, 2):
        for dy in range(-1, 2):
            middle = cell + (dz * size[1] + dy) * size[2]
            begin[r] = _first_not_below(key, begin[r], stop, middle - 1)
            end[r] = _first_not_below(key, max(begin[r], end[r]), stop, middle + 2)
            r += 1


@kernel
def _count_pairs(
    first, last, row_point, row_key, row_start, col_point, col_key, col_start, size, offsets, radius2, count
):  # pragma: no cover
    """Columns within the radius of each of the rows first..last-1.

    row_point (3, R), col_point (3, C) f8 sorted by cell; row_key, col_key their cells; row_start,
    col_start (B+1,) i8 blocks; offsets (2,) i8: blocks b+offsets[0] .. b+offsets[1] are compared.
    Written: count (R,) i8, rows first..last-1.
    """
    begin, end = np.empty(9, np.int64), np.empty(9, np.int64)
    blocks = len(row_start) - 1
    for b in range(blocks):
        row_first, row_last = max(first, row_start[b]), min(last, row_start[b + 1])
        if row_first >= row_last:
            continue
        count[row_first:row_last] = 0
        for t in range(max(b + offsets[0], 0), min(b + offsets[1] + 1, blocks)):
            begin[:] = col_start[t]
            end[:] = col_start[t]
            cell = np.int64(-1)
            for i in range(row_first, row_last):
                if row_key[i] != cell:
                    cell = row_key[i]
                    _neighbour_ranges(cell, size, col_key, col_start[t + 1], begin, end)
                z, y, x = row_point[0, i], row_point[1, i], row_point[2, i]
                found = 0
                for r in range(9):
                    for j in range(begin[r], end[r]):
                        dz, dy, dx = col_point[0, j] - z, col_point[1, j] - y, col_point[2, j] - x
                        found += dz * dz + dy * dy + dx * dx <= radius2
                count[i] += found


@kernel
def _fill_pairs(
    first,
    last,
    row_point,
    row_key,
    row_start,
    col_point,
    col_key,
    col_start,
    size,
    offsets,
    radius2,
    indptr,
    indices,
    distance2,
):  # pragma: no cover
    """The pairs that _count_pairs counted, as CSR; arguments as there.

    indptr (R+1,) i8. Written for rows first..last-1: indices (P,) i4, distance2 (P,) f8.
    """
    begin, end = np.empty(9, np.int64), np.empty(9, np.int64)
    blocks = len(row_start) - 1
    room = 0
    for i in range(first, last):
        room = max(room, indptr[i + 1] - indptr[i])
    # One slot more than any row needs: a pair that is out of reach is written there and forgotten.
    near, near2 = np.empty(room + 1, np.int32), np.empty(room + 1)
    used = np.zeros(last - first, np.int64)
    for b in range(blocks):
        row_first, row_last = max(first, row_start[b]), min(last, row_start[b + 1])
        if row_first >= row_last:
            continue
        for t in range(max(b + offsets[0], 0), min(b + offsets[1] + 1, blocks)):
            begin[:] = col_start[t]
            end[:] = col_start[t]
            cell = np.int64(-1)
            for i in range(row_first, row_last):
                if row_key[i] != cell:
                    cell = row_key[i]
                    _neighbour_ranges(cell, size, col_key, col_start[t + 1], begin, end)
                z, y, x = row_point[0, i], row_point[1, i], row_point[2, i]
                found = 0
                for r in range(9):
                    for j in range(begin[r], end[r]):
                        dz, dy, dx = col_point[0, j] - z, col_point[1, j] - y, col_point[2, j] - x
                        d2 = dz * dz + dy * dy + dx * dx
                        near[found] = j
                        near2[found] = d2
                        found += d2 <= radius2
                start = indptr[i] + used[i - first]
                for k in range(found):
                    indices[start + k] = near[k]
                    distance2[start + k] = near2[k]
                used[i - first] += found


def sort_by_cell(rows, cols, row_start, col_start, least_edge, most, workers):
    """Sort two point clouds by grid cell; returns the sorted points and the grid over both clouds.

    rows (R, 3), cols (C, 3) f8; row_start, col_start (B+1,) i8; cells are at least least_edge wide, at most
    `most` along an axis. Returns of rows and of columns order (N,) i4, key (N,) i8 and sorted point
    (3, N) f8, and what count_pairs and fill_pairs need to know of the cells.
    """
    # Column by column: NumPy is ten times slower along the first axis of a narrow array.
    corners = [
        [limit(column) for column in cloud.T]
        for cloud in ((rows,) if rows is cols else (rows, cols))
        if len(cloud)
        for limit in (np.min, np.max)
    ]
    corners = corners or np.zeros((2, 3))
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    edge = np.maximum(least_edge, (high - low) / (most - 4))
    edge = np.where(edge > 0, edge, 1.0)
    size = ((high - low) / edge).astype(np.int64) + 3

    def sort(given):
        point, start = given
        order, key = np.empty(len(point), np.int32), np.empty(len(point), np.int64)
        sorted_point = np.empty((3, len(point)))
        _sort_cells(np.ascontiguousarray(point), start, low, 1 / edge, size, order, key, sorted_point)
        return order, key, sorted_point

    if rows is cols and row_start is col_start:
        return *[sort((rows, row_start))] * 2, size
    return *in_threads(sort, [(rows, row_start), (cols, col_start)], workers), size


def count_pairs(rows, cols, cells, offsets, radius2, workers):
    """Index of the first pair of each row point, (R + 1,) i8; rows, cols are gating.Cloud."""
    indptr = np.zeros(len(rows) + 1, np.int64)
    if not len(cols):
        return indptr
    reach = _reach(rows, cols, cells, offsets, radius2)
    list(in_threads(lambda run: _count_pairs(*run, *reach, indptr[1:]), _runs(len(rows), workers), workers))
    return np.cumsum(indptr, out=indptr)


def fill_pairs(rows, cols, cells, offsets, radius2, workers, indptr, pairs):
    """Indices (P,) i4 and squared distances (P,) f8 of the pairs counted, indptr (R+1,) i8."""
    indices, distance2 = np.empty(pairs, np.int32), np.empty(pairs)
    if not pairs:
        return indices, distance2
    reach = (*_reach(rows, cols, cells, offsets, radius2), indptr, indices, distance2)
    list(in_threads(lambda run: _fill_pairs(*run, *reach), _runs(len(rows), workers), workers))
    return indices, distance2


def _reach(rows, cols, size, offsets, radius2):
    """Arguments that the kernels for counting and for filling pairs share."""
    clouds = (rows.point, rows.key, rows.block_start, cols.point, cols.key, cols.block_start)
    return (*clouds, size, np.array(offsets, np.int64), radius2)


def _runs(count, workers):
    """Divide the indices 0..count into one range for each worker thread."""
    bounds = np.linspace(0, count, max(1, workers) + 1).astype(int).tolist()
    return list(zip(bounds[:-1], bounds[1:], strict=True))
