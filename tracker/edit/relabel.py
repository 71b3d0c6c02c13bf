"""Label images in which every object has the number of its track."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..particles.calibration import Calibration
from ..particles.detections import Detections
from ..particles.tracks import Tracks

CONTOUR = "contour"
"""Feature that holds the contour of a spot of TrackMate."""
LABEL = "label"
"""Feature that holds the label of a detection's object; `outbid detect --labels` writes it."""


def relabelled(
    frames: Iterable[NDArray],
    tracks: Tracks,
    number: NDArray[np.int64] | None = None,
) -> Iterator[NDArray[np.uint32]]:
    """Label images with a number, by default that of the track plus 1, in the place of each label.

    Parameters
    ----------
    frames : iterable of (Z, Y, X) integer array
        Label images, numbered 0, 1, 2, …; 0 is background.
    tracks : Tracks
        Of the objects. The feature ``label`` says which object a detection is; without it, that is the one
        at the detection's position, in voxels.
    number : (N,) int64 array, optional
        The new label of each detection.

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
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]], features={"label": [7, 3]})
    >>> images = [np.array([[[7, 7, 0]]]), np.array([[[0, 3, 5]]])]
    >>> [image.tolist() for image in relabelled(images, Tracks(seen, np.array([[0, 1]])))]
    [[[[1, 1, 0]]], [[[0, 1, 0]]]]
    """
    from ..formats.images.labels import objects_in

    for frame, image in enumerate(objects_in(frames)):
        yield relabelled_frame(image, frame, tracks, number)


def relabelled_frame(
    image: NDArray,
    frame: int,
    tracks: Tracks,
    number: NDArray[np.int64] | None = None,
) -> NDArray[np.uint32]:
    """Replace each label of an image by the number of its track plus 1.

    Parameters
    ----------
    image : (Z, Y, X) integer array
    frame : int
        Its number.
    tracks, number
        As for `relabelled`.

    Raises
    ------
    InputError
        If the image does not hold whole numbers.

    Examples
    --------
    >>> seen = Detections.from_table([0], [[0, 0, 0]], features={"label": [7]})
    >>> relabelled_frame(np.array([[[7, 7, 0]]]), 0, Tracks(seen, np.empty((0, 2), np.int64))).tolist()
    [[[1, 1, 0]]]
    """
    if image.dtype.kind not in "iub":
        raise InputError(f"A label image holds whole numbers; frame {frame} holds {image.dtype}. Convert it.")
    seen = tracks.detections
    given = seen.features.get(LABEL)
    given = None if given is not None and given.dtype.kind not in "biuf" else given
    rows = seen.rows_of(frame)
    label = _at(image, seen.position[rows]) if given is None else given[rows].astype(np.int64)
    number_of = np.zeros(int(max(image.max(initial=0), label.max(initial=0))) + 1, dtype=np.uint32)
    number_of[label] = (tracks.track_id[rows] + 1) if number is None else number[rows]
    number_of[0] = 0
    return number_of[image]


def without_gaps(tracks: Tracks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the pieces of tracks that have no gap, as the Cell Tracking Challenge does.

    Parameters
    ----------
    tracks : Tracks
        If two tracks merge, the links to the merged track are omitted.

    Returns
    -------
    number : (N,) int64 array
        Of the piece of each detection, from 1 up.
    rows : (n, 4) int64 array
        Number, first frame, last frame, and the piece from which each one comes, 0 for none.

    Examples
    --------
    >>> seen = Detections.from_table([0, 1, 3], np.zeros((3, 3)))
    >>> without_gaps(Tracks(seen, np.array([[0, 1], [1, 2]])))[1].tolist()
    [[1, 0, 1, 0], [2, 3, 3, 1]]
    """
    frame, (source, target) = tracks.detections.frame, tracks.links.T
    one = tracks.predecessors[target] == 1
    inside = one & (tracks.successors[source] == 1) & (frame[target] - frame[source] == 1)
    pieces = Tracks(tracks.detections, tracks.links[inside])
    number = pieces.track_id + 1
    rows = np.zeros((pieces.track_count, 4), dtype=np.int64)
    rows[:, 0] = np.arange(1, pieces.track_count + 1)
    rows[:, 1:3] = pieces.span.T
    between = one & ~inside
    rows[number[target[between]] - 1, 3] = number[source[between]]
    return number, rows


def drawn_contours(
    tracks: Tracks, shape: tuple[int, int, int], frames: int, grid: Calibration
) -> Iterator[NDArray[np.uint32]]:
    """Label images of contours, as TrackMate keeps them, with the number of each spot's track plus 1.

    Parameters
    ----------
    tracks : Tracks
        With the feature ``contour``: x and y of each point from the position of the spot, as text.
    shape, frames
        Of the images: voxels along z, y, x, and their number.
    grid : Calibration
        Of the voxels of the images.

    Yields
    ------
    (Z, Y, X) uint32 array
        Where contours overlap, the later spot counts.

    Raises
    ------
    InputError
        If there are no contours.
    """
    seen = tracks.detections
    if CONTOUR not in seen.features or seen.features[CONTOUR].dtype.kind in "biuf":
        raise InputError("The spots have no contours. Give the label images that were tracked as well.")
    for frame in range(frames):
        image = np.zeros(shape, dtype=np.uint32)
        for row in range(*seen.rows_of(frame).indices(len(seen))):
            points = np.array(str(seen.features[CONTOUR][row]).split(), dtype=np.float64).reshape(-1, 2)
            places = seen.position[row] + np.column_stack([np.zeros(len(points)), points[:, ::-1]])
            if len(places):
                line = Detections.from_table(np.zeros(len(places)), places, calibration=seen.calibration)
                polygon = line.on_grid(grid).position
                plane = int(np.clip(np.rint(polygon[0, 0]), 0, shape[0] - 1))
                _fill(image[plane], polygon[:, 1:], tracks.track_id[row] + 1)
        yield image


def _fill(plane: NDArray[np.uint32], polygon: NDArray[np.float64], number: int) -> None:
    """Set the pixels whose centre is inside a polygon (n, 2) of y and x, by the even-odd rule."""
    low = np.clip(np.floor(polygon.min(axis=0)), 0, plane.shape).astype(int)
    high = np.clip(np.ceil(polygon.max(axis=0)) + 1, 0, plane.shape).astype(int)
    y, x = np.mgrid[low[0] : high[0], low[1] : high[1]]
    inside = np.zeros(y.shape, dtype=bool)
    for (y0, x0), (y1, x1) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        if y0 != y1:
            inside ^= ((y0 > y) != (y1 > y)) & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    plane[low[0] : high[0], low[1] : high[1]][inside] = number


def _at(image: NDArray, position: NDArray[np.float64]) -> NDArray[np.int64]:
    """The label at each position; 0 outside the image."""
    voxel = np.rint(position).astype(np.int64)
    inside = ((voxel >= 0) & (voxel < image.shape)).all(axis=1)
    label = np.zeros(len(voxel), dtype=np.int64)
    label[inside] = image[tuple(voxel[inside].T)]
    return label
