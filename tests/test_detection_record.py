"""The pages show what the records of detection hold, with what falls short in words."""

import json
import re
from pathlib import Path

import detection_tables
import pytest
import renew
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


def test_what_was_not_measured_is_a_dash_and_later_runs_replace_earlier_ones() -> None:
    name, other = "optics 2D R3 SNR7 s20", "optics 2D R3 SNR4 s20"
    images = {cell: grid.frozen()["cells"][cell]["images"] for cell in (name, other)}
    row = {"right": 9, "wrong": 0, "missed": 1}
    first = {cell: {**row, "images": images[cell], "jsc": 0.5} for cell in (name, other)}
    again = {name: {**row, "images": images[name], "jsc": 0.9}}
    record = run.assembled([({"commit": "a"}, {"grid": first}), ({"commit": "b"}, {"grid": again})], "time")
    assert [each["tasks"] for each in record["runs"]] == [{"grid": 1}, {"grid": 1}]
    assert {cell: one["jsc"] for cell, one in record["grid"]["cells"].items()} == {other: 0.5, name: 0.9}
    assert len(record["missing"]["grid"]) == len(grid.counting()) - 2
    assert record["why_missing"] == "time"


def test_a_log_of_another_detector_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    now = {"commit": "a", "sources": run.judged_sources()}
    line = '1/2 real: fly radius 7: {"jsc": 0.67, "radius": 7.0}'
    log.write_text(f"{json.dumps(now)}\nnumba says something\n{line}\n", encoding="utf-8")
    assert run.logged(log) == (
        {"commit": "a"}, {"real": {"fly radius 7": {"jsc": 0.67, "radius": 7.0}}},
    )  # fmt: skip
    now["sources"] = {**now["sources"], "tracker/detection/model.py": "0"}
    log.write_text(f"{json.dumps(now)}\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has changed"):
        run.logged(log)


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
