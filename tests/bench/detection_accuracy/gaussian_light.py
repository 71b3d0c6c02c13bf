"""Gaussian spots, integrated over voxels, with a wide halo, on analytic shades of light.

One of two renderers of images in uneven light; `diffraction` is the other one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree
from scipy.special import erf

from .scene_of_light import Light, Scene

HALO, HALO_WIDTH = 0.15, 3.0  # share of the amplitude in the halo, and its width over that of the core
REACH = 4.5  # widths that are drawn
EDGE = 3.0  # voxels from a wall within which no spot is, 1 along short axes
HAZE = (3.0, 5.0)  # widths of hazy spots over those of the others
READ, GAIN, OFFSET = 2.0, 2.1, 100.0  # electrons, grey values a photon, grey values
MULTIPLIED, READ_EMCCD, OFFSET_EMCCD = 8.0, 6.0, 400.0  # grey values of an electron-multiplying camera
BLEACHED = 0.15  # of the light
DARK = 12.0  # photons a grey value, in dark images of 8 bits
HOT, HOT_LIGHT = 1e-3, 300.0  # share of hot pixels, and their photons
BLUR = 0.7  # pixels, of filtered images
LEAST = 0.05  # of the mean light


def render(scene: Scene, seed: int) -> tuple[NDArray, NDArray[np.float64]]:
    """An image of a scene and the places of its spots, in voxels."""
    rng = np.random.default_rng(seed)
    photons = _light(scene.light, scene.shape, rng)
    level, snr = scene.light.level, scene.snr
    peak = (snr**2 + np.sqrt(snr**4 + 4 * snr**2 * (level + READ**2))) / 2
    shape, margin = np.array(scene.shape), np.where(np.array(scene.shape) > 30, EDGE, 1.0)
    truth = rng.uniform(margin, shape - 1 - margin, (scene.count, len(shape)))
    for place in truth:
        amplitude = peak * np.exp(rng.normal() * scene.spread)
        _draw(photons, place, (1 - HALO) * amplitude, np.array(scene.sigma))
        _draw(photons, place, HALO * amplitude, HALO_WIDTH * np.array(scene.sigma))
    for _ in range(scene.haze):
        widths = rng.uniform(*HAZE) * np.array(scene.sigma)
        _draw(photons, rng.uniform(0, shape), peak * rng.uniform(0.3, 1), widths, scene.drift)
    return _recorded(photons, scene.camera, rng), truth


def _integral(n: int, centre: float, width: float) -> NDArray[np.float64]:
    """A Gaussian of peak 1, integrated over n voxels."""
    edge = (np.arange(n + 1) - 0.5 - centre) / (width * np.sqrt(2))
    return np.diff(erf(edge)) * width * np.sqrt(np.pi / 2)


def _draw(
    photons: NDArray[np.float64],
    place: NDArray[np.float64],
    amplitude: float,
    widths: NDArray[np.float64],
    drift: float = 0.0,
) -> None:
    """Add a spot, which moves by `drift` widths along y from the first plane to the last."""
    if drift and photons.ndim == 3:
        along_z = _integral(len(photons), place[0], widths[0])
        for number, share in enumerate(along_z.tolist()):
            moved = place[1:] + np.array([drift * widths[1] * (number / len(photons) - 0.5), 0.0])
            _draw(photons[number], moved, amplitude * share, widths[1:])
        return
    low = np.maximum((place - REACH * widths).astype(int), 0)
    stop = np.minimum((place + REACH * widths).astype(int) + 2, photons.shape)
    if (stop <= low).any():
        return
    block = np.array(amplitude)
    for axis in range(photons.ndim):
        block = block[..., None] * _integral(stop[axis] - low[axis], place[axis] - low[axis], widths[axis])
    photons[tuple(slice(a, b) for a, b in zip(low, stop, strict=True))] += block


def _light(light: Light, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Photons of the background."""
    *deep, y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
    z = deep[0] if deep else np.zeros(shape)
    s = light.strength
    if light.kind == "flat":
        shade = np.ones(shape)
    elif light.kind == "slope":
        shade = 1 + s * (x + 0.5 * y + 0.5 * z)
    elif light.kind == "sinus":
        shade = 1 + s * np.sin(np.pi * (2.2 * x + 0.3) + z) * np.cos(np.pi * 1.6 * y)
    elif light.kind == "slope and sinus":
        shade = 1 + s * (0.6 * x + 0.4 * y + 0.3 * z) + s * np.sin(np.pi * (2 * x + y) + 2 * z)
    elif light.kind == "vignette":
        shade = 1.6 / (1 + 1.5 * (x**2 + y**2)) ** 2 + 0.1
    elif light.kind == "stripes":
        shade = 1 + 0.5 * s * rng.normal(size=shape[-1]) + 0.25 * s * rng.normal(size=shape[-2])[:, None]
        shade = np.broadcast_to(shade, shape)
    elif light.kind in ("lumpy", "blobs"):
        field = _lumps(light, shape, rng)
        shade = 1 + s * (field - field.mean()) / field.std()
    else:
        shade = _tissue(x, y, shape, rng) if light.kind == "tissue" else _cells(x, y, rng)
        shade = gaussian_filter(shade, (0.0,) * len(deep) + (1.2, 1.2))
    return light.level * np.clip(shade, LEAST, None)


def _lumps(light: Light, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Filtered noise, or blobs of exponential brightness."""
    widths = np.array([0.6 * light.scale, light.scale, light.scale][3 - len(shape) :])
    if light.kind == "lumpy":
        return gaussian_filter(rng.normal(size=shape), widths, mode="wrap")
    field = np.zeros(shape)
    for _ in range(int(np.prod(np.array(shape) / widths) / 12) + 1):
        place = rng.uniform(-1, 1, len(shape)) * widths + rng.uniform(0, shape)
        _draw(field, place, rng.exponential(), widths)
    return field


def _cells(x: NDArray[np.float64], y: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Seven bright plateaus with sharp edges on a dark ground."""
    shade = np.full(x.shape, 0.3)
    for _ in range(7):
        (a, b), radius, flat = rng.uniform(-0.9, 0.9, 2), rng.uniform(0.2, 0.45), rng.uniform(0.7, 1.4)
        inside = ((y - a) / radius) ** 2 + ((x - b) / radius / flat) ** 2 < 1
        shade = np.where(inside, np.maximum(shade, rng.uniform(0.8, 2.5)), shade)
    return shade


def _tissue(
    x: NDArray[np.float64], y: NDArray[np.float64], shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Cells that fill the image, each of its own brightness, with dark walls between them."""
    seeds = rng.uniform(-1.1, 1.1, (40, 2))
    away, nearest = cKDTree(seeds).query(np.stack([y.ravel(), x.ravel()], axis=1), k=2)
    shade = rng.uniform(0.4, 1.6, len(seeds))[nearest[:, 0]]
    shade[away[:, 1] - away[:, 0] < 0.03] *= 0.5
    return shade.reshape(shape)


def _recorded(photons: NDArray[np.float64], camera: str, rng: np.random.Generator) -> NDArray:
    """What a camera makes of photons."""
    if camera == "bleached":
        photons = photons * BLEACHED
    if camera == "emccd":
        charge = rng.gamma(np.maximum(rng.poisson(photons), 1e-9), 1.0) * MULTIPLIED
        return _whole(charge + rng.normal(0, READ_EMCCD, photons.shape) + OFFSET_EMCCD, np.uint16)
    seen = rng.poisson(photons) + rng.normal(0, READ, photons.shape)
    if camera == "8bit":
        return _whole(0.9 * 255 * seen / np.percentile(seen, 99.9), np.uint8)
    if camera == "8bit dark":
        return _whole(seen / DARK, np.uint8)
    if camera == "filtered":
        seen = gaussian_filter(seen, (0.0,) * (photons.ndim - 2) + (BLUR, BLUR))
    if camera == "hot":
        hot = rng.random(photons.shape[-2:]) < HOT
        seen = seen + hot * rng.exponential(HOT_LIGHT, photons.shape[-2:])
    return _whole(seen * GAIN + OFFSET, np.uint16)


def _whole(values: NDArray[np.float64], kind: type[np.unsignedinteger]) -> NDArray:
    return np.clip(np.round(values), 0, np.iinfo(kind).max).astype(kind)
