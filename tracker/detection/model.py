"""Learn the properties of a movie before detection: noise, width of the spots, spots or bodies."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..settings.detection import DetectionSettings
from .bodies import look_like_bodies, width_of_bodies
from .candidates import look
from .decision import decide
from .fitted import fit_in_grey
from .noise import Noise, least_variance, masked, noise_line
from .sample import checked, crop, middle_of, prepared, unit_of
from .spectrum import Filter, Transform
from .spots import radii_of, sigma_of
from .stabilise import stabilised, uncut
from .width import Search, widths

_LOG = logging.getLogger("outbid")
BODIES = (
    "Wider structure stays under most of the spots, as if they were the texture of nuclei or cells. "
    "To find these: --bodies."
)
_SEARCHED = 1_400_000  # voxels of parts of frames in which widths are tried, or two parts
_REFINED = 2  # times that they are measured by the fit of the spots, at most
_MOST, _ENOUGH = 0.3, 0.03  # largest change of their logarithms at once; change at which they are kept


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
        Widths of a spot, or of the filter of bodies, in voxels; 0 along a flat z axis.
    """

    middle: float
    unit: float
    noise: Noise
    sigma: NDArray[np.float64]


def learn(
    frames: Sequence[NDArray], settings: DetectionSettings, how: Transform
) -> tuple[SpotModel | None, DetectionSettings]:
    """Learn the missing settings from a few frames.

    Returns
    -------
    SpotModel or None
        None if no spot stands out.
    DetectionSettings
        Settings with the radii and the choice of spots or bodies; learning with these gives the same result.
    """
    middle, unit = middle_of(checked(frames[0], 0)), unit_of(frames)
    parts = [crop(prepared(checked(frame, 0), settings, middle, unit)) for frame in frames]
    noise = noise_of(frames, parts, settings, (middle, unit))
    for part in parts:
        part[masked(part, noise)] = np.nan
    parts = [part for part in parts if np.isfinite(part).any()]
    if not parts:
        return None, settings
    tried = max(2, _SEARCHED // parts[0].size)
    parts = parts[:: max(1, len(parts) // tried)][:tried]
    values = [stabilised(part, noise) for part in parts]
    z, y, x = settings.spacing
    scale = np.array([0.0 if parts[0].shape[0] == 1 else x / z, x / y, 1.0])
    search = Search([value for value in values if value.max() > value.min()], how, scale)
    if not search.frames:
        return None, settings
    sigma = sigma_of(settings, parts[0].shape)
    given = settings.radius is not None
    if settings.bodies:
        found = sigma if given else width_of_bodies(search)
    else:
        found = widths(
            search, float(sigma[1]) if given else None, float(sigma[0]) if settings.radius_z else None
        )
    if found is None:
        return None, settings
    if settings.bodies is None and not given:
        filter_ = Filter(search.modes[0], found, search.plain[0])
        if look_like_bodies(search, found, filter_, noise):
            _LOG.warning(BODIES)
    if not (settings.bodies or (given and (settings.radius_z or found[0] == 0))):
        found = _refined(parts, found, noise, settings, how)
        if found is None:
            return None, settings
    plane, along = radii_of(found, settings.spacing)
    chosen = replace(settings, radius=settings.radius or plane, radius_z=settings.radius_z or along)
    return SpotModel(middle, unit, noise, found), chosen


def _refined(
    parts: Sequence[NDArray[np.float32]],
    sigma: NDArray[np.float64],
    noise: Noise,
    settings: DetectionSettings,
    how: Transform,
) -> NDArray[np.float64] | None:
    """The widths that spots have when they are fitted, if less; None if no part has a spot.

    Widths that stand out most are some tenths too large where light is even. Uneven light only widens a fit.
    """
    free = np.array([settings.radius_z is None, settings.radius is None, settings.radius is None])
    for _ in range(_REFINED):
        grown = []
        for part in parts:
            values = stabilised(uncut(part, sigma, noise.top), noise)
            seen = look(values, sigma, noise, how)
            choice = decide(seen.significance, seen.maxima.above, seen.least, settings.fdr)
            if choice.keep:
                kept = np.isin(np.arange(len(seen.significance)), choice.order[: choice.keep])
                grown.append(fit_in_grey(part, values, seen, sigma, noise).growth(kept))
        if not grown:
            return None
        plane, deep = np.clip(np.mean(grown, axis=0), -_MOST, 0.0)
        sigma = sigma * np.where(free, np.exp([deep, plane, plane]), 1.0)
        if max(-plane, -deep) < _ENOUGH:
            break
    return sigma


def noise_of(
    frames: Sequence[NDArray],
    parts: Sequence[NDArray[np.float32]],
    settings: DetectionSettings,
    scale: tuple[float, float],
) -> Noise:
    """The noise of frames with this middle and unit, from the settings or measured in prepared parts."""
    middle, unit = scale
    sign = -1.0 if settings.dark else 1.0
    if settings.gain is not None:
        slope = settings.gain / unit
        base = ((settings.read_noise or 0.0) / unit) ** 2 + slope * (middle - (settings.offset or 0.0)) / unit
    else:
        base, slope = noise_line([sign * part for part in parts])
    least = least_variance(parts, base, sign * slope)
    return Noise(base, sign * slope, least, _top(frames, settings, scale), settings.gain is not None)


def _top(frames: Sequence[NDArray], settings: DetectionSettings, scale: tuple[float, float]) -> float:
    """The grey value at which the camera saturates: the largest value of its bit depth."""
    if settings.dark or frames[0].dtype.kind not in "iu":
        return np.inf
    value = max(int(frame.max()) for frame in frames)
    several = sum(int((frame == value).sum()) for frame in frames) >= 3
    full = value == np.iinfo(frames[0].dtype).max or (value >= 255 and (value + 1).bit_count() == 1)
    return (value - scale[0]) / scale[1] if full and several else np.inf
