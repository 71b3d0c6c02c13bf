"""The cases of SciPy's tests of `linear_sum_assignment` and `min_weight_full_bipartite_matching`, errors too.

On NumPy arrays, and with -m gpu on CuPy's.

Where we differ on purpose a test says so: ties may be broken otherwise, a stored zero is a cost, and what is
no matrix or cannot be matched is refused in other words.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array

from outbid import AssignmentProblem, DenseCosts, SparseCosts, Status, assign
from outbid.assignment import SOLVERS
from outbid.assignment.problem import on_gpu

EXACT = [name for name in SOLVERS if not name.startswith("greedy")]
NEVER = np.inf
CASES = {
    "square": ([[400, 150, 400], [400, 450, 600], [300, 225, 300]], 850),
    "one column more": ([[400, 150, 400, 1], [400, 450, 600, 2], [300, 225, 300, 3]], 452),
    "small numbers": ([[10, 10, 8], [9, 8, 1], [9, 7, 4]], 18),
    "small numbers, one column more": ([[10, 10, 8, 11], [9, 8, 1, 1], [9, 7, 4, 10]], 15),
    "one feasible matching": ([[10, NEVER, NEVER], [NEVER, NEVER, 1], [NEVER, 7, NEVER]], 18),
}
pytestmark = pytest.mark.parametrize("solver", EXACT)
Place = Callable[[AssignmentProblem], AssignmentProblem]


@pytest.fixture(params=["numpy", pytest.param("cupy", marks=pytest.mark.gpu)])
def at(request: pytest.FixtureRequest) -> Place:
    """Where the arrays of a problem live."""
    return on_gpu if request.param == "cupy" else lambda problem: problem


def sparse(stored: csr_array) -> SparseCosts:
    return SparseCosts(
        stored.indptr.astype(np.int64), stored.indices.astype(np.int32), stored.data, stored.shape
    )


def without_zeros(costs: list[list[float]]) -> SparseCosts:
    """As SciPy reads a matrix: zeros are absent pairs."""
    return sparse(csr_array(np.array(costs)))


@pytest.mark.smoke
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("aim", ["least", "largest"])
def test_small_inputs(at, solver, case, turned, kind, aim):
    given, best = CASES[case]
    costs = np.array(given).T if turned else np.array(given)
    # SciPy's cases for the largest sum are these with every sign turned.
    dense = DenseCosts(costs) if aim == "least" else DenseCosts.of_gains(-costs)
    answer = assign(at(AssignmentProblem(dense if kind == "dense" else dense.sparse())), solver)
    assert answer.primal_cost == best
    assert answer.status is Status.OPTIMAL
    assert answer.gap == 0
    assert (answer.col_of_row >= 0).sum() == min(costs.shape)


@pytest.mark.parametrize("costs", [[[1, 2, 3], [4, 5, 6]], np.asmatrix([[1, 2, 3], [4, 5, 6]])])
def test_lists_and_matrix_objects_are_arrays(solver, costs):
    assert assign(AssignmentProblem(DenseCosts(costs)), solver).primal_cost == 6


@pytest.mark.parametrize(
    "stored",
    [
        [[1, 1, 1], [1, 0, 0], [1, 0, 0]],
        [[1, 1, 1], [0, 0, 1], [0, 0, 1]],
        [[1, 0, 0, 1], [1, 1, 0, 1], [0, 0, 0, 0]],
        [[1, 0, 0], [2, 0, 0]],
        [[0, 1, 0], [0, 2, 0]],
        [[1, 0], [2, 0], [5, 0]],
    ],
)
def test_sparse_matrices_without_full_matching_are_refused(at, solver, stored):
    costs = without_zeros(stored)
    for problem in (AssignmentProblem(costs), AssignmentProblem(costs.transposed())):
        with pytest.raises(ValueError, match="infeasible"):
            assign(at(problem), solver)


def test_many_rows_for_few_columns_are_refused(at, solver):
    """As SciPy's issue 17269: most rows want a column of their own, the others too few between them."""
    rng = np.random.default_rng(17269)
    allowed = np.zeros((22, 22), bool)
    allowed[np.arange(9), 13 + np.arange(9)] = True
    allowed[9:, :13] = rng.random((13, 13)) < 0.2
    allowed[9:, 7] = False
    costs = DenseCosts(np.where(allowed, rng.random((22, 22)), np.inf)).sparse()
    with pytest.raises(ValueError, match="infeasible"):
        assign(at(AssignmentProblem(costs)), solver)


def test_a_stored_zero_is_a_cost(at, solver):
    """SciPy warns and drops it; then the row has no column."""
    costs = sparse(csr_array((np.array([2, 0, 3]), (np.array([0, 1, 1]), np.array([0, 2, 3]))), shape=(2, 4)))
    answer = assign(at(AssignmentProblem(costs)), solver)
    assert answer.col_of_row.tolist() == [0, 2]
    assert answer.primal_cost == 2


def test_dense_and_sparse_agree_on_many_inputs_some_infeasible(at, solver):
    rng = np.random.default_rng(12342309)
    infeasible = 0
    # SciPy itself, in a process of its own for each matrix, is slow and answers for the others already.
    count = 4 if solver == "jonker_volgenant" else 10 if at is on_gpu else 100
    for _ in range(count):
        stored = coo_array(rng.integers(1, 100, (100, 100)) * (rng.random((100, 100)) < 0.06))
        dense = np.full(stored.shape, np.inf)
        dense[stored.coords] = stored.data
        problems = AssignmentProblem(DenseCosts(dense)), AssignmentProblem(sparse(stored.tocsr()))
        try:
            best = dense[linear_sum_assignment(dense)].sum()
        except ValueError:
            infeasible += 1
            for problem in problems:
                with pytest.raises(ValueError, match="infeasible"):
                    assign(at(problem), solver)
            continue
        for problem in problems:
            answer = assign(at(problem), solver)
            assert answer.primal_cost == best
            assert answer.status is Status.OPTIMAL
    assert infeasible < count
    assert infeasible > 0 or count < 100
