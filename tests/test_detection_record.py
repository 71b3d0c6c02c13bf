"""The pages show what the records of detection hold, with what falls short in words."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import detection_tables
import pytest
import records
import renew
from benchmarks import measure
from detection_accuracy import cells, grid, run, uneven

NAMES = [name for name in vars(detection_tables) if name.startswith("detection_")]
PAGES = [page for page in renew.pages() if page.name in ("detection.md", "detection_record.md", "results.md")]


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
    rows = detection_tables._cells(detection_tables.record("detection"))
    short = [row for row in rows if row["jsc"] < detection_tables.ENOUGH * row["peer_jsc"] - 1e-3]
    assert detection_tables.detection_grid().count(" *") == pytest.approx(len(short), abs=len(rows) // 50)
    counts = [int(n) for n in re.findall(r"in (\d+) of \d+ cells of", detection_tables.detection_summary())]
    assert sum(counts) == detection_tables.detection_grid().count(" *")


def test_each_task_was_measured_once_or_is_named_as_missing() -> None:
    whole = detection_tables.record("detection")
    assert all(len(one["commit"]) == 40 and one["date"] and one["machine"] for one in whole["runs"])
    counting = grid.counting()
    assert {*whole["grid"]["cells"]} | {*whole["missing"].get("grid", [])} == counting
    assert not {*whole["grid"]["cells"]} & {*whole["missing"].get("grid", [])}
    for part, one in run.parts([]).items():
        if part not in ("grid", "real"):  # some cells do not count; recordings are not everywhere
            there = sum(each["tasks"].get(part, 0) for each in whole["runs"])
            assert there + len(whole["missing"].get(part, [])) == len(one.tasks)
    page = next(page for page in PAGES if page.name == "detection_record.md").read_text("utf-8")
    assert f"Of the {len(list(cells.cells()))} cells, {len(counting)} count" in page


def test_what_was_not_measured_is_missing_and_later_lines_replace_earlier_ones() -> None:
    name, other = "optics 2D R3 SNR7 s20", "optics 2D R3 SNR4 s20"

    def line(commit: str, cell: str, jsc: float) -> dict:
        row = {
            "right": 9,
            "wrong": 0,
            "missed": 1,
            "jsc": jsc,
            "images": grid.frozen()["cells"][cell]["images"],
        }
        return {"commit": commit, "date": "", "machine": "", "part": "grid", "name": cell, "row": row}

    record = run.assembled([line("a", name, 0.5), line("a", other, 0.5), line("b", name, 0.9)])
    assert [(each["commit"], each["tasks"]) for each in record["runs"]] == [
        ("b", {"grid": 1}),
        ("a", {"grid": 1}),
    ]
    assert {cell: one["jsc"] for cell, one in record["grid"]["cells"].items()} == {other: 0.5, name: 0.9}
    assert len(record["missing"]["grid"]) == len(grid.counting()) - 2


@pytest.mark.parametrize("changed", [[], ["tracker/detection/model.py"]])
def test_a_log_of_another_detector_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: list[str]
) -> None:
    log = tmp_path / "run.jsonl"
    assert run.logged(log) == []
    line = {**measure.stated(), "part": "real", "name": "fly radius 7", "row": {"jsc": 0.67, "radius": 7.0}}
    log.write_text(f"{json.dumps(line)}\n", encoding="utf-8")
    seen = records.origins(replace(records.record_named("detection"), path=log))
    assert seen == [(line["commit"].rstrip("+"), line["date"])]
    monkeypatch.setattr(records, "changed_sources", lambda record: changed if record.path == log else [])
    with pytest.raises(ValueError, match="has changed") if changed else nullcontext():
        assert run.logged(log) == [line]


def test_a_record_of_some_parts_has_tables_too(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = detection_tables.record("detection")
    cell = {"jsc": 0.9, "peer": "LoG", "peer_jsc": 0.8, "ratio": 1.125}
    some = {name: whole[name] for name in ("runs", "missing", "failures")}
    some["grid"] = {"summary": {"mean": 0.9, "peers_mean": 0.8}, "cells": {"optics 2D R3 SNR4 s12": cell}}
    monkeypatch.setattr(detection_tables, "record", lambda _: some)
    for name in NAMES:
        assert getattr(detection_tables, name)()
    assert "falls short" not in detection_tables.detection_summary()


def test_uneven_light_is_in_the_table_as_it_was_measured() -> None:
    rows = detection_tables.read("detection_uneven.json")["rows"]
    assert {(row["renderer"], row["kind"]) for row in rows} == {
        (renderer, kind) for renderer in uneven.RENDERERS for kind in uneven.KINDS
    }
    first = next(line for line in detection_tables.detection_uneven().splitlines() if "all" in line)
    assert f"| {len(rows)} | {sum(row['jsc'] for row in rows) / len(rows):.2f} |" in first
