"""What Export writes, from plain data: tracks, spots, tables, plot, report, session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from outbid import formats
from outbid.errors import SettingsError
from outbid.formats.files.outputs import write_whole
from outbid.formats.images.frames import Images
from outbid.measuring import Measures
from outbid.measuring.tables import write_table
from outbid.particles.detections import Detections
from outbid.particles.tracks import Tracks

from ..layers import CORRECTED
from ..motion import write_plot
from ..report import report
from .session import SUFFIX, SavedLayer, Session, command_lines

Record = Mapping[str, Any]
Held = Detections | Tracks
TABLE = ".csv"
"""What a session keeps spots and tracks in: the same table from the same command, to the byte."""


@dataclass(frozen=True, eq=False)
class Kept:
    """A layer as it is written: in places, with its record; or an image with its path.

    Parameters
    ----------
    saved : SavedLayer
        Whose file is named when it is written; that of an image is its path.
    held : Detections, Tracks or None
    """

    saved: SavedLayer
    held: Held | None = None


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is to be written.

    Parameters
    ----------
    folder : Path
    stem : str
        How names of files begin.
    suffix : str
        Of detections and tracks.
    kinds : frozenset of str
        Which of `KINDS`.
    layers : sequence of Kept
        From below to above.
    spots, tracks : int or None
        Numbers of those layers that are the spots and the tracks.
    movie : Images or None
    measured : callable
        Measures of the tracks, with the record of their tables.
    plot : str
        Suffix of the plot.
    settings, shown : mapping
        Of the session.
    """

    folder: Path
    stem: str
    suffix: str
    kinds: frozenset[str]
    layers: Sequence[Kept]
    spots: int | None
    tracks: int | None
    movie: Images | None
    measured: Callable[[], tuple[Measures, Record]]
    plot: str = ".png"
    settings: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)


KINDS = ("tracks", "spots", "table", "plot", "report", "session")
"""What can be written, by the names of the boxes."""


def write_all(wanted: Wanted, progress: Callable[[int, int], None]) -> list[Path]:
    """Write what is wanted; returns the files, in order.

    Raises
    ------
    SettingsError
        If the folder is not there.
    """
    if not wanted.folder.is_dir():
        raise SettingsError(f"There is no folder {wanted.folder}. Choose another one.")
    steps: Mapping[str, Callable[[Wanted], list[Path]]] = {
        "tracks": _tracks, "spots": _spots, "table": _table, "plot": _plot, "report": _report,
        "session": _session,
    }  # fmt: skip
    chosen, files = [kind for kind in KINDS if kind in wanted.kinds], []
    for number, kind in enumerate(chosen):
        progress(number, len(chosen))
        files += steps[kind](wanted)
    return list(dict.fromkeys(files))


def _tracks(wanted: Wanted) -> list[Path]:
    return [] if wanted.tracks is None else [_written(wanted, wanted.tracks, wanted.suffix)]


def _spots(wanted: Wanted) -> list[Path]:
    suffix = TABLE if wanted.suffix == ".isbi.xml" else wanted.suffix  # which has tracks alone
    return [] if wanted.spots is None else [_written(wanted, wanted.spots, suffix)]


def _table(wanted: Wanted) -> list[Path]:
    found, record = wanted.measured()
    path = _path(wanted, "table.csv")
    write_table(path, found.sheets, record=record, overwrite=True)
    return [path]


def _plot(wanted: Wanted) -> list[Path]:
    path = _path(wanted, f"plot{wanted.plot}")
    write_plot(path, wanted.measured()[0], overwrite=True)
    return [path]


def _report(wanted: Wanted) -> list[Path]:
    if wanted.tracks is None:
        return []
    kept, path = wanted.layers[wanted.tracks], _path(wanted, "report.html")
    page = report(kept.held, title=kept.saved.name, record=kept.saved.record, movie=wanted.movie)
    write_whole(path, lambda file: file.write(page.encode("utf-8")), overwrite=True)
    return [path]


def _session(wanted: Wanted) -> list[Path]:
    """The record, with a table of each layer beside it."""
    path, files, layers = wanted.folder / f"{wanted.stem}{SUFFIX}", [], []
    for number, kept in enumerate(wanted.layers):
        if kept.held is None:
            layers.append(kept.saved)
            continue
        files.append(_written(wanted, number, TABLE))
        layers.append(replace(kept.saved, file=files[-1].name))
    pins = next((str(one.record[CORRECTED]) for one in layers if one.record.get(CORRECTED)), "")
    lines = command_lines(layers)
    session = Session(layers, wanted.settings, pins, lines, wanted.shown)
    write_whole(path, lambda file: file.write(session.as_bytes()), overwrite=True)
    return [*files, path]


def _written(wanted: Wanted, number: int, suffix: str) -> Path:
    """Write a layer of detections or tracks."""
    kept = wanted.layers[number]
    part = {wanted.spots: "spots", wanted.tracks: "tracks"}.get(number, f"layer_{number}")
    path = _path(wanted, f"{part}{suffix}")
    record = dict(kept.saved.record) or None
    if isinstance(kept.held, Tracks):
        formats.write_tracks(path, kept.held, record=record, overwrite=True)
    elif kept.held is not None:
        formats.write_detections(path, kept.held, record=record, overwrite=True)
    return path


def _path(wanted: Wanted, name: str) -> Path:
    return wanted.folder / f"{wanted.stem}_{name}"
