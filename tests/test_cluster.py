"""A real cluster of processes: the bytes of one process, killed workers, a scheduler that is lost."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import assert_refused, run, succeed
from other_processes import limited

from outbid import Detections, ResourceError, SettingsError, TrackingSettings
from outbid import write_detections as write
from outbid.work.chunks.movie import How, track_in_chunks
from outbid.work.cluster import Cluster, Workers, connected
from outbid.work.jobs import TrackJob

pytest.importorskip("distributed", reason="distributed is not installed: pip install 'outbid[cluster]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # of dask, about what it ends

JOB = TrackJob(TrackingSettings(max_distance=1.5, max_gap=1))
HOW = {"rows": 40_000}


def big(path: Path, frames: int = 16) -> Path:
    """Frames that are runs of their own: 31,000 detections each."""
    rng = np.random.default_rng(0)
    place, rows = rng.uniform(0, 200, (31_000, 3)), []
    for _ in range(frames):
        place = place + rng.normal(0, 0.2, place.shape)
        rows.append(place)
    write(path, Detections.from_table(np.repeat(np.arange(frames), 31_000), np.concatenate(rows)))
    return path


@pytest.fixture(scope="module")
def movie(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A movie, and its tracks by one process."""
    folder = tmp_path_factory.mktemp("movie")
    source = big(folder / "a.parquet")
    succeed("track", source, "-o", folder / "whole.parquet", "--max-distance", 1.5, "--max-gap", 1)
    return source, (folder / "whole.parquet").read_bytes()


@pytest.fixture(scope="module")
def two() -> Iterator[Cluster]:
    """Two workers, which take seconds to start."""
    with connected(Workers("local", count=2)) as cluster:
        yield cluster


def pids(cluster: Cluster) -> list[int]:
    return [int(pid) for pid in cluster.client.run(os.getpid).values()]


def test_two_workers_make_the_bytes_of_one_process_at_the_same_time(
    movie: tuple[Path, bytes], two: Cluster, tmp_path: Path
) -> None:
    source, wanted = movie
    out = tmp_path / "out.parquet"
    stats = track_in_chunks(source, out, JOB, How(two, **HOW))
    assert stats["ranges"] == 15
    assert out.read_bytes() == wanted
    tasks = json.loads((tmp_path / "out.parquet.tasks.json").read_text())["tasks"]
    assert len(tasks) == 30
    assert len({task["worker"] for task in tasks}) == 2
    assert any(
        a["worker"] != b["worker"] and a["begun"] < b["ended"] and b["begun"] < a["ended"]
        for a in tasks
        for b in tasks
    )


@pytest.mark.nightly
def test_workers_that_are_killed_change_nothing(
    movie: tuple[Path, bytes], two: Cluster, tmp_path: Path
) -> None:
    source, wanted = movie
    killed, stop = [], threading.Event()

    def kill() -> None:
        while not stop.wait(1.5) and len(killed) < 4:
            with contextlib.suppress(Exception):
                pid = pids(two)[0]
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill)
    os.kill(pids(two)[0], signal.SIGKILL)
    killer.start()
    try:
        track_in_chunks(source, tmp_path / "out.parquet", JOB, How(two, **HOW))
    finally:
        stop.set()
        killer.join()
    assert (tmp_path / "out.parquet").read_bytes() == wanted


@pytest.mark.nightly
def test_four_workers_of_which_one_is_slow(movie: tuple[Path, bytes], tmp_path: Path) -> None:
    source, wanted = movie
    with connected(Workers("local", count=4)) as four:
        slow = pids(four)[0]

        def halt() -> None:
            for _ in range(4):
                os.kill(slow, signal.SIGSTOP)
                time.sleep(1.0)
                os.kill(slow, signal.SIGCONT)
                time.sleep(0.1)

        halting = threading.Thread(target=halt)
        halting.start()
        try:
            track_in_chunks(source, tmp_path / "out.parquet", JOB, How(four, **HOW))
        finally:
            halting.join()
    assert (tmp_path / "out.parquet").read_bytes() == wanted


@pytest.mark.nightly
def test_a_worker_with_a_full_disk_leaves_its_work_to_others(
    movie: tuple[Path, bytes], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, wanted = movie
    out = tmp_path / "out.parquet"
    with connected(Workers("local", count=2)) as cluster:
        first, second = cluster.client.scheduler_info()["workers"]
        cluster.client.run(limited, 10_000, workers=[first])
        track_in_chunks(source, out, JOB, How(cluster, **HOW))
        assert out.read_bytes() == wanted
        assert first in caplog.text
        tasks = json.loads((tmp_path / "out.parquet.tasks.json").read_text())["tasks"]
        assert {task["worker"] for task in tasks} == {second}
        out.unlink()
        cluster.client.run(limited, 10_000, workers=[second])
        with pytest.raises(ResourceError, match=r"npz cannot be written on worker tcp:.*arge.*--resume"):
            track_in_chunks(source, out, JOB, How(cluster, **HOW))
        assert not out.exists()
        cluster.client.run(limited, -1)
        track_in_chunks(source, out, JOB, How(cluster, resume=True, **HOW))
    assert out.read_bytes() == wanted


@pytest.mark.nightly
def test_detect_track_and_score_by_1_2_and_4_workers(tmp_path: Path) -> None:
    """A rendered movie in OME-Zarr, with a gate and learned."""
    from containers import ome_zarr

    images = ome_zarr(tmp_path)
    made: dict[str, set[bytes]] = {"spots": set(), "gated": set(), "learned": set(), "scores": set()}
    for count in (1, 2, 4):
        with connected(Workers("local", count=count)) as cluster:
            where = ["--scheduler", cluster.client.scheduler.address]
            spots, gated, learned = (tmp_path / f"{name}{count}.parquet" for name in ("s", "g", "l"))
            for command in (
                ["detect", images, "-o", spots, "--channel", 1, "--radius", 1.5, *where],
                ["track", spots, "-o", gated, "--max-distance", 3, *where],
                ["track", spots, "-o", learned, *where],
            ):
                succeed(*command)
            scores = run("score", learned, gated, "--gate", 1, *where)
            for name, content in (("spots", spots), ("gated", gated), ("learned", learned)):
                made[name].add(pa.parquet.read_table(content).to_pandas().to_csv().encode())
            made["scores"].add(scores.stdout_bytes)
    assert {name: len(each) for name, each in made.items()} == dict.fromkeys(made, 1)


@pytest.mark.nightly
def test_a_scheduler_that_is_lost_ends_the_run_which_is_resumed(
    movie: tuple[Path, bytes], two: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbid.work.cluster._LOST", 2.0)
    source, wanted = movie
    address = f"127.0.0.1:{np.random.default_rng().integers(20_000, 60_000)}"
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    scheduler = subprocess.Popen(
        [*start, "--host", address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://{address}", "--nthreads", "1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    out = tmp_path / "out.parquet"
    try:
        until = time.monotonic() + 30
        while True:
            try:
                with connected(Workers(scheduler=f"tcp://{address}")) as cluster:

                    def end(done: int, _total: int) -> None:
                        if done == 3:
                            scheduler.kill()

                    with pytest.raises(ResourceError, match="--resume"):
                        track_in_chunks(source, out, JOB, How(cluster, progress=end, **HOW))
                break
            except ResourceError:
                if time.monotonic() > until:
                    raise
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert not out.exists()
    track_in_chunks(source, out, JOB, How(two, resume=True, **HOW))
    assert out.read_bytes() == wanted


def test_errors_of_a_task_are_those_of_one_process(two: Cluster, tmp_path: Path) -> None:
    source = tmp_path / "a.parquet"
    rows = {"frame": [0, 0, 1], "z": [0.0, 1.0, 2.0], "y": [0.0, np.inf, 0.0], "x": [0.0] * 3}
    pa.parquet.write_table(pa.table(rows), source)
    with pytest.raises(Exception, match=r"row 2: y is inf"):
        track_in_chunks(source, tmp_path / "out.parquet", JOB, How(two))


def test_the_commands_join_a_cluster_that_is_there(
    movie: tuple[Path, bytes], two: Cluster, tmp_path: Path
) -> None:
    from containers import ome_zarr

    address = two.client.scheduler.address
    source, wanted = movie
    out = tmp_path / "out.parquet"
    options = ["--max-distance", 1.5, "--max-gap", 1, "--scheduler", address]
    assert "Dashboard" in succeed("track", source, "-o", out, *options).stderr
    assert out.read_bytes() == wanted
    images = ome_zarr(tmp_path)
    for where in ([], ["--scheduler", address]):
        output = tmp_path / f"spots{len(where)}.csv"
        succeed("detect", images, "-o", output, "--channel", 1, "--radius", 1.5, *where)
    assert (tmp_path / "spots0.csv").read_bytes() == (tmp_path / "spots2.csv").read_bytes()


def test_many_movies_and_scores_by_a_cluster(two: Cluster, tmp_path: Path) -> None:
    where = ["--scheduler", two.client.scheduler.address]
    seen = Detections.from_table([0, 0, 1, 1], [[0, 0, 0], [9, 9, 9], [0, 0, 1], [9, 9, 8]])
    for name in ("a", "b"):
        write(tmp_path / f"{name}.csv", seen)
    spots = [tmp_path / "a.csv", tmp_path / "b.csv"]
    track = ["track", *spots, "--max-distance", 3, "--out-dir"]
    score = ["score", tmp_path / "here" / "a.csv", tmp_path / "here" / "b.csv", "--truth", tmp_path / "here"]
    one = ["score", tmp_path / "here" / "a.csv", tmp_path / "there" / "b.csv", "--gate", 1]
    for folder, given in (("here", []), ("there", where)):
        for command in ([*track, tmp_path / folder], [*score, "--out-dir", tmp_path / f"{folder}_scores"]):
            assert "2 done, 0 kept, 0 failed" in succeed(*command, *given).stderr
    for folder, name in (("", "a.csv"), ("_scores", "b.json")):
        made = {(tmp_path / f"{place}{folder}" / name).read_bytes() for place in ("here", "there")}
        assert len(made) == 1
    done = [run(*one, *given) for given in ([], where)]
    assert [each.exit_code for each in done] == [0, 0]
    assert done[0].stdout == done[1].stdout


def test_what_makes_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ({}, {"kind": "local", "scheduler": "tcp://a:1"}, {"kind": "cloud"}):
        with pytest.raises(SettingsError):
            Workers(**wrong)
    monkeypatch.setattr("outbid.work.cluster._LOST", 0.5)
    write(tmp_path / "a.parquet", Detections.from_table([0], [[0, 0, 0]]))
    options = ["--max-distance", 1, "--scheduler", "tcp://127.0.0.1:9"]
    assert_refused(run("track", tmp_path / "a.parquet", *options), 4, "No scheduler answers")
