"""How the benchmarks measure: one case, one process; tables and records that say where they come from."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

Row = dict[str, object]
ORIGIN = ("commit", "date", "machine")


def in_process(case: Callable[..., Row], *given: object, limit: float) -> Row:
    """The result of `case`, run in a process of its own, with `peak_gb` unless the result has it.

    The process is ended `limit` seconds after its start, because some peers never finish; then `seconds` is
    the text ``> limit``. After a failure `seconds` is the text of the error.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_report, args=(sender, case, given))
    process.start()
    sender.close()
    try:
        if not receiver.poll(limit):
            return {"seconds": f"> {limit:g}"}
        return receiver.recv()
    except EOFError:
        process.join()
        return {"seconds": f"died ({process.exitcode})"}
    finally:
        process.kill()
        process.join()


@contextmanager
def processes(
    count: int, start: Callable[..., None] | None = None, *given: str
) -> Iterator[ProcessPoolExecutor]:
    """So many processes of one thread each, each of which begins with `start`."""
    one = {f"{library}_NUM_THREADS": "1" for library in ("NUMBA", "OMP", "OPENBLAS", "MKL")}
    context = multiprocessing.get_context("spawn")
    with patch.dict(os.environ, one), ProcessPoolExecutor(count, context, start, given) as pool:
        yield pool


def _report(sender: Any, case: Callable[..., Row], given: tuple[object, ...]) -> None:
    try:
        row = case(*given)
    except Exception as error:  # a peer may fail in any way: the table says how
        row = {"seconds": f"{type(error).__name__}: {error}"[:60]}
    sender.send({"peak_gb": peak_gb()} | row)


def peak_gb() -> float:
    """Peak memory of this process so far, in units of 2^30 bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / 2 ** (30 if sys.platform == "darwin" else 20), 2)


def best_of(repeats: int, work: Callable[[], object]) -> tuple[float, Any]:
    """Seconds of the fastest of several runs, and the result of the last one."""
    seconds = []
    for _ in range(repeats):
        result = None  # or the last result would count as memory of this run
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def options(description: str | None) -> argparse.ArgumentParser:
    """Options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a case is given up")
    return parser


def show(rows: Iterable[Row]) -> list[Row]:
    """Print the rows as they come, after the versions and the machine."""
    shown: list[Row] = []
    for row in rows:
        if not shown:
            print(provenance())
        print("  ".join(f"{name} {_text(value)}" for name, value in row.items()), flush=True)
        shown.append(row)
    return shown


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def commit() -> str:
    """The commit that is measured, "+" behind it if files differ from it.

    The environment variable OUTBID_COMMIT names it where the files are a copy without their history.
    """
    if named := os.environ.get("OUTBID_COMMIT"):
        return named
    here = Path(__file__).parent
    head, changed = (
        subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=False)
        for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "-uno"])
    )
    return "unknown" if head.returncode else head.stdout.strip() + ("+" if changed.stdout else "")


def stated() -> dict[str, str]:
    """Where a record comes from: the values of `ORIGIN`, with the date in UTC."""
    return dict(zip(ORIGIN, (commit(), datetime.now(UTC).date().isoformat(), provenance()), strict=True))


def write_rows(path: Path, stated: Mapping[str, object], rows: Iterable[Mapping[str, object]]) -> None:
    """Write a record in JSON, each of its rows a line."""
    lines = ",\n".join(map(json.dumps, rows))
    path.write_text(f'{json.dumps(stated)[:-1]},\n"rows": [\n{lines}\n]}}\n', encoding="utf-8")


def provenance() -> str:
    """Versions and machine, in a line."""
    names = ["outbid", "numpy", "scipy", "numba", "trackpy", "laptrack", "lapx"]
    versions = [f"{name} {version}" for name in names if (version := _version(name))]
    versions.append(f"Python {platform.python_version()}")
    return f"{', '.join(versions)}; {_processor()}, {os.cpu_count()} cores"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
