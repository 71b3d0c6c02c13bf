"""Sweeps: beliefs from the past and from the future, all probable links at once."""

from __future__ import annotations

import numpy as np
import pytest

from outbid import Detections
from outbid.motion import Motion, State, first_state, predict, update
from outbid.refine import sweep_cpu
from outbid.refine.candidates import pairs_of
from outbid.refine.linking import Linking, LinkModel
from outbid.refine.movie import movie_of
from outbid.refine.sweep import swept
from outbid.refine.weigh import solved, weighed

MOTION = Motion((0.2, 0.1), (1.0, 0.5), 3.0, (0.1, 0.2))
RATES = {"follow": (0.9,), "end": 0.1, "start": 0.1}


def flown(starts, velocities, frames):
    """A movie (movie_of sorts by place, which `place` undoes) of particles that fly straight."""
    position = np.concatenate([np.add(starts, np.multiply(velocities, t)) for t in range(frames)])
    frame = np.repeat(np.arange(frames), len(starts))
    full = np.zeros((len(position), 3))
    full[:, 1:] = position
    return movie_of(Detections(frame.astype(np.int32), full), (1, 1, 1))


def given(movie, values):
    """Values in the order of the detections as they were given."""
    back = np.empty_like(values)
    back[movie.order] = values
    return back


def test_beliefs_of_lone_particles_are_those_of_the_kalman_filter():
    """Far from all others the only doubt is whether the track goes on; with clear odds it is none."""
    movie = flown([[0, 0], [500, 300.0]], [[1, 0.2], [-0.5, 0.1]], 6)
    model = LinkModel(MOTION, gate=(5.0, 5.0), **RATES)
    found = swept(movie, pairs_of(movie, model.gate), model, np.zeros((12, 2)))
    position = given(movie, movie.position).reshape(6, 2, 2)
    for backward, (mean, cov) in ((False, found.beliefs.past), (True, found.beliefs.future)):
        state = None
        for t in range(6)[:: -1 if backward else 1]:
            here = position[t]
            state = (
                first_state(MOTION, here)
                if state is None
                else update(MOTION, predict(MOTION, state, 1), here)
            )
            seen = State(*(given(movie, values).reshape(6, 2, 2, -1)[t] for values in (mean, cov)))
            np.testing.assert_allclose(seen.mean, state.mean, atol=2e-4)
            np.testing.assert_allclose(seen.covariance, state.covariance, rtol=2e-3, atol=2e-4)
    np.testing.assert_array_equal(given(movie, found.beliefs.followed), np.arange(12) < 10)


def test_two_that_may_be_the_one_before_are_mixed():
    """From -1 and 1 to 0, at equal odds: no velocity in the mean, and a variance that holds both."""
    movie = movie_of(Detections.from_table([0, 0, 1], [[0, 0, -1.0], [0, 0, 1], [0, 0, 0]]), (1, 1, 1))
    motion = Motion((0.0,), (1.0,), np.inf, (0.01,))
    model = LinkModel(motion, gate=(3.0,), **(RATES | {"start": 1e-9}))
    mean, cov = swept(movie, pairs_of(movie, model.gate), model, np.zeros((3, 1))).beliefs.past
    assert mean[2, 0] == pytest.approx([0, 0], abs=1e-6)
    assert cov[2, 0, 2] == pytest.approx(1.0, rel=0.01)


def test_a_known_shift_is_taken_out_both_ways():
    still = flown([[0, 0], [7, 3.0]], [[0, 0], [0, 0]], 5)
    moved = flown([[0, 0], [7, 3.0]], [[2, 1.0], [2, 1.0]], 5)
    model = LinkModel(MOTION, gate=(5.0, 5.0), **RATES)
    shift = np.tile([2.0, 1.0], (10, 1))
    of_still = swept(still, pairs_of(still, model.gate), model, 0 * shift)
    of_moved = swept(moved, pairs_of(moved, model.gate), model, shift)
    for side in ("past", "future"):
        (mean, cov), (mean_moved, cov_moved) = (
            getattr(found.beliefs, side) for found in (of_still, of_moved)
        )
        np.testing.assert_allclose(given(moved, mean_moved)[..., 1], given(still, mean)[..., 1], atol=1e-9)
        # The boxes differ, and so do the densities.
        np.testing.assert_allclose(given(moved, cov_moved), given(still, cov), atol=2e-3)


def test_forward_alone_knows_no_future():
    movie = flown([[0, 0], [9, 5.0]], [[1, 0], [-1, 0]], 4)
    model = LinkModel(MOTION, gate=(5.0, 5.0), two_sided=False, **RATES)
    assert not swept(movie, pairs_of(movie, model.gate), model, np.zeros((8, 2))).beliefs.followed.any()


def test_no_probable_pair_is_given_up():
    """What the sweeps exclude is improbable where all pairs are weighed as well."""
    rng = np.random.default_rng(3)
    place = rng.uniform(0, 7, (300, 3)) + np.cumsum(rng.normal(0, 0.25, (8, 300, 3)), axis=0)
    seen = Detections.from_table(np.repeat(np.arange(8), 300), place.reshape(-1, 3))
    movie, model = movie_of(seen, (1, 1, 1)), LinkModel(Motion.static((0.25,) * 3), gate=(1.1,) * 3, **RATES)
    near, shift = pairs_of(movie, model.gate), np.zeros((2400, 3))
    found = swept(movie, near, model, shift)
    assert len(found.pairs.indices) < 0.8 * len(near.indices)
    few, every = (
        solved(weighed(movie, pairs, model, found.beliefs, shift), Linking.none(2400))
        for pairs in (found.pairs, near)
    )
    np.testing.assert_array_equal(few.follower, every.follower)
    kept = set(zip(few.row.tolist(), few.col.tolist(), strict=True))
    lost = [
        chance
        for row, col, chance in zip(every.row.tolist(), every.col.tolist(), every.probability, strict=True)
        if (row, col) not in kept
    ]
    assert max(lost, default=0) < 0.01


@pytest.mark.parametrize("power", [1.75, 2.0, 2.5, 5.25, 16.5, 63.75, 64.0, 2.7])
def test_powers_by_roots_are_those_by_logs(power):
    quarters = int(4 * power) if 4 * power == int(4 * power) else 0
    far, odds = np.array([0.0, 1e-9, 0.3, 15.0, 1e4]), np.empty(5)
    sweep_cpu.fallen(0, 5, far, np.full(5, 2.0), 0.5, power, quarters, odds)
    np.testing.assert_allclose(odds, 2 * (1 + far / 2) ** -power, rtol=1e-12)
    sweep_cpu.fallen(0, 5, far, np.full(5, 2.0), 0.0, power, quarters, odds)
    np.testing.assert_allclose(odds, 2 * np.exp(-far / 2), rtol=1e-12)


def test_odds_far_away_are_those_of_the_exponential_until_there_are_none():
    far, odds = np.array([30.0, 100.0, 200.0, 1399.0, 1400.0, 1e300, np.inf]), np.empty(7)
    sweep_cpu.fallen(0, 7, far, np.full(7, 2.0), 0.0, 0.0, 0, odds)
    np.testing.assert_allclose(odds[:3], 2 * np.exp(-far[:3] / 2), rtol=1e-9)
    np.testing.assert_allclose(odds[3], 2 * np.exp(-far[3] / 2), rtol=0.01)
    assert (odds[4:] == 0).all()


def test_what_has_none_before_it_may_be_clutter():
    """Of three in the last frame but one, two that were seen before go on; the third is likelier clutter."""
    rows = [(t, (0, 0, x + 0.01 * t)) for t in range(4) for x in (0.0, 10.0)] + [(2, (0, 0, 20.0))]
    frame, place = zip(*sorted(rows), strict=True)
    movie = movie_of(Detections.from_table(list(frame), [list(one) for one in place]), (1, 1, 1))
    plain = LinkModel(Motion.static((1.0,)), gate=(5.0,), **RATES)
    model = LinkModel(Motion.static((1.0,)), gate=(5.0,), clutter=0.05, **RATES)
    still = np.zeros_like(movie.position)
    past, future = swept(movie, pairs_of(movie, model.gate), model, still).beliefs.alone
    lone = np.nonzero(movie.position[:, 0] > 15)[0]
    assert past[lone] == pytest.approx(0.5)  # half of the starts are clutter
    assert future[lone] == pytest.approx(0.5)
    assert (past[movie.frame == 0] == 0.05).all()  # nobody knows what was before
    followed = np.setdiff1d(np.nonzero(movie.frame == 2)[0], lone)
    assert (past[followed] < 0.05).all()
    links = []
    for one in (plain, model):
        near = pairs_of(movie, one.gate)
        beliefs = swept(movie, near, one, still).beliefs
        links.append(solved(weighed(movie, near, one, beliefs, still), Linking.none(len(movie.frame))))
    assert (links[1].gain[followed] > links[0].gain[followed] + 0.5).all()
