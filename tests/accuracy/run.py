"""Measure a linker over the list of movies: ``make accuracy``, or ``python -m accuracy.run`` in tests/.

Each movie is linked on one core. The record holds the scores of each movie, and says which commit, machine
and sources they come from; with ``--against`` it is set beside another one, movie by movie. In parts, as for
a machine that is lent for minutes: ``--part 1/3 --record 1.npz`` and so on, then ``--resume 1.npz 2.npz 3.npz
--record learned.npz``.
"""

from __future__ import annotations

import argparse
import atexit
import hashlib
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

from . import compare
from .measured import Measured, Record, measured, name_of
from .movies import HERE, Movie, recorded, simulated
from .served import Served

REPOSITORY = HERE.parent.parent
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


def sources() -> dict[str, str]:
    """SHA-256 of what the movies and the scores are made by."""
    paths = [*HERE.glob("*.py"), HERE / "movies.toml", *(REPOSITORY / "tracker" / "scoring").glob("*.py")]
    return {
        path.relative_to(REPOSITORY).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(paths)
    }


def over(movies: Sequence[Movie], linker: str, path: str = "", jobs: int = 1) -> Iterator[Measured]:
    """Measurements of the movies in their order."""
    if jobs == 1:
        _start(linker, path)
        yield from map(_one, movies)
        _stop()
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _start, (linker, path)) as pool:
        yield from pool.map(_one, movies)


_served: list[Served] = []
"""The linker of this process, once it was started."""


def _start(linker: str, path: str) -> None:
    _served.append(Served.start(linker, path))
    atexit.register(_stop)
    truth = Movie("few", 0.07).truth()
    _served[0].link(
        truth.detections.frame, truth.detections.position
    )  # kernels compile before the clock runs


def _stop() -> None:
    while _served:
        _served.pop().stop()


def _one(movie: Movie) -> Measured:
    truth = movie.truth()
    answer = _served[0].link(truth.detections.frame, truth.detections.position)
    return measured(movie, truth, answer)


def about(linker: str, commit: str | None = None) -> dict[str, object]:
    """Where a record comes from; `commit` is the linker's, if it is not of this checkout."""
    sys.path.insert(0, str(HERE.parent / "benchmarks"))
    import measure

    origin = {"date": measure.today(), "machine": measure.provenance()}
    commits = {"commit": commit or measure.commit(), "scored_by": measure.commit()}
    return {"linker": linker, **commits, **origin, "sources": sources()}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="accuracy.run", description=__doc__)
    parser.add_argument(
        "--linker", default="learned", help="a function of accuracy.linkers, or module:function"
    )
    parser.add_argument("--path", default="", help="a folder whose packages the linker uses before any other")
    parser.add_argument("--commit", help="the linker's, if it is not of this checkout")
    parser.add_argument("--movies", default="all", choices=CHOICES)
    parser.add_argument("--only", default="*", help="a pattern of names, as 'few*@0.14#*'")
    parser.add_argument("--part", default="1/1", help="2/3 is the second of every three movies")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="movies side by side")
    parser.add_argument("--record", type=Path, help="write the record there (.npz)")
    parser.add_argument("--resume", type=Path, nargs="*", help="keep what these hold; if none, the record")
    parser.add_argument("--against", type=Path, default=BASELINE, help="the record to compare with")
    given = parser.parse_args(words)
    begin = time.monotonic()
    part, parts = map(int, given.part.split("/"))
    movies = chosen(given.movies, given.only)[part - 1 :: parts]
    found = Record(about(given.linker, given.commit), [])
    held = given.resume if given.resume or given.resume is None else [given.record]
    for before in (Record.load(path) for path in held or () if path.exists()):
        found = Record(before.about, found.rows + before.rows)
    done = {row.movie for row in found.rows}
    left = [movie for movie in movies if movie not in done]
    if left:
        found = Record(about(given.linker, given.commit), found.rows)
    for row in over(left, given.linker, given.path, given.jobs):
        found.rows.append(row)
        if len(found.rows) % 50 == 0:
            seconds = time.monotonic() - begin
            print(f"{len(found.rows)} of {len(movies)} movies, {seconds:.0f} s", file=sys.stderr)
            if given.record:
                found.save(given.record)
    if given.record:
        found.save(given.record)
    if given.against.exists():
        verdict = compare.compared(found, Record.load(given.against))
        print(verdict.table())
        return 0 if verdict.passed else 1
    print(compare.summary(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
