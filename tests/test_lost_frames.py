"""Frames that were not recorded: nobody was missed in them, and particles went on."""

from __future__ import annotations

import numpy as np
import pytest
from test_pace import f1_of, walks

from outbid.simulate.scenes import Scene
from outbid.tracker import Detections, TrackingSettings, Tracks, read_tracks, score, track
from outbid.tracker.movie import movie_of


def lost(truth: Tracks, frames) -> Tracks:
    """The movie without some frames; the others keep their numbers."""
    kept = ~np.isin(truth.detections.frame, frames)
    return Tracks.from_track_ids(truth.detections.take(kept), truth.track_id[kept])


@pytest.mark.parametrize(
    ("scene", "frames", "least"),
    [
        (Scene(0.1, 0.0, particles=500, frames=40), np.arange(12, 18), 0.975),
        (Scene(0.1, 3.0, particles=500, frames=40), np.random.default_rng(1).choice(40, 20, False), 0.93),
        (Scene(0.2, 3.0, miss=0.1, clutter=0.1, particles=500, frames=40), np.arange(3, 40, 5), 0.87),
    ],
    ids=["a pause", "half of the frames", "every fifth"],
)
def test_particles_are_followed_over_frames_that_were_not_recorded(scene, frames, least):
    truth = lost(scene.film(3), frames)
    run = track(truth.detections)
    told = track(truth.detections, TrackingSettings(max_gap=2))
    assert f1_of(run, truth) > max(least, f1_of(told, truth) - 0.003)
    seen = np.unique(truth.detections.frame)
    assert run.learned.as_dict()["time"] == (seen - seen[0]).tolist()
    assert f"In {seen[-1] - seen[0] + 1 - len(seen)} frames nothing is seen" in str(run.learned)
    assert run.learned.model.motion.persistence == pytest.approx(scene.persistence, rel=0.2, abs=0.1)


@pytest.mark.parametrize(
    ("name", "stride", "least"),
    [("turbulence/subcube.csv", 1, 0.99), ("ascidian/Pm08.csv", 3, 0.985)],  # .855 and .972 as gaps
)
def test_recorded_movies_of_which_every_fifth_frame_is_lost(real_data, name, stride, least):
    truth = read_tracks(real_data / name)
    frame = truth.detections.frame // stride
    kept = np.nonzero((truth.detections.frame % stride == 0) & (frame % 5 != 2))[0]
    place = np.full(len(frame), -1)
    place[kept] = np.arange(len(kept))
    seen = Detections(frame[kept], truth.detections.position[kept])
    run = track(seen)
    right = Tracks(seen, across(truth.links, place))
    assert score(run.tracks, right, gate=1e-6, families=("links",)).values["link_f1"] > least


def across(links, place):
    """The links among the detections that have a place, over those that have none."""
    before, found = dict(links[:, ::-1].tolist()), []
    for row in np.nonzero(place >= 0)[0].tolist():
        earlier = before.get(row)
        while earlier is not None and place[earlier] < 0:
            earlier = before.get(earlier)
        found += [] if earlier is None else [(place[earlier], place[row])]
    return np.array(sorted(found))


def test_what_is_told_of_gaps_holds_over_those_frames_too():
    truth = lost(walks(np.full(29, 0.05), 200), np.arange(10, 13))
    frame = truth.detections.frame
    for max_gap in (0, 2, 3):
        run = track(truth.detections, TrackingSettings(max_gap=max_gap))
        ahead = np.diff(frame[run.tracks.links], axis=1)
        assert ahead.max() == (4 if max_gap == 3 else 1)
        assert run.learned.time is None
    assert np.diff(frame[track(truth.detections).tracks.links], axis=1).max() == 4


def test_few_particles_may_all_be_missed_and_long_pauses_end_all_tracks():
    few = movie_of(lost(walks(np.full(9, 0.1), 6), [4]).detections, (1, 1, 1), holes=True)
    assert few.time is None
    assert len(few.frame_start) == 11
    paused = lost(walks(np.full(39, 0.05), 60), [3, *range(10, 30)])
    movie = movie_of(paused.detections, (1, 1, 1), holes=True)
    assert movie.time.tolist() == [0, 1, 2, *range(4, 40)]
    frame = paused.detections.frame
    links = track(paused.detections).tracks.links
    assert not ((frame[links[:, 0]] < 10) & (frame[links[:, 1]] > 29)).any()


def test_frames_lost_outside_the_part_are_bridged_as_far_as_particles_went():
    scene = Scene(0.12, 20.0, particles=400, frames=120, turnover=0.0)
    truth = lost(scene.film(2), np.arange(20, 24))
    tracks = track(truth.detections).tracks
    across = tracks.detections.frame[tracks.links[:, 0]] == 19
    right = {tuple(link) for link in truth.links.tolist()}
    assert np.mean([tuple(link) in right for link in tracks.links[across].tolist()]) > 0.9
    assert across.sum() > 0.9 * 400


def test_nobody_is_followed_over_a_time_in_which_all_go_farther_than_is_looked():
    truth = lost(Scene(0.25, 8.0, miss=0.05, particles=600, frames=40).film(1), np.arange(20, 30))
    run = track(truth.detections)
    frame, links = truth.detections.frame, run.tracks.links
    assert not ((frame[links[:, 0]] < 20) & (frame[links[:, 1]] > 29)).any()
    assert run.learned.pace is None


def test_times_that_are_a_little_off_are_no_holes():
    rng, count = np.random.default_rng(0), 60
    number = np.cumsum(rng.integers(800, 1200, 30))
    place = rng.uniform(0, 9, (count, 3)) + np.cumsum(rng.normal(0, 0.05, (30, count, 3)), axis=0)
    seen = Detections.from_table(np.repeat(number, count), place.reshape(-1, 3))
    movie = movie_of(seen, (1, 1, 1), holes=True)
    assert movie.time is None
    assert len(movie.frame_start) == 31
