"""Detections and tracks as Arrow tables, one row a detection: for files, pandas, polars and others."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..compute.arrays import kernels
from ..compute.threads import FEW, begun, in_threads
from ..errors import ResourceError
from .arrow import column_of, feature_column, packed_column

if TYPE_CHECKING:
    from .detections import Detections
    from .tracks import Tracks

Columns = dict[str, pa.Array]
BLOCK = 1 << 16
"""Rows that a thread copies or converts at a time, so that they stay in the cache."""


def table_of_detections(detections: Detections) -> pa.Table:
    """Columns frame, z, y, x, then features; a unit goes with z, y, x.

    Examples
    --------
    >>> from .detections import Detections
    >>> seen = Detections.from_table([4], [[1, 2, 3]], features={"mass": [9.5]})
    >>> table_of_detections(seen).to_pylist()
    [{'frame': 4, 'z': 1.0, 'y': 2.0, 'x': 3.0, 'mass': 9.5}]
    """
    return together(place_columns(detections), detections, {})


def table_of_tracks(tracks: Tracks) -> pa.Table:
    """Columns track_id, frame, z, y, x, parent (if a track divides or merges), features, measures of links.

    Every row has the number of its track's parent, or null, and cost, margin and probability of the link
    that reaches it, or null. Further links that reach a detection (a merge) stand in parent_2, link_cost_2, …

    Examples
    --------
    >>> from .detections import Detections
    >>> from .tracks import Tracks
    >>> seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 1, 0]])
    >>> split = Tracks(seen, np.array([[0, 1], [0, 2]]))
    >>> table_of_tracks(split).select(["track_id", "parent"]).to_pydict()
    {'track_id': [0, 1, 2], 'parent': [None, 0, 0]}
    """
    own, measures = track_columns(tracks)
    return together(own, tracks.detections, measures)


def place_columns(detections: Detections) -> Columns:
    """Columns frame, z, y, x, without features."""
    columns = zip("zyx", map(column_of, _transposed(detections.position)), strict=True)
    return {"frame": column_of(detections.frame), **dict(columns)}


def track_columns(tracks: Tracks) -> tuple[Columns, Columns]:
    """Columns track_id, frame, z, y, x, parent, …, and those of the measures of links."""
    rank = rank_among_incoming(tracks)
    parents, of_links = {}, {}
    for k in range(int(rank.max(initial=0)) + 1):
        suffix = f"_{k + 1}" if k else ""
        chosen = rank == k if rank.any() else slice(None)
        parent = _parents(tracks, chosen)
        if parent is not None:
            parents["parent" + suffix] = column_of(parent, parent < 0)
        for name, of_link in tracks.measures.items():
            of_links[name + suffix] = tracks, chosen, of_link
    place = begun(place_columns, tracks.detections)
    columns = in_threads(lambda given: _at_targets(*given), of_links.values(), len(of_links))
    own = {"track_id": column_of(tracks.track_id)} | place.result() | parents
    return own, dict(zip(of_links, columns, strict=True))


def together(own: Columns, detections: Detections, after: Columns) -> pa.Table:
    """Join columns, with the features in the middle; a feature whose name is taken is dropped."""
    features = {name: of for name, of in detections.features.items() if name not in own | after}
    columns = own | {name: feature_column(name, of) for name, of in features.items()} | after
    unit = {b"unit": detections.unit.encode()}
    fields = [
        pa.field(name, column.type, metadata=unit if name in ("z", "y", "x") else None)
        for name, column in columns.items()
    ]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def pandas_of(table: pa.Table) -> Any:
    """The table as a pandas DataFrame.

    Raises
    ------
    ResourceError
        If pandas is not installed.
    """
    if find_spec("pandas") is None:
        raise ResourceError("A data frame needs pandas. Install it: pip install pandas.")
    return table.to_pandas()


def rank_among_incoming(tracks: Tracks) -> NDArray[np.int64]:
    """(E,) int64: 0 for the first link that reaches a detection, 1 for the second, …, by source."""
    if not tracks.branches or tracks.predecessors.max(initial=0) <= 1:
        return np.zeros(len(tracks.links), dtype=np.int64)
    order = np.lexsort((tracks.links[:, 0], tracks.links[:, 1]))
    first = np.concatenate([[0], np.cumsum(tracks.predecessors)])[tracks.links[order, 1]]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - first
    return rank


def _transposed(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """(C, N) float64, contiguous: the columns of `rows`, (N, C), copied in threads if they are many."""
    if len(rows) <= BLOCK or rows.T.flags.c_contiguous:
        return np.ascontiguousarray(rows.T)
    columns = np.empty(rows.shape[::-1])

    def copy(begin: int) -> None:
        columns[:, begin : begin + BLOCK] = rows[begin : begin + BLOCK].T

    list(in_threads(copy, range(0, len(rows), BLOCK), FEW))
    return columns


def _at_targets(tracks: Tracks, chosen: NDArray[np.bool_] | slice, of_link: NDArray[np.float64]) -> pa.Array:
    """Column with the value of each chosen link at the detection that is the link's target."""
    count = len(tracks.detections)
    column, valid = np.empty(count), np.empty(-(-count // 8), dtype=np.uint8)
    kernels("outbid.particles.tracks", column).at_targets(
        tracks.links[chosen], of_link[chosen], column, valid
    )
    return packed_column(column, valid)


def _parents(tracks: Tracks, chosen: NDArray[np.bool_] | slice) -> NDArray[np.int64] | None:
    """(N,) int64: the track from which each detection's track comes by one of the chosen links, or -1."""
    if not tracks.branches:
        return None
    between = tracks.links[chosen][~tracks._inside_track[chosen]]
    return tracks._parents_by(between) if len(between) else None
