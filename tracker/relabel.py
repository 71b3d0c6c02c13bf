"""Label images in which every object has the number of its track."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from .errors import InputError
from .tracks import Tracks

LABEL = "label"
"""Feature that holds the label of a detection's object; `outbid detect --labels` writes it."""


def relabelled(
    frames: Iterable[NDArray], tracks: Tracks, spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
) -> Iterator[NDArray[np.uint32]]:
    """Label images with the number of the track, plus 1, in the place of each label.

    Parameters
    ----------
    frames : iterable of (Z, Y, X) integer array
        Label images, numbered 0, 1, 2, …; 0 is background.
    tracks : Tracks
        Of the objects. The feature ``label`` says which object a detection is; without it, that is the one
        at the detection's position.
    spacing : (float, float, float)
        Size of a voxel in the unit of the positions, to find an object by its position.

    Yields
    ------
    (Z, Y, X) uint32 array
        Objects of no track become background.

    Raises
    ------
    InputError
        If an image does not hold whole numbers.

    Examples
    --------
    >>> from .detections import Detections
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]], features={"label": [7, 3]})
    >>> images = [np.array([[[7, 7, 0]]]), np.array([[[0, 3, 5]]])]
    >>> [image.tolist() for image in relabelled(images, Tracks(seen, np.array([[0, 1]])))]
    [[[[1, 1, 0]]], [[[0, 1, 0]]]]
    """
    for frame, image in enumerate(frames):
        yield relabelled_frame(image, frame, tracks, spacing)


def relabelled_frame(
    image: NDArray, frame: int, tracks: Tracks, spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
) -> NDArray[np.uint32]:
    """Replace each label of an image by the number of its track plus 1.

    Parameters
    ----------
    image : (Z, Y, X) integer array
    frame : int
        Its number.
    tracks, spacing
        As for `relabelled`.

    Raises
    ------
    InputError
        If the image does not hold whole numbers.

    Examples
    --------
    >>> from .detections import Detections
    >>> seen = Detections.from_table([0], [[0, 0, 0]], features={"label": [7]})
    >>> relabelled_frame(np.array([[[7, 7, 0]]]), 0, Tracks(seen, np.empty((0, 2), np.int64))).tolist()
    [[[1, 1, 0]]]
    """
    if image.dtype.kind not in "iub":
        raise InputError(f"A label image holds whole numbers; frame {frame} holds {image.dtype}. Convert it.")
    seen = tracks.detections
    given = seen.features.get(LABEL)
    rows = seen.rows_of(frame)
    label = _at(image, seen.position[rows] / spacing) if given is None else given[rows].astype(np.int64)
    number_of = np.zeros(int(max(image.max(initial=0), label.max(initial=0))) + 1, dtype=np.uint32)
    number_of[label] = tracks.track_id[rows] + 1
    number_of[0] = 0
    return number_of[image]


def _at(image: NDArray, position: NDArray[np.float64]) -> NDArray[np.int64]:
    """The label at each position; 0 outside the image."""
    voxel = np.rint(position).astype(np.int64)
    inside = ((voxel >= 0) & (voxel < image.shape)).all(axis=1)
    label = np.zeros(len(voxel), dtype=np.int64)
    label[inside] = image[tuple(voxel[inside].T)]
    return label
