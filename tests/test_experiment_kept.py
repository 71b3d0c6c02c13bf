"""Experiments that go on from the rows of earlier runs."""

import json
from pathlib import Path

import pytest
from commands import assert_refused, run, succeed
from experiment_runs import TINY, interrupt, table, without_seconds

from outbid.simulate.experiment import Trial
from outbid.simulate.experiments import EXPERIMENTS

NEAREST = ("--where", "linker=nearest")


def experiment(*more: object) -> None:
    succeed("experiment", "kappa", *TINY, *more)


@pytest.mark.slow
def test_parts_together_are_the_whole(tmp_path: Path) -> None:
    whole, one, other, both = (tmp_path / name for name in ("whole", "one", "other", "both"))
    experiment("--where", "linker=nearest,plain", "-o", whole)
    experiment(*NEAREST, "-o", one)
    experiment("--where", "linker=plain", "--where", "kappa=0.1", "-o", other)
    tables = ("--with", one / "kappa.csv", "--with", other / "kappa.csv")
    experiment("--where", "linker=nearest,plain", *tables, "-o", both)
    rows = [without_seconds(table(folder / "kappa.csv")) for folder in (whole, both)]
    assert sorted(map(json.dumps, rows[0])) == sorted(map(json.dumps, rows[1]))
    assert len(table(whole / "kappa_summary.csv")) == len(table(both / "kappa_summary.csv"))


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kappa = EXPERIMENTS["kappa"]
    measure, done = kappa.measure, interrupt(kappa, 2, monkeypatch)
    assert run("experiment", "kappa", *TINY, *NEAREST, "-o", tmp_path).exit_code == 130
    kept = table(tmp_path / "kappa.csv")
    again: list[Trial] = []
    monkeypatch.setattr(type(kappa), "measure", lambda _, trial: again.append(trial) or measure(trial))
    experiment(*NEAREST, "--with", tmp_path / "kappa.csv", "-o", tmp_path, "--overwrite")
    rows = table(tmp_path / "kappa.csv")
    assert rows[: len(kept)] == kept
    assert len(rows) == len(kept) + len(again) > len(kept)
    assert not {trial.scene for trial in done} & {trial.scene for trial in again}
    assert json.loads((tmp_path / "kappa.csv.json").read_text())["complete"] is True


def test_all_that_is_asked_may_be_there_already(tmp_path: Path) -> None:
    experiment(*NEAREST, "-o", tmp_path / "a")
    experiment(*NEAREST, "--with", tmp_path / "a" / "kappa.csv", "-o", tmp_path / "b")
    assert (tmp_path / "a" / "kappa.csv").read_text() == (tmp_path / "b" / "kappa.csv").read_text()


def test_tables_of_something_else_are_refused(tmp_path: Path) -> None:
    experiment(*NEAREST, "-o", tmp_path)
    earlier = ("--with", tmp_path / "kappa.csv", "-o", tmp_path / "b")
    assert_refused(run("experiment", "clutter", *TINY, *earlier), 2, "not a table of the experiment clutter")
    assert_refused(run("experiment", "kappa", *TINY, "--particles", 77, *earlier), 2, "--particles")
    summary = tmp_path / "kappa_summary.csv"
    (tmp_path / "kappa_summary.csv.json").write_bytes((tmp_path / "kappa.csv.json").read_bytes())
    done = run("experiment", "kappa", *TINY, "--with", summary, "-o", tmp_path / "b")
    assert_refused(done, 3, "single seeds")
    done = run("experiment", "kappa", *TINY, "--with", tmp_path / "no.csv", "-o", tmp_path / "b")
    assert_refused(done, 3, "no.csv")
    whole = (tmp_path / "kappa.csv").read_text()
    (tmp_path / "kappa.csv").write_text(whole[:-20])
    done = run("experiment", "kappa", *TINY, "--with", tmp_path / "kappa.csv", "-o", tmp_path / "b")
    assert_refused(done, 3, "too short")
    assert not (tmp_path / "b").exists()
