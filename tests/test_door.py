"""The door of the solvers: it certifies and checks each answer, and believes none."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from outbid import AssignmentProblem, DenseCosts, SparseCosts, Status, assign
from outbid.assignment.bid_and_augment import BidAndAugment


def test_the_door_certifies_and_does_not_believe_a_solver():
    class Liar(BidAndAugment):
        def compute(self, problem):
            answer = super().compute(problem)
            return type(answer)(answer.col_of_row[::-1].copy(), answer.col_dual + 1000, {})

    costs = DenseCosts(np.array([[0, 9], [9, 0]]))
    answer = assign(AssignmentProblem(costs, np.full(2, 20), np.full(2, 20)), Liar())
    assert answer.primal_cost == 18
    assert answer.dual_cost <= 0
    assert answer.status is Status.FEASIBLE

    class Cheat(BidAndAugment):
        def compute(self, problem):
            return type(super().compute(problem))(np.zeros(2, np.int32), np.zeros(2), {})

    for kind in (costs, costs.sparse()):
        with pytest.raises(ValueError, match="column twice"):
            assign(AssignmentProblem(kind), Cheat())


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_door_refuses_a_forbidden_pair(kind):
    class Trespasser(BidAndAugment):
        def compute(self, problem):
            return type(super().compute(problem))(np.array([0, 1], np.int32), np.zeros(2), {})

    costs = DenseCosts(np.array([[np.inf, 9], [9, 1]]))
    with pytest.raises(ValueError, match="forbidden pair"):
        assign(AssignmentProblem(costs if kind == "dense" else costs.sparse()), Trespasser())


def test_costs_may_change_between_two_calls():
    """What is known of the old ones, such as that 32 bits hold all differences, is forgotten."""
    values = np.random.default_rng(0).integers(0, 100, (500, 500)).astype(np.int32)
    problem = AssignmentProblem(DenseCosts(values))
    assign(problem, "sparsified")
    values[:] = np.random.default_rng(1).integers(0, 2**31 - 1, values.shape)
    answer = assign(problem, "sparsified")
    assert answer.gap == 0
    assert answer.primal_cost == values[linear_sum_assignment(values)].sum()


def test_what_is_no_solver_is_refused():
    problem = AssignmentProblem(DenseCosts(np.eye(2)))
    for wrong in (BidAndAugment, 3):
        with pytest.raises(TypeError, match="is no solver"):
            assign(problem, wrong)


def test_a_mask_is_not_lost():
    masked = np.ma.masked_greater(np.array([[9.0, 1.0], [1.0, 9.0]]), 5)
    for wanted in (DenseCosts, DenseCosts.of_gains):
        with pytest.raises(TypeError, match="masked"):
            wanted(masked)
    assert assign(AssignmentProblem(DenseCosts(masked.filled(np.inf)))).col_of_row.tolist() == [1, 0]


@pytest.mark.parametrize("name", ["indptr", "indices"])
def test_places_that_are_no_integers_are_refused(name):
    good = {"indptr": np.array([0, 2]), "indices": np.array([0, 1], np.int32), "values": np.array([1.0, 2.0])}
    costs = SparseCosts(**good | {name: good[name].astype(float)}, shape=(1, 2))
    with pytest.raises(TypeError, match=f"{name} must be integers"):
        assign(AssignmentProblem(costs))


def test_what_does_not_fit_a_device_is_solved_on_the_host(monkeypatch):
    """As tests/test_gpu_dense_families.py does in earnest, here with a device that is none."""
    door, released = import_module("outbid.assignment"), []

    class Large(BidAndAugment):
        def works_on_device(self, _):
            return True

        def compute(self, problem):
            if not released:
                raise MemoryError
            return super().compute(problem)

    monkeypatch.setattr(door, "on_device", lambda _: True)
    monkeypatch.setattr(door, "on_host", lambda problem: problem)
    monkeypatch.setattr(door, "release_device_memory", lambda: released.append(True))
    answer = assign(AssignmentProblem(DenseCosts(np.array([[0, 9], [9, 0]]))), Large())
    assert answer.stats["fallbacks"] == 1
    assert answer.primal_cost == 0
