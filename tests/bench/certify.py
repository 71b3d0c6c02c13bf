"""Random assignment problems, each answer checked from outside.

``make certify`` renews tests/bench/certify_record.json. Small problems are compared with an exact rational
solver (tests/exact_assignment.py), large ones with SciPy. An answer that says it is optimal must cost no more
than the optimum, to 1e-12 of the magnitudes that it pays.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from benchmarks import measure
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from outbid import Assignment, AssignmentProblem, DenseCosts, PointCosts, Status, assign
from outbid.assignment import SOLVERS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from exact_assignment import least_cost, paid

RECORD = Path(__file__).with_name("certify_record.json")
TOLERANCE = Fraction(1, 10**12)
KINDS = ("uniform", "ties", "many scales", "forbidden", "signed", "integers", "points", "strided")
HANGS = "jonker_volgenant"
"""SciPy's sparse solver, which may search for ever where costs differ much in size: dense problems only."""


def costs_of(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> DenseCosts | PointCosts:
    """Costs of one kind, at a scale from 1e-280 to 1e280."""
    scale = 10.0 ** float(rng.integers(-6, 7) if rng.random() < 0.8 else rng.integers(-280, 281))
    values = rng.random(shape)
    if kind == "points":
        axes = int(rng.integers(1, 4))
        size = min(scale, 1e100)
        return PointCosts(size * rng.random((shape[0], axes)), size * rng.random((shape[1], axes)))
    if kind == "integers":
        return DenseCosts(rng.integers(-(2**20), 2**20, shape))
    if kind == "ties":
        values = np.round(4 * values)
    elif kind == "many scales":
        values = values * 10.0 ** rng.integers(-8, 9, shape)
    elif kind == "forbidden":
        values[rng.random(shape) < 0.3] = np.inf
    elif kind == "signed":
        values = values - 0.5
    elif kind == "strided":
        values = np.asfortranarray(np.repeat(values, 2, axis=0))[::2]
    return DenseCosts(values * scale)


def unmatched_of(rng: np.random.Generator, length: int, level: float, whole: bool) -> NDArray:
    """Unmatched costs about a level: all alike, nearly alike, or from 0 to it."""
    kind = rng.integers(3)
    cost = level * np.ones(length) if kind == 0 else level * rng.random(length)
    if kind == 2:
        cost = level + rng.random(length)
    return np.floor(cost).astype(np.int64) if whole else cost


def problems(seed: int, count: int, most: int = 8) -> Iterator[tuple[str, AssignmentProblem]]:
    """Random problems of up to so many rows and columns, with the name of their kind."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        rows, cols = (int(n) for n in rng.integers(1, most + 1, 2))
        costs = costs_of(kind, rng, (rows, cols))
        sparse = kind != "points" and rng.random() < 0.3
        if rng.random() < 0.3:
            problem = AssignmentProblem(costs.sparse() if sparse else costs)  # type: ignore[union-attr]
        else:
            level = 10.0 ** float(rng.integers(-3, 11 if kind == "integers" else 16))
            sides = (unmatched_of(rng, length, level, kind == "integers") for length in (rows, cols))
            problem = AssignmentProblem(costs.sparse() if sparse else costs, *sides)  # type: ignore[union-attr]
        yield kind, problem


def answers(problem: AssignmentProblem) -> Iterator[tuple[str, Assignment | None]]:
    """The answer of every solver; None where it refuses the problem."""
    for solver in SOLVERS:
        if solver == HANGS and not (problem.is_perfect and isinstance(problem.costs, DenseCosts)):
            continue
        try:
            yield solver, assign(problem, solver)
        except (ValueError, RuntimeError):
            yield solver, None


def verdict(answer: Assignment | None, best: Fraction | None) -> str:
    """Right, feasible (not proved), refused, or wrong."""
    if answer is None:
        return "refused" if best is None else "refused, though feasible"
    if best is None:
        return "wrong"
    cost, magnitude = paid(answer)
    near = cost - best <= TOLERANCE * magnitude
    if answer.status is Status.OPTIMAL:
        return "right" if near else "wrong"
    return "feasible, and optimal" if near else "feasible"


def small(seed: int, count: int) -> Counter[str]:
    """Verdicts on small problems, by solver and kind."""
    found: Counter[str] = Counter()
    for kind, problem in problems(seed, count):
        best = least_cost(problem)
        for solver, answer in answers(problem):
            outcome = verdict(answer, best)
            found[f"{solver}: {outcome}"] += 1
            if outcome == "wrong":
                found[f"wrong in {kind}"] += 1
    return found


def large(seed: int, count: int) -> Counter[str]:
    """Verdicts on dense perfect matchings of 50 to 200, beside SciPy."""
    rng, found = np.random.default_rng(seed), Counter[str]()
    for number in range(count):
        shape = tuple(int(n) for n in rng.integers(50, 201, 2))
        values = rng.random(shape) * 10.0 ** float(rng.integers(-6, 7))
        if number % 2:
            values = np.round(values / values.max() * 20)
        rows, cols = linear_sum_assignment(values)
        least = float(values[rows, cols].sum())
        for solver, answer in answers(AssignmentProblem(DenseCosts(values))):
            assert answer is not None
            near = answer.primal_cost <= least + 1e-11 * abs(least)
            optimal = answer.status is Status.OPTIMAL
            found[f"{solver}: {'right' if optimal and near else 'wrong' if optimal else 'feasible'}"] += 1
    return found


def judged(seed: int) -> Counter[str]:
    """Outcomes of the problems of one seed."""
    return small(seed, 2000) + large(seed, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--assignments", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with problems of its own")
    chosen = parser.parse_args()
    found: Counter[str] = Counter()
    seed = 0
    with measure.processes(chosen.jobs) as pool:
        while sum(count for name, count in found.items() if ": " in name) < chosen.assignments:
            for outcomes in pool.map(judged, range(seed, seed + chosen.jobs)):
                found += outcomes
            seed += chosen.jobs
            wrong = sum(count for name, count in found.items() if name.endswith("wrong"))
            sys.stderr.write(f"{seed * 2000} problems, {wrong} wrong answers\n")
    total = sum(count for name, count in found.items() if ": " in name)
    record = {**measure.stated(), "assignments": total, "outcomes": dict(sorted(found.items()))}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
