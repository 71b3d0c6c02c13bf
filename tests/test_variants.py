"""Solvers by name, with variants and settings; and large gated problems for solvers that need a matrix."""

import json
import re

import numpy as np
import pytest
from commands import assert_refused, run, succeed
from scenes import blinking

from outbid import AssignmentProblem, DenseCosts, Detections, TrackingSettings, assign, track
from outbid.assignment import SOLVERS, components, solver_named
from outbid.assignment.papers.auction import Auction
from outbid.assignment.papers.greedy_switching import GreedySwitching
from outbid.assignment.papers.hungarian import Hungarian
from outbid.assignment.variants import names
from outbid.errors import SettingsError

NAMED = {
    "hungarian:classical": Hungarian("classical"),
    "hungarian": Hungarian("tree"),
    "hungarian:tree(workers=2)": Hungarian("tree", 2),
    "auction:fixed(epsilon=1)": Auction(1.0, 1.0),
    "auction(epsilon=0.5, scaling=2)": Auction(0.5, 2.0),
    "auction(epsilon=none)": Auction(),
    "greedy_switching:parallel(start=greedy, evaluation=global)": GreedySwitching(
        parallel=True, start="greedy", evaluation="global"
    ),
    "greedy_switching:mixed(parallel=true,seed=3)": GreedySwitching(parallel=True, seed=3, mixed=True),
}
REFUSED = {
    "simplex": "There is no solver 'simplex'. Choose one of: bid_and_augment, sparsified,",
    "hungarian:wide": "There is no variant 'wide' of hungarian. Choose one of: tree, classical.",
    "greedy:fast": "There is no variant 'fast' of greedy. It has none: write greedy.",
    "auction:fixed(scaling=2)": "auction:fixed takes no setting 'scaling'. It takes: epsilon, most_rounds.",
    "greedy(depth=2)": "greedy takes no setting 'depth'. It takes none.",
    "auction(epsilon=1,epsilon=2)": "auction is given twice the setting 'epsilon'",
    "auction(epsilon=much)": "epsilon of auction is 'much'; it must be a number.",
    "auction(epsilon=0)": "epsilon of auction is 0; it must be above 0.",
    "auction(scaling=0.5)": "scaling of auction is 0.5; it must be 1 or more.",
    "auction(epsilon=inf)": "it must be above 0",
    "hungarian(workers=1.5)": "workers of hungarian is '1.5'; it must be a whole number.",
    "greedy_switching(start=best)": "start of greedy_switching is 'best'. Choose one of: random, greedy.",
    "auction:(": "names no solver. Write auction, auction:fixed or auction(epsilon=0.1).",
    "": "names no solver",
}


@pytest.mark.parametrize("text", NAMED)
def test_a_text_names_solver_variant_and_settings(text):
    assert solver_named(text) == NAMED[text]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_taken_is_refused_with_the_names_that_are(text):
    with pytest.raises(ValueError, match=re.escape(REFUSED[text])):
        solver_named(text)
    with pytest.raises(SettingsError, match=re.escape(REFUSED[text])):
        TrackingSettings(max_distance=1.0, solver=text)


@pytest.mark.smoke
def test_every_variant_solves_by_its_name():
    costs = np.random.default_rng(0).integers(0, 99, (12, 12))
    problem = AssignmentProblem(DenseCosts(costs))
    best = assign(problem).primal_cost
    assert {name.split(":")[0] for name in names()} == set(SOLVERS)
    for name in names():
        answer = assign(problem, name)
        assert answer.primal_cost == best or not solver_named(name).is_exact, name


def test_the_command_lists_variants_and_solves_by_them(tmp_path):
    listed = succeed("assign", "--list")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == names()
    assert "auction:fixed" in listed.stdout
    assert "(epsilon, most_rounds)" in listed.stdout
    np.save(tmp_path / "costs.npy", np.random.default_rng(1).integers(0, 9, (20, 20)))
    done = run("assign", tmp_path / "costs.npy", "--solver", "auction:fixed(epsilon=9)", "--json")
    summary = json.loads(done.stdout)
    assert summary["solver"] == "auction:fixed(epsilon=9)"
    done = run("assign", tmp_path / "costs.npy", "--solver", "auction:fixed(scaling=9)")
    assert_refused(done, 2, "It takes: epsilon, most_rounds.")


@pytest.fixture(scope="module")
def movie() -> Detections:
    return blinking(0.1, 0.15, count=216, frames=4, side=6, seed=3).detections


@pytest.mark.parametrize("solver", ["hungarian:classical", "hungarian:tree", "auction", "sparsified"])
@pytest.mark.parametrize("most", [1, 1 << 25])
def test_frame_pairs_as_matrices_and_in_batches_of_components_get_the_same_links(
    movie, solver, most, monkeypatch
):
    expected = track(movie, TrackingSettings(0.7, max_gap=1))
    monkeypatch.setattr(components, "MOST_PAIRS", most)
    monkeypatch.setattr(components, "_SIDE", 50)
    found = track(movie, TrackingSettings(0.7, max_gap=1, solver=solver), workers=2)
    np.testing.assert_array_equal(found.tracks.links, expected.tracks.links)
    assert found.stats["worst_gap"] == 0
    assert found.stats["solver"] == solver


@pytest.mark.smoke
@pytest.mark.parametrize("shape", [(60, 45), (45, 60)])
@pytest.mark.parametrize("solver", ["hungarian:classical", "hungarian:tree", "greedy_switching"])
def test_components_are_solved_with_their_proof(shape, solver, monkeypatch):
    rng = np.random.default_rng(5)
    costs = np.where(rng.random(shape) < 0.03, rng.integers(0, 50, shape), 10**6).astype(float)
    costs[costs == 10**6] = np.inf
    unmatched = rng.integers(5, 30, shape[0]), rng.integers(5, 30, shape[1])
    problem = AssignmentProblem(DenseCosts(costs).sparse(), *unmatched)
    best = assign(problem).primal_cost
    monkeypatch.setattr(components, "MOST_PAIRS", 10)
    monkeypatch.setattr(components, "_SIDE", 20)
    answer = assign(problem, solver)
    assert answer.stats["components"] > 5
    assert answer.dual_cost <= best <= answer.primal_cost
    if solver != "greedy_switching":
        assert (answer.primal_cost, answer.gap) == (best, 0)


def test_frame_pairs_are_solved_one_by_one_for_solvers_that_grow_faster(movie, monkeypatch):
    sizes = []
    solve = Hungarian.compute
    monkeypatch.setattr(
        Hungarian, "compute", lambda self, problem: sizes.append(problem.shape) or solve(self, problem)
    )
    track(movie, TrackingSettings(0.7, solver="hungarian"), workers=1)
    counts = np.diff(movie.frame_start).tolist()
    assert sizes == list(zip(counts[:-1], counts[1:], strict=True))
