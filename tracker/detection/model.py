"""Learn the properties of a movie before detection: noise, width and profile, spots or bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .bodies import BALL, DISC
from .joint import begin, find, misfit
from .joint_cpu import Noise, Optics
from .noise import least_variance, masked, noise_line
from .null import expected_maxima
from .profile import BLUR, gaussian, measured
from .sample import checked, crop, middle_of, prepared, unit_of
from .scene import Scene, Work
from .spots import DetectionSettings, radii_of, sigma_of
from .width import autocorrelated, salient, sharpness, width_along_z

_SHAPED = 3  # parts of frames from which widths and profile are measured
_AGAIN = 0.15  # change of the logarithm of the width after which it is measured again
_ERRORS, _MOST_GROW = 3.0, 0.4  # standard errors by which that logarithm may grow in the fit; at most so much
_LEAST_SHARP, _BODIES = 5e-4, 0.035
"""Objects that resolve are bodies if the image is sharper than that of spots, and if the cube root of this
sharpness times the share of light that a common profile leaves unexplained is more: spots reach 3e-4, and
where their width is overestimated by a sixth .028; bodies have 9e-4 and .04 at least."""
_FEWEST_WIDTHS = 14.0  # of a frame: where a fit grows beyond that, light is uneven
_FOCI, _STANDS_OUT = (1.0, 0.8, 0.65), 4.5  # widths of filters over that of a spot; standard deviations
_SHARP = 0.1
"""Largest blur in the test for bodies: a larger one would explain the misfit."""


@dataclass(frozen=True, eq=False)
class SpotModel:
    """The profile of spots in a movie, and the noise.

    Parameters
    ----------
    middle, unit : float
        Grey values x of all frames are taken as (x - middle) / unit.
    noise : Noise
        Noise of these values, with spots bright.
    optics : Optics
        Widths and profile of a spot; for bodies, the widths of the filter.
    focus : float
        Width of the filter that finds candidates, relative to a spot.
    """

    middle: float
    unit: float
    noise: Noise
    optics: Optics
    focus: float


def learn(
    frames: Sequence[NDArray], settings: DetectionSettings, work: Work
) -> tuple[SpotModel | None, DetectionSettings]:
    """Learn the missing settings from a few frames.

    Returns
    -------
    SpotModel or None
        None if no significant spot is found.
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
    if settings.radius is None:
        settings = _measured(parts, noise, settings, work)
        if settings.radius is None:
            return None, settings
    elif settings.radius_z is None and parts[0].shape[0] > 1:
        settings = _measured_along_z(parts, noise, settings, work)
    sigma = sigma_of(settings, parts[0].shape)
    optics = gaussian(sigma, parts[0].shape[0] == 1)
    if not settings.bodies:
        optics = _mean([measured(part, noise, optics, (0.0, 0.0), work) for part in parts[:_SHAPED]])
    if settings.bodies is None:
        settings = replace(settings, bodies=_are_bodies(parts, noise, optics, work))
    optics = optics._replace(blur=BLUR)
    return SpotModel(middle, unit, noise, optics, _focus(parts, noise, optics, work)), settings


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
    return Noise(base, sign * slope, least, _top(frames, settings, scale))


def _top(frames: Sequence[NDArray], settings: DetectionSettings, scale: tuple[float, float]) -> float:
    """The grey value at which the camera saturates: the largest value of its bit depth."""
    if settings.dark or frames[0].dtype.kind not in "iu":
        return np.inf
    value = max(int(frame.max()) for frame in frames)
    several = sum(int((frame == value).sum()) for frame in frames) >= 3
    full = value == np.iinfo(frames[0].dtype).max or (value >= 255 and (value + 1).bit_count() == 1)
    return (value - scale[0]) / scale[1] if full and several else np.inf


def _measured(
    parts: Sequence[NDArray[np.float32]], noise: Noise, settings: DetectionSettings, work: Work
) -> DetectionSettings:
    """The settings with measured radii, or unchanged if no significant spot is found."""
    flat = parts[0].shape[0] == 1
    first, seen = autocorrelated(parts, noise, settings.spacing)
    if first is None:
        first = salient(parts, noise, work)
    if first is None:
        return settings
    optics = gaussian(first, flat)
    grow = min(_ERRORS / max(seen, 1.0), _MOST_GROW)
    for _ in range(2):
        before = float(optics.sigma[1])
        optics = _mean([measured(part, noise, optics, (grow, grow), work) for part in parts[:_SHAPED]])
        if abs(np.log(optics.sigma[1] / before)) < _AGAIN:
            break
    sigma, bodies = optics.sigma, settings.bodies
    if sigma[1] > min(min(part.shape[1:]) for part in parts) / _FEWEST_WIDTHS:
        return settings
    if bodies is None:
        bodies = _are_bodies(parts, noise, optics, work)
    if bodies:
        wider = DISC if flat else BALL
        sigma = first * [1.0, wider, wider]
    plane, along = radii_of(sigma, settings.spacing)
    return replace(settings, radius=plane, radius_z=along, bodies=bodies)


def _measured_along_z(
    parts: Sequence[NDArray[np.float32]], noise: Noise, settings: DetectionSettings, work: Work
) -> DetectionSettings:
    """The settings with a measured radius along z that matches the given radius in the plane."""
    sigma = sigma_of(settings, parts[0].shape)
    sigma[0] = width_along_z(parts, noise, float(sigma[1]), settings.spacing)
    if not settings.bodies:
        optics = gaussian(sigma, flat=False)
        sigma[0] = np.median(
            [measured(part, noise, optics, (_MOST_GROW, 0.0), work).sigma[0] for part in parts[:_SHAPED]]
        )
    return replace(settings, radius_z=radii_of(sigma, settings.spacing)[1])


def _mean(optics: Sequence[Optics]) -> Optics:
    """Median widths and blur, and the mean profile."""
    return optics[0]._replace(
        sigma=np.median([one.sigma for one in optics], axis=0),
        profile=np.mean([one.profile for one in optics], axis=0),
        blur=float(np.median([one.blur for one in optics])),
    )


def _focus(parts: Sequence[NDArray[np.float32]], noise: Noise, optics: Optics, work: Work) -> float:
    """The width of the filter, over that of a spot, with the most maxima beyond those of noise.

    Alone, a spot stands out most in a filter as wide as it is; among others, in a narrower one. There have to
    be more by two standard errors, and not more than its area or volume allows: uneven light has.
    """
    scenes = [Scene(part, noise, optics, work) for part in parts[:_SHAPED]]
    for scene in scenes:
        begin(scene, _STANDS_OUT)

    dimensions = 2 if optics.flat else 3
    usual, *narrow = (sum(beyond_noise(scene, focus) for scene in scenes) for focus in _FOCI)
    least = usual + 2 * np.sqrt(max(usual, 1.0))
    seen = {
        focus: n for focus, n in zip(_FOCI[1:], narrow, strict=True) if least < n < usual / focus**dimensions
    }
    return max(seen, key=lambda focus: seen[focus], default=_FOCI[0])


def beyond_noise(scene: Scene, focus: float) -> float:
    """Number of maxima of the response to a filter that stand out, less those expected of noise."""
    scene.focus = focus
    scene.see(scene.optics)
    ((place, _),) = scene.maxima(lambda slab: [scene.significance(slab)], _STANDS_OUT)
    noisy = expected_maxima(np.array([_STANDS_OUT]), scene.image.shape, focus * scene.optics.sigma)
    return len(place) - float(noisy[0])


def _are_bodies(parts: Sequence[NDArray[np.float32]], noise: Noise, optics: Optics, work: Work) -> bool:
    """Whether a common profile leaves a large share of the light unexplained even for resolved objects."""
    sharp = sharpness(parts, noise, float(optics.sigma[1]))
    if sharp < _LEAST_SHARP:
        return False
    optics = optics._replace(blur=BLUR)
    scenes = (find(part, noise, optics, work, 1, _SHARP)[0] for part in parts[:_SHAPED])
    share = [misfit(scene, least=0.0) or 0.0 for scene in scenes]
    return float(np.cbrt(sharp) * np.median(share)) > _BODIES
