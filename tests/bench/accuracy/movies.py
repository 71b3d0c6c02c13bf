"""The list of movies: simulated kinds at several kappas and seeds, and recorded movies at several strides."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import isfunction, signature
from pathlib import Path

import numpy as np

from outbid import Tracks, read_tracks

from . import flows, tissues, views, walkers

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[3] / "shared" / "data"
"""Recorded movies, beside the checkout."""

KINDS: Mapping[str, Callable[[int, float], Tracks]] = {
    name: made
    for module in (walkers, flows, views, tissues)
    for name, made in vars(module).items()
    if isfunction(made) and [*signature(made).parameters] == ["seed", "kappa"]
}
"""Simulated kinds by name: from a seed and a kappa to the true tracks of the detections."""


@dataclass(frozen=True, order=True)
class Movie:
    """One movie of the list.

    `kind` is the name of a simulated kind, and `level` its kappa; or the path of a recorded movie, of which
    every `level`-th frame is taken.
    """

    kind: str
    level: float
    seed: int = 0

    @property
    def recorded(self) -> bool:
        return self.kind not in KINDS

    @property
    def developed(self) -> bool:
        """Whether changes may be tried on this movie; all others are reported only."""
        chosen = plan()["developed"]
        return self.kind in chosen["recorded"] or (
            self.kind in chosen["kinds"] and self.seed < chosen["seeds"]
        )

    def truth(self) -> Tracks:
        """The true tracks; their detections are the movie."""
        if self.recorded:
            return read_tracks(DATA / self.kind).every(int(self.level))
        return KINDS[self.kind](self.seed, self.level)


@cache
def plan() -> dict:
    """What movies.toml says."""
    return tomllib.loads((HERE / "movies.toml").read_text("utf-8"))


def simulated() -> list[Movie]:
    """All simulated movies, the first seed of every kind before the second."""
    given = plan()
    return [
        Movie(kind, kappa, seed)
        for seed in range(given["seeds"])
        for kind in given["developed"]["kinds"] + given["reported"]["kinds"]
        for kappa in given["kappas_of"].get(kind, given["kappas"])
    ]


def recorded() -> list[Movie]:
    """All recorded movies, where they are beside the checkout."""
    given = plan()
    return [
        Movie(path, stride)
        for path in given["developed"]["recorded"] + given["reported"]["recorded"]
        for stride in given["strides"]
        if (DATA / path).exists()
    ]


def fingerprint(truth: Tracks) -> str:
    """A hash of positions, frames and true links: the same movie on every machine.

    Positions are compared to a millionth of the unit, which rounding of another machine does not reach.
    """
    seen = truth.detections
    whole = np.round(seen.position * 1e6).astype(np.int64)
    parts = (seen.frame.astype(np.int64), whole, truth.links.astype(np.int64))
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:16]
