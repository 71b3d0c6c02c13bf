"""Short runs of experiments in tests, and how one is interrupted."""

import csv
from pathlib import Path

import pytest

from outbid.simulate.experiment import Experiment, Row, Trial

TINY = ("--quick", "--seeds", "1", "--frames", "6", "--particles", "60")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def without_seconds(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def interrupt(experiment: Experiment, after: int, monkeypatch: pytest.MonkeyPatch) -> list[Trial]:
    """Let the experiment be interrupted after some trials, and list those that were done."""
    measure = experiment.measure
    done: list[Trial] = []

    def interrupted(_: Experiment, trial: Trial) -> list[Row]:
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(trial)
        return measure(trial)

    monkeypatch.setattr(type(experiment), "measure", interrupted)
    return done
