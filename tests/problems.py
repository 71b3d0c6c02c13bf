"""Named families of assignment problems, shared by tests and benchmarks."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from outbid import AssignmentProblem, DenseCosts, SparseCosts
from outbid.geometry.gating import pairs_within

Rng = np.random.Generator


def uniform_integers(rng: Rng, rows: int, cols: int) -> NDArray:
    return rng.integers(0, 10 * max(rows, cols) + 1, (rows, cols))


def few_integers(rng: Rng, rows: int, cols: int) -> NDArray:
    """Up to n/10: ties everywhere."""
    return rng.integers(0, max(rows, cols) // 10 + 1, (rows, cols))


def integers_to_n(rng: Rng, rows: int, cols: int) -> NDArray:
    return rng.integers(0, max(rows, cols) + 1, (rows, cols), dtype=np.int32)


def negative_integers(rng: Rng, rows: int, cols: int) -> NDArray:
    return rng.integers(-100, 100, (rows, cols)).astype(np.int32)


def real_uniform(rng: Rng, rows: int, cols: int) -> NDArray:
    return rng.random((rows, cols))


def constant(rng: Rng, rows: int, cols: int) -> NDArray:  # noqa: ARG001
    return np.full((rows, cols), 7)


def machol_wien(rng: Rng, rows: int, cols: int) -> NDArray:  # noqa: ARG001
    """Costs i·j: hard for augmenting paths."""
    return np.outer(np.arange(1, rows + 1), np.arange(1, cols + 1))


def rough_products(rng: Rng, rows: int, cols: int) -> NDArray:
    """Nearly Machol and Wien's: no order solves it."""
    return machol_wien(rng, rows, cols) + rng.integers(0, max(rows, cols) + 1, (rows, cols))


def low_rank(rng: Rng, rows: int, cols: int) -> NDArray:
    return rng.integers(0, 20, (rows, 2)) @ rng.integers(0, 20, (2, cols))


def two_costs(rng: Rng, rows: int, cols: int) -> NDArray:
    return rng.choice([1, 1000], (rows, cols))


def duplicate_rows(rng: Rng, rows: int, cols: int) -> NDArray:
    return np.repeat(rng.integers(0, 50, (1, cols)), rows, axis=0)


def distances_in_2d(rng: Rng, rows: int, cols: int) -> NDArray:
    return cdist(rng.random((rows, 2)), rng.random((cols, 2)))


def distances_in_3d(rng: Rng, rows: int, cols: int) -> NDArray:
    return cdist(rng.random((rows, 3)), rng.random((cols, 3)))


def clustered_in_2d(rng: Rng, rows: int, cols: int) -> NDArray:
    return cdist(*_clusters(rng, rows, cols, 2))


def clustered_in_3d(rng: Rng, rows: int, cols: int) -> NDArray:
    return cdist(*_clusters(rng, rows, cols, 3))


def _clusters(rng: Rng, rows: int, cols: int, axes: int) -> tuple[NDArray, NDArray]:
    """Clouds that gather around the same few centres, in other numbers each."""
    centre = rng.random((5, axes))
    size = [centre[rng.integers(0, 5, count)] for count in (rows, cols)]
    return size[0] + 0.02 * rng.normal(size=(rows, axes)), size[1] + 0.02 * rng.normal(size=(cols, axes))


def geom(rng: Rng, rows: int, cols: int) -> NDArray:
    """Distances within one set of points in a square, negated: as large as possible (Roverso et al.)."""
    points = 1000 * rng.random((max(rows, cols), 2))
    return -cdist(points[:rows], points[:cols])


def forbidden_pairs(rng: Rng, rows: int, cols: int) -> NDArray:
    """Most pairs are forbidden, yet the smaller side can be matched."""
    costs = np.where(rng.random((rows, cols)) < 0.3, rng.random((rows, cols)), np.inf)
    np.fill_diagonal(costs, 2.0)
    return costs


FAMILIES: dict[str, Callable[[Rng, int, int], NDArray]] = {
    family.__name__: family
    for family in (
        uniform_integers,
        few_integers,
        integers_to_n,
        negative_integers,
        real_uniform,
        constant,
        machol_wien,
        rough_products,
        low_rank,
        two_costs,
        duplicate_rows,
        distances_in_2d,
        distances_in_3d,
        clustered_in_2d,
        clustered_in_3d,
        geom,
    )
}
ALL_FAMILIES = FAMILIES | {"forbidden_pairs": forbidden_pairs}


def moved_cloud(
    rng: Rng, count: int, displacement: float, births_and_deaths: float = 0.05
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two frames of particles at density 1: Gaussian displacement per axis, some replaced, shuffled."""
    side = count ** (1 / 3)
    first = rng.uniform(0, side, (count, 3))
    second = first + displacement * rng.normal(size=first.shape)
    replaced = rng.random(count) < births_and_deaths
    second[replaced] = rng.uniform(0, side, (int(replaced.sum()), 3))
    return first, second[rng.permutation(count)]


def gated(first: NDArray[np.float64], second: NDArray[np.float64], gate: float) -> AssignmentProblem:
    """Two frames as a sparse integer problem with half of the gate's cost on each side."""
    pairs = pairs_within(first, second, gate, np.array([0, len(first)]), np.array([0, len(second)]))
    values = np.rint(np.sqrt(pairs.distance2) * (2**27 / gate)).astype(np.int32)
    return AssignmentProblem(
        SparseCosts(pairs.indptr, pairs.indices, values, (len(first), len(second))),
        np.full(len(first), 2**26),
        np.full(len(second), 2**26),
    )


def optional(costs: NDArray, rng: Rng) -> AssignmentProblem:
    """A dense problem in which rows and columns may stay unmatched at about the median cost."""
    rows, cols = costs.shape
    middle = np.median(costs[np.isfinite(costs)]) / 2 if costs.size else 1
    draw = [rng.uniform(0.5, 1.5, count) * middle for count in (rows, cols)]
    if costs.dtype.kind in "iu":
        draw = [np.rint(side).astype(np.int64) for side in draw]
    return AssignmentProblem(DenseCosts(costs), *draw)


EXACT = ("bid_and_augment", "sparsified", "auction", "hungarian", "jonker_volgenant")


def reference_cost(problem: AssignmentProblem) -> float:
    """Least cost by SciPy on the full augmented matrix; inf where there is no perfect matching."""
    rows, cols = problem.shape
    costs = problem.costs
    dense = np.full((rows, cols), np.inf)
    if isinstance(costs, DenseCosts):
        dense[:] = costs.values
    else:
        dense[costs.rows, costs.indices] = costs.values
    if not problem.is_perfect:
        augmented = np.full((rows + cols, rows + cols), np.inf)
        augmented[:rows, :cols] = dense
        augmented[rows:, cols:] = 0
        augmented[np.arange(rows), cols + np.arange(rows)] = problem.row_unmatched
        augmented[rows + np.arange(cols), np.arange(cols)] = problem.col_unmatched
        dense = augmented
    try:
        row, col = linear_sum_assignment(dense)
    except ValueError:
        return np.inf
    return dense[row, col].sum()


def assert_certified(answer, rounding: float = 0.0) -> None:
    """The duals satisfy every constraint, so their sum really is a lower bound."""
    problem = answer.problem
    row_unmatched, col_unmatched = problem.unmatched()
    sparse = problem.costs.sparse()
    u, v = answer.row_dual, answer.col_dual
    assert (u[sparse.rows] + v[sparse.indices] <= sparse.values + rounding).all()
    if problem.is_perfect and problem.shape[0] > problem.shape[1]:
        row_unmatched, col_unmatched = np.zeros(problem.shape[0]), np.full(problem.shape[1], np.inf)
    assert (u <= row_unmatched + rounding).all()
    assert (v <= col_unmatched + rounding).all()
