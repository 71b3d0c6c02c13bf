"""Every kernel at small n, to be run under compute-sanitizer by `make gpu-sanitize`.

All results are compared with those of the CPU. With names of parts (gated, movie, learned, dense, points,
sparse) only those parts run. Gated and movie take five seconds under racecheck; the other parts take most of
their time to compile.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from outbid import (
    AssignmentProblem,
    DenseCosts,
    Detections,
    PointCosts,
    SparseCosts,
    TrackingSettings,
    assign,
    match,
    track,
)
from outbid.assignment import SOLVERS
from outbid.assignment.problem import on_gpu
from outbid.compute.arrays import to_device, to_host

SIZE = 150


def check_gated(rng: np.random.Generator) -> None:
    """Few and many candidates per row, so that both kernels that store them run.

    Lengths are in units of density^(-1/3); `displacement` is the root mean square of a step over all axes.
    """
    for gate, displacement in ((0.8, 0.2), (2.0, 1.0)):
        side = SIZE ** (1 / 3)
        first = rng.uniform(0, side, (SIZE, 3))
        second = first + rng.normal(0, displacement / 3**0.5, first.shape)
        here = match(first, second, gate)
        there = match(to_device(first), to_device(second), gate)
        assert there.assignment.gap == 0
        assert there.assignment.primal_cost == here.assignment.primal_cost
        np.testing.assert_array_equal(to_host(there.target), here.target)


def check_movie(rng: np.random.Generator) -> None:
    """Several frame pairs at once, and gaps."""
    position = rng.uniform(0, 5, (1, 100, 3)) + np.cumsum(rng.normal(0, 0.1, (6, 100, 3)), axis=0)
    seen = rng.random((6, 100)) > 0.1
    movie = Detections.from_table(np.repeat(np.arange(6), 100)[seen.ravel()], position[seen])
    here, there = (track(movie, TrackingSettings(0.8, max_gap=2, device=on)) for on in ("cpu", "gpu"))
    np.testing.assert_array_equal(there.tracks.links, here.tracks.links)


def check_learned(rng: np.random.Generator) -> None:
    """Learning from a movie whose particles share a flow, with missed detections."""
    position = rng.uniform(0, 5, (1, 100, 3)) + np.cumsum(rng.normal(0, 0.1, (6, 100, 3)), axis=0)
    position[..., 0] += 0.3 * np.arange(6)[:, None]
    seen = rng.random((6, 100)) > 0.1
    movie = Detections.from_table(np.repeat(np.arange(6), 100)[seen.ravel()], position[seen])
    here, there = (track(movie, TrackingSettings(device=on)).tracks for on in ("cpu", "gpu"))
    np.testing.assert_array_equal(there.links, here.links)
    np.testing.assert_allclose(there.link_probability, here.link_probability, atol=1e-3)


def check_dense(rng: np.random.Generator) -> None:
    """Every solver that has kernels for matrices, of whole and of real numbers."""
    for values in (rng.integers(0, 10 * SIZE, (SIZE, SIZE)).astype(np.int32), rng.random((SIZE, SIZE))):
        _check_solvers(AssignmentProblem(DenseCosts(values)))


def check_points(rng: np.random.Generator) -> None:
    """Points without a matrix."""
    _check_solvers(AssignmentProblem(PointCosts(rng.random((SIZE, 3)), rng.random((SIZE, 3)))))


def check_sparse(rng: np.random.Generator) -> None:
    """Ties, rows without a candidate and long rows."""
    allowed = rng.random((SIZE, SIZE)) < 0.05
    indptr = np.concatenate([[0], np.cumsum(allowed.sum(axis=1))]).astype(np.int64)
    values = rng.integers(0, 20, int(indptr[-1])).astype(np.int32)
    costs = SparseCosts(indptr, np.nonzero(allowed)[1].astype(np.int32), values, (SIZE, SIZE))
    unmatched = np.full(SIZE, 10)
    _check_solvers(AssignmentProblem(costs, unmatched, unmatched))


def _check_solvers(problem: AssignmentProblem) -> None:
    exact = assign(problem).primal_cost
    for name in SOLVERS:
        if name != "greedy":
            answer = assign(on_gpu(problem), name)
            if name != "greedy_switching":
                assert abs(answer.primal_cost - exact) <= 1e-9 * abs(exact), name


def main() -> None:
    parts = {name[6:]: check for name, check in globals().items() if name.startswith("check_")}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], help=", ".join(parts))
    for name in parser.parse_args().parts or parts:
        start = time.perf_counter()
        parts[name](np.random.default_rng(0))
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
