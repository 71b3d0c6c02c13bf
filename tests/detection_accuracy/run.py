"""All that detection must show: ``make detection-accuracy`` renews tests/detection_record.json.

The record holds commit, date, machine, hashes of the sources that are judged, what was measured, and what
of it fails. In tests/:

    python -m detection_accuracy.run                      everything
    python -m detection_accuracy.run grid --words 2D R3   some parts, some cells; writes no record
    python -m detection_accuracy.run peers                the peers, where their record has nothing yet
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import false_spots, grid, origin, precision, real, speed, whole_way

RECORD = grid.REPOSITORY / "tests" / "detection_record.json"
PARTS = ("grid", "precision", "whole_way", "false_spots", "speed", "real")
BASELINE = grid.REPOSITORY / "tests" / "detection_baseline.json"
"""The detector with a constant threshold, in cells of planes; frozen."""
AS_TODAY = {"fly": 0.65, "fly radius 8": 0.65, "faketracks": 0.99}
"""Least Jaccard index of recorded stacks: what the detector before this record reached."""
LEAST = {"mvoxel_a_second": 20.0, "spots_a_second": 10_000.0}
MOST_BYTES = 8.0  # a voxel
Row = dict[str, Any]


def judged_sources() -> dict[str, str]:
    """SHA-256 of every source that is judged, and of the peers' record."""
    paths = sorted((grid.REPOSITORY / "tracker" / "detection").glob("*.py"))
    return {
        path.relative_to(grid.REPOSITORY).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (*paths, grid.PEERS)
    }


def run_grid(workers: int, words: list[str]) -> tuple[Row, list[str]]:
    """Rows of cells that count, their summary, and what falls short."""
    rows = grid.judged(grid.measure_ours(words, workers), grid.frozen()["cells"])
    kept = {
        name: {key: row[key] for key in ("jsc", "right", "wrong", "missed", "peer", "peer_jsc", "ratio")}
        for name, row in rows.items()
    }
    mine, theirs = ([row[key] for row in rows.values()] for key in ("jsc", "peer_jsc"))
    summary = {
        "cells": len(rows), "mean": _mean(mine), "peers_mean": _mean(theirs),
        "reached": sum(row["ratio"] >= grid.ENOUGH for row in rows.values()),
    }  # fmt: skip
    before = json.loads(BASELINE.read_text("utf-8"))["cells"]
    same = [name for name in rows if name in before]
    summary |= {
        "cells_with_baseline": len(same), "baseline_mean": _mean([before[name] for name in same]),
        "mean_of_these": _mean([rows[name]["jsc"] for name in same]),
    }  # fmt: skip
    wrong = [
        f"{name}: JSC {row['jsc']:.3f}, {row['ratio']:.2f} of {row['peer']}'s {row['peer_jsc']:.3f} "
        f"(right {row['right']}, wrong {row['wrong']}, missed {row['missed']})"
        for name, row in rows.items()
        if row["ratio"] < grid.ENOUGH
    ]
    if rows and summary["mean"] <= summary["peers_mean"]:
        wrong.append(f"mean: {summary['mean']} is not above {summary['peers_mean']}")
    return {"summary": summary, "cells": kept}, wrong


def run_false_spots(workers: int, _: list[str]) -> tuple[Row, list[str]]:
    """Realised shares of false spots, and false spots in images without any."""
    wrong = []
    empties = dict(grid.over(false_spots.in_nothing, false_spots.empties(), workers))
    for name, row in empties.items():
        if row["false"] > false_spots.MOST * row["images"]:
            wrong.append(f"{name}: {row['false']} false spots in {row['images']} images without spots")
    found: Row = {}
    if false_spots.offers_fdr():
        found = dict(grid.over(false_spots.realised, false_spots.fdr_scenes(), workers))
    else:
        wrong.append("--fdr: there is no such setting")
    for name, row in found.items():
        for asked, share in false_spots.shares(row).items():
            if not asked / false_spots.FACTOR <= share <= asked * false_spots.FACTOR:
                wrong.append(
                    f"{name}: {share:.1%} false where {asked:.0%} was asked for "
                    f"({row[f'false_{asked:g}']} of {row[f'found_{asked:g}']}; {row['spots']} spots)"
                )
    return {"empty": dict(sorted(empties.items())), "fdr": dict(sorted(found.items()))}, wrong


def run_precision(workers: int, _: list[str]) -> tuple[Row, list[str]]:
    """Errors over the Cramér-Rao bound, and coverage of stated errors."""
    found = dict(grid.over(precision.precision, precision.scenes(), workers))
    rows = {name: found[name] for name in precision.scenes()}
    return rows, [text for name, row in rows.items() for text in precision.failures(name, row)]


def run_whole_way(workers: int, _: list[str]) -> tuple[Row, list[str]]:
    """Scores of the challenge beside the frozen ones of the peers."""
    found = dict(grid.over(whole_way.ours_on, whole_way.movies(), workers))
    peers = grid.frozen().get("whole_way", {})
    rows: Row = {}
    wrong: list[str] = []
    for name in whole_way.movies():
        theirs = peers.get(name, {})
        beside = {key: theirs[key] for key in whole_way.SCORES if key in theirs}
        rows[name] = found[name] | {f"peer_{key}": value for key, value in beside.items()}
        wrong += [
            f"{name}: {key} {found[name][key]:.3f}, peers {value:.3f}"
            for key, value in beside.items()
            if found[name][key] <= value
        ]
    return rows, wrong


def run_real(workers: int, _: list[str]) -> tuple[Row, list[str]]:
    """Recorded stacks, those of them that are there."""
    there = {name: case for name, case in real.cases().items() if real.folder_of(name).is_dir()}
    wrong = [f"{name}: not measured, there is no {real.folder_of(name).name}" for name in real.cases()]
    wrong = [text for text in wrong if text.partition(":")[0] not in there]
    found = dict(grid.over(real.measured, there, workers))
    rows = {name: found[name] for name in there}
    wrong += [
        f"{name}: JSC {rows[name]['jsc']:.3f} below {least}"
        for name, least in AS_TODAY.items()
        if name in rows and rows[name]["jsc"] < least
    ]
    spots = rows.get("3 spots")
    if spots and (not spots["all_there"] or set(spots["counts"]) != {3}):
        wrong.append(f"3 spots: {spots}")
    return rows, wrong


def run_speed(_: int, __: list[str]) -> tuple[Row, list[str]]:
    """Speed and memory, in this process."""
    row = speed.speed()
    wrong = [
        f"speed: {name} {row[name]} below {least:g}" for name, least in LEAST.items() if row[name] < least
    ]
    if row["bytes_a_voxel"] > MOST_BYTES:
        wrong.append(f"speed: {row['bytes_a_voxel']} bytes a voxel above {MOST_BYTES:g}")
    return row, wrong


RUNS: dict[str, Callable[[int, list[str]], tuple[Row, list[str]]]] = {
    "grid": run_grid, "false_spots": run_false_spots, "precision": run_precision,
    "whole_way": run_whole_way, "real": run_real, "speed": run_speed,
}  # fmt: skip


def _mean(values: list[float]) -> float:
    return round(float(np.mean(values)), 4) if values else 0.0


def report(record: Row) -> str:
    """What was measured and what fails, as Markdown, for those who change the detector."""
    lines = [f"# Detection at {record['commit'][:10]}, {record['date']}"]
    if "grid" in record:
        lines.append(f"Grid: {record['grid']['summary']}")
    for part, wrong in record["failures"].items():
        lines += ["", f"## {part}: {len(wrong)} fail", *(f"- {text}" for text in wrong)]
    if "speed" in record:
        lines += ["", f"Speed: {record['speed']}"]
    if "real" in record:
        lines += ["", "## Recorded", *(f"- {name}: {row}" for name, row in record["real"].items())]
    if "grid" in record:
        lines += ["", "## All cells: JSC, best peer, ratio"]
        for name, row in record["grid"]["cells"].items():
            lines.append(f"- {name}: {row['jsc']:.3f} {row['peer_jsc']:.3f} {row['ratio']:.2f}")
    for part in ("precision", "false_spots", "whole_way"):
        if part in record:
            lines += ["", f"## {part}", "```", json.dumps(record[part], indent=0), "```"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "peers"], help="by default all but the peers")
    parser.add_argument("--words", nargs="*", default=[], help="of the names of cells of the grid")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--record", type=Path, help="where the record goes")
    parser.add_argument("--report", type=Path, help="where a report of it goes")
    chosen = parser.parse_args()
    if "peers" in chosen.parts:
        grid.measure_peers(chosen.words, chosen.workers, chosen.record or grid.PEERS)
        return
    parts = tuple(chosen.parts) or PARTS
    path = chosen.record or (RECORD if parts == PARTS and not chosen.words else None)
    record: Row = {**origin.stated(), "sources": judged_sources(), "failures": {}}
    for part in parts:
        record[part], record["failures"][part] = RUNS[part](chosen.workers, chosen.words)
        if path:
            path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        if chosen.report:
            chosen.report.write_text(report(record), encoding="utf-8")
    print(report(record))


if __name__ == "__main__":
    main()
