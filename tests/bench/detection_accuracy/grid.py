"""The grid: Jaccard index with nothing set beside that of peers tuned on the truth, cell by cell.

`measure_peers` measures the others once and freezes them in tests/bench/detection_peers.json, for they do not
depend on this project; `measure_ours` measures the detector as it is. Both say which images they saw.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import as_completed
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import records
from benchmarks import measure

from outbid import DetectionSettings, detect

from . import agree, tuned
from .cells import SEEDS, Cell, View, cells, view

REPOSITORY = Path(__file__).resolve().parents[3]
PEERS = REPOSITORY / "tests" / "bench" / "detection_peers.json"
COUNTS = 0.3  # a cell counts where the best peer reaches this
ENOUGH = 0.97  # of the best peer's score, in every cell
Result = dict[str, Any]
Task = Callable[[], Result]


def fingerprint(seen: Iterable[View]) -> str:
    """What says whether two runs saw the same images."""
    digest = hashlib.sha256()
    for one in seen:
        digest.update(one.image.tobytes())
        digest.update(np.round(one.truth, 6).tobytes())
    return digest.hexdigest()[:16]


def peers_in(cell: Cell) -> Result:
    """The best score of each peer, over its settings."""
    seen = [view(cell, seed) for seed in range(SEEDS)]
    return {"images": fingerprint(seen), **tuned.best([tuned.scores(one, cell) for one in seen])}


def ours_in(cell: Cell, seeds: int = SEEDS) -> Result:
    """The mean score with nothing set but the voxel."""
    seen = [view(cell, seed) for seed in range(seeds)]
    found, start = [], time.perf_counter()
    for one in seen:
        spots, used = detect([one.image], DetectionSettings(spacing=cell.voxel), workers=1)
        found.append((spots.position, used.radius))
    seconds = time.perf_counter() - start
    count = [agree.counts(place, one, cell) for (place, _), one in zip(found, seen, strict=True)]
    right, wrong, missed = np.sum(count, axis=0).tolist()
    return {
        "images": fingerprint(seen), "jsc": round(float(np.mean([agree.jaccard(c) for c in count])), 4),
        "right": right, "wrong": wrong, "missed": missed,
        "radius": [None if radius is None else round(radius, 2) for _, radius in found],
        "seconds": round(seconds, 2),
    }  # fmt: skip


def each(work: Callable[[Any], Result], cases: Mapping[str, Any]) -> dict[str, Task]:
    """The same for each case."""
    return {name: partial(work, case) for name, case in cases.items()}


def over(tasks: dict[str, Task], workers: int) -> Iterator[tuple[str, Result]]:
    """Results by name, as they come, worked on by so many processes of one thread each.

    A task that fails gives a row with its ``error`` alone, so that the others are not lost.
    """
    with measure.processes(workers) as pool:
        waiting = {pool.submit(task): name for name, task in tasks.items()}
        for number, done in enumerate(as_completed(waiting), 1):
            wrong = done.exception()
            result = failed(wrong) if wrong else done.result()
            sys.stderr.write(f"{number}/{len(tasks)} {waiting[done]}: {json.dumps(result)}\n")
            sys.stderr.flush()
            yield waiting[done], result


def failed(wrong: BaseException) -> Result:
    """The row of a task that failed."""
    return {"error": f"{type(wrong).__name__}: {wrong}"}


def wanted(words: list[str]) -> dict[str, Cell]:
    """Cells by name, those first that take longest; only those whose name has all the words."""
    chosen = {cell.name: cell for cell in cells() if named(cell.name, words)}
    size = {name: np.prod(cell.shape) for name, cell in chosen.items()}
    return dict(sorted(chosen.items(), key=lambda item: -size[item[0]]))


def named(name: str, words: list[str]) -> bool:
    """Whether a name has all the words."""
    return all(f" {word} " in f" {name} " for word in words)


def frozen() -> dict[str, Any]:
    """The record of the peers."""
    return json.loads(PEERS.read_text("utf-8"))


def best_peer(row: Result) -> tuple[str, float]:
    """The peer that scores best in a cell."""
    name = max(tuned.PEERS, key=lambda peer: row[peer]["jsc"])
    return name, row[name]["jsc"]


def counting() -> set[str]:
    """Cells that count, by name: where the best peer reaches `COUNTS`."""
    return {name for name, row in frozen()["cells"].items() if best_peer(row)[1] >= COUNTS}


def judged(ours: dict[str, Result], peers: dict[str, Result]) -> dict[str, Result]:
    """Rows of both, of the cells that count: ours, the best peer's, and their ratio.

    Raises
    ------
    ValueError
        If they saw other images.
    """
    rows = {}
    for name, row in ours.items():
        if name not in peers:
            continue
        if row["images"] != peers[name]["images"]:
            raise ValueError(
                f"{name}: the peers saw other images. Measure them again: detection_accuracy.run peers"
            )
        who, best = best_peer(peers[name])
        if best >= COUNTS:
            rows[name] = {**row, "peer": who, "peer_jsc": best, "ratio": round(row["jsc"] / best, 3)}
    return rows


def measure_peers(words: list[str], workers: int, output: Path) -> None:
    """Measure the peers where the record has nothing yet, and write it after each cell.

    Where the renderers or the peers have changed since, all is measured again.
    """
    found: dict[str, Result] = {}
    peers = replace(records.record_named("peers of detection"), path=output.resolve())
    if output.exists() and not records.changed_sources(peers):
        known = json.loads(output.read_text("utf-8"))
        found = known["cells"]
    tasks = each(peers_in, {name: cell for name, cell in wanted(words).items() if name not in found})
    for name, row in over(tasks, workers):
        if "error" in row:
            continue
        found[name] = row
        record = {
            **measure.stated(),
            "cells": {cell.name: found[cell.name] for cell in cells() if cell.name in found},
        }
        output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
