"""Movies that are watched while they are recorded: what `bench_watch.py` measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tables import origin, record, shown


def _watched(what: str, columns: Mapping[str, str | Callable[[Any], object]]) -> str:
    """Rows of one kind of the record of watched movies."""
    seen = record("watch")
    rows = [row for row in seen["rows"] if row["what"] == what]
    return f"{shown(rows, columns)}\n\nMeasured on {origin(rows[-1] if rows else seen)}."


def watched_cpu() -> str:
    """CPU seconds of a frame by stage."""
    columns = {
        "movie": "{movie}, {spots} spots", "detect": "{detect:.3f}", "link": "{link:.3f}",
        "median": "{median:.3f}", "99 %": "{p99:.3f}",
    }  # fmt: skip
    return _watched("cpu", columns)


def watched_latency() -> str:
    """Seconds from file to tracks in real time."""
    columns = {
        "movie": "{movie}, {spots} spots", "frames a second": "{hz:g}",
        "on": lambda row: f"{row['cores']} cores" + (" and a GPU" if row["device"] == "gpu" else ""),
        "frames": "{frames}", "median": "{median:.2f} s", "99 %": "{p99:.2f} s", "most": "{most:.2f} s",
        "lost": "{lost}", "most waiting": "{most_behind}",
    }  # fmt: skip
    return _watched("latency", columns)


def watched_long() -> str:
    """A recording with faults, and its memory."""
    columns = {
        "frames": "{frames:,}", "not recorded": "{missing}", "counted as missing": "{counted_as_missing}",
        "late": "{late}", "kills": "{kills}",
        "MB by quarter": lambda row: ", ".join(map(str, row["mb_by_quarter"])),
        "most MB": lambda row: ", ".join(map(str, row["most_mb_by_quarter"])),
        "most MB of the last pass": "{most_mb_of_last_pass}", "seconds": "{seconds}",
    }  # fmt: skip
    return _watched("long", columns)
