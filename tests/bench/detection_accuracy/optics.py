"""Light of point particles after Gibson and Lanni, integrated over pixels: one half of a second renderer.

It shares no code with `outbid.simulate`. The point spread function is

    h(r, z) = | ∫ J0(2π NA r ρ / λ) exp(i 2π W(ρ, z) / λ) ρ dρ |²,  ρ from 0 to 1,
    W = depth √(n_s² - NA² ρ²) - (depth + z) √(n_i² - NA² ρ²)

for a particle `depth` below the cover slip in a medium of index n_s, seen through an immersion of index n_i
(Gibson & Lanni, J. Opt. Soc. Am. A 9, 154, 1992). A sheet of light cuts off what is far from the focus, and a
part of the light is scattered into a halo. Rings, a waist that is not Gaussian, and tails that differ above
and below the focus are what a Gaussian model does not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import j0, roots_legendre

APERTURE, WAVELENGTH, DEPTH = 1.2, 0.6, 2.0  # numerical aperture; µm; µm
SAMPLE, IMMERSION = 1.33, 1.40  # indices of refraction: a mismatch that aberrates
SHEET = 2.0  # standard deviation of the light sheet over that of the focus
HALO, HALO_WIDTH = 0.15, 3.0  # share of the light in the halo, its width over that of the focus
REACH = 8.0  # standard deviations that are drawn, in the plane
REACH_Z = 4.0  # along z
STEP, STEP_Z = 0.02, 0.05  # steps of the table, in standard deviations


@dataclass(frozen=True, eq=False)
class Profile:
    """A point's light against r and z, both in standard deviations of its core.

    Parameters
    ----------
    light : (Z, R) array
        Rows from z = -REACH_Z, columns from r = 0; 1 at the focus.
    ratio : float
        Standard deviation along z over that in the plane.
    """

    light: NDArray[np.float64]
    ratio: float


def intensity(r: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
    """The point spread function of Gibson and Lanni, (Z, R), at lengths in µm."""
    node, weight = roots_legendre(120)
    rho, weight = (node + 1) / 2, weight / 2
    bent = np.sqrt(IMMERSION**2 - (APERTURE * rho) ** 2)
    path = DEPTH * np.sqrt(SAMPLE**2 - (APERTURE * rho) ** 2) - (DEPTH + z[:, None]) * bent
    wave = np.exp(2j * np.pi / WAVELENGTH * path) * rho * weight
    return np.abs(wave @ j0(2 * np.pi * APERTURE / WAVELENGTH * np.outer(rho, r))) ** 2


def _fitted(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Centre and standard deviation of the Gaussian nearest to a profile."""
    y = y / y.max()

    def misfit(bell: NDArray[np.float64]) -> NDArray[np.float64]:
        return bell[0] * np.exp(-((x - bell[1]) ** 2) / (2 * bell[2] ** 2)) - y

    _, centre, width = least_squares(misfit, (1.0, x[y.argmax()], 0.2)).x
    return float(centre), abs(float(width))


@cache
def profile() -> Profile:
    """The light of a point: core after Gibson and Lanni in a sheet of light, and halo."""
    z = np.linspace(-3, 3, 1201)
    focus, long = _fitted(z, intensity(np.zeros(1), z)[:, 0])
    long = long * SHEET / np.sqrt(1 + SHEET**2)
    r = np.linspace(-0.4, 0.4, 401)
    wide = _fitted(r, intensity(np.abs(r), np.array([focus]))[0])[1]
    at_r, at_z = np.arange(0, REACH * 1.5, STEP), np.arange(-REACH_Z, REACH_Z + STEP_Z / 2, STEP_Z)
    sheet = np.exp(-(at_z**2) / (2 * (1 + SHEET**2)))  # SHEET times the width of the bare focus
    core = intensity(at_r * wide, focus + at_z * long) * sheet[:, None]
    core /= core[len(at_z) // 2, 0]
    halo = np.exp(-(at_r**2 + at_z[:, None] ** 2) / (2 * HALO_WIDTH**2))
    inside = at_r * STEP * 2 * np.pi
    share = HALO / (1 - HALO) * (core[len(at_z) // 2] @ inside) / (halo[len(at_z) // 2] @ inside)
    light = core + share * halo
    return Profile(light / light[len(at_z) // 2, 0], long / wide)


@njit(cache=True)
def _draw(
    image: NDArray, place: NDArray, amplitude: NDArray, sigma: NDArray, voxel: NDArray, light: NDArray
) -> None:
    """Add points to an image (Z, Y, X), each pixel a mean over a square of points in it.

    place (n, 3) in pixels of the plane; amplitude (n,); sigma (3,) in the same unit; voxel (3,).
    """
    planes, rows, cols = image.shape
    fine = 5 if sigma[1] < 1.0 else (3 if sigma[1] < 2.5 else 2)
    last_r, last_z = light.shape[1] - 2, light.shape[0] - 2
    reach = REACH * sigma[1]
    for n in range(len(place)):
        y0, y1 = max(0, int(place[n, 1] - reach)), min(rows, int(place[n, 1] + reach) + 2)
        x0, x1 = max(0, int(place[n, 2] - reach)), min(cols, int(place[n, 2] + reach) + 2)
        for k in range(planes):
            at_z = ((k * voxel[0] - place[n, 0]) / sigma[0] + REACH_Z) / STEP_Z
            kz = int(np.floor(at_z))
            if kz < 0 or kz > last_z:
                continue
            wz = at_z - kz
            for i in range(y0, y1):
                for j in range(x0, x1):
                    total = 0.0
                    for a in range(fine):
                        dy = i + (a + 0.5) / fine - 0.5 - place[n, 1]
                        for b in range(fine):
                            dx = j + (b + 0.5) / fine - 0.5 - place[n, 2]
                            at_r = np.sqrt(dy * dy + dx * dx) / (sigma[1] * STEP)
                            kr = int(at_r)
                            if kr > last_r:
                                continue
                            wr = at_r - kr
                            low = light[kz, kr] * (1 - wr) + light[kz, kr + 1] * wr
                            high = light[kz + 1, kr] * (1 - wr) + light[kz + 1, kr + 1] * wr
                            total += low * (1 - wz) + high * wz
                    image[k, i, j] += amplitude[n] * total / (fine * fine)


def peak(sigma: tuple[float, float, float]) -> float:
    """Light in the brightest pixel of a point of amplitude 1 in the middle of a voxel."""
    return float(light_of(np.zeros((1, 3)), np.ones(1), (1, 1, 1), sigma, (1.0, 1.0, 1.0))[0, 0, 0])


def light_of(
    place: NDArray[np.float64],
    amplitude: NDArray[np.float64],
    shape: tuple[int, int, int],
    sigma: tuple[float, float, float],
    voxel: tuple[float, float, float],
) -> NDArray[np.float64]:
    """Expected light of points in each voxel.

    Parameters
    ----------
    place : (n, 3) array
        z, y, x in pixels of the plane; the centre of voxel 0 is position 0.
    amplitude : (n,) array
        Light at the focus.
    shape : tuple of 3 int
    sigma : tuple of 3 float
        Standard deviations of the core, in pixels of the plane.
    voxel : tuple of 3 float
        Size of a voxel, in pixels of the plane.
    """
    image = np.zeros(shape)
    _draw(image, place, amplitude, np.array(sigma), np.array(voxel), profile().light)
    return image
