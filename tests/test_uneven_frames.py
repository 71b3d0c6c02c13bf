"""Frames from which all particles go farther than from others."""

import numpy as np
import pytest
from scenes import REST, f1_of, share_of_right, walks

from outbid import Tracks, track

JITTER = 0.2 * np.exp(np.random.default_rng(5).normal(0, 0.4, 49))


def over_sure(run, truth: Tracks) -> float:
    """By how much more links are said to be right than are."""
    return float(run.tracks.link_probability.mean() - share_of_right(run.tracks.links, truth))


@pytest.mark.slow
@pytest.mark.parametrize("steps", [REST, JITTER], ids=["bursts", "jitter"])
def test_frames_of_long_steps_are_distinguished_from_those_of_short_ones(steps):
    learned = track(walks(steps).detections).learned
    found = learned.step_scale / np.sqrt(np.mean(learned.step_scale**2))
    true = steps / np.sqrt(np.mean(steps**2))
    often = true < 1.6  # steps much longer than particles are apart cannot be linked
    assert np.corrcoef(np.log(found), np.log(true))[0, 1] > 0.7
    assert np.median(np.abs(np.log(found / true))[often]) < 0.4
    assert "Steps differ from frame to frame" in str(learned)
    assert learned.as_dict()["step_scale"] == learned.step_scale.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "spoiled", "least"),
    [
        (REST, {}, 0.885),
        (REST, {"miss": 0.1, "clutter": 0.1}, 0.81),
        (np.full(49, 0.1), {"blur": 0.3, "miss": 0.1, "clutter": 0.1}, 0.8),
    ],
    ids=["bursts", "missed", "blurred"],
)
def test_links_are_right_and_as_right_as_they_say(steps, spoiled, least):
    truth = walks(steps, **spoiled)
    run = track(truth.detections)
    assert run.learned.step_scale is not None
    assert f1_of(run, truth) > least
    assert abs(over_sure(run, truth)) < (0.06 if spoiled.get("blur") else 0.03)


@pytest.mark.slow
@pytest.mark.parametrize("spoiled", [{}, {"miss": 0.1, "clutter": 0.1}])
@pytest.mark.parametrize("step", [0.1, 0.25])
@pytest.mark.parametrize("count", [60, 600])
def test_frames_that_are_alike_stay_so(step, spoiled, count):
    truth = walks(np.full(49, step), count, side=9.0 * (count / 600) ** (1 / 3), **spoiled)
    learned = track(truth.detections).learned
    assert learned.step_scale is None
    assert "frame to frame" not in str(learned)


@pytest.mark.slow
def test_long_movies_that_are_learned_from_a_part():
    steps = np.tile(REST, 4)
    truth = walks(steps)
    run = track(truth.detections)
    assert len(run.learned.step_scale) == len(steps)
    assert f1_of(run, truth) > 0.885


@pytest.mark.slow
def test_step_scales_are_learned_where_a_part_has_too_few_frames_for_them():
    truth = walks(np.where(np.arange(23) // 3 % 2, 0.3, 0.06), 2000, side=13.0)
    run = track(truth.detections)
    assert run.learned.step_scale is not None
    assert abs(over_sure(run, truth)) < 0.03
