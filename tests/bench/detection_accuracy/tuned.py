"""Other detectors, tuned on the truth: the width and threshold that score best on the very images scored.

No user has such settings; so they are an upper bound of what these methods give. Each is given what helps
it: the true ratio of widths, positions between pixels, no margin at the walls.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from . import agree
from .cells import Cell, View

Found = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Positions (n, 3) in pixels, and a strength (n,) by which they can be thresholded."""

WIDTHS = (0.4, 0.5, 0.6, 0.75, 0.9, 1.05, 1.25, 1.5, 1.8)  # of the filter over that of the spots
DOG_WIDTHS = (0.5, 0.7, 1.0, 1.3)
OVERLAP = 0.5  # blob_dog's own: beyond it two blobs are one; 0.9 was hardly ever better
THRESHOLDS = tuple(np.geomspace(0.03, 2.0, 28))  # over the response to a median spot
DOG_THRESHOLDS = tuple(np.geomspace(0.06, 1.8, 10))  # each of which is a run of its own
DOG_ANSWER = 0.3  # about what it makes of a spot of amplitude 1
DIAMETERS = (2.0, 3.0, 4.5)  # of trackpy's disc, over the standard deviation of a spot
SEPARATIONS = (0.6, 1.0)  # of trackpy's maxima, over its diameter
MASSES = tuple(np.geomspace(0.002, 1.5, 28))  # over the light of a median spot
SMOOTH = 6.0  # trackpy smooths by a pixel, or by its diameter over this: a disc of 3 pixels has little left


def _vertex(values: NDArray[np.float64], voxel: NDArray[np.int64]) -> NDArray[np.float64]:
    """Maxima moved to the vertex of a parabola along each axis that has three voxels."""
    place = voxel.astype(np.float64)
    for axis, size in enumerate(values.shape):
        here = np.flatnonzero((voxel[:, axis] > 0) & (voxel[:, axis] < size - 1))
        low, high = voxel[here].copy(), voxel[here].copy()
        low[:, axis] -= 1
        high[:, axis] += 1
        a, b, c = (values[tuple(at.T)] for at in (low, voxel[here], high))
        bend = 2 * b - a - c
        place[here, axis] += np.where(bend > 0, (c - a) / np.where(bend > 0, 2 * bend, 1), 0)
    return place


def log(seen: View, cell: Cell) -> Iterator[tuple[str, Found]]:
    """scikit-image's blob_log at one width, and its maxima between pixels."""
    from skimage.feature import peak_local_max

    image = seen.image.astype(np.float64)
    image = image[0] if cell.dimensions == 2 else image
    for width in WIDTHS:
        sigma = np.maximum(width * np.array(cell.sigma) / cell.voxel, 0.5)[-cell.dimensions :]
        # Each axis with its own width, so that the response to a spot is largest at its own.
        values = -sum(sigma[axis] ** 2 * _second(image, sigma, axis) for axis in range(image.ndim))
        least = THRESHOLDS[0] * _answer(cell, width)
        voxel = peak_local_max(values, min_distance=1, threshold_abs=least, exclude_border=False)
        place = _vertex(values, voxel)
        yield f"width {width:g}", (_pixels(place, cell), values[tuple(voxel.T)] / _answer(cell, width))


def _second(image: NDArray[np.float64], sigma: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """The second derivative along an axis of the smoothed image."""
    order = [0] * image.ndim
    order[axis] = 2
    return gaussian_filter(image, sigma, order)


def _answer(cell: Cell, width: float) -> float:
    """What a Laplacian of Gaussian makes of a median spot."""
    d = cell.dimensions
    peak = cell.amplitude * cell.grey
    return peak * d * width**2 / (1 + width**2) ** (d / 2 + 1)


def dog(seen: View, cell: Cell) -> Iterator[tuple[str, Found]]:
    """scikit-image's blob_dog at one width; a run for each threshold, for blobs remove each other."""
    from skimage.feature import blob_dog

    image = seen.image.astype(np.float64)
    image = image[0] if cell.dimensions == 2 else image
    for width in DOG_WIDTHS:
        sigma = np.maximum(width * np.array(cell.sigma) / cell.voxel, 0.5)[-cell.dimensions :]
        for share in DOG_THRESHOLDS:
            blobs = blob_dog(
                image, min_sigma=sigma, max_sigma=sigma * 1.01, sigma_ratio=1.6, overlap=OVERLAP,
                threshold=share * cell.amplitude * cell.grey * DOG_ANSWER, exclude_border=False,
            )  # fmt: skip
            place = _pixels(blobs[:, : image.ndim].astype(np.float64), cell)
            yield f"width {width:g}, threshold {share:.2f}", (place, np.empty(0))


def trackpy(seen: View, cell: Cell) -> Iterator[tuple[str, Found]]:
    """trackpy.locate; the image is mirrored at its walls, near which trackpy finds nothing otherwise."""
    import trackpy

    light = (
        cell.amplitude * cell.grey * np.prod((np.array(cell.sigma) / cell.voxel * 2.5)[-cell.dimensions :])
    )
    for diameter in DIAMETERS:
        size = [_odd(diameter * s / v) for s, v in zip(cell.sigma, cell.voxel, strict=True)]
        for share in SEPARATIONS:
            apart = [max(share * d, 1.01) for d in size]
            place, mass = locate(
                trackpy.locate, seen.image, size[-cell.dimensions :], apart[-cell.dimensions :]
            )
            yield f"diameter {diameter:g}, separation {share:g}", (_pixels(place, cell), mass / light)


def locate(call: Callable, image: NDArray, size: list[int], apart: list[float]) -> Found:
    """What trackpy finds, in voxels, and its mass."""
    image = image if len(size) == 3 else image[0]
    rim = [2 * s + 2 for s in size]
    wide = np.pad(image, [(r, r) for r in rim], mode="symmetric")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = call(
            wide, tuple(size), separation=tuple(apart), noise_size=tuple(min(1.0, s / SMOOTH) for s in size),
            characterize=False,
        )  # fmt: skip
    if not len(table):
        return np.empty((0, len(size))), np.empty(0)
    place = table[["z", "y", "x"][-len(size) :]].to_numpy() - rim
    inside = ((place > -0.5) & (place < np.array(image.shape) - 0.5)).all(axis=1)
    return place[inside], table["mass"].to_numpy()[inside]


def _odd(size: float) -> int:
    return max(3, 2 * round((size - 1) / 2) + 1)


def _pixels(place: NDArray[np.float64], cell: Cell) -> NDArray[np.float64]:
    """From voxels to (n, 3) in pixels."""
    if cell.dimensions == 2:
        return np.column_stack([np.zeros(len(place)), place])
    return place * cell.voxel


PEERS: dict[str, tuple[Callable[[View, Cell], Iterator[tuple[str, Found]]], tuple[float, ...]]] = {
    "LoG": (log, THRESHOLDS),
    "blob_dog": (dog, (-1.0,)),
    "trackpy": (trackpy, MASSES),
}
"""Each with the thresholds on its strength."""


def scores(seen: View, cell: Cell) -> dict[str, float]:
    """JSC of every peer at every setting."""
    found = {}
    for peer, (run, thresholds) in PEERS.items():
        for setting, (place, strength) in run(seen, cell):
            for least in thresholds:
                kept = place[strength >= least] if len(strength) or not len(place) else place
                name = f"{peer}: {setting}" + (f", threshold {least:.3f}" if least >= 0 else "")
                found[name] = agree.jaccard(agree.counts(kept, seen, cell))
    return found


def best(images: list[dict[str, float]]) -> dict[str, dict[str, object]]:
    """For each peer the setting that scores best over all images of a cell, and its mean score."""
    mean = {name: float(np.mean([image[name] for image in images])) for name in images[0]}
    chosen = {}
    for peer in PEERS:
        own = {name: value for name, value in mean.items() if name.startswith(f"{peer}: ")}
        name = max(own, key=lambda key: own[key])
        chosen[peer] = {"jsc": round(own[name], 4), "setting": name.removeprefix(f"{peer}: ")}
    return chosen
