"""TrackMate tables: spots in ``x-spots.csv`` and edges beside them in ``x-edges.csv``.

Track numbers of spots do not distinguish a division from a merge; the edges do.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import InputError
from ...particles.tracks import Tracks
from ..contract import always
from ..files.decimals import decimal, whole
from ..files.records import record_beside
from .columns import plain
from .csv import read_table
from .csv_layout import as_utf8
from .edges import tracks_of
from .table import detections_of, format_of_tables

_ENDS = ("spot_source_id", "spot_target_id")


def read_tracks(path: Path, columns: Mapping[str, str]) -> Tracks:
    """See `outbid.formats.read_tracks`."""
    spots = detections_of(read_table(path, columns))
    name = next((name for name in spots.features if plain(name) == "id"), None)
    if name is None:
        raise InputError(
            f"{path} has no column ID, by which the edges beside it name spots. Export it again."
        )
    if spots.features[name].dtype.kind not in "iuf":
        raise InputError(f"{path}: column {name!r} holds text; the edges need numbers. Export it again.")
    features = {key: values for key, values in spots.features.items() if key != name}
    edges, cost = _edges(_edges_beside(path))
    number = np.asarray(spots.features[name]).astype(np.int64)
    measures = {"link_cost": cost} if np.isfinite(cost).any() else {}
    return tracks_of(path, number, spots.frame, spots.position, edges, spots.calibration, features, measures)


def _edges_beside(path: Path) -> Path:
    head, spots, suffix = path.name[:-9], path.name[-9:-4], path.name[-4:]
    return path.with_name(f"{head}{'EDGES' if spots.isupper() else 'edges'}{suffix}")


def _is_number(field: str) -> bool:
    try:
        decimal(field)
    except ValueError:
        return False
    return True


def _edges(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """(E, 2) spot numbers and (E,) link costs, NaN where unknown."""
    text = as_utf8(path.read_bytes(), path).decode("utf-8", "replace")
    rows = csv.reader(io.StringIO(text, newline=""))  # str.splitlines splits at other characters as well
    names = [plain(name) for name in next(rows, [])]
    if not set(_ENDS) <= set(names):
        raise InputError(f"{path} has no columns SPOT_SOURCE_ID and SPOT_TARGET_ID. Export the edges again.")
    source, target = (names.index(end) for end in _ENDS)
    cost_at = names.index("link_cost") if "link_cost" in names else None
    ends, costs = [], []
    for line, row in enumerate(rows, 2):
        try:
            ends.append((whole(row[source]), whole(row[target])))
            costs.append(decimal(row[cost_at]) if cost_at is not None else np.nan)
        except (ValueError, IndexError):
            if line > 4 or any(map(_is_number, row)):  # lines below the header explain the columns
                raise InputError(
                    f"{path}, line {line}: {row[:6]} is no edge between spots. Fix it."
                ) from None
    return np.array(ends, dtype=np.int64).reshape(-1, 2), np.array(costs)


FORMAT = replace(
    format_of_tables(read_table), read_tracks=read_tracks, holds_tracks=always, read_record=record_beside,
    recognises=lambda path, _: _edges_beside(path).is_file(), read_with=lambda path: [_edges_beside(path)],
)  # fmt: skip
