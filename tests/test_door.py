"""The door of the solvers: it certifies and checks each answer, and believes none."""

from dataclasses import dataclass
from importlib import import_module

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from outbid import AssignmentProblem, DenseCosts, SparseCosts, Status, assign
from outbid.assignment import AbstractAssignmentSolver, Answer
from outbid.assignment.bid_and_augment import BidAndAugment


@dataclass(frozen=True)
class Liar(AbstractAssignmentSolver):
    """Returns the answer that it holds."""

    col_of_row: tuple[int, ...]
    col_dual: int = 0

    def compute(self, problem: AssignmentProblem) -> Answer:
        return Answer(np.array(self.col_of_row, np.int32), np.full(problem.shape[1], self.col_dual))


def small(kind: str) -> AssignmentProblem:
    costs = DenseCosts(np.array([[np.inf, 1], [1, 5]]))
    return AssignmentProblem(costs if kind == "dense" else costs.sparse(), np.full(2, 2.0), np.full(2, 2.0))


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize(("lie", "said"), [((1, 1), "column twice"), ((0, 1), "forbidden pair")])
def test_an_answer_that_is_no_matching_is_refused(kind, lie, said):
    with pytest.raises(ValueError, match=said):
        assign(small(kind), Liar(lie))


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("dual", [0, 1000])
def test_a_matching_that_costs_too_much_is_feasible_and_no_more(kind, dual):
    answer = assign(small(kind), Liar((1, -1), dual))
    assert (answer.primal_cost, answer.status) == (5, Status.FEASIBLE)
    assert answer.pair_cost.tolist() == [1, 0]
    assert answer.gap >= 3


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
