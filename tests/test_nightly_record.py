"""The record of the last `make nightly` belongs to the sources as they are, and holds every longer test."""

import json

import nightly

RECORD = json.loads(nightly.RECORD.read_text("utf-8"))
ADVICE = "Run `make nightly`, and commit tests/nightly_record.json."


def test_the_sources_are_those_that_were_judged() -> None:
    now, then = nightly.sources(), RECORD["sources"]
    assert sorted(name for name in now | then if now.get(name) != then.get(name)) == [], ADVICE
    assert len(now) > 100


def test_every_longer_test_was_run_and_passed() -> None:
    ran = {name.partition("[")[0] for name in RECORD["tests"]}
    assert ran == nightly.marked(), ADVICE
    assert {test["outcome"] for test in RECORD["tests"].values()} == {"passed"}


def test_the_record_says_where_it_comes_from() -> None:
    assert {"commit", "date", "machine", "tests", "accuracy", "sources"} == set(RECORD)
    assert len(RECORD["commit"].rstrip("+")) == 40


def test_accuracy_was_measured_on_every_movie() -> None:
    assert [(row["movie"], row["every"]) for row in RECORD["accuracy"]] == list(nightly.MOVIES)
    assert min(row["link_f1"] for row in RECORD["accuracy"]) > 0.9
