"""The widths of spots in voxels, and the radii that settings state."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ..settings.detection import DetectionSettings


def sigma_of(settings: DetectionSettings, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """(3,): standard deviation, in voxels, of a Gaussian spot with these radii; 0 along a flat z axis."""
    flat = shape[0] == 1
    radius = settings.radius or 0.0
    along = settings.radius_z if settings.radius_z is not None else radius
    sizes = zip((along, radius, radius), settings.spacing, strict=True)
    z, y, x = (r / sqrt(2 if flat else 3) / size for r, size in sizes)
    return np.array([0.0 if flat else z, y, x])


def radii_of(sigma: NDArray[np.float64], spacing: tuple[float, float, float]) -> tuple[float, float | None]:
    """Radii in the plane and along z of a spot with these widths in voxels; no second one if z is 0."""
    wide = sqrt(2 if sigma[0] == 0 else 3)
    plane = float(sigma[1]) * wide * spacing[1]
    return plane, None if sigma[0] == 0 else float(sigma[0]) * wide * spacing[0]
