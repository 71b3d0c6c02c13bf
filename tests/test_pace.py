"""Frames from which all particles go farther than from others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scenes import REST, f1_of, walks

from outbid import Detections, Tracks, track
from outbid.calibrate import calibrate, surveyor
from outbid.calibrate.pace import pace_of
from outbid.motion import Motion
from outbid.refine.linking import Linking, LinkModel
from outbid.refine.movie import movie_of

JITTER = 0.2 * np.exp(np.random.default_rng(5).normal(0, 0.4, 49))


def over_sure(run, truth: Tracks) -> float:
    """By how much more links are said to be right than are."""
    right = {tuple(link) for link in truth.links.tolist()}
    true = [tuple(link) in right for link in run.tracks.links.tolist()]
    return float(run.tracks.link_probability.mean() - np.mean(true))


@pytest.mark.parametrize("steps", [REST, JITTER], ids=["bursts", "jitter"])
def test_frames_of_long_steps_are_distinguished_from_those_of_short_ones(steps):
    learned, _ = calibrate(walks(steps).detections)
    found = learned.pace[:-1] / np.sqrt(np.mean(learned.pace[:-1] ** 2))
    true = steps / np.sqrt(np.mean(steps**2))
    often = true < 1.6  # steps much longer than particles are apart cannot be linked
    assert np.abs(np.log(found / true))[often].max() < 0.3
    assert min(learned.model.gate) > 4 * min(steps.max(), 0.35)
    assert "Steps differ from frame to frame" in str(learned)
    assert learned.as_dict()["step_scale"] == learned.pace.tolist()


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
    assert run.learned.pace is not None
    assert f1_of(run, truth) > least
    assert abs(over_sure(run, truth)) < 0.03


@pytest.mark.parametrize("spoiled", [{}, {"miss": 0.1, "clutter": 0.1}])
@pytest.mark.parametrize("step", [0.1, 0.25])
@pytest.mark.parametrize("count", [60, 600])
def test_frames_that_are_alike_stay_so(step, spoiled, count):
    truth = walks(np.full(49, step), count, side=9.0 * (count / 600) ** (1 / 3), **spoiled)
    learned, _ = calibrate(truth.detections)
    assert learned.pace is None
    assert "frame to frame" not in str(learned)


def test_long_movies_that_are_learned_from_a_part():
    steps = np.tile(REST, 4)
    truth = walks(steps)
    run = track(truth.detections)
    assert len(run.learned.pace) == len(steps) + 1
    assert f1_of(run, truth) > 0.885


def linked(steps, count=400, noise=0.0):
    """A movie of particles that diffuse by such steps, and its true links."""
    rng, frames = np.random.default_rng(1), len(steps) + 1
    moved = np.concatenate(
        [np.zeros((1, count, 3)), steps[:, None, None] * rng.normal(size=(frames - 1, count, 3))]
    )
    place = rng.uniform(0, 9, (count, 3)) + np.cumsum(moved, axis=0) + noise * rng.normal(size=moved.shape)
    movie = movie_of(
        Detections.from_table(np.repeat(np.arange(frames), count), place.reshape(-1, 3)), (1, 1, 1)
    )
    who = np.argsort(movie.order).reshape(frames, count).astype(np.int32)
    row, col = who[:-1].ravel(), who[1:].ravel()
    return movie, replace(Linking.none(len(movie.frame)), row=row, col=col, probability=np.ones(len(row)))


def test_noise_is_no_step_scale():
    steps, noise = np.where(np.arange(30) % 6 < 3, 0.1, 0.3), 0.1
    movie, links = linked(steps, noise=noise)
    motion = Motion.static((float(np.sqrt(np.mean(steps**2))),) * 3, (noise,) * 3)
    scale = pace_of(movie, links, np.zeros_like(movie.position), motion)[:-1]
    ratio = np.sqrt(np.mean(scale[steps > 0.2] ** 2) / np.mean(scale[steps < 0.2] ** 2))
    assert ratio == pytest.approx(3, rel=0.15)


def test_how_long_a_step_takes_is_no_step_scale():
    lasting, noise = np.where(np.arange(40) % 2, 4, 1), 0.1
    time = np.append(0, np.cumsum(lasting))
    motion = Motion.static((0.2,) * 3, (noise,) * 3)
    movie, links = linked(0.2 * np.sqrt(lasting), noise=noise)
    still = np.zeros_like(movie.position)
    assert pace_of(movie, links, still, motion) is not None
    assert pace_of(replace(movie, time=time), links, still, motion) is None
    # Of long steps noise is a smaller part.
    true = np.where(np.arange(40) % 8 < 4, 0.5, 1.3)
    movie, links = linked(0.2 * true * np.sqrt(lasting), noise=noise)
    scale = pace_of(replace(movie, time=time), links, still, motion)[:-1]
    for long in (1, 4):
        slow, fast = (scale[(lasting == long) & which].mean() for which in (true < 1, true > 1))
        assert fast / slow == pytest.approx(1.3 / 0.5, rel=0.15)


def test_only_many_frames_that_differ_give_step_scales():
    """Links from the first and the last frame have no past or no future, and are wrong more often."""
    usual, ends = np.full(30, 0.2), np.full(30, 0.2)
    ends[[0, -1]] = 0.5
    other = np.where(np.arange(30) % 6 < 3, 0.1, 0.3)
    motion = Motion.static((0.2,) * 3)
    for steps, scaled in ((usual, False), (ends, False), (other, True), (other[:7], False)):
        movie, links = linked(steps)
        assert (pace_of(movie, links, np.zeros_like(movie.position), motion) is not None) == scaled


def test_a_survey_that_knows_one_step_is_not_asked(monkeypatch):
    wide = LinkModel(
        Motion.static((0.25,) * 3), (0.85, 0.08, 0.01), 0.06, 0.06, gate=(0.9,) * 3, clutter=0.01
    )
    crowd = movie_of(walks(np.full(14, 0.2), 1000, side=10.0).detections, (1, 1, 1))
    assert surveyor.Surveyor(crowd).revised(wide, doubt=0.1).motion != wide.motion
    steps = []
    monkeypatch.setattr(surveyor, "counted", lambda _, step, **__: steps.append(step))
    uneven, once = np.linspace(0.5, 1.5, 15), np.append(np.ones(14), 3.0)
    assert surveyor.Surveyor(crowd).revised(wide, doubt=0.1, reach=uneven).motion == wide.motion
    assert steps[0] == pytest.approx([0.35] * 3)  # who is seen again is counted as far as most go
    assert surveyor.Surveyor(crowd).revised(wide, doubt=0.1, reach=once).motion != wide.motion


def test_step_scales_are_learned_where_a_part_has_too_few_frames_for_them():
    truth = walks(np.where(np.arange(23) // 3 % 2, 0.3, 0.06), 2000, side=13.0)
    run = track(truth.detections)
    assert run.learned.pace is not None
    assert abs(over_sure(run, truth)) < 0.03
