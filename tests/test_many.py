"""Many movies: what is done is kept, what fails is reported, in any executor; one model for all."""

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run, succeed
from containers import hdf5, tiff
from other_processes import KillsItself

from outbid import Detections, SettingsError, TrackingSettings, read_detections, read_record, read_tracks
from outbid import write_detections as write
from outbid.settings.detection import DetectionSettings
from outbid.work.jobs import DetectJob, TrackJob
from outbid.work.many import detect_many, run_many, track_many

GATED = TrackingSettings(max_distance=3.0)


def movie(seed: int, step: float = 0.3, frames: int = 8) -> Detections:
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, 20, (40, 3)) + np.cumsum(rng.normal(0, step, (frames, 40, 3)), axis=0)
    return Detections.from_table(np.repeat(np.arange(frames), 40), place.reshape(-1, 3))


@pytest.fixture
def movies(tmp_path: Path) -> list[Path]:
    """Three good ones and one that is none."""
    paths = [tmp_path / f"{name}.csv" for name in "abcd"]
    for seed, path in enumerate(paths):
        write(path, movie(seed))
    paths[1].write_text("frame,z,y,x\n0,0,0,inf\n")
    return paths


@pytest.mark.smoke
def test_a_bad_file_does_not_end_the_others(movies: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "tracks"
    done = run("track", *movies, "--out-dir", out, "--max-distance", 3)
    assert done.exit_code == 3
    assert done.stdout == ""
    assert "3 done, 0 kept, 1 failed" in done.stderr
    (said,) = [line for line in done.stderr.splitlines() if line.startswith(str(movies[1]))]
    assert "inf" in said
    assert sorted(path.name for path in out.glob("*.csv")) == ["a.csv", "c.csv", "d.csv"]
    succeed("track", movies[0], "-o", tmp_path / "alone.csv", "--max-distance", 3)
    assert (out / "a.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()
    done = succeed("track", movies[0], movies[2], "--out-dir", out, "--config", out / "a.csv.json", "--json")
    assert [each["state"] for each in json.loads(done.stdout)] == ["kept", "kept"]


@pytest.mark.smoke
def test_what_is_done_and_unchanged_is_kept(movies: list[Path], tmp_path: Path) -> None:
    def states(*options: object) -> dict[str, str]:
        done = run("track", *movies, "--out-dir", tmp_path / "out", "--json", *options)
        return {Path(each["source"]).stem: each["state"] for each in json.loads(done.stdout)}

    gate = "--max-distance", 3
    first = {"a": "done", "b": "failed", "c": "done", "d": "done"}
    assert states(*gate) == first
    before = (tmp_path / "out" / "c.csv").stat().st_mtime_ns
    write(movies[0], movie(7), overwrite=True)
    write(movies[1], movie(8), overwrite=True)
    assert states(*gate) == {"a": "failed", "b": "done", "c": "kept", "d": "kept"}
    assert states(*gate, "--overwrite") == {"a": "done", "b": "kept", "c": "kept", "d": "kept"}
    assert (tmp_path / "out" / "c.csv").stat().st_mtime_ns == before
    assert set(states("--max-distance", 2).values()) == {"failed"}
    assert set(states("--max-distance", 2, "--workers", 2, "--overwrite").values()) == {"done"}
    assert set(states("--max-distance", 2, "--workers", 1).values()) == {"kept"}
    (tmp_path / "out" / "c.csv.json").unlink()
    assert states("--max-distance", 2)["c"] == "failed"


def test_processes_and_executors_give_the_same_bytes(movies: list[Path], tmp_path: Path) -> None:
    good = [movies[0], movies[2], movies[3]]
    here = track_many(good, tmp_path / "here", GATED, suffix=".parquet")
    assert [outcome.state for outcome in here] == ["done"] * 3
    run_many(TrackJob(GATED), good, tmp_path / "two", suffix=".parquet", jobs=2)
    with ThreadPoolExecutor(2) as pool:
        track_many(good, tmp_path / "threads", GATED, suffix=".parquet", executor=pool)
    for name in ("a", "c", "d"):
        contents = {
            (tmp_path / folder / f"{name}.parquet").read_bytes() for folder in ("here", "two", "threads")
        }
        assert len(contents) == 1


class Lost(ThreadPoolExecutor):
    """An executor that loses every second task."""

    count = 0

    def submit(self, work, /, *arguments) -> Future:  # type: ignore[no-untyped-def, override]
        Lost.count += 1
        if Lost.count % 2:
            return super().submit(work, *arguments)
        lost: Future = Future()
        lost.set_exception(ConnectionError("the worker is gone"))
        return lost


def test_what_an_executor_loses_has_failed(movies: list[Path], tmp_path: Path) -> None:
    with Lost(1) as pool:
        found = track_many([movies[0], movies[2]], tmp_path / "out", GATED, executor=pool)
    assert [outcome.state for outcome in found] == ["done", "failed"]
    assert "the worker is gone" in found[1].why


def test_a_killed_process_is_one_failure(movies: list[Path], tmp_path: Path) -> None:
    found = run_many(KillsItself(GATED), [movies[k] for k in (2, 0, 3)], tmp_path / "out", jobs=2)
    assert [outcome.state for outcome in found] == ["failed", "done", "done"]
    assert "was killed" in found[0].why


def test_an_interruption_leaves_whole_outputs(tmp_path: Path) -> None:
    for seed in range(8):
        write(tmp_path / f"{seed}.csv", movie(seed, frames=12))
    sources = sorted(tmp_path.glob("*.csv"))
    command = [Path(sys.executable).with_name("outbid"), "track", *sources, "--out-dir", tmp_path / "out"]
    command += ["--jobs", "2", "--max-distance", "3"]
    with subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while not list((tmp_path / "out").glob("*.csv")) and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode in (0, 130), said
    outputs = [path for path in (tmp_path / "out").iterdir() if path.suffix == ".csv"]
    assert outputs
    for path in outputs:
        assert len(read_tracks(path).detections) == 480
    assert {path.suffix for path in (tmp_path / "out").iterdir()} <= {".csv", ".json"}


def test_many_images(tmp_path: Path) -> None:
    sources = [tiff(tmp_path), hdf5(tmp_path)]
    done = run("detect", *sources, "--out-dir", tmp_path / "out", "--radius", 1.5, "--frames", ":2")
    assert done.exit_code == 2  # both would be movie.csv
    assert "Rename one" in done.stderr
    moved = tmp_path / "other" / "movie.h5"
    moved.parent.mkdir()
    sources[1].rename(moved)
    job = DetectJob(DetectionSettings(radius=1.5))
    found = detect_many([sources[0], moved], tmp_path / "out", job)
    seen = read_detections(found[1].output)
    assert len(seen) == 21
    assert [outcome.summary["detections"] for outcome in found if outcome.summary] == [len(seen)] * 2
    assert Path(found[1].output).name == "other_movie.csv"
    assert [each.state for each in detect_many([sources[0], moved], tmp_path / "out", job)] == ["kept"] * 2
    assert read_record(found[0].output)["request"]["radius"] == 1.5


def test_words_that_make_no_sense(movies: list[Path], tmp_path: Path) -> None:
    assert run("track", *movies).exit_code == 2
    assert run("track", *movies, "--out-dir", tmp_path / "o", "-o", tmp_path / "x.csv").exit_code == 2
    assert run("track", movies[0], "--out-dir", movies[1]).exit_code == 2
    with pytest.raises(SettingsError, match=r"\.gold is no format"):
        track_many(movies, tmp_path / "out", suffix=".gold")


def test_one_model_for_all_movies(tmp_path: Path) -> None:
    paths = [tmp_path / f"m{seed}.csv" for seed in range(3)]
    for seed, path in enumerate(paths):
        write(path, movie(seed, step=0.2 + 0.1 * seed, frames=12))
    model = tmp_path / "model.json"
    succeed("learn", *paths, "-o", model)
    held = json.loads(model.read_text())
    steps = [each["step"][0] for each in held["movies"]]
    assert steps == sorted(steps)
    assert held["known"]["step"][0] == steps[1]
    assert held["spread"]["step"] > 0.03
    assert_refused(run("learn", *paths, "-o", model), 2, "--overwrite")
    succeed("track", *paths, "--out-dir", tmp_path / "out", "--model", model)
    records = [read_record(tmp_path / "out" / path.name) for path in paths]
    assert {record["learned"]["step"][0] for record in records} == {held["known"]["step"][0]}
    assert {record["learned"]["end"] for record in records} == {held["known"]["end"]}
    assert len(records[0]["learned"]["known"]) == 8
    output = tmp_path / "one.csv"
    succeed("track", paths[0], "-o", output, "--model", model, "--fixed", "end=0.25")
    assert read_record(output)["settings"]["fixed"]["end"] == 0.25
    assert_refused(run("track", paths[0], "-o", tmp_path / "x.csv", "--model", output), 3, "is no model")
    write(tmp_path / "empty.csv", Detections.from_table([], []))
    done = run("learn", tmp_path / "empty.csv", "-o", tmp_path / "n.json")
    assert_refused(done, 3, "nothing can be learned")


@pytest.fixture
def tracked(movies: list[Path], tmp_path: Path) -> list[Path]:
    """Tracks of three movies in one folder, the second of which is damaged, and their truths in another."""
    write(movies[1], movie(1), overwrite=True)
    for folder, gate in (("tracks", 0.8), ("truth", 3)):
        succeed("track", *movies[:3], "--out-dir", tmp_path / folder, "--max-distance", gate)
    (tmp_path / "tracks" / "b.csv").write_text("track_id,frame,z,y,x\n0,0,0,0,inf\n")
    return [tmp_path / "tracks" / f"{name}.csv" for name in "abc"]


MANY = {
    "convert": (["--suffix", ".parquet"], ["--fill-gaps"], ".parquet"),
    "score": (["--truth", "truth", "--gate", 1], ["--gate", 2], ".json"),
    "report": (["--truth", "truth", "--gate", 1], ["--gate", 2], ".html"),
    "advise": ([], ["--max-distance", 2], ".json"),
}
"""Options of commands, more that change the output, and its suffix."""


@pytest.mark.parametrize("command", MANY)
@pytest.mark.usefixtures("here")
def test_every_command_takes_many(command: str, tracked: list[Path]) -> None:
    options, more, suffix = MANY[command]

    def said(*others: object) -> str:
        done = run(command, *tracked, "--out-dir", "out", *options, *others)
        assert done.exit_code == 3
        assert str(tracked[1]) in done.stderr
        return next(line for line in done.stderr.splitlines() if "kept" in line)

    assert said().startswith("2 done, 0 kept, 1 failed")
    made = {path.stem: path.read_bytes() for path in Path("out").glob(f"*{suffix}")}
    assert {*made} == {"a", "c"}
    assert said().startswith("0 done, 2 kept, 1 failed")
    assert said(*more).startswith("0 done, 0 kept, 3 failed")
    content = tracked[0].read_text().splitlines(keepends=True)
    tracked[0].write_text("".join(content[:-1]))
    assert said("--overwrite").startswith("1 done, 1 kept, 1 failed")
    assert Path("out", f"c{suffix}").read_bytes() == made["c"]
    assert Path("out", f"a{suffix}").read_bytes() != made["a"]


def test_many_scores_are_those_of_each_and_have_limits(tracked: list[Path], tmp_path: Path) -> None:
    good = [tracked[0], tracked[2]]
    options = ["--truth", tmp_path / "truth", "--out-dir", tmp_path / "out", "--jobs", 2, "--gate", 1]
    done = run("score", *good, *options, "--fail-under", "link_f1=1")
    assert done.exit_code == 1
    assert done.stderr.count("link_f1 is 0.") == 2
    one = run("score", good[0], tmp_path / "truth" / "a.csv", "--gate", 1, "--json")
    assert json.loads(one.stdout)["values"] == json.loads((tmp_path / "out" / "a.json").read_text())["values"]
    succeed("score", *good, *options, "--fail-under", "link_f1=0.1")
    assert run("score", *good, *options, "--fail-under", "beauty=0.1").exit_code == 2
    write(tmp_path / "truth" / "a.xml", movie(3))
    done = run("score", *good, *options)
    assert done.exit_code == 3
    assert "must hold one truth named a" in done.stderr
    for words in ((), good[:1], [*good, good[0]], [*good, "--truth", tmp_path / "truth" / "a.csv"]):
        assert run("score", *words).exit_code == 2
