"""Features that shell users expect: pipes, dry run, Excel, filters, filled gaps, labels, quick Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tifffile
from click.testing import CliRunner, Result
from commands import assert_refused, run, succeed

from outbid import Detections, Tracks, read_detections, read_record, read_tracks, write_tracks
from outbid.cli import main
from outbid.edit.fill_gaps import with_gaps_filled
from outbid.edit.filter import condition_from, fulfilling, of_confidence, of_length, without_unlikely

SEEN = Detections.from_table(
    [0, 0, 1, 1, 3, 4], [[0, 0, 0], [0, 9, 9], [0, 9, 8], [0, 0, 1], [0, 0, 4], [0, 0, 5]],
    features={"mass": [1.0, 5, 7, 2, 3, 2]},
)  # fmt: skip
TRACKS = Tracks(
    SEEN, np.array([[0, 3], [1, 2], [3, 4], [4, 5]]), link_probability=np.array([0.9, 0.8, 0.3, 0.95])
)


def piped(stdin: bytes, *arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)


@pytest.fixture
def file(here: Path) -> Path:
    write_tracks("t.csv", TRACKS)
    return here / "t.csv"


# ---------------------------------------------------------------- stdin and stdout


@pytest.mark.smoke
def test_a_table_goes_through_a_pipe(file: Path) -> None:
    done = piped(file.read_bytes(), "track", "-", "-o", "-", "--max-distance", 4, "--max-gap", 1)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("track_id,frame,z,y,x,mass")
    assert len(done.stdout.splitlines()) == len(SEEN) + 1
    assert done.stderr.startswith("stdout: 2 tracks from 6 detections")
    assert "Next" not in done.stderr


def test_what_comes_from_stdin_goes_to_stdout(file: Path) -> None:
    assert piped(file.read_bytes(), "filter", "-", "--min-length", 3).stdout.count("\n") == 5
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("suffix", [".parquet", ".xml"])
def test_the_kind_of_stdin_is_recognised(suffix: str, file: Path) -> None:
    write_tracks(f"t{suffix}", TRACKS)
    done = piped((file.parent / f"t{suffix}").read_bytes(), "convert", "-", "-")
    assert done.stdout.count("\n") == len(SEEN) + 1


def test_stdin_serves_scores_and_advice_too(file: Path) -> None:
    assert "link_f1               1.0000" in piped(file.read_bytes(), "score", "-", file).stdout
    assert_refused(piped(b"", "advise", "-"), 3, "stdin.csv", "empty")


def test_stdout_takes_one_thing_and_stdin_gives_one(file: Path) -> None:
    for arguments in (("track", file, "-o", "-", "--json"), ("score", "-", "-")):
        done = piped(file.read_bytes(), *arguments)
        assert (done.exit_code, done.stdout) == (2, "")


def test_nothing_is_left_of_a_pipe(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(file.parent))
    assert piped(file.read_bytes(), "convert", "-", "-").exit_code == 0
    assert piped(b"frame,x\n", "track", "-").exit_code == 3
    assert list(file.parent.iterdir()) == [file]


# ---------------------------------------------------------------- a dry run, Excel


def test_a_dry_run_writes_nothing_and_estimates(file: Path) -> None:
    done = succeed("track", file, "--dry-run", "--max-distance", 4)
    assert "Nothing was written." in done.stdout
    assert "GB of memory for 6 detections in 5 frames" in done.stdout
    plan = json.loads(run("track", file, "--dry-run", "--max-distance", 4, "--json").stdout)
    assert (plan["output"], plan["part"]) == (str(file.with_name("t_tracks.csv")), 6)
    assert 0 < plan["seconds"] < 60
    assert 1e8 < plan["memory"] < 1e10
    assert list(file.parent.iterdir()) == [file]


def test_a_dry_run_of_detect_writes_nothing_and_estimates(tmp_path: Path) -> None:
    y, x = np.ogrid[:48, :48]
    spot = 400 * np.exp(-((y - 20) ** 2 + (x - 30) ** 2) / 8)
    light = np.random.default_rng(0).poisson(50 + spot, (6, 48, 48)).astype(np.uint16)
    movie, out = tmp_path / "m.tif", tmp_path / "o.csv"
    tifffile.imwrite(movie, light, metadata={"axes": "TYX"})
    ask = "detect", movie, "-o", out, "--dry-run", "--frames", "1:5"
    done = succeed(*ask)
    assert "Nothing was written." in done.stdout
    assert "4 frames of 1 x 48 x 48 voxels, and some 4 detections, extrapolated from frame 3." in done.stdout
    plan = json.loads(run(*ask, "--json").stdout)
    assert (plan["output"], plan["frames"], plan["detections"]) == (str(out), 4, 4)
    assert 0 < plan["seconds"] < 60
    assert 1e8 < plan["memory"] < 1e10
    assert list(tmp_path.iterdir()) == [movie]
    assert run(*ask, "--cluster", "local").exit_code == 2


def test_the_summary_says_against_what_spots_stand_out(tmp_path: Path) -> None:
    y, x = np.ogrid[:64, :64]
    spots = sum(900 * np.exp(-((y - a) ** 2 + (x - b) ** 2) / 8) for a in (12, 32, 52) for b in (12, 32, 52))
    light = np.random.default_rng(0).poisson(50 + spots).astype(np.uint16)
    tifffile.imwrite(tmp_path / "m.tif", light)
    for more, said in (
        ((), "Null: the spectrum of everything but spots; the camera's noise is measured."),
        (("--gain", 1), "Null: the spectrum of everything but spots; the camera's noise is given."),
        (("--bodies",), "Null: the filter's minima"),
    ):
        done = run("detect", tmp_path / "m.tif", "-o", tmp_path / "o.csv", "--overwrite", *more)
        assert said not in done.stderr
        assert said in read_record(tmp_path / "o.csv")["null"]


def test_tracks_that_are_too_short_are_left_out_and_the_record_says_so(file: Path) -> None:
    done = succeed(
        "track", file, "-o", "o.csv", "--max-distance", 4, "--max-gap", 1, "--min-length", 3, "--json"
    )
    assert (json.loads(done.stdout)["tracks"], json.loads(done.stdout)["links"]) == (1, 3)
    assert read_tracks("o.csv").links.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert json.loads(Path("o.csv.json").read_text("utf-8"))["settings"]["min_length"] == 3
    succeed("track", file, "-o", "p.csv", "--config", "o.csv.json")
    assert Path("p.csv").read_bytes() == Path("o.csv").read_bytes()
    refused = run("track", file, "-o", "q.parquet", "--stream", "--min-length", 3)
    assert (refused.exit_code, Path("q.parquet").exists()) == (2, False)
    assert "outbid filter" in refused.stderr


def test_excel_is_read(file: Path) -> None:
    openpyxl = pytest.importorskip(
        "openpyxl", reason="openpyxl is not installed: pip install 'outbid[excel]'"
    )
    book = openpyxl.Workbook()
    book.active.append(["slice", "x", "y", "mass", "note"])
    mass_of = [None, 5, 7, 2, 3, 2]
    for frame, (_, y, x), mass in zip(SEEN.frame.tolist(), SEEN.position.tolist(), mass_of, strict=True):
        book.active.append([frame, x, y, mass, "a"])
    book.save("t.xlsx")
    assert_refused(run("track", "t.xlsx", "-o", "o.csv"), 3, "t.xlsx", "No column for frame")
    found = read_detections("t.xlsx", columns={"frame": "slice"})
    assert found.position.tolist() == SEEN.position.tolist()
    assert np.nan_to_num(found.features["mass"]).tolist() == [0, 5, 7, 2, 3, 2]
    book.active["B3"] = "far"
    book.save("t.xlsx")
    done = run("track", "t.xlsx", "-o", "o.csv", "--columns", "frame=slice")
    assert_refused(done, 3, "t.xlsx, row 3: x is 'far'")
    (file.parent / "no.xlsx").write_bytes(b"PK\x03\x04 cut short")
    assert_refused(run("track", "no.xlsx", "-o", "o.csv"), 3, "no.xlsx")


# ---------------------------------------------------------------- filters


def test_links_are_cut() -> None:
    cut = without_unlikely(TRACKS, 0.5)
    assert cut.links.tolist() == [[0, 3], [1, 2], [4, 5]]
    assert cut.link_probability.tolist() == [0.9, 0.8, 0.95]


@pytest.mark.smoke
def test_tracks_are_kept_by_length_and_by_confidence() -> None:
    assert of_length(TRACKS, 3).detections.frame.tolist() == [0, 1, 3, 4]
    assert of_length(TRACKS, 1, 2).detections.frame.tolist() == [0, 1]
    sure = of_confidence(TRACKS, 0.5)
    assert (sure.detections.frame.tolist(), sure.link_probability.tolist()) == ([0, 1], [0.8])


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("text", "frames"),
    [
        ("mass > 2", [0, 1, 3]), ("mean(mass) > 2", [0, 1]), ("min(mass)==1", [0, 1, 3, 4]),
        ("max(mass) < 7", [0, 1, 3, 4]), ("frame <= 1", [0, 0, 1, 1]), ("length != 4", [0, 1]),
        ("link_probability >= 0.9", [1, 4]), ("y = 9", [0, 1]),
    ],
)  # fmt: skip
def test_conditions(text: str, frames: list[int]) -> None:
    assert fulfilling(TRACKS, condition_from(text)).detections.frame.tolist() == frames


def test_the_command_filters_in_order_and_records_it(file: Path) -> None:
    done = run("filter", file, "-o", "o.csv", "--cut-below", 0.5, "--min-length", 2, "--where", "mass < 7")
    assert done.stderr == "2 of 2 tracks, 4 of 6 detections, positions in px, times in frames: o.csv\n"
    assert read_tracks("o.csv").detections.frame.tolist() == [0, 1, 3, 4]
    succeed("filter", file, "-o", "again.csv", "--config", "o.csv")
    assert Path("again.csv").read_bytes() == Path("o.csv").read_bytes()


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        (["--where", "mass"], 2, "not a condition"),
        (["--where", "depth > 1"], 3, "Choose one of: mass, frame"),
        (["--where", "mass > much"], 2, "not a condition"),
    ],
)  # fmt: skip
def test_a_filter_that_makes_no_sense(option: list[str], code: int, said: str, file: Path) -> None:
    assert_refused(run("filter", file, "-o", "o.csv", *option), code, said)


def test_confidence_needs_probabilities(file: Path) -> None:
    write_tracks(file, Tracks(SEEN, TRACKS.links), overwrite=True)
    assert_refused(run("filter", file, "-o", "o.csv", "--cut-below", 0.5), 3, "Track without --max-distance")


# ---------------------------------------------------------------- convert


@pytest.mark.smoke
def test_gaps_are_filled_flagged_and_timed(file: Path) -> None:
    succeed("convert", file, "o.csv", "--fill-gaps", "--frame-interval", 0.5)
    found = read_tracks("o.csv")
    features = found.detections.features
    assert found.detections.frame.tolist() == [0, 0, 1, 1, 2, 3, 4]
    assert features["filled"].tolist() == [0, 0, 0, 0, 1, 0, 0]
    assert features["time"].tolist() == [0, 0, 0.5, 0.5, 1, 1.5, 2]
    assert found.detections.position[4].tolist() == [0, 0, 2.5]
    assert np.isnan(features["mass"][4])
    assert (found.track_count, len(found.links)) == (2, 5)
    assert found.link_probability.tolist() == [0.9, 0.8, 0.3, 0.3, 0.95]


def test_filled_tracks_are_the_same_tracks() -> None:
    rng = np.random.default_rng(0)
    frame = np.sort(rng.choice(40, 60))
    label = np.arange(60) % 7
    kept = np.unique(np.column_stack([frame, label]), axis=0, return_index=True)[1]
    tracks = Tracks.from_track_ids(
        Detections.from_table(frame[kept], rng.random((len(kept), 3))), label[kept]
    )
    filled = with_gaps_filled(tracks)
    frames = filled.detections.frame
    assert (frames[filled.links[:, 1]] - frames[filled.links[:, 0]] == 1).all()
    assert filled.track_count == tracks.track_count
    seen = filled.detections.features["filled"] == 0
    assert (filled.detections.position[seen] == tracks.detections.position).all()
    assert (filled.track_id[seen] == tracks.track_id).all()


@pytest.mark.smoke
@pytest.mark.usefixtures("file")
def test_labels_get_the_numbers_of_tracks() -> None:
    images = np.zeros((3, 12, 12), np.uint16)
    for frame in range(3):
        images[frame, 2:4, 2 + frame : 4 + frame] = 5 + frame
        images[frame, 8:10, 8 - frame : 10 - frame] = 19 - frame
    tifffile.imwrite("masks.tif", images, metadata={"axes": "TYX"}, imagej=True)
    succeed("detect", "masks.tif", "--labels", "-o", "l.csv")
    succeed("track", "l.csv", "-o", "lt.csv", "--max-distance", 2)
    succeed("convert", "masks.tif", "lt.csv", "re.tif")
    found = tifffile.imread("re.tif")
    assert (found > 0).tolist() == (images > 0).tolist()
    assert [np.unique(image).tolist() for image in found] == [[0, 1, 2]] * 3
    assert len(np.unique(found[images > 0][:4])) == 1
    table = read_tracks("lt.csv")
    without = Detections(table.detections.frame, table.detections.position, "pixel")
    write_tracks("lt.csv", Tracks(without, table.links), overwrite=True)  # by position, not by label
    succeed("convert", "masks.tif", "lt.csv", "re.tif", "--overwrite")
    assert (tifffile.imread("re.tif") == found).all()
    assert_refused(run("convert", "masks.tif", "lt.csv", "re.csv"), 2, "re.csv", ".tif")


def test_trackmate_opens_its_image(file: Path) -> None:
    movie = np.zeros((5, 3, 12, 14), np.uint16)
    metadata = {"axes": "TZYX", "spacing": 2.0, "unit": "um", "finterval": 0.5}
    tifffile.imwrite("movie.tif", movie, imagej=True, resolution=(4, 4), metadata=metadata)
    succeed("convert", file, "t.xml", "--image", "movie.tif")
    text = Path("t.xml").read_text()
    for stated in (
        'filename="movie.tif"', f'folder="{file.parent}/"', 'width="14"', 'nslices="3"', 'nframes="5"',
        'pixelwidth="0.25"', 'voxeldepth="2.0"', 'timeinterval="0.5"', 'timeunits="sec"', 'POSITION_T="0.5"',
    ):  # fmt: skip
        assert stated in text
    found = read_tracks("t.xml")
    assert found.links.tolist() == TRACKS.links.tolist()
    np.testing.assert_allclose(found.detections.position, SEEN.position * [2, 0.25, 0.25])
    assert_refused(run("convert", file, "t2.csv", "--image", "movie.tif"), 2, "t2.csv", ".xml")


# ---------------------------------------------------------------- the end


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.usefixtures("interruptible")  # as the child is then
def test_ctrl_c_ends_compiling(file: Path) -> None:
    """Without a compiled kernel, the first run compiles for half a minute; in processor seconds."""
    command = [str(Path(sys.executable).with_name("outbid")), "track", str(file), "-o", "o.csv"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(file.parent / "kernels")}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Compiling the kernels")
        time.sleep(0.5)
        before = processor_seconds(process.pid)
        process.send_signal(signal.SIGINT)
        spent = before
        while process.poll() is None:
            spent = processor_seconds(process.pid) or spent
            time.sleep(0.02)
        assert process.stderr.read().endswith("Interrupted.\n")
    assert process.returncode == 130
    assert spent - before < 4  # two threads, two seconds
    assert not Path("o.csv").exists()


def processor_seconds(number: int) -> float:
    """Of a process so far; 0 where that cannot be read."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
