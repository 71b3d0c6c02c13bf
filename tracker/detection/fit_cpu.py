"""CPU kernel of the last fit: positions, amplitudes, levels and sizes of spots in grey values, one by one.

Each spot is A exp(-Σ (x - c)² / 2 e^{2s} σ²) + level, with one s for the plane and one for z, on a given
background besides the light of all others; Gauss-Newton steps with the variance base + slope · model as
weights (Fisher scoring for Poisson light). Serial and without the GIL.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ..compute.kernels import inner_kernel, kernel
from .stabilise_cpu import to_noise

PARAMETERS = 7
Z, Y, X, AMPLITUDE, LEVEL, SIZE, DEPTH = range(PARAMETERS)
"""Columns of a spot: voxels, grey values, logarithms of its widths over the common ones."""
TERMS = np.array([
    [Z, 1, 0, 0], [Y, 0, 1, 0], [X, 0, 0, 1], [AMPLITUDE, 0, 0, 0],
    [SIZE, 0, 2, 0], [SIZE, 0, 0, 2], [DEPTH, 2, 0, 0],
])  # fmt: skip
"""Derivatives of a spot by its parameters: powers of the distances along z, y, x."""
REACH = 3.5
"""Guard: widths about a spot in which it is drawn and fitted."""
MONOMIALS = np.array([
    [0, 0], [1, 0], [0, 1], [2, 0], [0, 2], [1, 1], [3, 0], [2, 1], [1, 2], [0, 3], [4, 0], [2, 2], [0, 4],
])  # fmt: skip
"""Powers of the distances along y and x in the sums of `plane_sums`; five of them in the flat ones."""
_STILL = 0.01
"""Guard: step of a spot, in largest ones, below which it moves no more: .003 of a width."""
_REORDERED = frozenset({"reassoc", "contract", "arcp", "nsz"})
"""What lets a sum along a row use the vector registers; not-a-number stays what it is."""


@inner_kernel
def grown(spot, sigma):  # pragma: no cover
    """Widths (3,) of a spot."""
    plane = math.exp(spot[SIZE])
    return sigma[0] * math.exp(spot[DEPTH]), sigma[1] * plane, sigma[2] * plane


@inner_kernel
def window(centre, far, size):  # pragma: no cover
    """First voxel within a distance along an axis, and the one after the last."""
    low = max(0, math.ceil(centre - far - 0.5))
    return low, max(low, min(size, math.floor(centre + far + 0.5) + 1))


@inner_kernel
def profile(centre, wide, low, stop, base, room):  # pragma: no cover
    """A Gaussian at voxels from `low` to `stop` in room[0], and distances in widths in room[1], from `base`.

    The ratio of two neighbours changes by a factor: three exponentials make a row.
    """
    room[0, :] = 0.0
    if wide == 0:
        room[0, low - base : stop - base], room[1, low - base : stop - base] = 1.0, 0.0
        return
    step = 1 / wide
    away = (low - centre) * step
    gauss, bend = math.exp(-0.5 * away * away), math.exp(-step * step)
    ratio = math.exp(-step * (away + step / 2))
    for i in range(low - base, stop - base):
        room[0, i], room[1, i] = gauss, away
        gauss, ratio, away = gauss * ratio, ratio * bend, away + step


@inner_kernel
def first_of(values, z, y, x):  # pragma: no cover
    """Where a voxel is in the flat array; without a sign, rows of it use the vector registers."""
    return np.uint64((z * values.shape[1] + y) * values.shape[2] + x)


@inner_kernel
def exchange(model, old, new, sigma, reach, room):  # pragma: no cover
    """Put the light of a spot in a model in place of that of another; an amplitude of 0 is none.

    room: (2, 3, 2, size) f4 to work in.
    """
    low, stop = np.empty(3, np.int64), np.empty(3, np.int64)
    none = old[AMPLITUDE] == 0, new[AMPLITUDE] == 0
    before, after = grown(old, sigma), grown(new, sigma)
    for axis in range(3):
        a, b = window(old[axis], reach * before[axis], model.shape[axis])
        c, d = window(new[axis], reach * after[axis], model.shape[axis])
        if none[0]:
            a, b = c, d
        if none[1]:
            c, d = a, b
        low[axis], stop[axis] = min(a, c), max(b, d)
        n = stop[axis] - low[axis]
        profile(old[axis], before[axis], a, b, low[axis], room[0, axis, :, :n])
        profile(new[axis], after[axis], c, d, low[axis], room[1, axis, :, :n])
    flat, out, into, n = model.ravel(), room[0, 2, 0], room[1, 2, 0], stop[2] - low[2]
    for i in range(stop[0] - low[0]):
        for j in range(stop[1] - low[1]):
            less = np.float32(old[AMPLITUDE] * room[0, 0, 0, i] * room[0, 1, 0, j])
            more = np.float32(new[AMPLITUDE] * room[1, 0, 0, i] * room[1, 1, 0, j])
            at = first_of(model, low[0] + i, low[1] + j, low[2])
            for k in range(n):
                flat[at + np.uint64(k)] += more * into[k] - less * out[k]


@inner_kernel
def room_for(shape):  # pragma: no cover
    """What `exchange` works in."""
    return np.zeros((2, 3, 2, max(shape)), np.float32)


@inner_kernel
def add(model, spots, sigma, reach):  # pragma: no cover
    """Add the light of spots (n, 7) to a model (Z, Y, X) f4."""
    none, room = np.zeros(PARAMETERS), room_for(model.shape)
    for i in range(len(spots)):
        exchange(model, none, spots[i], sigma, reach, room)


@kernel
def render(shape, spots, sigma, reach):  # pragma: no cover
    """The light of spots (n, 7) in a frame (Z, Y, X) f4."""
    out = np.zeros(shape, np.float32)
    add(out, spots, sigma, reach)
    return out


@kernel
def without(whole, spots, sigma, reach, line):  # pragma: no cover
    """A frame in grey values without the light of spots (n, 7), in units of the noise."""
    rest, out, dark = whole.copy(), np.empty_like(whole), spots.copy()
    dark[:, AMPLITUDE] *= -1
    add(rest, dark, sigma, reach)
    to_noise(rest.ravel(), out.ravel(), line)
    return out


@inner_kernel
def eliminate(matrix, right, n, columns):  # pragma: no cover
    """Solve n equations for the first columns of `right`, in place: LAPACK's threads wait for each other."""
    for i in range(n):
        pivot = i
        for r in range(i + 1, n):
            if abs(matrix[r, i]) > abs(matrix[pivot, i]):
                pivot = r
        if pivot != i:
            for c in range(n):
                matrix[i, c], matrix[pivot, c] = matrix[pivot, c], matrix[i, c]
            for c in range(columns):
                right[i, c], right[pivot, c] = right[pivot, c], right[i, c]
        for r in range(i + 1, n):
            factor = matrix[r, i] / matrix[i, i]
            if factor != 0.0:
                for c in range(i, n):
                    matrix[r, c] -= factor * matrix[i, c]
                for c in range(columns):
                    right[r, c] -= factor * right[i, c]
    for c in range(columns):
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                right[i, c] -= matrix[i, k] * right[k, c]
            right[i, c] /= matrix[i, i]


@inner_kernel(fastmath=_REORDERED, error_model="numpy")
def plane_sums(n, room, level, noise, squares, flat, left):  # pragma: no cover
    """Sums over n voxels of a plane; returns Σ w, Σ w r, Σ w r² and the voxels used.

    w: weight of a voxel; r: what it has more than the model. squares (13,): Σ w g² y^a x^b for each of
    `MONOMIALS`, g the Gaussian at a distance of y and x widths. flat, left (5,): Σ w g y^a x^b and Σ w r g
    y^a x^b for the first five. room: (7, n) f4 of grey values, model, g, y, x; and for w and r.
    """
    value, model, gauss = room[0], room[1], room[2]
    far_y, far_x, weight, rest = room[3], room[4], room[5], room[6]
    base, slope, least, cut = noise
    base, slope, least, cut = np.float32(base), np.float32(slope), np.float32(least), np.float32(cut)
    one, zero = np.float32(1), np.float32(0)
    w0 = r0 = square = count = zero
    for k in range(n):
        expected = model[k] + level
        # What is cut off lacks no light.
        used = value[k] == value[k] and not (value[k] >= cut and expected >= value[k])
        w = one / (max(least, base + slope * expected)) if used else zero
        r = value[k] - expected if used else zero
        weight[k], rest[k] = w, r
        w0 += w
        r0 += w * r
        square += w * r * r
        count += one if used else zero
    a = b = c = d = e = f = g = h = i = j = o = p = q = zero
    for k in range(n):
        s, y, x = weight[k] * gauss[k] * gauss[k], far_y[k], far_x[k]
        sy, sx = s * y, s * x
        syy, sxx, syx = sy * y, sx * x, sy * x
        a += s
        b += sy
        c += sx
        d += syy
        e += sxx
        f += syx
        g += syy * y
        h += syy * x
        i += sxx * y
        j += sxx * x
        o += syy * y * y
        p += syy * x * x
        q += sxx * x * x
    squares[0], squares[1], squares[2], squares[3], squares[4], squares[5], squares[6] = a, b, c, d, e, f, g
    squares[7], squares[8], squares[9], squares[10], squares[11], squares[12] = h, i, j, o, p, q
    a = b = c = d = e = f = g = h = i = j = zero
    for k in range(n):
        s, r, y, x = weight[k] * gauss[k], rest[k], far_y[k], far_x[k]
        sy, sx = s * y, s * x
        syy, sxx = sy * y, sx * x
        a += s
        b += sy
        c += sx
        d += syy
        e += sxx
        f += s * r
        g += sy * r
        h += sx * r
        i += syy * r
        j += sxx * r
    flat[0], flat[1], flat[2], flat[3], flat[4] = a, b, c, d, e
    left[0], left[1], left[2], left[3], left[4] = f, g, h, i, j
    return w0, r0, square, count


@inner_kernel
def spread_over(plane, axes, rows, columns):  # pragma: no cover
    """A Gaussian, and distances along y and x, at the voxels of a plane: room[2:5] of `plane_sums`."""
    gauss, far_y, far_x = plane[2], plane[3], plane[4]
    for j in range(rows):
        for k in range(columns):
            gauss[j * columns + k] = axes[1, 0, j] * axes[2, 0, k]
        far_y[j * columns : (j + 1) * columns] = axes[1, 1, j]
        far_x[j * columns : (j + 1) * columns] = axes[2, 1, :columns]


@inner_kernel
def gather(image, model, corner, centre, wide, square, far_y, rows, columns, plane):  # pragma: no cover
    """Grey values and model of the voxels of a plane in room[:2] of `plane_sums`; others are not measured.

    They are those whose distance along x from the `centre` is at most sqrt(square - far_y²) widths.
    """
    seen, light, value, expected = image.ravel(), model.ravel(), plane[0], plane[1]
    value[: rows * columns] = np.nan
    for j in range(rows):
        rest = square - far_y[j] * far_y[j]
        if rest < 0:
            continue
        half = math.sqrt(rest) * wide
        first = max(math.ceil(centre - half), corner[2])
        m = max(min(math.floor(centre + half) + 1, corner[2] + columns) - first, 0)
        at = first_of(image, corner[0], corner[1] + j, first)
        to = np.uint64(j * columns + first - corner[2])
        for k in range(m):
            value[to + np.uint64(k)] = seen[at + np.uint64(k)]
            expected[to + np.uint64(k)] = light[at + np.uint64(k)]


@inner_kernel
def normal_equations(
    image, model, spot, sigma, noise, reach, prior, information, gradient, axes, plane
):  # pragma: no cover
    """Information (7, 7) and gradient (7, 1) of a spot; returns the sum of weighted squares and voxels used.

    Derivatives are a Gaussian times powers of the distances from the centre, so sums of these suffice.
    noise: base, slope, least variance, saturation. prior: (7,) information of each parameter about 0;
    that of the position is about where it is. axes (3, 2, size), plane (7, size²) f4: to work in.
    """
    wide, level = grown(spot, sigma), np.float32(spot[LEVEL])
    low, stop = np.empty(3, np.int64), np.empty(3, np.int64)
    for axis in range(3):
        a, b = window(spot[axis], reach * sigma[axis], image.shape[axis])
        low[axis], stop[axis] = a, b
        profile(spot[axis], wide[axis], a, b, a, axes[axis, :, : b - a])
    squares, flat, left = np.zeros((5, 5, 5)), np.zeros((3, 3, 3)), np.zeros((3, 3, 3))
    in_plane, flat_plane, left_plane = np.empty(len(MONOMIALS)), np.empty(5), np.empty(5)
    sums = np.zeros(4)
    rows, columns, deep = stop[1] - low[1], stop[2] - low[2], stop[0] - low[0]
    spread_over(plane, axes, rows, columns)
    for i in range(deep):
        square = reach * reach - axes[0, 1, i] ** 2
        if square < 0:
            continue
        corner = (low[0] + i, low[1], low[2])
        gather(image, model, corner, spot[X], wide[2], square, axes[1, 1], rows, columns, plane)
        more = plane_sums(rows * columns, plane, level, noise, in_plane, flat_plane, left_plane)
        for q in range(4):
            sums[q] += more[q]
        power, g, far = 1.0, float(axes[0, 0, i]), float(axes[0, 1, i])
        for p in range(5):
            for q in range(len(MONOMIALS)):
                squares[p, MONOMIALS[q, 0], MONOMIALS[q, 1]] += power * g * g * in_plane[q]
            for q in range(5 if p < 3 else 0):
                flat[p, MONOMIALS[q, 0], MONOMIALS[q, 1]] += power * g * flat_plane[q]
                left[p, MONOMIALS[q, 0], MONOMIALS[q, 1]] += power * g * left_plane[q]
            power *= far
    a = spot[AMPLITUDE]
    scale = (a / wide[0] if sigma[0] > 0 else 0.0, a / wide[1], a / wide[2], 1.0, 0.0, a, a)
    information[:] = 0.0
    gradient[:] = 0.0
    for s in range(len(TERMS)):
        p, i, j, k = TERMS[s]
        for t in range(len(TERMS)):
            q, u, v, w = TERMS[t]
            information[p, q] += scale[p] * scale[q] * squares[i + u, j + v, k + w]
        information[p, LEVEL] += scale[p] * flat[i, j, k]
        information[LEVEL, p] += scale[p] * flat[i, j, k]
        gradient[p, 0] += scale[p] * left[i, j, k]
    information[LEVEL, LEVEL], gradient[LEVEL, 0] = sums[0], sums[1]
    for p in range(PARAMETERS):
        information[p, p] += prior[p]
    for p in (LEVEL, SIZE, DEPTH):
        gradient[p, 0] -= prior[p] * spot[p]
    return sums[2], sums[3]


@inner_kernel
def rooms_for(shape, sigma, reach):  # pragma: no cover
    """What `exchange` and `normal_equations` work in."""
    plane = (2 * reach * sigma[1] + 3) * (2 * reach * sigma[2] + 3)
    axes = np.zeros((3, 2, max(shape)), np.float32)
    return room_for(shape), axes, np.zeros((7, int(plane)), np.float32)


@kernel
def fit_spots(
    image, model, spots, start, sigma, noise, reach, prior, most, far, turns, moving
):  # pragma: no cover
    """Fit the spots (n, 7) that move (n,) in place, in turn; all are added to `model` (Z, Y, X) f4.

    model: the background. start: (n, 3) positions, from which they move by `far` widths at most. most: (7,)
    largest step of each parameter. Those whose last step is below `_STILL` move no more.
    """
    add(model, spots, sigma, reach)
    both, axes, room = rooms_for(image.shape, sigma, reach)
    information, step = np.zeros((PARAMETERS, PARAMETERS)), np.zeros((PARAMETERS, 1))
    for turn in range(turns):
        for i in np.flatnonzero(moving):
            before = spots[i].copy()
            normal_equations(
                image, model, spots[i], sigma, noise, reach, prior, information, step, axes, room
            )
            eliminate(information, step, PARAMETERS, 1)
            for j in range(PARAMETERS):
                limit = most[j] if j != AMPLITUDE else most[j] * max(spots[i, AMPLITUDE], 1e-30)
                spots[i, j] += step[j, 0] if j == LEVEL else min(max(step[j, 0], -limit), limit)
            for axis in range(3):
                away = far * sigma[axis]
                spots[i, axis] = min(max(spots[i, axis], start[i, axis] - away), start[i, axis] + away)
                spots[i, axis] = min(max(spots[i, axis], -0.5), image.shape[axis] - 0.5)
            if sigma[0] == 0:
                spots[i, Z] = start[i, Z]
            exchange(model, before, spots[i], sigma, reach, both)
            if turn == turns - 1:
                shift = np.abs(spots[i] - before) / most
                shift[AMPLITUDE] /= max(spots[i, AMPLITUDE], 1e-30)
                moving[i] = shift.max() > _STILL


@kernel
def errors_of(image, model, spots, sigma, noise, reach, prior):  # pragma: no cover
    """(n, 6): standard errors of z, y, x and of both sizes, and the reduced chi-square."""
    out = np.zeros((len(spots), 6))
    information, gradient = np.zeros((PARAMETERS, PARAMETERS)), np.zeros((PARAMETERS, 1))
    _, axes, room = rooms_for(image.shape, sigma, reach)
    for i in range(len(spots)):
        square, count = normal_equations(
            image, model, spots[i], sigma, noise, reach, prior, information, gradient, axes, room
        )
        inverse = np.eye(PARAMETERS)
        eliminate(information, inverse, PARAMETERS, PARAMETERS)
        for column, p in enumerate((Z, Y, X, SIZE, DEPTH)):
            fixed = p <= X and sigma[p] == 0
            out[i, column] = 0.0 if fixed else math.sqrt(max(inverse[p, p], 0.0))
        out[i, -1] = square / max(count - PARAMETERS, 1)
    return out
