"""All that detection must show: ``make detection-accuracy`` renews tests/detection_record.json.

The record holds the runs it comes from (commit, date, machine), hashes of the sources that are judged, what
was measured, what of it fails, and what was not measured. In tests/:

    python -m detection_accuracy.run                      everything
    python -m detection_accuracy.run grid --words 2D R3   some parts, what has these words; writes no record
    python -m detection_accuracy.run --logs A B           the record of runs that were cut short, from logs
    python -m detection_accuracy.run peers                the peers, where their record has nothing yet

All tasks but `speed` share one pool of processes. A part is judged and written when its last task is done; a
task that fails is a line of what falls short. Each task is a line on stderr, which is the log of a run.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import false_spots, grid, origin, precision, real, speed, whole_way
from .cells import cells

RECORD = grid.REPOSITORY / "tests" / "detection_record.json"
AS_TODAY = {"fly": 0.65, "fly radius 8": 0.65, "faketracks": 0.99}
"""Least Jaccard index of recorded stacks: what the detector before this record reached."""
LEAST = {"mvoxel_a_second": 20.0, "spots_a_second": 10_000.0}
MOST_BYTES = 8.0  # a voxel
NUMBER = re.compile(r"\d+/\d+ (\w+): (.*?): (\{.*)")  # a line of a log: count, part, task, row
Row = dict[str, Any]
Rows = dict[str, dict[str, Row]]
"""Rows of tasks by their names, by part."""


def judged_sources() -> dict[str, str]:
    """SHA-256 of every source that is judged, without its docstrings, and of the peers' record."""
    paths = sorted((grid.REPOSITORY / "tracker" / "detection").glob("*.py"))
    code = {path: code_of(path.read_text("utf-8")).encode() for path in paths}
    return {
        path.relative_to(grid.REPOSITORY).as_posix(): hashlib.sha256(content).hexdigest()
        for path, content in (*code.items(), (grid.PEERS, grid.PEERS.read_bytes()))
    }


def code_of(text: str) -> str:
    """The lines of a module without docstrings and blank lines: better words need no new measurement."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    return "\n".join(line for line in lines if line.strip())


@dataclass(frozen=True)
class Part:
    """One thing that is measured.

    Parameters
    ----------
    tasks : dict
        What is worked on by name, with the function that does it.
    judge : callable
        Makes of the rows of all tasks what the record holds, and what falls short.
    """

    tasks: dict[str, tuple[Callable[[Any], Row], Any]]
    judge: Callable[[dict[str, Row]], tuple[Row, list[str]]]


def judge_grid(found: dict[str, Row]) -> tuple[Row, list[str]]:
    """Rows of cells that count, their summary, and what falls short."""
    ordered = {cell.name: found[cell.name] for cell in cells() if cell.name in found}
    rows = grid.judged(ordered, grid.frozen()["cells"])
    kept = {
        name: {key: row[key] for key in ("jsc", "right", "wrong", "missed", "peer", "peer_jsc", "ratio")}
        for name, row in rows.items()
    }
    mine, theirs = ([row[key] for row in rows.values()] for key in ("jsc", "peer_jsc"))
    summary = {
        "cells": len(rows), "mean": _mean(mine), "peers_mean": _mean(theirs),
        "reached": sum(row["ratio"] >= grid.ENOUGH for row in rows.values()),
    }  # fmt: skip
    wrong = [
        f"{name}: JSC {row['jsc']:.3f}, {row['ratio']:.2f} of {row['peer']}'s {row['peer_jsc']:.3f} "
        f"(right {row['right']}, wrong {row['wrong']}, missed {row['missed']})"
        for name, row in rows.items()
        if row["ratio"] < grid.ENOUGH
    ]
    if rows and summary["mean"] <= summary["peers_mean"]:
        text = f"mean of {len(rows)} cells: {summary['mean']} is not above {summary['peers_mean']}"
        wrong.append(text)
    return {"summary": summary, "cells": kept}, wrong


def judge_false_spots(found: dict[str, Row]) -> tuple[Row, list[str]]:
    """Realised shares of false spots, and false spots in images without any."""
    empties = {name: found[name] for name in false_spots.empties() if name in found}
    asked_for = {name: found[name] for name in false_spots.fdr_scenes() if name in found}
    wrong = [
        f"{name}: {row['false']} false spots in {row['images']} images without spots"
        for name, row in empties.items()
        if row["false"] > false_spots.MOST * row["images"]
    ]
    for name, row in asked_for.items():
        for asked, share in false_spots.shares(row).items():
            if not asked / false_spots.FACTOR <= share <= asked * false_spots.FACTOR:
                wrong.append(
                    f"{name}: {share:.1%} false where {asked:.0%} was asked for "
                    f"({row[f'false_{asked:g}']} of {row[f'found_{asked:g}']}; {row['spots']} spots)"
                )
    return {"empty": empties, "fdr": asked_for}, wrong


def judge_precision(found: dict[str, Row]) -> tuple[Row, list[str]]:
    """Errors over the Cramér-Rao bound, and coverage of stated errors."""
    rows = {name: found[name] for name in precision.scenes() if name in found}
    return rows, [text for name, row in rows.items() for text in precision.failures(name, row)]


def judge_whole_way(found: dict[str, Row]) -> tuple[Row, list[str]]:
    """Scores of the challenge beside the frozen ones of the peers."""
    peers = grid.frozen().get("whole_way", {})
    rows: Row = {}
    wrong: list[str] = []
    for name in whole_way.movies():
        if name not in found:
            continue
        theirs = peers.get(name, {})
        beside = {key: theirs[key] for key in whole_way.SCORES if key in theirs}
        rows[name] = found[name] | {f"peer_{key}": value for key, value in beside.items()}
        wrong += [
            f"{name}: {key} {found[name][key]:.3f}, peers {value:.3f}"
            for key, value in beside.items()
            if found[name][key] <= value
        ]
    return rows, wrong


def judge_real(found: dict[str, Row]) -> tuple[Row, list[str]]:
    """Recorded stacks, those of them that are there."""
    rows = {name: found[name] for name in real.cases() if name in found}
    absent = [name for name in real.cases() if not real.folder_of(name).is_dir()]
    wrong = [f"{name}: not measured, there is no {real.folder_of(name).name}" for name in absent]
    wrong += [
        f"{name}: JSC {rows[name]['jsc']:.3f} below {least}"
        for name, least in AS_TODAY.items()
        if name in rows and rows[name]["jsc"] < least
    ]
    spots = rows.get("3 spots")
    if spots and (not spots["all_there"] or set(spots["counts"]) != {3}):
        wrong.append(f"3 spots: {spots}")
    return rows, wrong


def judge_speed(found: dict[str, Row]) -> tuple[Row, list[str]]:
    """Speed and memory."""
    row = found.get("speed", {})
    wrong = [
        f"speed: {name} {row[name]} below {least:g}"
        for name, least in LEAST.items()
        if name in row and row[name] < least
    ]
    if row.get("bytes_a_voxel", 0.0) > MOST_BYTES:
        wrong.append(f"speed: {row['bytes_a_voxel']} bytes a voxel above {MOST_BYTES:g}")
    return row, wrong


def parts(words: list[str]) -> dict[str, Part]:
    """All that is measured by name, those first whose tasks take longest."""
    there = {name: case for name, case in real.cases().items() if real.folder_of(name).is_dir()}
    tasks = {
        "speed": {"speed": (_speed, None)},
        "whole_way": {name: (whole_way.ours_on, movie) for name, movie in whole_way.movies().items()},
        "real": {name: (real.measured, case) for name, case in there.items()},
        "grid": {name: (grid.ours_in, cell) for name, cell in grid.wanted([]).items()},
        "precision": {name: (precision.precision, cell) for name, cell in precision.scenes().items()},
        "false_spots": {name: (false_spots.realised, cell) for name, cell in false_spots.fdr_scenes().items()}
        | {name: (false_spots.in_nothing, case) for name, case in false_spots.empties().items()},
    }
    judges = {
        "grid": judge_grid, "false_spots": judge_false_spots, "precision": judge_precision,
        "whole_way": judge_whole_way, "real": judge_real, "speed": judge_speed,
    }  # fmt: skip
    return {
        part: Part({name: task for name, task in some.items() if grid.named(name, words)}, judges[part])
        for part, some in tasks.items()
    }


def _speed(_: None) -> Row:
    return speed.speed()


PARTS = tuple(parts([]))


def measured(chosen: dict[str, Part], workers: int, keep: Callable[[str, dict[str, Row]], None]) -> None:
    """Measure parts, and hand the rows of each to `keep` as soon as its last task is done.

    Speed comes first and alone, in this process, which also compiles for all others.
    """
    found: Rows = {part: {} for part in chosen}

    def take(part: str, name: str, row: Row) -> None:
        found[part][name] = row
        if len(found[part]) == len(chosen[part].tasks):
            keep(part, found[part])

    if "speed" in chosen:
        for name, (work, task) in chosen["speed"].tasks.items():
            try:
                row = work(task)
            except Exception as wrong:
                row = {"error": f"{type(wrong).__name__}: {wrong}"}
            sys.stderr.write(f"1/1 speed: {name}: {json.dumps(row)}\n")
            take("speed", name, row)
    tasks = {
        f"{part}: {name}": task
        for part, one in chosen.items()
        if part != "speed"
        for name, task in one.tasks.items()
    }
    for name, row in grid.over(tasks, workers):
        part, _, rest = name.partition(": ")
        take(part, rest, row)


def logged(log: Path) -> tuple[Row, Rows]:
    """Origin and rows of a run, from its log.

    Raises
    ------
    ValueError
        If other sources were judged.
    """
    first, *lines = log.read_text("utf-8").splitlines()
    stated: Row = json.loads(first)
    if stated.pop("sources") != judged_sources():
        raise ValueError(f"{log.name}: the detector has changed since")
    rows: Rows = {}
    for seen in filter(None, map(NUMBER.fullmatch, lines)):
        part, name, row = seen.groups()
        rows.setdefault(part, {})[name] = json.loads(row)
    return stated, rows


def assembled(runs: list[tuple[Row, Rows]], why: str = "") -> Row:
    """The record of what was measured in some runs, of which later ones replace earlier ones.

    Parameters
    ----------
    runs : list of (origin, rows)
    why : str
        What kept the rest from being measured.
    """
    every = parts([])
    found: Rows = {}
    measured_in = {}
    for number, (_, some) in enumerate(runs):
        for part, rows in some.items():
            found[part] = found.get(part, {}) | rows
            measured_in |= {(part, name): number for name in rows}
    stand = [
        Counter(part for (part, _), where in measured_in.items() if where == n) for n in range(len(runs))
    ]
    counting = grid.counting()
    missing = {
        part: [
            name
            for name in one.tasks
            if name not in found.get(part, {}) and (part != "grid" or name in counting)
        ]
        for part, one in every.items()
    }
    record: Row = {
        "runs": [{**stated, "tasks": dict(tasks)} for (stated, _), tasks in zip(runs, stand, strict=True)],
        "sources": judged_sources(),
        "missing": {part: names for part, names in missing.items() if names}, "why_missing": why,
        "failures": {},
    }  # fmt: skip
    for part in every:
        if found.get(part):
            record[part], record["failures"][part] = _judged(every[part], found[part])
    return record


def _judged(part: Part, found: dict[str, Row]) -> tuple[Row, list[str]]:
    """What `Part.judge` says of the tasks that did not fail; those that did, fall short."""
    failed = [f"{name}: {row['error']}" for name, row in found.items() if "error" in row]
    try:
        row, wrong = part.judge({name: row for name, row in found.items() if "error" not in row})
    except ValueError as error:
        return {}, [*failed, str(error)]
    return row, wrong + failed


def _mean(values: list[float]) -> float:
    return round(float(np.mean(values)), 4) if values else 0.0


def report(record: Row) -> str:
    """What was measured and what fails, as Markdown, for those who change the detector."""
    lines = [f"# Detection at {run['commit'][:10]}, {run['date']}" for run in record["runs"]]
    lines += [f"Not measured of {part}: {len(names)}" for part, names in record["missing"].items()]
    if record.get("grid"):
        lines.append(f"Grid: {record['grid']['summary']}")
    for part, wrong in record["failures"].items():
        lines += ["", f"## {part}: {len(wrong)} fail", *(f"- {text}" for text in wrong)]
    if "speed" in record:
        lines += ["", f"Speed: {record['speed']}"]
    if "real" in record:
        lines += ["", "## Recorded", *(f"- {name}: {row}" for name, row in record["real"].items())]
    if record.get("grid"):
        lines += ["", "## All cells: JSC, best peer, ratio"]
        for name, row in record["grid"]["cells"].items():
            lines.append(f"- {name}: {row['jsc']:.3f} {row['peer_jsc']:.3f} {row['ratio']:.2f}")
    for part in ("precision", "false_spots", "whole_way"):
        if part in record:
            lines += ["", f"## {part}", "```", json.dumps(record[part], indent=0), "```"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "parts",
        nargs="*",
        choices=[*PARTS, "all", "peers"],
        default="all",
        help="by default all but the peers",
    )
    parser.add_argument("--words", nargs="*", default=[], help="of the names of what is measured")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--record", type=Path, help="where the record goes")
    parser.add_argument("--report", type=Path, help="where a report of it goes")
    parser.add_argument("--logs", type=Path, nargs="+", help="logs of runs that the record is made of")
    parser.add_argument("--why", default="", help="with --logs: what kept the rest from being measured")
    chosen = parser.parse_args()
    if "peers" in chosen.parts:
        grid.measure_peers(chosen.words, chosen.workers, chosen.record or grid.PEERS)
        return
    every = parts(chosen.words)
    names = PARTS if "all" in chosen.parts else chosen.parts
    path = chosen.record or (RECORD if set(names) == set(PARTS) and not chosen.words else None)

    def write(record: Row) -> None:
        if path:
            path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        if chosen.report:
            chosen.report.write_text(report(record), encoding="utf-8")

    if chosen.logs:
        write(assembled([logged(log) for log in chosen.logs], chosen.why))
        return
    stated = origin.stated()
    found: Rows = {}
    sys.stderr.write(json.dumps({**stated, "sources": judged_sources()}) + "\n")

    def keep(part: str, rows: dict[str, Row]) -> None:
        found[part] = rows
        sys.stderr.write(f"{part}: all measured\n")
        write(assembled([(stated, found)]))

    measured({part: one for part, one in every.items() if part in names and one.tasks}, chosen.workers, keep)
    print(report(assembled([(stated, found)])))


if __name__ == "__main__":
    main()
