"""Camera: image stacks rendered from true particles, with photon noise, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod, sqrt
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from outbid.compute.arrays import free_memory
from outbid.errors import ResourceError, SettingsError
from outbid.formats.images.frames import Images
from outbid.formats.images.tiff_write import write_like
from outbid.particles.detections import Detections

from .ranges import Axes, require, require_axes
from .streams import Purpose, stream

_BYTES_A_VOXEL = 26  # mean photons, photons, grey value and its 16 bits
_REACH = 5.0  # standard deviations of the point spread function that are drawn


@dataclass(frozen=True)
class Camera:
    """How a camera images particles.

    Parameters
    ----------
    shape : tuple of 3 int
        Voxels of a frame along z, y, x. The centre of voxel 0 is position 0.
    psf : tuple of 3 float
        Standard deviation of the Gaussian point spread function along z, y, x, in units.
    snr : float
        Signal to noise at a spot's peak: A / √(A + background), for a peak of A photons above it
        (Chenouard et al., Nat. Methods 11, 281, 2014).
    background : float
        Photons in a voxel without particles.
    spacing : tuple of 3 float
        Size of a voxel along z, y, x, in units.
    gain, offset : float
        Grey values per photon, and the grey value of no photon.
    interval : float or None
        Seconds between frames, which the file states.

    Raises
    ------
    SettingsError
        If a value is not finite or out of range.
    """

    shape: tuple[int, int, int] = (10, 512, 512)
    psf: Axes = (1.0, 1.5, 1.5)
    snr: float = 4.0
    background: float = 10.0
    spacing: Axes = (1.0, 1.0, 1.0)
    gain: float = 2.0
    offset: float = 100.0
    interval: float | None = None

    def __post_init__(self) -> None:
        require_axes("shape", self.shape, 1)
        require_axes("psf", self.psf, 0)
        require_axes("spacing", self.spacing, 0)
        if min(self.psf) == 0 or min(self.spacing) == 0:
            raise SettingsError(f"psf is {self.psf} and spacing {self.spacing}; neither may be 0.")
        require("snr", self.snr, 0)
        require("background", self.background, 0, 1e9)
        require("gain", self.gain, 0)
        require("offset", self.offset, 0, 65535)
        if self.interval is not None:
            require("interval", self.interval, 1e-12)

    @classmethod
    def looking_at(cls, box: Axes, *, psf: Axes, snr: float, spacing: Axes) -> Camera:
        """A camera whose field of view is a box that begins at the origin, both walls included.

        Examples
        --------
        >>> camera = Camera.looking_at((9, 64, 64), psf=(1, 1.5, 1.5), snr=4, spacing=(1, 0.5, 0.5))
        >>> camera.shape
        (10, 129, 129)
        """
        require_axes("spacing", spacing, 0)
        z, y, x = (int(length / size) + 1 if size else 1 for length, size in zip(box, spacing, strict=True))
        return cls((z, y, x), psf, snr, spacing=spacing)

    @property
    def amplitude(self) -> float:
        """Photons of a spot's peak above the background: A with A / √(A + background) = snr."""
        return (self.snr**2 + self.snr * sqrt(self.snr**2 + 4 * self.background)) / 2


def expected_photons(position: NDArray[np.float64], camera: Camera) -> NDArray[np.float64]:
    """Expected number of photons in each voxel.

    background + Σ A Π_a w_a / w_a(0), where w_a = (erf((i + ½ - c) / √2σ) - erf((i - ½ - c) / √2σ)) / 2
    is the share of a particle at c that falls into voxel i along axis a.

    Parameters
    ----------
    position : (n, 3) float64 array
        z, y, x in units; particles outside the frame count, too.
    camera : Camera

    Returns
    -------
    (Z, Y, X) float64 array

    Examples
    --------
    >>> camera = Camera(shape=(1, 5, 5), background=0, snr=3)
    >>> photons = expected_photons(np.array([[0.0, 2.0, 2.0]]), camera)
    >>> round(float(photons.max()), 6), round(camera.amplitude, 6)
    (9.0, 9.0)
    """
    photons = np.full(camera.shape, camera.background, dtype=np.float64)
    sigma = np.divide(camera.psf, camera.spacing)
    centre = position / camera.spacing
    peak = np.prod(erf(0.5 / (sqrt(2) * sigma)))
    for place in centre:
        first = np.maximum(np.ceil(place - _REACH * sigma).astype(int), 0)
        stop = np.minimum(np.floor(place + _REACH * sigma).astype(int) + 1, camera.shape)
        if (first >= stop).any():
            continue
        z, y, x = (
            _shares(np.arange(a, b), c, s) for a, b, c, s in zip(first, stop, place, sigma, strict=True)
        )
        window = tuple(slice(a, b) for a, b in zip(first, stop, strict=True))
        photons[window] += camera.amplitude / peak * z[:, None, None] * y[:, None] * x
    return photons


def render(
    truth: Detections, camera: Camera, *, frames: range | None = None, seed: int = 0
) -> Iterator[NDArray[np.uint16]]:
    """Frames as the camera records them, one by one.

    Parameters
    ----------
    truth : Detections
        Positions z, y, x in the units of `camera.spacing`.
    camera : Camera
    frames : range, optional
        Frame numbers. Default: all from the first to the last.
    seed : int
        Determines the photon noise of each frame: some of the frames give that part of the movie.

    Yields
    ------
    (Z, Y, X) uint16 array
        offset + gain × Poisson(photons), cut off at 65535.

    Examples
    --------
    >>> from outbid import Detections
    >>> truth = Detections.from_table([0, 1], [[2, 10, 10], [2, 12, 10]])
    >>> movie = render(truth, Camera(shape=(5, 20, 20), snr=8), seed=1)
    >>> [np.unravel_index(image.argmax(), image.shape)[1].item() for image in movie]
    [10, 12]
    """
    if frames is None:
        frames = range(truth.first_frame, truth.first_frame + truth.frame_count)
    for frame in frames:
        expected = expected_photons(truth.position[truth.rows_of(frame)], camera)
        photons = stream(seed, Purpose.PHOTONS, frame).poisson(expected)
        grey = np.rint(camera.offset + camera.gain * photons)
        yield np.minimum(grey, 65535).astype(np.uint16)


def write_movie(
    path: str | PathLike[str], truth: Detections, camera: Camera, *, seed: int = 0, overwrite: bool = False
) -> int:
    """Render a movie into an OME-TIFF, plane by plane: the memory is that of one frame.

    Parameters
    ----------
    path : path-like
    truth, camera, seed
        As for `render`.
    overwrite : bool
        Whether to replace the file if it exists.

    Returns
    -------
    int
        Voxels that are saturated, at 65535.

    Raises
    ------
    SettingsError
        If the output exists, or its folder does not.
    ResourceError
        If a frame does not fit the memory.
    """
    saturated = 0

    def counted() -> Iterator[NDArray[np.uint16]]:
        nonlocal saturated
        for image in render(truth, camera, seed=seed):
            saturated += int((image == 65535).sum())
            yield image

    needed = _BYTES_A_VOXEL * prod(camera.shape)
    if needed > 0.8 * free_memory():
        voxels = " × ".join(map(str, camera.shape))
        raise ResourceError(
            f"A frame of {voxels} voxels would take {needed / 1e9:.3g} GB of memory. "
            "Take larger voxels or a smaller box."
        )
    movie = Images(
        str(path), "TZYX", (truth.frame_count, *camera.shape), truth.frame_count, camera.spacing, truth.unit,
        camera.interval, lambda *_: counted(),
    )  # fmt: skip
    write_like(Path(path), movie.frames(), movie, np.uint16, overwrite)
    return saturated


def _shares(voxel: NDArray[np.int64], centre: float, sigma: float) -> NDArray[np.float64]:
    scale = sqrt(2) * sigma
    return (erf((voxel + 0.5 - centre) / scale) - erf((voxel - 0.5 - centre) / scale)) / 2
