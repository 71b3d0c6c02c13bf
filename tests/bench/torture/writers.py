"""What writes: every command that makes a file or a folder, and every format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tifffile

from outbid import Detections, Tracks, write_detections, write_tracks
from outbid.formats import WRITTEN


@dataclass(frozen=True)
class Writer:
    """A command.

    Parameters
    ----------
    name : str
    words : str
        Its arguments; ``{n}`` is 1 or 2, for runs that make different outputs under one name.
    outputs : tuple of str
        Files or folders that it makes.
    resumes : bool
        Whether an interrupted run leaves ``.parts`` with which ``--resume`` goes on.
    slow : bool
        Whether a run takes seconds; then it has its turn in one of some rounds.
    """

    name: str
    words: str
    outputs: tuple[str, ...]
    resumes: bool = False
    slow: bool = False

    def arguments(self, run: int, *more: str) -> list[str]:
        """The words of a run."""
        return [*self.words.format(n=run).split(), *more]


_CONVERTED = [suffix for suffix in WRITTEN if suffix != ".pq"]
_TRACK = "track spots{n}.parquet --max-distance 3 -o"
_SIMULATE = "simulate -o out.csv --movie out.ome.tif --box 3 24 24 --frames 3 --particles 5 --seed {n}"
WRITERS: Sequence[Writer] = (
    *(Writer(f"convert {one}", f"convert tracks{{n}}.csv out{one}", (f"out{one}",)) for one in _CONVERTED),
    Writer("track", f"{_TRACK} out.csv", ("out.csv",)),
    Writer("stream", f"{_TRACK} out.parquet --stream", ("out.parquet",), resumes=True),
    Writer("detect", "detect movie{n}.tif -o out.csv --radius 1.5", ("out.csv",)),
    Writer("filter", "filter tracks{n}.csv -o out.csv --min-length 2", ("out.csv",)),
    Writer("simulate", _SIMULATE, ("out.csv", "out.ome.tif")),
    Writer("report", "report tracks{n}.csv tracks1.csv -o out.html --gate 2", ("out.html",), slow=True),
)


def make_inputs(folder: Path) -> None:
    """The files that the commands read: two of each, for outputs that differ."""
    for number in (1, 2):
        rng = np.random.default_rng(number)
        frame = np.repeat(np.arange(6), 400)
        place = np.tile(rng.uniform(0, 60, (400, 3)), (6, 1)) + rng.normal(0, 0.3, (2400, 3))
        seen = Detections.from_table(frame, place, features={"mass": rng.random(2400)})
        links = np.column_stack([np.arange(2000), np.arange(400, 2400)])
        write_tracks(folder / f"tracks{number}.csv", Tracks(seen, links))
        write_detections(folder / f"spots{number}.parquet", seen)
        movie = rng.normal(100, 5, (3, 3, 24, 24))
        movie[:, 1, 5 + 4 * number, 8] += 300
        tifffile.imwrite(
            folder / f"movie{number}.tif", movie.astype(np.uint16), imagej=True, metadata={"axes": "TZYX"}
        )
