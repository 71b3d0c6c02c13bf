"""Frames of one shape to the spots of each, on the GPU."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import cupy_module, free_device_memory, to_device, to_host
from ...settings.detection import DetectionSettings
from ..candidates import TAIL, tail_heights, tail_of
from ..model import SpotModel
from ..prepare import prepared
from ..spots import FrameSpots, columns_of, one_of_each, tiles
from ..stabilise import masked, stabilised, with_peaks_restored
from ..transform import Band
from . import light
from .decision import decided
from .fit import GreyFit, beside_bright, on_host
from .joint import JointSearch
from .modes import back, forward
from .rows import starts
from .wider import as_one

_BYTES = 200
"""Guard: bytes of memory for each voxel that is searched."""
_SIDE = 16
"""Guard: pixels that a plane has at least along y and x."""
_SHARE = 0.8
"""Guard: of the free memory that is used."""


def serves(image: NDArray, settings: DetectionSettings) -> bool:
    """Whether images of this shape are searched here: spots in planes of some size."""
    return not settings.bodies and min(image.shape[1:]) >= _SIDE


class _Item(NamedTuple):
    """A tile of a frame, by its number."""

    number: int
    tile: object


class _Frames(NamedTuple):
    """Frames on the GPU, and on the host those with voxels that are repaired there, by number.

    Parameters
    ----------
    voxels : (B, Z, Y, X) float32 array
        Grey values, NaN where nothing was measured.
    repaired : dict of int to (Z, Y, X) float32 array
    """

    voxels: object
    repaired: dict


class _Found(NamedTuple):
    """Candidates of some tiles.

    Parameters
    ----------
    item : (n,) int32 array
    significance : (n,) float64 array
    results : (n, 14) float64 array
        Of `GreyFit.fitted`, in voxels of the frame.
    least, volume, curvature : (items,), (items,) and (items, 3) float64 array
        On the host: significance above which candidates are complete, voxels, curvature of the response.
    """

    item: object
    significance: object
    results: object
    least: object
    volume: object
    curvature: object


def spots_of_frames(
    images: Sequence[NDArray], model: SpotModel, settings: DetectionSettings
) -> list[FrameSpots]:
    """The accepted spots (FrameSpots) of images of one shape and type, as `spots_of_frame` finds them."""
    frames = _frames(images, model, settings)
    dark = {number for number, image in frames.repaired.items() if not np.isfinite(image).any()}
    pieces = tiles(images[0].shape, model.sigma)
    items = [_Item(number, tile) for number in range(len(images)) if number not in dark for tile in pieces]
    height, width = (each.stop - each.start for each in (pieces[0].rows, pieces[0].columns))
    free = int(_SHARE * free_device_memory() / _BYTES)
    size = max(1, free // (images[0].shape[0] * height * width))
    found = [_searched(frames, items[at : at + size], model) for at in range(0, len(items), size)]
    spots = _decided(found, items, len(pieces), model, settings) if items else []
    seen = iter(spots)
    return [FrameSpots.none() if number in dark else next(seen) for number in range(len(images))]


def _frames(images, model, settings):
    """Upload; where voxels may not be measured or are saturated, the host looks."""
    voxels, noise = light.uploaded(images, model, settings), model.noise
    repaired = {}
    for number in np.flatnonzero(light.faulty(voxels, noise) | noise.missing).tolist():
        image = prepared(images[number], settings, model.middle, model.unit)
        image[masked(image, noise)] = np.nan
        repaired[number] = image
        voxels[number] = to_device(image)
    return _Frames(voxels, repaired)


def _searched(frames, items, model):
    """The candidates of some tiles."""
    xp, noise = cupy_module(), model.noise
    voxels = xp.stack([frames.voxels[item.number, :, item.tile.rows, item.tile.columns] for item in items])
    values = light.stabilised(voxels, noise)
    for row, item in enumerate(items):
        if item.number in frames.repaired:
            tile = _tile(frames.repaired[item.number], item)
            restored = with_peaks_restored(tile, model.sigma, noise.saturation)
            values[row] = to_device(stabilised(restored, noise))
    band = Band.of(values.shape[1:], model.sigma)
    search, rows = _candidates(values, band, model)
    position = (rows.position + 0.5) / to_device(band.scale) - 0.5
    scale = search.filters.scale[rows.frame]
    rows, height = replace(rows, position=position), rows.amplitude / (scale * band.gain)
    significance = rows.significance / to_device(_tails(search))[rows.frame]
    here = _measured(voxels, rows, height, frames, items, noise)
    rows, height, significance = rows.of(here), height[here], significance[here]
    background = search.background
    if band.small != band.shape:
        background = back(forward(background, band.small), band.shape)
    significant = significance > to_device(search.alone)[rows.frame]
    fit = GreyFit(voxels, values, background, search.filters.wiener, model.sigma, noise)
    results, stay = as_one(fit, rows, significance, significant, fit.fitted(rows, height, significant))
    rows, height, significance, results = rows.of(stay), height[stay], significance[stay], results[stay]
    return _own(items, rows.frame, beside_bright(rows, height, significance, fit.widths), results, search)


def _tile(image, item):
    return np.ascontiguousarray(image[:, item.tile.rows, item.tile.columns])


def _candidates(values, band, model):
    """The joint search of frames in units of the noise, in their band; see `candidates.find_candidates`."""
    mean = values.mean(axis=(1, 2, 3), dtype=np.float64).astype(np.float32)[:, None, None, None]
    even = values - mean
    modes = forward(even, band.small)
    if band.small != band.shape:
        even = back(modes, band.small)
    dark = cupy_module().broadcast_to(mean * np.float32(band.gain), even.shape).copy()
    search = JointSearch(even, dark, model.sigma * band.scale, model.noise.scaled(band.gain))
    return search, search.find(modes)


def _tails(search):
    """(B,) on the host: how much wider than a Gaussian's the tail of the minima of each frame is."""
    frames = len(search.values)
    frame, _, deep = search.scales.maxima(
        search.response, np.arange(frames, dtype=np.int32), np.full(frames, TAIL), -1.0
    )
    frame, deep = to_host(frame), to_host(deep)
    excess = np.bincount(frame, deep**2 - TAIL**2, frames)
    return tail_of(excess, np.bincount(frame, minlength=frames), search.noise_above(tail_heights()))


def _measured(voxels, rows, height, frames, items, noise):
    """(n,): which candidates are where something was measured, one of each saturated region."""
    xp = cupy_module()
    voxel = tuple(xp.rint(rows.position).astype(np.int64).T)
    here = xp.isfinite(voxels[(rows.frame, *voxel)])
    for row, item in enumerate(items):
        if item.number not in frames.repaired:
            continue
        saturated = _tile(frames.repaired[item.number], item) >= noise.saturation
        if saturated.any():
            own = xp.flatnonzero((rows.frame == row) & here)
            position, high = to_host(rows.position[own]), to_host(height[own])
            here[own] = to_device(one_of_each(position, high, saturated))
    return here


def _own(items, item, significance, results, search):
    """The candidates that each tile owns, in voxels of the frame."""
    inner = to_device(np.array([each.tile.inner for each in items], float))[item]
    results[:, 1:3] += to_device(np.array([each.tile.start for each in items], float))[item]
    pixel = cupy_module().rint(results[:, 1:3])
    own = cupy_module().flatnonzero(((pixel >= inner[:, :, 0]) & (pixel < inner[:, :, 1])).all(axis=1))
    volume = np.prod(search.shape) * np.array([each.tile.share for each in items])
    return _Found(item[own], significance[own], results[own], search.least, volume, search.curvature)


def _decided(found, items, pieces, model, settings):
    """The accepted spots of each frame, of so many tiles each."""
    xp, before = cupy_module(), 0
    for number, each in enumerate(found):
        found[number] = each._replace(item=each.item + np.int32(before))
        before += len(each.least)
    frame = xp.concatenate([each.item for each in found]) // np.int32(pieces)
    u, results = (xp.concatenate([each[column] for each in found]) for column in (1, 2))
    least, volume, curvature = (np.concatenate([each[column] for each in found]) for column in (3, 4, 5))
    by_frame = len(items) // pieces, pieces
    least, volume = least.reshape(by_frame).max(axis=1), volume.reshape(by_frame)
    order, probability, keep = decided(u, frame, least, volume, curvature.reshape(*by_frame, 3), settings.fdr)
    u, frame = u[order], frame[order]
    rank = xp.arange(len(u)) - starts(frame, len(least))[frame]
    kept = xp.flatnonzero(rank < keep[frame] if settings.threshold is None else u > settings.threshold)
    return _columns(
        to_host(frame[kept]), to_host(u[kept]), to_host(probability[kept]), on_host(results[order[kept]]),
        len(least), model, settings,
    )  # fmt: skip


def _columns(frame, quality, probability, fitted, frames, model, settings):
    """Spots in the units of the movie, by frame and position."""
    columns = {"quality": quality, "probability": probability, **columns_of(fitted, model, settings)}
    position = fitted.position * settings.spacing
    order = np.lexsort((*position.T[::-1], frame))
    position, columns = position[order], {name: values[order] for name, values in columns.items()}
    edges = np.searchsorted(frame[order], np.arange(frames + 1)).tolist()
    return [
        FrameSpots(position[a:b], {name: values[a:b] for name, values in columns.items()}, b - a)
        for a, b in itertools.pairwise(edges)
    ]
