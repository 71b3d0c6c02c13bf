"""CPU kernel of neighbour search: a list of points by grid cell, searched within a ball around each query.

The kernel releases the GIL, so that several threads can run it on different frames; results do not depend
on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ..compute.kernels import inner_kernel, kernel

_A_CELL = 12.0  # neighbours asked for each point in a cell
_ROOM, _GROWN = 1.5, 1.6  # of a ball for one neighbour; and of the square of a radius, where it held too few
_ROUNDED = 1 + 1e-9  # walls are known but for rounding
_MANY, _LOOKED, _STRAY = 500, 64, 32  # in frames of so many: so many show where all are, but one in so many


@inner_kernel
def _looked_at(position, start, stop, k):  # pragma: no cover
    """Coordinates along an axis of some of the points start:stop, ascending: an insertion sort."""
    # np.sort, and an array assigned to a slice, each take a second to compile.
    stride = (stop - start) // _LOOKED
    some = np.empty((stop - start - 1) // stride + 1)
    for a in range(len(some)):
        value, place = position[start + a * stride, k], a
        while place > 0 and some[place - 1] > value:
            some[place] = some[place - 1]
            place -= 1
        some[place] = value
    return some


@inner_kernel
def _grid(position, start, stop, a_cell, low, size):  # pragma: no cover
    """Edge of cubic cells that hold about a_cell points each; low (3,) f8 and size (3,) i8 are written.

    Grid cells at the border also hold all points beyond the border, because a grid that included a few
    far points would have one cell for all other points.
    """
    extent = np.zeros(3)
    for k in range(position.shape[1]):
        low[k], high = np.inf, -np.inf
        for j in range(start, stop):
            low[k], high = min(low[k], position[j, k]), max(high, position[j, k])
        if stop - start > _MANY:
            some = _looked_at(position, start, stop, k)
            first, last = some[len(some) // _STRAY], some[-1 - len(some) // _STRAY]
            if last > first:
                low[k], high = max(low[k], 2 * first - last), min(high, 2 * last - first)
        extent[k] = high - low[k]
    edge = max(extent[0], extent[1], extent[2])
    size[0], size[1], size[2] = 1, 1, 1
    if edge == 0:
        return 1.0
    most = (stop - start) / a_cell
    while True:
        smaller, cells = edge * 0.8, 1.0
        for k in range(3):
            cells *= np.floor(extent[k] / smaller) + 1
        if cells > most or smaller == edge:
            break
        edge = smaller
    for k in range(3):
        size[k] = np.int64(extent[k] / edge) + 1
    return edge


@inner_kernel
def _sorted(position, start, stop, low, edge, size):  # pragma: no cover
    """The points start:stop by cells: begin (cells+1,) i8, their rows (n,) i8 and places (n, 3) f8."""
    axes = position.shape[1]
    begin = np.zeros(size[0] * size[1] * size[2] + 1, np.int64)
    key = np.empty(stop - start, np.int64)
    for j in range(start, stop):
        c = np.int64(0)
        for k in range(3):
            at = min(max((position[j, k] - low[k]) / edge, 0.0), size[k] - 1.0) if k < axes else 0.0
            c = c * size[k] + np.int64(at)
        key[j - start] = c
        begin[c + 1] += 1
    for c in range(len(begin) - 1):
        begin[c + 1] += begin[c]
    member, filled = np.empty(stop - start, np.int64), begin.copy()
    point = np.zeros((stop - start, 3))
    for j in range(start, stop):
        to = filled[key[j - start]]
        filled[key[j - start]] += 1
        member[to] = j
        for k in range(axes):
            point[to, k] = position[j, k]
    return begin, member, point


@inner_kernel
def _reached(at, reach, edge, size):  # pragma: no cover
    """First and last grid cell, along an axis, within a distance from a point."""
    first = min(max((at - reach) / edge, 0.0), size - 1.0)
    return np.int64(first), np.int64(min(max((at + reach) / edge, 0.0), size - 1.0))


@inner_kernel
def _gap(at, cell, edge, size):  # pragma: no cover
    """Distance along an axis from a point to a grid cell; cells at the border extend to infinity."""
    before = cell * edge - at if cell > 0 else 0.0
    return max(before, at - (cell + 1) * edge if cell < size - 1 else 0.0, 0.0)


@inner_kernel
def _within(reach2, middle, low, edge, size, begin, point, who, square):  # pragma: no cover
    """Find the points within a radius; returns their number, and whether there are no other points.

    Written: who (found,) i8 the places in the cell list, square (found,) f8 the squared distances.
    """
    found, reach, at = 0, math.sqrt(reach2), (middle[0] - low[0], middle[1] - low[1], middle[2] - low[2])
    z_first, z_last = _reached(at[0], reach, edge, size[0])
    y_first, y_last = _reached(at[1], reach, edge, size[1])
    x_first, x_last = _reached(at[2], reach, edge, size[2])
    everyone = z_first + y_first + x_first == 0
    everyone &= z_last + y_last + x_last == size[0] + size[1] + size[2] - 3
    most = np.inf if everyone else reach2
    mid_z, mid_y, mid_x = middle[0], middle[1], middle[2]
    for z in range(z_first, z_last + 1):
        z_gap = _gap(at[0], z, edge, size[0])
        for y in range(y_first, y_last + 1):
            y_gap = _gap(at[1], y, edge, size[1])
            if z_gap * z_gap + y_gap * y_gap > most * _ROUNDED:
                continue
            row = (z * size[1] + y) * size[2]
            for m in range(begin[row + x_first], begin[row + x_last + 1]):
                dz, dy, dx = point[m, 0] - mid_z, point[m, 1] - mid_y, point[m, 2] - mid_x
                d2 = dz * dz + dy * dy + dx * dx
                # Without a branch: the next one writes over a point that is too far.
                who[found], square[found] = m, d2
                found += d2 <= most
    return found, everyone


@inner_kernel
def _in_order(square, found, order, slot):  # pragma: no cover
    """Write order (found,) i8: points sorted by distance, in bins; the order within a bin is arbitrary."""
    low, high = np.inf, 0.0
    for a in range(found):
        low, high = min(low, square[a]), max(high, square[a])
    if not 1e-300 < high - low < np.inf:  # all equal, or not finite
        for a in range(found):
            order[a] = a
        return
    for a in range(found + 1):
        slot[a] = 0
    scale = (found - 0.5) / (high - low)
    for a in range(found):
        slot[np.int64((square[a] - low) * scale) + 1] += 1
    for a in range(found):
        slot[a + 1] += slot[a]
    for a in range(found):
        part = np.int64((square[a] - low) * scale)
        order[slot[part]] = a
        slot[part] += 1


@inner_kernel
def _take(i, order, found, member, who, square, near, distance2):  # pragma: no cover
    """Write the nearest points other than point i, nearest first: near (K,) i4, distance2 (K,) f8."""
    taken = 0
    for n in range(found):
        j, d2 = member[who[order[n]]], square[order[n]]
        if j == i or (taken == len(near) and d2 >= distance2[taken - 1]):
            continue
        place = min(taken, len(near) - 1)
        taken = place + 1
        while place > 0 and distance2[place - 1] > d2:
            distance2[place], near[place] = distance2[place - 1], near[place - 1]
            place -= 1
        distance2[place], near[place] = d2, j


@kernel
def nearest_of_rows(
    first, last, rows, frame_start, position, offset, within, near, distance2
):  # pragma: no cover
    """Neighbours of the points rows[first:last] among those of the frames `offset` later.

    rows (M,) i8 ascending; frame_start (F+1,) i8; position (N, A) f8; within, the largest distance sought.
    Written: near (M, K) i4, distance2 (M, K) f8, nearest first.
    """
    axes, count = position.shape[1], near.shape[1]
    low, size, middle = np.zeros(3), np.empty(3, np.int64), np.zeros(3)
    # A ball that was just right for the one before mostly holds enough if it is so much larger.
    larger, enough = 1 + _ROOM / math.sqrt(count), count + (offset == 0)
    next_frame, frame = first, 0
    while next_frame < last:
        begun = next_frame
        while frame_start[frame + 1] <= rows[begun]:
            frame += 1
        while next_frame < last and rows[next_frame] < frame_start[frame + 1]:
            next_frame += 1
        start, stop = frame_start[frame + offset], frame_start[frame + offset + 1]
        if start == stop:
            continue
        edge = _grid(position, start, stop, 1 + count / _A_CELL, low, size)
        begin, member, point = _sorted(position, start, stop, low, edge, size)
        who, square = np.empty(stop - start + 1, np.int64), np.empty(stop - start + 1)
        order, slot = np.empty(stop - start, np.int64), np.empty(stop - start + 1, np.int64)
        just2 = max(edge * edge, 1e-300)
        for asking in range(begun, next_frame):
            for k in range(axes):
                middle[k] = position[rows[asking], k]
            reach2 = min(larger * just2, within * within)
            found, everyone = _within(reach2, middle, low, edge, size, begin, point, who, square)
            while found < enough and not everyone and reach2 < within * within:
                reach2 = min(reach2 * _GROWN, within * within)
                found, everyone = _within(reach2, middle, low, edge, size, begin, point, who, square)
            _in_order(square, found, order, slot)
            _take(rows[asking], order, found, member, who, square, near[asking], distance2[asking])
            if 0 < distance2[asking, count - 1] < np.inf:
                just2 = distance2[asking, count - 1]
