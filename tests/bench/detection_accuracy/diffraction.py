"""Spots of a scalar diffraction integral with defocus and spherical aberration, before an sCMOS camera.

One of two renderers of images in uneven light. It shares no code with `gaussian_light`: light lies on grids
of cosines, splines and discs. The point spread function is

    h(r, z) = | ∫ J0(k r ρ) exp(i (a z ρ² + 0.6 (6 ρ⁴ - 6 ρ² + 1))) ρ dρ |²,  ρ from 0 to 1,

where k and a make its core about as wide as a Gaussian of the scene's widths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import zoom
from scipy.spatial import cKDTree
from scipy.special import j0

from .scene_of_light import Light, Scene

ABERRATION = 0.6  # radians, of the primary spherical aberration
RADII, PLANES, REACH, REACH_Z = 400, 161, 12.0, 8.0  # entries of the table, and the widths to which it goes
HALF_R, HALF_Z, HALF = 1.62, 5.57, 1.18  # where (2 J1(x)/x)² and sinc²(x/4) are one half; half width over σ
EDGE = 3.0  # voxels from a wall within which no spot is, 1 along short axes
HAZE = 4.0  # width of hazy spots over that of the others
GAIN, GAINS, OFFSET, OFFSETS = 2.2, 0.02, 100.0, 1.0  # grey values; spreads from pixel to pixel
READ, READS = 1.2, 0.4  # electrons: least read noise, and mean of what a pixel has more
MULTIPLIED, READ_EMCCD, OFFSET_EMCCD = 10.0, 8.0, 300.0  # grey values
BLEACHED, DARK = 0.15, 24.0  # of the light; grey values of 16 bits in one of 8
HOT, HOT_LIGHT = 1e-3, 600.0  # share of hot pixels, and their grey values
LEAST = 0.05  # of the mean light


class Table(NamedTuple):
    """Intensity (z, r), 1 at its peak, at radii in pixels and distances in planes."""

    r: NDArray[np.float64]
    z: NDArray[np.float64]
    light: NDArray[np.float64]


def point_spread(wide: float, deep: float) -> Table:
    """The table of a spot whose core has about these widths in the plane and along z."""
    rho = np.linspace(0, 1, 160)
    r, z = np.linspace(0, REACH * wide, RADII), np.linspace(-REACH_Z * deep, REACH_Z * deep, PLANES)
    phase = HALF_Z / (HALF * deep) * z[:, None] * rho**2 + ABERRATION * (6 * rho**4 - 6 * rho**2 + 1)
    light = np.abs(np.exp(1j * phase) @ (j0(HALF_R / (wide * HALF) * r[:, None] * rho) * rho).T) ** 2
    return Table(r, z, light / light.max())


def render(scene: Scene, seed: int) -> tuple[NDArray, NDArray[np.float64]]:
    """An image of a scene and the places of its spots, in voxels."""
    rng = np.random.default_rng([seed, 77])
    flat = len(scene.shape) == 2
    wide, deep = scene.sigma[-1], 2 * scene.sigma[-1] if flat else scene.sigma[0]
    photons = _light(scene.light, scene.shape, rng)
    noise = scene.light.level + 4
    peak = scene.snr**2 / 2 * (1 + np.sqrt(1 + 4 * noise / scene.snr**2))
    shape, edge = np.array(scene.shape), np.array([EDGE if n > 30 else 1.0 for n in scene.shape])
    places = edge + rng.random((scene.count, len(shape))) * (shape - 1 - 2 * edge)
    table = point_spread(wide, deep)
    for place in places:
        _stamp(photons, place, peak * rng.lognormal(0, scene.spread), table)
    if scene.haze:
        table = point_spread(HAZE * wide, HAZE * deep if not flat else HAZE)
    for _ in range(scene.haze):
        shift = scene.drift * HAZE * wide / shape[0]
        _stamp(photons, rng.random(len(shape)) * shape, peak * rng.uniform(0.3, 1), table, shift)
    return _recorded(photons, scene.camera, rng), places


def _stamp(
    photons: NDArray[np.float64], place: NDArray[np.float64], peak: float, table: Table, shift: float = 0.0
) -> None:
    """Add a spot, averaged over nine points of each pixel; it moves by `shift` pixels along y a plane."""
    reach = int(table.r[-1] / np.sqrt(2))
    y0, x0 = (round(float(v)) for v in place[-2:])
    ys = np.arange(max(0, y0 - reach), min(photons.shape[-2], y0 + reach + 1))
    xs = np.arange(max(0, x0 - reach), min(photons.shape[-1], x0 + reach + 1))
    if not len(ys) or not len(xs):
        return
    flat = photons.ndim == 2
    for number in range(1 if flat else photons.shape[0]):
        away = 0.0 if flat else number - place[0]
        if abs(away) > table.z[-1]:
            continue
        row, y = table.light[np.argmin(np.abs(table.z - away))], place[-2] + shift * away
        points = [(a, b) for a in (-1 / 3, 0, 1 / 3) for b in (-1 / 3, 0, 1 / 3)]
        radii = (np.hypot(ys[:, None] + a - y, xs + b - place[-1]) for a, b in points)
        light = sum(np.interp(radius, table.r, row, right=0.0) for radius in radii)
        plane = photons if flat else photons[number]
        plane[ys[0] : ys[-1] + 1, xs[0] : xs[-1] + 1] += peak * light / len(points)


def _light(light: Light, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Photons of the background, plane by plane."""
    y, x = np.meshgrid(*(np.arange(n) / (n - 1) for n in shape[-2:]), indexing="ij")
    depth = shape[0] if len(shape) == 3 else 1
    times = np.arange(depth) / max(depth - 1, 1)
    if light.kind in ("lumpy", "blobs"):
        planes = 1 + light.strength * _splines(light, shape, rng)
    elif light.kind == "cells":
        planes = _discs(x, y, times, rng)
    elif light.kind == "tissue":
        planes = np.broadcast_to(_tissue(x, y, rng), (depth, *shape[-2:]))
    elif light.kind == "stripes":
        lines = 1 + 0.4 * light.strength * rng.normal(size=shape[-2])
        planes = np.broadcast_to(lines[:, None], (depth, *shape[-2:]))
    else:
        planes = np.stack([_smooth(light, x, y, float(t)) for t in times])
    photons = light.level * np.maximum(planes, LEAST)
    return photons if len(shape) == 3 else photons[0]


def _smooth(light: Light, x: NDArray[np.float64], y: NDArray[np.float64], t: float) -> NDArray[np.float64]:
    s = light.strength
    if light.kind == "flat":
        return np.ones_like(x)
    if light.kind == "slope":
        return 1 - s * (x - 0.5 + (y - 0.5) * 0.7) * 2 + s * (t - 0.5)
    if light.kind == "sinus":
        return 1 + s * np.cos(9 * x + 4 * y + 3 * t)
    if light.kind == "slope and sinus":
        return 1 + s * (x + y - 1 + 0.5 * t) + s * np.sin(7 * x - 1) * np.sin(6 * y + 2 * t)
    if light.kind == "vignette":
        return 1.5 * np.exp(-3.5 * ((x - 0.5) ** 2 + (y - 0.5) ** 2)) + 0.1
    raise ValueError(f"There is no light called {light.kind}.")


def _splines(light: Light, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Random knots about 1.5 scales apart, interpolated; of mean 0 and standard deviation 1."""
    knots = [max(4, int(n / (1.5 * light.scale)) + 2) for n in shape[-2:]]
    depth = shape[0] if len(shape) == 3 else 1
    deep = max(4, int(depth / light.scale) + 3) if depth > 1 else 1
    size = (deep, *knots)
    grid = rng.normal(size=size) if light.kind == "lumpy" else rng.exponential(size=size) ** 1.3
    finer = (shape[-2] / knots[0], shape[-1] / knots[1])
    coarse = np.stack([zoom(plane, finer, order=3, mode="nearest") for plane in grid])
    coarse = (coarse - coarse.mean()) / coarse.std()
    place = np.linspace(0, deep - 1, depth)
    first = np.minimum(place.astype(int), max(deep - 2, 0))
    share = (place - first)[:, None, None]
    return (1 - share) * coarse[first] + share * coarse[np.minimum(first + 1, deep - 1)]


def _discs(
    x: NDArray[np.float64], y: NDArray[np.float64], times: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Eight plateaus, whose edges are some voxels wide, smaller towards the first and the last plane."""
    planes = np.full((len(times), *x.shape), 0.4)
    for _ in range(8):
        (a, b), radius = rng.uniform(0, 1, 2), rng.uniform(0.12, 0.25)
        bright, flat = rng.uniform(0.6, 2.2), rng.uniform(0.4, 1)
        wide = radius * (1 - 0.3 * np.abs(2 * times - 1))[:, None, None]
        inside = np.hypot((y - a) * flat, x - b) / wide
        planes = np.maximum(planes, bright / (1 + np.exp(np.minimum((inside - 1) * 40, 700))))
    return planes


def _tissue(x: NDArray[np.float64], y: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Cells on a jittered grid, bright in their walls and of their own brightness inside."""
    grid = np.stack(np.meshgrid(np.arange(-1, 8), np.arange(-1, 8)), axis=-1).reshape(-1, 2) / 6
    seeds = grid + rng.uniform(-0.06, 0.06, grid.shape)
    away, nearest = cKDTree(seeds).query(np.stack([y.ravel(), x.ravel()], axis=1), k=2)
    inside = rng.lognormal(-0.2, 0.4, len(seeds))[nearest[:, 0]]
    wall = np.exp(-(((away[:, 1] - away[:, 0]) / 0.025) ** 2))
    return (inside + 0.8 * wall).reshape(x.shape)


def _recorded(photons: NDArray[np.float64], camera: str, rng: np.random.Generator) -> NDArray:
    """Grey values of a sensor whose pixels each have their gain, offset and read noise."""
    if camera == "bleached":
        photons = photons * BLEACHED
    if camera == "emccd":
        charge = MULTIPLIED * rng.gamma(rng.poisson(photons) + 1e-9, 1.0)
        grey = OFFSET_EMCCD + charge + rng.normal(0, READ_EMCCD, photons.shape)
        return grey.round().clip(0, 65535).astype(np.uint16)
    pixels = photons.shape[-2:]
    gain, offset = GAIN * (1 + GAINS * rng.normal(size=pixels)), OFFSET + rng.normal(0, OFFSETS, pixels)
    read = READ + rng.exponential(READS, pixels)
    grey = offset + gain * (rng.poisson(photons) + read * rng.normal(size=photons.shape))
    if camera == "hot":
        grey = grey + (rng.random(pixels) < HOT) * rng.exponential(HOT_LIGHT, pixels)
    if camera == "filtered":
        padded = np.pad(grey, [(0, 0)] * (grey.ndim - 2) + [(1, 1)] * 2, mode="edge")
        along = sum(w * padded[..., i : i + pixels[0], :] for i, w in enumerate((0.25, 0.5, 0.25)))
        grey = sum(w * along[..., i : i + pixels[1]] for i, w in enumerate((0.25, 0.5, 0.25)))
    if camera == "8bit":
        top = np.quantile(grey, 0.9995)
        return ((grey - 90) / (top - 90) * 240).round().clip(0, 255).astype(np.uint8)
    if camera == "8bit dark":
        return (grey / DARK).round().clip(0, 255).astype(np.uint8)
    return grey.round().clip(0, 65535).astype(np.uint16)
