"""What is measured of one movie, and the record of many."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outbid import Tracks, score

from .linkers import Linker
from .movies import Movie, fingerprint

BINS = 20
"""Bins of the probability of a link, as in `outbid.simulate.experiments.calibration`."""


@dataclass(frozen=True)
class Measured:
    """Scores of one movie.

    `stated`, `right` and `count` hold, for each bin of the probability, the sum of the probabilities, the
    true links among them, and the links. `division_f1` is NaN where no division is true or found.
    """

    movie: Movie
    fingerprint: str
    detections: int
    link_f1: float
    idf1: float
    division_f1: float
    seconds: float
    error: str
    stated: tuple[float, ...]
    right: tuple[int, ...]
    count: tuple[int, ...]

    @property
    def calibration_error(self) -> float:
        """Mean over the links of the difference between stated and realised share in their bin."""
        apart = np.abs(np.subtract(self.stated, self.right)).sum()
        return float(apart / max(sum(self.count), 1))


def measured(movie: Movie, truth: Tracks, linker: Linker) -> Measured:
    """Scores of the links of one movie against the truth; a linker that fails links nothing."""
    begin, error = time.perf_counter(), ""
    try:
        links, probability = linker(truth.detections.frame, truth.detections.position)
    except Exception as failed:  # a linker that is measured may fail in any way: the record says how
        links, probability = np.zeros((0, 2), np.int64), np.zeros(0)
        error = f"{type(failed).__name__}: {failed}"[:80]
    seconds, size = time.perf_counter() - begin, len(truth.detections)
    values = score(
        Tracks(truth.detections, links), truth, families=("links", "identity", "divisions"), link_rule="edge"
    ).values
    right = np.isin(links @ [size, 1], truth.links @ [size, 1])
    which = np.minimum((probability * BINS).astype(int), BINS - 1)
    return Measured(
        movie, fingerprint(truth), size, values["link_f1"], values["idf1"], values["division_f1"], seconds,
        error, tuple(np.bincount(which, probability, BINS)),
        tuple(np.bincount(which, right, BINS).astype(int)), tuple(np.bincount(which, minlength=BINS)),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Record:
    """Measurements of a linker over the list, and where they come from.

    `about` holds linker, commit, date and machine.
    """

    about: Mapping[str, Any]
    rows: list[Measured]

    def save(self, path: Path) -> None:
        """Write a compressed .npz."""
        columns: dict[str, NDArray] = {}
        for name in (field.name for field in fields(Measured)):
            values = [getattr(row, name) for row in self.rows]
            if name == "movie":
                values = [json.dumps(asdict(movie)) for movie in values]
            columns[name] = _small(np.array(values))
        part = path.with_suffix(".part.npz")
        np.savez_compressed(part, about=np.array(json.dumps(self.about)), **columns)
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read what `save` wrote."""
        with np.load(path) as stored:
            held = dict(stored)
        about = json.loads(str(held.pop("about")))
        columns = [held[field.name].tolist() for field in fields(Measured)]
        rows = [
            Measured(Movie(**json.loads(movie)), *_frozen(rest))
            for movie, *rest in zip(*columns, strict=True)
        ]
        return cls(about, rows)


def _small(values: NDArray) -> NDArray:
    """Floats of half the size, whole numbers in 32 bits: a record is compared to four places."""
    kinds = {"f": np.float32, "i": np.int32}
    return values.astype(kinds.get(values.dtype.kind, values.dtype))


def _frozen(values: list) -> list:
    return [tuple(value) if isinstance(value, list) else value for value in values]


def name_of(movie: Movie) -> str:
    """A movie as one word, with which records and tables name it."""
    return f"{movie.kind}@{movie.level:g}#{movie.seed}"
