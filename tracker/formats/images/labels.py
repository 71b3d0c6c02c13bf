"""Detections from label images: the centroid of each object."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...particles.calibration import Calibration
from ...particles.detections import Detections

_LOG = logging.getLogger("outbid")
_SCATTERED = 2
"""Guard: separate parts of a label, on average, above which labels look like grey values or classes."""


def centroids(labels: NDArray) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Centres of the objects of a label image.

    Parameters
    ----------
    labels : (Z, Y, X) integer array
        0 is background.

    Returns
    -------
    label : (n,) int64 array
        Labels, in increasing order.
    position : (n, 3) float64 array
        Mean z, y, x of the voxels of each object, in voxels.
    size : (n,) int64 array
        Number of voxels.

    Raises
    ------
    InputError
        If the image contains values that are negative or not whole.

    Examples
    --------
    >>> label, position, size = centroids(np.array([[[7, 7, 0], [0, 0, 2]]]))
    >>> label.tolist(), position.tolist(), size.tolist()
    ([2, 7], [[0.0, 1.0, 2.0], [0.0, 0.0, 0.5]], [1, 2])
    """
    labels = whole(labels)
    where = np.nonzero(labels)
    value, index = np.unique(labels[where].astype(np.int64), return_inverse=True)
    if len(value) and value[0] < 0:
        raise InputError(f"Label {value[0]} is negative; labels count from 1 up, 0 is background.")
    size = np.bincount(index, minlength=len(value))
    sums = [np.bincount(index, weights=axis, minlength=len(value)) for axis in where]
    return value, np.stack(sums, axis=1) / size[:, None], size


def shapes(labels: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Elongation and angle of the objects of a label image in the plane, in the order of `centroids`.

    Returns
    -------
    elongation : (n,) float64 array
        Ratio of the longest to the shortest axis of the ellipse, or ellipsoid, of the same second moments.
    angle : (n,) float64 array
        Degrees from x towards y of the longest axis in the plane, from 0 to 180.

    Examples
    --------
    >>> elongation, angle = shapes(np.array([[[1, 1, 1, 1], [0, 2, 0, 0], [0, 2, 0, 0]]]))
    >>> elongation.round(1).tolist(), angle.tolist()
    ([4.0, 2.0], [0.0, 90.0])
    """
    labels = whole(labels)
    where = np.nonzero(labels)
    _, index, size = np.unique(labels[where], return_inverse=True, return_counts=True)
    moment = np.zeros((len(size), 3, 3))
    away = [axis - (np.bincount(index, axis, len(size)) / size)[index] for axis in where]
    for i, j in np.ndindex(3, 3):
        moment[:, i, j] = np.bincount(index, away[i] * away[j], len(size)) / size
    voxel = np.eye(3) / 12  # a voxel is no point
    flat = 1 if labels.shape[0] == 1 else 0
    axes = np.linalg.eigvalsh((moment + voxel)[:, flat:, flat:])
    yy, xy, xx = moment[:, 1, 1], moment[:, 1, 2], moment[:, 2, 2]
    return np.sqrt(axes[:, -1] / axes[:, 0]), np.degrees(0.5 * np.arctan2(2 * xy, xx - yy)) % 180


def whole(labels: NDArray) -> NDArray:
    """Labels as whole numbers: some programs store them as floats.

    Raises
    ------
    InputError
        If a value is not whole.
    """
    if labels.dtype.kind == "f":
        if not (labels == np.rint(labels)).all():
            raise InputError(
                "A label image holds whole numbers; this one holds fractions. If it shows spots: leave "
                "--labels out."
            )
        return labels.astype(np.int64)
    if labels.dtype.kind not in "iub":
        raise InputError(f"A label image holds whole numbers; this one holds {labels.dtype}. Convert it.")
    return labels


def objects_in(frames: Iterable[NDArray]) -> Iterator[NDArray]:
    """Label images; of a mask, whose objects all have one value, the connected parts are labelled.

    The first image with several objects decides: they are masks if these objects are parts of one value.

    Examples
    --------
    >>> [image.tolist() for image in objects_in([np.array([[[255, 0, 255]]]), np.array([[[0, 255, 255]]])])]
    [[[[1, 0, 2]]], [[[0, 1, 1]]]]
    """
    from scipy import ndimage

    mask = None
    for given in frames:
        image = whole(given)
        values = np.unique(image)
        if mask is None and len(values[values != 0]) > 1:
            mask = False
        elif mask is None and values.any():
            mask = ndimage.label(image, np.ones((3, 3, 3)))[1] > 1 or None
            if mask:
                _LOG.warning(
                    "The images hold one value, %d, beside 0: they are taken for masks, whose connected "
                    "parts are objects.", int(values[values != 0][0]),
                )  # fmt: skip
        parts = mask and len(values[values != 0]) == 1
        yield ndimage.label(image, np.ones((3, 3, 3)))[0] if parts else image


def parts_of(image: NDArray) -> tuple[int, int]:
    """How many labels the fullest plane of an image has, and in how many separate parts they lie.

    Parts are counted by Euler's number, less holes: no search is needed.

    Examples
    --------
    >>> parts_of(np.array([[[7, 7, 0, 2, 2], [7, 7, 0, 0, 7]]]))
    (2, 3)
    """
    plane = image[int(np.argmax(np.count_nonzero(image, axis=(1, 2))))]
    there = plane != 0
    across = there[:, 1:] & (plane[:, 1:] == plane[:, :-1])
    down = there[1:] & (plane[1:] == plane[:-1])
    square = down[:, 1:] & down[:, :-1] & across[1:]
    parts = np.count_nonzero(there) - np.count_nonzero(across) - np.count_nonzero(down)
    return len(np.unique(plane[there])), int(parts + np.count_nonzero(square))


def detect_labels(
    frames: Iterable[NDArray],
    *,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
    unit: str = "pixel",
    count: int = 0,
    progress: Callable[[int, int], object] | None = None,
    intensity: Sequence[Iterable[NDArray]] = (),
) -> Detections:
    """Find the centroids of a movie of label images, frame by frame.

    Parameters
    ----------
    frames : iterable of (Z, Y, X) integer array
    spacing, unit, count, progress
        As for `detect`.
    intensity : sequence of iterables of (Z, Y, X) array
        The frames of each channel in which the objects are measured.

    Returns
    -------
    Detections
        With the features ``label``, ``size`` in voxels, ``elongation`` and ``angle``, see `shapes`; and
        ``mean_0``, ``max_0``, … in each channel.

    Raises
    ------
    InputError
        As `centroids`.

    Examples
    --------
    >>> found = detect_labels([np.array([[[7, 7, 0], [0, 0, 2]]])], spacing=(1.0, 0.5, 0.5))
    >>> found.position.tolist(), found.features["label"].tolist()
    ([[0.0, 0.5, 1.0], [0.0, 0.0, 0.25]], [2, 7])
    """
    from scipy import ndimage

    number, position, label, size = [], [np.empty((0, 3))], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    names = [f"{name}_{k}" for k in range(len(intensity)) for name in ("mean", "max")]
    shape = [np.empty((2 + len(names), 0))]
    for frame, (image, *channels) in enumerate(zip(objects_in(frames), *intensity, strict=True)):
        if frame == 0 and (lie := parts_of(image))[1] > _SCATTERED * max(lie[0], 1):
            _LOG.warning(
                "The %d labels of the first image lie in about %d separate parts: are they grey values or "
                "classes? Each number is taken for an object. If the images show spots: leave --labels out; "
                "if they show classes: make a mask of one class.", *lie,
            )  # fmt: skip
        value, centre, voxels = centroids(image)
        number.append(np.full(len(value), frame, dtype=np.int32))
        position.append(centre * spacing)
        label.append(value)
        size.append(voxels)
        light = [of(each, image, value) for each in channels for of in (ndimage.mean, ndimage.maximum)]
        shape.append(np.stack([*shapes(image), *light]))
        if progress is not None:
            progress(frame + 1, count)
    frame_of = np.concatenate([np.empty(0, dtype=np.int32), *number])
    features = {"label": np.concatenate(label), "size": np.concatenate(size)}
    features |= dict(zip(["elongation", "angle", *names], np.concatenate(shape, axis=1), strict=True))
    return Detections(frame_of, np.concatenate(position), Calibration(unit), features)
