"""For how many frames a particle may be missing is learned as well, where it is not given."""

import numpy as np
import pytest
from scenes import blinking, seen_of

from outbid import TrackingSettings, score, track


def scored(run, truth):
    return score(run.tracks, truth, gate=1e-6, families=("links", "identity")).values


@pytest.mark.slow
def test_who_is_missed_often_is_looked_for_after_more_frames():
    truth = blinking(0.4)
    run, limited = track(truth.detections), track(truth.detections, TrackingSettings(max_gap=2))
    learned, shorter = scored(run, truth), scored(limited, truth)
    assert len(limited.learned.follow) == 3 < len(run.learned.follow)
    assert learned["link_f1"] > 0.985 > 0.97 > shorter["link_f1"]
    assert learned["idf1"] > 0.93 > 0.8 > shorter["idf1"]
    chance = 0.6 * 0.4 ** np.arange(len(run.learned.follow))
    assert run.learned.follow == pytest.approx(chance, abs=0.02)
    # Who is missed for longer than was looked for seems to end.
    assert run.learned.end < 0.04 < limited.learned.end


@pytest.mark.slow
@pytest.mark.parametrize("missed", [0.0, 0.1])
def test_who_is_missed_now_and_then_is_not(missed):
    assert len(track(blinking(missed).detections).learned.follow) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("max_gap", [0, 1, 2, 3])
def test_what_is_given_holds(max_gap):
    run = track(blinking(0.4).detections, TrackingSettings(max_gap=max_gap))
    frame, links = run.tracks.detections.frame, run.tracks.links
    assert len(run.learned.follow) == max_gap + 1
    assert (frame[links[:, 1]] - frame[links[:, 0]]).max() == max_gap + 1


@pytest.mark.slow
def test_who_stays_is_the_same_after_any_time():
    """Dark for twenty frames in the mean, at places of their own."""
    rng = np.random.default_rng(1)
    place = np.repeat(rng.uniform(0, 20, (1, 400, 3)), 40, axis=0) + rng.normal(0, 0.03, (40, 400, 3))
    lit = np.zeros((40, 400), bool)
    for f in range(40):
        lit[f] = rng.random(400) < np.where(lit[f - 1], 0.6, 0.05)
    truth = seen_of(place, lit)
    assert scored(track(truth.detections), truth)["link_f1"] > 0.95


@pytest.mark.slow
def test_who_is_in_doubt_is_not_looked_for_longer():
    rng = np.random.default_rng(2)
    velocity = np.zeros((40, 600, 3))
    for f in range(1, 40):
        velocity[f] = 0.8 * velocity[f - 1] + rng.normal(0, 0.2, (600, 3))
    place = rng.uniform(0, 8, (600, 3)) + np.cumsum(velocity, axis=0)
    run = track(seen_of(place, rng.random((40, 600)) >= 0.25).detections)
    assert run.learned.persistence_frames > 0
    assert len(run.learned.follow) <= 6
