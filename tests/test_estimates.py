"""Estimates: how far particles move and what they remember, from their steps, and how surely."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scenes import simulated
from scipy.optimize import nnls

from outbid.calibrate import calibrate
from outbid.calibrate.estimates import (
    LONGEST,
    _design,
    _least_squares,
    _lowest,
    first_step,
    motion_from,
    neighbour_distances,
)
from outbid.calibrate.maximise import Bias, Learnt, uncertainty
from outbid.motion import Motion
from outbid.refine.linking import LinkModel
from outbid.simulate.motions import BrownianWalk, OrnsteinUhlenbeckWalk


@pytest.mark.parametrize("sigma", [0.05, 0.2, 0.35])
def test_the_first_step_is_found_before_anything_is_linked(sigma):
    truth = simulated(BrownianWalk(sigma), frames=10)
    near = neighbour_distances(truth.detections.position, truth.detections.frame_start)
    found, _ = first_step(near, 3)
    assert found == pytest.approx(sigma, rel=0.12)


@pytest.mark.parametrize("sigma", [0.005, 0.03, 0.1])
def test_all_are_seen_again_in_a_movie_that_none_leaves(sigma):
    """Where no other particle is as near as the farthest step, any share explains how the steps spread."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        place = rng.uniform(0, 8, (500, 3)) + np.cumsum(rng.normal(0, sigma, (15, 500, 3)), axis=0)
        near = neighbour_distances(place.reshape(-1, 3), 500 * np.arange(16))
        assert first_step(near, 3)[1] == 1


def test_least_squares_without_negative_parts_are_those_of_scipy():
    """Also where two unknowns are one and the same: then only the squares are determined."""
    rng = np.random.default_rng(4)
    design, seen = rng.normal(size=(30, 5, 3)), rng.normal(size=(5, 2))
    design[:5, :, 1] = design[:5, :, 0]
    parts, squares = _least_squares(design, seen)
    expected = [[nnls(one, axis) for axis in seen.T] for one in design]
    np.testing.assert_allclose(squares, [sum(rest**2 for _, rest in axes) for axes in expected])
    found = np.array([[solution for solution, _ in axes] for axes in expected])
    np.testing.assert_allclose(parts[5:], np.swapaxes(found, 1, 2)[5:], atol=1e-9)


@pytest.mark.parametrize(
    "motion",
    [
        Motion.static((0.5, 0.2), (0.1, 0.05)),
        Motion((0.0, 0.0), (0.5, 1.0), 3.0, (0.1, 0.0)),
        Motion((0.3, 0.1), (0.5, 1.0), 10.0, (0.1, 0.2)),
        Motion((0.0, 0.0), (0.5, 1.0), 4.6, (0.1, 0.0)),
        Motion((0.0, 0.0), (0.5, 1.0), 1.2, (0.1, 0.2)),
    ],
)
def test_covariances_of_a_motion_give_the_motion(motion):
    covariance = np.array([motion.step_covariance(lag) for lag in (0, 1, 2, 3, 4, 1)])
    found = motion_from(covariance, np.full(6, 1e6), np.ones(6))
    for lag in range(5):
        np.testing.assert_allclose(
            found.step_covariance(lag), covariance[lag], atol=0.02 * covariance[0].max()
        )
    assert found.persistence == pytest.approx(motion.persistence, rel=1e-3)
    np.testing.assert_allclose(found.noise, motion.noise, atol=0.01)


@pytest.mark.parametrize("persistence", [2.0, 10.0, 30.0])
@pytest.mark.parametrize("seed", [3, 13, 17, 19])
def test_no_other_persistence_fits_better(persistence, seed):
    """Also where that of velocity alone is far from that of velocity beside diffusion."""
    motion, weight = Motion((0.0,) * 3, (0.3,) * 3, persistence, (0.03,) * 3), np.full(6, 4e3)
    exact = np.array([motion.step_covariance(lag) for lag in (0, 1, 2, 3, 4, 1)])
    covariance = exact + 0.03 * exact[0] * np.random.default_rng(seed).normal(size=exact.shape)
    found, lag = motion_from(covariance, weight, np.ones(6)), np.arange(5)
    used = [0, 1, 2] if any(found.diffusion) else [0, 2]
    seen = covariance[:5] / covariance[0] * np.sqrt(4e3)

    def left(times):
        design = _design(tuple(times), lag, np.ones(6)) * np.sqrt(4e3)
        return _least_squares(np.ascontiguousarray(design[..., used]), seen)[1]

    assert found.persistence > 0
    assert left([found.persistence])[0] <= left(np.geomspace(0.3, 300, 500)).min() + 0.05


def test_what_is_forgotten_at_once_is_diffusion_beside_what_lasts():
    """Both fit: a velocity of less than a frame, or diffusion and a slower one."""
    motion = Motion((0.8,), (0.4,), 3.0, (0.1,))
    covariance = np.array([motion.step_covariance(lag) for lag in (0, 1, 2, 3, 4, 1)])
    found = motion_from(covariance, np.full(6, 2000.0), np.ones(6))
    assert found.persistence == pytest.approx(3.0, rel=0.01)
    assert found.diffusion == pytest.approx((0.8,), rel=0.01)


@pytest.mark.parametrize(
    ("sure", "probable", "noise"), [(3.0, 50.0, 0.3), (3.0, 3.0, 0.0), (50.0, 50.0, 0.3)]
)
def test_noise_is_found_by_probable_steps_where_few_are_sure(sure, probable, noise):
    covariance = np.array([1, -0.2, 0, 0, 0, -(0.3**2)])[:, None]
    found = motion_from(covariance, np.array([100, sure, 0, 0, 0, probable]), np.ones(6))
    assert found.noise == pytest.approx((noise,))
    assert found.step_variance(1) == pytest.approx([1.0])


@pytest.mark.parametrize("time", [0.05, 1.0, 2.2, 2.4, 9.0])
def test_the_least_of_a_parabola_is_found_between_times_and_within_them(time):
    times = tuple(np.geomspace(1, 4, 13).tolist())
    found = _lowest(times, np.square(np.log(times) - math.log(time)))
    assert found == pytest.approx(min(max(time, 1), 4))


def test_standard_errors_are_the_scatter_from_movie_to_movie():
    walks = [simulated(OrnsteinUhlenbeckWalk(0.2, 4.0), seed=seed, noise=0.04) for seed in range(12)]
    learned = [calibrate(one.detections)[0] for one in walks]
    values = {
        "step": [np.sqrt(np.square(one.step).mean()) for one in learned],
        "persistence": [one.model.motion.persistence for one in learned],
        "noise": [np.mean(one.model.motion.noise) for one in learned],
    }
    for name, found in values.items():
        stated = np.median([one.uncertainty[name] for one in learned])
        assert 0.5 < stated / np.std(found, ddof=1) < 2, name


def test_noise_is_found_beside_a_velocity_of_hardly_more_than_a_frame():
    """Diffusion stays out of the fit, where it would take half of the noise."""
    noise = []
    for seed in range(4):
        truth = simulated(OrnsteinUhlenbeckWalk(0.3, 1.2), particles=400, noise=0.03, seed=seed)
        noise.append(np.mean(calibrate(truth.detections)[0].model.motion.noise))
    assert np.mean(noise) == pytest.approx(0.03, rel=0.15)


@pytest.mark.parametrize("persistence", [1.0, 100.0, math.inf])
def test_what_is_given_has_no_standard_error_and_spoils_no_other(persistence):
    truth = simulated(OrnsteinUhlenbeckWalk(0.2, 4.0), particles=200, noise=0.04)
    free, _ = calibrate(truth.detections)
    learned, _ = calibrate(truth.detections, known={"persistence": persistence})
    assert "persistence" in free.uncertainty
    assert "persistence" not in learned.uncertainty
    assert 0.5 < learned.uncertainty["noise"] / free.uncertainty["noise"] < 2
    assert "±" not in str(learned).partition("velocity")[2].partition("flow")[0]


def test_no_error_is_stated_of_a_memory_longer_than_any_that_is_looked_for():
    truth = simulated(OrnsteinUhlenbeckWalk(0.2, 1e5), particles=300, frames=15)
    learned, _ = calibrate(truth.detections)
    assert ("persistence" in learned.uncertainty) == (learned.model.motion.persistence < LONGEST)


def test_what_a_bootstrap_replicate_shows_is_as_uncertain_as_what_links_show():
    products, motion = np.zeros((8, 6, 6, 1)), Motion((0.0,), (1.0,), 3.0, (0.1,))
    rng = np.random.default_rng(0)
    for lag in range(6):
        products[:, lag] = 1000.0
        products[:, lag, 1] *= motion.step_covariance(lag if lag < 5 else 1) * rng.normal(1, 0.01, (8, 1))
        products[:, lag, 2:5] *= motion.step_covariance(0) * rng.normal(1, 0.01, (8, 1, 1))
    learnt = Learnt(LinkModel(motion, (0.9,), 0.1, 0.1, gate=(9.0,)), np.ones(1), products)
    alone = uncertainty(learnt, Bias.none(1), 8000)
    also = uncertainty(learnt, replace(Bias.none(1), doubt=np.full(6, 1 / 8000)), 8000)
    for name in ("step", "persistence", "noise"):
        assert also[name] == pytest.approx(math.sqrt(2) * alone[name], rel=0.02) != 0
    wider = uncertainty(learnt, replace(Bias.none(1), variance=np.array([1.21])), 8000)
    assert wider["step"] == pytest.approx(1.1 * alone["step"])
    assert uncertainty(replace(learnt, products=products[:1]), Bias.none(1), 8000) == {}
