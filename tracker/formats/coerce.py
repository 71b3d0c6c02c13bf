"""Convert what users pass as detections or tracks: objects, paths, data frames, dicts, arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import formats
from ..errors import InputError
from ..particles.detections import Detections
from ..particles.tracks import Tracks
from .tables.columns import AS_NAMED, checked_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from .tables.rows import Rows

Columnar = object
"""A pandas, polars or other data frame, an Arrow table, or any object that exports Arrow data."""
DetectionsLike = Detections | Tracks | str | os.PathLike[str] | Mapping[str, ArrayLike] | ArrayLike | Columnar
TracksLike = DetectionsLike

_WAYS = (
    "Give {}, a path, a data frame (pandas, polars, Arrow), a dict of columns, or an array with the "
    "columns {}."
)


def detections_of(
    given: DetectionsLike, name: str = "detections", *, columns: Mapping[str, str] | None = AS_NAMED
) -> Detections:
    """Convert a path, data frame, mapping or array to detections.

    Parameters
    ----------
    given : Detections, Tracks, path, data frame, mapping or array
        `Detections` are returned as they are; of `Tracks` (or a `TrackingRun`), their detections. A path is
        read by `read_detections`. A pandas or polars data frame, an Arrow table or a dict of columns has
        the columns frame, y, x and perhaps z, under these or other usual names. An array has the columns
        frame, z, y, x or frame, y, x, as points in napari do. A list or tuple has one (n, 3) or (n, 2) array
        of positions for each frame.
    name : str
        What messages call it.
    columns : mapping of str to str
        As for `read_detections`, where there are columns.

    Raises
    ------
    TypeError
        If it has another type.
    InputError
        If a value makes no sense, as `read_detections`.

    Examples
    --------
    >>> detections_of({"t": [0, 1], "x": [1.0, 2.0], "y": [0.0, 0.0]}).position.tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]]
    >>> len(detections_of(np.array([[0, 1.0, 2.0, 3.0]])))
    1
    """
    known = given if isinstance(given, Detections | Tracks) else getattr(given, "tracks", None)
    if isinstance(known, Detections):
        return known
    if isinstance(known, Tracks):
        return known.detections
    if isinstance(given, str | os.PathLike):
        return formats.read_detections(given, columns=columns)
    from .tables.table import detections_of as detections_in_table

    table = _table_of(given)
    if table is not None:
        return detections_in_table(_rows(table, name, columns))
    numbers = _numbers_of(given, name, "detections", ["frame"])
    return Detections.from_table(numbers[:, 0], numbers[:, 1:])


def tracks_of(
    given: TracksLike, name: str = "tracks", *, columns: Mapping[str, str] | None = AS_NAMED
) -> Tracks:
    """Convert a path, data frame, mapping or array to tracks.

    Parameters
    ----------
    given : Tracks, TrackingRun, path, data frame, mapping or array
        As for `detections_of`, with a column track_id; an array has the columns track_id, frame, z, y, x or
        track_id, frame, y, x, as tracks in napari do.
    name, columns
        As for `detections_of`.

    Raises
    ------
    TypeError
        If it has another type.
    InputError
        If a value makes no sense, as `read_tracks`.

    Examples
    --------
    >>> tracks_of(np.array([[7, 0, 1.0, 2.0], [7, 1, 1.0, 2.5]])).links.tolist()
    [[0, 1]]
    """
    known = given if isinstance(given, Tracks) else getattr(given, "tracks", None)
    if isinstance(known, Tracks):
        return known
    if isinstance(given, Detections):
        raise TypeError(f"{name} is of type Detections, which states no tracks. Give what track() returns.")
    if isinstance(given, str | os.PathLike):
        return formats.read_tracks(given, columns=columns)
    import pyarrow as pa

    from .tables.table import tracks_of as tracks_in_table

    table = _table_of(given)
    if table is not None:
        return tracks_in_table(_rows(table, name, columns))
    numbers = _numbers_of(given, name, "tracks", ["track_id", "frame"])
    names = ["track_id", "frame", *"zyx"[5 - numbers.shape[1] :]]
    columns_of = dict(zip(names, np.ascontiguousarray(numbers.T), strict=True))
    return tracks_in_table(_rows(pa.table(columns_of), name, AS_NAMED))


def _table_of(given: object) -> pa.Table | None:
    """Named columns as an Arrow table; None if the object has no named columns."""
    import pyarrow as pa

    if isinstance(given, pa.Table):
        return given
    if isinstance(given, np.ndarray) and given.dtype.names:
        return pa.table({name: np.ascontiguousarray(given[name]) for name in given.dtype.names})
    if isinstance(given, Mapping):
        columns = {str(name): np.asarray(values) for name, values in given.items()}
        if odd := [name for name, values in columns.items() if values.ndim != 1]:
            raise InputError(
                f"{odd[0]!r} is no column of values, one for each detection. Give a list or array."
            )
        return pa.table(columns)
    if hasattr(given, "iloc") and hasattr(given, "columns"):
        return _of_pandas(given)
    if hasattr(given, "__arrow_c_stream__"):
        return pa.table(given)
    return None


def _of_pandas(frame: object) -> pa.Table:
    """A pandas data frame as an Arrow table; a named index, such as groupby makes, becomes a column."""
    import pyarrow as pa

    index = [name for name in frame.index.names if name is not None]  # type: ignore[attr-defined]
    of_its_own = bool(index) and not set(index) & set(frame.columns)  # type: ignore[attr-defined]
    flat = frame.reset_index(drop=not of_its_own)  # type: ignore[attr-defined]
    flat.columns = [str(name) for name in flat.columns]
    return pa.Table.from_pandas(flat, preserve_index=False)


def _rows(table: pa.Table, name: str, columns: Mapping[str, str] | None) -> Rows:
    """The table as the file readers take it; messages name the argument and count rows from 0."""
    from .tables.rows import Rows, cells_of

    return Rows(Path(name), table, cells_of(table), _unit_of(table), checked_columns(columns))


def _unit_of(table: pa.Table) -> str | None:
    """The unit stored with column x in tables that Outbid wrote."""
    at = table.schema.get_field_index("x")
    kept = (table.schema.field(at).metadata or {}) if at >= 0 else {}
    return kept[b"unit"].decode() if b"unit" in kept else None


def _is_by_frame(given: object) -> TypeGuard[Sequence[ArrayLike]]:
    """Whether it is a list with the points of each frame, any empty list or array where there are none."""
    if (
        not isinstance(given, Sequence)
        or isinstance(given, str)
        or not any(np.ndim(one) == 2 for one in given)
    ):
        return False
    return all(np.ndim(one) == 2 or np.size(one) == 0 for one in given)


def _numbers_of(given: object, name: str, what: str, first: list[str]) -> NDArray[np.float64]:
    """A matrix of numbers, or a list with an array of positions for each frame, as one matrix.

    The columns of the array are `first`, and then z, y, x or y, x.
    """
    layout = " or ".join(", ".join([*first, *axes]) for axes in ("zyx", "yx"))
    ways = _WAYS.format(what.capitalize(), layout)
    if _is_by_frame(given):
        parts = [np.asarray(one, dtype=np.float64) for one in given]
        width = max(part.shape[1] if part.ndim == 2 else 0 for part in parts)
        parts = [part if part.size else np.empty((0, width)) for part in parts]
        numbers = np.concatenate(
            [np.column_stack([np.full(len(part), frame), part]) for frame, part in enumerate(parts)]
        )
    else:
        try:
            numbers = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} is of type {type(given).__name__}. {ways}") from None
    if numbers.ndim != 2:
        raise TypeError(f"{name} is of type {type(given).__name__}. {ways}")
    if numbers.shape[1] - len(first) not in (2, 3):
        raise InputError(
            f"{name} has shape {numbers.shape}; an array of {what} has the columns {layout}. "
            "Name the columns in a dict or a data frame."
        )
    return numbers
