"""CPU kernels of the light of spots: add it to a model, or look at the voxels that a spot shines on.

Serial and without the GIL. Each row of `spots` has the columns that are named here. The light beyond the core
of a spot, thousands of voxels, is painted again only where it has changed.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

AMPLITUDE, Z, Y, X, LOG_SIZE, ERROR, MISFIT, REACH, LEVEL, FAR = range(10)
"""Columns of spots: grey values, voxels, ln of the size, error of the amplitude, share of the light that the
profile does not explain (squared), how far the light is painted (in widths), background; and the first five
as they were when the light beyond the core was painted."""
COLUMNS = 14
STEP = 0.1
"""Of the profile's table, in squared widths."""
ENTRIES = 491  # squared distances 0 .. 49: seven widths
WINDOW = 6.75
"""Squared widths within which a spot is fitted."""
NEAREST = 2.6
"""Widths to which any spot is painted: at least those within which it is fitted."""
HALO = NEAREST**2
"""Squared widths of the core; light beyond it is halo."""
SEEN = 0.1
"""Of a spot's noise: less light is not painted."""
DZ, DY, DX, SQUARE, LEFT, MEAN, LIGHT, STEEP, WEIGHT = range(9)
"""Rows of cells (9, n) f4, the voxels around a spot: offsets along z, y, x and their squared sum, in widths;
residual and model; the profile and its change to the next entry of its table; weight."""
QUICK = {"contract", "reassoc", "nsz", "arcp"}
"""Sums in any order; values that are not finite stay so."""
_F4 = np.float32
LARGEST = 0.9
"""Logarithm of the size of a spot."""


class Noise(NamedTuple):
    """Noise: the variance of a voxel is base + slope x mean, at least `least`; values from `top` are cut.

    Parameters
    ----------
    base, slope, least : float
        Squared grey values; grey values; squared grey values.
    top : float
        Grey value at which the camera saturates; the true value may be larger.
    """

    base: float
    slope: float
    least: float
    top: float


class Optics(NamedTuple):
    """Widths and profile of a spot.

    Parameters
    ----------
    sigma : (3,) float64 array
        Widths along z, y, x in voxels; z counts for nothing in a flat image.
    profile : (491,) float64 array
        Light at squared distances 0, 0.1, … (in widths), 1 at the centre.
    blur : float
        Deviation of a voxel from the profile, as a share of the light of the spot.
    sizes : float
        Standard deviation of the logarithm of a spot's size.
    flat : bool
    """

    sigma: np.ndarray
    profile: np.ndarray
    blur: float
    sizes: float
    flat: bool


@njit(nogil=True, cache=True)
def span(centre, reach, size):  # pragma: no cover
    """First voxel within reach, and last one plus 1."""
    return max(0, math.ceil(centre - reach)), min(size, math.floor(centre + reach) + 1)


@njit(nogil=True, cache=True, inline="always")
def box(spot, optics, shape, reach):  # pragma: no cover
    """Inverse widths of a spot along z, y, x, and the planes and rows within reach (in widths)."""
    size = math.exp(spot[LOG_SIZE])
    sz, sy, sx = optics.sigma[0] * size, optics.sigma[1] * size, optics.sigma[2] * size
    z0, z1 = 0, 1
    if not optics.flat:
        z0, z1 = span(spot[Z], reach * sz, shape[0])
    y0, y1 = span(spot[Y], reach * sy, shape[1])
    return (0.0 if optics.flat else 1 / sz, 1 / sy, 1 / sx), (z0, z1, y0, y1)


@njit(nogil=True, cache=True, inline="always")
def chord(spot, away, within, narrow, size):  # pragma: no cover
    """Voxels along x, from first to last plus 1, less than `within` squared widths away.

    away: squared widths that their row is away; narrow: 1 over the width.
    """
    if away >= within:
        return 0, 0
    return span(spot[X], math.sqrt(within - away) / narrow, size)


@njit(nogil=True, cache=True)
def table_of(profile):  # pragma: no cover
    """(n, 2) f4: the profile, and its change to the next entry."""
    table = np.zeros((len(profile), 2), np.float32)
    for i in range(len(profile)):
        table[i, 0] = profile[i]
        table[i, 1] = profile[min(i + 1, len(profile) - 1)] - profile[i]
    return table


@njit(nogil=True, cache=True, error_model="numpy", fastmath=QUICK)
def paint(model, spot, light, optics, table, band):  # pragma: no cover
    """Add a spot's light to model (Z, Y, X) f4.

    band: squared widths from where, and up to where, light is added; those up to which it is that at this
    distance; and what is subtracted from the profile.
    """
    if light == 0:
        return
    within = min(band[1], STEP * (ENTRIES - 1.001))
    inner, least, less, light = _F4(band[0] / STEP), _F4(band[2] / STEP), _F4(band[3]), _F4(light)
    (nz, ny, nx), (z0, z1, y0, y1) = box(spot, optics, model.shape, math.sqrt(within))
    first, last = chord(spot, 0.0, within, nx, model.shape[2])
    square = np.empty(max(last - first, 0), np.float32)
    for x in range(first, last):
        square[x - first] = ((x - spot[X]) * nx) ** 2 / STEP
    for z in range(z0, z1):
        away_z = ((z - spot[Z]) * nz) ** 2
        for y in range(y0, y1):
            away = away_z + ((y - spot[Y]) * ny) ** 2
            x0, x1 = chord(spot, away, within, nx, model.shape[2])
            row, start = model[z, y], _F4(away / STEP)
            for x in range(x0, x1):
                q = start + square[x - first]
                beyond = max(q, least)
                i = np.int32(beyond)
                p = table[i, 0] + table[i, 1] * (beyond - _F4(i)) - less
                row[x] += light * p if q >= inner else _F4(0)


@njit(nogil=True, cache=True)
def core_edge(profile):  # pragma: no cover
    """The profile at the edge of the core."""
    i = int(HALO / STEP)
    return profile[i] + (profile[i + 1] - profile[i]) * (HALO / STEP - i)


@njit(nogil=True, cache=True, error_model="numpy")
def paint_as_seen(model, spot, optics, table, share):  # pragma: no cover
    """Add a share of the light of a spot as it is in the model: its core now, what is far as last painted."""
    far = spot[FAR:]
    less = core_edge(optics.profile) if far[AMPLITUDE] > 0 else 0.0
    paint(model, spot, share * spot[AMPLITUDE], optics, table, (0.0, HALO, 0.0, less))
    paint(model, far, share * far[AMPLITUDE], optics, table, (0.0, spot[REACH] ** 2, HALO, 0.0))


@njit(nogil=True, cache=True, error_model="numpy")
def paint_all(model, spots, optics, share):  # pragma: no cover
    """Add a share (n,) f8 of the light of all spots to the model."""
    table = table_of(optics.profile)
    for j in range(len(spots)):
        paint_as_seen(model, spots[j], optics, table, share[j])


@njit(nogil=True, cache=True, error_model="numpy")
def paint_beyond(light, spots, optics, inner):  # pragma: no cover
    """Add the light of all spots beyond `inner` squared widths to light (Z, Y, X) f4."""
    table = table_of(optics.profile)
    for j in range(len(spots)):
        s = spots[j]
        paint(light, s, s[AMPLITUDE], optics, table, (inner, s[REACH] ** 2, 0.0, 0.0))


@njit(nogil=True, cache=True, error_model="numpy", fastmath=QUICK)
def shade(total, frame, noise, optics, spots, share, blocks):  # pragma: no cover
    """Subtract a share (n,) f8 of the light of spots from sums over blocks (Z, b, c) f4.

    frame: image and model; blocks: the block of each row (Y,) i8 and column (X,) i8. Voxels that are not
    measured or saturated are in no sum.
    """
    image, rows, columns, table = frame[0], blocks[0], blocks[1], table_of(optics.profile)
    line, square = np.empty((2, image.shape[2]), np.float32)
    for j in range(len(spots)):
        s, light = spots[j], _F4(share[j] * spots[j, AMPLITUDE])
        within = min(s[REACH] ** 2, STEP * (ENTRIES - 1.001))
        (nz, ny, nx), (z0, z1, y0, y1) = box(s, optics, image.shape, math.sqrt(within))
        first, last = chord(s, 0.0, within, nx, image.shape[2])
        for x in range(first, last):
            square[x] = ((x - s[X]) * nx) ** 2 / STEP
        for z in range(z0, z1):
            away_z = ((z - s[Z]) * nz) ** 2
            for y in range(y0, y1):
                away = away_z + ((y - s[Y]) * ny) ** 2
                x0, x1 = chord(s, away, within, nx, image.shape[2])
                start, seen, sums = _F4(away / STEP), image[z, y], total[z, rows[y]]
                for x in range(x0, x1):
                    q = start + square[x]
                    i = np.int32(q)
                    line[x] = light * (table[i, 0] + table[i, 1] * (q - _F4(i)))
                for x in range(x0, x1):
                    sums[columns[x]] -= line[x] if seen[x] < noise.top else _F4(0)


@njit(nogil=True, cache=True)
def reach_of(amplitude, noise, profile):  # pragma: no cover
    """Radius, in widths, within which the light of a spot is at least a tenth of its noise."""
    for i in range(ENTRIES - 1, 67, -1):
        if amplitude * profile[i] > SEEN * noise:
            return math.sqrt(i * STEP)
    return NEAREST


@njit(nogil=True, cache=True)
def room_for(shape, optics):  # pragma: no cover
    """Cells for the voxels of the largest spot, and the table of the profile."""
    count = 1
    for axis in range(1 if optics.flat else 0, 3):
        count *= min(shape[axis], int(2 * math.sqrt(WINDOW) * math.exp(LARGEST) * optics.sigma[axis]) + 3)
    return np.empty((9, count + 1), np.float32), table_of(optics.profile)


@njit(nogil=True, cache=True, error_model="numpy", fastmath=QUICK)
def look(frame, top, optics, spot, room):  # pragma: no cover
    """Write the voxels within the window of a spot to cells, without those that say nothing; their number."""
    (image, model), (cells, table), n = frame, room, 0
    (nz, ny, nx), (z0, z1, y0, y1) = box(spot, optics, image.shape, math.sqrt(WINDOW))
    for z in range(z0, z1):
        dz = (z - spot[Z]) * nz
        for y in range(y0, y1):
            dy = (y - spot[Y]) * ny
            away = dz * dz + dy * dy
            x0, x1 = chord(spot, away, WINDOW, nx, image.shape[2])
            seen, mean = image[z, y], model[z, y]
            for x in range(x0, x1):
                dx, left = (x - spot[X]) * nx, seen[x] - mean[x]
                cells[DZ, n], cells[DY, n], cells[DX, n] = dz, dy, dx
                cells[SQUARE, n], cells[LEFT, n], cells[MEAN, n] = away + dx * dx, left, mean[x]
                n += left < np.inf and (seen[x] < top or left >= 0)  # what is cut off says nothing
    for k in range(n):
        q = cells[SQUARE, k] * _F4(1 / STEP)
        i = np.int32(q)
        cells[STEEP, k] = table[i, 1]
        cells[LIGHT, k] = table[i, 0] + table[i, 1] * (q - _F4(i))
    return n
