r"""Lifetimes: ages at which cells divide, and the resulting log odds of candidate divisions.

A division within the life of a cell splits it into two lifetimes. Let h(a) be the hazard of a division at the
age of a frames, and :math:`S(a) = \prod_{k \le a} (1 - h(k))` the survival. A cell that divides at age a
has the likelihood :math:`h(a) S(a - 1)`; a cell followed to age a without a division has :math:`S(a)`. If
the birth of a cell was not observed, the remaining life has the distribution of residual lifetimes,
:math:`S(a) / \sum S`. The weight of a division is the likelihood ratio with and without it, divided by the
same ratio for a constant hazard. D. R. Cox, Renewal Theory, 1962.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import array_module, to_host
from ...compute.tolerances import LEAST, SURE
from ..model.movie import chain_ends, summed
from .candidates import Divisions

_PSEUDO = 1.0
"""Prior: weight of a constant hazard, in divisions per age."""
_WIDTH = 0.15
"""Prior: ages that differ by less than this share are pooled."""


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """The life to which each detection belongs, along links between divisions.

    Parameters
    ----------
    frame : (N,) int64 array
    born : (N,) int64 array
        Frame in which the life of each detection begins.
    seen_born : (N,) bool array
        Whether this life begins with a division.
    end : (N,) int64 array
        Last frame of this life.
    divides : (N,) bool array
        Whether this life ends with a division.
    """

    frame: NDArray[np.int64]
    born: NDArray[np.int64]
    seen_born: NDArray[np.bool_]
    end: NDArray[np.int64]
    divides: NDArray[np.bool_]

    @classmethod
    def of(cls, frame: NDArray[np.int64], links: NDArray[np.int64]) -> Lifetimes:
        """From links (L, 2) sorted by source; a mother is the source of two."""
        (source, target), xp = links.T, array_module(frame)
        divides, seen_born = np.zeros_like(frame, bool), np.zeros_like(frame, bool)
        divides[source[1:][source[1:] == source[:-1]]] = True
        seen_born[target[divides[source]]] = True
        plain = ~divides[source]
        first, last = xp.arange(len(frame)), xp.arange(len(frame))
        first[target[plain]], last[source[plain]] = source[plain], target[plain]
        first, last = chain_ends(first), chain_ends(last)
        return cls(frame, frame[first], seen_born[first], frame[last], divides[last])


def log_factors(cells: Lifetimes, divisions: Divisions) -> NDArray[np.float64]:
    """(P,) contribution of ages to the log odds of each candidate division."""
    observed, unobserved = map(array_module(cells.frame).asarray, _tables(cells))
    mother, first, second = divisions.mother, divisions.first, divisions.second
    seen, age = cells.seen_born[mother], cells.frame[mother] - cells.born[mother]
    rest = cells.end[first] - cells.frame[first]
    of_mother = np.where(seen, observed[0][age], unobserved[0][age])
    log_ratio = of_mother + _life(observed, cells, rest, first)
    whole = age + 1 + rest
    without = np.where(seen, _life(observed, cells, whole, first), _life(unobserved, cells, whole, first))
    later = cells.end[second] - cells.frame[second]
    log_ratio += _life(observed, cells, later, second) - _life(unobserved, cells, later, second)
    return np.clip(log_ratio - without, -SURE, SURE)


def _life(
    tables: NDArray[np.float64], cells: Lifetimes, length: NDArray[np.int64], row: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Log likelihood of lifetimes of the given lengths that end in the same way as that of each row."""
    return np.where(cells.divides[row], tables[0][length], tables[1][length])


def _tables(cells: Lifetimes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log likelihoods (2, size) of lifetimes by length: ending in a division, and ending without one.

    The first is for cells with an observed birth, the second for others; relative to a constant hazard.
    """
    size = int(cells.frame[-1] - cells.frame[0]) + 3
    age = cells.frame - cells.born
    last = cells.frame == cells.end
    ended = last & cells.divides
    lived, divided = (to_host(summed(age, (cells.seen_born & some) * 1.0, size)) for some in (True, ended))
    mean = (float(ended.sum()) + _PSEUDO) / (len(age) + _PSEUDO)
    group = _pooled(size)
    hazard = (np.bincount(group, divided) + _PSEUDO) / (np.bincount(group, lived) + _PSEUDO / mean)
    hazard = np.clip(hazard, LEAST, 0.99)[group]
    survival = np.cumprod(1 - hazard)
    alike = np.arange(1, size + 1) * np.log1p(-mean)
    tail = np.append(np.cumsum(survival[::-1])[::-1], survival[-1] / mean)[:size] + survival[-1] / mean
    until = np.append(1.0, survival[:-1])
    whole = tail[0] + 1
    observed = np.log([hazard * until / mean, survival]) - [alike - alike[0], alike]
    unobserved = np.log([until / whole / mean, tail / whole]) - [alike - alike[0], alike]
    return observed, unobserved


def _pooled(size: int) -> NDArray[np.int64]:
    """(size,) numbers of groups of ages: each by itself while young, then by ratio."""
    age, few = np.arange(size), round(1 / _WIDTH)
    number = np.where(age <= few, age, few + np.log(np.maximum(age, few) / few) / _WIDTH).astype(np.int64)
    return np.unique(number, return_inverse=True)[1]
