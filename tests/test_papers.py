"""Tables and figures of the papers: each runs small and writes its files; the record holds every table."""

import json

import papers
import pytest
from commands import assert_refused, run, succeed
from experiment_runs import table

from outbid.simulate.experiments.papers import PAPERS
from outbid.simulate.matrices import geom, uniform
from outbid.simulate.paper import extent, mean_rows, values_of

RECORD = json.loads(papers.RECORD.read_text("utf-8"))
SIZES = {"date-nagi-table3": "60", "date-nagi-table5": "40"}
LEARNED = "vasconcelos-figure5"
"""Links by learning as well, which takes longer."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly) if name == LEARNED else name for name in PAPERS]
)
def test_every_table_runs_small_and_judges_the_claims(name, tmp_path):
    succeed("experiment", name, "--sizes", SIZES.get(name, "30,50"), "--seeds", "1", "-o", tmp_path)
    rows, summary, claims = (table(tmp_path / f"{name}{end}.csv") for end in ("", "_summary", "_claims"))
    cell = PAPERS[name].cell
    assert set(cell) <= set(rows[0])
    assert len(summary) == len({tuple(row[key] for key in cell) for row in rows})
    assert {row["verdict"] for row in claims} <= {"holds", "does not hold", "not measured here"}
    assert all(row["claim"] and row["where"] for row in claims)
    record = json.loads((tmp_path / f"{name}.csv.json").read_text("utf-8"))
    assert (record["experiment"], record["device"], record["complete"]) == (name, "cpu", True)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert_refused(run("experiment", name, "--quick", "-o", tmp_path), 2, "--overwrite")


def test_what_is_not_for_a_table_is_refused(tmp_path):
    for words in (
        ["date-nagi-table1", "--frames", "5"],
        ["date-nagi-table1", "--sizes", "1"],
        ["date-nagi-table1", "--sizes", "many"],
        ["kappa", "--device", "gpu"],
    ):
        assert run("experiment", *words, "-o", tmp_path / "none").exit_code == 2
    listed = run("experiment", "--list").stdout
    assert [name for name in PAPERS if f"\n{name} " not in listed] == []


@pytest.mark.smoke
def test_the_papers_numbers_are_there():
    assert len(values_of("date-nagi-table1")) == 10
    assert values_of("date-nagi-table2")[-1]["initial"] == 4316
    assert sum(row["costs"] == "[0, n]" for row in values_of("date-nagi-table3")) == 4
    assert [row["tree"] for row in values_of("date-nagi-table4")] == [16.28, 20.26, 26.51, 37.03, 58.32]
    assert len(values_of("date-nagi-table5")) == 15


@pytest.mark.smoke
def test_matrices_are_those_of_the_papers():
    costs = uniform(40, "[0, 10n]", 3).array
    assert (costs.min() >= 0, costs.max() <= 400, costs.max() > 390) == (True, True, True)
    distances = -geom(30, 1).array
    assert (distances == distances.T).all()
    assert distances.max() < 1000 * 2**0.5


def test_means_are_taken_over_instances():
    rows = [{"n": 2, "case": "a", "instance": k, "seconds": k, "word": "x"} for k in (1, 3)]
    assert mean_rows(rows, ("n", "case")) == [
        {"n": 2, "case": "a", "instances": 2, "seconds": 2, "word": "x"}
    ]
    assert PAPERS["date-nagi-table1"].usual("gpu", quick=True) == extent((60, 120), 1, "gpu")


class Cut(type(PAPERS["date-nagi-table2"])):  # type: ignore[misc]
    """A table that is ended in the midst of its second size."""

    def rows(self, problems):
        for row in super().rows(problems):
            yield row
            if row["n"] > problems.sizes[0]:
                raise InterruptedError


def test_a_table_that_is_ended_keeps_the_sizes_it_completed(tmp_path, monkeypatch):
    monkeypatch.setitem(PAPERS, "cut", Cut())
    with pytest.raises(InterruptedError):
        papers.measured("cut", extent((30, 40), 2), tmp_path / "part.json")
    part = json.loads((tmp_path / "part.json").read_text("utf-8"))
    assert (part["complete"], {row["n"] for row in part["summary"]}) == (False, {30})
    assert part["claims"]
    papers.measured("date-nagi-table2", extent((30,)), tmp_path / "part.json")
    assert json.loads((tmp_path / "part.json").read_text("utf-8"))["complete"] is True


@pytest.mark.parametrize("device", sorted({*papers.EXTENTS} & {*RECORD} | {"cpu"}))
def test_the_record_holds_every_table_with_its_origin(device):
    assert {*RECORD[device]} <= {*papers.EXTENTS[device]}
    assert {*RECORD["cpu"], *RECORD.get("gpu", {})} == {name for of in papers.EXTENTS.values() for name in of}
    for part in RECORD[device].values():
        assert part["commit"] != "unknown"
        assert part["date"]
        assert part["machine"]
        assert bool(part["card"]) == (device == "gpu")
        assert part["summary"]
        assert part["claims"]
