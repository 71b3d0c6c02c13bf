"""Surfaces: where particles lie on surfaces or along fibres, which ways lead on there.

Around a place they spread along few of the principal axes of its neighbours (Kambhatla & Leen 1997). Steps in
all directions would lead away from there, to where nobody is: a movie that is drawn so would be far less
crowded than the real one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

_NEIGHBOURS, _FEWEST = 8, 50
"""Of a place, of which there are so many in a frame at least."""
_THIN, _MOSTLY = 0.05, 0.8
"""Share of their widest variance up to which they lie on a surface; and share of the places that must."""
_LEAVING = 0.1
"""Variance of steps that lead away from it, in that of those along it, up to which these stay there."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Surfaces or fibres on which particles lie.

    Parameters
    ----------
    unit : (axes,) float64 array
        In which the axes are alike.
    middle : (N, axes) float64 array
        Of the neighbours of some places.
    across : (N, axes, axes) float64 array
        What leads away from the surface there: a projection.
    """

    unit: NDArray[np.float64]
    middle: NDArray[np.float64]
    across: NDArray[np.float64]

    @classmethod
    def of(cls, position: NDArray[np.float64], unit: NDArray[np.float64]) -> Surface | None:
        """The surfaces on which most detections of a frame lie; None if they do not.

        Parameters
        ----------
        position : (N, axes) float64 array
        unit : (axes,) float64 array
            In which steps along all axes are alike.

        Examples
        --------
        >>> place = np.random.default_rng(0).uniform(0, 9, (200, 3))
        >>> Surface.of(place, np.ones(3)) is None
        True
        >>> place[:, 0] = 2 * place[:, 1]
        >>> found = Surface.of(place, np.ones(3))
        >>> found.along(place[:1], np.array([[2.0, 1.0, 0.0]])).round(6).tolist()
        [[2.0, 1.0, 0.0]]
        >>> abs(found.along(place[:1], np.array([[1.0, -2.0, 1.0]]))).round(6).tolist()
        [[0.0, 0.0, 1.0]]
        """
        if len(position) < _FEWEST:
            return None
        place = position / unit
        near = place[cKDTree(place).query(place, _NEIGHBOURS + 1)[1]]
        middle = near.mean(axis=1)
        spread = near - middle[:, None]
        variance, axis = np.linalg.eigh(np.einsum("nki,nkj->nij", spread, spread))
        thin = variance < _THIN * variance[:, -1:]
        if thin.any(axis=1).mean() < _MOSTLY:
            return None
        return cls(unit, middle, np.einsum("nij,nj,nkj->nik", axis, thin, axis))

    def holds(
        self, position: NDArray[np.float64], step: NDArray[np.float64], noise: NDArray[np.float64]
    ) -> bool:
        """Whether steps (N, axes) from positions (N, axes) stay there, but for noise (axes,)."""
        nearest = self._nearest(position)
        leading = self._away(nearest, step)
        along, away = (np.square(part / self.unit).sum() for part in (step - leading, leading))
        noise2 = 2 * float(np.square(noise / self.unit).mean())
        lost = float(self._lost(nearest).sum())
        kept = step.size - lost
        return bool(away - noise2 * lost < _LEAVING * (along - noise2 * kept) * lost / max(kept, 1.0))

    def along(self, position: NDArray[np.float64], vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N, axes) the part of vectors (N, axes) at positions (N, axes) that leads along the surface."""
        return vector - self._away(self._nearest(position), vector)

    def onto(self, position: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N, axes) positions of the surface nearest to such."""
        nearest = self._nearest(position)
        return position - self._away(nearest, position - self.middle[nearest] * self.unit)

    def normal(self, position: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """(N, axes) normal vectors along the surface, in units, as long as those in all directions are."""
        nearest, vector = self._nearest(position), rng.normal(size=position.shape)
        along = vector - np.einsum("nij,nj->ni", self.across[nearest], vector)
        axes = position.shape[1]
        return along * np.sqrt(axes / (axes - self._lost(nearest)))[:, None]

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.middle)

    def _nearest(self, position: NDArray[np.float64]) -> NDArray[np.int64]:
        return self._tree.query(position / self.unit)[1]

    def _lost(self, nearest: NDArray[np.int64]) -> NDArray[np.float64]:
        """How many axes lead away from it."""
        return np.trace(self.across[nearest], axis1=1, axis2=2)

    def _away(self, nearest: NDArray[np.int64], vector: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.einsum("nij,nj->ni", self.across[nearest], vector / self.unit) * self.unit
