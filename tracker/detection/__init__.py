"""Detection: find spots in image stacks, one frame at a time.

`detect`                   below: a movie of any kind to detections
`frames`                   the frames of a movie, one after the other; what a movie is learned from
`preview`                  number of spots as a function of the threshold
`gpu`                      the same for many frames at a time, on a GPU
`spots`                    the spots of one frame, as columns; large frames in tiles
`model`, `width`, `noise`  what is learned of a movie first: width and sign of spots, noise of the camera
`choice`                   spots or bodies: which of the two explain a movie
`blobs`                    blobs without a common profile, such as nuclei
`fit`                      the last fit, in grey values: positions, amplitudes, sizes and their errors
`wider`                    one wider spot that was found as several
`decision`                 which candidates are kept, and the probability of each one
`candidates`, `joint`      maxima and joint fit of all spots in the response; the filter is whitened again
`spectrum`, `transform`    the whitened matched filter; cosine transforms, by which frames are filtered
`stabilise`                a frame in units of its camera's noise, and its background
`prepare`                  images and settings as detection computes with them
`suited`                   sentences on settings that hardly suit a movie
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ..compute.compiling import compilation_reported
from ..errors import refuse_unlike
from ..formats.images.frames import Images
from ..formats.images.opening import open_images
from ..particles.detections import Detections, in_places
from ..settings.detection import DetectionSettings
from ..settings.keywords import DetectionValues, with_values
from .frames import detect_frames, learn_from
from .suited import remarks_on

_LOG = logging.getLogger("outbid")


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
        If there is no setting of that name, or no movie.
    InputError
        If the movie cannot be read, or a frame is not 3-dimensional.
    ResourceError
        If the GPU was asked for and there is none.
    SettingsError
        If a radius is larger than the image.

    Examples
    --------
    >>> import numpy as np
    >>> z, y, x = np.ogrid[:9, :32, :32]
    >>> spot = np.exp(-((z - 4) ** 2 + (y - 10.3) ** 2 + (x - 20) ** 2) / 8)
    >>> found, used = detect([spot, spot], radius=3.46)
    >>> found.frame.tolist(), found.position[0].round(1).tolist()
    ([0, 1], [4.0, 10.3, 20.0])
    """
    refuse_unlike(Integral, "a whole number", {"workers": workers, "count": count})
    refuse_unlike(str, "a text", {"unit": unit})
    chosen = with_values(settings or DetectionSettings(), values, "detect")
    if isinstance(movie, str | os.PathLike):
        movie = open_images(movie, spacing=None if chosen.spacing == (1, 1, 1) else chosen.spacing)
    with compilation_reported(bar=progress is None):
        if isinstance(movie, Images):
            for remark in (*movie.warnings, *remarks_on(movie, chosen)):
                _LOG.warning("%s", remark)
            return _detect_images(movie, chosen, workers, progress)
        if isinstance(movie, bytes | str | Mapping) or not isinstance(movie, Iterable):
            raise TypeError(
                "detect() takes a path, a URL, what open_images() returned, or frames, not "
                f"{type(movie).__name__}."
            )
        return detect_frames(movie, chosen, unit=unit, workers=workers, count=count, progress=progress)


def _detect_images(
    movie: Images, settings: DetectionSettings, workers: int, progress: Callable[[int, int], None] | None
) -> tuple[Detections, DetectionSettings]:
    """The spots of an open movie, in its unit, with its frame numbers and times."""
    there = [number for number in range(movie.frame_count) if number not in movie.missing]

    def read(numbers: Sequence[int]) -> Iterator[NDArray]:
        return movie.frames([there[number] for number in numbers])

    own = replace(settings, spacing=movie.spacing)
    model, used = learn_from(read, len(there), own, workers=workers)
    found, used = detect_frames(
        movie.frames(there) if model else [], used, unit=movie.unit, workers=workers, count=len(there),
        model=model, progress=progress,
    )  # fmt: skip
    found = replace(found, frame=np.array(there, np.int32)[found.frame])
    return in_places(found, movie.calibration, movie.times), used
