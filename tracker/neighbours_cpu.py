"""CPU kernel of neighbours: a cell list of the points asked, searched shell by shell around each who asks.

Without the GIL, so that threads may run it on different frames; no result depends on their order.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit

_A_CELL = 12.0  # neighbours asked for each point in a cell
_ROUNDED = 1 - 1e-9  # walls are known but for rounding


@njit(nogil=True, cache=True)
def _grid(position, start, stop, a_cell, low, size):  # pragma: no cover
    """Edge of cubic cells that hold about a_cell points each; low (3,) f8 and size (3,) i8 are written."""
    axes = position.shape[1]
    extent = np.zeros(3)
    low[:] = 0.0
    for k in range(axes):
        low[k] = position[start:stop, k].min()
        extent[k] = position[start:stop, k].max() - low[k]
    edge = extent.max()
    size[:] = 1
    if edge == 0:
        return 1.0
    most = (stop - start) / a_cell
    while True:
        smaller, cells = edge * 0.8, 1.0
        for k in range(3):
            cells *= np.floor(extent[k] / smaller) + 1
        if cells > most:
            break
        edge = smaller
    for k in range(3):
        size[k] = np.int64(extent[k] / edge) + 1
    return edge


@njit(nogil=True, cache=True)
def _insert(j, d2, found, id_of, square):  # pragma: no cover
    """Put a neighbour in its place among those found so far, nearest first; returns how many there are."""
    if found < len(id_of):
        found += 1
    elif d2 >= square[found - 1]:
        return found
    place = found - 1
    while place > 0 and square[place - 1] > d2:
        square[place], id_of[place] = square[place - 1], id_of[place - 1]
        place -= 1
    square[place], id_of[place] = d2, j
    return found


@njit(nogil=True, cache=True)
def nearest_of_rows(first, last, rows, frame_start, position, offset, near, distance2):  # pragma: no cover
    """Neighbours of the points rows[first:last] among those of the frames `offset` later.

    rows (M,) i8 ascending; frame_start (F+1,) i8; position (N, A) f8. Written: near (M, K) i4, distance2
    (M, K) f8, nearest first.
    """
    axes, count = position.shape[1], near.shape[1]
    low, size = np.empty(3), np.empty(3, np.int64)
    cell, middle = np.zeros(3, np.int64), np.zeros(3)
    id_of, square = np.empty(count, np.int64), np.empty(count)
    next_frame = first
    while next_frame < last:
        begun, frame = next_frame, np.searchsorted(frame_start, rows[next_frame], side="right") - 1
        next_frame += np.searchsorted(rows[begun:last], frame_start[frame + 1])
        start, stop = frame_start[frame + offset], frame_start[frame + offset + 1]
        if start == stop:
            continue
        edge = _grid(position, start, stop, 1 + count / _A_CELL, low, size)
        begin = np.zeros(size[0] * size[1] * size[2] + 1, np.int64)
        key = np.empty(stop - start, np.int64)
        for j in range(start, stop):
            c = np.int64(0)
            for k in range(3):
                at = np.int64((position[j, k] - low[k]) / edge) if k < axes else np.int64(0)
                c = c * size[k] + min(at, size[k] - 1)
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
        farthest = max(size[0], size[1], size[2])
        for asking in range(begun, next_frame):
            i = rows[asking]
            for k in range(axes):
                middle[k] = position[i, k]
                cell[k] = np.int64(min(max((middle[k] - low[k]) / edge, 0.0), size[k] - 1.0))
            found, shell = 0, 0
            while shell < farthest:
                for turn in range(2 * shell + 1):
                    # From the middle outwards, so that what is far is soon known to be too far.
                    z = cell[0] + ((turn + 1) // 2 if turn % 2 else -(turn // 2))
                    if z < 0 or z >= size[0]:
                        continue
                    for y_turn in range(2 * shell + 1):
                        y = cell[1] + ((y_turn + 1) // 2 if y_turn % 2 else -(y_turn // 2))
                        if y < 0 or y >= size[1]:
                            continue
                        row = (z * size[1] + y) * size[2]
                        z_gap = max(low[0] + z * edge - middle[0], middle[0] - low[0] - (z + 1) * edge, 0.0)
                        y_gap = max(low[1] + y * edge - middle[1], middle[1] - low[1] - (y + 1) * edge, 0.0)
                        if found == count and (z_gap**2 + y_gap**2) * _ROUNDED > square[count - 1]:
                            continue
                        # Inside the shell a row has but its two ends left.
                        inner = abs(z - cell[0]) < shell and abs(y - cell[1]) < shell
                        for end in range(2 if inner else 1):
                            left, right = cell[2] - shell, cell[2] + shell
                            if inner and end == 0:
                                right = left
                            elif inner:
                                left = right
                            left, right = max(left, 0), min(right, size[2] - 1)
                            if left > right:
                                continue
                            for m in range(begin[row + left], begin[row + right + 1]):
                                z2, y2 = point[m, 0] - middle[0], point[m, 1] - middle[1]
                                x2 = point[m, 2] - middle[2]
                                d2 = z2 * z2 + y2 * y2 + x2 * x2
                                if (found < count or d2 < square[count - 1]) and member[m] != i:
                                    found = _insert(member[m], d2, found, id_of, square)
                if found == count:
                    # What is not searched yet lies beyond the walls of the cells that are.
                    wall = np.inf
                    for k in range(axes):
                        if cell[k] - shell > 0:
                            wall = min(wall, middle[k] - low[k] - (cell[k] - shell) * edge)
                        if cell[k] + shell < size[k] - 1:
                            wall = min(wall, low[k] + (cell[k] + shell + 1) * edge - middle[k])
                    if square[count - 1] <= wall * wall * _ROUNDED:
                        break
                shell += 1
            for place in range(found):
                near[asking, place], distance2[asking, place] = id_of[place], square[place]
