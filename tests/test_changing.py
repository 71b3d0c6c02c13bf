"""Movies that are not the same all the time, and too large for all of it to be looked at first."""

from __future__ import annotations

import numpy as np
import pytest

from outbid import Detections, Tracks, score
from outbid.calibrate import calibrate
from outbid.calibrate.estimates import neighbour_distances
from outbid.refine.movie import movie_of

COUNT, FRAMES = 1600, 24
BOX = COUNT ** (1 / 3)


def walked(step: np.ndarray, *, seed: int = 0) -> Tracks:
    """Particles, one a unit of volume, that take these steps (FRAMES - 1, COUNT, 3); noise .02."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, BOX, (COUNT, 3)) + np.concatenate(
        [np.zeros((1, COUNT, 3)), np.cumsum(step, axis=0)]
    )
    place += rng.normal(0, 0.02, place.shape)
    seen = Detections.from_table(np.repeat(np.arange(FRAMES), COUNT), place.reshape(-1, 3))
    return Tracks.from_track_ids(seen, np.tile(np.arange(COUNT), FRAMES))


def f1_of(truth: Tracks) -> float:
    links = calibrate(truth.detections)[1]
    return score(Tracks(truth.detections, links.pairs), truth, families=("links",)).values["link_f1"]


def steps(sigma: float | np.ndarray) -> np.ndarray:
    sizes = np.broadcast_to(sigma, FRAMES - 1)[:, None, None]
    return np.random.default_rng(1).normal(0, 1, (FRAMES - 1, COUNT, 3)) * sizes


def test_one_jump_of_the_stage_is_seen():
    moved = steps(0.1)
    moved[17] += [0, 1.2, -1.0]
    truth = walked(moved)
    drift = calibrate(truth.detections)[0].drift
    assert drift is not None
    np.testing.assert_allclose(np.diff(drift, axis=0)[17], [0, 1.2, -1.0], atol=0.05)
    assert f1_of(truth) > 0.97


def test_particles_that_rest_in_the_middle_are_not_taken_for_slow_ones():
    """The gate holds the steps of all frames, not only of those in the middle."""
    assert f1_of(walked(steps(np.where(np.abs(np.arange(FRAMES - 1) - 11) < 5, 0.01, 0.18)))) > 0.95


def test_misses_that_come_late_are_learned():
    whole = walked(steps(0.08))
    kept = (whole.detections.frame < 15) | (np.random.default_rng(2).random(len(whole.detections)) > 0.3)
    truth = whole.take(kept)
    assert f1_of(truth) > 0.97


@pytest.mark.parametrize("sigma", [0.05, 0.2, 0.4])
def test_movies_that_stay_the_same_are_like_themselves(sigma):
    movie = movie_of(walked(steps(sigma)).detections, (1, 1, 1))
    first, last = movie.middle()
    assert last - first < FRAMES / 2
    assert neighbour_distances(movie.position, movie.frame_start).unlike(first, last) < 0.03
