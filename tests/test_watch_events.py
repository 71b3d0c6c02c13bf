"""Events while a movie is recorded: which conditions are met, and what is done then."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import images_of, truth_of, write_frame

from outbid import Detections, SettingsError, track
from outbid.watching.account import How
from outbid.watching.acting import Actor
from outbid.watching.events import Event, Watch
from outbid.watching.following import Followed
from outbid.watching.watch import watch


def frame(
    number: int, places: dict[int, tuple[float, float]], parents: dict[int, int] | None = None
) -> Followed:
    """A frame with these tracks at y, x, as bright as their number."""
    track, position = list(places), np.array([(0.0, *place) for place in places.values()]).reshape(-1, 3)
    bright = {"bright": np.array(track, float)}
    seen = Detections(np.full(len(track), number, np.int32), position, features=bright)
    parent = np.array([(parents or {}).get(one, -1) for one in track], np.int64)
    return Followed(number, seen, np.array(track, np.int64), np.full(len(track), 0.9), parent)


def found(watching: Watch, *frames: Followed) -> list[tuple[int, int, str]]:
    return [(event.frame, event.track, event.when) for one in frames for event in watching.events(one, None)]


@pytest.mark.smoke
def test_an_event_is_given_when_its_condition_begins_to_be_met() -> None:
    steps = [frame(t, {0: (0, x), 1: (5, 5)}) for t, x in enumerate((0, 1, 4, 7, 8, 11))]
    assert found(Watch(["speed > 2"]), *steps) == [(2, 0, "speed > 2"), (5, 0, "speed > 2")]
    by_second = Watch(["speed > 2"])
    by_second.interval = 2.0
    assert found(by_second, *steps) == []
    assert found(Watch(["bright == 1"]), *steps) == [(0, 1, "bright == 1")]
    assert found(Watch(["mean(x) > 3.5"]), *steps) == [(0, 1, "mean(x) > 3.5"), (4, 0, "mean(x) > 3.5")]
    assert found(Watch(["length >= 3"]), *steps) == [(2, 0, "length >= 3"), (2, 1, "length >= 3")]


def test_speed_is_by_the_frame_also_over_a_gap() -> None:
    watching = Watch(["speed > 1"])
    assert watching.events(frame(0, {0: (0, 0)}), None) == []
    (event,) = watching.events(frame(3, {0: (0, 6)}), None)
    assert event.value == 2.0


def test_regions_and_divisions() -> None:
    steps = [frame(t, {0: (0, x), 1: (50, 50)}) for t, x in enumerate((0, 12, 15, 30, 12))]
    assert found(Watch(["enters :,:,10:20"]), *steps) == [
        (1, 0, "enters :,:,10:20"),
        (4, 0, "enters :,:,10:20"),
    ]
    assert found(Watch(["leaves :,:,10:20"]), *steps) == [(3, 0, "leaves :,:,10:20")]
    born = frame(0, {0: (0, 0)}), frame(1, {0: (0, 1), 5: (0, 2)}, {5: 0})
    assert found(Watch(["division"]), *born) == [(1, 0, "division")]


def test_a_track_is_lost_the_more_the_longer_it_is_unseen() -> None:
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 50, (60, 3)) + np.cumsum(rng.normal(0, 0.3, (20, 60, 3)), axis=0)
    rows, who = np.nonzero(rng.random((20, 60)) > 0.1)
    learned = track(Detections.from_table(rows, place[rows, who])).learned
    assert learned is not None
    assert len(learned.follow) > 1
    watching, values = Watch(["lost > 0"]), []
    watching.events(frame(0, {0: (0, 0), 1: (9, 9)}), learned)
    for t in range(1, len(learned.follow) + 1):
        values += [watching._lost(t, {1}, learned)[0]]
        watching.events(frame(t, {1: (9, 9)}), learned)
    assert values == sorted(values)
    assert values[0] < 0.5 < values[-1] == 1.0
    watching.events(frame(t + 1, {1: (9, 9)}), learned)
    assert 0 not in watching._tracks  # it is forgotten


@pytest.mark.parametrize("wrong", ["often", "speed >", "enters 1:2", "enters here"])
def test_what_is_no_condition(wrong: str) -> None:
    with pytest.raises(SettingsError):
        Watch([wrong])


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(SettingsError, match="Choose one of: bright"):
        found(Watch(["weight > 3"]), frame(0, {0: (0, 0)}))


EVENT = Event("speed > 2", 3, 7, (0.0, 1.0, 2.0), 2.5)


def test_a_line_a_command_and_a_function(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Actor(tmp_path / "a.jsonl").act([EVENT])
    assert json.loads(capfd.readouterr().out) == EVENT.as_dict()
    code = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"
    actor = Actor(tmp_path / "b.jsonl", f'"{sys.executable}" -c "{code}" "{tmp_path / "got"}"')
    actor.act([EVENT, replace(EVENT, track=8)])
    actor.finish()
    assert len((tmp_path / "got").read_text("utf-8").splitlines()) == 2
    called: list[Event] = []
    Actor(tmp_path / "c.jsonl", called.append).act([EVENT])
    assert called == [EVENT]


def test_what_was_done_is_not_done_again(tmp_path: Path) -> None:
    called: list[Event] = []
    Actor(tmp_path / "a.jsonl", called.append).act([EVENT])
    with (tmp_path / "a.jsonl").open("a") as log:
        log.write('{"when": "speed')  # a run was killed here
    again = Actor(tmp_path / "a.jsonl", called.append)
    again.act([EVENT, replace(EVENT, frame=4)])
    assert [event.frame for event in called] == [3, 4]
    assert again.count == 2
    assert (tmp_path / "a.jsonl").read_text("utf-8").splitlines()[-1] == json.dumps(called[-1].as_dict())


def test_commands_that_fail_or_are_not_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    failing = Actor(tmp_path / "a.jsonl", f'"{sys.executable}" -c "raise SystemExit(3)"')
    failing.act([EVENT])
    failing.finish()
    assert "exit code 3" in caplog.text
    with pytest.raises(SettingsError, match="Check the name"):
        Actor(tmp_path / "b.jsonl", "no-such-command").act([EVENT])
    with pytest.raises(SettingsError, match="Quote it"):
        Actor(tmp_path / "c.jsonl", 'echo "')


def test_events_of_a_movie_that_is_watched(tmp_path: Path) -> None:
    truth, folder, called = truth_of(10, particles=12, side=64), tmp_path / "images", list[Event]()
    folder.mkdir()
    for k, image in enumerate(images_of(truth, 10, (1, 64, 64))):
        write_frame(folder, k, image)
    record = watch(
        folder, tmp_path / "tracks.parquet", how=How(until=9, poll=0.02, learn=5), when=["y > 32"],
        do=called.append,
    )  # fmt: skip
    assert record["live"]["events"] == len(called) > 3
    assert all(event.place[1] > 32 for event in called)
    assert len({(event.track, event.frame) for event in called}) == len(called)
