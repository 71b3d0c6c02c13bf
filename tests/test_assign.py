"""Solvers against each other, against SciPy, and against their own certificates."""

import numpy as np
import pytest
from examples import examples
from hypothesis import assume, given, settings
from problems import ALL_FAMILIES, EXACT, assert_certified, gated, moved_cloud, optional, reference_cost
from scipy.optimize import linear_sum_assignment
from strategies import dense_problems, sparse_problems

from outbid import AssignmentProblem, DenseCosts, SparseCosts, Status, assign
from outbid.assignment import SOLVERS, solver_named
from outbid.assignment.bid_and_augment import BidAndAugment
from outbid.assignment.dense.sparsified import Sparsified
from outbid.assignment.papers.hungarian import Hungarian
from outbid.assignment.papers.jonker_volgenant import in_child

VARIANTS = [*EXACT, Hungarian("classical"), Sparsified(of_row=3, of_col=3), Sparsified(2, 2, rounds=0)]
"""Exact solvers, with variants that go other ways: few candidates, and none added later."""


@pytest.mark.smoke
@pytest.mark.parametrize("family", ALL_FAMILIES)
@pytest.mark.parametrize("shape", [(40, 40), (30, 60), (60, 30), (150, 150)])
@pytest.mark.parametrize("solver", VARIANTS, ids=str)
@pytest.mark.parametrize("kind", ["perfect", "optional"])
def test_exact_solvers_reach_scipys_cost(family, shape, solver, kind):
    rng = np.random.default_rng(7)
    costs = ALL_FAMILIES[family](rng, *shape)
    problem = AssignmentProblem(DenseCosts(costs)) if kind == "perfect" else optional(costs, rng)
    answer = assign(problem, solver)
    assert answer.primal_cost == pytest.approx(reference_cost(problem), rel=1e-12, abs=1e-12)
    assert answer.status is Status.OPTIMAL
    if problem.is_integer:
        assert answer.gap == 0
    assert_certified(answer, 0 if problem.is_integer else 1e-9 if solver == "auction" else 1e-12)


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", ">i4", ">f8", "?"])
@pytest.mark.parametrize("solver", VARIANTS, ids=str)
@pytest.mark.parametrize("kind", ["C", "F", "sparse"])
def test_exact_solvers_take_every_type_and_order_of_costs(dtype, solver, kind):
    drawn = np.random.default_rng(8).integers(0, 100, (40, 50)).astype(dtype)
    costs = DenseCosts(np.asarray(drawn, order="F" if kind == "F" else "C"))
    problem = AssignmentProblem(costs.sparse() if kind == "sparse" else costs)
    answer = assign(problem, solver)
    assert answer.primal_cost == reference_cost(problem)
    assert answer.gap <= (1e-6 if solver == "auction" and "f" in dtype else 0)
    assert answer.status is Status.OPTIMAL


@pytest.mark.smoke
@pytest.mark.parametrize("solver", VARIANTS, ids=str)
def test_forbidden_pairs_are_not_taken(solver):
    rng = np.random.default_rng(4)
    costs = rng.random((60, 60))
    costs[rng.random(costs.shape) < 0.8] = np.inf
    np.fill_diagonal(costs, 9.0)
    problem = AssignmentProblem(DenseCosts(costs))
    assert assign(problem, solver).primal_cost == pytest.approx(reference_cost(problem), rel=1e-12)


@pytest.mark.smoke
@pytest.mark.parametrize("solver", VARIANTS, ids=str)
def test_particles_are_linked_as_by_the_sparse_solver(solver):
    problem = gated(*moved_cloud(np.random.default_rng(3), 200, 0.5), 1.2)
    answer = assign(problem, solver)
    assert answer.gap == 0
    assert answer.primal_cost == assign(problem).primal_cost


@pytest.mark.smoke
@pytest.mark.parametrize("solver", ["bid_and_augment", "hungarian", Hungarian("classical")], ids=str)
@settings(max_examples=examples(300))
@given(problem=sparse_problems())
def test_optional_sparse_problems_reach_scipys_cost_with_gap_zero(problem, solver):
    answer = assign(problem, solver)
    assert answer.primal_cost == reference_cost(problem)
    assert answer.gap == 0
    assert_certified(answer)


@settings(max_examples=examples(300))
@given(dense_problems())
def test_perfect_dense_problems_reach_scipys_cost(problem):
    answer = assign(problem)
    assert answer.primal_cost == pytest.approx(reference_cost(problem), rel=1e-9, abs=1e-9)
    assert answer.status is Status.OPTIMAL
    assert (answer.col_of_row >= 0).sum() == min(problem.shape)


@settings(max_examples=examples(200))
@given(sparse_problems())
def test_transposing_exchanges_rows_and_columns(problem):
    answer, exchanged = assign(problem), assign(problem.transposed())
    assert answer.primal_cost == exchanged.primal_cost
    assert exchanged.gap == 0


@settings(max_examples=examples(200))
@given(sparse_problems())
def test_shifting_a_row_and_its_unmatched_cost_shifts_the_optimum(problem):
    assume(problem.shape[0] > 0)
    costs = problem.costs
    values, unmatched = costs.values.copy(), problem.row_unmatched.copy()
    values[: costs.indptr[1]] += 5
    unmatched[0] += 5
    shifted = SparseCosts(costs.indptr, costs.indices, values, costs.shape)
    answer = assign(AssignmentProblem(shifted, unmatched, problem.col_unmatched))
    assert answer.primal_cost == assign(problem).primal_cost + 5


@settings(max_examples=examples(200))
@given(sparse_problems())
def test_relabelling_columns_keeps_the_cost(problem):
    order = np.random.default_rng(0).permutation(problem.shape[1]).astype(np.int32)
    costs = problem.costs
    relabelled = SparseCosts(costs.indptr, order[costs.indices], costs.values, costs.shape)
    col_unmatched = np.empty_like(problem.col_unmatched)
    col_unmatched[order] = problem.col_unmatched
    answer = assign(AssignmentProblem(relabelled, problem.row_unmatched, col_unmatched))
    assert answer.primal_cost == assign(problem).primal_cost


@settings(max_examples=examples(200))
@given(sparse_problems())
def test_greedy_lies_between_its_bound_and_never_below_the_optimum(problem):
    answer, best = assign(problem, "greedy"), assign(problem)
    assert answer.dual_cost <= best.primal_cost <= answer.primal_cost


@pytest.mark.parametrize("budget", [0, 1, 5, 1000])
def test_every_bid_budget_gives_the_optimum(budget):
    problem = gated(*moved_cloud(np.random.default_rng(3), 2000, 0.5), 1.5)
    answer = assign(problem, BidAndAugment(budget=budget))
    assert answer.gap == 0
    assert answer.primal_cost == assign(problem).primal_cost


def test_full_gate_cost_on_each_side_stays_exact():
    half = gated(*moved_cloud(np.random.default_rng(5), 3000, 0.5), 1.2)
    full = AssignmentProblem(half.costs, 2 * half.row_unmatched, 2 * half.col_unmatched)
    answer = assign(full)
    assert answer.gap == 0
    assert (answer.col_of_row >= 0).sum() > (assign(half).col_of_row >= 0).sum()


@pytest.mark.smoke
def test_blocks_are_solved_as_if_they_stood_alone():
    rng = np.random.default_rng(11)
    parts = [gated(*moved_cloud(rng, 300, 0.5), 1.4) for _ in range(3)]
    costs = [part.costs for part in parts]
    starts = np.cumsum([0] + [len(c.indices) for c in costs])
    together = SparseCosts(
        np.concatenate([[0]] + [c.indptr[1:] + s for c, s in zip(costs, starts[:-1], strict=True)]),
        np.concatenate([c.indices + 300 * k for k, c in enumerate(costs)]).astype(np.int32),
        np.concatenate([c.values for c in costs]),
        (900, 900),
    )
    answer = assign(AssignmentProblem(together, np.full(900, 2**26), np.full(900, 2**26)))
    alone = [assign(part).col_of_row for part in parts]
    expected = np.concatenate([np.where(a >= 0, a + 300 * k, -1) for k, a in enumerate(alone)])
    np.testing.assert_array_equal(answer.col_of_row, expected)


def test_motionless_duplicates_keep_their_identity():
    points = np.repeat(np.random.default_rng(0).random((20, 3)), 2, axis=0)
    answer = assign(gated(points, points, 0.3))
    assert answer.primal_cost == 0
    np.testing.assert_array_equal(answer.col_of_row, np.arange(40))


@pytest.mark.smoke
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1)])
def test_thin_and_empty_problems(solver, shape):
    rng = np.random.default_rng(0)
    costs = DenseCosts(rng.integers(1, 9, shape))
    for problem in (
        AssignmentProblem(costs),
        AssignmentProblem(costs.sparse()),
        AssignmentProblem(DenseCosts(costs.values.astype(float))),
        AssignmentProblem(costs, np.full(shape[0], 50), np.full(shape[1], 50)),
        AssignmentProblem(costs.sparse(), np.full(shape[0], 50), np.full(shape[1], 50)),
    ):
        answer = assign(problem, solver)
        assert answer.primal_cost == reference_cost(problem)
        assert answer.col_of_row.shape == (shape[0],)
        assert answer.row_of_col.shape == (shape[1],)


@pytest.mark.parametrize("solver", SOLVERS)
def test_everything_stays_unmatched_where_pairs_cost_more(solver):
    problem = AssignmentProblem(DenseCosts(np.full((3, 4), 10)), np.full(3, 5), np.full(4, 5))
    answer = assign(problem, solver)
    assert answer.col_of_row.tolist() == [-1, -1, -1]
    assert answer.gap == 0


@pytest.mark.smoke
@pytest.mark.parametrize("solver", VARIANTS, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("size", [2, 50])
def test_infeasible_problems_say_so(solver, sparse, size):
    costs = np.random.default_rng(4).random((size, size))
    costs[: size // 2 + 1, size // 2 :] = np.inf
    costs = DenseCosts(costs)
    with pytest.raises(ValueError, match="infeasible"):
        assign(AssignmentProblem(costs.sparse() if sparse else costs), solver)


def test_scipys_sparse_solver_is_ended_and_ours_answers_where_it_hangs(real_data):
    stored = np.load(real_data / "scipy_sparse_matching_hang_12x12.npz")
    costs = SparseCosts(
        stored["indptr"].astype(np.int64), stored["indices"], stored["data"], tuple(stored["shape"])
    )
    problem = AssignmentProblem(costs)
    with pytest.raises(RuntimeError, match="gave no answer in 2 s"):
        in_child(costs.indptr, costs.indices, costs.values, costs.shape, time_limit=2)
    answer = assign(problem)
    assert answer.status is Status.OPTIMAL
    assert answer.primal_cost == pytest.approx(reference_cost(problem), rel=1e-12)


@pytest.mark.smoke
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ([1, 2, 3], ValueError, "rows and columns"),
        ([[np.nan, 1.0]], ValueError, "NaN at 0, 0"),
        ([[1.0, -np.inf]], ValueError, "minus infinity at 0, 1"),
        ([[1e308, 1.0]], ValueError, "so large"),
        ([[9e299, 1.0]], ValueError, "so large"),
        (np.array([[2**62, 1]]), ValueError, "so large"),
        (np.array([[1 + 1j]]), TypeError, "real numbers"),
        (np.array([["1"]]), TypeError, "real numbers"),
        (np.array([[None]]), TypeError, "real numbers"),
    ],
)
def test_costs_that_no_solver_could_use_are_refused(solver, values, error, words):
    with pytest.raises(error, match=words):
        assign(AssignmentProblem(DenseCosts(np.asarray(values))), solver)


@pytest.mark.smoke
def test_integers_above_2_to_53_stay_exact():
    large = 2**54
    answer = assign(AssignmentProblem(DenseCosts(np.array([[large + 1, large], [large, large + 3]]))))
    assert answer.primal_cost == 2 * large
    assert answer.gap == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"indices": np.array([0, 5], np.int32)}, "outside 0 to 1"),
        ({"indices": np.array([1, 1], np.int32)}, "same column twice"),
        ({"indptr": np.array([0, 1])}, "must start at 0"),
        ({"indptr": np.array([0, 1, 2])}, "need indptr"),
        ({"values": np.array([1.0, np.inf])}, "costs infinity"),
        ({"values": np.array([1.0, np.nan])}, "NaN at 1"),
    ],
)
def test_sparse_costs_that_are_no_matrix_are_refused(change, words):
    good = {"indptr": np.array([0, 2]), "indices": np.array([0, 1], np.int32), "values": np.array([1.0, 2.0])}
    with pytest.raises(ValueError, match=words):
        assign(AssignmentProblem(SparseCosts(**(good | change), shape=(1, 2))))


def test_unmatched_costs_must_come_for_both_sides_finite_and_one_each():
    costs = DenseCosts(np.ones((2, 2)))
    with pytest.raises(ValueError, match="for neither"):
        assign(AssignmentProblem(costs, np.ones(2)))
    with pytest.raises(ValueError, match="row_unmatched has shape"):
        assign(AssignmentProblem(costs, np.ones(3), np.ones(2)))
    with pytest.raises(ValueError, match="infinite"):
        assign(AssignmentProblem(costs, np.array([1, np.inf]), np.ones(2)))


def test_an_unknown_solver_is_answered_with_those_there_are():
    with pytest.raises(
        ValueError,
        match="bid_and_augment, sparsified, auction, hungarian, greedy_switching, jonker_volgenant, greedy",
    ):
        solver_named("simplex")


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_, np.float32])
def test_the_largest_sum_of_gains_is_found(dtype):
    gains = np.random.default_rng(12).integers(0, 200, (40, 50)).astype(dtype)
    answer = assign(AssignmentProblem(DenseCosts.of_gains(gains)))
    row, col = linear_sum_assignment(gains, maximize=True)
    assert -answer.primal_cost == gains[row, col].astype(float).sum()


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4"])
def test_gains_hold_the_least_integer_of_their_type(dtype):
    least = np.iinfo(dtype).min
    answer = assign(AssignmentProblem(DenseCosts.of_gains(np.array([[least, 5], [5, least]], dtype))))
    assert answer.col_of_row.tolist() == [1, 0]
    assert answer.primal_cost == -10


def test_gains_that_no_solver_could_use_are_refused():
    assert DenseCosts.of_gains([[1, 2], [3, 5]]).values.tolist() == [[-1, -2], [-3, -5]]
    with pytest.raises(ValueError, match="so large"):
        DenseCosts.of_gains(np.array([[2**64 - 1, 1], [1, 2**64 - 1]], np.uint64))
    for wrong in (np.array([[None]]), np.array([["1"]]), np.array([[1j]])):
        with pytest.raises(TypeError, match="real numbers"):
            DenseCosts.of_gains(wrong)


def test_costs_whose_squares_overflow_are_solved_without_a_warning():
    costs = np.random.default_rng(14).random((30, 30))
    answer = assign(AssignmentProblem(DenseCosts(1e290 * costs)), "sparsified")
    assert answer.primal_cost == pytest.approx(1e290 * costs[linear_sum_assignment(costs)].sum(), rel=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("optional_sides", [False, True])
def test_duals_too_high_for_columns_left_over_are_not_believed(kind, optional_sides):
    class Boaster(BidAndAugment):
        def compute(self, problem):
            answer = super().compute(problem)
            return type(answer)(answer.col_of_row, answer.col_dual + 1000, {})

    costs = DenseCosts(np.array([[5, 7, 9], [6, 5, 9]]))
    unmatched = (np.full(2, 20), np.full(3, 2)) if optional_sides else ()
    problem = AssignmentProblem(costs if kind == "dense" else costs.sparse(), *unmatched)
    answer, best = assign(problem, Boaster()), assign(problem)
    assert answer.dual_cost <= best.primal_cost
    assert_certified(answer)


@pytest.mark.parametrize("excess", [1e-3, 1e-6, 1e-9])
def test_a_small_gap_of_real_costs_is_no_proof(excess):
    costs = 1 + excess * np.array([[0, 1], [1, 3]])
    answer = assign(AssignmentProblem(DenseCosts(costs)), "greedy")
    assert 0.999 * excess <= answer.gap <= 2.001 * excess  # the optimum costs less by the excess
    assert answer.status is Status.FEASIBLE
