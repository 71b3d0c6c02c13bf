"""The spots of one frame: find, fit, decide, and state them in the units of the movie.

Large frames are divided into tiles of the plane, each with a margin, so that memory does not grow with the
frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import ceil, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.fft import next_fast_len

from ..settings.detection import DetectionSettings
from .blobs import find_blobs
from .candidates import find_candidates
from .decision import Decision, beside_bright, decide
from .fit import FittedSpots, fit_in_grey
from .fit_cpu import REACH
from .model import SpotModel
from .prepare import LEAST_SIDE, prepared
from .spectrum import Maxima
from .stabilise import masked
from .transform import CosineTransform
from .wider import as_one

FEATURES = (
    "quality", "probability", "amplitude", "background", "radius", "snr", "misfit",
    "position_error_z", "position_error_y", "position_error_x",
)  # fmt: skip
"""Columns of a detection: see `outbid.detect`."""
LARGE = 1 << 22
"""Guard: voxels of a frame beyond which it is searched in tiles, of at most twice as many with their margins:
some 60 bytes each are in use."""


@dataclass(frozen=True, eq=False)
class FrameSpots:
    """All candidates of a frame, best first.

    Parameters
    ----------
    position : (n, 3) float64 array
        Voxel centres times `spacing`.
    features : dict of str to (n,) float64 array
        `FEATURES`.
    keep : int
        Number of candidates that are accepted as spots.
    """

    position: NDArray[np.float64]
    features: dict[str, NDArray[np.float64]]
    keep: int

    @staticmethod
    def none() -> FrameSpots:
        """A frame without candidates."""
        return FrameSpots(np.empty((0, 3)), {name: np.empty(0) for name in FEATURES}, 0)

    def accepted(self) -> FrameSpots:
        """The accepted candidates, sorted by position: the order by quality depends on rounding."""
        order = np.lexsort(self.position[: self.keep].T[::-1])
        features = {name: values[: self.keep][order] for name, values in self.features.items()}
        return replace(self, position=self.position[: self.keep][order], features=features)


def spots_of_frame(
    image: NDArray, model: SpotModel, settings: DetectionSettings, dct: CosineTransform
) -> FrameSpots:
    """Find the spots of a frame.

    Parameters
    ----------
    image : (Z, Y, X) array of real numbers
    model : SpotModel
    settings : DetectionSettings
        Settings with radii, as `learn` returns them together with the model.
    dct : CosineTransform
    """
    voxels = prepared(image, settings, model.middle, model.unit)
    voxels[masked(voxels, model.noise)] = np.nan
    if not np.isfinite(voxels).any():
        return FrameSpots.none()
    if settings.bodies:
        return _blobs(voxels, model, settings)
    return _spots(voxels, model, settings, dct)


class Tile(NamedTuple):
    """A part of the plane.

    Parameters
    ----------
    rows, columns : slice
        Of the frame, with the margin.
    inner : ((int, int), (int, int))
        First row and the one after the last, columns likewise, without the margin.
    """

    rows: slice
    columns: slice
    inner: tuple[tuple[int, int], tuple[int, int]]

    @property
    def share(self) -> float:
        """Of the part with its margin, that which is inner."""
        (top, bottom), (left, right) = self.inner
        whole = (self.rows.stop - self.rows.start) * (self.columns.stop - self.columns.start)
        return (bottom - top) * (right - left) / whole

    @property
    def start(self) -> tuple[int, int]:
        """Row and column of the first voxel."""
        return self.rows.start, self.columns.start

    def owns(self, position: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,): which positions (n, 2) are nearest to an inner pixel of this tile."""
        low, high = np.transpose(self.inner)
        pixel = np.rint(position)
        return ((pixel >= low) & (pixel < high)).all(axis=1)


class _Part(NamedTuple):
    """Candidates of a tile, its noise, and the share of it that is theirs."""

    significance: NDArray[np.float64]
    fitted: FittedSpots
    maxima: Maxima
    least: float
    share: float


def _spots(
    voxels: NDArray[np.float32], model: SpotModel, settings: DetectionSettings, dct: CosineTransform
) -> FrameSpots:
    """Spots of one profile."""
    pieces = tiles(voxels.shape, model.sigma)
    if len(pieces) == 1:
        parts = [_part(voxels, pieces[0], model, dct)]
    else:
        with ThreadPoolExecutor(dct.workers) as pool:
            parts = list(pool.map(lambda tile: _part(voxels, tile, model, replace(dct, workers=1)), pieces))
    significance = np.concatenate([part.significance for part in parts])
    decision = decide(
        significance,
        lambda u: np.sum([part.share * part.maxima.above(u) for part in parts], axis=0),
        max(part.least for part in parts),
        settings.fdr,
    )
    fitted = FittedSpots.joined(part.fitted for part in parts).of(decision.order)
    quality = significance[decision.order]
    columns = {"quality": quality, "probability": decision.probability, **columns_of(fitted, model, settings)}
    return FrameSpots(fitted.position * settings.spacing, columns, _kept(quality, decision, settings))


def _part(voxels: NDArray[np.float32], tile: Tile, model: SpotModel, dct: CosineTransform) -> _Part:
    whole = np.ascontiguousarray(voxels[:, tile.rows, tile.columns])
    candidates = find_candidates(whole, model.sigma, model.noise, dct)
    candidates = candidates.of(np.isfinite(whole[tuple(np.rint(candidates.position).astype(int).T)]))
    saturated = whole >= model.noise.saturation
    candidates = candidates.of(one_of_each(candidates.position, candidates.height, saturated))
    light, significance = candidates.background.grey, candidates.significance
    fitted, stay = as_one(
        lambda box: (whole[box], light[box]), fit_in_grey(whole, candidates, model.sigma), significance,
        candidates.significant, model.sigma, model.noise,
    )  # fmt: skip
    fitted, candidates = fitted.of(stay), candidates.of(stay)
    fitted = fitted._replace(position=fitted.position + np.array([0, *tile.start]))
    own = tile.owns(fitted.position[:, 1:])
    maxima = candidates.filter_.maxima
    seen = beside_bright(candidates.position, candidates.height, candidates.significance, model.sigma)
    return _Part(seen[own], fitted.of(own), maxima, candidates.least, tile.share)


def one_of_each(
    position: NDArray[np.float64], height: NDArray[np.float64], saturated: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """(n,): which candidates are outside saturated regions, or the brightest in theirs.

    Where profiles are cut, two do not differ from one.
    """
    if not saturated.any():
        return np.ones(len(position), bool)
    label = ndimage.label(saturated)[0][tuple(np.rint(position).astype(int).T)]
    best = np.zeros(label.max(initial=0) + 1)
    np.maximum.at(best, label, height)
    return (label == 0) | (height >= best[label])


def _kept(quality: NDArray[np.float64], decision: Decision, settings: DetectionSettings) -> int:
    """How many of the best are accepted: those above the threshold, or as was decided."""
    return decision.keep if settings.threshold is None else int((quality > settings.threshold).sum())


def _grey(values: NDArray[np.float64], model: SpotModel, settings: DetectionSettings) -> NDArray[np.float64]:
    """Grey values of the movie."""
    sign = -1.0 if settings.dark else 1.0
    return sign * values * model.unit + model.middle


def columns_of(
    fitted: FittedSpots, model: SpotModel, settings: DetectionSettings
) -> dict[str, NDArray[np.float64]]:
    """Columns of fitted spots in the units of the movie."""
    noise = model.noise
    widening = np.sqrt(np.maximum(fitted.misfit, 1.0))
    error = fitted.position_error * widening[:, None] * settings.spacing
    peak = fitted.background + fitted.amplitude
    variance = np.maximum(noise.base + noise.slope * peak, noise.least)
    return {
        "amplitude": fitted.amplitude * model.unit,
        "background": _grey(fitted.background, model, settings),
        "radius": (settings.radius or 0.0) * np.exp(fitted.log_width),
        "snr": fitted.amplitude / np.sqrt(variance), "misfit": fitted.misfit,
        "position_error_z": error[:, 0], "position_error_y": error[:, 1], "position_error_x": error[:, 2],
    }  # fmt: skip


def _blobs(voxels: NDArray[np.float32], model: SpotModel, settings: DetectionSettings) -> FrameSpots:
    """Blobs without a common profile; their position error is a fixed share of their width."""
    blobs = find_blobs(voxels, model.sigma, settings.fdr)
    error = model.sigma * settings.spacing / np.maximum(blobs.quality, 1.0)[:, None]
    voxel = tuple(np.rint(blobs.position).astype(np.int64).T)
    background = np.nan_to_num(voxels[voxel]).astype(np.float64) - blobs.height
    one = np.ones(len(blobs.quality))
    columns = {
        "quality": blobs.quality, "probability": blobs.decision.probability,
        "amplitude": blobs.height * model.unit, "background": _grey(background, model, settings),
        "radius": (settings.radius or 0.0) * one, "snr": blobs.quality, "misfit": one,
        "position_error_z": error[:, 0], "position_error_y": error[:, 1], "position_error_x": error[:, 2],
    }  # fmt: skip
    keep = _kept(blobs.quality, blobs.decision, settings)
    return FrameSpots(blobs.position * settings.spacing, columns, keep)


def tiles(shape: tuple[int, ...], sigma: NDArray[np.float64]) -> list[Tile]:
    """Divide a frame into tiles of one size; they depend only on its shape and the width of spots.

    Of the sizes that memory allows it is that with the fewest voxels in all tiles with their margins.

    Examples
    --------
    >>> [tile.columns for tile in tiles((64, 300, 800), np.full(3, 2.0))]
    [slice(0, 432, None), slice(368, 800, None)]
    """
    margin = ceil(2 * REACH * float(max(sigma[1:])))
    rows, columns = min(
        product(*(_divisions(n, margin) for n in shape[1:])),
        key=lambda axes: (
            max(shape[0] * axes[0].side * axes[1].side - 2 * LARGE, 0),
            prod(len(axis.starts) * axis.side for axis in axes),
        ),
    )
    return [
        Tile(slice(y, y + rows.side), slice(x, x + columns.side), (high, wide))
        for y, high in zip(rows.starts, pairwise(rows.edges), strict=True)
        for x, wide in zip(columns.starts, pairwise(columns.edges), strict=True)
    ]


class _Division(NamedTuple):
    """Parts of an axis with their margins, all of one length, and the boundaries between them."""

    side: int
    starts: list[int]
    edges: list[int]


def _divisions(size: int, margin: int) -> Iterator[_Division]:
    """Those of an axis into more and more parts; they are longer where that has a faster transform."""
    for count in range(1, max(size // max(LEAST_SIDE, 4 * margin), 1) + 1):
        most = ceil((size + 2 * margin * (count - 1)) / count)
        side = min(next_fast_len(most, real=True), size)
        starts = [(size - side) * number // max(count - 1, 1) for number in range(count)]
        inner = [(before + side + after) // 2 for before, after in pairwise(starts)]
        yield _Division(side, starts, [0, *inner, size])
