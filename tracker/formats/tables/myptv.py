"""MyPTV: text without a header, ``trajectories``, ``smoothed_trajectories`` and ``particles``.

The columns are: track number (-1 for none; not in ``particles``), x, y, z in mm, further values, and the
frame.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ..files.decimals import decimal_or_nan, row_of
from .edges import Labelled, format_of_labelled

_COUNTS = {8: 0, 9: 1, 11: 1}  # number of columns of each kind of file, and how many precede x


def recognises(path: Path, *_: object) -> bool:
    """Whether the first line has as many numbers as one of the kinds of file."""
    if path.suffix:
        return False
    with path.open("rb") as file:
        first = [field.decode("ascii", "replace") for field in file.readline(1000).split()]
    return len(first) in _COUNTS and bool(np.isfinite([*map(decimal_or_nan, first)]).all())


def holds_tracks(path: Path, *_: object) -> bool:
    """See `outbid.formats.holds_tracks`."""
    with path.open("rb") as file:
        return _COUNTS[len(file.readline(1000).split())] == 1


def _read(path: Path) -> Labelled:
    """See `edges.Labelled`."""
    lines = path.read_text("ascii", "replace").splitlines()
    wide = len(lines[0].split())
    rows = np.array([row_of(path, number, line, wide, wide) for number, line in enumerate(lines, 1)])
    before = _COUNTS[wide]
    return rows[:, 0] if before else None, rows[:, -1], rows[:, before : before + 3][:, ::-1], "mm"


FORMAT = replace(format_of_labelled(_read), recognises=recognises, holds_tracks=holds_tracks)
