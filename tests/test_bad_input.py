"""Bad tables: read right where that is possible, and else refused with file, line, value and remedy."""

import os
import subprocess
import sys
from pathlib import Path
from threading import active_count
from time import monotonic, sleep
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import assert_refused, run, track, written

from outbid import read_detections, read_tracks
from outbid.formats import WRITTEN
from outbid.formats.files import memory

GOOD = "track_id,frame,z,y,x,mass\n1,0,0,5,1.5,7\n1,1,0,5,2.5,8\n2,1,0,9,2.5,9\n"


# ---------------------------------------------------------------- read right all the same

READABLE = {
    "semicolons and decimal commas": GOOD.replace(",", ";").replace(".", ",").encode(),
    "tabs": GOOD.replace(",", "\t").encode(),
    "tabs and decimal commas": GOOD.replace(",", "\t").replace(".", ",").encode(),
    "semicolons and decimal points": GOOD.replace(",", ";").encode(),
    "byte order mark": GOOD.encode("utf-8-sig"),
    "UTF-16": GOOD.encode("utf-16"),
    "UTF-16, big end first": b"\xfe\xff" + GOOD.encode("utf-16-be"),
    "UTF-16 without mark": GOOD.encode("utf-16-le"),
    "UTF-16 without mark, big end first": GOOD.encode("utf-16-be"),
    "Windows line ends": GOOD.replace("\n", "\r\n").encode(),
    "old Macintosh line ends": GOOD.replace("\n", "\r").encode(),
    "no line end at the end": GOOD.rstrip().encode(),
    "blank lines": GOOD.replace("\n", "\n\n").encode(),
    "spaces": GOOD.replace(",", " , ").encode(),
    "quotes": "\n".join(
        ",".join(f'"{field}"' for field in line.split(",")) for line in GOOD.splitlines()
    ).encode(),
    "lines above the header": b"\nPosition\n ====== \n" + GOOD.encode(),
    "whole numbers as 1.0": GOOD.replace("\n1,1,", "\n1.0,1.0,").encode(),
    "text that is no UTF-8": GOOD.replace("mass", "mass,\xb5m").replace("7\n", "7,\xb5m\n").replace(
        "8\n", "8,a\n").replace("9\n", "9,a\n").encode("latin-1"),
    "a nameless index": "\n".join(
        f"{k or ''},{line}" for k, line in enumerate(GOOD.splitlines())
    ).encode(),
    "line breaks in quotes": GOOD.replace("mass", "mass,note").replace("7\n", '7,"a\nb,"\n').replace(
        "8\n", "8,\n").replace("9\n", "9,\n").encode(),
    "rows in any order": (GOOD.splitlines(keepends=True)[0] + "".join(
        [GOOD.splitlines(keepends=True)[k] for k in (2, 1, 3)])).encode(),
}  # fmt: skip


@pytest.mark.smoke
@pytest.mark.parametrize("name", READABLE)
def test_read_right(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "spots.csv", READABLE[name])
    found = read_tracks(path)
    assert found.detections.frame.tolist() == [0, 1, 1]
    assert found.detections.position.tolist() == [[0, 5, 1.5], [0, 5, 2.5], [0, 9, 2.5]]
    assert found.detections.features["mass"].tolist() == [7, 8, 9]
    assert found.links.tolist() == [[0, 1]]


def test_line_breaks_in_quotes_of_a_file_that_is_read_in_parts(tmp_path: Path) -> None:
    path, count = tmp_path / "spots.csv", 60_000
    path.write_text("frame,note,y,x\n" + "".join(f'{k},"a\n{k},1,\n2",{k},0\n' for k in range(count)))
    found = read_detections(path)
    assert found.frame.tolist() == found.position[:, 1].tolist() == list(range(count))


def test_text_that_looks_hexadecimal_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "spots.csv"
    path.write_text("track_id,frame,y,x,colour,code\n010,007,1,2,0xff,10\n10,8,1,2,0x10,0\n")
    found = read_tracks(path)
    assert (found.detections.frame.tolist(), found.links.tolist()) == ([7, 8], [[0, 1]])
    assert {name: of.tolist() for name, of in found.detections.features.items()} == {
        "colour": ["0xff", "0x10"],
        "code": [10, 0],
    }


# ---------------------------------------------------------------- refused

REFUSED = {
    "empty": (b"", ["is empty"]),
    "nothing but blank lines": (b"\n\n \n", ["is empty", "header"]),
    "a wide row": (GOOD.replace("5,2.5,8", "5,2.5,8,1"), ["line 3", "7 fields", "6"]),
    "a narrow row": (GOOD.replace("2.5,9\n", "2.5\n"), ["line 4", "5 fields", "6"]),
    "wide rows in another frame": (GOOD + "1,2,0,5,3,5,7,5,9\n", ["line 5", "9 fields"]),
    "text for a position": (GOOD.replace("5,1.5", "5,abc"), ["line 2", "x is 'abc'", "number"]),
    "a blank position": (GOOD.replace("0,5,1.5", "0,,1.5"), ["line 2", "y is blank", "fix it"]),
    "NaN": (GOOD.replace("5,1.5", "5,nan"), ["line 2", "x is 'nan'", "finite"]),
    "infinite": (GOOD.replace("5,1.5", "5,-inf"), ["line 2", "x is '-inf'", "finite"]),
    "too large for a float": (GOOD.replace("5,1.5", "5,1e400"), ["line 2", "x is '1e400'", "finite"]),
    "a fractional frame": (GOOD.replace("1,1,0", "1,1.5,0"), ["line 3", "frame is '1.5'", "interval"]),
    "a negative frame": (GOOD.replace("1,1,0", "1,-1,0"), ["line 3", "frame is '-1'", "shift"]),
    "a blank frame": (GOOD.replace("1,1,0", "1,,0"), ["line 3", "frame is blank"]),
    "a frame beyond 2^31": (GOOD.replace("1,1,0", "1,4294967296,0"), ["line 3", "4294967296"]),
    "a frame beyond 2^64": (GOOD.replace("1,1,0", f"1,{2**70},0"), ["line 3", str(2**70)]),
    "text for a frame": (GOOD.replace("1,1,0", "1,one,0"), ["line 3", "frame is 'one'"]),
    "a hexadecimal frame": (GOOD.replace("1,1,0", "1,0x1,0"), ["line 3", "frame is '0x1'", "number"]),
    "a hexadecimal position": (GOOD.replace("5,1.5", "5,0X1p3"), ["line 2", "x is '0X1p3'", "number"]),
    "a date for a frame": (GOOD.replace("1,1,0", "1,2020-01-02,0"), ["line 3", "2020-01-02"]),
    "only dates for frames": ("frame,y,x\n2020-01-02,1,2\n", ["frame", "numbers are needed"]),
    "a truth value for a frame": ("frame,y,x\ntrue,1,2\n", ["frame", "numbers are needed"]),
    "two columns of one name": (GOOD.replace("mass", "x"), ["line 1", "'x'", "name of its own"]),
    "two features of one name": ("frame,y,x,a,a\n1,1,1,1,2\n", ["line 1", "'a'", "name of its own"]),
    "names that differ in case": ("frame,y,Pos_X,POS_X\n1,1,1,2\n", ["line 1", "case"]),
    "no header": (GOOD.split("\n", 1)[1], ["line 1", "header", "track_id,frame,z,y,x"]),
    "no x": (GOOD.replace(",x,", ",sideways,"), ["line 1", "x (x, position_x", "'sideways'", "Rename"]),
    "no frame": (GOOD.replace("frame", "when"), ["line 1", "frame (frame, t, time", "Rename"]),
    "a NUL byte": (GOOD.replace("2.5,9", "2.\0005,9"), ["line 4", "NUL"]),
    "a quotation mark never closed": (GOOD + '1,2,0,5,1.5,"7\n1,3,0,5,1.5,7\n', ["quotation mark", "Close"]),
    "decimal commas between commas": ("frame;y,x\n1;1,1\n", ["line 1", "Rename"]),
    "decimal commas and points": ("frame;y;x\n1;1,5;1\n2;2.5;1\n", ["line 3", "y is '2.5'"]),
    "damaged UTF-16": (GOOD.encode("utf-16")[:-1], ["UTF-16"]),
    "a picture": (bytes(range(256)) * 40, ["NUL"]),
    "prose": (b"Dear reader,\nthis is not a table.\n", ["line 1", "No column for frame"]),
    "an error far down": ("frame,y,x\n" + "1,2,3\n" * 70_000 + "1,2,oops\n", ["line 70002", "'oops'"]),
    "an error under blank lines and quotes": (
        'frame,y,x,note\n\n1,2,3,"a\nb"\n\n1,2,oops,c\n', ["line 6", "'oops'"],
    ),
    "an error under lines above the header": (
        "\nPosition\n\nPosition X,Position Y,Time,\n1,2,3,\n1,,3,\n", ["line 6", "Position Y is blank"],
    ),
    "an error in UTF-16": (GOOD.replace("5,1.5", "5,abc").encode("utf-16"), ["line 2", "'abc'"]),
}  # fmt: skip


@pytest.mark.smoke
@pytest.mark.parametrize("name", REFUSED)
def test_bad_tables_are_refused(name: str, tmp_path: Path) -> None:
    content, said = REFUSED[name]
    path = written(tmp_path / "spots.csv", content)
    assert_refused(track(path), 3, "spots.csv", *said)
    assert list((tmp_path / "out").iterdir()) == []


TRACKS_REFUSED = {
    "a track in two places": (GOOD + "1,1,0,7,7,7\n", ["Track 1", "frame 1", "numbers of their own"]),
    "a fractional track": (GOOD.replace("2,1,0", "2.5,1,0"), ["line 4", "track_id is '2.5'"]),
    "a hexadecimal track": (GOOD.replace("2,1,0", "0x1F,1,0"), ["line 4", "track_id is '0x1F'"]),
    "a hexadecimal parent": (
        "track_id,frame,y,x,parent\n1,0,1,1,\n2,1,1,1,0x1\n", ["line 3", "parent is '0x1'"],
    ),
    "a track called by a word": (GOOD.replace("2,1,0", "two,1,0"), ["line 4", "track_id is 'two'"]),
    "a track beyond 2^63": (GOOD.replace("2,1,0", f"{2**64},1,0"), ["line 4", "track_id"]),
    "no tracks": (GOOD.replace("track_id", "q"), ["holds no tracks", "track_id"]),
    "a parent that is not there": (
        "track_id,frame,y,x,parent\n1,0,1,1,\n2,1,1,1,9\n", ["Track 2", "parent 9", "Remove"],
    ),
    "a parent that ends too late": (
        "track_id,frame,y,x,parent\n1,0,1,1,\n1,1,1,1,\n2,1,1,1,1\n", ["Track 2", "parent 1", "division"],
    ),
    "a spot that is not there": (
        "id,parent_id,frame,y,x\n1,,0,1,1\n2,7,1,1,1\n", ["number 7", "Add its row"],
    ),
    "two spots of one number": (
        "id,parent_id,frame,y,x\n1,,0,1,1\n1,,1,1,1\n", ["number 1", "anew"],
    ),
    "text for a cost": (GOOD.replace("mass", "link_cost").replace(",8", ",much"), ["line 3", "'much'"]),
}  # fmt: skip


@pytest.mark.smoke
@pytest.mark.parametrize("name", TRACKS_REFUSED)
def test_bad_tracks_are_refused(name: str, tmp_path: Path) -> None:
    content, said = TRACKS_REFUSED[name]
    path = written(tmp_path / "tracks.csv", content)
    assert_refused(run("score", path, path), 3, "tracks.csv", *said)


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "spots.docx").write_text(GOOD)
    os.mkfifo(tmp_path / "pipe.csv")
    assert_refused(track(tmp_path / "none.csv"), 3, "none.csv", "no file", "Check the name")
    assert_refused(track(tmp_path / "folder.csv"), 3, "folder.csv", "folder")
    threads = active_count()
    assert_refused(track(tmp_path / "pipe.csv"), 3, "pipe.csv", "Give a file")
    end = monotonic() + 20  # the thread that hashes sees by itself that it is no file
    while active_count() > threads and monotonic() < end:
        sleep(0.01)
    assert active_count() <= threads  # none waits for what will never come
    assert_refused(track(tmp_path / "spots.docx"), 3, "spots.docx", "unknown format", *WRITTEN)
    assert_refused(track(tmp_path / "spots"), 3, "no file")


def test_a_file_that_never_ends_holds_up_no_command(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    words = ("track", "pipe.parquet", "-o", "t.parquet", "--stream", "--max-distance", "1")
    command = [str(Path(sys.executable).with_name("outbid")), *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "Give a file" in done.stderr) == (3, True), done.stderr
    streamed = run("track", tmp_path / "none.parquet", "-o", tmp_path / "t.parquet", *words[-3:])
    assert_refused(streamed, 3, "none.parquet", "no file", "Check the name")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = written(tmp_path / "spots.csv", GOOD)
    path.chmod(0)
    assert_refused(track(path), 3, "spots.csv", "Permission denied")


# ---------------------------------------------------------------- larger than memory


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_does_not_fit_is_refused_before_reading(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million equal rows make a Parquet file of some kilobytes; their count is in its footer."""
    path = tmp_path / f"spots{suffix}"
    rows = pa.table({name: np.zeros(1_000_000) for name in ("frame", "y", "x")})
    if suffix == ".csv":
        path.write_text("frame,y,x\n" + "0,0,0\n" * 1_000_000)
    else:
        pq.write_table(rows, path)
        assert path.stat().st_size < 50_000
    monkeypatch.setattr(memory, "free_memory", lambda: 10_000_000)
    assert_refused(track(path), 4, path.name, "GB", "Split it")
    monkeypatch.undo()
    assert track(path, distance="0").exit_code == 0


@pytest.mark.parametrize(
    ("error", "exit_code", "said"),
    [
        (OSError(5, "Input/output error"), 3, ["Input/output error"]),
        (MemoryError("Unable to allocate 7 GiB"), 4, ["its 0.00", "GB are free", "Split it"]),
    ],
)
def test_errors_while_reading_name_the_file(
    error: Exception, exit_code: int, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "spots.csv", GOOD * 50_000)
    monkeypatch.setattr(Path, "read_bytes", Mock(side_effect=error))
    assert_refused(track(path), exit_code, "spots.csv", *said)


@pytest.mark.skipif(sys.platform != "linux", reason="sparse files")
def test_a_file_of_a_terabyte_is_refused_at_once(tmp_path: Path) -> None:
    path = written(tmp_path / "spots.csv", "frame,y,x\n")
    try:
        os.truncate(path, 10**12)
    except OSError:
        pytest.skip("the file system knows no sparse files")
    assert_refused(track(path), 4, "spots.csv", "GB")


# ---------------------------------------------------------------- unusual, but fine


def csv_of(frame: object, position: object) -> str:
    points = np.asarray(position, dtype=float)
    return "frame,z,y,x\n" + "".join(
        f"{t},{','.join(map(repr, p))}\n" for t, p in zip(np.asarray(frame), points.tolist(), strict=True)
    )


UNUSUAL = {
    "no rows": (csv_of([], np.empty((0, 3))), 0, 0),
    "no line end after the header": ("frame,z,y,x", 0, 0),
    "one particle once": (csv_of([7], [[1, 2, 3]]), 1, 0),
    "one particle": (csv_of(range(5), np.zeros((5, 3))), 5, 4),
    "one frame": (csv_of([0] * 5, np.arange(15).reshape(5, 3)), 5, 0),
    "empty frames between": (csv_of([0, 1, 50, 51], np.zeros((4, 3))), 4, 2),
    "very unequal frames": (csv_of([0] + [1] * 900, [[0, 0, 0], *([k, 0, 0] for k in range(900))]), 901, 1),
    "points at one place": (csv_of(np.repeat(range(4), 6), np.ones((24, 3))), 24, 18),
    "points on a line": (csv_of(np.repeat(range(4), 6), [[0, 0, 9 * k] for k in range(6)] * 4), 24, 18),
    "far from the origin": (
        csv_of(np.repeat(range(4), 6), [[1e6, -1e6, 1e6 + 9 * k] for k in range(6)] * 4), 24, 18,
    ),
    "no z": ("frame,y,x\n0,1,1\n1,1,1\n", 2, 1),
    "late first frame": (csv_of([2**31 - 2, 2**31 - 1], np.zeros((2, 3))), 2, 1),
}  # fmt: skip


@pytest.mark.smoke
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_tables_give_valid_output(name: str, tmp_path: Path) -> None:
    content, detections, links = UNUSUAL[name]
    path = written(tmp_path / "spots.csv", content)
    done = track(path)
    assert done.exit_code == 0, done.output
    found = read_tracks(tmp_path / "out" / "tracks.csv")
    assert (len(found.detections), len(found.links)) == (detections, links)
    assert (tmp_path / "out" / "tracks.csv").read_text().startswith("track_id,frame,z,y,x")


def test_motionless_points_keep_their_identity(tmp_path: Path) -> None:
    """Costs of 0 must not be taken for no candidates, and ties go to the lowest index."""
    path = tmp_path / "spots.csv"
    places = np.random.default_rng(3).random((20, 3)) * [50, 50, 1e-9] + 1e6
    path.write_text(csv_of(np.repeat(range(6), 20), np.tile(places, (6, 1))))
    assert track(path).exit_code == 0
    assert read_tracks(tmp_path / "out" / "tracks.csv").track_id.tolist() == list(range(20)) * 6


@pytest.mark.parametrize(
    ("distance", "exit_code", "links"), [("0", 0, 0), ("inf", 0, 2), ("-1", 2, None), ("nan", 2, None)]
)
def test_distances_at_the_edge(distance: str, exit_code: int, links: int | None, tmp_path: Path) -> None:
    path = tmp_path / "spots.csv"
    path.write_text(csv_of([0, 1, 0, 1], [[0, 0, 0], [0, 0, 900], [0, 50, 0], [0, 50, 0]]))
    done = track(path, distance=distance)
    assert done.exit_code == exit_code, done.output
    if links is None:
        assert_refused(done, 2, "max_distance", "0 or more")
    else:
        assert len(read_tracks(tmp_path / "out" / "tracks.csv").links) == links


# ---------------------------------------------------------------- outputs


def test_an_output_that_exists_is_refused_before_any_work(tmp_path: Path) -> None:
    path = written(tmp_path / "spots.csv", GOOD)
    assert track(path).exit_code == 0
    before = (tmp_path / "out" / "tracks.csv").read_bytes()
    path.write_text("broken")  # would be noticed if it was read
    assert_refused(track(path), 2, "tracks.csv exists", "--overwrite")
    assert (tmp_path / "out" / "tracks.csv").read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_place_that_takes_no_files(tmp_path: Path) -> None:
    path = written(tmp_path / "spots.csv", GOOD)
    done = run("track", path, "-o", "/proc/tracks.csv", "--max-distance", 5)
    assert_refused(done, 4, "/proc/tracks.csv", "choose another place")


@pytest.mark.skipif(sys.platform == "win32", reason="needs setrlimit")
def test_a_disk_that_is_full_leaves_what_was_there(tmp_path: Path) -> None:
    """The limit on the size of files stands for the full disk."""
    path, output = tmp_path / "spots.csv", tmp_path / "tracks.csv"
    path.write_text(csv_of(np.arange(9000), np.random.default_rng(0).random((9000, 3))))
    output.write_text("precious")
    code = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from outbid.cli import main
main(["track", {str(path)!r}, "-o", {str(output)!r}, "--max-distance", "5", "--overwrite"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert output.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["spots.csv", "tracks.csv"]
