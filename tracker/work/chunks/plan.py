"""Divide a movie into chunks of whole frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...gated import linking
from ...gated.batches import runs


@dataclass(frozen=True)
class Chunk:
    """Rows of a chunk of frames: [begin, end) are its own, [end, beyond) are the first frame of the next."""

    number: int
    begin: int
    end: int
    beyond: int


def plan(frames: NDArray[np.int64], counts: NDArray[np.int64], rows: int) -> list[Chunk]:
    """Divide a movie into chunks of about `rows` rows, made of whole runs of frames.

    Parameters
    ----------
    frames : (F,) int64 array
        Frames that hold rows, increasing.
    counts : (F,) int64 array
        Rows of each.
    rows : int

    Examples
    --------
    >>> found = plan(np.arange(4), np.array([40_000, 10_000, 30_000, 5]), rows=50_000)
    >>> [(each.begin, each.end, each.beyond) for each in found]
    [(0, 40000, 50000), (40000, 80005, 80005)]
    """
    if len(frames) == 0:
        return []
    since = frames - frames[0]
    size = np.zeros(int(since[-1]) + 1, dtype=np.int64)
    size[since] = counts
    start = np.concatenate([[0], np.cumsum(size)])
    found: list[Chunk] = []
    begin = 0
    for frame, last in runs(start, linking.RUN):
        at = int(start[frame])
        if at > begin and int(start[last + 1]) - begin > rows:
            found.append(Chunk(len(found), begin, at, int(start[frame + 1])))
            begin = at
    return [*found, Chunk(len(found), begin, int(start[-1]), int(start[-1]))]
