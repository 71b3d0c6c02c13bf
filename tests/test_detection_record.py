"""The pages show what the record of `make detection-accuracy` holds, with what falls short in words."""

import re

import detection_tables
import pytest
import renew

NAMES = [name for name in vars(detection_tables) if name.startswith("detection_")]
PAGES = [page for page in renew.pages() if page.name in ("detection.md", "results.md")]


def test_the_pages_are_those_of_the_record() -> None:
    shown = set()
    for page in PAGES:
        text = page.read_text("utf-8")
        for name, table in re.findall(r"<!-- table: (\w+) -->\n(.*?)<!-- /table -->", text, re.DOTALL):
            if name in NAMES:
                shown.add(name)
                assert table.strip() == getattr(detection_tables, name)().strip(), "run python docs/renew.py"
    assert shown == set(NAMES)


def test_what_falls_short_is_counted_and_marked() -> None:
    rows = detection_tables._cells(detection_tables.record())
    short = [row for row in rows if row["jsc"] < detection_tables.ENOUGH * row["peer_jsc"] - 1e-3]
    assert detection_tables.detection_grid().count(" *") == pytest.approx(len(short), abs=len(rows) // 50)
    counts = [int(n) for n in re.findall(r"in (\d+) of \d+ cells of", detection_tables.detection_summary())]
    assert sum(counts) == detection_tables.detection_grid().count(" *")


def test_a_record_of_some_parts_has_tables_too(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = detection_tables.record()
    cell = {"jsc": 0.9, "peer": "LoG", "peer_jsc": 0.8, "ratio": 1.125}
    some = {name: whole[name] for name in ("commit", "date", "machine")}
    some["grid"] = {"summary": {"mean": 0.9, "peers_mean": 0.8}, "cells": {"optics 2D R3 SNR4 s12": cell}}
    monkeypatch.setattr(detection_tables, "record", lambda: some)
    for name in NAMES:
        assert getattr(detection_tables, name)()
    assert "falls short" not in detection_tables.detection_summary()
