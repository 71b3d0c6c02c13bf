"""CPU kernels of the joint fit of amplitudes in the response.

Serial and without the GIL. `blocks`, `size`: the local noise scale, and voxels of a block.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ..compute.kernels import inner_kernel, kernel
from ..compute.tolerances import NEGLIGIBLE
from .fit_cpu import AMPLITUDE, PARAMETERS, add, eliminate
from .response_cpu import at_place, peaks_above, vertices
from .stabilise_cpu import stand_out, to_grey


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
    """The value at a position (3,) in voxels: Lagrange polynomials through six voxels along an axis.

    Beyond the boundaries the image is mirrored, as a cosine transform has it. weight (3, 6) f8 and index
    (3, 6) i8 are room to work in.
    """
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
def sorted_along_y(position):  # pragma: no cover
    """Rows of positions (n, 3) in the order of y, and these y."""
    y = np.empty(len(position))
    for i in range(len(y)):
        y[i] = position[i, 1]
    order = np.argsort(y)
    for k in range(len(y)):
        y[k] = position[order[k], 1]
    return order, y


@inner_kernel
def overlaps(position, other, kernel_, half):  # pragma: no cover
    """Responses of spots at `other` (m, 3) at each position (n, 3): rows of a sparse matrix."""
    order, y = sorted_along_y(other)
    reach, middle = half + 0.999, half.astype(np.float64)
    indptr, room, total = np.zeros(len(position) + 1, np.int32), 16 * max(len(position), 4), 0
    indices, data = np.empty(room, np.int32), np.empty(room)
    weight, index = np.zeros((3, 6)), np.zeros((3, 6), np.int64)
    for i in range(len(position)):
        for k in range(np.searchsorted(y, position[i, 1] - reach[1]), len(y)):
            j = order[k]
            if y[k] > position[i, 1] + reach[1]:
                break
            if abs(other[j, 2] - position[i, 2]) > reach[2] or abs(other[j, 0] - position[i, 0]) > reach[0]:
                continue
            if total == len(data):
                indices, data = np.append(indices, indices), np.append(data, data)
            indices[total] = j
            data[total] = interpolated(kernel_, middle + position[i] - other[j], weight, index)
            total += 1
        indptr[i + 1] = total
    return indptr, indices[:total].copy(), data[:total].copy()


@inner_kernel
def sweep(indptr, indices, data, response, amplitude, most, sweeps):  # pragma: no cover
    """Amplitudes from 0 to `most` whose responses add up to the measured one, by Gauss-Seidel.

    Sweeps end when the largest change, in standard deviations, is negligible.
    """
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
        if change < NEGLIGIBLE:
            break


@inner_kernel
def widen(overlap, limits, wide):  # pragma: no cover
    """By how much the overlap with neighbours widens the error of each amplitude, where it is 0 in wide (n,).

    sqrt(1 / (1 - bᵀ B⁻¹ b)), B the overlaps of the nearest neighbours with each other and b with the spot.
    """
    indptr, indices, data = overlap
    least, most, ridge = limits[4], int(limits[5]), limits[6]
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
def square_distance(position, i, j, unit):  # pragma: no cover
    """Of two positions, in units (3,) of voxels; an axis of 0 counts nothing."""
    square = 0.0
    for axis in range(3):
        if unit[axis] > 0:
            square += ((position[i, axis] - position[j, axis]) / unit[axis]) ** 2
    return square


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
            if square_distance(position, i, j, apart) < 1:
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
    indptr, indices, data = overlaps(position, before, kernel_, half)
    response, weight, index = np.empty(len(position)), np.zeros((3, 6)), np.zeros((3, 6), np.int64)
    for i in range(len(position)):
        response[i] = interpolated(residual, position[i], weight, index)
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


@kernel
def resolved(position, amplitude, apart):  # pragma: no cover
    """Which spots (n,) have no brighter one within `apart` (3,) voxels; of equal ones the first."""
    order, y = sorted_along_y(position)
    out = np.ones(len(position), np.bool_)
    for a in range(len(order)):
        for b in range(a + 1, len(order)):
            i, j = min(order[a], order[b]), max(order[a], order[b])
            if y[b] - y[a] > apart[1]:
                break
            if square_distance(position, i, j, apart) <= 1:
                out[i if amplitude[i] < amplitude[j] else j] = False
    return out


@kernel
def taken_out(values, ground, grey, position, height, sigma, reach, line):  # pragma: no cover
    """A frame without the light of spots that stand out of the ground by these heights (n,).

    values, ground, grey (Z, Y, X) f4: the frame and its light without spots in units of the noise, and the
    latter in grey values.
    """
    spots = np.zeros((len(position), PARAMETERS))
    above, top = np.empty(1, np.float32), np.empty(1, np.float32)
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
    response, low, one = np.empty_like(residual), np.inf, np.float32(1)
    for value in blocks.ravel():
        low = min(low, least * value)
    over, left, wall = response.ravel(), residual.ravel(), gain.ravel()
    for i in range(len(over)):
        over[i] = left[i] / wall[i]
    fresh, height = vertices(response, one, peaks_above(response, one, np.float32(limits[8] * low)))
    position, n = np.empty((len(before) + len(fresh), 3)), len(before)
    position[:n] = moved(before, light, residual, curvature, sigma, limits[7])
    for i in range(len(fresh)):
        scale = at_place(blocks, (fresh[i] - (size - 1) / 2) / size)
        if height[i] > low and height[i] > least * scale:
            position[n] = fresh[i]
            n += 1
    return fitted(
        position[:n], before, light, residual, kernel_, half, gain, blocks, size, least, apart, limits
    )
