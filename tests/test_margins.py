"""Margins: what it costs to forbid a pair, as a bound and exactly, against solving anew."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import succeed
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import gated, moved_cloud
from scenes import tissue
from strategies import sparse_problems

from outbid import (
    Assignment,
    AssignmentProblem,
    DenseCosts,
    Detections,
    SettingsError,
    SparseCosts,
    TrackingSettings,
    assign,
    read_tracks,
    track,
    write_detections,
)
from outbid.assignment.exact_margins import exact_margins
from outbid.assignment.problem import forbidden


def risen(answer: Assignment, row: int) -> float:
    """By how much the optimum rises without a row's pair, solved anew."""
    problem, costs = answer.problem, answer.problem.costs.sparse()
    kept = ~((costs.rows == row) & (costs.indices == answer.col_of_row[row]))
    count = np.bincount(costs.rows[kept], minlength=problem.shape[0])
    indptr = np.concatenate([[0], np.cumsum(count)])
    without = SparseCosts(indptr, costs.indices[kept], costs.values[kept], costs.shape)
    try:
        worse = assign(AssignmentProblem(without, problem.row_unmatched, problem.col_unmatched))
    except ValueError:  # no perfect matching is left
        return float(forbidden(answer.row_dual.dtype))
    return float(worse.primal_cost - answer.primal_cost)


def assert_margins(answer: Assignment, rounding: float = 0.0) -> None:
    exact = exact_margins(answer)
    for i in range(answer.problem.shape[0]):
        if answer.col_of_row[i] < 0:
            assert exact[i] == answer.margin[i] == 0
            continue
        rise = risen(answer, i)
        assert exact[i] == rise or exact[i] == pytest.approx(rise, abs=rounding), i
        assert 0 <= answer.margin[i] <= rise + rounding


@settings(max_examples=examples(200))
@given(sparse_problems(most=6))
def test_of_sparse_problems(problem: AssignmentProblem) -> None:
    assert_margins(assign(problem))


@settings(max_examples=examples(100))
@given(st.integers(0, 10**6), st.sampled_from([(4, 4), (3, 5), (5, 3)]), st.integers(2, 30), st.booleans())
def test_of_matrices(seed: int, shape: tuple[int, int], most: int, optional: bool) -> None:
    rng = np.random.default_rng(seed)
    sides = [rng.integers(0, most, size) for size in shape] if optional else [None, None]
    assert_margins(assign(AssignmentProblem(DenseCosts(rng.integers(0, most, shape)), *sides)))


@pytest.mark.smoke
@pytest.mark.parametrize("seed", range(3))
def test_of_crowded_clouds(seed: int) -> None:
    """Where chains and cycles of many links count."""
    answer = assign(gated(*moved_cloud(np.random.default_rng(seed), 120, 0.9), 1.6))
    assert_margins(answer)
    exact = exact_margins(answer)
    assert (exact > answer.margin).sum() > 10


def test_of_real_numbers() -> None:
    rng = np.random.default_rng(0)
    costs, alone = DenseCosts(rng.random((12, 14))), (np.full(12, 0.3), np.full(14, 0.2))
    assert_margins(assign(AssignmentProblem(costs, *alone)), rounding=1e-12)


def test_margin_is_exact_where_alternatives_are_independent():
    costs = DenseCosts(np.array([[0, np.inf], [np.inf, 2]]))
    answer = assign(AssignmentProblem(costs, np.array([5, 5]), np.array([5, 5])))
    assert answer.margin.tolist() == [10, 8]
    assert exact_margins(answer).tolist() == [10, 8]


@pytest.mark.parametrize("shape", [(7, 7), (5, 8), (8, 5)])
def test_margins_of_matrices_are_those_of_their_sparse_twins(shape):
    costs = np.random.default_rng(13).integers(0, 30, shape)
    dense = assign(AssignmentProblem(DenseCosts(costs)))
    for i in np.nonzero(dense.col_of_row >= 0)[0]:
        without = costs.astype(float)
        without[i, dense.col_of_row[i]] = np.inf
        worse = assign(AssignmentProblem(DenseCosts(without)))
        assert 0 <= dense.margin[i] <= worse.primal_cost - dense.primal_cost


@pytest.mark.smoke
def test_a_pair_that_is_needed_is_worth_all() -> None:
    costs = SparseCosts(np.array([0, 1, 2]), np.array([0, 1], np.int32), np.array([3, 4]), (2, 2))
    assert exact_margins(assign(AssignmentProblem(costs))).tolist() == [2**60, 2**60]


def test_what_is_not_proved_has_none() -> None:
    costs = DenseCosts(np.array([[1, 2], [2, 9]]))
    answer = assign(AssignmentProblem(costs), "greedy")
    with pytest.raises(ValueError, match="exact solver"):
        exact_margins(answer)


def crowd(step: float = 0.2) -> Detections:
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 5.5, (170, 3)) + np.cumsum(rng.normal(0, step, (6, 170, 3)), axis=0)
    return Detections.from_table(np.repeat(np.arange(6), 170), place.reshape(-1, 3))


def test_links_have_exact_margins_on_request() -> None:
    """Of a gated assignment, against solving it anew without the pair."""
    seen = crowd()
    settings = TrackingSettings(max_distance=0.9)
    bound, exact = (track(seen, replace(settings, exact_margins=each)).tracks for each in (False, True))
    assert (bound.links == exact.links).all()
    assert bound.link_margin is not None
    assert exact.link_margin is not None
    assert (exact.link_margin >= bound.link_margin).all()
    assert (exact.link_margin > bound.link_margin + 1e-6).mean() > 0.05
    here, there = (seen.position[seen.rows_of(frame)] for frame in (0, 1))
    distance = np.linalg.norm(here[:, None] - there, axis=-1)
    distance[distance > 0.9] = np.inf
    alone = np.full(170, 0.45)
    best = assign(AssignmentProblem(DenseCosts(distance), alone, alone)).primal_cost
    for row in np.nonzero(seen.frame[exact.links[:, 0]] == 0)[0][::10]:
        source, target = exact.links[row]
        without = distance.copy()
        without[source, target - 170] = np.inf
        rise = assign(AssignmentProblem(DenseCosts(without), alone, alone)).primal_cost - best
        assert exact.link_margin[row] == pytest.approx(rise, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("divides", [False, True])
def test_learned_links_have_exact_margins_on_request(divides: bool) -> None:
    seen = tissue(cells=60, frames=20).detections if divides else crowd(0.35)
    bound, exact = (track(seen, TrackingSettings(exact_margins=each)).tracks for each in (False, True))
    assert (bound.links == exact.links).all()
    assert bound.link_margin is not None
    assert exact.link_margin is not None
    assert (exact.successors > 1).any() == divides
    assert (exact.link_margin >= bound.link_margin - 1e-6).mean() > 0.99
    assert (exact.link_margin > bound.link_margin + 1e-6).any() or divides


def test_a_heuristic_has_no_exact_margins() -> None:
    with pytest.raises(SettingsError, match="greedy need not"):
        TrackingSettings(max_distance=1.0, solver="greedy", exact_margins=True)


def test_the_command_writes_them(tmp_path: Path) -> None:
    write_detections(tmp_path / "spots.csv", crowd())
    for name, more in (("bound", ()), ("exact", ("--exact-margins",))):
        succeed("track", tmp_path / "spots.csv", "-o", tmp_path / f"{name}.csv", "--max-distance", 0.9, *more)
    bound, exact = (read_tracks(tmp_path / f"{name}.csv").link_margin for name in ("bound", "exact"))
    assert bound is not None
    assert exact is not None
    assert (exact > bound + 1e-6).any()
