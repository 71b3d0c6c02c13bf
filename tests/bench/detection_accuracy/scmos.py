"""An sCMOS camera whose pixels differ: gain, offset and read noise of each; second half of the renderer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GAIN, GAIN_SPREAD = 2.0, 0.02  # grey values a photon; share
OFFSET, OFFSET_SPREAD = 100.0, 1.5  # grey values
READ, READ_SPREAD = 1.4, 0.35  # photons, the median; spread of its logarithm


@dataclass(frozen=True, eq=False)
class Sensor:
    """What each pixel of the plane makes of photons; all (Y, X).

    Parameters
    ----------
    gain, offset : array
        Grey values for each photon, and for none.
    read : array
        Standard deviation of the read noise, in photons.
    """

    gain: NDArray[np.float64]
    offset: NDArray[np.float64]
    read: NDArray[np.float64]


def sensor(rows: int, cols: int, rng: np.random.Generator) -> Sensor:
    """A sensor off the shelf."""
    return Sensor(
        GAIN * (1 + GAIN_SPREAD * rng.standard_normal((rows, cols))),
        OFFSET + OFFSET_SPREAD * rng.standard_normal((rows, cols)),
        READ * np.exp(READ_SPREAD * rng.standard_normal((rows, cols))),
    )


def expose(photons: NDArray[np.float64], camera: Sensor, rng: np.random.Generator) -> NDArray[np.uint16]:
    """Grey values of a stack (Z, Y, X) of expected photons."""
    electrons = rng.poisson(photons) + camera.read * rng.standard_normal(photons.shape)
    return np.clip(np.rint(camera.offset + camera.gain * electrons), 0, 65535).astype(np.uint16)


def eight_bit(image: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """The image as viewers store it: from its darkest to its brightest value in 256 steps."""
    low, high = float(image.min()), float(image.max())
    return np.rint((image - low) * (255 / max(high - low, 1.0))).astype(np.uint8)
