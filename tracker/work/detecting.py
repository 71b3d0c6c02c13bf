"""detect(): from a movie of any kind to detections, as Python calls it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Unpack

from numpy.typing import NDArray

from .. import detection
from ..compute.compiling import compilation_reported
from ..formats.images.frames import Images
from ..formats.images.opening import open_images
from ..particles.detections import Detections
from ..settings.detection import DetectionSettings
from ..settings.keywords import DetectionValues, with_values
from .jobs import DetectJob


def detect(
    movie: str | os.PathLike[str] | Images | Iterable[NDArray],
    settings: DetectionSettings | None = None,
    *,
    unit: str = "pixel",
    workers: int = 2,
    count: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **values: Unpack[DetectionValues],
) -> tuple[Detections, DetectionSettings]:
    """Detect the spots of a movie, frame by frame.

    Parameters
    ----------
    movie : path, URL, Images, or iterable of (Z, Y, X) array
        A file that `open_images` opens, what it returned, or frames; Z is 1 in 2D.
    settings : DetectionSettings, optional
        By default everything is estimated from the images. A spacing other than 1, 1, 1 replaces that of a
        file.
    unit : str
        Of the spacing, for frames; a file states its own.
    workers : int
        Threads; they do not change the result.
    count : int
        Number of frames, for `progress` and for the choice of a device, where it cannot be seen.
    progress : callable, optional
        Called with (frames done, frames in all).
    **values
        Fields of `DetectionSettings`, which replace those of `settings`: ``radius=3.0``.

    Returns
    -------
    Detections
        Positions are voxel centres times `spacing`. Features: ``quality``, the amplitude in standard
        deviations of what it would be without the spot; ``probability`` that it is no noise; ``amplitude``
        and ``background`` in grey values; ``radius``; ``snr``, the amplitude over the noise of a voxel at
        the peak; ``misfit``, reduced chi-square; ``position_error_z``, ``_y``, ``_x``, standard errors.
    DetectionSettings
        With the radii and the device that were used.

    Raises
    ------
    TypeError
        If there is no setting of that name.
    InputError
        If the movie cannot be read, or a frame is not 3-dimensional.
    ResourceError
        If the GPU was asked for and there is none.

    Examples
    --------
    >>> import numpy as np
    >>> z, y, x = np.ogrid[:9, :32, :32]
    >>> spot = np.exp(-((z - 4) ** 2 + (y - 10.3) ** 2 + (x - 20) ** 2) / 8)
    >>> seen, used = detect([spot, spot], radius=3.46)
    >>> seen.frame.tolist(), seen.position[0].round(1).tolist()
    ([0, 1], [4.0, 10.3, 20.0])
    """
    chosen = with_values(settings or DetectionSettings(), values, "detect")
    if isinstance(movie, str | os.PathLike):
        movie = open_images(movie, spacing=None if chosen.spacing == (1, 1, 1) else chosen.spacing)
    with compilation_reported(bar=progress is None):
        if isinstance(movie, Images):
            return DetectJob(chosen, workers=workers).detect(movie, progress)
        return detection.detect(movie, chosen, unit=unit, workers=workers, count=count, progress=progress)
