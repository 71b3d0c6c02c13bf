"""Columns of tables that hold positions: styles of names, units, and columns that the user names."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import assert_refused, refused, run, succeed, written

from outbid import SettingsError, read_detections, read_record, read_tracks
from outbid.formats.tables.axes import coordinate_of

ROWS = [(0, 5, 1.5, 7), (1, 6, 2.5, 8)]


def table(path: Path, *names: str) -> Path:
    """A table with columns of frames and three more, in the order of `ROWS`."""
    lines = [",".join(map(str, row)) for row in ROWS]
    path.write_text("\n".join([",".join(f'"{name}"' for name in names), *lines, ""]))
    return path


# ---------------------------------------------------------------- names of axes


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("names", "unit"),
    [
        (("frame", "z", "y", "x"), "pixel"),
        (("frame", "posZ", "posY", "posX"), "pixel"),
        (("frame", "z_um", "y_um", "x_um"), "micrometer"),
        (("frame", "z [nm]", "y [nm]", "x [nm]"), "nanometer"),
        (("frame", "Z (µm)", "Y (µm)", "X (µm)"), "micrometer"),
        (("FRAME", "Center Z (px)", "Center Y (px)", "Center X (px)"), "pixel"),
        (("t", "z_position", "y_position", "x_position"), "pixel"),
        (("t", "znm", "ynm", "xnm"), "nanometer"),
        (("t", "Location_Center_Z", "Location_Center_Y", "Location_Center_X"), "pixel"),
    ],
)
def test_axes_that_are_named_in_one_way(names: tuple[str, ...], unit: str, tmp_path: Path) -> None:
    found = read_detections(table(tmp_path / "spots.csv", *names))
    assert found.position.tolist() == [[5, 1.5, 7], [6, 2.5, 8]]
    assert (found.unit, found.features) == (unit, {})


@pytest.mark.parametrize("names", ["frame,posZ,y,x", "frame,z_um,y,x", "frame,z [µm],y [nm],x [nm]"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_axes_that_are_named_in_different_ways_are_refused(names: str, suffix: str, tmp_path: Path) -> None:
    columns = names.split(",")
    path = table(tmp_path / f"spots{suffix}", *columns)
    if suffix == ".parquet":
        pq.write_table(pa.table(dict(zip(columns, np.transpose(ROWS), strict=True))), path)
    done = run("track", path, "-o", tmp_path / "t.csv", "--max-distance", 5)
    assert_refused(done, 3, str(path), repr(columns[1]), f"--columns z={columns[1]}", "--columns z=")
    refused("another unit", read_detections, path)
    factor = 1000 if "nm" in names else 1
    named = read_detections(path, columns={"z": columns[1]})
    assert named.position[:, 0].tolist() == [5 * factor, 6 * factor]
    flat = read_detections(path, columns={"z": ""})
    assert flat.position[:, 0].tolist() == [0, 0]
    assert list(flat.features) == [columns[1]]


def test_of_two_sets_of_axes_the_complete_one_is_taken(tmp_path: Path) -> None:
    path = written(tmp_path / "spots.csv", "frame,x,y,x_um,y_um,z_um\n0,1,2,3,4,5\n")
    found = read_detections(path)
    assert (found.position.tolist(), found.unit) == ([[5, 4, 3]], "micrometer")
    done = run("convert", path, tmp_path / "again.csv")
    assert (done.exit_code, read_detections(tmp_path / "again.csv").position.tolist()) == (0, [[5, 4, 3]])


@pytest.mark.parametrize(
    "name", ["depth", "Z_plane", "sliceIndex", "size_z", "z (frames)", "zc", "z0", "zslice"]
)
def test_a_column_that_may_be_z_is_named(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = table(tmp_path / "spots.csv", "frame", name, "y", "x")
    read_detections(path)
    (said,) = caplog.messages
    assert all(part in said for part in ("spots.csv", repr(name), "not used", "--columns z=,y=y,x=x"))
    caplog.clear()
    read_detections(path, columns={"z": ""})
    assert read_detections(path, columns={"z": name}).position[:, 0].tolist() == [5, 6]
    assert caplog.messages == []


@pytest.mark.parametrize("name", ["mass", "zone", "dz", "parallax", "label"])
def test_other_columns_are_not(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert list(read_detections(table(tmp_path / "a.csv", "frame", name, "y", "x")).features) == [name]
    assert caplog.messages == []
    assert coordinate_of(name) is None


def test_a_column_of_text_or_of_nothing_is_no_coordinate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.csv").write_text("frame,y,x,plane,depth\n0,1,2,,a\n1,1,2,,b\n")
    read_detections(tmp_path / "a.csv")
    assert caplog.messages == []


def test_a_unit_in_the_names_that_the_file_denies_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("frame,y_um,x_um,unit\n0,1,2,nm\n")
    refused(r"a\.csv.*micrometer.*nm", read_detections, tmp_path / "a.csv")


# ---------------------------------------------------------------- columns that the user names


@pytest.mark.smoke
def test_named_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x;y;z;when;who;from;frame\n1,5;2;3;0;7;;9\n2,5;2;3;1;8;7;9\n2,5;3;3;1;9;7;9\n")
    named = {"x": "z", "z": "x", "frame": "when", "track_id": "who", "parent": "from"}
    found = read_tracks(path, columns=named)
    assert found.detections.frame.tolist() == [0, 1, 1]
    assert found.detections.position[0].tolist() == [1.5, 2, 3]
    assert found.links.tolist() == [[0, 1], [0, 2]]
    assert (
        found.detections.features == {}
    )  # a second column of frames would be written under the name of ours


def test_names_are_found_however_they_are_spelled(tmp_path: Path) -> None:
    found = read_detections(table(tmp_path / "a.csv", "frame", "Up 1", "y", "x"), columns={"z": "up 1"})
    assert found.position[:, 0].tolist() == [5, 6]


@pytest.mark.parametrize(
    ("given", "exit_code", "said"),
    [
        ("z=posQ", 3, ["spots.csv", "'posQ'", "'posZ'"]),
        ("q=posZ", 2, ["'q=posZ'", "ROLE=NAME", "track_id"]),
        ("posZ", 2, ["'posZ'", "ROLE=NAME"]),
        ("z=posZ,z=y", 2, ["z has a column already"]),
        ("z=posZ,y=posZ", 2, ["'posZ'", "several"]),
    ],
)
def test_named_columns_that_make_no_sense(
    given: str, exit_code: int, said: list[str], tmp_path: Path
) -> None:
    path = table(tmp_path / "spots.csv", "frame", "posZ", "y", "x")
    assert_refused(run("convert", path, tmp_path / "o.csv", "--columns", given), exit_code, *said)


def test_columns_of_no_table_cannot_be_named(tmp_path: Path) -> None:
    succeed("convert", table(tmp_path / "a.csv", "t", "z", "y", "x"), tmp_path / "a.xml")
    with pytest.raises(SettingsError, match=r"a\.xml is no table"):
        read_detections(tmp_path / "a.xml", columns={"z": "x"})
    refused("q", read_detections, tmp_path / "a.csv", columns={"q": "x"}, error=SettingsError)


def test_a_text_file_is_a_table_by_its_named_columns(tmp_path: Path) -> None:
    path = table(tmp_path / "notes.txt", "when", "up", "down", "left")
    refused("unknown format", read_detections, path)
    found = read_detections(path, columns={"frame": "when", "z": "up", "y": "down", "x": "left"})
    assert found.position.tolist() == [[5, 1.5, 7], [6, 2.5, 8]]


def test_track_repeats_a_run_with_its_columns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, once, again = (
        table(tmp_path / "a.csv", "frame", "up, z", "y", "x"),
        tmp_path / "1.csv",
        tmp_path / "2.csv",
    )
    given = ["--columns", "z=up, z", "--max-distance", 5, "--spacing", 2, 1, 1]
    succeed("track", path, "-o", once, *given)
    assert read_tracks(once).detections.position[:, 0].tolist() == [5, 6]
    assert read_record(once)["input"]["columns"] == "z=up, z"
    succeed("track", path, "-o", again, "--config", f"{once}.json")
    assert (once.read_bytes(), Path(f"{once}.json").read_bytes()) == (
        again.read_bytes(), Path(f"{again}.json").read_bytes(),
    )  # fmt: skip
    settings = tmp_path / "settings.toml"
    settings.write_text('[track]\nmax_distance = 5\nspacing = [2, 1, 1]\n[track.columns]\nz = "up, z"\n')
    succeed("track", path, "-o", again, "--config", settings, "--overwrite")
    assert (once.read_bytes(), caplog.messages) == (again.read_bytes(), [])


def test_streaming_names_columns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, out = tmp_path / "a.parquet", tmp_path / "t.parquet"
    frame = np.repeat(np.arange(30), 10)
    pq.write_table(pa.table({"frame": frame, "y": frame * 1.0, "left": frame % 7, "depth": frame * 2}), path)
    given = ["--stream", "--max-distance", 5, "-o", out, "--overwrite"]
    elsewhere = ["-o", tmp_path / "none.parquet"]
    assert_refused(run("track", path, *given, *elsewhere), 3, "No column for x", "--columns x=NAME")
    succeed("track", path, *given, "--columns", "x=left")
    assert len([message for message in caplog.messages if "depth" in message]) == 1
    succeed("track", path, *given, "--columns", "x=left,z=depth")
    assert read_tracks(out).detections.position[-1].tolist() == [58, 29, 1]


def test_every_command_that_reads_tables_takes_columns(tmp_path: Path) -> None:
    rows = "".join(f"{k},{j},{j},{j},{k}\n" for k in range(5) for j in (1, 9))
    path = written(tmp_path / "a.csv", "frame,track_id,up,y,x\n" + rows)
    good = tmp_path / "good.csv"
    named = ("--columns", "z=up")
    succeed("convert", path, good, *named)
    scored = run("score", good, path, "--truth-columns", "z=up", "--gate", 0.5, "--json")
    assert json.loads(scored.stdout)["values"]["link_f1"] == 1
    assert json.loads(scored.stdout)["provenance"]["inputs"]["truth"]["columns"] == "z=up"
    scored = run("score", path, good, *named, "--gate", 0.5, "--json")
    assert json.loads(scored.stdout)["values"]["link_f1"] == 1
    succeed("advise", path, *named, "--max-distance", 2)
    matched = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for each in matched:
        each.write_text("frame,up,y,x\n0,3,1,1\n0,4,1,1\n")
    assert "cost 0" in run("assign", *matched, *named).stdout
    for words in (("report", path, *named), ("view", good, path, "--truth", path, "--truth-columns", "z=up")):
        assert_refused(run(*words, "--columns", "y=down"), 3, ".csv", "no column 'down' for y")


def test_the_viewer_names_columns_of_tables_alone(tmp_path: Path) -> None:
    from outbid.viewers.opened import open_files

    path = table(tmp_path / "a.csv", "frame", "up", "y", "x")
    succeed("convert", path, tmp_path / "b.xml", "--columns", "z=up")
    found = open_files([path, tmp_path / "b.xml"], columns={"z": "up"})
    assert found.points["a.csv"].position.tolist() == found.points["b.xml"].position.tolist()


# ---------------------------------------------------------------- layers of points that napari saved


@pytest.mark.parametrize("axes", [3, 4])
@pytest.mark.parametrize("more", [{}, {"mass": np.array([3.5, 4.5])}, {"name": np.array(["a", "b"])}])
def test_points_that_napari_saved(axes: int, more: dict[str, np.ndarray], tmp_path: Path) -> None:
    builtins = pytest.importorskip("napari_builtins.io", reason="napari is not installed")
    data = np.array([[1, 5, 6.5, 7], [0, 2, 3.5, 4]])[:, -axes:]
    data[:, 0] = [1, 0]
    path = tmp_path / "points.csv"
    builtins.napari_write_points(str(path), data, {"properties": more})
    assert path.read_text().startswith("index,axis-0,axis-1,axis-2")
    found = read_detections(path)
    assert found.frame.tolist() == [0, 1]
    assert found.position[:, 4 - axes :].tolist() == data[::-1, 1:].tolist()
    assert {name: values.tolist() for name, values in found.features.items()} == (
        {name: values[::-1].tolist() for name, values in more.items()}
    )


@pytest.mark.parametrize(
    "header", ["index,axis-0,axis-1", "index,shape-type,vertex-index,axis-0,axis-1,axis-2"]
)
def test_other_layers_of_napari_are_no_points(header: str, tmp_path: Path) -> None:
    path = written(tmp_path / "layer.csv", f"{header}\n" + ",".join("0" for _ in header.split(",")) + "\n")
    assert_refused(run("track", path), 3, "layer.csv", "No column for frame", "'axis-1'")
