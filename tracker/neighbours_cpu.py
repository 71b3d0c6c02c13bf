"""CPU kernel of neighbours: a cell list of the points asked, searched shell by shell around each who asks.

Without the GIL, so that threads may run it on different frames; no result depends on their order.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit

_A_CELL = 2  # points, in the mean


@njit(nogil=True, cache=True)
def _grid(position, start, stop, low, size):  # pragma: no cover
    """Edge of cubic cells that hold about _A_CELL points each; low (3,) f8 and size (3,) i8 are written."""
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
    most = (stop - start) / _A_CELL
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
def nearest_of_frames(
    first, last, frames, frame_start, position, offset, written, near, distance2
):  # pragma: no cover
    """Neighbours of all points of frames[first:last] among those of the frames `offset` later.

    frames (f,) i8; frame_start (F+1,) i8; position (N, A) f8; written (f+1,) i8: where the answers of
    each frame begin. Written: near (M, K) i4, distance2 (M, K) f8, nearest first.
    """
    axes, count = position.shape[1], near.shape[1]
    low, size = np.empty(3), np.empty(3, np.int64)
    cell, middle = np.empty(3, np.int64), np.zeros(3)
    for number in range(first, last):
        asking = frames[number]
        start, stop = frame_start[asking + offset], frame_start[asking + offset + 1]
        if start == stop:
            continue
        edge = _grid(position, start, stop, low, size)
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
        for j in range(start, stop):
            c = key[j - start]
            member[filled[c]] = j
            filled[c] += 1
        for i in range(frame_start[asking], frame_start[asking + 1]):
            out = written[number] + i - frame_start[asking]
            for k in range(axes):
                middle[k] = position[i, k]
                at = (middle[k] - low[k]) / edge
                cell[k] = np.int64(min(max(at, 0.0), size[k] - 1.0))
            for k in range(axes, 3):
                cell[k] = 0
            found, shell = 0, 0
            farthest = max(size[0], size[1], size[2])
            while shell < farthest:
                for z in range(max(cell[0] - shell, 0), min(cell[0] + shell, size[0] - 1) + 1):
                    for y in range(max(cell[1] - shell, 0), min(cell[1] + shell, size[1] - 1) + 1):
                        inner = abs(z - cell[0]) < shell and abs(y - cell[1]) < shell
                        step = 2 * shell if inner else 1
                        for x in range(cell[2] - shell, cell[2] + shell + 1, step):
                            if x < 0 or x >= size[2]:
                                continue
                            c = (z * size[1] + y) * size[2] + x
                            for m in range(begin[c], begin[c + 1]):
                                j = member[m]
                                if j == i:
                                    continue
                                d2 = 0.0
                                for k in range(axes):
                                    d = position[j, k] - middle[k]
                                    d2 += d * d
                                if found < count:
                                    found += 1
                                elif d2 >= distance2[out, count - 1]:
                                    continue
                                at_place = found - 1
                                while at_place > 0 and distance2[out, at_place - 1] > d2:
                                    distance2[out, at_place] = distance2[out, at_place - 1]
                                    near[out, at_place] = near[out, at_place - 1]
                                    at_place -= 1
                                distance2[out, at_place] = d2
                                near[out, at_place] = j
                # What the next shells hold is at least this many whole cells away.
                if found == count and distance2[out, count - 1] <= (shell * edge) ** 2:
                    break
                shell += 1
