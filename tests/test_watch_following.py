"""Tracks while a movie is recorded: divisions, missing frames, and going on from a state."""

from dataclasses import replace

import numpy as np
import pytest
from scenes import tissue
from test_divisions import division_f1

from outbid import Detections, TrackingSettings, Tracks, score
from outbid.watching.following import Followed, Follower


def followed(seen: Detections, frames: list[int], learn: int, *, again: int | None = None) -> list[Followed]:
    """The frames, linked one by one; from frame `again` on by another one, from the state of the first."""
    follower, found = Follower(TrackingSettings(), learn, 1), list[Followed]()
    for frame in frames:
        if frame == again:
            state, follower = follower.state(), Follower(TrackingSettings(), learn, 1)
            first = [one.detections for one in found if one.frame < int(state["learned_from"])]
            follower.restore(state, first)
        found += follower.add(frame, seen.take(seen.rows_of(frame)))
    return found


def joined(found: list[Followed]) -> Tracks:
    seen = Detections.joined([one.detections for one in found])
    names = (np.concatenate([getattr(one, name) for one in found]) for name in ("track", "parent"))
    return Tracks.from_track_ids(seen, *names)


@pytest.mark.slow
@pytest.mark.parametrize(("apart", "least"), [(0.12, 0.95), (0.25, 0.97)])  # of the whole movie .99 and 1
def test_divisions_like_those_of_the_first_frames(apart: float, least: float) -> None:
    truth = tissue(apart=apart, frames=24)
    live = joined(followed(truth.detections, list(range(24)), 12))
    assert division_f1(live.links, truth) > least
    assert score(live, truth, families=["links"]).values["link_f1"] > 0.995


def test_no_divisions_where_the_first_frames_have_none() -> None:
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 9, (80, 3)) + np.cumsum(rng.normal(0, 0.1, (12, 80, 3)), axis=0)
    kept = rng.random((12, 80)) > 0.05
    frame, who = np.nonzero(kept)
    found = followed(Detections.from_table(frame, place[kept]), list(range(12)), 6)
    assert all((one.parent < 0).all() for one in found)
    truth = Tracks.from_track_ids(Detections.from_table(frame, place[kept]), who)
    assert score(joined(found), truth, families=["links"]).values["link_f1"] > 0.97


@pytest.mark.smoke
@pytest.mark.parametrize("columns", [False, True])
def test_another_one_goes_on_from_a_state_and_over_a_missing_frame(columns: bool) -> None:
    truth = tissue(cells=60, frames=16)
    if columns:
        truth = replace(truth, detections=detected(truth))
    frames = [frame for frame in range(16) if frame != 11]
    whole, again = (followed(truth.detections, frames, 8, again=again) for again in (None, 12))
    assert [one.frame for one in whole] == [one.frame for one in again] == frames
    for one, other in zip(whole, again, strict=True):
        assert np.array_equal(one.track, other.track)
        assert np.array_equal(one.parent, other.parent)
        assert np.array_equal(one.probability, other.probability, equal_nan=True)
    assert len(np.intersect1d(whole[10].track, whole[11].track)) > 0.8 * len(whole[10].track)


def detected(truth: Tracks) -> Detections:
    """Detections with the columns of `outbid detect`; each track has an amplitude of its own."""
    seen, rng = truth.detections, np.random.default_rng(0)
    one = np.ones(len(seen))
    amplitude = rng.normal(size=truth.track_id.max() + 1)[truth.track_id] + 0.2 * rng.normal(size=len(seen))
    columns = {"probability": 0.99 * one, "quality": 9 * one, "amplitude": amplitude, "radius": 2 * one}
    return replace(seen, features=columns)


@pytest.mark.slow
def test_columns_of_detection_help_live_as_well() -> None:
    """In a crowd, by the amplitude of each particle."""
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 7, (300, 3)) + np.cumsum(rng.normal(0, 0.25, (16, 300, 3)), axis=0)
    truth = Tracks.from_track_ids(
        Detections.from_table(np.repeat(np.arange(16), 300), place.reshape(-1, 3)),
        np.tile(np.arange(300), 16),
    )
    f1 = [
        score(joined(followed(seen, list(range(16)), 8)), truth, families=["links"]).values["link_f1"]
        for seen in (truth.detections, detected(truth))
    ]
    assert f1[1] > f1[0] + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("drift", [0.5, 1.5])
def test_whole_frames_that_drift_also_over_missing_ones(drift: float) -> None:
    """By as much as particles are apart, a frame; the stage stands still from frame 15 on."""
    rng = np.random.default_rng(1)
    place = rng.uniform(0, 30, (300, 3)) + np.cumsum(rng.normal(0, 0.2, (24, 300, 3)), axis=0)
    place += drift * np.minimum(np.arange(24), 15)[:, None, None] * np.array([0, 0, 1])
    seen = Detections.from_table(np.repeat(np.arange(24), 300), place.reshape(-1, 3))
    frames = [frame for frame in range(24) if frame not in (11, 12)]
    found = followed(seen, frames, 8)
    right = [one.track == found[0].track for one in found]
    assert np.mean(right) > 0.97


def test_frames_in_which_there_is_nothing_to_learn() -> None:
    follower = Follower(TrackingSettings(), 2, 1)
    empty, one = Detections.from_table([], []), Detections.from_table([3], [[0, 1, 2]])
    assert [follower.add(k, empty) for k in range(3)] == [[]] * 3
    assert follower.add(3, one) == []
    (*_, last) = follower.rest(ended=True)
    assert (last.track.tolist(), last.parent.tolist()) == ([0], [-1])
