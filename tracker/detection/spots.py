"""`DetectionSettings`: how spots are found."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from ..device import refuse_unknown
from ..errors import SettingsError


@dataclass(frozen=True)
class DetectionSettings:
    """Settings of detection; values that are None are learned from the images.

    Parameters
    ----------
    radius : float or None
        Radius of a spot in the plane, in the unit of `spacing`: √d times the standard deviation of a Gaussian
        spot in d dimensions.
    radius_z : float or None
        Radius along z; with None, it is measured.
    threshold : float or None
        Least quality, in standard deviations of the noise; with None, the set with the largest expected
        Jaccard index is kept.
    spacing : tuple of 3 float
        Size of a voxel along z, y, x.
    dark : bool
        Whether spots are dark on a bright background.
    device : {"auto", "cpu", "gpu"}
        Device of the filters; "auto" takes a GPU if there is one and the movie is large enough.
    fdr : float or None
        Largest false discovery rate, from 0 to 1; an alternative to `threshold`.
    gain, offset, read_noise : float or None
        Grey values per photon, the grey value without light, and the standard deviation of the read noise in
        grey values. If `gain` is None, the noise is measured.
    bodies : bool or None
        Whether to find bodies without a common profile, such as nuclei, instead of spots.

    Raises
    ------
    SettingsError
        If a value is not finite or out of range, if two settings exclude each other, or if the device is
        unknown.
    """

    radius: float | None = None
    radius_z: float | None = None
    threshold: float | None = None
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    dark: bool = False
    device: str = "auto"
    fdr: float | None = None
    gain: float | None = None
    offset: float | None = None
    read_noise: float | None = None
    bodies: bool | None = None

    def __post_init__(self) -> None:
        for name in ("radius", "radius_z", "gain"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise SettingsError(f"{name} is {value}; it must be a number above 0.")
        for name in ("threshold", "offset"):
            value = getattr(self, name)
            if value is not None and not isfinite(value):
                raise SettingsError(f"{name} is {value}; it must be a number.")
        if self.read_noise is not None and not 0 <= self.read_noise < float("inf"):
            raise SettingsError(f"read_noise is {self.read_noise}; it must be 0 or more.")
        if len(self.spacing) != 3 or not all(isfinite(size) and size > 0 for size in self.spacing):
            raise SettingsError(f"spacing is {self.spacing}; it must be three numbers above 0: z, y, x.")
        if self.radius_z is not None and self.radius is None:
            raise SettingsError("radius_z is given without radius. Give both, or neither to measure them.")
        if self.fdr is not None and not 0 < self.fdr < 1:
            raise SettingsError(f"fdr is {self.fdr}; it must be above 0 and below 1.")
        if self.fdr is not None and self.threshold is not None:
            raise SettingsError("threshold and fdr exclude each other. Leave out one of the two.")
        if self.gain is None and (self.offset is not None or self.read_noise is not None):
            raise SettingsError(
                "offset and read_noise need gain. Give it, or none of them to measure the noise."
            )
        refuse_unknown(self.device)


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
