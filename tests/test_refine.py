"""Refinement with a known model, the flow of neighbours, and links over gaps."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import cKDTree

from outbid import Detections, SettingsError, match
from outbid.calibrate.flow import Flow, _regressed
from outbid.motion import Motion
from outbid.neighbours import nearest
from outbid.refine import Linking, LinkModel, refine, weigh
from outbid.refine.candidates import no_longer, over_gaps, pairs_of
from outbid.refine.movie import movie_of
from outbid.refine.weigh import link_pass


def movie(*frames) -> Detections:
    """Points along x, one list a frame."""
    frame = [t for t, xs in enumerate(frames) for _ in xs]
    return Detections.from_table(frame, [[0.0, 0.0, x] for xs in frames for x in xs])


STILL = LinkModel(Motion.static((1.0,), (0.1,)), (0.9,), 0.1, 0.1, gate=(5.0,))
STRAIGHT = LinkModel(Motion.constant_velocity((3.0,), (0.1,)), (0.9,), 0.1, 0.1, gate=(12.0,))
CROSSING = movie([0, 13], [4, 10], [8, 7], [12, 4])


def test_velocities_show_who_is_who_where_particles_cross():
    assert refine(CROSSING, STRAIGHT).pairs.tolist() == [[0, 2], [1, 3], [2, 4], [3, 5], [4, 6], [5, 7]]


def test_only_both_sides_show_the_first_link_of_a_crossing():
    """From 4.4 and 5.6 to 5 and 5.1 distance says swap; what comes after says that they fly on."""
    scene = movie([4.4, 5.6], [5.6, 4.4], [6.8, 3.2], [8.0, 2.0], [9.2, 0.8])
    forward = LinkModel(STRAIGHT.motion, (0.9,), 0.1, 0.1, gate=(12.0,), two_sided=False)
    assert [0, 3] in refine(scene, forward).pairs.tolist()
    assert [0, 2] in refine(scene, STRAIGHT).pairs.tolist()


def test_a_missed_particle_is_found_again_if_the_model_knows_of_misses():
    scene = movie([0, 30], [4, 30], [30], [12, 30], [16, 30])
    assert [2, 5] not in refine(scene, STRAIGHT).pairs.tolist()
    often = LinkModel(STRAIGHT.motion, (0.8, 0.15), 0.05, 0.05, gate=(12.0,))
    assert [2, 5] in refine(scene, often).pairs.tolist()


def test_one_pass_of_static_particles_is_the_squared_distance_assignment():
    """The likelihood of Gaussian steps: same costs up to a constant, so the same match."""
    rng = np.random.default_rng(2)
    place = rng.uniform(0, 10, (300, 3))
    later = place + rng.normal(0, 0.3, place.shape)
    seen = Detections.from_table(np.repeat([0, 1], 300), np.concatenate([place, later]))
    model = LinkModel(Motion.static((0.3,) * 3), (0.9,), 0.1, 0.1, gate=(3.0,) * 3)
    crowded = movie_of(seen, (1, 1, 1))
    pairs = pairs_of(crowded, model.gate)
    even = pairs.log_density * 0 + np.log(300 / 1000)  # match knows no densities
    evenly = replace(pairs, log_density=even)
    linking = link_pass(crowded, evenly, model, Linking.none(600), np.zeros((600, 3)))
    # Where a link stops to pay: log odds of 0 in a Gaussian of variance .3² (the floors add 3e-6 of it).
    odds = np.log(0.9 / (0.1 * 0.1 * 0.3)) - 1.5 * np.log(2 * np.pi * 0.09)
    found = match(place, later, 3.0, cost="squared", unmatched_cost=odds * 0.09)
    source = np.nonzero(linking.follower >= 0)[0]
    pairs_found = {
        (int(crowded.order[i]), int(crowded.order[j]) - 300)
        for i, j in zip(source, linking.follower[source], strict=True)
    }
    assert pairs_found == set(zip(found.source.tolist(), found.target.tolist(), strict=True))
    assert linking.gap == 0


def test_links_over_gaps_are_followed_by_a_model_that_knows_none():
    """Calibration stops looking for gaps that turn out to be rare; those found stay in the filter."""
    seen = movie_of(movie([0], [], [], [3], [4]), (1, 1, 1), interval=1)
    gone = LinkModel(STRAIGHT.motion, (0.8, 0.1, 0.05), 0.05, 0.05, gate=(12.0,))
    nowhere = np.zeros((3, 1))
    near, everyone = pairs_of(seen, gone.gate), np.arange(3)
    far = over_gaps(seen, near, [(30.0,)] * 2, everyone, everyone, [np.zeros((3, 1))] * 2)
    over_gap = link_pass(seen, far, gone, Linking.none(3), nowhere)
    assert over_gap.follower.tolist() == [1, 2, -1]
    again = link_pass(seen, near, STRAIGHT, over_gap, nowhere)
    assert again.follower.tolist() == [-1, 2, -1]
    # Known to move by 1 a frame, not by anything up to 3: the link is the surer for it.
    fresh = link_pass(seen, near, STRAIGHT, Linking.none(3), nowhere)
    assert again.gain[1] > fresh.gain[1]


def test_links_depend_on_neither_the_order_of_rows_nor_workers_nor_units(monkeypatch):
    rng = np.random.default_rng(4)
    place = rng.uniform(0, 6, (200, 3)) + np.cumsum(rng.normal(0, 0.15, (8, 200, 3)), axis=0)
    frame, position = np.repeat(np.arange(8), 200), place.reshape(-1, 3)

    def linked(order, scale=1.0, workers=1):
        seen = Detections.from_table(frame[order], position[order] * scale)
        model = LinkModel(Motion.static((0.15 * scale,) * 3), (0.9,), 0.1, 0.1, gate=(0.7 * scale,) * 3)
        by_frame = np.argsort(frame[order], kind="stable")
        found = refine(seen, model, workers=workers)
        return {(int(order[by_frame[i]]), int(order[by_frame[j]])) for i, j in found.pairs}

    given = np.arange(len(frame))
    expected = linked(given)
    assert linked(rng.permutation(len(frame))) == expected
    monkeypatch.setattr(weigh, "_WORTH_A_THREAD", 10)
    assert linked(given, workers=3) == expected
    assert linked(given, scale=1e-4) == expected


def test_pairs_over_gaps_are_those_that_distances_give():
    rng = np.random.default_rng(11)
    seen = movie_of(
        Detections.from_table(np.sort(rng.integers(0, 6, 120)), rng.uniform(0, 4, (120, 2))), (1, 1, 1)
    )
    gate, rows, cols = (0.7, 0.4), np.arange(0, 120, 2), np.arange(0, 120, 3)
    gates, ahead = [(0.9, 0.8), (1.5, 0.6)], rng.normal(0, 0.3, (2, 60, 2))
    near = pairs_of(seen, gate)
    pairs = over_gaps(seen, near, gates, rows, cols, list(ahead))
    gap = seen.frame[None] - seen.frame[:, None]
    allowed = np.zeros((120, 120), dtype=bool)
    for frames, radii in enumerate([gate, *gates], start=1):
        expected = seen.position.copy()
        if frames > 1:
            expected[rows] += ahead[frames - 2]
        away = (seen.position[None] - expected[:, None]) / radii
        allowed |= (gap == frames) & ((away**2).sum(axis=2) <= 1)
    none = over_gaps(seen, near, [(0.0, 0.0)] * 2, rows, cols, list(ahead))
    np.testing.assert_array_equal(none.indices, near.indices)
    chosen = np.isin(np.arange(120), rows)[:, None] & np.isin(np.arange(120), cols)
    assert_pairs(near, allowed & (gap == 1))
    assert_pairs(pairs, allowed & ((gap == 1) | chosen))
    assert_pairs(no_longer(seen, pairs, 2), allowed & ((gap == 1) | (chosen & (gap == 2))))


def assert_pairs(pairs, expected):
    row = np.repeat(np.arange(len(pairs.indptr) - 1), np.diff(pairs.indptr))
    found = np.zeros_like(expected)
    found[row, pairs.indices] = True
    np.testing.assert_array_equal(found, expected)
    assert found.sum() == len(pairs.indices)


@pytest.mark.parametrize("frames", [[], [[1.0]], [[1, 2]], [[1, 1], [1, 1]], [[0], [], [1]]])
def test_movies_with_little_in_them(frames):
    found = refine(movie(*frames), STILL)
    assert len(found.pairs) == (2 if len(frames) == 2 else 0)
    assert found.gap == 0


def test_models_that_make_no_sense_are_refused():
    with pytest.raises(SettingsError, match="follow is"):
        LinkModel(STILL.motion, (1.2,), 0.1, 0.1, gate=(1.0,))
    with pytest.raises(SettingsError, match="end is 0"):
        LinkModel(STILL.motion, (0.9,), 0, 0.1, gate=(1.0,))


# ---------------------------------------------------------------- flow


def test_a_vortex_is_predicted_by_neighbours_and_a_drift_by_all():
    rng = np.random.default_rng(5)
    place = rng.uniform(-1, 1, (4000, 2))
    starts = np.arange(0, 4001, 1000)
    around = 0.1 * np.stack([-place[:, 1], place[:, 0]], axis=1)
    flow = Flow(starts, place, workers=2)
    predicted, crowd = flow.foretold(around)
    assert crowd == 16
    assert np.abs(predicted - around).mean() < 0.01
    drift = np.repeat(rng.normal(0, 1, (4, 2)), 1000, axis=0)
    noisy = drift + rng.normal(0, 0.5, drift.shape)
    predicted, crowd = flow.foretold(noisy)
    assert crowd == 0
    assert np.abs(predicted - drift).mean() < 0.05


def test_independent_steps_have_no_flow():
    rng = np.random.default_rng(6)
    step = rng.normal(0, 1, (3000, 3))
    step[::5] = np.nan
    predicted, crowd = Flow(np.arange(0, 3001, 500), rng.uniform(0, 1, (3000, 3))).foretold(step)
    assert crowd is None
    assert not predicted.any()


def test_a_particle_does_not_predict_itself():
    place, step = np.random.default_rng(7).uniform(0, 1, (40, 3)), np.zeros((40, 3))
    step[3] = 5.0
    for crowd_step in (step, step + np.linspace(0, 1, 40)[:, None] * place):
        predicted, _ = Flow(np.array([0, 40]), place).foretold(crowd_step)
        assert np.abs(predicted[3]).max() < 1.5


@pytest.mark.parametrize("crowd", [4, 0])
@pytest.mark.parametrize("doubted", [False, True])
def test_a_flow_is_the_weighted_mean_of_the_neighbours_that_have_a_step_times_its_slope(crowd, doubted):
    rng, starts = np.random.default_rng(8), np.array([0, 30, 33, 33, 100])
    place, drift = rng.uniform(0, 1, (100, 3)), np.repeat([1.0, -2.0, 0.5, 1.0], [30, 3, 0, 67])[:, None]
    step = drift * (1 + place) + rng.normal(0, 0.1, (100, 3))
    step[rng.random(100) < 0.4] = np.nan
    trust = rng.random(100) if doubted else np.ones(100)
    known, mean = ~np.isnan(step[:, 0]), np.zeros((100, 3))
    for low, high in itertools.pairwise(starts):
        for i in range(low, high):
            away = np.linalg.norm(place[low:high] - place[i], axis=1)
            others = low + np.argsort(away)[1:]
            weight = trust * known
            if crowd:
                others = others[: crowd * 3 // 2]
                wide = 1.62**0.5 * away[others[:crowd][-1] - low]
                weight[low:high] *= np.maximum(1 - (away / wide) ** 2, 0) ** 3
            others = [j for j in others if weight[j] > 0]
            if len(others) >= 3:
                mean[i] = np.average(step[others], axis=0, weights=weight[others])
    slope = (trust[:, None] * step * mean)[known].sum(axis=0) / (trust[:, None] * mean**2)[known].sum(axis=0)
    predicted, chosen = Flow(starts, place, crowds=(crowd,)).foretold(step, trust if doubted else None)
    assert chosen == crowd
    np.testing.assert_allclose(predicted, np.clip(slope, 0, 1) * mean)


def test_what_a_flow_explains_counts_as_much_as_links_are_probable():
    rng = np.random.default_rng(10)
    mean, trust = rng.normal(0, 1, (300, 2)), rng.random(300)
    step = 0.5 * mean + rng.normal(0, 1 - trust[:, None], (300, 2))
    step[::7] = np.nan
    slope, rest = _regressed(step, mean, trust)
    left, known = trust[:, None] * (step - slope * mean) ** 2, ~np.isnan(step[:, 0])
    assert rest == pytest.approx((left[known].sum(0) / (trust[:, None] * step**2)[known].sum(0)).mean())


def test_a_little_flow_is_not_believed_of_links_that_are_mostly_wrong():
    """They make one as well, which would bear them out."""
    rng = np.random.default_rng(4)
    place, starts = rng.uniform(0, 10, (3000, 3)), np.array([0, 3000])
    step = 0.35 * np.stack([np.sin(place[:, 1]), np.cos(place[:, 0]), 0 * place[:, 0]], axis=1)
    step += rng.normal(0, 1, step.shape)
    for trust in (1.0, 0.95, 0.3):
        flow, probable = Flow(starts, place), np.full(3000, trust)
        # What is little at first may be much once links follow it.
        found = [flow.foretold(step, probable) for _ in range(3)]
        assert [crowd is not None for _, crowd in found] == [True, True, trust > 0.9]
        assert bool(found[2][0].any()) == (trust > 0.9)


def test_a_flow_begun_anew_chooses_anew():
    rng, starts = np.random.default_rng(11), np.array([0, 1000])
    place = rng.uniform(-1, 1, (1000, 2))
    drift = 1 + rng.normal(0, 0.1, (1000, 2))
    used = Flow(starts, place)
    assert [used.foretold(drift)[1] for _ in range(3)] == [0, 0, 0]
    around = np.stack([-place[:, 1], place[:, 0]], axis=1)
    assert used.foretold(around)[1] is None
    again, fresh = used.anew().foretold(around), Flow(starts, place).foretold(around)
    assert again[1] == fresh[1] == 16
    np.testing.assert_array_equal(again[0], fresh[0])
    few = Flow(starts, place, crowds=(8, 4))
    assert few.foretold(around)[1] == few.anew().foretold(around)[1] == 8


def test_a_patch_of_wrong_links_does_not_bear_itself_out():
    """Each of a patch steps as its neighbours do, the wrong way; but few of those links are probable."""
    rng = np.random.default_rng(9)
    place = rng.uniform(0, 10, (3000, 3))
    step = np.tile([1.0, 0.5, 0.0], (3000, 1)) + rng.normal(0, 0.05, place.shape)
    wrong = np.linalg.norm(place - 5, axis=1) < 1.5
    step[wrong] *= -1
    trust = np.where(wrong, 0.1, 0.9)
    predicted, _ = Flow(np.array([0, 3000]), place, crowds=(16,)).foretold(step, trust)
    edge = wrong & (np.linalg.norm(place - 5, axis=1) > 1.0)
    assert np.median(predicted[edge, 0]) > 0.3
    assert np.median(Flow(np.array([0, 3000]), place, crowds=(16,)).foretold(step)[0][edge, 0]) < 0.0


# ---------------------------------------------------------------- neighbours


SPREADS = {
    "even": lambda rng, shape: rng.random(shape),
    "clustered": lambda rng, shape: rng.standard_cauchy(shape) ** 3,
    "one place": lambda _, shape: np.zeros(shape),
    "whole pixels": lambda rng, shape: rng.integers(0, 6, shape).astype(float),
    "minute": lambda rng, shape: 1e-170 * rng.random(shape),  # squares are 0
}


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 300])
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("count", [1, 5, 24])
def test_nearest_neighbours_are_those_of_a_tree(axes, size, spread, count):
    place = SPREADS[spread](np.random.default_rng(12), (2 * size, axes))
    starts = np.array([0, size, size, 2 * size])
    for offset, frames, every in ((0, [0, 2], 1), (0, [0, 2], 3), (2, [0], 1)):
        rows = np.concatenate([np.arange(starts[f], starts[f + 1], every) for f in frames])
        near, distance2 = nearest(place, starts, rows, count, offset=offset, workers=2)
        alone, _ = nearest(place, starts, rows, count, offset=offset)
        assert (near == alone).all()
        for frame in frames:
            asked = place[starts[frame + offset] : starts[frame + offset + 1]]
            these = (rows >= starts[frame]) & (rows < starts[frame + 1])
            there = min(count, size - (offset == 0))
            expected = cKDTree(asked).query(place[rows[these]], np.arange(1, there + 2))[0]
            expected = expected[:, 1:] if offset == 0 else expected[:, :-1]
            np.testing.assert_allclose(np.sqrt(distance2[these][:, :there]), expected, atol=1e-160)
            assert (near[these][:, there:] == -1).all()
            assert not (near[these] == rows[these, None]).any()
            assert all(len(set(some[:there].tolist())) == there for some in near[these])
            to = np.sqrt(((place[near[these]] - place[rows[these], None]) ** 2).sum(axis=2))[:, :there]
            np.testing.assert_allclose(to, np.sqrt(distance2[these][:, :there]))
