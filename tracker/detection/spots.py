"""The spots of one frame: what decides how they are found, and which maxima of a filter's answer they are.

A spot is a local maximum of the negative Laplacian of Gaussian (or a difference of Gaussians, which
approaches it), normalised so that the response to a spot does not depend on the voxel:
L = -Σ_a σ_a² ∂²(G_σ * I)/∂a², with σ_a = radius_a / √d in voxels along axis a, d = 2 or 3
(Lindeberg, Int. J. Comput. Vision 30, 79, 1998).
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from .._arrays import to_device, to_host
from ..device import refuse_unknown
from ..errors import InputError, SettingsError
from .blobs import FILTERS, local_maxima, noise_of, response, shift_to_vertex

_LEAST_SIGMA = 0.5  # voxels; a narrower Gaussian is not sampled any more
NOISE_FACTOR = 11.0  # a spot stands out of the noise by so many standard deviations
_TYPICAL_SHARE = 0.155  # and has so much of the quality of a typical spot


@dataclass(frozen=True)
class DetectionSettings:
    """How spots are found.

    Parameters
    ----------
    radius : float or None
        Radius of a spot in the plane, in the unit of `spacing`; None estimates it from the first
        frame in which something stands out of the noise.
    radius_z : float or None
        Radius along z; None is `radius`, or estimated with it.
    threshold : float or None
        Least quality, the filter's response in grey values; None finds one for each frame.
    spacing : tuple of 3 float
        Size of a voxel along z, y, x.
    filter : str
        ``"dog"``, difference of Gaussians, or ``"log"``, their Laplacian, which takes a little longer.
    dark : bool
        Whether spots are dark on a bright background.
    device : {"auto", "cpu", "gpu"}
        Where to filter; "auto" takes a GPU where there is one and the movie is long enough to be worth it.

    Raises
    ------
    SettingsError
        If a value is not finite or not positive, or the filter or device is unknown.
    """

    radius: float | None = None
    radius_z: float | None = None
    threshold: float | None = None
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    filter: str = "dog"
    dark: bool = False
    device: str = "auto"

    def __post_init__(self) -> None:
        for name in ("radius", "radius_z"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise SettingsError(f"{name} is {value}; it must be a number above 0.")
        if self.threshold is not None and not isfinite(self.threshold):
            raise SettingsError(f"threshold is {self.threshold}; it must be a number.")
        if len(self.spacing) != 3 or not all(isfinite(size) and size > 0 for size in self.spacing):
            raise SettingsError(f"spacing is {self.spacing}; it must be three numbers above 0: z, y, x.")
        if self.radius_z is not None and self.radius is None:
            raise SettingsError("radius_z is given without radius. Give both, or neither to estimate them.")
        if self.filter not in FILTERS:
            raise SettingsError(f"There is no filter {self.filter!r}. Known are: {', '.join(FILTERS)}.")
        refuse_unknown(self.device)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Local maxima of a filter's answer, on the host.

    Parameters
    ----------
    position : (n, 3) float64 array
        In voxels, between them too: the vertex of a parabola through the maximum and its neighbours.
    quality : (n,) float64 array
        The answer at the maximum, in grey values.
    noise : float
        Root mean square of the answer where there are no spots.
    """

    position: NDArray[np.float64]
    quality: NDArray[np.float64]
    noise: float


def candidates(
    image: NDArray[np.float32],
    settings: DetectionSettings,
    pool: Executor | None = None,
    least: float | None = None,
) -> Candidates:
    """Find all places of a frame that may be spots.

    Parameters
    ----------
    image : (Z, Y, X) float32 array
        On the host or on a GPU.
    settings : DetectionSettings
        With a radius.
    pool : Executor, optional
        For halves of the image, on the host.
    least : float, optional
        Quality that candidates exceed; never below 0. By default they stand out of the noise.
    """
    sigma = sigma_of(settings, image.shape)
    values = response(image, sigma, settings.filter, pool)
    noise = noise_of(values, sigma)
    voxel = local_maxima(values, max(NOISE_FACTOR * noise if least is None else least, 0.0))
    quality = to_host(values[tuple(voxel.T)]).astype(np.float64)
    return Candidates(to_host(voxel + shift_to_vertex(values, voxel)), quality, noise)


def automatic_threshold(found: Candidates) -> float:
    """The quality that a spot exceeds, by the candidates of its frame.

    It stands out of the noise by 11 standard deviations, and has 0.155 of the quality of a typical spot: the
    median of the better of two classes (Otsu, IEEE Trans. SMC 9, 62, 1979) of what stands out.

    Parameters
    ----------
    found : Candidates
        All that stand out of the noise, and perhaps more.
    """
    low = max(NOISE_FACTOR * found.noise, 0.0)
    return max(low, _TYPICAL_SHARE * _typical(found.quality[found.quality > low]))


def find_spots(
    image: NDArray[np.float32], settings: DetectionSettings, pool: Executor | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find the spots of a frame.

    Parameters
    ----------
    image, settings, pool
        As for `candidates`.

    Returns
    -------
    position : (n, 3) float64 array
        In voxels.
    quality : (n,) float64 array
        Above the threshold, given or automatic.
    """
    found = candidates(image, settings, pool, settings.threshold)
    threshold = automatic_threshold(found) if settings.threshold is None else settings.threshold
    keep = found.quality > threshold
    return found.position[keep], found.quality[keep]


def sigma_of(settings: DetectionSettings, shape: tuple[int, ...]) -> tuple[float, float, float]:
    """Of the Gaussian, in voxels, for a frame of this shape."""
    dimensions = 2 if shape[0] == 1 else 3
    radius = settings.radius or 0.0
    along = settings.radius_z if settings.radius_z is not None else radius
    sizes = zip((along, radius, radius), settings.spacing, strict=True)
    z, y, x = (max(r / sqrt(dimensions) / size, _LEAST_SIGMA) for r, size in sizes)
    return z, y, x


def checked(image: NDArray, frame: int, settings: DetectionSettings) -> NDArray[np.float32]:
    """The frame in single precision, less its mean, spots bright, where it will be filtered.

    A background that is large against the spots would cost digits, and is nothing that filters answer to.

    Parameters
    ----------
    image : (Z, Y, X) array of real numbers
    frame : int
        For messages.
    settings : DetectionSettings
        Whether spots are dark, and the device.

    Raises
    ------
    InputError
        If the image has other axes, no voxels, no real numbers, or values that are not finite.
    """
    if image.ndim != 3 or image.dtype.kind not in "biuf" or image.size == 0:
        raise InputError(
            f"Frame {frame} is an array of {image.dtype}, shape {image.shape}; "
            "numbers over z, y, x are needed."
        )
    # Floats of 16 bytes and foreign byte orders are known to the host alone.
    known = np.dtype(np.float32) if image.dtype.kind == "f" else image.dtype.newbyteorder("=")
    with np.errstate(over="ignore"):  # what single precision cannot hold is refused below
        native = image.astype(known, copy=False)
    voxels = (to_device(native) if settings.device == "gpu" else native).astype(np.float32)
    mean = float(voxels.mean())
    if not isfinite(mean):
        raise InputError(f"Frame {frame} holds values that are not finite. Replace them by the background.")
    voxels -= np.float32(round(mean))
    if settings.dark:
        voxels *= np.float32(-1)
    return voxels


def _typical(quality: NDArray[np.float64]) -> float:
    """Median of the better of two classes; 0 if there are none."""
    if len(quality) < 2:
        return 0.0
    ordered = np.sort(quality)
    count = np.arange(1, len(ordered))
    total = np.cumsum(ordered)
    lower, upper = total[:-1] / count, (total[-1] - total[:-1]) / (len(ordered) - count)
    cut = int(np.argmax(count * (len(ordered) - count) * (upper - lower) ** 2)) + 1
    return float(np.median(ordered[cut:]))
