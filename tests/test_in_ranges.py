"""Movies in ranges of frames: the bytes of one process, whatever is done where and how often; in parts."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import assert_refused, run, succeed
from containers import hdf5
from scipy.spatial import cKDTree

from outbid import (
    Detections,
    InputError,
    ResourceError,
    SettingsError,
    TrackingSettings,
    open_images,
    read_detections,
    read_record,
    read_tracks,
)
from outbid import track as track_whole
from outbid import write_detections as write
from outbid.edit.crop import Crop
from outbid.formats import write_tracks
from outbid.formats.tables.parquet import frames_in, rows_between
from outbid.gated.batches import RECORDED
from outbid.settings.detection import DetectionSettings
from outbid.work.chunks.movie import How, detect_in_chunks, track_in_chunks
from outbid.work.chunks.tasks import Task, here, side_by_side
from outbid.work.jobs import DetectJob, TrackJob


def movie(seed: int, lost: tuple[int, ...] = ()) -> Detections:
    """Sixty particles that are missed now and then; some frames may hold nothing."""
    rng = np.random.default_rng(seed)
    place, frames, rows = rng.uniform(0, 20, (60, 3)), [], []
    for frame in range(16):
        place = place + rng.normal(0, 0.3, place.shape)
        seen = place[(rng.random(60) < 0.85) & (frame not in lost)]
        frames.append(np.full(len(seen), frame))
        rows.append(seen)
    position = np.concatenate(rows)
    features = {"mass": rng.random(len(position))}
    return Detections.from_table(np.concatenate(frames), position, unit="micrometer", features=features)


@pytest.fixture(autouse=True)
def _small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbid.gated.linking.RUN", 100)


def whole(source: Path, output: Path, job: TrackJob) -> dict[str, Any]:
    """What `outbid track` writes."""
    done = track_whole(read_detections(source), job.settings)
    counted = {name: done.stats[name] for name in RECORDED if name in done.stats}
    record = job.record(job.origin(str(source)), done.settings) | counted
    write_tracks(output, done.tracks, record=record)
    return dict(done.stats)


@pytest.mark.smoke
@pytest.mark.parametrize("lost", [(), (0, 5, 6, 15)])
@pytest.mark.parametrize("gap", [0, 2])
def test_the_bytes_of_one_process(gap: int, lost: tuple[int, ...], tmp_path: Path) -> None:
    source = tmp_path / "a.parquet"
    write(source, movie(1, lost))
    job = TrackJob(TrackingSettings(max_distance=1.5, max_gap=gap, spacing=(2.0, 1.0, 1.0)))
    stats = whole(source, tmp_path / "whole.parquet", job)
    for rows in (1, 150, 400, 10**6):
        made = track_in_chunks(source, tmp_path / "out.parquet", job, How(rows=rows, overwrite=True))
        assert (made["ranges"] > 1) == (rows < 10**6), rows
        assert {name: made[name] for name in stats} == stats
        assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert not (tmp_path / "out.parquet.parts").exists()


def backwards_and_twice(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
    """As a cluster may do them that lost its first workers."""
    for task in reversed(tasks):
        task()
        yield task()


def wait_for_the_record(folder: Path) -> None:
    """Until the input is hashed, beside the first tasks."""
    until = time.monotonic() + 60
    while "draft" in (folder / "run.json").read_text():
        assert time.monotonic() < until
        time.sleep(0.01)


class Dies:
    """A runner that is killed after some tasks."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
        for task in tasks:
            if self.left == 0:
                wait_for_the_record(task.output.parent)
                raise KeyboardInterrupt
            self.left -= 1
            yield task()


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0, 2])
def test_tasks_done_twice_in_any_order_and_resumed(gap: int, tmp_path: Path) -> None:
    source, out = tmp_path / "a.parquet", tmp_path / "out.parquet"
    write(source, movie(2))
    job = TrackJob(TrackingSettings(max_distance=1.5, max_gap=gap))
    track_in_chunks(source, tmp_path / "whole.parquet", job, How(rows=150))
    track_in_chunks(source, out, job, How(backwards_and_twice, rows=150))
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    for after in (0, 3, 12):
        out.unlink()
        with pytest.raises(KeyboardInterrupt):
            track_in_chunks(source, out, job, How(Dies(after), rows=150))
        assert not out.exists()
        with pytest.raises(SettingsError, match="--resume"):
            track_in_chunks(source, out, job, How(rows=150))
        other = TrackJob(TrackingSettings(max_distance=1.0, max_gap=gap))
        with pytest.raises(SettingsError, match="other settings"):
            track_in_chunks(source, out, other, How(rows=150, resume=True))
        counted: list[dict[str, Any]] = []

        def count(tasks: Sequence[Task], counted: list = counted) -> Iterator[dict[str, Any]]:
            for account in here(tasks):
                counted.append(account)
                yield account

        stats = track_in_chunks(source, out, job, How(count, rows=150, resume=True))
        assert len(counted) == 2 * stats["ranges"] - after
        assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()


@pytest.mark.parametrize("gap", [0, 1])
def test_rows_are_written_while_later_ranges_are_linked(gap: int, tmp_path: Path) -> None:
    """Unless gaps are closed, for which all ranges must be linked; the bytes are the same."""
    source, out = tmp_path / "a.parquet", tmp_path / "out.parquet"
    write(source, movie(2))
    job = TrackJob(TrackingSettings(max_distance=1.5, max_gap=gap, device="cpu"))
    kinds: list[str] = []

    def newest_first(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
        """Tasks of the first ranges before those of later ones; what was added last goes first."""
        wait_for_the_record(tasks[0].output.parent)
        left, known = list(tasks[::-1]), len(tasks)
        while left:
            account = left.pop()()
            kinds.append(account["file"].split("-")[0])
            yield account
            left += tasks[known:]
            known = len(tasks)

    track_in_chunks(source, tmp_path / "whole.parquet", job, How(rows=150))
    track_in_chunks(source, out, job, How(newest_first, rows=150))
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    ranges = kinds.count("links")
    assert kinds.count("part") == ranges > 3
    in_turn = ["links", "part"] * ranges
    assert kinds == (sorted(in_turn) if gap else in_turn)


@pytest.mark.parametrize("resume", [False, True])
def test_what_was_linked_before_the_input_was_hashed_is_done_again(
    resume: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed then, a run leaves files of which nobody knows whether they are of this input."""
    source, out = tmp_path / "a.parquet", tmp_path / "out.parquet"
    write(source, movie(2))
    job = TrackJob(TrackingSettings(max_distance=1.5, device="cpu"))
    track_in_chunks(source, tmp_path / "whole.parquet", job, How(rows=150))
    late = threading.Event()
    origin = TrackJob.origin

    def slow(self: TrackJob, given: str) -> dict[str, str]:
        late.wait(60)
        return origin(self, given)

    def killed(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
        yield tasks[0]()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(TrackJob, "origin", slow)
        with pytest.raises(KeyboardInterrupt):
            track_in_chunks(source, out, job, How(killed, rows=150))
        late.set()
    folder = tmp_path / "out.parquet.parts"
    assert "draft" in (folder / "run.json").read_text()
    [left] = folder.glob("links-*.npz")
    left.write_bytes(b"of another input")
    track_in_chunks(source, out, job, How(rows=150, resume=resume))
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert not folder.exists()


def test_parts_are_read_back_as_one_by_every_command(tmp_path: Path) -> None:
    source, out = tmp_path / "a.parquet", tmp_path / "out.parquet"
    write(source, movie(3))
    job = TrackJob(TrackingSettings(max_distance=1.5))
    whole(source, tmp_path / "whole.parquet", job)
    track_in_chunks(source, out, job, How(rows=150), parts=True)
    assert len(list(out.iterdir())) > 4
    one, many = read_tracks(tmp_path / "whole.parquet"), read_tracks(out)
    assert many.track_id.tolist() == one.track_id.tolist()
    assert many.detections.position.tobytes() == one.detections.position.tobytes()
    succeed("convert", out, tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    succeed("score", out, tmp_path / "whole.parquet", "--fail-under", "link_f1=1")
    # And as the input: of ranges, and of a stream.
    track_in_chunks(out, tmp_path / "b.parquet", job, How(rows=300))
    assert read_tracks(tmp_path / "b.parquet").track_id.tolist() == one.track_id.tolist()
    succeed("track", out, "-o", tmp_path / "c.parquet", "--max-distance", "1.5", "--stream")
    assert read_tracks(tmp_path / "c.parquet").track_id.tolist() == one.track_id.tolist()
    with pytest.raises(SettingsError, match="overwrite"):
        track_in_chunks(source, out, job, How(rows=150), parts=True)
    track_in_chunks(source, out, job, How(rows=400, overwrite=True), parts=True)
    assert read_tracks(out).track_id.tolist() == one.track_id.tolist()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(SettingsError, match="no folder of parts"):
        track_in_chunks(source, out, job, How(rows=400, overwrite=True), parts=True)


@pytest.mark.smoke
def test_rows_and_frames_are_found_in_groups_and_parts(tmp_path: Path) -> None:
    seen = movie(4, (3, 4))
    write(tmp_path / "a.parquet", seen)
    rows = pa.parquet.read_table(tmp_path / "a.parquet")
    pa.parquet.write_table(rows, tmp_path / "b.parquet", row_group_size=7)
    (tmp_path / "c.parquet").mkdir()
    for number, at in enumerate(range(0, len(rows), 100)):
        pa.parquet.write_table(
            rows[at : at + 100], tmp_path / "c.parquet" / f"part-{number:06d}.parquet", row_group_size=30
        )
    frames, counts = np.unique(seen.frame, return_counts=True)
    for name in "abc":
        path = tmp_path / f"{name}.parquet"
        found = frames_in(path)
        assert (found[0].tolist(), found[1].tolist()) == (frames.tolist(), counts.tolist())
        for begin, end in ((0, 0), (0, 5), (95, 105), (13, len(seen))):
            part = rows_between(path, begin, end)
            assert part.position.tobytes() == seen.position[begin:end].tobytes()
            assert part.features["mass"].tolist() == seen.features["mass"][begin:end].tolist()
        with pytest.raises(InputError, match="Was it replaced"):
            rows_between(path, 0, len(seen) + 1)
    back = tmp_path / "d.parquet"
    pa.parquet.write_table(pa.table({"frame": [0, 2, 1], "y": [0.0] * 3, "x": [0.0] * 3}), back)
    with pytest.raises(InputError, match="decrease"):
        frames_in(back)


def test_what_ranges_cannot_do_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", movie(5))
    for settings in (TrackingSettings(), TrackingSettings(1.0)):
        with pytest.raises(SettingsError, match="Parquet"):
            track_in_chunks(tmp_path / "a.parquet", tmp_path / "o.csv", TrackJob(settings))
    write(tmp_path / "none.parquet", Detections.from_table([], []))
    job = TrackJob(TrackingSettings(1.0))
    assert track_in_chunks(tmp_path / "none.parquet", tmp_path / "o.parquet", job)["tracks"] == 0
    assert len(read_tracks(tmp_path / "o.parquet").detections) == 0


@pytest.mark.smoke
def test_a_stream_that_closes_gaps_has_the_bytes_of_the_whole(tmp_path: Path) -> None:
    source, outputs = tmp_path / "a.parquet", [tmp_path / "b.parquet", tmp_path / "c.parquet"]
    write(source, movie(7))
    for output, how in zip(outputs, ([], ["--stream", "--memory", "0.001"]), strict=True):
        succeed("track", source, "-o", output, "--max-distance", 1.5, "--max-gap", 2, *how)
    one = read_tracks(outputs[0])
    assert (np.diff(one.detections.frame[one.links], axis=1) > 1).any()
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


@pytest.mark.slow
def test_what_is_learned_in_ranges_is_near_to_the_whole(tmp_path: Path) -> None:
    source, out = tmp_path / "a.parquet", tmp_path / "out.parquet"
    write(source, movie(6))
    job = TrackJob(TrackingSettings(divisions=False))
    stats = track_in_chunks(source, out, job, How(rows=300))
    assert stats["ranges"] > 2
    again = tmp_path / "again.parquet"
    for run_tasks in (backwards_and_twice, partial(side_by_side, at_once=3)):
        track_in_chunks(source, again, job, How(run_tasks, rows=300, overwrite=True))
        assert again.read_bytes() == out.read_bytes()
    streamed = tmp_path / "streamed.parquet"  # 300 rows of 5,000 bytes
    succeed("track", source, "-o", streamed, "--stream", "--no-divisions", "--memory", "0.0015")
    assert streamed.read_bytes() == out.read_bytes()
    found, one = read_tracks(out), track_whole(read_detections(source), job.settings).tracks
    same = {*map(tuple, found.links.tolist())} & {*map(tuple, one.links.tolist())}
    assert len(same) > 0.97 * len(one.links)
    assert abs(len(found.links) - len(one.links)) < 0.02 * len(one.links)
    assert (found.predecessors <= 1).all()
    assert (np.diff(found.detections.frame[found.links], axis=1) > 1).sum() > 50
    assert found.link_probability is not None
    learned = read_record(out)["model"]
    assert len(learned["parts"]) == 3
    assert len(learned["known"]) == 8


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("radius", "suffix"),
    [
        (1.5, ".csv"),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in ((None, ".csv"), (None, ".parquet"))),
        pytest.param(1.5, ".parquet", marks=pytest.mark.slow),
    ],
)
def test_detection_in_ranges_is_that_of_one_process(
    radius: float | None, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = hdf5(tmp_path)
    options = [] if radius is None else ["--radius", radius]
    succeed("detect", source, "-o", tmp_path / f"whole{suffix}", *options)
    job = DetectJob(DetectionSettings(radius=radius), workers=2)
    for voxels in (1, 30_000, 10**9):
        monkeypatch.setattr("outbid.work.chunks.movie._VOXELS", voxels)
        output = tmp_path / f"out{suffix}"
        summary = detect_in_chunks(str(source), output, job, How(backwards_and_twice, overwrite=True))
        assert summary["ranges"] == {1: 3, 30_000: 2, 10**9: 1}[voxels]
        assert output.read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()


def test_a_graph_is_written_a_group_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the tracks of one that is written as a whole, from ranges and by `outbid convert`."""
    pytest.importorskip("geff", reason="GEFF is not installed: pip install 'outbid[geff]'")
    monkeypatch.setattr("outbid.formats.tables.parquet_write.GROUP", 30)
    monkeypatch.setattr("outbid.formats.graphs.geff_write._CHUNK", 200)
    source = tmp_path / "a.parquet"
    write(source, movie(7, (3,)))
    job = TrackJob(TrackingSettings(max_distance=1.5, max_gap=1))
    whole(source, tmp_path / "whole.parquet", job)
    one = read_tracks(tmp_path / "whole.parquet")
    write_tracks(tmp_path / "whole.geff", one)
    track_in_chunks(source, tmp_path / "ranges.geff", job, How(rows=150))
    succeed("convert", tmp_path / "whole.parquet", tmp_path / "convert.geff")
    stated = [
        json.loads((tmp_path / f"{name}.geff" / ".zattrs").read_text())["geff"]["axes"]
        for name in ("whole", "ranges", "convert")
    ]
    assert stated[0] == stated[1] == stated[2]
    from geff.validate.structure import validate_structure

    for name in ("ranges", "convert"):
        validate_structure(tmp_path / f"{name}.geff")
        found = read_tracks(tmp_path / f"{name}.geff")
        assert found.links.tolist() == one.links.tolist()
        assert found.detections.position.tobytes() == one.detections.position.tobytes()
        assert found.detections.features["mass"].tolist() == one.detections.features["mass"].tolist()
        assert found.detections.unit == "micrometer"
        assert np.array_equal(found.link_cost, one.link_cost)
        assert np.array_equal(found.link_margin, one.link_margin)
        assert read_record(tmp_path / f"{name}.geff") == read_record(tmp_path / "whole.parquet")
    rows = pa.parquet.read_table(tmp_path / "whole.parquet")
    twice = rows.set_column(0, "track_id", pa.array(np.zeros(len(rows), np.int64)))
    pa.parquet.write_table(twice, tmp_path / "twice.parquet", row_group_size=50)
    assert_refused(run("convert", tmp_path / "twice.parquet", tmp_path / "twice.geff"), 3, "one place")


def test_a_frame_larger_than_the_memory_is_refused_and_read_in_regions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message names --region; the spots of two regions are those of the whole frame."""
    y, x = np.ogrid[:128, :200]
    rng = np.random.default_rng(4)
    place = rng.uniform(8, [120, 192], (40, 2))
    light = 30 + 300 * sum(np.exp(-((y - v) ** 2 + (x - u) ** 2) / 6) for v, u in place)
    movie = open_images(rng.poisson(light)[None].astype(np.uint16), axes="TYX")
    settings = DetectionSettings(radius=2.45, radius_z=2.45, gain=1.0, offset=0.0, device="cpu")
    whole, _ = DetectJob(settings).detect(movie)
    monkeypatch.setattr("outbid.formats.files.memory.free_memory", lambda: 128 * 200 * 24)
    monkeypatch.setattr("outbid.work.jobs._WHOLE_FRAMES", 1000)
    with pytest.raises(ResourceError, match="--region Z0:Z1"):
        DetectJob(settings).detect(movie)
    parts = [DetectJob(settings, crop=Crop(f":,:,{part}")).detect(movie)[0] for part in (":100", "100:")]
    found = np.concatenate([part.position for part in parts])
    assert len(whole) == len(found) > 30
    assert cKDTree(whole.position).query(found)[0].max() < 0.1
