"""Drift of whole frames, and flow: what must not be taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from outbid import Detections, Tracks, score
from outbid.calibrate import calibrate
from outbid.calibrate.drift_cpu import medians
from outbid.calibrate.flow import Flow


@pytest.mark.parametrize("lone", [1, 3])
def test_frames_of_few_particles_at_one_place_have_no_vote(lone):
    """Their distance to the nearest neighbour is 0; all detections of the other frame are far."""
    place = np.random.default_rng(0).uniform(0, 9, (50, 3))
    points = np.concatenate([place, np.full((lone, 3), 4.0)])
    assert calibrate(Detections.from_table([0] * 50 + [1] * lone, points))[0].drift is None


def test_streams_that_run_against_each_other_are_no_drift():
    """Neither half of the particles is taken for a stage that moves."""
    rng, count, frames = np.random.default_rng(4), 400, 15
    way = np.where(np.arange(count) % 2, 0.5, -0.5)[:, None] * [0, 0, 1.0]
    place = rng.uniform(0, count ** (1 / 3), (count, 3)) + np.arange(frames)[:, None, None] * way
    place += rng.normal(0, 0.06, place.shape)
    moving = Detections.from_table(np.repeat(np.arange(frames), count), place.reshape(-1, 3))
    learned, links = calibrate(moving)
    assert learned.drift is None
    assert learned.step[2] == pytest.approx(0.507, rel=0.03)
    truth = Tracks.from_track_ids(moving, np.tile(np.arange(count), frames))
    assert score(Tracks(moving, links.pairs), truth, families=("links",)).values["link_f1"] > 0.98


def test_few_particles_that_move_at_random_have_no_flow():
    """Of 120 steps their neighbours' explain more than one per cent by chance, every other time."""
    start = np.arange(0, 121, 10)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        place, step = rng.uniform(0, 9, (120, 3)), rng.normal(0, 1, (120, 3))
        assert Flow(start, place).foretold(step)[1] is None
    turning = np.cross(place - 4.5, [1.0, 0, 0]) + rng.normal(0, 0.5, (120, 3))
    assert Flow(start, place).foretold(turning)[1] is not None


def test_a_flow_that_begins_late_is_seen():
    """Frames from all of the movie are asked."""
    rng = np.random.default_rng(1)
    place, frame = rng.uniform(0, 9, (40_000, 3)), np.repeat(np.arange(20), 2000)
    step = rng.normal(0, 0.3, place.shape)
    step[frame > 10] += np.cross(place[frame > 10] - 4.5, [0.5, 0, 0])
    assert Flow(np.arange(0, 40_001, 2000), place).foretold(step)[1] is not None


def test_medians_of_runs_are_numpys():
    values = np.random.default_rng(0).random(60)
    values[[3, 40]] = np.inf
    ends, median = np.array([0, 1, 3, 10, 60]), np.empty(4)
    medians(values, ends, median)
    assert median.tolist() == [np.median(values[a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True)]
