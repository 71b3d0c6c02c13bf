"""Label images: whole numbers, 0 is background; the centroids of their objects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


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
