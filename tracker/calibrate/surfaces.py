"""Surfaces: detect whether particles lie on surfaces or fibres, and the directions along these.

Locally, particles spread along only some of the principal axes of their neighbours (Kambhatla & Leen 1997).
Simulated steps in all directions would leave the surface for empty space, so a simulated movie would be far
less crowded than the real one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..neighbours import nearest

_NEIGHBOURS, _FEWEST = 8, 50
"""Number of neighbours of a position; a frame must have at least this number of detections."""
_THIN, _MOSTLY = 0.05, 0.8
"""Largest variance across a surface, relative to that along it; and least share of positions on surfaces."""
_LEAVING = 0.1
"""Largest variance of steps across the surface, relative to that along it."""
_ROUNDS, _LEAST = 4, 0.02
"""How often the unit is sought in which steps along it are alike; and least share of them along an axis."""


@dataclass(frozen=True, eq=False)
class Surface:
    """The surfaces or fibres on which particles lie.

    Parameters
    ----------
    unit : (axes,) float64 array
        Unit of length of each axis, in which steps along the surface are isotropic.
    share : (axes,) float64 array
        Share of the squared steps along each axis that is parallel to the surface.
    middle : (N, axes) float64 array
        Mean position of the neighbours of some positions.
    across : (N, axes, axes) float64 array
        Projection onto the directions across the surface, at each of these positions.
    """

    unit: NDArray[np.float64]
    share: NDArray[np.float64]
    middle: NDArray[np.float64]
    across: NDArray[np.float64]

    @classmethod
    def of(cls, position: NDArray[np.float64], step: NDArray[np.float64]) -> Surface | None:
        """The surfaces on which most detections of a frame lie; None if there are none.

        Parameters
        ----------
        position : (N, axes) float64 array
        step : (axes,) float64 array
            Root mean square steps along the axes; smaller along axes across the surface.

        Examples
        --------
        >>> place = np.random.default_rng(0).uniform(0, 9, (200, 3))
        >>> Surface.of(place, np.ones(3)) is None
        True
        >>> place[:, 0] = place[:, 1]
        >>> found = Surface.of(place, np.array([0.7, 0.7, 1.0]))
        >>> np.abs(found.along(place[:1], np.array([[1.0, 1.0, 0.0]]))).round(6).tolist()
        [[1.0, 1.0, 0.0]]
        >>> np.abs(found.along(place[:1], np.array([[1.0, -1.0, 1.0]]))).round(6).tolist()
        [[0.0, 0.0, 1.0]]
        """
        if len(position) < _FEWEST:
            return None
        share = np.ones(len(step))
        for _ in range(_ROUNDS):
            unit = step / np.sqrt(share)
            middle, axis, thin = _leading(position / unit)
            if thin.any(axis=1).mean() < _MOSTLY:
                return None
            across = np.einsum("nij,nj,nkj->nik", axis, thin, axis)
            share = np.maximum(1 - np.einsum("nii->ni", across).mean(axis=0), _LEAST)
        return cls(unit, share, middle, across)

    def holds(
        self, position: NDArray[np.float64], step: NDArray[np.float64], noise: NDArray[np.float64]
    ) -> bool:
        """Whether steps (N, axes) from positions (N, axes) stay on the surface, up to noise (axes,)."""
        nearest, blur = self._nearest(position), 2 * np.square(noise / self.unit)
        leading = self._away(nearest, step)
        along, away = (np.square(part / self.unit).sum() for part in (step - leading, leading))
        lost = np.einsum("nii->i", self.across[nearest])
        ways, out = lost.sum(), lost @ blur
        moved = along - (len(step) * blur.sum() - out)
        return bool(moved > 0 and (away - out) * (step.size - ways) < _LEAVING * moved * ways)

    def along(self, position: NDArray[np.float64], vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N, axes) component along the surface of vectors (N, axes) at positions (N, axes)."""
        return vector - self._away(self._nearest(position), vector)

    def onto(self, position: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N, axes) nearest positions on the surface."""
        nearest = self._nearest(position)
        return position - self._away(nearest, position - self.middle[nearest] * self.unit)

    def normal(self, position: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """(N, axes) normal vectors along the surface, in root mean square steps along the axes."""
        vector = rng.normal(size=position.shape)
        across = self.across[self._nearest(position)]
        return (vector - np.einsum("nij,nj->ni", across, vector)) / np.sqrt(self.share)

    def _nearest(self, position: NDArray[np.float64]) -> NDArray[np.int64]:
        """(N,) index of the reference position nearest to each position (N, axes)."""
        asking, many = np.arange(len(position)), len(position)
        both = np.concatenate([position / self.unit, self.middle])
        near, _ = nearest(both, np.array([0, many, len(both)]), asking, 1, offset=1)
        return np.asarray(near[:, 0] - many, dtype=np.int64)

    def _away(self, nearest: NDArray[np.int64], vector: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.einsum("nij,nj->ni", self.across[nearest], vector / self.unit) * self.unit


def _leading(
    place: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Mean position of the neighbours of each position, their principal axes, and which of these are thin."""
    count = len(place)
    near, _ = nearest(place, np.array([0, count]), np.arange(count), _NEIGHBOURS)
    both = np.concatenate([place[:, None], place[near]], axis=1)
    middle = both.mean(axis=1)
    spread = both - middle[:, None]
    variance, axis = np.linalg.eigh(np.einsum("nki,nkj->nij", spread, spread))
    return middle, axis, variance < _THIN * variance[:, -1:]
