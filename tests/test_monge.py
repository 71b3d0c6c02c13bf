"""Matrices that an order solves, and those that only look like it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from outbid import AssignmentProblem, DenseCosts, PointCosts, Status, assign
from outbid.assignment.dense.monge import solved_by_order
from outbid.assignment.matrix import DenseMatrix

NEVER = 2**60


def ordered(costs):
    kind = np.int64 if costs.dtype.kind == "i" else np.float64
    return solved_by_order(
        DenseMatrix(costs), np.full(len(costs), NEVER if kind is np.int64 else np.inf, kind), 0
    )


SQUARE = st.integers(2, 9).map(lambda size: (size, size))


@given(arrays(np.int64, SQUARE, elements=st.integers(0, 9)), st.randoms())
def test_every_monge_matrix_with_other_rows_and_columns_is_solved(density, random):
    """Minus a sum over a positive density is Monge; what all of a row costs more changes nothing."""
    size = len(density)
    costs = -np.cumsum(np.cumsum(density + 1, axis=0), axis=1)
    rows, cols = (random.sample(range(size), size) for _ in range(2))
    costs = costs[rows][:, cols] + np.array(rows)[:, None] ** 2 - 7 * np.array(cols)
    answer = ordered(costs)
    assert answer is not None
    np.testing.assert_array_equal(answer.col_of_row, np.argsort(cols)[rows])
    assert (costs - answer.col_dual).min(axis=1).sum() + answer.col_dual.sum() == np.trace(
        costs[:, answer.col_of_row]
    )


def test_neighbours_that_agree_are_no_proof():
    """A pair far from the diagonal is cheaper than any order of rows and columns shows."""
    costs = -np.outer(np.arange(30), np.arange(30))
    assert ordered(costs) is not None
    costs[5, 20] = -10_000
    assert ordered(costs) is None
    assert assign(AssignmentProblem(DenseCosts(costs)), "sparsified").status is Status.OPTIMAL


@pytest.mark.smoke
@pytest.mark.parametrize("seed", range(5))
def test_a_random_matrix_is_left_to_others(seed):
    assert ordered(np.random.default_rng(seed).random((20, 20))) is None


def test_forbidden_pairs_are_never_chosen():
    costs = np.outer(np.arange(8.0), np.arange(8.0))
    costs[2, 5] = np.inf
    assert ordered(costs) is None
    for size in (1, 2, 4):
        assert ordered(np.full((size, size), np.inf)) is None


@pytest.mark.parametrize("metric", ["squared", "euclidean"])
def test_points_along_a_line_are_matched_in_their_order(metric):
    a, b = (np.random.default_rng(seed).random((2000, 1)) + seed for seed in (0, 1))
    answer = assign(AssignmentProblem(PointCosts(a, b, metric)), "sparsified")
    assert answer.status is Status.OPTIMAL
    if metric == "squared":
        np.testing.assert_array_equal(np.argsort(b[:, 0])[np.argsort(np.argsort(a[:, 0]))], answer.col_of_row)
        assert answer.stats["bids"] == 0
