"""A session of proofreading without a window: an oracle answers, and everything can be undone."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from outbid import Detections, TrackingSettings, Tracks, track
from outbid.pins import read_pins
from outbid.simulate.motions import PersistentWalk
from outbid.simulate.walks import WalkSettings, walk
from outbid.viewers.from_layers import tracks_from
from outbid.viewers.layers import tracks_layer
from outbid.viewers.proofreading import (
    Question,
    Session,
    answer,
    edit,
    headline,
    learned_again,
    next_question,
    opened,
    question,
    redo,
    skip,
    stored,
    undo,
)

SETTINGS = {"learned": TrackingSettings(), "gated": TrackingSettings(max_distance=4.0)}


@cache
def crowd() -> Tracks:
    """Particles in a plane that often meet."""
    return walk(WalkSettings(PersistentWalk(1.5, 0.5), 60, 12, (1, 40, 40), seed=3))


@cache
def begun(kind: str) -> Session:
    """A session about what the linker made of them; tracks of another program have its links alone."""
    if kind != "foreign":
        return opened(crowd(), SETTINGS[kind])
    links = track(crowd().detections, SETTINGS["gated"]).tracks.links
    return opened(Tracks(crowd().detections, links), TrackingSettings(), foreign=True)


def true_answer(session: Session, asked: Question) -> Session:
    """What an oracle answers."""
    row, links = asked.link.row, crowd().links
    then = links[links[:, 0] == row, 1].tolist()
    return answer(session, asked, "link", *then) if then else answer(session, asked, "end")


def wrong(session: Session) -> int:
    every = {tuple(link) for link in crowd().links.tolist()}
    return len(every ^ {tuple(link) for link in session.tracks.links.tolist()})


@pytest.mark.parametrize("kind", ["learned", "gated", "foreign"])
def test_true_answers_remove_errors_and_undo_gives_the_first_tracks(kind: str) -> None:
    session = first = begun(kind)
    counts = [wrong(session)]
    for _ in range(25):
        session, asked = next_question(session)
        session = true_answer(session, asked)
        counts.append(wrong(session))
        links = crowd().links[crowd().links[:, 0] == asked.link.row]
        assert {tuple(link) for link in links} <= set(map(tuple, session.tracks.links))
    assert counts[-1] <= 0.5 * counts[0] or kind != "learned"
    assert counts[-1] < counts[0]
    while session.pins:
        session = undo(session)
        assert wrong(session) == counts[len(session.pins)]
    assert np.array_equal(session.tracks.links, first.tracks.links)
    assert session.tracks.measures.keys() == first.tracks.measures.keys()
    for name, values in first.tracks.measures.items():
        assert np.array_equal(session.tracks.measures[name], values)
    for _ in range(25):
        session = redo(session)
    assert wrong(session) == counts[-1]
    assert redo(session) is session


@pytest.mark.smoke
def test_questions_are_the_greatest_doubts_and_every_fifth_is_an_audit_at_random() -> None:
    session, asked = begun("learned"), []
    for _ in range(10):
        session, one = next_question(session)
        asked.append(one)
    assert [one.audit for one in asked] == [False, False, False, False, True] * 2
    doubts = [one for one in asked if not one.audit]
    assert len({one.link.row for one in doubts}) == 8
    chance, source = session.tracks.link_probability, session.tracks.links[:, 0]
    least = np.sort(np.append(chance, [one.link.value for one in doubts if not one.link.successors]))
    assert [one.link.value for one in doubts] == sorted(one.link.value for one in doubts)
    assert doubts[0].link.value == least[0]
    assert np.isin([one.link.row for one in asked if one.audit], source).all()
    again = begun("learned")
    for _ in range(4):
        again, _one = next_question(again)
    assert next_question(again)[1] == asked[4]
    assert next_question(again, seed=1)[1] != asked[4]


def test_what_is_answered_or_skipped_is_not_asked_again() -> None:
    session, first = next_question(begun("learned"))
    skipped = skip(session, first)
    left, rows = true_answer(skipped, next_question(skipped)[1]), set()
    for _ in range(120):
        left, asked = next_question(left)
        if not asked.audit:
            rows.add(asked.link.row)
    assert first.link.row not in rows
    assert {pin.detections[0] for pin in left.pins}.isdisjoint(map(left.spot, rows))


def test_the_headline_adds_the_chances_and_counts_wrong_audits() -> None:
    session = begun("learned")
    chance = session.tracks.link_probability
    assert headline(session).startswith(f"{(1 - chance).sum():.0f} ± ")
    assert headline(session).endswith(f"wrong links expected of {len(chance)}.")
    for k in range(3):
        _, asked = next_question(session)
        asked = asked._replace(audit=True)
        session = answer(session, asked, *(("link", asked.link.successors[0]) if k else ("end",)))
    assert [pin.audit for pin in session.pins] == ["wrong", "right", "right"]
    assert "3 answers removed about" in headline(session)
    assert f"Audits: 1 of 3 wrong, hence {len(session.tracks.links) / 3:.0f} ± " in headline(session)


def test_answers_are_kept_and_gone_on_with(tmp_path: Path) -> None:
    path, session = tmp_path / "movie.pins.csv", begun("learned")
    for _ in range(4):
        session, asked = next_question(session)
        session = stored(true_answer(session, asked), path)
    assert [pin.number for pin in session.pins] == [1, 2, 3, 4]
    assert all(0 <= pin.p_before <= 1 for pin in session.pins)
    assert read_pins(path) == session.pins
    other = opened(crowd(), SETTINGS["learned"], read_pins(path))
    assert np.array_equal(other.tracks.links, session.tracks.links)
    back = stored(undo(undo(session)), path)
    assert read_pins(path) == session.pins[:2]
    _, asked = next_question(back)
    changed = stored(answer(back, asked, "end"), path)
    assert read_pins(path) == changed.pins
    assert changed.pins[:2] == session.pins[:2]


def test_a_later_answer_takes_the_place_of_what_it_contradicts_until_it_is_undone() -> None:
    session, asked = next_question(begun("learned"))
    (_, (one, _), (other, _), *_) = ((0, 0), *asked.link.alternatives)
    first = answer(session, asked, "link", one)
    later = answer(first, asked, "link", other)
    assert [pin.detections[1] for pin in later.pins] == [later.spot(other)]
    back = undo(later)
    assert back.pins == first.pins
    assert np.array_equal(back.tracks.links, first.tracks.links)
    assert redo(back).pins == later.pins


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["gated", "foreign"])
def test_detections_are_added_moved_removed_and_all_of_it_is_undone(kind: str) -> None:
    session = first = begun(kind)
    count = len(first.tracks.detections)
    place = (5, (0.5, -3.0, -3.0))
    session = edit(session, "add", place)
    assert len(session.tracks.detections) == count + 1
    assert len(session.tracks.links) == len(first.tracks.links)
    moved = (5, (0.5, -4.0, -3.0))
    session = edit(session, "move", place, moved)
    assert [list(moved[1])] == session.tracks.detections.position[
        session.tracks.detections.position[:, 1] < -2
    ].tolist()
    row = int(first.tracks.links[100, 1])
    session = edit(session, "remove", first.spot(row))
    assert len(session.tracks.detections) == count
    touched = (first.tracks.links == row).any(axis=1).sum()
    assert touched > 0
    if kind == "foreign":
        assert len(session.tracks.links) == len(first.tracks.links) - touched
    for _ in range(3):
        session = undo(session)
    assert np.array_equal(session.tracks.links, first.tracks.links)
    assert np.array_equal(session.tracks.detections.position, first.tracks.detections.position)


@pytest.mark.parametrize("kind", ["learned", "gated", "foreign"])
def test_edits_that_the_opened_tracks_have_are_undone_and_redone(kind: str) -> None:
    """The last edit was not saved; one was undone before the tracks were saved."""
    session, place = begun(kind), (5, (0.5, -3.0, -3.0))
    steps = [session]
    one, other = (session.spot(int(row)) for row in session.tracks.links[[100, 200], 1])
    beside = (one[0], (one[1][0], one[1][1], one[1][2] + 0.25))
    acts = [
        ("add", place), ("move", place, (5, (0.5, -4.0, -3.0))), ("move", one, beside), ("remove", other),
        ("remove", (5, (0.5, -4.0, -3.0))), ("add", (5, (0.5, -5.0, -3.0))),
    ]  # fmt: skip
    for act in acts:
        steps.append(edit(steps[-1], *act))
    foreign = kind == "foreign"
    for saved in steps:
        again = opened(saved.tracks, saved.now.run.settings, steps[-1].pins, foreign=foreign)
        for turn, way in ((undo, steps[::-1]), (redo, steps)):
            for step in way:
                assert spots(again) == spots(step)
                again = again if step is way[-1] else turn(again)
                assert again.now.run.settings.pins == again.pins
        assert undo(again).pins == steps[-2].pins
    back = opened(steps[-1].tracks, saved.now.run.settings, steps[-1].pins, foreign=foreign)
    back = undo(undo(back))
    assert spots(edit(back, "add", place)) == sorted([*spots(steps[-3]), place])


def spots(session: Session) -> list[tuple[int, tuple[float, float, float]]]:
    """All detections, by frame and place."""
    return sorted(map(session.spot, range(len(session.tracks.detections))))


def test_without_probabilities_the_longest_step_is_asked_first_with_the_nearest_detections() -> None:
    seen = Detections.from_table([0, 0, 1, 1, 1], [[0, 0, 0], [0, 20, 0], [0, 0, 1], [0, 23, 0], [0, 26, 0]])
    session = opened(
        Tracks(seen, np.array([[0, 2], [1, 4]])), TrackingSettings(spacing=(1, 2, 1)), foreign=True
    )
    _, asked = next_question(session)
    assert (asked.link.row, asked.probable) == (1, False)
    assert asked.link.alternatives[:3] == ((3, 6.0), (4, 12.0), (2, pytest.approx(40.01, abs=0.01)))
    assert asked.link.alternatives[3][0] == -1
    joined = answer(session, question(session, 0), "same_cell", 3)
    assert joined.tracks.links.tolist() == [[0, 3], [1, 4]]
    assert joined.changed.tolist() == [0]


def test_learned_again_pins_hold_and_what_was_learned_hardly_changes_under_true_ones() -> None:
    session = begun("learned")
    for _ in range(20):
        session, asked = next_question(session)
        session = true_answer(session, asked)
    again = learned_again(session)
    before, after = (one.frozen.learned.fit.model.motion.noise for one in (session, again))
    assert not np.array_equal(before, after)
    np.testing.assert_allclose(after, before, rtol=0.2)
    pinned = {(row, *links) for row, *links in crowd().links.tolist()}
    for pin in again.pins:
        assert pin.kind in ("link", "end")
    assert wrong(again) <= wrong(session) + 1
    closed = {
        (int(a), int(b))
        for a, b in again.tracks.links
        if any(again.spot(int(a)) == pin.detections[0] for pin in again.pins)
    }
    assert closed <= pinned


def test_columns_stay_with_tracks_and_through_edits() -> None:
    from test_columns import informative, movie, with_features

    found = movie()
    truth = with_features(found, informative(found))
    settings = TrackingSettings(features={"brightness": "", "kind": ""}, divisions=False)
    run = track(truth.detections, settings)
    layer = tracks_layer(run.tracks)
    taken = tracks_from(layer.data, features=layer.features)
    session = opened(taken, run.settings)

    def ends(tracks: Tracks) -> list[list[float]]:
        return sorted(tracks.detections.position[tracks.links].reshape(-1, 6).tolist())

    assert ends(session.tracks) == ends(run.tracks)
    frame, place = session.spot(300)
    edited = edit(session, "remove", (frame, place))
    edited = edit(edited, "add", (frame, place))
    features = edited.tracks.detections.features
    row = int(edited.tracks.detections.frame_start[frame + 1]) - 1  # the last of its frame
    assert edited.spot(row) == (frame, place)
    assert np.isnan(features["brightness"][row])
    assert features["kind"][row] is None
    assert edited.frozen.learned.summary.columns.links["brightness"] > 0.3
