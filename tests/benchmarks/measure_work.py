"""What tasks of a movie in ranges use, by stages; and what a machine gives to processes side by side.

Used by ``bench_scale.py --why``: seconds of the wall and of processors, page faults and bytes read of every
stage (reading, linking, writing) of every task, on workers of dask.distributed and, as a control, in as many
processes without dask. Simple loops in processes side by side show what the machine gives of each:
arithmetic, memory that is there already, and memory that is new.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

from outbid.ranges import tasks as range_tasks
from outbid.ranges.files import RangeFiles
from outbid.ranges.tasks import Task

Counts = dict[str, float]
STAGES = ("read", "link", "write")
SETTINGS: dict[str, dict[str, str]] = {
    "as it is": {},
    "Arrow in one thread": {"OUTBID_ARROW": "1"},
    "memory is kept": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000"},
    "memory is kept, one arena, Arrow in one thread": {
        "OUTBID_ARROW": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "100000000000",
    },
    "huge pages": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
}
"""Environments of the control."""


def counts() -> Counts:
    """What this process has used so far, with all of its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    found: Counts = {
        "wall": time.perf_counter(),
        "user": used.ru_utime,
        "system": used.ru_stime,
        "faults": used.ru_minflt,
        "disk_faults": used.ru_majflt,
        "waits": used.ru_nvcsw,
        "pushed_aside": used.ru_nivcsw,
    }
    with suppress(OSError, ValueError):
        lines = Path("/proc/self/io").read_text().splitlines()
        found |= {name: float(of) for name, of in (line.split(": ") for line in lines) if name == "rchar"}
    return found


def since(begin: Counts) -> Counts:
    """What was used since."""
    return {name: of - begin.get(name, 0.0) for name, of in counts().items()}


def added(parts: Sequence[Mapping[str, float]]) -> Counts:
    """Sums."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum(part.get(name, 0.0) for part in parts) for name in names}


@contextmanager
def stages_counted() -> Iterator[dict[str, Counts]]:
    """Count the stages of tasks that run within the block."""
    found: dict[str, list[Counts]] = {stage: [] for stage in STAGES}
    result: dict[str, Counts] = {}

    def counted(stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            begin = counts()
            try:
                return work(*given, **named)
            finally:
                found[stage].append(since(begin))

        return run

    with (
        mock.patch.object(RangeFiles, "rows", counted("read", RangeFiles.rows)),
        mock.patch.object(range_tasks, "gated_links", counted("link", range_tasks.gated_links)),
        mock.patch.object(range_tasks, "written", counted("write", range_tasks.written)),
    ):
        yield result
    result |= {stage: added(of) for stage, of in found.items() if of}


@dataclass(frozen=True)
class Counted:
    """A task that also returns what it used."""

    task: Task

    @property
    def output(self) -> Path:
        return self.task.output

    def __call__(self) -> dict[str, Any]:
        begin = counts()
        with stages_counted() as stages:
            account = self.task()
        return {**account, "threads": threads(), "stages": {**stages, "all": since(begin)}}


def threads() -> int:
    """How many threads this process has."""
    return len(list(Path("/proc/self/task").iterdir()))


def table_of(accounts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums over the tasks that link, and those that write, for each stage; threads; linking in its order."""
    each: dict[str, list[float]] = {}
    for account in sorted(accounts, key=lambda of: float(of["begun"])):
        if "link" in account["stages"]:
            each.setdefault(account["process"], []).append(round(account["stages"]["link"]["wall"], 2))
    most = max(int(account["threads"]) for account in accounts)
    found: dict[str, Any] = {"threads": most, "linking, task by task": list(each.values())}
    for kind in ("links", "part"):
        those = [account["stages"] for account in accounts if str(account["file"]).startswith(kind)]
        for stage in ("all", *STAGES):
            parts = [of[stage] for of in those if stage in of]
            if parts:
                found[f"{kind} {stage}"] = {name: round(of, 3) for name, of in added(parts).items()}
    return found


def side_by_side(
    work: Callable[..., Any], shares: Sequence[Any], environment: Mapping[str, str], warm: Callable[[], None]
) -> tuple[float, list[Any]]:
    """Seconds of processes that begin at the same time, after each has warmed up, and what they return."""
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(len(shares) + 1)
    ends = [context.Pipe(duplex=False) for _ in shares]
    with mock.patch.dict(os.environ, environment):
        each = [
            context.Process(target=_one, args=(gate, sender, work, share, warm))
            for (_, sender), share in zip(ends, shares, strict=True)
        ]
        for process in each:
            process.start()
    gate.wait(120)
    begin = time.perf_counter()
    found = [receiver.recv() for receiver, _ in ends]
    seconds = time.perf_counter() - begin
    for process in each:
        process.join()
    return seconds, found


def _one(gate: Any, sender: Any, work: Callable[..., Any], share: Any, warm: Callable[[], None]) -> None:
    if os.environ.get("OUTBID_ARROW"):
        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
    warm()
    gate.wait(120)
    sender.send(work(share))


def all_done(tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """The accounts of tasks that are done one after the other."""
    return [Counted(task)() for task in tasks]


def nothing() -> None:
    """No warming up."""


def loops(_: object) -> dict[str, float]:
    """Seconds of three loops: arithmetic, old memory, new memory; and of the system in the last."""
    found = {}
    small = np.arange(10_000, dtype=float)
    begin = time.perf_counter()
    for _k in range(40_000):
        small.sum()
    found["arithmetic"] = time.perf_counter() - begin
    source, target = np.ones(12_500_000), np.ones(12_500_000)  # 100 MB each
    begin = time.perf_counter()
    for _k in range(12):
        target[:] = source
    found["old_memory"] = time.perf_counter() - begin
    begin, before = time.perf_counter(), counts()
    for _k in range(12):
        np.empty(12_500_000).fill(1.0)
    found["new_memory"] = time.perf_counter() - begin
    return found | {
        f"new_memory_{name}": of for name, of in since(before).items() if name in ("system", "faults")
    }


def machine() -> dict[str, str]:
    """What the system says of pages and of memory."""
    found = {}
    for name in ("enabled", "defrag", "shmem_enabled"):
        with suppress(OSError):
            found[f"huge pages, {name}"] = (
                Path(f"/sys/kernel/mm/transparent_hugepage/{name}").read_text().strip()
            )
    with suppress(OSError):
        found["kernel"] = Path("/proc/version").read_text().strip()[:120]
    with suppress(OSError):
        found["nodes"] = " ".join(
            sorted(each.name for each in Path("/sys/devices/system/node").glob("node[0-9]*"))
        )
    with suppress(OSError):
        quota = Path("/sys/fs/cgroup/cpu.max").read_text().strip()
        found["cpu.max"] = quota
    found["arrow"] = f"{pa.cpu_count()} threads, pool {pa.default_memory_pool().backend_name}"
    return found
