"""The doors through which tracks and detections go, each declared once: all keep units and time.

test_doors.py sends one simulated movie through them; docs/tables.py prints the table.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from outbid import read_tracks, write_tracks
from outbid.cli import main
from outbid.formats import WRITTEN

VOXEL, INTERVAL = (1.0, 0.4, 0.4), 20.0
"""Of the movie that goes through all doors: micrometers along z, y, x, and seconds."""


@dataclass(frozen=True)
class Door:
    """A way from a file of tracks, or of detections, to another.

    Parameters
    ----------
    name : str
    go : callable
        Takes the path of the file and an empty folder; returns the path of what comes out.
    keeps : str
        How the unit and the interval come through.
    """

    name: str
    go: Callable[[Path, Path], Path]
    keeps: str


def _run(*words: object) -> None:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output


def _written(suffix: str) -> Callable[[Path, Path], Path]:
    def go(source: Path, folder: Path) -> Path:
        path = folder / f"tracks{suffix}"
        write_tracks(path, read_tracks(source))
        return path

    return go


def _without_record(suffix: str) -> Callable[[Path, Path], Path]:
    """A copy of the file alone, as it is sent by mail."""

    def go(source: Path, folder: Path) -> Path:
        (folder / "from").mkdir()
        return Path(shutil.copy(_written(suffix)(source, folder / "from"), folder))

    return go


def _command(*words: str, out: str = "out.csv") -> Callable[[Path, Path], Path]:
    def go(source: Path, folder: Path) -> Path:
        _run(words[0], source, "-o", folder / out, *words[1:])
        return folder / out

    return go


def _converted(*words: str) -> Callable[[Path, Path], Path]:
    def go(source: Path, folder: Path) -> Path:
        _run("convert", source, folder / "out.csv", *words)
        return folder / "out.csv"

    return go


def _of_many(*words: str) -> Callable[[Path, Path], Path]:
    def go(source: Path, folder: Path) -> Path:
        _run(*words[:1], source, "--out-dir", folder / "many", *words[1:])
        return next(path for path in (folder / "many").iterdir() if path.suffix == ".csv")

    return go


def _in_chunks(*words: str, out: str = "out.parquet") -> Callable[[Path, Path], Path]:
    """Detections chunk by chunk, by Parquet."""

    def go(source: Path, folder: Path) -> Path:
        _run("convert", source, folder / "in.parquet")
        _run("track", folder / "in.parquet", "-o", folder / out, *words)
        return folder / out

    return go


_INSIDE = {
    ".csv": "unit and interval in the record beside; interval in the column `time`",
    ".tsv": "as CSV", ".csv.gz": "as CSV", ".tsv.gz": "as CSV",
    ".parquet": "unit of the columns and interval of the record, both in the file", ".pq": "as Parquet",
    ".isbi.xml": "unit and interval in the record beside", ".xml": "both in the file",
    ".geff": "both in the file: unit, scale and scaled unit of the axes",
}  # fmt: skip
"""What formats that are written have a place for."""
FILES = [Door(f"`{suffix}`", _written(suffix), _INSIDE[suffix]) for suffix in WRITTEN]
ALONE = [
    Door("`.csv` without its record", _without_record(".csv"), "interval by the column `time`; no unit"),
    Door("`.parquet` alone", _without_record(".parquet"), "both in the file"),
    Door("`.xml` alone", _without_record(".xml"), "both in the file"),
]  # fmt: skip
_RECORD = "calibration of the input, stated in the record"
COMMANDS = [
    Door("`outbid filter`", _command("filter", "--min-length", "2"), _RECORD),
    Door("`outbid convert`", _converted(), _RECORD),
    Door("`outbid convert --fill-gaps`", _converted("--fill-gaps"), _RECORD),
    Door("`outbid convert --out-dir`", _of_many("convert", "--suffix", ".csv"), _RECORD),
    Door("`outbid track`", _command("track"), _RECORD),
    Door("`outbid track --max-distance`", _command("track", "--max-distance", "2"), _RECORD),
    Door("`outbid track --region`", _command("track", "--region", ":,:,0:100"), _RECORD),
    Door("`outbid track --frames`", _command("track", "--frames", "0:99"), _RECORD),
    Door("`outbid track --out-dir`", _of_many("track"), _RECORD),
    Door("`outbid track --stream --max-distance`", _in_chunks("--stream", "--max-distance", "2"), _RECORD),
    Door("`outbid track --stream`", _in_chunks("--stream"), _RECORD),
]
_LOCAL = ("--cluster", "local", "--workers", "2", "--max-distance", "2")
_PARTS = _in_chunks(*_LOCAL, "--parts", out="parts.parquet")
CLUSTER = [
    Door("`outbid track --cluster`, `--scheduler`", _in_chunks(*_LOCAL), "those of the input, in the file"),
    Door("`outbid track --cluster --parts`", _PARTS, "in each part"),
]
"""Doors that need processes of dask."""


def _masks_with(tracks: Path, folder: Path, out: str) -> Path:
    _run("convert", tracks.with_name("masks.ome.tif"), tracks, folder / out)
    return folder / out


def _from_labels(tracks: Path, folder: Path) -> Path:
    _run("detect", _masks_with(tracks, folder, "labels.tif"), "--labels", "-o", folder / "spots.csv")
    return _command("track", "--max-distance", "2")(folder / "spots.csv", folder)


LABELS = [
    Door("`outbid convert` to TIFF labels", _from_labels, "voxels and interval of the masks, in the file"),
    Door(
        "`outbid convert` to `_RES`", lambda tracks, folder: _masks_with(tracks, folder, "01_RES"),
        "none: `measure` takes the `--spacing` and `--interval` that the message states",
    ),
]  # fmt: skip
"""Doors of tracks of objects, of which ``masks.ome.tif`` lies beside."""
FORMS = [
    ("napari: *File ▸ Open*", "voxels, interval and origin of a movie are in its layer"),
    ("napari: Detect, Track", "those of the layer; the layers made have the interval in their record"),
    (
        "napari: Measure, Score, Compare",
        "places, and the interval of the layer",
    ),
    (
        "napari: *File ▸ Save*, Proofread ▸ Save, pins",
        "places in the unit of the layer, as the commands write them",
    ),
]
"""Doors with a window, which test_napari_doors.py goes through."""
OTHERS = [
    ("`outbid detect`", "unit, voxels, interval and origin of the movie: places from its origin on"),
    ("`outbid measure`, `outbid report`", "read them; `--spacing` and `--interval` go before"),
    ("`outbid convert MASKS TRACKS`", "places become voxels of the masks; other units are refused"),
    ("`outbid detect --cluster`, `--scheduler`", "as `outbid detect`, by one process or many"),
    ("`_RES`, `_TRA` of the Cell Tracking Challenge", "voxels, frames; `detect --labels` has `--spacing`"),
    ("`pins.csv`", "places in the unit of the detections; frames"),
    ("`outbid score`", "other lengths are converted to the unit of the truth; a message if one is in pixels"),
    ("`outbid.track`, `outbid.measure`, `outbid.write_tracks`", "`Detections.calibration`"),
    (
        "`outbid.learned.live.Live`",
        "its `calibration`; units other than the earlier recording's are refused; it returns no lengths",
    ),
]  # fmt: skip
"""Doors of movies and of Python."""
