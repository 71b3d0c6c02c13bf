"""Tables as users have them: names of many programs, doubled columns, times for frames."""

from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run, succeed, written

import outbid
from outbid import InputError, read_detections, read_tracks

DIVISION = """3,,0,10,10,1
1,,0,40,40,3
4,3,1,11,10,2
5,3,1,9,10,4
6,4,2,12,10,2
7,5,2,8,10,4
"""


@pytest.mark.parametrize(
    "header",
    [
        "id,parent_id,t,y,x,track_id",
        "ID,Parent ID,Time,y,x,Tracklet ID",  # napari-track-edit
        "node_id,parent_id,frame,y,x,track_id",
        "cellId,parentCellId,t,y,x,trackId",
        "Spot ID,Parent Spot ID,FRAME,Y,X,TRACK_ID",
    ],
)
def test_a_parent_may_be_a_cell(header: str, tmp_path: Path) -> None:
    """Case 04: 3 is the number of a detection at 10, 10, and of a track at 40, 40."""
    found = read_tracks(written(tmp_path / "a.csv", f"{header}\n{DIVISION}"))
    mother = found.detections.position[found.links[:2, 0]]
    assert mother.tolist() == [[0, 10, 10], [0, 10, 10]]


@pytest.mark.parametrize("header", ["track_id,parent,t,y,x", "TrackID,parentTrackId,Frame,Y,X"])
def test_a_parent_may_be_a_track(header: str, tmp_path: Path) -> None:
    rows = "1,,0,10,10\n2,1,1,11,10\n3,1,1,9,10\n"
    assert read_tracks(written(tmp_path / "a.csv", f"{header}\n{rows}")).links.tolist() == [[0, 1], [0, 2]]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("frame", "track"),
    [
        ("frame", "track_id"), ("Frame", "Track ID"), ("frame_i", "trackId"), ("FrameNr", "TrackID"),
        ("frame number", "Track N°"), ("t [frame]", "TID"), ("Time Point", "particle"), ("frames", "tracks"),
        ("T", "Trajectory"), ("t", "track_id"), ("Time", "TrackID"), ("POSITION_T", "trajectory"),
        ("FRAME", "TRACK_ID"), ("time-point", "track-id"), ("Spot frame", "Trackmate track ID"),
    ],
)  # fmt: skip
def test_spellings(frame: str, track: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", f'"{frame}","{track}",y,x\n0,7,1,2\n1,7,1,3\n')
    found = read_tracks(path)
    assert (found.links.tolist(), found.detections.features) == ([[0, 1]], {})


@pytest.mark.parametrize(
    ("axes", "position"),
    [
        ("centroid-0,centroid-1,centroid-2", [1, 2, 3]),  # scikit-image
        ("Object_Center_0,Object_Center_1,Object_Center_2", [3, 2, 1]),  # ilastik: x, y, z
        ("Spot position Z,Spot position Y,Spot position X", [1, 2, 3]),
    ],
)
def test_axes_of_programs(axes: str, position: list[float], tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", f"frame,{axes}\n0,1,2,3\n")
    assert read_detections(path).position.tolist() == [position]


def test_doubled_columns_of_equal_content(tmp_path: Path) -> None:
    """Trackpy's tables have frame as index and as column."""
    path = written(tmp_path / "a.csv", "frame,y,x,frame,X\n0,1,2,0,2\n1,1,3,1,3\n")
    assert read_detections(path).features == {}
    other = written(tmp_path / "b.csv", "frame,y,x,frame\n0,1,2,0\n1,1,3,2\n")
    with pytest.raises(InputError, match=r"b\.csv, line 1: Several columns are called 'frame', and differ"):
        read_detections(other)


def test_a_column_that_is_used_is_not_called_unused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Case 12: a table of ImageJ's results."""
    text = " ,Area,Mean,X,Y,Slice\n1,20,9,5,6,1\n2,20,9,25,26,1\n3,20,9,5.5,6,2\n4,20,9,25,26.5,2\n"
    path = written(tmp_path / "Results.csv", text)
    assert_refused(run("convert", path, tmp_path / "o.csv"), 3, "No column for frame", "'Slice'")
    found = read_detections(path, columns={"frame": "Slice"})
    assert (found.frame.tolist(), list(found.features)) == ([1, 1, 2, 2], ["Area", "Mean"])
    assert caplog.messages == []


def test_units_that_differ_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "frame,x [px],y [px],z [nm]\n0,1,2,3\n")
    with pytest.raises(InputError, match=r"'z \[nm\]' is named .* \(nanometer beside pixel\)"):
        read_detections(path)


# ---------------------------------------------------------------- times instead of frames


@pytest.mark.smoke
@pytest.mark.parametrize("interval", [0.5, 0.04, 2.5e-9, 12.5e6])
def test_times_become_frames(interval: float, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = "".join(f"{frame * interval!r},1,{frame}\n" for frame in (0, 1, 2, 5))
    for name in ("time", "t [sec]")[interval > 1 :]:
        found = read_detections(written(tmp_path / "a.csv", f"{name},y,x\n{rows}"))
    assert ("--columns frame=time/INTERVAL" in caplog.text) == (interval < 1)
    assert found.frame.tolist() == [0, 1, 2, 5]
    assert found.features["time"] == pytest.approx([0, interval, 2 * interval, 5 * interval])


def test_frames_that_may_be_times_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path / "a.csv", "frame,y,x\n0,1,2\n30,1,2\n60,1,2\n120,1,2\n")
    assert read_detections(path).frame.tolist() == [0, 30, 60, 120]
    assert "--columns frame=frame/30" in caplog.text
    done = run("convert", path, tmp_path / "o.csv", "--columns", "frame=frame/30")
    assert (done.exit_code, read_detections(tmp_path / "o.csv").frame.tolist()) == (0, [0, 1, 2, 4])
    read_detections(written(tmp_path / "b.csv", "frame,y,x\n1000000000,1,2\n1000000001,1,2\n"))
    assert "frames begin at 1000000000" in caplog.text


def test_times_that_are_no_multiples_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "t,y,x\n0,1,2\n0.5,1,2\n0.7,1,2\n")
    with pytest.raises(InputError, match=r"line \d: t is .*--columns frame=t/INTERVAL"):
        read_detections(path)


# ---------------------------------------------------------------- Python


@pytest.mark.parametrize("empty", [[], np.array([]), np.empty((0, 2)), ()])
def test_a_frame_without_points(empty: object) -> None:
    """Case 14."""
    found = outbid.track([np.array([[1.0, 1]]), empty, np.array([[1.0, 1.1]])], max_distance=2, max_gap=1)
    assert found.tracks.links.tolist() == [[0, 1]]


def test_a_categorical_frame() -> None:
    """Case 14."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"frame": [0, 0, 1, 1], "y": [1.0, 9, 1.1, 9.1], "x": [1.0, 9, 1, 9]})
    table["frame"] = table["frame"].astype("category")
    assert outbid.track(table, max_distance=2).tracks.links.tolist() == [[0, 2], [1, 3]]


# ---------------------------------------------------------------- HDF5


@pytest.mark.smoke
def test_tracks_of_btrack(tmp_path: Path) -> None:
    """Case 16: three tracks of four frames; the third comes from the first in a second file."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "btrack.h5"
    with h5py.File(path, "w") as file:
        coords = [(t, 5 + i * 9, 5 + i * 9 + 0.1 * t, 0, 5) for t in range(4) for i in range(3)]
        file["objects/obj_type_1/coords"] = np.array(coords, "f4")
        file["tracks/obj_type_1/tracks"] = np.array([t * 3 + i for i in range(3) for t in range(4)], "i4")
        file["tracks/obj_type_1/map"] = np.array([(i * 4, i * 4 + 4) for i in range(3)], "i4")
    found = read_tracks(path)
    assert found.links.tolist() == [[row, row + 3] for row in range(9)]
    assert found.detections.position[4] == pytest.approx([0, 14.1, 14])
    assert_refused(run("detect", path, "-o", tmp_path / "o.csv"), 3, "table of positions", "outbid track")
    with h5py.File(path, "r+") as file:
        file["tracks/obj_type_1/tracks"][:] = [0, 3, -1, -1, 1, 4, 7, 10, 6, 9, -2, -3]
        lineage = [(1, 0, 1, 1, 1, 0), (2, 0, 3, 2, 2, 0), (3, 2, 3, 1, 1, 1)]
        file["tracks/obj_type_1/LBEPR"] = np.array(lineage, "i4")
    again = read_tracks(path)
    assert again.links.tolist() == [[0, 3], [1, 4], [3, 6], [4, 7], [6, 9], [7, 10]]


def test_localisations_of_picasso(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Case 16."""
    h5py = pytest.importorskip("h5py")
    kinds = [("frame", "u4"), ("x", "f4"), ("y", "f4"), ("photons", "f4")]
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file["locs"] = np.array([(t, 5, 6, 90) for t in range(4)], kinds)
    found = read_detections(tmp_path / "a.hdf5")
    assert (found.position[3].tolist(), found.features["photons"].tolist()) == ([0, 6, 5], [90] * 4)
    assert caplog.messages == []
    with h5py.File(tmp_path / "b.hdf5", "w") as file:
        file["locs"] = np.array([(t, 5, 6, 90, 200) for t in range(4)], [*kinds, ("z", "f4")])
    assert read_detections(tmp_path / "b.hdf5").position[0].tolist() == [200, 6, 5]
    assert "z is in nanometers" in caplog.text
    with h5py.File(tmp_path / "c.h5", "w") as file:
        for name in ("t", "z", "y", "x"):
            file[f"points/{name}"] = np.arange(4)
    assert read_detections(tmp_path / "c.h5").frame.tolist() == [0, 1, 2, 3]
    succeed("track", tmp_path / "a.hdf5", "-o", tmp_path / "t.csv", "--max-distance", 2)
