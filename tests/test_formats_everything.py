"""Every file of the folder of real data: it is read, point by point, or the refusal says what to do."""

import csv
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

from outbid import Detections, InputError, Tracks, read_detections, read_tracks
from outbid.formats import holds_tracks
from outbid.formats.images.folders import open_movie

REFUSED = {  # files that hold no points, or not in a form that is read: what the refusal says
    "*LICENSE*": "unknown format",
    "*README*": "unknown format",
    "*readme.md": "unknown format",
    "*.ini": "unknown format",
    "*/particle_tracking_config.txt": "unknown format",
    "*_TMtoCTC.txt": "give the folder of its label images",  # tables of the challenge
    "*/fiber_orientations": "unknown format",
    "*.xls": "save its table as .xlsx or CSV",
    "*.json": "save its table of points as CSV",
    "*.npz": "save its table of points as CSV",
    "*.zip": "unpack it first",
    "*.h5": "tracks as CSV",
    "*_targets": "give the rt_is files",
    "*_edges.csv": "no column for frame",
    "*_splitting_merging.csv": "no column for frame",  # links alone
    "*/tiny-dataset.xml": "xml of another kind",
    "*/grouped_poss_molecule_tracking.npy": "could run any program",
}
MASTODON = {  # spots, links; counted with the reader of another project
    "tiny-project": (23, 21), "tgmm-mini_27_31": (10, 0), "ctc_fluo_n2dl_hela_11_15": (13, 0),
}  # fmt: skip
PTV = {"example/trajecotries_stitched": (325, 198), "example_fibers/particles": (2502, 0)}


def test_every_file_is_read_or_refused_with_advice(real_data: Path) -> None:
    pytest.importorskip("geff", reason="GEFF is not installed: pip install 'outbid[geff]'")
    pytest.importorskip("PIL", reason="pillow is not installed: pip install 'outbid[images]'")
    read = refused = 0
    folders = {path for path in real_data.rglob("*") if path.is_dir() and path.suffix in (".zarr", ".geff")}
    files = [path for path in real_data.rglob("*") if path.is_file() and not folders & {*path.parents}]
    for path in sorted([*files, *folders]):
        name = path.relative_to(real_data).as_posix()
        if name == "reserved.bin" or fnmatch(name, "*/mask[0-9]*.tif"):  # sealed; read with their table
            continue
        reason = next((reason for pattern, reason in REFUSED.items() if fnmatch(name, pattern)), None)
        if reason is not None:
            with pytest.raises(InputError) as error:
                read_detections(path)
            assert reason.lower() in str(error.value).lower(), name
            assert name in str(error.value)
            refused += 1
        elif path.suffix in (".tif", ".png"):
            with pytest.raises(InputError, match="outbid detect"):
                read_detections(path)
            assert next(open_movie(path).frames([0])).ndim == 3
            read += 1
        else:
            assert len(read_detections(path)) > 0, name
            read += 1
    assert read > 90
    assert refused > 40


def rows_by_hand(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Frame and z, y, x by Python's own reader, in the file's order."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    names = {name.lower(): name for name in rows[0]}
    frame = names.get("frame") or names.get("t") or names["time"]
    place = [[float(row[names[axis]]) if axis in names else 0.0 for axis in "zyx"] for row in rows]
    return np.array([int(float(row[frame])) for row in rows]), np.array(place)


@pytest.mark.parametrize(
    "name",
    ["ascidian/Pm05.csv", "ascidian/Pm07.csv", "ascidian/Pm08.csv", "celegans/L1.csv", "celegans/L2.csv",
     "celegans/L5.csv", "drosophila_nuclei/tracks.csv", "turbulence/subcube.csv",
     "turbulence/tracers_2000.csv", "faketracks/tidy.csv", "faketracks/tidy_ISBI.csv",
     "formats/btrack/test_data.csv", "formats/tidy_hela_motile.csv", "formats/tidy_saspt.csv",
     "formats/tidy_openptv_cavity_points_no_identity.csv", "mouse_geff/tidy.csv", "tcells_imaris/tidy.csv",
     "ptv_small/tidy.csv", "formats/motile_tracker/hela_example_tracks.csv"],
)  # fmt: skip
def test_tables_row_by_row(name: str, real_data: Path) -> None:
    frame, place = rows_by_hand(real_data / name)
    seen = read_detections(real_data / name)
    order = np.argsort(frame, kind="stable")
    np.testing.assert_array_equal(seen.frame, frame[order])
    np.testing.assert_array_equal(seen.position, place[order])


@pytest.mark.parametrize("name", MASTODON)
def test_mastodon(name: str, real_data: Path) -> None:
    path = real_data / f"formats/mastodon/{name}.mastodon"
    tracks = read_tracks(path)
    assert (len(tracks.detections), len(tracks.links)) == MASTODON[name]
    assert holds_tracks(path) == (MASTODON[name][1] > 0)
    assert tracks.detections.unit == "pixel"
    assert (tracks.detections.features["radius"] > 0).all()
    frame = tracks.detections.frame[tracks.links]
    assert (np.diff(frame, axis=1) == 1).all(), "links join frames that follow each other"
    if name == "tiny-project":
        first = tracks.detections.position[0]
        np.testing.assert_allclose(first, [5.0, 4.528846, 5.205769], atol=1e-6)
        assert np.bincount(tracks.detections.frame).tolist() == [2, 2, 2, 2, 2, 3, 3, 3, 2, 2]
        assert (tracks.successors > 1).sum() == 1, "one spot divides"
        step = np.diff(tracks.detections.position[tracks.links], axis=1)
        assert np.median(np.linalg.norm(step, axis=-1)) < 0.5, "and neighbours"


def test_cellmia(real_data: Path) -> None:
    path = real_data / "formats/biotracks/CELLMIA/example_1/0001_mode1_z000_f000_tracking.txt"
    rows = [line.split("\t") for line in path.read_text("latin-1").splitlines()[1:]]
    tracks = read_tracks(path)
    seen: Detections = tracks.detections
    order = np.argsort([int(row[1]) for row in rows], kind="stable")
    np.testing.assert_array_equal(seen.position[:, 1:], np.array(rows)[order][:, 2:4].astype(float))
    assert tracks.track_count == len({row[0] for row in rows}) == 61
    assert len(tracks.links) == len(rows) - 61


def test_the_same_run_in_two_files(real_data: Path) -> None:
    one: Tracks = read_tracks(real_data / "formats/pycellin/FakeTracks.xml")
    other = read_tracks(real_data / "faketracks/FakeTracks_geff_tests.xml")
    np.testing.assert_array_equal(one.detections.frame, other.detections.frame)
    np.testing.assert_allclose(one.detections.position, other.detections.position)
    assert len(one.links) == len(other.links)


@pytest.mark.parametrize("name", PTV)
def test_more_of_myptv(name: str, real_data: Path) -> None:
    path = real_data / "ptv_small" / name
    rows = [line.split() for line in path.read_text().splitlines()]
    assert len(rows) == PTV[name][0]
    seen = read_detections(path)
    times = np.array([float(row[-1]) for row in rows])
    assert len(seen) == len(rows)
    np.testing.assert_array_equal(np.unique(seen.frame), np.unique(times))
    first = 1 if "traj" in name else 0  # x, y, z follow the number of the trajectory, where there is one
    columns = np.array([row[first : first + 3] for row in rows], dtype=float)
    assert sorted(map(tuple, seen.position[:, ::-1])) == sorted(map(tuple, columns))
    if PTV[name][1]:
        assert len(read_tracks(path).links) == PTV[name][1]
