"""All that detection must show: ``make detection-accuracy`` renews tests/bench/detection_record.json.

The record holds the runs it comes from (commit, date, machine), what was measured, what of it fails, and
what was not measured. In tests/bench/:

    python -m detection_accuracy.run                      everything
    python -m detection_accuracy.run grid --words 2D R3   some parts, what has these words; writes no record
    python -m detection_accuracy.run peers                the peers, where their record has nothing yet

All tasks but `speed` share one pool of processes; a task that fails is a line of what falls short. With
``--log`` each task is a line of a file as soon as it is done, and the same command goes on after it; logs of
several machines can be joined, and of two lines of a task the later one counts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import records
from benchmarks import measure

from . import false_spots, grid, precision, real, speed
from .cells import cells

RECORD = grid.REPOSITORY / "tests" / "bench" / "detection_record.json"
AS_TODAY = {"fly": 0.65, "fly radius 8": 0.65, "faketracks": 0.99}
"""Least Jaccard index of recorded stacks: what the detector before this record reached."""
LEAST = {"mvoxel_a_second": 20.0, "spots_a_second": 10_000.0}
MOST_BYTES = 8.0  # a voxel
Row = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One thing that is measured.

    Parameters
    ----------
    tasks : dict
        What gives a row, by name.
    judge : callable
        Makes of the rows of all tasks what the record holds, and what falls short.
    """

    tasks: dict[str, grid.Task]
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
    empties = {name: found[name] for name in false_spots.EMPTIES if name in found}
    asked_for = {name: found[name] for name in false_spots.SCENES if name in found}
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
    return found, [text for name, row in found.items() for text in precision.failures(name, row)]


def judge_real(found: dict[str, Row]) -> tuple[Row, list[str]]:
    """Recorded stacks, those of them that are there."""
    absent = [name for name in real.CASES if not real.folder_of(name).is_dir()]
    wrong = [f"{name}: not measured, there is no {real.folder_of(name).name}" for name in absent]
    wrong += [
        f"{name}: JSC {found[name]['jsc']:.3f} below {least}"
        for name, least in AS_TODAY.items()
        if name in found and found[name]["jsc"] < least
    ]
    spots = found.get("3 spots")
    if spots and (not spots["all_there"] or set(spots["counts"]) != {3}):
        wrong.append(f"3 spots: {spots}")
    return found, wrong


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
    tasks: dict[str, dict[str, grid.Task]] = {
        "speed": {"speed": speed.speed},
        "real": {name: case for name, case in real.CASES.items() if real.folder_of(name).is_dir()},
        "grid": grid.each(grid.ours_in, grid.wanted([])),
        "precision": grid.each(precision.precision, precision.SCENES),
        "false_spots": grid.each(false_spots.realised, false_spots.SCENES)
        | grid.each(false_spots.in_nothing, false_spots.EMPTIES),
    }
    judges = {
        "grid": judge_grid, "false_spots": judge_false_spots, "precision": judge_precision,
        "real": judge_real, "speed": judge_speed,
    }  # fmt: skip
    return {
        part: Part({name: task for name, task in some.items() if grid.named(name, words)}, judges[part])
        for part, some in tasks.items()
    }


PARTS = tuple(parts([]))


def measured(tasks: dict[str, grid.Task], workers: int) -> Iterator[tuple[str, Row]]:
    """Rows by name as they come; speed first and alone, in this process, which compiles for the others."""
    others = {name: task for name, task in tasks.items() if not name.startswith("speed")}
    for name, task in tasks.items():
        if name not in others:
            try:
                row = task()
            except Exception as wrong:
                row = grid.failed(wrong)
            sys.stderr.write(f"1/1 {name}: {json.dumps(row)}\n")
            yield name, row
    yield from grid.over(others, workers)


def logged(log: Path) -> list[Row]:
    """Lines of a log, each with its origin, part, name and row; none if there is no such file.

    Raises
    ------
    ValueError
        If another detector was measured.
    """
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []
    if lines and records.changed_sources(replace(records.record_named("detection"), path=log.resolve())):
        raise ValueError(f"{log.name}: the detector has changed since")
    return lines


def assembled(lines: list[Row]) -> Row:
    """The record of what was measured; of two lines of a task the later one counts."""
    every, counting = parts([]), grid.counting()
    last = {(line["part"], line["name"]): line for line in lines}
    runs: dict[tuple[str, ...], Counter[str]] = {}
    for (part, _), line in last.items():
        runs.setdefault(tuple(line[key] for key in measure.ORIGIN), Counter()).update([part])
    found: dict[str, dict[str, Row]] = {}
    missing: dict[str, list[str]] = {}
    for part, one in every.items():
        found[part] = {name: last[part, name]["row"] for name in one.tasks if (part, name) in last}
        wanted = counting if part == "grid" else one.tasks
        missing[part] = [name for name in one.tasks if name in wanted and name not in found[part]]
    record: Row = {
        "runs": [dict(zip(measure.ORIGIN, run, strict=True), tasks=tasks) for run, tasks in runs.items()],
        "missing": {part: names for part, names in missing.items() if names}, "failures": {},
    }  # fmt: skip
    for part in filter(found.get, every):
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, "all", "peers"], default="all", help="all: but the peers"
    )
    parser.add_argument("--words", nargs="*", default=[], help="of the names of what is measured")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--record", type=Path, help="where the record goes")
    parser.add_argument("--log", type=Path, help="of the tasks that are done, which are not measured again")
    chosen = parser.parse_args()
    if "peers" in chosen.parts:
        grid.measure_peers(chosen.words, chosen.workers, chosen.record or grid.PEERS)
        return
    names = PARTS if "all" in chosen.parts else chosen.parts
    path = chosen.record or (RECORD if set(names) == set(PARTS) and not chosen.words else None)
    lines, stated = logged(chosen.log) if chosen.log else [], measure.stated()
    done = {(line["part"], line["name"]) for line in lines if "error" not in line["row"]}
    tasks = {
        f"{part}: {name}": task
        for part, one in parts(chosen.words).items()
        for name, task in one.tasks.items()
        if part in names and (part, name) not in done
    }
    for task, row in measured(tasks, chosen.workers):
        part, _, name = task.partition(": ")
        lines.append({**stated, "part": part, "name": name, "row": row})
        if chosen.log:
            with chosen.log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(lines[-1]) + "\n")
    record = assembled(lines)
    if path:
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    shown = {"grid": record.get("grid", {}).get("summary"), "failures": record["failures"]}
    print(json.dumps(shown, indent=1))


if __name__ == "__main__":
    main()
