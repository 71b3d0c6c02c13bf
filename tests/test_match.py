"""match(): gate, cost, assign and back, against SciPy on the whole matrix."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import moved_cloud, reference_cost
from strategies import points

from outbid import AssignmentProblem, DenseCosts, InputError, SettingsError, match


@pytest.mark.smoke
@settings(max_examples=examples(200))
@given(
    points(20), points(20), st.sampled_from(["euclidean", "squared"]), st.sampled_from([None, 0.3, 1.2, 3.0])
)
def test_reaches_scipys_cost(source, target, cost, unmatched_cost):
    power = 2 if cost == "squared" else 1
    found = match(source, target, 1.5, cost=cost, unmatched_cost=unmatched_cost)
    unmatched = 1.5**power / 2 if unmatched_cost is None else unmatched_cost
    alone = len(source) + len(target) - 2 * len(found.source)
    apart = np.linalg.norm(source[:, None] - target, axis=2)
    costs = DenseCosts(np.where(apart <= 1.5, apart**power, np.inf))
    sides = (np.full(len(side), unmatched) for side in (source, target))
    best = reference_cost(AssignmentProblem(costs, *sides))
    assert found.cost.sum() + unmatched * alone == pytest.approx(best, abs=1e-5)
    assert found.assignment.gap == 0
    distance = np.linalg.norm(source[found.source] - target[found.target], axis=1)
    np.testing.assert_allclose(found.cost, distance**power, rtol=1e-12)
    assert len(set(found.source.tolist())) == len(set(found.target.tolist())) == len(found.source)


def test_shuffling_and_shifting_do_not_change_the_pairs():
    rng = np.random.default_rng(0)
    source, target = moved_cloud(rng, 2000, 0.4)
    pairs = {(*source[i], *target[j]) for i, j in zip(*_pairs(match(source, target, 1.2)), strict=True)}
    rows, cols = rng.permutation(len(source)), rng.permutation(len(target))
    found = match(source[rows], target[cols], 1.2)
    shuffled = {(*source[rows[i]], *target[cols[j]]) for i, j in zip(*_pairs(found), strict=True)}
    assert shuffled == pairs
    shifted = match(source + 4096, target + 4096, 1.2)
    np.testing.assert_array_equal(_pairs(shifted), _pairs(match(source, target, 1.2)))


def _pairs(found):
    return found.source.tolist(), found.target.tolist()


def test_exchanging_the_sets_exchanges_the_pairs():
    source, target = moved_cloud(np.random.default_rng(1), 1000, 0.4)
    there, back = match(source, target, 1.2), match(target, source, 1.2)
    assert set(zip(*_pairs(there), strict=True)) == {(j, i) for i, j in zip(*_pairs(back), strict=True)}


def test_motionless_points_keep_their_identity():
    points = np.repeat(np.random.default_rng(2).random((50, 3)), 3, axis=0)
    found = match(points, points, 0.2)
    assert found.source.tolist() == found.target.tolist() == list(range(150))


def test_distance_zero_gives_no_pairs_and_infinite_distance_pairs_the_smaller_side_whole():
    source, target = np.zeros((3, 3)), np.array([[0, 0, 0], [0, 0, 1e6]])
    assert len(match(source, target, 0.0).source) == 0
    found = match(source, target, np.inf)
    assert found.target.tolist() == [0, 1]
    assert found.cost.sum() == 1e6


@pytest.mark.parametrize("cost", ["euclidean", "squared"])
def test_distances_whose_square_overflows_count_as_infinite(cost):
    source, target = np.zeros((3, 3)), np.array([[0, 0, 0], [0, 0, 1e6]])
    assert match(source, target, 1e200, cost=cost).target.tolist() == [0, 1]


def test_a_pair_at_the_gate_is_as_good_as_none_and_one_inside_is_better():
    at, inside = np.array([[0, 0, 2.0]]), np.array([[0, 0, 1.999]])
    origin = np.zeros((1, 3))
    assert len(match(origin, inside, 2.0).source) == 1
    assert len(match(origin, at, 2.0, unmatched_cost=1.01).source) == 1
    assert len(match(origin, np.array([[0, 0, 2.001]]), 2.0, unmatched_cost=100.0).source) == 0


@pytest.mark.smoke
def test_blocks_keep_frames_apart():
    source, target = np.zeros((2, 3)), np.zeros((2, 3))
    found = match(
        source, target, 1.0, source_block=np.array([4, 5]), target_block=np.array([5, 9]), offsets=(1, 1)
    )
    assert _pairs(found) == ([0], [0])


@pytest.mark.parametrize("worth", [np.nan, -1.0])
def test_distances_and_costs_that_make_no_sense_are_refused(worth):
    empty = np.zeros((0, 3))
    with pytest.raises(SettingsError, match="max_distance"):
        match(empty, empty, worth)
    with pytest.raises(SettingsError, match="unmatched_cost"):
        match(empty, empty, 1.0, unmatched_cost=worth)
    with pytest.raises(SettingsError, match="euclidean, squared"):
        match(empty, empty, 1.0, cost="manhattan")
    with pytest.raises(SettingsError, match="over 1000 times"):
        match(empty, empty, 1.0, unmatched_cost=1e9)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.timeout(20)
def test_a_coordinate_that_is_no_finite_number_is_refused(wrong, side):
    clouds = np.random.default_rng(0).random((2, 5, 3))
    clouds[side, 3, 1] = wrong
    with pytest.raises(InputError, match="Point 3 of 5"):
        match(*clouds, 0.5)


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", ["i8", "u1", "f2", "f4", ">f8"])
def test_points_of_every_real_type_are_read(dtype):
    points = np.array([[0, 0, 0], [0, 0, 5], [0, 9, 9]])
    found = match(points.astype(dtype), points[::-1] + np.array([0, 0, 1]), 3.0)
    assert found.target.tolist() == [2, 1, 0]
    assert found.cost.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", [complex, object, str, bool])
def test_points_that_are_no_real_numbers_are_refused(dtype):
    with pytest.raises(InputError, match="real numbers"):
        match(np.ones((2, 3)), np.ones((2, 3), dtype), 1.0)


def test_a_distance_whose_square_no_float_holds_is_refused():
    with pytest.raises(SettingsError, match="another unit"):
        match(np.zeros((2, 3)), np.zeros((2, 3)), 1e-200)


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        (([1, 0], [0, 1]), "source_block decreases"),
        (([0, 1], [1]), "target_block needs a number for each of 2"),
        (([0, 1], None), "target_block needs"),
    ],
)
def test_blocks_that_are_none_are_refused(blocks, words):
    numbers = [None if block is None else np.array(block) for block in blocks]
    with pytest.raises(InputError, match=words):
        match(np.zeros((2, 3)), np.zeros((2, 3)), 1.0, source_block=numbers[0], target_block=numbers[1])
