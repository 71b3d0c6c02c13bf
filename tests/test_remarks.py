"""Remarks on detections that can hardly be linked, and inputs that are refused."""

import time
from importlib import import_module

import numpy as np
import pytest
from commands import assert_refused, run, succeed

from outbid import Detections, SolverError, TrackingSettings, Tracks, score, track, write_detections
from outbid.simulate.advise import advise

door = import_module("outbid.tracking")
GRID = np.stack(np.meshgrid(*[np.arange(0, 60, 20.0)] * 3), axis=-1).reshape(-1, 3)


def written(folder, frame, position):
    """A table of detections, and where its tracks go."""
    path = folder / "spots.csv"
    rows = [f"{t},{z},{y},{x}" for t, (z, y, x) in zip(frame, position, strict=True)]
    path.write_text("\n".join(["frame,z,y,x", *rows, ""]))
    return "track", path, "-o", folder / "tracks.csv"


@pytest.mark.parametrize("given", [None, 3])
def test_what_are_no_detections_are_shown_the_way_in(given):
    for enter in (track, advise):
        with pytest.raises(TypeError, match=r"detections is of type .*Give Detections, a path, a data frame"):
            enter(given)
    seen = Detections.from_table([0], [[0, 0, 0]])
    with pytest.raises(TypeError, match=r"truth is of type .*Give Tracks, a path, a data frame"):
        score(Tracks(seen, np.empty((0, 2), np.int64)), given)
    with pytest.raises(TypeError, match=r"TrackingSettings\(max_distance"):
        track(seen, 3)


@pytest.mark.parametrize("options", [[], ["--max-distance", "3", "--max-gap", "2"]])
@pytest.mark.parametrize(
    ("frame", "said"), [([], "no detections"), ([7] * 27, "All 27 detections are in frame 7")]
)
def test_without_two_frames_nothing_is_begun(frame, said, options, tmp_path, monkeypatch):
    monkeypatch.setattr(door, "gated_links", None)
    monkeypatch.setattr(door, "learned_links", None)
    done = succeed(*written(tmp_path, frame, GRID[: len(frame)]), *options)
    first, last = done.stderr.splitlines()
    assert said in first
    assert "so nothing is linked" in first
    count = len(frame)
    tracks = f"{count} tracks, {count} of them single detections," if count else "0 tracks"
    assert f"{tracks} from {count} detections; 0 links" in last
    assert (tmp_path / "tracks.csv").read_text().startswith("track_id,frame")


@pytest.mark.smoke
@pytest.mark.parametrize("options", [[], ["--max-distance", "3"]])
def test_points_at_one_place_are_named_before_the_work_begins(options, tmp_path, monkeypatch):
    def no_more(*_, **__):
        raise SolverError("The work begins.")

    monkeypatch.setattr(door, "gated_links", no_more)
    monkeypatch.setattr(door, "learned_links", no_more)
    frame = np.repeat(np.arange(10), 3)
    done = run(*written(tmp_path, frame, np.ones((30, 3))), *options)
    assert done.exit_code == 5
    assert done.stderr.startswith("All 30 detections are at one position, z, y, x = 1, 1, 1, so links")


@pytest.mark.smoke
def test_rows_that_are_there_twice_are_counted(tmp_path):
    frame = np.repeat(np.arange(3), 27)
    twice = np.concatenate([frame, frame[30:40]]), np.concatenate([np.tile(GRID, (3, 1)), GRID[3:13]])
    done = run(*written(tmp_path, *twice), "--max-distance", "3")
    assert (
        "10 detections have exactly the position of another one in their frame, the first in frame 1 at z, "
        "y, x = " in done.stderr
    )
    assert "Are rows doubled?" in done.stderr
    [said] = track(Detections.from_table(*twice), TrackingSettings(3.0)).remarks
    assert said in done.stderr
    once = Detections.from_table(frame, np.tile(GRID, (3, 1)))
    assert track(once, TrackingSettings(3.0)).remarks == ()


def test_a_stream_says_the_same(tmp_path):
    frame = np.repeat(np.arange(3), 27)
    twice = np.concatenate([frame, frame[30:40]]), np.concatenate([np.tile(GRID, (3, 1)), GRID[3:13]])
    words = ["-o", tmp_path / "out.parquet", "--max-distance", "3", "--stream", "--overwrite"]
    for seen, said in (
        (
            twice,
            "10 detections have exactly the position of another one in their frame, the first in frame 1",
        ),
        ((frame[:27], GRID), "All 27 detections are in frame 0, so nothing is linked."),
        (([], np.empty((0, 3))), "There are no detections, so nothing is linked."),
    ):
        write_detections(tmp_path / "in.parquet", Detections.from_table(*seen), overwrite=True)
        done = succeed("track", tmp_path / "in.parquet", *words)
        assert done.stderr.startswith(said)
        assert len(done.stderr.splitlines()) == 2


def test_minus_zero_is_zero_and_other_frames_are_others():
    seen = Detections.from_table([0, 0, 1, 1], [[0.0, 0, 0], [-0.0, 0, 0], [0, 0, 0], [0, 0, 9]])
    [said] = track(seen, TrackingSettings(3.0)).remarks
    assert said.startswith("1 detection has exactly the position of another one in its frame, in frame 0 at ")


def test_a_million_rows_are_compared_in_no_time():
    from outbid.particles.remarks import doubled

    rng = np.random.default_rng(0)
    seen = Detections(np.repeat(np.arange(100, dtype=np.int32), 10_000), rng.random((1_000_000, 3)))
    start = time.perf_counter()
    assert doubled(seen).messages() == []
    assert time.perf_counter() - start < 1


def test_rows_that_are_there_twice_are_counted_alike_in_blocks(monkeypatch):
    from outbid.particles import remarks

    rng = np.random.default_rng(1)
    frame = np.sort(rng.integers(0, 40, 3000)).astype(np.int32)
    seen = Detections(frame, rng.integers(0, 9, (3000, 3)).astype(float))
    found = remarks.doubled(seen)
    assert found.count > 100
    monkeypatch.setattr(remarks, "_COMPARED", 50)
    assert remarks.doubled(seen) == found


@pytest.mark.parametrize("option", ["--divisions", "--merges"])
def test_what_is_learned_is_refused_beside_a_max_distance(option, tmp_path):
    words = written(tmp_path, [0, 1], GRID[:2])
    assert_refused(run(*words, "--max-distance", "3", option), 2, option, "--max-distance")
    by_environment = {f"OUTBID_TRACK_{option[2:].replace('-', '_').upper()}": "1"}
    assert_refused(run(*words, "--max-distance", "3", env=by_environment), 2, option)
    succeed(*words, "--max-distance", "3", "--no-divisions", "--no-merges")
    # The record of a run holds all options: it is no wish.
    succeed(*words, "--config", tmp_path / "tracks.csv", "--overwrite")


@pytest.mark.parametrize(("frames", "said"), [(30, "can miss at most 28: it acts as 28"),
                                              (1200, "hardly distinguishes particles")])  # fmt: skip
def test_a_gap_longer_than_makes_sense_is_named(frames, said, tmp_path):
    words = written(
        tmp_path, np.arange(frames), np.zeros((frames, 3)) + [[0, 0, k % 2] for k in range(frames)]
    )
    done = succeed(*words, "--max-distance", "3", "--max-gap", "1000")
    assert "max_gap is 1000" in done.stderr
    assert said in done.stderr


def test_advice_names_the_file_with_its_folder(tmp_path):
    folder = tmp_path / "my movies"
    folder.mkdir()
    assert_refused(run("track", folder), 3, "It is empty")
    (folder / "spots.csv").write_text("frame,z,y,x\n")
    assert_refused(run("track", folder), 3, f"such as {folder / 'spots.csv'}.")
    (folder / "a.tif").write_bytes(b"")
    assert_refused(run("track", folder / "a.tif"), 3, f"outbid detect '{folder / 'a.tif'}' -o spots.csv")
    assert_refused(run("track", folder), 3, f"outbid detect '{folder}' -o spots.csv")
