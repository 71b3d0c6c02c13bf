"""One frame pair on the CPU by Outbid, LapTrack and trackpy, for tests/bench/peers.py; as in bench_gpu.py.

Lengths are in units of density^(-1/3); `displacement` is the standard deviation of a step along one axis
(kappa). Each peer links with its own costs at the same gate: LapTrack with squared distances and its default
costs of not linking, trackpy with squared distances and the full gate, and with adaptive search where groups
of particles are too large for it. `recall` and `precision` are those of the links. Compilation is not timed.
`cpu_s` is processor time, which does not depend on other work on the machine. All use one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import measure
from benchmarks.pairs import frame_pair
from outbid import match


def timed(work: Callable[[], Any]) -> tuple[measure.Row, Any]:
    start, cpu_start = time.perf_counter(), time.process_time()
    result = work()
    return {"seconds": time.perf_counter() - start, "cpu_s": time.process_time() - cpu_start}, result


def scored(taken: measure.Row, source: NDArray, target: NDArray, truth: NDArray[np.int64]) -> measure.Row:
    right = int((truth[source] == target).sum())
    return taken | {
        "links": len(source),
        "recall": round(right / int((truth >= 0).sum()), 4),
        "precision": round(right / max(len(source), 1), 4),
    }


def _cpu(run: tuple[measure.Row, Any]) -> float:
    return float(str(run[0]["cpu_s"]))


def outbid(count: int, displacement: float, gate: float) -> measure.Row:
    source, target, truth = frame_pair(count, displacement)
    match(source[:500], target[:500], gate)  # compiles
    taken, found = min((timed(lambda: match(source, target, gate)) for _ in range(3)), key=_cpu)
    return scored(taken, found.source, found.target, truth) | {"gap": found.assignment.gap}


def laptrack(count: int, displacement: float, gate: float) -> measure.Row:
    from laptrack import LapTrack

    source, target, truth = frame_pair(count, displacement)
    linker = LapTrack(cutoff=gate**2, gap_closing_cutoff=False)
    linker.predict([source[:200], target[:200]])
    taken, graph = timed(lambda: linker.predict([source, target]))
    links = np.array([(a[1], b[1]) for a, b in graph.edges()], dtype=np.int64).reshape(-1, 2)
    return scored(taken, *links.T, truth)


def trackpy(count: int, displacement: float, gate: float) -> measure.Row:
    import pandas as pd
    import trackpy as peer

    peer.quiet()
    source, target, truth = frame_pair(count, displacement)
    frame = np.repeat([0, 1], count)
    table = pd.DataFrame(np.concatenate([source, target]), columns=["z", "y", "x"]).assign(frame=frame)
    options = {"pos_columns": ["z", "y", "x"], "adaptive_stop": 0.1 * gate, "adaptive_step": 0.9}
    peer.link(table[np.arange(2 * count) % count < 200], gate, **options)
    taken, linked = timed(lambda: peer.link(table, gate, **options))
    number = linked.sort_index()["particle"].to_numpy()
    _, rows, cols = np.intersect1d(number[:count], number[count:], return_indices=True)
    return scored(taken, rows, cols, truth)


LINKERS = {"outbid": outbid, "laptrack": laptrack, "trackpy": trackpy}
