"""Good files of other programs: the real data beside the checkout, or their first lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .cases import Seed, collected

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
_LINES = 60
"""Of tables: reading a case takes milliseconds then."""
_TIDY = {"frame": "frame", "z": "z", "y": "y", "x": "x", "track_id": "track_id", "parent": "parent"}
_PLANE = {"frame": "frame", "y": "y", "x": "x"}
_TABLES: Mapping[str, tuple[str, int, Mapping[str, str]]] = {
    "celegans/L1.csv": (",", 0, _TIDY),
    "faketracks/tidy.csv": (",", 0, _TIDY),
    "faketracks/two_tracks_napari.csv": (
        ",",
        0,
        {"frame": "t", "z": "z", "y": "y", "x": "x", "track_id": "TrackID"},
    ),
    "formats/saspt/sample_tracks.csv": (",", 0, _PLANE | {"track_id": "trajectory"}),
    "formats/biotracks/CELLMIA/example_1/0001_mode1_z000_f000_tracking.txt": (
        "\t",
        0,
        {"frame": "time index", "y": "cell row", "x": "cell col", "track_id": "ID of track"},
    ),
    "formats/btrack/test_data.csv": (",", 0, {"frame": "t", "z": "z", "y": "y", "x": "x"}),
}
_FILES: Mapping[str, tuple[str, ...]] = {
    "isbi": ("faketracks/FakeTracks_ISBI.xml", "faketracks/FakeTracks_Icy.xml"),
    "trackmate": (
        "faketracks/FakeTracks_mastodon_test.xml",
        "formats/biotracks/TrackMate/example_2/FakeTracks.xml",
    ),
    "myptv": ("ptv_small/example/trajectories", "ptv_small/example/particles"),
}
_PAIRS = ("formats/laptrack/trackmate_tracks_with_gap_closing",)


def of(kind: str) -> list[Seed]:
    """Seeds of a kind; none where the data are not there."""
    if not DATA.is_dir():
        return []
    found = [_whole(DATA / name) for name in _FILES.get(kind, ())]
    if kind == "csv":
        found += [_head(DATA / name, *layout) for name, layout in _TABLES.items()]
    if kind == "trackmate_csv":
        found += [_pair(name) for name in _PAIRS]
    if kind == "openptv":
        found.append(_folder(DATA / "formats" / "openptv_test_cavity", 3))
    return found


def _whole(path: Path) -> Seed:
    return Seed(path.name, {path.name: path.read_bytes()}, path.name)


def _head(path: Path, separator: str, header: int, columns: Mapping[str, str]) -> Seed:
    lines = path.read_bytes().splitlines(keepends=True)[:_LINES]
    return Seed(
        path.name,
        {path.name: b"".join(lines)},
        path.name,
        {"separator": separator, "header": header, "columns": columns},
    )


def _pair(name: str) -> Seed:
    spots, edges = DATA / f"{name}_spots.csv", DATA / f"{name}_edges.csv"
    files = {file.name: file.read_bytes() for file in (spots, edges)}
    columns = {"frame": "frame", "y": "position_y", "x": "position_x"}
    return Seed(
        spots.name,
        files,
        spots.name,
        {"separator": ",", "header": 0, "columns": columns, "edges": edges.name},
    )


def _folder(path: Path, count: int) -> Seed:
    files = {name: content for name, content in collected(path).items() if "_is." in name}
    kept = dict(sorted(files.items())[:count])
    return Seed(path.name, {f"{path.name}/{name}": content for name, content in kept.items()}, path.name)
