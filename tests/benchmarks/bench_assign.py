"""One frame pair: candidates and exact assignment, against OR-tools and SciPy on the same candidates.

Points are uniform at density 1; lengths are in units of density^(-1/3). Displacements are Gaussian with
kappa .5, the gate is 1.5 (about 14.5 candidates for each point), 5 % of the points die and as many are born.
Costs are distances, and the unmatched cost of a point is half of the gate. Compilation is not timed; the
fastest of several runs counts. For the peers the solver alone is timed, for Outbid everything that `match`
does. Each case runs in its own process; `peak_gb` is the peak memory of this process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import measure
import numpy as np
import peers
from numpy.typing import NDArray

from outbid import Match, match

GATE = 1.5
STEP = 0.5


def scene(count: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two frames of `count` points each, the second one shuffled."""
    rng = np.random.default_rng(seed)
    side = count ** (1 / 3)
    source = rng.uniform(0, side, (count, 3))
    target = source + rng.normal(0, STEP, (count, 3))
    renewed = rng.random(count) < 0.05
    target[renewed] = rng.uniform(0, side, (renewed.sum(), 3))
    return source, rng.permutation(target)


def matched(count: int, seed: int, workers: int) -> Match:
    source, target = scene(count, seed)
    return match(source, target, GATE, workers=workers)


def outbid(count: int, repeats: int, workers: int) -> measure.Row:
    matched(1000, 1, workers)  # compiles
    source, target = scene(count, 0)
    seconds, found = measure.best_of(repeats, lambda: match(source, target, GATE, workers=workers))
    pairs = len(found.assignment.problem.costs.values) / count
    answer = found.assignment
    return {"seconds": seconds, "candidates": pairs, "cost": answer.primal_cost, "gap": answer.gap}


def ortools(count: int) -> measure.Row:
    seconds, cost = peers.ortools_min_cost_flow(matched(count, 0, 1).assignment.problem)
    return {"seconds": seconds, "cost": cost}


def scipy(count: int) -> measure.Row:
    seconds, cost = peers.scipy_augmented(matched(count, 0, 1).assignment.problem)
    return {"seconds": seconds, "cost": cost}


def table(limit: float) -> Iterator[measure.Row]:
    cores = os.cpu_count() or 1
    for count, repeats in ((100_000, 7), (1_000_000, 3)):
        for workers in sorted({1, cores}):
            row = measure.in_process(outbid, count, repeats, workers, limit=limit)
            yield {"n": count, "who": f"outbid, {workers} threads"} | row
        if count == 100_000:
            for who, peer in (("OR-tools, min-cost flow", ortools), ("SciPy, augmented matrix", scipy)):
                yield {"n": count, "who": who} | measure.in_process(peer, count, limit=limit)


if __name__ == "__main__":
    chosen = measure.options(__doc__).parse_args()
    measure.show(table(chosen.limit), chosen.csv)
