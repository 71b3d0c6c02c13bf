"""Motion: transitions, the filter and its kernels, and the odds that two halves are one track."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from outbid import SettingsError
from outbid.calibrate.estimates import ROWS
from outbid.calibrate.maximise_cpu import step_products
from outbid.motion import Motion, first_state, negative_log_likelihood, predict, update
from outbid.refine import weigh_cpu
from outbid.simulate.motions import OrnsteinUhlenbeckWalk

WALK = Motion((0.2, 0.3, 0.1), (0.5, 0.4, 0.9), 4.0, (0.1, 0.05, 0.2))
amounts = st.floats(0.01, 3.0)


@st.composite
def motions(draw) -> Motion:
    axes = draw(st.integers(1, 3))
    of_axes = st.tuples(*[amounts] * axes)
    time = draw(st.sampled_from([0.0, 0.4, 3.0, 50.0, math.inf]))
    return Motion(draw(of_axes), draw(of_axes), time, draw(of_axes))


@given(motions(), st.integers(1, 4), st.integers(1, 4))
def test_two_predictions_are_one(motion, first, second):
    now = update(motion, first_state(motion, np.ones((2, motion.axes))), np.zeros((2, motion.axes)))
    twice, once = predict(motion, predict(motion, now, first), second), predict(motion, now, first + second)
    np.testing.assert_allclose(twice.mean, once.mean, atol=1e-9)
    if motion.persistence > 0:  # a velocity that is forgotten at once moves nothing, whatever the split
        np.testing.assert_allclose(twice.covariance, once.covariance, rtol=1e-7, atol=1e-9)


@given(motions(), st.integers(0, 2**31))
def test_the_kernel_filters_as_predict_and_update_do(motion, seed):
    rng = np.random.default_rng(seed)
    gaps = rng.integers(1, 4, 5)
    seen = rng.normal(0, 2, (6, motion.axes))
    state = first_state(motion, seen[:1])
    for gap, position in zip(gaps, seen[1:], strict=True):
        state = update(motion, predict(motion, state, int(gap)), position[None])
    mean, cov = filtered(motion, seen, np.cumsum([0, *gaps]), np.arange(-1, 5))
    np.testing.assert_allclose(mean[-1:], state.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(cov[-1:], state.covariance, rtol=1e-6, atol=1e-8)


def test_steps_of_the_simulated_walk_have_the_covariances_of_the_model():
    walk, rng = OrnsteinUhlenbeckWalk(speed=0.6, persistence_time=4.0), np.random.default_rng(3)
    velocity, places = walk.start(60_000, rng), [np.zeros((60_000, 3))]
    for _ in range(5):
        step, velocity = walk.move(velocity, rng)
        places.append(places[-1] + step)
    steps = np.diff(np.array(places) + rng.normal(0, 0.1, (6, 60_000, 3)), axis=0)
    motion = Motion((0.0,) * 3, (0.6 / math.sqrt(3),) * 3, 4.0, (0.1,) * 3)
    for lag in range(5):
        found = (steps[0] * steps[lag]).mean(axis=0)
        np.testing.assert_allclose(found, motion.step_covariance(lag), atol=0.004)
    np.testing.assert_allclose((steps[:3].sum(axis=0) ** 2).mean(axis=0), motion.step_variance(3), rtol=0.02)


@pytest.mark.parametrize("gap", [1, 2])
@pytest.mark.parametrize("halves", [(1, 1), (3, 1), (1, 3), (3, 4)])
def test_the_odds_of_a_pair_are_the_likelihood_of_one_track_against_two(halves, gap):
    """Past and future meet in the pair exactly as the chain of all their detections says."""
    rng = np.random.default_rng(sum(halves))
    first, second = halves
    count = first + second
    seen = rng.normal(5, 1.0, (count, 3))
    frame = np.arange(count) + np.where(np.arange(count) >= first, gap - 1, 0)
    gain = pair_gain(WALK, seen, frame, first)
    whole = likelihood(WALK, seen, frame)
    parts = likelihood(WALK, seen[:first], frame[:first]) + likelihood(WALK, seen[first:], frame[first:])
    assert gain == pytest.approx(whole - parts, abs=1e-6)


@pytest.mark.parametrize("halves", [(1, 1), (3, 1), (1, 3), (3, 4)])
def test_at_another_step_scale_the_odds_are_those_of_steps_as_much_longer(halves):
    """The expected odds are of one Gaussian, of steps and noise of a track, without a filter."""
    rng = np.random.default_rng(7)
    first, count = halves[0], sum(halves)
    seen, scale = rng.normal(5, 1.0, (count, 3)), rng.uniform(0.3, 2.0, count)

    def dense(begun: int, ended: int) -> float:
        steps, each = np.diff(seen[begun:ended], axis=0), scale[begun : ended - 1]
        lag = np.abs(np.subtract.outer(np.arange(len(each)), np.arange(len(each))))
        noise = np.where(lag == 0, 2.0, np.where(lag == 1, -1.0, 0.0))
        total = 0.0
        for k, sigma in enumerate(WALK.noise):
            own = np.array([WALK.step_covariance(int(n))[k] for n in range(len(each) + 1)])
            own[:2] -= np.array([2.0, -1.0])[: len(own)] * sigma**2
            both = np.outer(each, each) * own[lag] + noise * sigma**2
            total += multivariate_normal(np.zeros(len(each)), both).logpdf(steps[:, k]) if len(each) else 0.0
        return total

    gain = pair_gain(WALK, seen, np.arange(count), first, scale=scale)
    assert gain == pytest.approx(dense(0, count) - dense(0, first) - dense(first, count), abs=1e-6)


def test_links_that_are_not_believed_leave_the_particle_as_new():
    seen = np.array([[0.0, 0, 0], [1, 2, 3]])
    mean, cov = filtered(WALK, seen, np.array([0, 1]), np.array([-1, 0]), trust=np.zeros(2))
    new = first_state(WALK, seen)
    np.testing.assert_allclose(mean, new.mean, atol=1e-12)
    np.testing.assert_allclose(cov, new.covariance, atol=1e-12)


def test_heavy_tails_turn_into_the_gaussian():
    seen, frame = np.array([[0.0, 0, 0], [1, 0.5, 0.2]]), np.arange(2)
    assert pair_gain(WALK, seen, frame, 1, freedom=1e7) == pytest.approx(
        pair_gain(WALK, seen, frame, 1), abs=1e-4
    )


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 4))
def test_probabilities_of_pairs_agree_with_the_sum_over_all_matchings(seed, rows, cols):
    rng = np.random.default_rng(seed)
    gain = rng.normal(0, 2, (rows, cols))
    exact = np.zeros((rows, cols))
    total = 0.0
    for choice in itertools.product(range(-1, cols), repeat=rows):
        used = [col for col in choice if col >= 0]
        if len(set(used)) < len(used):
            continue
        weight = math.exp(sum(gain[row, col] for row, col in enumerate(choice) if col >= 0))
        total += weight
        for row, col in enumerate(choice):
            if col >= 0:
                exact[row, col] += weight
    found = np.empty(rows * cols)
    indptr, indices = np.arange(rows + 1) * cols, np.tile(np.arange(cols, dtype=np.int32), rows)
    weigh_cpu.pair_probabilities(indptr, indices, cols, gain.ravel(), 30, 0.0, found)
    # Exact where there is no loop; elsewhere propagation is an approximation.
    np.testing.assert_allclose(found, exact.ravel() / total, atol=1e-9 if min(rows, cols) == 1 else 0.15)


@pytest.mark.parametrize(
    "wrong",
    [((1.0,), (1.0, 1.0), 1.0, (0.0,)), ((-1.0,), (1.0,), 1.0, (0.0,)), ((1.0,), (1.0,), math.nan, (0.0,))],
)
def test_motions_that_make_no_sense_are_refused(wrong):
    with pytest.raises(SettingsError):
        Motion(*wrong)


# ---------------------------------------------------------------- the kernels, called plainly


def table_of(motion: Motion, scale=(1.0,)) -> np.ndarray:
    """Transitions over up to four frames where the step scale is the same, or else over one."""
    whole = np.stack([np.zeros((motion.axes, 5))] + [motion.transition(gap) for gap in range(1, 5)])
    ahead = np.broadcast_to(np.arange(5.0)[:, None, None], (5, motion.axes, 1))
    whole = np.concatenate([whole, ahead, 0 * ahead], axis=-1)
    return np.stack([whole * [each, 1, each**2, each, 1, 1, 1] for each in scale])


def filtered(motion, seen, frame, before, *, backward=False, trust=None, scale=(1.0,)):
    count, axes = seen.shape
    mean, cov = np.empty((count, axes, 2)), np.empty((count, axes, 3))
    trust = np.ones(count) if trust is None else trust
    speed2, noise2 = np.square(motion.speed), np.square(motion.noise)
    shift = np.zeros_like(seen)
    weigh_cpu.filter_tracks(
        seen, frame, before, shift, trust, table_of(motion, scale), speed2, noise2, backward, mean, cov
    )
    return mean, cov


def pair_gain(motion, seen, frame, first, freedom=0.0, scale=(1.0,)) -> float:
    """Log odds of the pair (first - 1, first) with all other links known."""
    count, axes = seen.shape
    before, follower = np.arange(-1, count - 1), np.append(np.arange(1, count), -1)
    before[first], follower[first - 1] = -1, -1
    past = filtered(motion, seen, frame, before, scale=scale)
    future = filtered(motion, seen, frame, follower, backward=True, scale=scale)
    place, weight, constant = np.empty((count, axes, 2)), np.empty((count, axes, 3)), np.empty(count)
    speed2, noise2 = np.square(motion.speed), np.square(motion.noise)
    weigh_cpu.messages(seen, follower, *future, speed2, noise2, place, weight, constant)
    indptr, frames = np.zeros(count + 1, dtype=np.int64), frame.astype(np.int32)
    indptr[first:] = 1
    distance2, gain = np.empty(1), np.empty(1)
    weigh_cpu.weigh_pairs(
        0, count, indptr, np.array([first], np.int32), frames, *past, np.zeros_like(seen), place, weight,
        constant, table_of(motion, scale), np.zeros(5), np.zeros(count), np.zeros(count), freedom, 1.0,
        distance2, gain,
    )  # fmt: skip
    return float(gain[0])


def likelihood(motion, seen, frame) -> float:
    """Log density of a track, the place of its first detection being anywhere."""
    state, total = first_state(motion, seen[:1]), 0.0
    for step in range(1, len(seen)):
        state = predict(motion, state, int(frame[step] - frame[step - 1]))
        total -= float(negative_log_likelihood(motion, state, seen[step : step + 1])[0])
        state = update(motion, state, seen[step : step + 1])
    return total


def test_steps_apart_weigh_by_the_fourth_power_of_probabilities_but_in_the_last_row():
    """A particle at 0, 1, 3 and 6; its links are right with .9 and .8, and the last may be with .5."""
    place, still = np.array([0.0, 1.0, 3.0, 6.0]), np.zeros(4)
    products = np.zeros((1, ROWS, 6, 1))
    step_products(
        np.array([2]), np.array([3], np.int32), np.array([0.5]), np.arange(4), place, still, np.ones(1),
        np.array([-1, 0, 1, -1]), np.array([0.9, 0.8, 0.0, 0.0]), np.zeros(4, np.int64), 1, (-99.0,), (99.0,),
        (1.0,), products,
    )  # fmt: skip
    weight, crossed, last2, earlier2, seen2, noisy = products[0, :, :, 0].T
    two, three = (0.5 * 0.8) ** 4, (0.5 * 0.8 * 0.9) ** 4
    np.testing.assert_array_equal(noisy, weight)
    np.testing.assert_allclose(weight, [0.5, two, three, 0, 0, 0.5 * 0.8])
    np.testing.assert_allclose(crossed, [4.5, 6 * two, 3 * three, 0, 0, 6 * 0.5 * 0.8])
    np.testing.assert_allclose(last2[1:], [9 * two, 9 * three, 0, 0, 9 * 0.5 * 0.8])
    np.testing.assert_allclose(earlier2[1:], [4 * two, 1 * three, 0, 0, 4 * 0.5 * 0.8])
    assert seen2.tolist() == [4.5, 0, 0, 0, 0, 0]


def test_steps_at_another_step_scale_count_as_usual_ones():
    place, products = np.array([0.0, 1.0, 3.0, 6.0]), np.zeros((2, 1, ROWS, 6, 1))
    for where, scale, to in ((place, np.ones(1), products[0]), (place * 0.5, np.full(4, 0.5), products[1])):
        step_products(
            np.array([2]), np.array([3], np.int32), np.array([0.5]), np.arange(4), where, np.zeros(4),
            1 / scale, np.array([-1, 0, 1, -1]), np.array([0.9, 0.8, 0.0, 0.0]), np.zeros(4, np.int64), 1,
            (-99.0,), (99.0,), (1.0,), to,
        )  # fmt: skip
    np.testing.assert_allclose(products[1, ..., :4, :], products[0, ..., :4, :])
    np.testing.assert_allclose(products[1, ..., 4:, :], products[0, ..., 4:, :] * [[0.25], [4.0]])
