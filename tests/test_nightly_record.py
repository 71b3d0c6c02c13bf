"""The record of the last `make nightly` holds every longer test."""

import json
from typing import Any

import nightly
import pytest

ADVICE = "Run `make nightly`, and commit tests/bench/nightly_record.json."


@pytest.fixture
def record() -> dict[str, Any]:
    return json.loads(nightly.RECORD.read_text("utf-8"))


def test_every_longer_test_was_run_and_passed(record: dict[str, Any]) -> None:
    ran = {name.partition("[")[0] for name in record["tests"]}
    assert ran == nightly.marked(), ADVICE
    assert {test["outcome"] for test in record["tests"].values()} == {"passed"}
