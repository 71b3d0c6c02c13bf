"""Read and write detections, tracks and run records; the suffix of a file names its format.

`declared`  all formats, each in one line: where its code is, which files are of it
`contract`  what the module of a format offers
`coerce`    what users pass as detections or tracks
`tables`, `graphs`, `images`  one format a module, and what formats of this kind share
`files`     what all share: outputs, records, numbers, units, memory
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import InputError, SettingsError
from ..particles.calibration import recorded_interval, same_interval
from ..particles.detections import Detections
from ..particles.tracks import Tracks
from .contract import PositionFormat
from .declared import FORMATS, WRITTEN, Format
from .files.memory import larger_than_memory
from .files.outputs import refuse_output
from .files.records import record_from, record_path, sha256_of
from .files.unknown import advice
from .tables.columns import AS_NAMED, checked_columns, text_of_columns

if TYPE_CHECKING:
    from .coerce import DetectionsLike, TracksLike

__all__ = [
    "FORMATS", "WRITTEN", "check_input", "check_output", "format_of", "holds_tracks", "input_of",
    "read_detections", "read_record", "read_tracks", "takes_columns", "write_detections", "write_tracks",
]  # fmt: skip

_LOG = logging.getLogger("outbid")
_Path = str | os.PathLike[str]


def read_detections(path: _Path, *, columns: Mapping[str, str] | None = AS_NAMED) -> Detections:
    r"""Read detections from a file; track numbers in it are ignored.

    Parameters
    ----------
    path : path-like
        A table with columns frame, y, x and optionally z, under these or other usual names. Further numeric
        columns become features of the same name. Positions are not converted: they stay in the unit of the
        file.
    columns : mapping of str to str, optional
        Names of the columns for frame, z, y, x, track_id or parent, if the table uses other names: ``{"z":
        "posZ"}``. An empty name means that there is no such column: ``{"z": ""}`` reads 2D positions.

    Returns
    -------
    Detections
        Sorted by frame; rows of a frame keep their order.

    Raises
    ------
    InputError
        If the file is missing, damaged or of an unknown format, or if a value is invalid; the message names
        the line. Also if the columns of z, y and x follow different naming schemes, such as posZ, y, x.
    SettingsError
        If `columns` make no sense, or the file is no table.
    ResourceError
        If it does not fit the memory.

    Examples
    --------
    >>> _ = Path("spots.csv").write_text("t;x;y;mass\n1;2,5;0;7\n0;1,5;0;8\n")
    >>> seen = read_detections("spots.csv")
    >>> seen.frame.tolist(), seen.position.tolist(), seen.features["mass"].tolist()
    ([0, 1], [[0.0, 0.0, 1.5], [0.0, 0.0, 2.5]], [8, 7])
    """
    with _reading(path, columns) as read:
        return _with_interval(path, read.read_detections(Path(path), columns or AS_NAMED), read)


def read_tracks(path: _Path, *, columns: Mapping[str, str] | None = AS_NAMED) -> Tracks:
    """Read tracks: detections and the links between them.

    Parameters
    ----------
    path : path-like
        A table as for `read_detections` with a column track_id. A column parent names the track from
        which a track divided; blank, negative, the track itself, or 0 where no track is 0 means none.

    Returns
    -------
    Tracks
        Renumbered in the order of their first detections. A track may have gaps.

    Raises
    ------
    InputError, SettingsError, ResourceError
        As `read_detections`; or if a track has two detections in one frame.
    """
    with _reading(path, columns) as read:
        tracks = read.read_tracks(Path(path), columns or AS_NAMED)
        detections = _with_interval(path, tracks.detections, read)
        return tracks if detections is tracks.detections else replace(tracks, detections=detections)


def takes_columns(path: _Path, columns: Mapping[str, str]) -> bool:
    """Whether the caller named columns and the file is a table, in which columns can be named."""
    with _reading_errors_explained(Path(path)):
        reader = _reader(Path(path), columns) if columns else None
        return reader is not None and reader.takes_columns


def holds_tracks(path: _Path, *, columns: Mapping[str, str] | None = AS_NAMED) -> bool:
    """Whether the file contains tracks; it raises what `read_detections` does of the file's beginning."""
    with _reading(path, columns) as read:
        return read.holds_tracks(Path(path), columns or AS_NAMED)


def read_record(path: _Path) -> dict[str, Any]:
    """Read the run record of a file: how the file was made.

    Parameters
    ----------
    path : path-like
        An output of Outbid, or the record itself (``tracks.csv.json``).

    Raises
    ------
    InputError
        If there is no record.
    """
    _refuse_no_path(path)
    if Path(path).suffix.lower() == ".json":
        with _reading_errors_explained(Path(path)):
            return record_from(Path(path).read_bytes(), Path(path))
    with _reading(path) as read:
        record = read.read_record(Path(path))
    if record is None:
        raise InputError(
            f"{path} has no run record. Give an output of Outbid; the record of a CSV is the .json beside it."
        )
    return record


def input_of(path: _Path, columns: Mapping[str, str] | None = AS_NAMED) -> dict[str, str]:
    """The entry of an input in a run record: its name, the SHA-256 of its content, and any columns named."""
    named = {"columns": text_of_columns(columns)} if columns else {}
    with _reading_errors_explained(Path(path)):
        return {"name": Path(path).name, "sha256": sha256_of(Path(path)), **named}


def write_detections(
    path: _Path,
    detections: DetectionsLike,
    *,
    record: Mapping[str, object] | None = None,
    overwrite: bool = False,
) -> None:
    """Write detections: columns frame, z, y, x and the features.

    Parameters
    ----------
    path : path-like
        Its suffix chooses the format: .csv, .tsv or .parquet. The file appears whole or not at all.
    detections : Detections, or what `outbid.track` takes
    record : mapping, optional
        How the data were made, as plain data. It is stored inside a Parquet file, or beside a CSV as
        ``name.csv.json``.
    overwrite : bool
        Whether an existing output, and the run record beside it, may be replaced.

    Raises
    ------
    SettingsError
        If the output or its record already exists, the folder does not exist, or the suffix is unknown. A
        file that Outbid did not write is never replaced.
    InputError
        If a feature has a name that Outbid would read back as another column.
    OSError
        If the disk is full or read-only; an earlier output is then unchanged.
    """
    from .coerce import detections_of

    if isinstance(detections, Tracks):
        return write_tracks(path, detections, record=record, overwrite=overwrite)
    placed = detections_of(detections).placed()
    record = _with_calibration(record, placed)
    return _output(path, overwrite).write(Path(path), placed, record, overwrite)


def write_tracks(
    path: _Path, tracks: TracksLike, *, record: Mapping[str, object] | None = None, overwrite: bool = False
) -> None:
    """Write tracks: columns track_id, frame, z, y, x, parent (if tracks divide), features, link measures.

    Parameters
    ----------
    path, record, overwrite
        As for `write_detections`.
    tracks : Tracks, TrackingRun, or what `outbid.score` takes
        The cost, margin and probability of a link are in the row of its later detection.

    Raises
    ------
    SettingsError, InputError, OSError
        As `write_detections`.

    Examples
    --------
    >>> import numpy as np
    >>> seen = Detections.from_table([0, 2], [[0, 0, 0], [0, 0.1, 0]])
    >>> write_tracks("tracks.csv", Tracks(seen, np.array([[0, 1]])), record={"command": "track"})
    >>> print(Path("tracks.csv").read_text())
    track_id,frame,z,y,x
    0,0,0,0,0
    0,2,0,0.1,0
    <BLANKLINE>
    >>> read_record("tracks.csv")
    {'command': 'track'}
    """
    from .coerce import tracks_of

    found = tracks_of(tracks)
    placed = replace(found, detections=found.detections.placed())
    record = _with_calibration(record, placed.detections)
    _output(path, overwrite).write(Path(path), placed, record, overwrite)


def check_input(path: _Path, *, columns: Mapping[str, str] | None = AS_NAMED) -> None:
    """Raise an error now, as `read_detections` does, if an input cannot be read later."""
    with _reading(path, columns):
        pass


def check_output(path: _Path, *, overwrite: bool = False, inputs: Iterable[_Path] = ()) -> None:
    """Raise an error now, as `write_detections` does, if an output cannot be written later.

    The output must not replace any of the inputs from which it is made, also through links.
    """
    _output(path, overwrite, [file for source in inputs for file in _read_with(Path(source))])


def _with_interval(path: _Path, seen: Detections, read: PositionFormat) -> Detections:
    """The detections with the interval of their run record, which goes before what the file itself has."""
    try:
        interval = recorded_interval(read.read_record(Path(path)))
    except (InputError, OSError):  # a file of another program may be named like a record
        interval = None
    own = seen.calibration.interval
    if interval is None or interval == own:
        return seen
    if not same_interval(own, interval):
        _LOG.warning(
            "%s: frames are %g s apart by the run record, %g s by the file: the record counts. "
            "For another interval: outbid convert --frame-interval", path, interval, own,
        )  # fmt: skip
    return replace(seen, calibration=replace(seen.calibration, interval=interval))


def _with_calibration(record: Mapping[str, object] | None, seen: Detections) -> Mapping[str, object] | None:
    """The record as given, with the interval, for which most formats have no field, and the unit."""
    if record is not None and not isinstance(record, Mapping):
        raise SettingsError(f"record is of type {type(record).__name__}; it must be a dict of plain data.")
    if seen.calibration.interval is None:
        return record
    return {**(record or {}), "calibration": seen.calibration.as_dict()}


def _output(path: _Path, overwrite: bool, inputs: Iterable[Path] = ()) -> PositionFormat:
    """The format of an output that may be written."""
    _refuse_no_path(path)
    declared = _by_suffix(Path(path))
    if declared is None:
        raise SettingsError(
            f"{path} would be of an unknown format. Let the output end in {_known_suffixes()}."
        )
    writer = cast(PositionFormat, declared.load())
    beside = record_path(Path(path)) if writer.has_record_beside else None
    refuse_output(Path(path), overwrite=overwrite, inputs=inputs, record=beside, foreign=writer.foreign)
    return writer


def _refuse_no_path(path: object) -> None:
    if not isinstance(path, str | os.PathLike):
        raise SettingsError(f"The path is {path!r}, of type {type(path).__name__}. Give the name of a file.")


def _read_with(path: Path) -> list[Path]:
    """An input file and the files that are read together with it."""
    reader = None
    if path.is_file() or path.is_dir():
        with suppress(InputError, OSError):  # reading it says so
            reader = _reader(path, AS_NAMED)
    return [path, *([] if reader is None else reader.read_with(path))]


@contextmanager
def _reading(path: _Path, columns: Mapping[str, str] | None = AS_NAMED) -> Iterator[PositionFormat]:
    """What reads a file that exists."""
    _refuse_no_path(path)
    file, columns = Path(path), checked_columns(columns)
    with _reading_errors_explained(file):
        if not file.exists():
            raise InputError(f"There is no file {file}. Check the name.")
        if not file.is_file() and not file.is_dir():
            raise InputError(f"{file} is a device. Give a file.")
        reader = _reader(file, columns)
        if reader is None and file.is_dir():
            raise InputError(f"{file} is a folder of no known kind. {advice(file)}")
        if reader is None:
            known = f"Outbid reads {_known_suffixes()}. Call a table .csv or .tsv."
            raise InputError(f"{file} is of an unknown format. {advice(file) or known}")
        if columns and not reader.takes_columns:
            raise SettingsError(
                f"{file} is no table, and its format says what is what. Name no columns of it."
            )
        yield reader


@contextmanager
def _reading_errors_explained(path: Path) -> Iterator[None]:
    """Errors of the system become an InputError; one that names no file gets the name."""
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}. Check the file.") from None
    except MemoryError:
        raise larger_than_memory(path) from None


def _reader(path: Path, columns: Mapping[str, str]) -> PositionFormat | None:
    """What reads a file or folder; None if nothing does."""
    named = None if path.is_dir() else _by_suffix(path)
    if named and path.stat().st_size == 0:
        raise InputError(f"{path} is empty. Check where it was made.")
    name = path.name.lower() + ("/" if path.is_dir() else "")
    for declared in FORMATS:
        if not declared.has_images and declared.may_be(name):
            reader = cast(PositionFormat, declared.load())
            if reader.recognises(path, columns):
                return reader
    return cast(PositionFormat, named.load()) if named else None


def format_of(path: _Path) -> str | None:
    """The module of the format that an output of this name has; None if no suffix fits."""
    declared = _by_suffix(Path(path))
    return declared.module if declared else None


def _by_suffix(path: Path) -> Format | None:
    return next((each for suffix, each in WRITTEN.items() if path.name.lower().endswith(suffix)), None)


def _known_suffixes() -> str:
    *others, last = WRITTEN
    return f"{', '.join(others)} or {last}"
