"""Frames of one shape to the candidates of each, on the GPU."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...compute.arrays import cupy_module, free_device_memory, to_device, to_host
from ..candidates import _TAIL, tail_of
from ..prepare import prepared
from ..spots import Part, one_of_each, tiles
from ..stabilise import masked, stabilised, with_peaks_restored
from ..transform import Band
from . import light
from .fit import GreyFit, beside_bright
from .joint import JointSearch
from .modes import back, forward

_BYTES = 200
"""Guard: bytes of memory for each voxel that is searched."""
_SIDE = 16
"""Guard: pixels that a plane has at least along y and x."""
_SHARE = 0.8
"""Guard: of the free memory that is used."""


def serves(image, settings):
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


def parts_of_frames(images, model, settings):
    """The candidates of images of one shape and type, for each a list of `spots.Part`, a tile each.

    Frames without a measured voxel have none.
    """
    frames = _frames(images, model, settings)
    pieces = tiles(images[0].shape, model.sigma)
    dark = {number for number, image in frames.repaired.items() if not np.isfinite(image).any()}
    items = [_Item(number, tile) for number in range(len(images)) if number not in dark for tile in pieces]
    found = {}
    for some in _of_one_shape(items, images[0].shape[0]):
        for item, part in zip(some, _searched(frames, some, model), strict=True):
            found[item.number, item.tile.start] = part
    return [
        [found[number, tile.start] for tile in pieces] if number not in dark else []
        for number in range(len(images))
    ]


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


def _of_one_shape(items, depth):
    """Items whose tiles have one shape, as many as fit the memory."""
    most = max(1, int(_SHARE * free_device_memory() / _BYTES))
    shapes = {}
    for item in items:
        rows, columns = item.tile.rows, item.tile.columns
        shapes.setdefault((rows.stop - rows.start, columns.stop - columns.start), []).append(item)
    for (height, width), some in shapes.items():
        size = max(1, most // (depth * height * width))
        yield from (some[start : start + size] for start in range(0, len(some), size))


def _searched(frames, items, model):
    """The candidates of some tiles of one shape, a part each."""
    xp, noise = cupy_module(), model.noise
    voxels = xp.stack([frames.voxels[item.number, :, item.tile.rows, item.tile.columns] for item in items])
    values = light.stabilised(voxels, noise)
    for row, item in enumerate(items):
        if item.number in frames.repaired:
            tile = _tile(frames.repaired[item.number], item)
            values[row] = to_device(
                stabilised(with_peaks_restored(tile, model.sigma, noise.saturation), noise)
            )
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
    fitted = fit.fitted(rows, height, significant)
    seen = to_host(beside_bright(rows, height, significance, fit.widths))
    return _parts(items, seen, fitted, to_host(rows.start), search)


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
        search.response, np.arange(frames, dtype=np.int32), np.full(frames, _TAIL), -1.0
    )
    frame, deep = to_host(frame), to_host(deep)
    return np.array([tail_of(deep[frame == number], each) for number, each in enumerate(search.maxima)])


def _measured(voxels, rows, height, frames, items, noise):
    """(n,): which candidates are where something was measured, one of each saturated region."""
    voxel = tuple(cupy_module().rint(rows.position).astype(np.int64).T)
    here = cupy_module().isfinite(voxels[(rows.frame, *voxel)])
    for row, item in enumerate(items):
        if item.number not in frames.repaired:
            continue
        saturated = _tile(frames.repaired[item.number], item) >= noise.saturation
        if saturated.any():
            own = cupy_module().flatnonzero((rows.frame == row) & here)
            position, high = to_host(rows.position[own]), to_host(height[own])
            here[own] = to_device(one_of_each(position, high, saturated))
    return here


def _parts(items, seen, fitted, start, search):
    """The candidates of each tile that are its own."""
    out = []
    for row, item in enumerate(items):
        rows = slice(int(start[row]), int(start[row + 1]))
        own = fitted.of(rows)
        own = own._replace(position=own.position + np.array([0, *item.tile.start]))
        inner = item.tile.owns(own.position[:, 1:])
        maxima, least = search.maxima[row], float(search.least[row])
        out.append(Part(seen[rows][inner], own.of(inner), maxima, least, item.tile.share))
    return out
