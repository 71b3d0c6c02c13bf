"""Crowds: where spots merge, their brightness says how many there are.

Two spots nearer than a width are one in the likelihood: the light is the same however they share it. In a
crowd, they are distinguished by spots being about as bright as each other. So their amplitudes get a normal
prior about the typical one; a spot is divided in two if that is more probable, given how many spots there
are, the amplitude, and by how much the residual is longer along a direction; and one is added where one of
typical amplitude makes the residual more probable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import ndtr

from .crowd_cpu import moments
from .joint_cpu import AMPLITUDE, LOG_SIZE
from .response import Slab
from .scene import Scene
from .significance import FAINT

_SPREAD = 0.5  # of spots' amplitudes, over the typical one
CROWDED = 0.05
"""Clear spots in the area of one, from which spots are looked at as a crowd: a twentieth of them merge."""
_ALIKE = 0.8
"""Prior: standard deviation of the logarithm of amplitudes. That of single spots is .47, by `_SPREAD`, and up
to four that merge at random add .52: .7 together. Sure spots that vary more are no crowd of similar ones."""
_BRIGHTER = 1.5  # logarithm of the odds that brightness alone gives at most: some spots are brighter
_LONGER = 0.05  # spread of the logarithm of a width along a direction
_NEAREST, _FARTHEST = 0.4, 0.75  # widths by which the halves of a spot are moved
_CLEARLY = 0.5  # of the typical amplitude: fainter spots are no halves
_SHIFTS = (3, 4, 5, 7)  # by a third of all spots, and so on, coordinates are mixed
_APART = 0.3  # widths from the next spot of one that is added


def are_alike(scene: Scene) -> bool:
    """Whether sure spots vary in amplitude as similar ones do that merge."""
    sure = scene.spots[scene.sure, AMPLITUDE]
    return len(sure) > 0 and float(np.log(sure).std()) <= _ALIKE


def brightness(scene: Scene) -> tuple[float, float]:
    """The typical amplitude of significant spots, and the weight of it as a prior of each amplitude."""
    typical = float(np.median(scene.spots[scene.sure, AMPLITUDE]))
    return typical, 1 / (_SPREAD * typical) ** 2


def resolve(scene: Scene, density: float) -> int:
    """Remove faint spots, divide those that are more probably two, and add those that are missing."""
    faint = scene.spots[:, AMPLITUDE] < FAINT * scene.bright[0]
    scene.keep(~faint | scene.sure)
    missing = _missing(scene, density)
    divided = _divide(scene, density)
    scene.add(missing)
    return divided + len(missing)


def _missing(scene: Scene, density: float) -> NDArray[np.int64]:
    """Voxels where one more spot of typical amplitude is more probable than none."""
    whole = float(np.prod([(taps**2).sum() for taps in scene.taps]))

    def odds(slab: Slab) -> Iterator[Any]:
        expected = scene.bright[0] * whole / scene.variances(slab) ** 0.5
        yield expected * (scene.significance(slab) - expected / 2)

    ((place, _),) = scene.maxima(odds, -np.log(min(density, 1.0)))
    if len(place) and len(scene.spots):
        place = place[cKDTree(scene.in_widths).query(place / scene.unit)[0] > _APART]
    return place


def _divide(scene: Scene, density: float) -> int:
    """Divide spots along the direction in which the residual is longest; returns how many."""
    typical, spread = scene.bright[0], _SPREAD * scene.bright[0]
    rows = np.flatnonzero(scene.spots[:, AMPLITUDE] > typical)
    seen = moments(scene.frame, scene.noise, scene.optics, scene.spots, rows)
    light, information = scene.spots[rows, AMPLITUDE], np.maximum(seen[:, 9], 1e-30)
    moment, weight = seen[:, :9].reshape(-1, 3, 3), (light * information)[:, None]
    if len(rows) and not scene.optics.flat:  # what all spots have in common along z is the profile's error
        z, y, x = np.median(moment[:, range(3), range(3)] / weight, axis=0)
        moment[:, range(3), range(3)] -= weight * (np.array([2, -1, -1]) * (z - (y + x) / 2) / 3)
    length, direction = np.linalg.eigh(moment)
    long, along = np.maximum(length[:, 2], 0.0), direction[:, :, 2]
    # Halves moved by d lengthen the residual by light x information x d² / 4. Pairs are as many at any d² in
    # a plane, and about half of that at these distances in a volume.
    square = 4 * long / (light * information)
    error = np.sqrt(8 / (light**2 * information) + (2 * _LONGER) ** 2)
    room = ndtr((_FARTHEST**2 - square) / error) - ndtr(-square / error)
    pairs = (2 if scene.optics.flat else 1) * density * np.sqrt(2 * np.pi) * error * np.maximum(room, 1e-30)
    one, two = (-((light - n * typical) ** 2) / (2 * n * spread**2) - np.log(n) / 2 for n in (1, 2))
    odds = (square / error) ** 2 / 2 + np.log(pairs) + np.minimum(two - one, _BRIGHTER)
    chosen = np.flatnonzero(odds > 0)
    if not scene.optics.flat:  # in a plane, how long a residual is does not depend on the profile along z
        chosen = chosen[np.argsort(-odds[chosen], kind="stable")][: int(_room(scene))]
    if len(chosen) == 0:
        return 0
    rows = rows[chosen]
    apart = np.sqrt(square[chosen]).clip(_NEAREST, 1.0)
    size = np.exp(scene.spots[rows, LOG_SIZE]) * apart
    shift = along[chosen] * scene.optics.sigma * size[:, None]
    scene.halve(rows, shift)
    return len(rows)


def _room(scene: Scene) -> float:
    """How many spots may be divided until pairs are as near as those of independent places.

    Independent ones have each coordinate of another spot. A division adds one pair, and one spot.
    """
    place = scene.in_widths[scene.spots[:, AMPLITUDE] > _CLEARLY * scene.bright[0]]
    count = len(place)
    mixed = (
        np.column_stack([np.roll(place[:, axis], axis * count // part) for axis in range(3)])
        for part in _SHIFTS
    )
    near = [len(cKDTree(one).query_pairs(2 * _FARTHEST)) for one in (place, *mixed)]
    expected = float(np.mean(near[1:]))
    more = 2 * expected / max(count, 1)  # pairs that each spot adds to independent ones
    return max(expected - near[0], 0.0) / max(1 - more, 1e-3)
