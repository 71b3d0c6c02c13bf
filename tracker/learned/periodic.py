"""Learned linking in a periodic box: what leaves on one side comes in on the other.

The movie is linked with images of the detections near each side, beyond the opposite side. A link of a
detection of the box to an image is a link to the detection itself.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..gated.linking import Links
from ..particles.detections import Detections
from ..settings.tracking import TrackingSettings
from .linking import Progress, linked
from .summary import Summary

_REACH = 5.0
"""Guard: width of the margin with images, in distances between neighbours, at most half of the box: steps and
the competitors of a link at the side are within it."""


def in_box(
    detections: Detections, settings: TrackingSettings, workers: int = 1, progress: Progress = None
) -> tuple[Summary, Links]:
    """As `linked`, in the periodic box of the settings; learned from the movie with its images."""
    assert settings.periodic is not None
    every, row, inside = with_images(detections, settings.spacing, settings.periodic)
    learned, links = linked(every, replace(settings, spacing=(1.0, 1.0, 1.0)), workers, progress)
    return learned, folded(links, row, inside, merges=settings.merges)


def with_images(
    detections: Detections, spacing: tuple[float, float, float], box: tuple[float, float, float]
) -> tuple[Detections, NDArray[np.int64], NDArray[np.bool_]]:
    """The detections in the box and images of them around it.

    Parameters
    ----------
    detections : Detections
        Anywhere: positions are wrapped into the box first.
    spacing : (float, float, float)
        Size of a voxel along z, y, x.
    box : (float, float, float)
        Size along z, y, x in the unit of position x spacing; 0 along an axis that is not periodic.

    Returns
    -------
    Detections
        M of them, in the unit of position x spacing.
    (M,) int64 array
        Row of the detection that each is, or is an image of.
    (M,) bool array
        Which are in the box.

    Examples
    --------
    >>> seen = Detections.from_table([0, 0], [[0, 0, 1], [0, 0, 9]])
    >>> every, row, inside = with_images(seen, (1, 1, 1), (0, 0, 10))
    >>> every.position[:, 2].tolist(), row.tolist(), inside.tolist()
    ([1.0, 11.0, -1.0, 9.0], [0, 0, 1, 1], [True, False, False, True])
    """
    place = detections.position * spacing
    size = np.where(np.ptp(place, axis=0) > 0, box, 0.0)  # along other axes all are in one plane
    axes = np.flatnonzero(size > 0)
    place[:, axes] %= size[axes]
    extent = np.where(size > 0, size, np.ptp(place, axis=0))
    wide = extent[extent > 0]
    volume = float(np.exp(np.log(wide).sum())) * len(np.unique(detections.frame)) / len(place)
    margin = np.minimum(_REACH * volume ** (1 / max(len(wide), 1)), size / 2)
    rows, places = [], []
    for shift in product(*([-1, 0, 1] if one > 0 else [0] for one in size)):
        image = place + np.array(shift) * size
        near = (size == 0) | ((image >= -margin) & (image < size + margin))
        rows.append(np.flatnonzero(near.all(axis=1)))
        places.append(image[rows[-1]])
    row, position = np.concatenate(rows), np.concatenate(places)
    inside = np.repeat([2 * k + 1 == len(rows) for k in range(len(rows))], [len(some) for some in rows])
    order = np.lexsort((position[:, 2], position[:, 1], position[:, 0], row))
    order = order[np.argsort(detections.frame[row[order]], kind="stable")]
    row = row[order]
    return Detections(detections.frame[row], position[order], detections.calibration), row, inside[order]


def folded(links: Links, row: NDArray[np.int64], inside: NDArray[np.bool_], *, merges: bool) -> Links:
    """Links of the detections themselves: those that start in the box, the likeliest where two end in one.

    Parameters
    ----------
    links : Links
        Of `with_images`, whose `row` and `inside` follow.
    row, inside : arrays
    merges : bool
        Whether several links may end in one detection.
    """
    assert links.probability is not None
    kept = np.flatnonzero(inside[links.pairs[:, 0]])
    pairs = row[links.pairs[kept]]
    order = np.lexsort((pairs[:, 0], -links.probability[kept], pairs[:, 1]))
    first = np.append(True, np.diff(pairs[order, 1]) > 0)[: len(order)] | merges
    kept = kept[order[first]]
    pairs = row[links.pairs[kept]]
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return replace(links.take("link", kept), pairs=pairs).take("link", order)
