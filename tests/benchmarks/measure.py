"""How the benchmarks measure: one case, one process; tables; CSV files that say where they come from."""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import multiprocessing
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Row = dict[str, object]


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
    parser.add_argument("--csv", type=Path, help="write the table there, too; further tables beside it")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a case is given up")
    return parser


def beside(csv_path: Path | None, name: str) -> Path | None:
    """Where another table of the same program goes."""
    return csv_path and csv_path.with_stem(f"{csv_path.stem}_{name}")


def show(rows: Iterable[Row], csv_path: Path | None) -> list[Row]:
    """Print the rows as they come; write them to a CSV file in the end, with where they come from."""
    shown: list[Row] = []
    for row in rows:
        if not shown:
            print(provenance())
        print("  ".join(f"{name} {_text(value)}" for name, value in row.items()), flush=True)
        shown.append(row)
    if csv_path is not None:
        columns = list(dict.fromkeys(name for row in shown for name in row))
        with csv_path.open("w", newline="", encoding="utf-8") as file:
            file.write(f"# {provenance()}\n")
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(shown)
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


def today() -> str:
    """The date of a record, UTC."""
    return datetime.now(UTC).date().isoformat()


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
