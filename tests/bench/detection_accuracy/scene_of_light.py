"""What an image in uneven light holds: the light, the spots and the camera of a kind."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Light:
    """Light of the background.

    Parameters
    ----------
    kind : str
        "flat", "slope", "sinus", "slope and sinus", "lumpy", "blobs", "cells", "tissue", "vignette" or
        "stripes".
    strength : float
        Of its variation, over its mean.
    scale : float
        Size of lumps, in voxels of the plane.
    level : float
        Mean, in photons a voxel.
    """

    kind: str = "flat"
    strength: float = 0.4
    scale: float = 9.0
    level: float = 100.0


@dataclass(frozen=True)
class Scene:
    """One kind of image.

    Parameters
    ----------
    shape : tuple of 2 or 3 int
    sigma : tuple of float
        Widths of a spot along each axis, in voxels.
    count : int
        Spots.
    snr : float
        A / sqrt(A + B + 4) of a median spot of A photons at its peak over B of the background.
    light : Light
    spread : float
        Standard deviation of the logarithm of the brightness of spots.
    camera : str
        "scmos", "emccd", "8bit", "8bit dark", "bleached", "filtered" or "hot".
    haze : int
        Spots out of focus, several times as wide.
    drift : float
        By how many of their widths these move along y from the first plane to the last: a stack takes time.
    """

    shape: tuple[int, ...]
    sigma: tuple[float, ...]
    count: int
    snr: float
    light: Light = field(default_factory=Light)
    spread: float = 0.4
    camera: str = "scmos"
    haze: int = 0
    drift: float = 0.0
