"""Pins that add, move and remove detections: in both ways to link, in tables and by the command."""

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from commands import succeed
from pinned_film import WAYS, film, held, pin, same
from scenes import backward, tissue

from outbid import Detections, SettingsError, TrackingSettings, Tracks, read_tracks, track, write_detections
from outbid.edit.proofreading import hold, resolve
from outbid.learned.learn import pinned as learned_pins
from outbid.pins import EDITS, Pin, append_pin, edited, read_pins


def place(row: int, shift: float = 0.0) -> tuple[int, tuple[float, float, float]]:
    """Where a detection of the film is, and places beside it."""
    z, y, x = film().detections.position[row].tolist()
    return int(film().detections.frame[row]), (z, y + shift, x)


def ends(tracks: Tracks) -> set[tuple[float, ...]]:
    """Frames and places of both ends of each link."""
    seen = np.column_stack([tracks.detections.frame, tracks.detections.position])
    return set(map(tuple, seen[tracks.links].reshape(-1, 8).tolist()))


def some_edits() -> list[Pin]:
    """Detections of the middle that go, are moved and come; one comes and goes again."""
    out, moved, again = (int(film().detections.rows_of(4).start) + k for k in (3, 9, 14))
    return [
        Pin("remove", (place(out),)), Pin("move", (place(moved), place(moved, 0.3))),
        Pin("add", (place(again, 0.4),)), Pin("add", (place(0, 0.2),)), Pin("remove", (place(0, 0.2),)),
    ]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pinned", [False, True])
def test_edits_are_linked_as_with_a_model_that_is_held(way: str, pinned: bool) -> None:
    """Under a gate as what was edited; else as where all, not only what is near, is solved again."""
    edits = [*some_edits(), *([pin("end", 5), pin("link", 0, 75)] if pinned else [])]
    found = resolve(held(way), edits)
    seen = found.run.tracks.detections
    assert len(seen) == len(film().detections)
    assert not found.found.unmatched
    if way == "gated":
        whole = track(seen, WAYS[way], pins=[one for one in edits if one.kind not in EDITS]).tracks
        assert same(found.run.tracks, whole)
    else:
        with mock.patch.object(learned_pins, "reached", lambda known, *_: np.full(len(known.death), True)):
            whole = resolve(held(way), edits).run.tracks
        np.testing.assert_array_equal(found.run.tracks.links, whole.links)
        np.testing.assert_allclose(found.run.tracks.link_probability, whole.link_probability, atol=0.02)
    assert ends(found.run.tracks) != ends(resolve(held(way)).run.tracks)
    assert same(found.run.tracks, track(film().detections, WAYS[way], pins=edits, workers=2).tracks)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_removed_leaves_no_trace_and_what_comes_back_is_linked_as_it_was(way: str) -> None:
    first, row = resolve(held(way)).run.tracks, int(film().links[120, 1])
    gone = resolve(held(way), [Pin("remove", (place(row),))]).run.tracks
    clutter = resolve(held(way), [Pin("no_particle", (place(row),))]).run.tracks
    assert ends(gone) == ends(clutter) != ends(first)
    assert place(row) not in {(end[0], end[1:4]) for end in ends(gone)}
    back = resolve(held(way), [Pin("remove", (place(row),)), Pin("add", (place(row),))]).run.tracks
    assert ends(back) == ends(first)
    other = hold(film().detections.take(np.arange(len(film().detections)) != row), WAYS[way], workers=1)
    true = {end for end in ends(first) if (end[0], end[1:4]) == place(row) or (end[4], end[5:]) == place(row)}
    assert true
    assert not true & ends(resolve(other).run.tracks)
    assert true <= ends(resolve(other, [Pin("add", (place(row),))]).run.tracks)


@pytest.mark.parametrize("merges", [False, True])
def test_edits_hold_where_tracks_divide_or_merge(merges: bool) -> None:
    truth = tissue(cells=60, apart=0.15)
    truth = backward(truth) if merges else truth
    seen, row = truth.detections, int(truth.links[len(truth.links) // 2, 1])
    model = hold(seen, TrackingSettings(merges=merges), workers=1)
    first, at = resolve(model).run, (int(seen.frame[row]), tuple(seen.position[row].tolist()))
    assert first.stats["merges" if merges else "divisions"] > 0
    gone = resolve(model, [Pin("remove", (at,))]).run
    assert len(gone.tracks.detections) == len(seen) - 1
    assert 1 <= len(ends(first.tracks) - ends(gone.tracks)) <= 4
    back = resolve(model, [Pin("remove", (at,)), Pin("add", (at,))]).run
    assert ends(back.tracks) == ends(first.tracks)
    for name in ("divisions", "merges"):
        assert back.stats[name] == first.stats[name]


def test_edits_stand_in_the_table_and_the_command_repeats_them(tmp_path: Path) -> None:
    """A pin follows what is moved; what is corrected already is not corrected twice; the lost is named."""
    table, spots = tmp_path / "pins.csv", tmp_path / "spots.csv"
    write_detections(spots, film().detections)
    moved = int(film().detections.rows_of(4).start) + 9
    for one in (pin("end", moved), *some_edits()):
        append_pin(table, one)
    for way, options in (("gated", ["--max-distance", "0.8", "--max-gap", "2"]), ("learned", [])):
        outputs = []
        for name, more in (("a", ["--pins", table]), ("b", ["--config", tmp_path / "a.csv.json"])):
            done = succeed("track", spots, "-o", tmp_path / f"{name}.csv", "--overwrite", *options, *more)
            outputs.append((tmp_path / f"{name}.csv").read_bytes())
            assert "Pins: 6; left out: 0." in done.output
        found = resolve(held(way), read_pins(table)).run.tracks
        assert outputs[0] == outputs[1]
        assert ends(read_tracks(tmp_path / "a.csv")) == ends(found)
        there = found.detections.position[found.links[:, 0]].tolist()
        assert list(place(moved, 0.3)[1]) not in there
    seen = found.detections
    twice = edited(seen, some_edits()[:3])
    np.testing.assert_array_equal(twice.detections.position, seen.position)
    assert [one.kind for one in twice.unmatched] == ["remove"]
    assert "remove frame 4" in track(seen, max_distance=0.8, pins=some_edits()[:1]).warning


def test_chains_of_edits_may_be_applied_to_what_they_have_made() -> None:
    """What is added is moved, and what is moved is moved again; a place that no frame has is refused."""
    seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 8, 0]])
    a, b, c = ((1, (0.0, 8.0, far)) for far in (0.0, 3.0, 6.0))
    p, q = (0, (0.0, 5.0, 5.0)), (0, (0.0, 5.0, 7.0))
    pins = [Pin("add", (p,)), Pin("move", (p, q)), Pin("move", (a, b)), Pin("move", (b, c))]
    once = edited(seen, pins)
    again = edited(once.detections, pins)
    assert once.unmatched == again.unmatched == ()
    assert again.detections.position.tolist() == once.detections.position.tolist()
    assert once.detections.position.tolist() == [[0, 0, 0], [0, 5, 7], [0, 0, 1], [0, 8, 6]]
    assert edited(seen, [Pin("add", (p,)), Pin("remove", (p,))]).detections is seen
    with pytest.raises(SettingsError, match="numbered below"):
        track(seen, max_distance=1.0, pins=[Pin("add", ((2**31, (0.0, 0.0, 0.0)),))])


@pytest.mark.parametrize("frame", [-3, 0, 2, 30])
def test_a_detection_may_come_where_none_was(frame: int) -> None:
    """In a frame without any it is linked; outside of the movie it stands alone."""
    walk = Detections.from_table([0, 1, 3, 4, 5], [[0, 0, k] for k in (0, 1, 3, 4, 5)])
    settings, many = TrackingSettings(divisions=False), len(walk)
    found = track(walk, settings, pins=[Pin("add", ((frame, (0.0, 0.0, float(frame))),))]).tracks
    assert len(found.detections) == many + (frame != 0)
    linked = np.isin(frame, found.detections.frame[found.links])
    assert linked == (frame in (0, 2))
