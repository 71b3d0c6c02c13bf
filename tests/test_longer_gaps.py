"""For how many frames a particle may be missing is learned as well, where it is not given."""

import numpy as np
import pytest
from scenes import blinking, seen_of

from outbid import TrackingSettings, score, track
from outbid.calibrate.rates import lengthened


def scored(run, truth):
    return score(run.tracks, truth, gate=1e-6, families=("links", "identity")).values


def test_who_is_missed_often_is_looked_for_after_more_frames():
    truth = blinking(0.4)
    run, limited = track(truth.detections), track(truth.detections, TrackingSettings(max_gap=2))
    learned, shorter = scored(run, truth), scored(limited, truth)
    assert len(limited.learned.model.follow) == 3 < len(run.learned.model.follow)
    assert learned["link_f1"] > 0.985 > 0.97 > shorter["link_f1"]
    assert learned["idf1"] > 0.93 > 0.8 > shorter["idf1"]
    chance = 0.6 * 0.4 ** np.arange(len(run.learned.model.follow))
    assert run.learned.model.follow == pytest.approx(chance, abs=0.02)
    # Who is missed for longer than was looked for seems to end.
    assert run.learned.model.end < 0.04 < limited.learned.model.end


@pytest.mark.parametrize("missed", [0.0, 0.1])
def test_who_is_missed_now_and_then_is_not(missed):
    assert len(track(blinking(missed).detections).learned.model.follow) <= 3


@pytest.mark.parametrize("max_gap", [0, 1, 2, 3])
def test_what_is_given_holds(max_gap):
    run = track(blinking(0.4).detections, TrackingSettings(max_gap=max_gap))
    frame, links = run.tracks.detections.frame, run.tracks.links
    assert len(run.learned.model.follow) == max_gap + 1
    assert (frame[links[:, 1]] - frame[links[:, 0]]).max() == max_gap + 1


def test_who_comes_back_after_any_time_is_another():
    rng = np.random.default_rng(1)
    place = np.repeat(rng.uniform(0, 20, (1, 400, 3)), 40, axis=0) + rng.normal(0, 0.03, (40, 400, 3))
    lit = np.zeros((40, 400), bool)
    for f in range(40):
        lit[f] = rng.random(400) < np.where(lit[f - 1], 0.6, 0.05)
    assert len(track(seen_of(place, lit).detections).learned.model.follow) <= 3


def test_nor_is_who_is_in_doubt():
    rng = np.random.default_rng(2)
    velocity = np.zeros((40, 600, 3))
    for f in range(1, 40):
        velocity[f] = 0.8 * velocity[f - 1] + rng.normal(0, 0.2, (600, 3))
    place = rng.uniform(0, 8, (600, 3)) + np.cumsum(velocity, axis=0)
    run = track(seen_of(place, rng.random((40, 600)) >= 0.25).detections)
    assert run.learned.model.motion.persistence > 0
    assert len(run.learned.model.follow) <= 3


@pytest.mark.parametrize(
    ("found", "most", "more"),
    [
        ([600, 240, 96], 9, 4),
        ([600, 240, 96], 4, 2),
        ([600, 240, 96], 2, 0),
        ([600, 240, 96], 0, 0),
        ([900, 90, 9], 9, 0),
        ([900, 40, 12], 9, 1),
        ([900, 30, 25], 9, 0),  # as often after any time
        ([900, 30, 0], 9, 0),
        ([900, 0, 0], 9, 0),
        ([0, 0, 0], 9, 0),
        ([900, 300], 9, 0),  # of the longest none are left
        ([600, 240, 96, 40], 9, 4),  # longer ones were tried, and are given up
    ],
)
def test_as_many_frames_more_as_are_worth_a_look(found, most, more):
    follow = (0.7, 0.14, 0.07)
    longer = lengthened(follow, np.array(found), most)
    assert len(longer) == 3 + more
    assert sum(longer) == pytest.approx(sum(follow))
    rarer = np.diff(np.log(longer[2:]))
    assert rarer == pytest.approx(np.log(0.4 if found[0] == 600 else 0.3) * np.ones(more))
    assert lengthened((0.9,), np.array(found), most) == (0.9,)


def test_only_once():
    """Gaps that end at a length of their own are looked for and given up once, not for ever."""
    rng = np.random.default_rng(7)
    place = rng.uniform(0, 9, (700, 3)) + np.cumsum(rng.normal(0, 0.05, (60, 700, 3)), axis=0)
    seen = np.ones((60, 700), bool)
    for who in range(700):
        frame = rng.integers(2, 6)
        while frame < 55:
            dark = rng.choice([1, 2, 3], p=[0.57, 0.29, 0.14])
            seen[frame : frame + dark, who] = False
            frame += dark + rng.integers(3, 15)
    run = track(seen_of(place, seen).detections)
    assert len(run.learned.model.follow) > 3
    assert run.learned.passes < 15
