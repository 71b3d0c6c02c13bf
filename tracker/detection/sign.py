"""Check whether spots of the opposite sign (dark instead of bright) are more significant."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..settings.detection import DetectionSettings
from .response import laplacian, local_maxima
from .sample import checked, crop, middle_of, prepared, unit_of
from .spots import sigma_of

_WIDTHS = (1.5, 3.0)  # voxels in the plane that are tried beside the given one
_FLOOR = 5.0  # standard deviations that noise hardly reaches
_MUCH = 5.0  # in fluorescence and simulations the right sign had ten times the wrong one's sum or more
_ONE_SPOT = 6.0**3  # the sum of a spot that stands out by 11 standard deviations

OTHER_SIGN = {
    False: "Dark spots on a bright background stand out more than bright ones. To find those: --dark.",
    True: "Bright spots on a dark background stand out more than dark ones. To find those, leave --dark out.",
}
"""The warning if `other_sign_stands_out`; the key is whether dark spots were sought."""


def other_sign_stands_out(image: NDArray, settings: DetectionSettings) -> bool:
    """Whether spots of the opposite sign are much more significant.

    The test compares Σ (q/σ - 5)³ over the maxima with the same sum over the minima q of a Laplacian of
    Gaussian, where σ is its spread, estimated by the median.

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
    part = np.nan_to_num(crop(prepared(checked(image, 0), settings, middle_of(image), unit_of([image]))))
    z, y, x = settings.spacing
    widths = [np.array([max(s * x / z, 0.5), s * x / y, s]) for s in _WIDTHS]
    if settings.radius is not None:
        widths.append(np.maximum(sigma_of(settings, part.shape), 0.5))
    sums = []
    for sigma in widths:
        values = laplacian(part, sigma)
        spread = float(np.median(np.abs(values))) * 1.4826 + 1e-6 * float(np.abs(values).max()) + 1e-30
        sums.append([_stands_out(side, spread) for side in (values, -values)])
    own, other = max(sums, key=max)
    return other > max(_MUCH * own, _ONE_SPOT)


def _stands_out(values: NDArray[np.float32], spread: float) -> float:
    voxel = local_maxima(values, _FLOOR * spread)
    return float(((values[tuple(voxel.T)].astype(np.float64) / spread - _FLOOR) ** 3).sum())
