"""CPU kernels of the joint fit of amplitudes in the response.

Serial and without the GIL. `blocks`, `size`: the local noise scale, and voxels of a block.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ..compute.kernels import inner_kernel, kernel
from .fit_cpu import AMPLITUDE, PARAMETERS, add, eliminate
from .stabilise_cpu import stand_out, to_grey

_DEEPEST, _BINS = 8.0, 2048
"""Guard: standard deviations below 0 that a histogram resolves, and its bins."""
_STILL = 1e-3
"""Guard: change of amplitudes, in standard deviations, that ends the sweeps."""


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
def moved(position, amplitude, residual, curvature, sigma, most):  # pragma: no cover
    """Positions after a Newton step up the slope of the residual: a displaced spot leaves a dipole."""
    out, step = position.copy(), np.zeros(3)
    for i in range(len(position)):
        for axis in range(3):
            n = residual.shape[axis]
            if n < 3 or curvature[axis] <= 0:
                continue
            step[axis] = 0.5
            slope = at_place(residual, position[i] + step) - at_place(residual, position[i] - step)
            step[axis] = 0.0
            shift = slope / max(amplitude[i], 1.0) / curvature[axis]
            shift = min(max(shift, -most * sigma[axis]), most * sigma[axis])
            out[i, axis] = min(max(position[i, axis] + shift, 0.0), n - 1.0)
    return out


@inner_kernel
def interpolated(values, position, weight, index):  # pragma: no cover
    """The value at a position (3,), see `between`; weight and index (3, 6) are room to work in."""
    for axis in range(3):
        size = values.shape[axis]
        low = math.floor(position[axis])
        t = position[axis] - low
        before, after = (t + 2) * (t + 1) * t, (t - 1) * (t - 2) * (t - 3)
        weight[axis, 0] = (t + 1) * t * after * (-1 / 120)
        weight[axis, 1] = (t + 2) * t * after * (1 / 24)
        weight[axis, 2] = (t + 2) * (t + 1) * after * (-1 / 12)
        weight[axis, 3] = before * (t - 2) * (t - 3) * (1 / 12)
        weight[axis, 4] = before * (t - 1) * (t - 3) * (-1 / 24)
        weight[axis, 5] = before * (t - 1) * (t - 2) * (1 / 120)
        for a in range(6):
            k = low + a - 2
            if k < 0 or k >= size:
                k %= 2 * size
                k = k if k < size else 2 * size - 1 - k
            index[axis, a] = k
    flat, out = values.shape[0] == 1, 0.0
    for a in range(2 if flat else 0, 3 if flat else 6):
        for b in range(6):
            both = (1.0 if flat else weight[0, a]) * weight[1, b]
            if both != 0.0:
                for c in range(6):
                    out += both * weight[2, c] * values[index[0, a], index[1, b], index[2, c]]
    return out


@inner_kernel
def between(values, position):  # pragma: no cover
    """Values (n,) f8 at positions (n, 3) in voxels: Lagrange polynomials through six voxels along an axis.

    Beyond the boundaries the image is mirrored, as a cosine transform has it.
    """
    out, weight, index = np.empty(len(position)), np.zeros((3, 6)), np.zeros((3, 6), np.int64)
    for i in range(len(position)):
        out[i] = interpolated(values, position[i], weight, index)
    return out


@inner_kernel
def overlaps(position, other, kernel_, half):  # pragma: no cover
    """Responses of spots at `other` (m, 3) at each position (n, 3): rows of a sparse matrix."""
    order = np.argsort(other[:, 1])
    z, y, x = other[order, 0], other[order, 1], other[order, 2]
    reach, middle = half + 0.999, half.astype(np.float64)
    indptr, room, total = np.zeros(len(position) + 1, np.int32), 16 * max(len(position), 4), 0
    indices, data = np.empty(room, np.int32), np.empty(room)
    weight, index = np.zeros((3, 6)), np.zeros((3, 6), np.int64)
    for i in range(len(position)):
        k = np.searchsorted(y, position[i, 1] - reach[1])
        while k < len(y) and y[k] <= position[i, 1] + reach[1]:
            if abs(x[k] - position[i, 2]) > reach[2] or abs(z[k] - position[i, 0]) > reach[0]:
                k += 1
                continue
            j = order[k]
            k += 1
            if total == room:
                room *= 2
                more, longer = np.empty(room, np.int32), np.empty(room)
                more[:total], longer[:total] = indices, data
                indices, data = more, longer
            indices[total], data[total] = (
                j,
                interpolated(kernel_, middle + position[i] - other[j], weight, index),
            )
            total += 1
        indptr[i + 1] = total
    return indptr, indices[:total].copy(), data[:total].copy()


@inner_kernel
def sweep(indptr, indices, data, response, amplitude, most, sweeps):  # pragma: no cover
    """Amplitudes from 0 to `most` whose responses add up to the measured one, by Gauss-Seidel."""
    for _ in range(sweeps):
        change = 0.0
        for i in range(len(amplitude)):
            residual = response[i]
            for q in range(indptr[i], indptr[i + 1]):
                j = indices[q]
                if j != i:
                    residual -= data[q] * amplitude[j]
            residual = min(max(residual, 0.0), most)
            change = max(change, abs(residual - amplitude[i]))
            amplitude[i] = residual
        if change < _STILL:
            break


@inner_kernel
def widen(overlap, limits, wide):  # pragma: no cover
    """By how much the overlap with neighbours widens the error of each amplitude, where it is 0 in wide (n,).

    sqrt(1 / (1 - bᵀ B⁻¹ b)), B the overlaps of the nearest neighbours with each other and b with the spot.
    """
    indptr, indices, data = overlap
    most, least, ridge = int(limits[5]), limits[6], limits[7]
    near, own = np.empty(most, np.int64), np.empty(most)
    block, right = np.empty((most, most)), np.empty((most, 1))
    for i in range(len(wide)):
        if wide[i] > 0:
            continue
        m = 0
        for q in range(indptr[i], indptr[i + 1]):
            if indices[q] == i or abs(data[q]) < least:
                continue
            if m < most:
                near[m], own[m] = indices[q], data[q]
                m += 1
                continue
            w = np.argmin(np.abs(own))
            if abs(data[q]) > abs(own[w]):
                near[w], own[w] = indices[q], data[q]
        wide[i] = 1.0
        for r in range(m):
            block[r, :m] = 0.0
            block[r, r], right[r, 0] = 1 + ridge, own[r]
            for q in range(indptr[near[r]], indptr[near[r] + 1]):
                for c in range(m):
                    if c != r and near[c] == indices[q]:
                        block[r, c] = data[q]
        eliminate(block, right, m, 1)
        explained = 0.0
        for r in range(m):
            explained += right[r, 0] * own[r]
        wide[i] = math.sqrt(1 / max(1 - explained, ridge))


@inner_kernel
def errors_in_response(position, amplitude, overlap, wide, gain, blocks, size, profile):  # pragma: no cover
    """(n,): standard errors of amplitudes, by noise, neighbours, and what these differ from the profile."""
    indptr, indices, data = overlap
    out = wide.copy()
    for i in range(len(out)):
        others = 0.0
        for q in range(indptr[i], indptr[i + 1]):
            others += abs(data[q]) * amplitude[indices[q]]
        place = position[i]
        wall = gain[int(np.rint(place[0])), int(np.rint(place[1])), int(np.rint(place[2]))]
        noise = wall * at_place(blocks, (place - (size - 1) / 2) / size)
        out[i] *= math.sqrt(noise**2 + (profile * (others - amplitude[i])) ** 2)
    return out


@inner_kernel
def without_rows(overlap, stay):  # pragma: no cover
    """The overlaps of some spots, whose rows and columns stay."""
    indptr, indices, data = overlap
    number, total = np.cumsum(stay) - 1, 0
    pointer = np.zeros(np.sum(stay) + 1, np.int32)
    for i in range(len(stay)):
        if stay[i]:
            for q in range(indptr[i], indptr[i + 1]):
                if stay[indices[q]]:
                    indices[total], data[total] = number[indices[q]], data[q]
                    total += 1
            pointer[number[i] + 1] = total
    return pointer, indices[:total].copy(), data[:total].copy()


@inner_kernel
def near(position, i, j, apart):  # pragma: no cover
    """Whether two positions are nearer than `apart` (3,) voxels; an axis of 0 counts nothing."""
    square = 0.0
    for axis in range(3):
        if apart[axis] > 0:
            square += ((position[i, axis] - position[j, axis]) / apart[axis]) ** 2
    return square < 1


@inner_kernel
def staying(position, overlap, significance, least, same, apart):  # pragma: no cover
    """Which candidates stay (n,): the weakest of neighbours leave if they do not stand out, or are one."""
    indptr, indices, data = overlap
    stay = significance >= least
    for i in range(len(stay)):
        stronger = weaker = False
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            if j == i:
                continue
            less = significance[j] < significance[i] or (significance[j] == significance[i] and j > i)
            stay[i] |= data[q] > same and less
            if near(position, i, j, apart):
                weaker |= less
                stronger |= not less
        stay[i] &= weaker or not stronger
    return stay


@inner_kernel
def fitted(
    position, before, light, residual, kernel_, half, gain, blocks, size, least, apart, limits
):  # pragma: no cover
    """Positions, amplitudes and errors of candidates besides each other.

    The weakest of neighbours leave until all stand out. `before` (m, 3), `light` (m,): positions and
    amplitudes of what is taken out of the residual. apart: (3,) voxels within which two are one. limits:
    turns, sweeps, largest amplitude, overlap of neighbours of which the weaker leaves; those of
    `errors_in_response`.
    """
    turns, sweeps, largest, same = int(limits[0]), int(limits[1]), limits[2], limits[3]
    if len(position) == 0:
        return position, np.empty(0), np.empty(0)
    response = between(residual, position)
    indptr, indices, data = overlaps(position, before, kernel_, half)
    for i in range(len(position)):
        for q in range(indptr[i], indptr[i + 1]):
            response[i] += data[q] * light[indices[q]]
    overlap = overlaps(position, position, kernel_, half)
    for i in range(len(position)):
        for q in range(overlap[0][i], overlap[0][i + 1]):
            if overlap[1][q] == i:
                overlap[2][q] = 1.0
    amplitude = np.maximum(response, 0.0)
    error, wide = amplitude, np.zeros(len(position))
    for turn in range(turns):
        indptr, indices, data = overlap
        most = largest * max(response.max(), 0.0)
        sweep(indptr, indices, data, response, amplitude, most, sweeps)
        widen(overlap, limits, wide)
        error = errors_in_response(position, amplitude, overlap, wide, gain, blocks, size, limits[4])
        significance = amplitude / error
        stay = staying(position, overlap, significance, least, same, apart)
        if stay.all() or not stay.any() or turn == turns - 1:
            break
        for i in range(len(stay)):
            if not stay[i]:
                for q in range(indptr[i], indptr[i + 1]):
                    wide[indices[q]] = 0.0
        position, response, amplitude, wide = position[stay], response[stay], amplitude[stay], wide[stay]
        overlap = without_rows(overlap, stay)
    return position, amplitude, error


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
    """Means (Z, Y, X) weighted by a Gaussian of these widths, mirrored at the boundaries, in place."""
    for axis in range(3):
        if widths[axis] <= 0:
            continue
        n, reach = values.shape[axis], int(4 * widths[axis] + 0.5)
        weight = np.exp(-0.5 * (np.arange(-reach, reach + 1) / widths[axis]) ** 2)
        weight /= np.sum(weight)
        index = np.arange(-reach, n + reach) % (2 * n)
        index = np.where(index < n, index, 2 * n - 1 - index)
        lines = np.ascontiguousarray(np.moveaxis(values, axis, 0)) if axis else values.copy()
        out = np.zeros(lines.shape)
        for i in range(n):
            for k in range(2 * reach + 1):
                out[i] += weight[k] * lines[index[i + k]]
        values[:] = np.moveaxis(out, 0, axis) if axis else out


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
    blocks = mean_depths(response, size) * math.sqrt(2 * math.pi)
    smoothed(blocks, widths)
    return np.maximum((blocks + share * everywhere) / (1 + share), least)


@kernel
def resolved(position, amplitude, apart):  # pragma: no cover
    """Which spots (n,) have no brighter one within `apart` (3,) voxels; of equal ones the first."""
    order = np.argsort(position[:, 1])
    out = np.ones(len(position), np.bool_)
    for a in range(len(order)):
        for b in range(a + 1, len(order)):
            i, j = min(order[a], order[b]), max(order[a], order[b])
            if position[order[b], 1] - position[order[a], 1] > apart[1]:
                break
            square = 0.0
            for axis in range(3):
                square += ((position[i, axis] - position[j, axis]) / apart[axis]) ** 2
            if square <= 1:
                out[i if amplitude[i] < amplitude[j] else j] = False
    return out


@kernel
def taken_out(values, ground, grey, position, height, sigma, reach, line):  # pragma: no cover
    """A frame without the light of spots that stand out of the ground by these heights (n,).

    values, ground, grey (Z, Y, X) f4: the frame and its light without spots in units of the noise, and the
    latter in grey values.
    """
    spots, above, top = (
        np.zeros((len(position), PARAMETERS)),
        np.empty(1, np.float32),
        np.empty(1, np.float32),
    )
    for i in range(len(position)):
        z, y, x = int(np.rint(position[i, 0])), int(np.rint(position[i, 1])), int(np.rint(position[i, 2]))
        above[0] = ground[z, y, x] + np.float32(height[i])
        to_grey(above, top, line)
        spots[i, :3], spots[i, AMPLITUDE] = position[i], top[0] - grey[z, y, x]
    light = np.zeros_like(values)
    add(light, spots, sigma, reach)
    stand_out(light.ravel(), grey.ravel(), ground.ravel(), line)
    return values - light


@kernel
def joined(
    residual, gain, blocks, size, least, before, light, kernel_, half, curvature, sigma, apart, limits
):  # pragma: no cover
    """A round: maxima of the residual join the candidates, which move, and all are fitted together.

    before, light: (n, 3) positions and (n,) amplitudes of the candidates. limits: those of `fitted`; widths
    that a candidate moves, and the share of a maximum that a voxel has at least.
    """
    response, low = residual / gain, least * blocks.min()
    fresh, height = vertices(
        response, np.float32(1), peaks_above(response, np.float32(1), np.float32(limits[9] * low))
    )
    new = height > low
    for i in range(len(new)):
        new[i] &= height[i] > least * at_place(blocks, (fresh[i] - (size - 1) / 2) / size)
    ahead = moved(before, light, residual, curvature, sigma, limits[8])
    position = np.concatenate((ahead, fresh[new]))
    return fitted(position, before, light, residual, kernel_, half, gain, blocks, size, least, apart, limits)
