"""Measure a linker over the list of movies: ``make accuracy``, or ``python -m accuracy.run`` in tests/bench/.

Each movie is linked on one core. The record holds the scores of each movie, and says which commit and machine
they come from; it is set beside the baseline, movie by movie. After an interruption ``--resume`` goes on.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from benchmarks import measure

from . import compare
from .linkers import Linker, named
from .measured import Measured, Record, measured, name_of
from .movies import HERE, Movie, recorded, simulated

REPOSITORY = HERE.parents[2]
BASELINE = HERE / "baseline.npz"
"""Commit a8344a6 over the whole list."""

CHOICES = ("all", "developed", "reported", "quick", "quick developed")
"""Parts of the list."""


def chosen(which: str, pattern: str = "*") -> list[Movie]:
    """The movies of the list that are asked for."""
    every = simulated() + recorded()
    kept = {
        "all": [True] * len(every),
        "developed": [movie.developed for movie in every],
        "reported": [not movie.developed for movie in every],
        "quick": [_quick(movie) for movie in every],
        "quick developed": [_quick(movie) and movie.developed for movie in every],
    }[which]
    return [m for m, asked in zip(every, kept, strict=True) if asked and fnmatch(name_of(m), pattern)]


def _quick(movie: Movie) -> bool:
    """Whether a movie is the first of its kind, in the middle of the levels."""
    return not movie.recorded and movie.seed == 0 and movie.level == 0.14


def over(movies: Sequence[Movie], linker: str, jobs: int = 1) -> Iterator[Measured]:
    """Measurements of the movies in their order, in processes of one core each."""
    with measure.processes(jobs, _start, linker) as pool:
        yield from pool.map(_one, movies)


_linker: list[Linker] = []
"""The linker of this process, once it was started."""


def _start(linker: str) -> None:
    _linker.append(named(linker))
    _one(Movie("few", 0.07))  # kernels compile before the clock runs


def _one(movie: Movie) -> Measured:
    return measured(movie, movie.truth(), _linker[0])


def about(linker: str) -> dict[str, str]:
    """Where a record comes from."""
    return {"linker": linker, **measure.stated()}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="accuracy.run", description=__doc__)
    parser.add_argument(
        "--linker", default="learned", help="a function of accuracy.linkers, or module:function"
    )
    parser.add_argument("--movies", default="all", choices=CHOICES)
    parser.add_argument("--only", default="*", help="a pattern of names, as 'few*@0.14#*'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="movies side by side")
    parser.add_argument("--record", type=Path, help="write the record there (.npz)")
    parser.add_argument("--resume", action="store_true", help="keep what the record has")
    given = parser.parse_args(words)
    begin, movies = time.monotonic(), chosen(given.movies, given.only)
    found = Record(about(given.linker), [])
    if given.resume and given.record.exists():
        found.rows.extend(Record.load(given.record).rows)
    done = {row.movie for row in found.rows}
    left = [movie for movie in movies if movie not in done]
    for row in over(left, given.linker, given.jobs):
        found.rows.append(row)
        if len(found.rows) % 50 == 0:
            seconds = time.monotonic() - begin
            print(f"{len(found.rows)} of {len(movies)} movies, {seconds:.0f} s", file=sys.stderr)
            if given.record:
                found.save(given.record)
    if given.record and left:
        found.save(given.record)
    verdict = compare.compared(found, Record.load(BASELINE))
    print(verdict.table())
    return 0 if verdict.passed else 1


if __name__ == "__main__":
    sys.exit(main())
