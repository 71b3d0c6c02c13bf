"""What a watch writes, read in passing by another process: frames as they are linked, events, the end."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from recordings import images_of, truth_of, write_frame

from outbid import Detections
from outbid.watching.account import How
from outbid.watching.following import Followed
from outbid.watching.parts import GrowingOutput, frames_of, live_folder
from outbid.watching.reading import Reading, stop
from outbid.watching.tail import Tail, TailReader, tail_of
from outbid.watching.watch import watch

FRAMES = 40
TRUTH = truth_of(FRAMES, particles=18, side=64)
IMAGES = images_of(TRUTH, FRAMES, (1, 64, 64))


def frame_of(number: int, count: int = 3) -> Followed:
    """A frame that was linked; the probability of its first link is not known."""
    rng = np.random.default_rng(number)
    seen = Detections.from_table(np.full(count, number), rng.random((count, 3)))
    chance, parent = rng.random(count), np.full(count, -1)
    chance[:1] = np.nan
    return Followed(number, seen, np.arange(count) + number, chance, parent)


def same(one: Followed, other: Followed) -> bool:
    return one.frame == other.frame and all(
        np.array_equal(a, b, equal_nan=True)
        for a, b in (
            (one.detections.position, other.detections.position), (one.track, other.track),
            (one.probability, other.probability), (one.parent, other.parent),
        )
    )  # fmt: skip


@pytest.mark.smoke
def test_a_frame_is_read_once_it_is_whole(tmp_path: Path) -> None:
    tail, reader = Tail(tmp_path), TailReader(tmp_path)
    assert [*reader.new(0)] == []
    tail.took(0, 4, 104, 2)
    tail.linked(0, frame_of(4))
    tail.linked(0, frame_of(5, 0))
    path = tail_of(tmp_path, 0)
    whole = path.read_bytes()
    path.write_bytes(whole[:200])
    assert [*reader.new(0)] == []
    assert (reader.image, reader.taken, reader.behind) == ({4: 104}, 4, 2)
    path.write_bytes(whole)
    found = [*reader.new(0)]
    assert [one.frame for one in found] == [4, 5]
    assert same(found[0], frame_of(4))
    assert [*reader.new(0)] == []


def test_what_is_read_in_passing_is_what_was_linked(tmp_path: Path) -> None:
    """Each frame once, in order, with the number of its image; events as they come; then the record."""
    folder, output = tmp_path / "images", tmp_path / "tracks.parquet"
    folder.mkdir()
    how = How(poll=0.02, learn=8, keep=True)
    done: list[dict] = []
    run = threading.Thread(target=lambda: done.append(watch(folder, output, how=how, when=["speed > 1.5"])))
    run.start()
    reading, found, events = Reading(output), list[Followed](), list[dict]()
    for number in range(FRAMES):
        write_frame(folder, 100 + 2 * number, IMAGES[number])
        time.sleep(0.06)
        found += reading.new()
        events += reading.events()
    while reading.last < FRAMES - 1:
        found += reading.new()
        time.sleep(0.01)
    assert reading.record() is None
    assert stop(output)
    run.join()
    events += reading.events()
    assert done[0]["live"]["ended"] == "stop file"
    assert [one.frame for one in found] == [*range(FRAMES)]
    assert reading.tail.image == {frame: 100 + 2 * frame for frame in range(FRAMES)}
    parts = [one for path in sorted(live_folder(output).glob("part-*")) for one in frames_of(path)]
    assert len(parts) == FRAMES
    assert all(same(one, other) for one, other in zip(found, parts, strict=True))
    assert len(events) == done[0]["live"]["events"] > 0
    record = reading.record()
    assert record is not None
    assert record["links_changed"] == done[0]["links_changed"]
    assert not stop(output)
    assert reading.new() == []
    assert [one.frame for one in reading.between(7, 11)] == [7, 8, 9, 10, 11]
    late = Reading(output)
    assert [one.frame for one in late.new()] == [*range(FRAMES)]


def test_frames_of_a_part_that_is_written_anew_are_read_from_its_beginning(tmp_path: Path) -> None:
    """After a kill the same part may begin with other frames, and be as long or longer."""
    writer, reader = Tail(tmp_path), TailReader(tmp_path)
    writer.took(0, 0, 10, 0)
    writer.linked(0, frame_of(0))
    assert [one.frame for one in reader.new(0)] == [0]
    writer.drop(0)
    for frame in (0, 2, 3):
        writer.linked(0, frame_of(frame))
    again = [*reader.new(0)]
    assert [one.frame for one in again] == [0, 2, 3]
    assert same(again[1], frame_of(2))
    assert [*reader.new(0)] == []


def test_a_run_that_goes_on_after_it_was_killed_is_read_on(tmp_path: Path) -> None:
    """The last part was written, its state was not: it is written again, with more frames."""
    output = tmp_path / "tracks.parquet"
    state = {"seen": np.empty(0, np.int64)}
    with GrowingOutput(output, {"command": "watch"}, overwrite=False) as out:
        reading, found = Reading(output), list[Followed]()
        out.add([frame_of(0), frame_of(1)])
        found += reading.new()
        out.commit(state)
        kept = (out.folder / "state.npz").read_bytes()
        out.add([frame_of(2)])
        out.commit(state)
        found += reading.new()
        (out.folder / "state.npz").write_bytes(kept)
    with GrowingOutput(output, {"command": "watch"}, overwrite=False) as out:
        found += reading.new()
        out.add([frame_of(2), frame_of(3)])
        out.commit(state)
        out.add([frame_of(4)])
        found += reading.new()
    assert [one.frame for one in found] == [0, 1, 2, 3, 4]
    assert all(same(one, frame_of(one.frame)) for one in found)
