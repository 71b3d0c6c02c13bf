"""Frames that were not recorded: nobody was missed in them, and particles went on."""

import numpy as np
import pytest
from scenes import f1_of, lost, share_of_right, stuck, walks

from outbid import Detections, TrackingSettings, Tracks, read_tracks, score, track
from outbid.learned.prepare import read_movie
from outbid.simulate.scenes import Scene


@pytest.mark.slow
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
    limited = track(truth.detections, TrackingSettings(max_gap=2))
    assert f1_of(run, truth) > max(least, f1_of(limited, truth) - 0.003)
    seen = np.unique(truth.detections.frame)
    assert run.learned.as_dict()["time"] == (seen - seen[0]).tolist()
    assert f"taken as not recorded: {seen[-1] - seen[0] + 1 - len(seen)}." in str(run.learned)
    assert run.learned.persistence_frames == pytest.approx(scene.persistence, rel=0.4, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stride", "least"), [("turbulence/subcube.csv", 1, 0.99), ("ascidian/Pm08.csv", 3, 0.985)]
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


@pytest.mark.slow
def test_what_is_given_of_gaps_holds_over_those_frames_too():
    truth = lost(walks(np.full(29, 0.05), 200), np.arange(10, 13))
    frame = truth.detections.frame
    for max_gap in (0, 2, 3):
        run = track(truth.detections, TrackingSettings(max_gap=max_gap))
        ahead = np.diff(frame[run.tracks.links], axis=1)
        assert ahead.max() == (4 if max_gap == 3 else 1)
        assert run.learned.time is None
    assert np.diff(frame[track(truth.detections).tracks.links], axis=1).max() == 4


def test_few_particles_may_all_be_missed_and_long_pauses_end_all_tracks():
    few = read_movie(lost(walks(np.full(9, 0.1), 6), [4]).detections, holes=True)
    assert few.time is None
    assert len(few.frame_start) == 11
    paused = lost(walks(np.full(39, 0.05), 60), [3, *range(10, 30)])
    movie = read_movie(paused.detections, holes=True)
    assert movie.time.tolist() == [0, 1, 2, *range(4, 40)]
    frame = paused.detections.frame
    links = track(paused.detections).tracks.links
    assert not ((frame[links[:, 0]] < 10) & (frame[links[:, 1]] > 29)).any()


@pytest.mark.slow
def test_frames_lost_outside_the_part_are_bridged_as_far_as_particles_went():
    scene = Scene(0.12, 20.0, particles=400, frames=120, turnover=0.0)
    truth = lost(scene.film(2), np.arange(20, 24))
    tracks = track(truth.detections).tracks
    across = tracks.detections.frame[tracks.links[:, 0]] == 19
    assert share_of_right(tracks.links[across], truth) > 0.9
    assert across.sum() > 0.9 * 400


@pytest.mark.slow
def test_nobody_is_followed_over_a_time_in_which_all_go_farther_than_is_looked():
    truth = lost(Scene(0.25, 8.0, miss=0.05, particles=600, frames=40).film(1), np.arange(20, 30))
    run = track(truth.detections)
    frame, links = truth.detections.frame, run.tracks.links
    assert not ((frame[links[:, 0]] < 20) & (frame[links[:, 1]] > 29)).any()
    assert run.learned.step_scale is None


def test_times_that_are_a_little_off_are_no_holes():
    rng, count = np.random.default_rng(0), 60
    number = np.cumsum(rng.integers(800, 1200, 30))
    place = rng.uniform(0, 9, (count, 3)) + np.cumsum(rng.normal(0, 0.05, (30, count, 3)), axis=0)
    seen = Detections.from_table(np.repeat(number, count), place.reshape(-1, 3))
    movie = read_movie(seen, holes=True)
    assert movie.time is None
    assert len(movie.frame_start) == 31


def numbered(truth: Tracks, when) -> Tracks:
    """The movie with these numbers of its frames."""
    seen = truth.detections
    frames = np.unique(seen.frame, return_inverse=True)[1]
    return Tracks(Detections(np.asarray(when, np.int32)[frames], seen.position), truth.links)


@pytest.mark.slow
def test_the_middle_of_a_movie_may_have_no_two_frames_one_interval_apart():
    """Step and gate are learned there all the same."""
    when = np.concatenate([np.arange(25), np.arange(25, 55, 2), np.arange(55, 80)])
    run = track(stuck(when))
    assert len(run.tracks.links) == 700 * (len(when) - 1)
    assert run.learned.step == pytest.approx(0.05 * 2**0.5, rel=0.05)


@pytest.mark.parametrize("fast", [20, 30, 45])
def test_a_rate_that_falls_to_a_thirtieth(fast):
    """Particles are linked in the slow frames as well as in the fast ones."""
    truth = walks(np.full(99, 0.1), 100, side=5.0)
    truth = numbered(truth, np.append(np.arange(fast), fast - 1 + 30 * np.arange(1, 101 - fast)))
    assert f1_of(track(truth.detections), truth) > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("far", [2, 4, 6])
def test_frames_near_and_far_in_turn_count_one_by_one(far):
    """No two intervals of one follow on one another; frames are counted, and velocities learned."""
    truth = Scene(0.08, 20.0, miss=0.05, particles=300, frames=40 * (far + 1)).film(0)
    when = np.append(0, np.cumsum(np.tile([1, far], 20)))
    seen = lost(truth, np.setdiff1d(np.arange(when[-1] + 200), when))
    run = track(seen.detections)
    assert f1_of(run, seen) > 0.9
    assert "unevenly spaced in time" in str(run.learned)
    assert run.stats["gap_links"] < 0.1 * run.stats["links"]
    even = track(numbered(seen, np.arange(len(when))).detections)
    assert np.array_equal(even.tracks.links, run.tracks.links)


@pytest.mark.slow
def test_long_pauses_are_cut_short_in_the_record():
    """It holds no time for every frame between bursts far apart."""
    when = np.setdiff1d((2000 * np.arange(4)[:, None] + np.arange(20)).ravel(), [2005])
    run = track(stuck(when))
    assert len(run.learned.time) == len(when) + 3 * 49
    assert "taken as not recorded: 1." in str(run.learned)
    assert 0.999 < len(run.tracks.links) / (700 * (len(when) - 4)) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("known", [{"gate": 0.3}, {"gate": 0.6, "step": 0.215}])
def test_a_given_gate_is_no_reason_to_follow_nobody_from_faster_frames(known):
    truth = walks(np.where(np.arange(49) // 5 % 2, 0.3, 0.05))
    run = track(truth.detections, TrackingSettings(fixed=known))
    source = truth.detections.frame[run.tracks.links[:, 0]]
    assert np.bincount(source, minlength=49)[:49].min() > 100
