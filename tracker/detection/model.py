"""Learn the properties of a movie before detection: noise, the width of spots or blobs, and their sign."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ..settings.detection import DetectionSettings
from .blobs import find_blobs, laplacian, noise_of_response, width_of_blobs
from .choice import MARGIN, evidence_of_bodies
from .fit import FittedSpots
from .joint import local_maxima
from .noise import noise_of
from .prepare import VOXELS, sample_of
from .stabilise import STANDS_OUT, Noise, masked, stabilised
from .transform import CosineTransform
from .width import Search, find_widths, refine_widths

_LOG = logging.getLogger("outbid")
OTHER_SIGN = {
    False: "Dark spots on a bright background stand out more than bright ones. To find those: --dark.",
    True: "Bright spots on a dark background stand out more than dark ones. To find those, leave --dark out.",
}
"""The warning if `other_sign_stands_out`; the key is whether dark spots were sought."""
_CHOSEN = {
    True: "Bodies (nuclei, cells) explain the movie better than spots, by {0.ratio:.2f} : 1: {0.reason}. "
    "A frame holds about {2} bodies or {1} spots. For spots: --no-bodies.",
    False: "Spots explain the movie about as well as bodies (nuclei, cells), by 1 : {0.ratio:.2f}. A frame "
    "holds about {1} spots or {2} bodies. For bodies: --bodies.",
}
"""The message if bodies are chosen, or nearly so."""
_OTHER_WIDTH = "Spots are {:.2f} times as wide as the given radius says; the measured one is used."
"""The message if the given radius is not that of the spots."""
_DIFFERS = 0.15
"""Error level: logarithm of the ratio of both from which this is said."""
_DIM = 0.1
"""Prior: share of bodies that may be dimmer."""
_SIGN_WIDTHS = (1.5, 3.0)
"""Prior: widths in the plane, in voxels, at which signs are compared besides the given one."""
_SIGN_RATIO = 5.0
"""Error level: ratio of the sums from which the other sign stands out; the right one has ten times the wrong
one's sum or more in fluorescence and simulations."""
_SIGN_LEAST = 6.0**3
"""Error level: least sum of the other sign, that of a spot which stands out by 11 standard deviations."""


@dataclass(frozen=True, eq=False)
class SpotModel:
    """The width of spots in a movie, and the noise.

    Parameters
    ----------
    middle, unit : float
        Grey values x of all frames are taken as (x - middle) / unit.
    noise : Noise
        Noise of these values, with spots bright.
    sigma : (3,) float64 array
        Widths of a spot, or of the filter of blobs, in voxels; 0 along a flat z axis.
    """

    middle: float
    unit: float
    noise: Noise
    sigma: NDArray[np.float64]


def learn(
    frames: Sequence[NDArray], settings: DetectionSettings, dct: CosineTransform
) -> tuple[SpotModel | None, DetectionSettings]:
    """Learn the missing settings from a few checked frames.

    Returns
    -------
    SpotModel or None
        None if no spot stands out.
    DetectionSettings
        Settings with the radii, and with `bodies` if these are chosen.
    """
    sample = sample_of(frames, settings)
    noise = noise_of(frames, sample, settings)
    parts = _measured(sample.parts, noise)
    values = [stabilised(part, noise) for part in parts]
    search = Search([each for each in values if each.max() > each.min()], settings.spacing, dct)
    found = _widths(search, parts, sample.sigma, noise, settings) if search.frames else None
    if found is None:
        return None, settings
    sigma, bodies = found
    flat = sigma[0] == 0
    along, plane = (float(sigma[axis]) * sqrt(2 if flat else 3) * settings.spacing[axis] for axis in (0, 1))
    radius_z = settings.radius_z or (None if flat else along)
    used = replace(
        settings,
        radius=plane if settings.radius_z is None or settings.radius is None else settings.radius,
        radius_z=radius_z,
        bodies=bodies,
    )
    return SpotModel(sample.middle, sample.unit, noise, sigma), used


def _measured(parts: Sequence[NDArray[np.float32]], noise: Noise) -> list[NDArray[np.float32]]:
    """Some of the parts, NaN where nothing was measured; none of those without a measured voxel."""
    for part in parts:
        part[masked(part, noise)] = np.nan
    measured = [part for part in parts if np.isfinite(part).any()]
    if not measured:
        return []
    tried = max(2, VOXELS // measured[0].size)
    return measured[:: max(1, len(measured) // tried)][:tried]


def _widths(
    search: Search,
    parts: Sequence[NDArray[np.float32]],
    given: NDArray[np.float64],
    noise: Noise,
    settings: DetectionSettings,
) -> tuple[NDArray[np.float64], bool | None] | None:
    """(3,) widths in voxels, and whether they are of bodies; None if nothing stands out."""
    if settings.bodies:
        sigma = width_of_blobs(search) if settings.radius is None else given
        return None if sigma is None else (sigma, True)
    wide = None if settings.radius is None else float(given[1])
    deep = float(given[0]) if settings.radius_z else None
    sigma = find_widths(search, wide, deep)
    if sigma is not None and deep is not None:
        return sigma, settings.bodies
    refined = None if sigma is None else refine_widths(parts, sigma, noise, settings, search.dct)
    if settings.bodies is None and wide is None:
        blobs = _bodies_instead(search, parts, refined, noise, settings)
        if blobs is not None:
            return blobs, True
    if refined is None:
        return None if wide is None or sigma is None else (sigma, settings.bodies)
    measured = refined[0]
    if wide is not None and abs(np.log(measured[1] / wide)) > _DIFFERS:
        _LOG.warning(_OTHER_WIDTH.format(measured[1] / wide))
    return measured, settings.bodies


def _bodies_instead(
    search: Search,
    parts: Sequence[NDArray[np.float32]],
    refined: tuple[NDArray[np.float64], list[FittedSpots]] | None,
    noise: Noise,
    settings: DetectionSettings,
) -> NDArray[np.float64] | None:
    """(3,) widths of the filter of bodies in voxels if these explain the movie better than spots do."""
    sigma, fits = refined or (None, [])
    wide, evidence = width_of_blobs(search), evidence_of_bodies(search, parts, fits, sigma, noise)
    if wide is None or evidence.ratio < 1 / MARGIN:
        return None
    blobs = [find_blobs(frame, wide, settings.fdr) for frame in search.frames]
    height = np.concatenate([each.height[: each.decision.keep] for each in blobs])
    if not len(height) or np.quantile(height, _DIM) < STANDS_OUT * noise_of_response(search.modes[0], wide):
        return None
    counts = round(np.mean([len(fit.position) for fit in fits] or [0])), round(len(height) / len(blobs))
    bodies = evidence.ratio > 1
    _LOG.warning(_CHOSEN[bodies].format(evidence, *counts))
    return wide if bodies else None


def other_sign_stands_out(image: NDArray, settings: DetectionSettings) -> bool:
    """Whether spots of the opposite sign are much more significant.

    The test compares Σ (q/s - 5)³ over the maxima with the same sum over the minima q of a Laplacian of
    Gaussian, where s is its standard deviation, estimated by the median.

    Parameters
    ----------
    image : (Z, Y, X) array of real numbers
    settings : DetectionSettings

    Examples
    --------
    >>> y, x = np.ogrid[:120, :120]
    >>> noise = np.random.default_rng(0).normal(size=(1, 120, 120))
    >>> image = noise + 20 * np.exp(-((y - 60) ** 2 + (x - 60) ** 2) / 8)
    >>> [other_sign_stands_out(sign * image, DetectionSettings(radius=3)) for sign in (1, -1)]
    [False, True]
    """
    sample = sample_of([image], settings)
    part = np.nan_to_num(sample.parts[0])
    z, y, x = settings.spacing
    widths = [np.array([max(s * x / z, 0.5), s * x / y, s]) for s in _SIGN_WIDTHS]
    if settings.radius is not None:
        widths.append(np.maximum(sample.sigma, 0.5))
    sums = []
    for sigma in widths:
        values = laplacian(part, sigma)
        scale = float(np.median(np.abs(values))) * 1.4826 + 1e-6 * float(np.abs(values).max()) + 1e-30
        sums.append([_excess(side, scale) for side in (values, -values)])
    own, other = max(sums, key=max)
    return other > max(_SIGN_RATIO * own, _SIGN_LEAST)


def _excess(values: NDArray[np.float32], scale: float) -> float:
    """Sum of (q/s - 5)³ over maxima q."""
    voxel = local_maxima(values, STANDS_OUT * scale)
    return float(((values[tuple(voxel.T)].astype(np.float64) / scale - STANDS_OUT) ** 3).sum())
