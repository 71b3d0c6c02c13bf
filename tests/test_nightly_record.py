"""The record of the last `make nightly` holds every longer test, and its origin."""

import json
from typing import Any

import nightly
import pytest

ADVICE = "Run `make nightly`, and commit tests/nightly_record.json."


@pytest.fixture
def record() -> dict[str, Any]:
    return json.loads(nightly.RECORD.read_text("utf-8"))


def test_every_longer_test_was_run_and_passed(record: dict[str, Any]) -> None:
    ran = {name.partition("[")[0] for name in record["tests"]}
    assert ran == nightly.marked(), ADVICE
    assert {test["outcome"] for test in record["tests"].values()} == {"passed"}


def test_the_record_says_where_it_comes_from(record: dict[str, Any]) -> None:
    assert {"commit", "date", "machine", "tests", "accuracy"} == set(record)
    assert len(record["commit"].rstrip("+")) == 40


def test_accuracy_was_measured_on_every_movie(record: dict[str, Any]) -> None:
    assert [(row["movie"], row["every"]) for row in record["accuracy"]] == list(nightly.MOVIES)
    assert min(row["link_f1"] for row in record["accuracy"]) > 0.9
