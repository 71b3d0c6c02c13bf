"""Frames that move as a whole, turn or shear: the flow that particles share with their neighbours."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scenes import always_seen, carried, f1_of, lost, over_gaps

from outbid import Detections, Tracks, track

Points = NDArray[np.float64]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moves", "least"), [({"drift": 0.2}, 0.935), ({"disc": 0.3}, 0.9)], ids=["drift", "disc"]
)
def test_gaps_beside_frames_that_were_not_recorded(moves, least):
    """The way over a hole is that of all frames that are lost, not of one."""
    truth = carried(**moves, frames=60, step=0.05, count=400)
    truth = lost(truth, np.concatenate([[a, a + 1, a + 2] for a in range(4, 60, 8)]))
    run = track(truth.detections)
    assert over_gaps(truth, run.tracks) > least


@pytest.mark.smoke
@pytest.mark.parametrize("lone", [1, 3])
def test_frames_of_few_particles_at_one_place_have_no_drift(lone):
    """Their distance to the nearest neighbour is 0; all detections of the other frame are far."""
    place = np.random.default_rng(0).uniform(0, 9, (50, 3))
    points = np.concatenate([place, np.full((lone, 3), 4.0)])
    assert track(Detections.from_table([0] * 50 + [1] * lone, points)).learned.drift is None


@pytest.mark.slow
def test_streams_that_run_against_each_other_are_no_drift():
    """Neither half of the particles is taken for a stage that moves."""
    rng, count, frames = np.random.default_rng(4), 400, 15
    way = np.where(np.arange(count) % 2, 0.5, -0.5)[:, None] * [0, 0, 1.0]
    place = rng.uniform(0, count ** (1 / 3), (count, 3)) + np.arange(frames)[:, None, None] * way
    place += rng.normal(0, 0.06, place.shape)
    truth = always_seen(place)
    run = track(truth.detections)
    learned = run.learned
    assert learned.drift is None
    assert learned.step[2] == pytest.approx(0.507, rel=0.03)
    assert f1_of(run, truth) > 0.98


COUNT, FRAMES = 1600, 24
BOX = COUNT ** (1 / 3)


def walked(step: np.ndarray, *, seed: int = 0) -> Tracks:
    """Particles, one a unit of volume, that take these steps (FRAMES - 1, COUNT, 3); noise .02."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, BOX, (COUNT, 3)) + np.concatenate(
        [np.zeros((1, COUNT, 3)), np.cumsum(step, axis=0)]
    )
    return always_seen(place + rng.normal(0, 0.02, place.shape))


def steps(sigma: float | np.ndarray) -> np.ndarray:
    sizes = np.broadcast_to(sigma, FRAMES - 1)[:, None, None]
    return np.random.default_rng(1).normal(0, 1, (FRAMES - 1, COUNT, 3)) * sizes


@pytest.mark.slow
def test_one_jump_of_the_stage_is_seen():
    moved = steps(0.1)
    moved[17] += [0, 1.2, -1.0]
    truth = walked(moved)
    drift = track(truth.detections).learned.drift
    assert drift is not None
    np.testing.assert_allclose(np.diff(drift, axis=0)[17], [0, 1.2, -1.0], atol=0.05)
    assert f1_of(track(truth.detections), truth) > 0.97


@pytest.mark.slow
def test_particles_that_rest_in_the_middle_are_not_taken_for_slow_ones():
    """The gate holds the steps of all frames, not only of those in the middle."""
    truth = walked(steps(np.where(np.abs(np.arange(FRAMES - 1) - 11) < 5, 0.01, 0.18)))
    assert f1_of(track(truth.detections), truth) > 0.94


@pytest.mark.slow
def test_misses_that_come_late_are_learned():
    whole = walked(steps(0.08))
    kept = (whole.detections.frame < 15) | (np.random.default_rng(2).random(len(whole.detections)) > 0.3)
    truth = whole.take(kept)
    assert f1_of(track(truth.detections), truth) > 0.97


def turned(place: Points, angle: float) -> Points:
    return place @ [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]


def turning_tissue(seed, cells=300, frames=8, angle=0.2, noise=0.1):
    """Cells at one a unit of area, on a sheet that turns to and fro, and move about; who is who."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(-1, 1, (cells, 2)) * np.sqrt(cells) / 2
    steps = rng.normal(0, noise, (frames, cells, 2)).cumsum(axis=0)
    seen = [turned(place + step, angle * (frame % 2)) for frame, step in enumerate(steps)]
    return always_seen(np.array(seen))


LOST = pytest.mark.xfail(strict=True, reason=".44 of the links are right (limits.md)")


@pytest.mark.slow
@pytest.mark.parametrize(("angle", "least"), [(0.05, 0.92), (0.15, 0.91), pytest.param(0.2, 0.5, marks=LOST)])
def test_tissue_that_turns_is_followed_while_cells_stay_near(angle, least):
    """At .15 cells at the edge move by 1.3 spacings; at .2, by 1.7, half should be found."""
    truths = [turning_tissue(seed, angle=angle, noise=0.13) for seed in range(4)]
    assert np.mean([f1_of(track(truth.detections), truth) for truth in truths]) > least


@pytest.mark.slow
@pytest.mark.parametrize("angle", [0.05, 0.15, 0.2])
def test_a_warning_says_where_tissue_turns_too_far(angle):
    assert bool(track(turning_tissue(0, angle=angle, noise=0.13).detections).warning) == (angle == 0.2)
