"""CPU kernels of a response: its maxima, and the local scale of its noise.

Serial and without the GIL. `blocks`, `size`: the local noise scale, and voxels of a block.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ..compute.kernels import inner_kernel, kernel

_DEEPEST, _BINS = 8.0, 2048
"""Guard: standard deviations below 0 that a histogram resolves, and its bins."""


@inner_kernel
def at_place(values, position):  # pragma: no cover
    """A value at a position (3,) in voxels, linear between voxels; beyond the boundaries that at them."""
    low, away = np.empty(3, np.int64), np.empty(3)
    for axis in range(3):
        here = min(max(position[axis], 0.0), values.shape[axis] - 1.0)
        low[axis] = min(int(here), max(values.shape[axis] - 2, 0))
        away[axis] = here - low[axis]
    out = 0.0
    for a in range(2):
        for b in range(2):
            for c in range(2):
                weight = (away[0] if a else 1 - away[0]) * (away[1] if b else 1 - away[1])
                weight *= away[2] if c else 1 - away[2]
                if weight != 0.0:
                    out += weight * values[low[0] + a, low[1] + b, low[2] + c]
    return out


@kernel
def scales_at(blocks, size, position):  # pragma: no cover
    """Local noise scale (n,) at positions (n, 3) in voxels, linear between the middles of blocks."""
    out = np.empty(len(position))
    for i in range(len(position)):
        out[i] = at_place(blocks, (position[i] - (size - 1) / 2) / size)
    return out


@inner_kernel
def is_peak(values, sign, z, y, x):  # pragma: no cover
    """Whether no neighbour exceeds a voxel of sign · values; among equal neighbours, the first."""
    depth, height, width = values.shape
    top = sign * values[z, y, x]
    if (x > 0 and sign * values[z, y, x - 1] >= top) or (x < width - 1 and sign * values[z, y, x + 1] > top):
        return False
    for i in range(max(z - 1, 0), min(z + 2, depth)):
        for j in range(max(y - 1, 0), min(y + 2, height)):
            before = i < z or (i == z and j < y)
            if i == z and j == y:
                continue
            for k in range(max(x - 1, 0), min(x + 2, width)):
                other = sign * values[i, j, k]
                if other > top or (before and other == top):
                    return False
    return True


@kernel
def peaks_above(values, sign, low):  # pragma: no cover
    """Voxels (n, 3) of sign · values above `low` that no neighbour exceeds."""
    room, n, above = 64, 0, np.empty(values.shape[2], np.int64)
    out = np.empty((room, 3), np.int64)
    for z in range(values.shape[0]):
        for y in range(values.shape[1]):
            row, count = values[z, y], 0
            for x in range(len(row)):  # without a branch
                above[count] = x
                count += sign * row[x] > low
            for x in above[:count]:
                if is_peak(values, sign, z, y, x):
                    if n == room:
                        room *= 2
                        more = np.empty((room, 3), np.int64)
                        more[:n] = out
                        out = more
                    out[n, 0], out[n, 1], out[n, 2] = z, y, x
                    n += 1
    return out[:n].copy()


@kernel
def vertices(values, sign, voxel):  # pragma: no cover
    """Positions (n, 3) and heights (n,) of maxima between voxels, by a parabola along each axis."""
    position, height = voxel.astype(np.float64), np.empty(len(voxel))
    for i in range(len(voxel)):
        at = (voxel[i, 0], voxel[i, 1], voxel[i, 2])
        top = float(sign * values[at])
        height[i] = top
        for axis in range(3):
            n = values.shape[axis]
            if n < 3:
                continue
            low, high = max(at[axis] - 1, 0), min(at[axis] + 1, n - 1)
            if axis == 0:
                below, above = values[low, at[1], at[2]], values[high, at[1], at[2]]
            elif axis == 1:
                below, above = values[at[0], low, at[2]], values[at[0], high, at[2]]
            else:
                below, above = values[at[0], at[1], low], values[at[0], at[1], high]
            below, above = float(sign * below), float(sign * above)
            shift = min(max((above - below) / max(2 * (2 * top - below - above), 1e-9), -0.5), 0.5)
            position[i, axis] = min(max(at[axis] + shift, 0.0), n - 1.0)
            height[i] += shift * (above - below) / 4
    return position, height


@inner_kernel
def mean_depths(values, size):  # pragma: no cover
    """Means of max(-value, 0) in blocks; those at the end may be smaller."""
    shape = values.shape
    out = np.zeros((-(-shape[0] // size[0]), -(-shape[1] // size[1]), -(-shape[2] // size[2])))
    count = np.zeros(out.shape)
    for z in range(shape[0]):
        for y in range(shape[1]):
            row, i, j = values[z, y], z // size[0], y // size[1]
            for k in range(out.shape[2]):
                low, top = k * size[2], min((k + 1) * size[2], shape[2])
                for x in range(low, top):
                    out[i, j, k] -= min(row[x], 0.0)
                count[i, j, k] += top - low
    return out / count


@inner_kernel
def smoothed(values, widths):  # pragma: no cover
    """Means (Z, Y, X) weighted by a Gaussian of these widths, mirrored at the boundaries."""
    strides = values.shape[1] * values.shape[2], values.shape[2], 1
    before, after = values.copy().ravel(), np.empty(values.size)
    for axis in range(3):
        n, stride = values.shape[axis], strides[axis]
        reach = int(4 * widths[axis] + 0.5) if widths[axis] > 0 else 0
        weight, total = np.empty(2 * reach + 1), 0.0
        for k in range(2 * reach + 1):
            weight[k] = math.exp(-0.5 * ((k - reach) / widths[axis]) ** 2) if reach else 1.0
            total += weight[k]
        mirrored = np.empty(n + 2 * reach, np.int64)
        for i in range(len(mirrored)):
            j = (i - reach) % (2 * n)
            mirrored[i] = stride * (j if j < n else 2 * n - 1 - j)
        after[:] = 0.0
        for start in range(0, values.size, n * stride):
            for i in range(n):
                into = np.uint64(start + i * stride)
                for k in range(2 * reach + 1):
                    share, of = weight[k] / total, np.uint64(start + mirrored[i + k])
                    for m in range(stride):
                        after[into + np.uint64(m)] += share * before[of + np.uint64(m)]
        before, after = after, before
    return before.reshape(values.shape)


@kernel
def quantile(values, step, share):  # pragma: no cover
    """The value below which a share of every so many values is; sorted are those of a bin of a histogram."""
    flat, count = values.ravel(), np.zeros(_BINS, np.int64)
    n = (len(flat) + step - 1) // step
    bins = np.empty(n, np.int16)
    for i in range(n):
        at = (flat[i * step] + np.float32(_DEEPEST)) * np.float32(_BINS / _DEEPEST)
        bins[i] = np.int16(min(max(at, np.float32(0)), np.float32(_BINS - 1)))
        count[bins[i]] += 1
    rank, b = int(np.rint(share * (n - 1))), 0
    while rank >= count[b]:
        rank -= count[b]
        b += 1
    inside = np.empty(count[b], values.dtype)
    m = 0
    for i in range(n):
        if bins[i] == b:
            inside[m] = flat[i * step]
            m += 1
    return np.sort(inside)[rank]


@kernel
def local_scales(response, size, widths, everywhere, share, least):  # pragma: no cover
    """Local noise scale in blocks, from the mean depth of the response below 0.

    size: (3,) voxels of a block. widths: (3,) those of the window, in blocks. everywhere: the scale of the
    frame, which counts by a `share`. least: lower limit.
    """
    out = smoothed(mean_depths(response, size), widths)
    flat, unit = out.ravel(), math.sqrt(2 * math.pi)
    for i in range(len(flat)):
        flat[i] = max((flat[i] * unit + share * everywhere) / (1 + share), least)
    return out
