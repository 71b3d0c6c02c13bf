"""`outbid assign`: what it prints, and how it refuses."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run, succeed
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from outbid.assignment import SOLVERS


@pytest.fixture
def matrix(tmp_path: Path) -> tuple[Path, np.ndarray]:
    costs = np.random.default_rng(1).integers(0, 100, (30, 40))
    np.save(tmp_path / "costs.npy", costs)
    return tmp_path / "costs.npy", costs


@pytest.mark.parametrize("solver", sorted({*SOLVERS} - {"greedy", "greedy_switching"}))
def test_every_exact_solver_proves_the_same_cost(matrix, solver):
    path, costs = matrix
    best = costs[linear_sum_assignment(costs)].sum()
    done = succeed("assign", path, "--solver", solver, "--device", "cpu")
    assert f"cost {best}, bound {best}, gap 0, 30 pairs, {solver}, cpu, " in done.stdout
    assert "optimal" in done.stderr


@pytest.mark.smoke
def test_heuristics_report_their_gap_as_json(matrix):
    path, costs = matrix
    output = json.loads(run("assign", path, "--solver", "greedy", "--json").stdout)
    assert output["bound"] <= costs[linear_sum_assignment(costs)].sum() <= output["cost"]
    assert output["gap"] == output["cost"] - output["bound"]
    assert output["status"].startswith("The assignment is ")


def test_points_from_tables_and_arrays_cost_their_distances(tmp_path):
    rng = np.random.default_rng(2)
    a, b = rng.random((20, 3)), rng.random((25, 3))
    np.save(tmp_path / "a.npy", a)
    rows = "\n".join(f"0,{z!r},{y!r},{x!r}" for z, y, x in b.tolist())
    (tmp_path / "b.csv").write_text(f"frame,z,y,x\n{rows}\n")
    output = json.loads(
        run("assign", tmp_path / "a.npy", tmp_path / "b.csv", "--cost", "squared", "--json").stdout
    )
    squared = cdist(a, b, "sqeuclidean")
    assert output["cost"] == pytest.approx(squared[linear_sum_assignment(squared)].sum(), rel=1e-12)


@pytest.mark.smoke
def test_rows_stay_unmatched_where_that_is_cheaper(matrix):
    output = json.loads(run("assign", matrix[0], "--unmatched-cost", "0.25", "--json").stdout)
    assert output["pairs"] < 30


def test_what_cannot_be_solved_is_refused_in_one_line(tmp_path, matrix):
    path, _ = matrix
    assert_refused(run("assign", path, "--solver", "simplex"), 2, "no solver 'simplex'", "sparsified")
    assert_refused(run("assign", tmp_path / "none.npy"), 3, "does not exist")
    assert_refused(run("assign", tmp_path / "costs.txt"), 3, "numpy.save")
    (tmp_path / "cut.npy").write_bytes(path.read_bytes()[:500])
    assert_refused(run("assign", tmp_path / "cut.npy"), 3, "cannot be read")
    np.save(tmp_path / "object.npy", np.array([[{}]]), allow_pickle=True)
    assert_refused(run("assign", tmp_path / "object.npy"), 3, "object.npy", "Python objects")
    for rows in (10**20, -(10**20)):
        with (tmp_path / "huge.npy").open("wb") as file:
            head = {"descr": "<f8", "fortran_order": False, "shape": (rows, 3)}
            np.lib.format.write_array_header_1_0(file, head)
        assert_refused(run("assign", tmp_path / "huge.npy"), 3, "huge.npy")
    (tmp_path / "open.npy").write_bytes(path.read_bytes().replace(b"}", b"("))
    assert_refused(run("assign", tmp_path / "open.npy"), 3, "open.npy", "damaged")
    np.save(tmp_path / "nan.npy", np.array([[np.nan]]))
    assert_refused(run("assign", tmp_path / "nan.npy"), 3, "NaN at 0, 0")
    np.save(tmp_path / "line.npy", np.ones(3))
    assert_refused(run("assign", tmp_path / "line.npy"), 3, "shape (3,)")
    np.save(tmp_path / "inf.npy", np.full((2, 2), np.inf))
    assert_refused(run("assign", tmp_path / "inf.npy"), 5, "infeasible")


def test_a_deadline_is_for_the_solver_that_has_an_answer_at_any_time(matrix):
    output = json.loads(
        run("assign", matrix[0], "--solver", "greedy_switching", "--deadline", "0", "--json").stdout
    )
    assert output["pairs"] == 30
    assert output["gap"] > 0
    assert_refused(run("assign", matrix[0], "--deadline", "1"), 2, "greedy_switching")
    never = run("assign", matrix[0], "--solver", "greedy_switching", "--deadline", "nan")
    assert_refused(never, 2, "deadline is no number")


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_a_gpu_auto_is_the_cpu_and_gpu_says_what_to_install(matrix, solver, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    output = json.loads(run("assign", matrix[0], "--solver", solver, "--device", "auto", "--json").stdout)
    assert output["device"] == "cpu"
    assert_refused(
        run("assign", matrix[0], "--solver", solver, "--device", "gpu"), 4, "pip install 'outbid[cuda12]'"
    )


def test_whole_unmatched_costs_keep_the_proof_in_whole_numbers(matrix):
    output = json.loads(run("assign", matrix[0], "--unmatched-cost", "3", "--json").stdout)
    assert isinstance(output["cost"], int)
    assert output["gap"] == 0


def test_a_table_of_many_frames_is_no_point_set(tmp_path):
    (tmp_path / "all.csv").write_text("frame,z,y,x\n0,1,1,1\n3,1,1,2\n")
    refused = run("assign", tmp_path / "all.csv", tmp_path / "all.csv")
    assert_refused(refused, 3, "frames 0 to 3", "outbid track")


def test_what_does_not_fit_is_refused_with_its_size_before_it_is_read(matrix, tmp_path, monkeypatch):
    monkeypatch.setattr("outbid.formats.files.memory.free_memory", lambda: 5000)
    assert_refused(run("assign", matrix[0]), 4, "0.0 GiB", "point sets")
    monkeypatch.undo()
    np.save(tmp_path / "points.npy", np.random.default_rng(3).random((30, 3)))
    monkeypatch.setattr("outbid.assignment.points.free_memory", lambda: 1000)
    given = tmp_path / "points.npy", tmp_path / "points.npy"
    on_cpu = "--device", "cpu"
    done = run("assign", *given, "--solver", "hungarian", *on_cpu)
    assert_refused(done, 4, "0.0 GiB", "solver sparsified")
    succeed("assign", *given, *on_cpu)


def test_of_more_rows_than_columns_the_side_left_over_is_named(tmp_path):
    np.save(tmp_path / "tall.npy", np.array([[1, np.inf], [2, np.inf], [3, np.inf]]))
    assert_refused(run("assign", tmp_path / "tall.npy"), 5, "row 1", "row here means column")
