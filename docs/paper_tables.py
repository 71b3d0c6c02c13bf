"""Tables of the page on the three papers, made from tests/papers_record.json and the record of the GPU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tables import REPOSITORY, _short, _table

_ORDER = ("gpu", "cpu")
"""Where a table was recorded: with a GPU if there is such a record."""


def _record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REPOSITORY / "tests" / "papers_record.json").read_text("utf-8"))
    return found


def _parts() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and record of every table, once."""
    record, seen = _record(), set()
    for device in _ORDER:
        for name, part in record.get(device, {}).items():
            if name not in seen:
                seen.add(name)
                yield name, part


def _origin(part: dict[str, Any]) -> str:
    card = f"{part['card']}; " if part["card"] else ""
    return f"Commit {_short(part['commit'])}, {part['date']}; {card}{part['machine']}."


def paper_claims() -> str:
    """Every claim that was checked, where it is made, what was measured and whether it holds."""
    rows = [
        (f"`{name}`", claim["claim"], claim["where"], claim["measured"], claim["verdict"])
        for name, part in _parts()
        for claim in part["claims"]
    ]
    origins = dict.fromkeys(_origin(part) for _, part in _parts())
    heads = ("experiment", "claim", "where", "measured here", "verdict")
    return f"{_table(heads, rows)}\n\n" + "\n".join(origins)


def hungarian_times() -> str:
    """Seconds of the Hungarian variants beside the paper's."""
    part = dict(_parts())["date-nagi-table3"]
    rows = [
        (
            f"{row['n']:,}", row["costs"], row["case"],
            f"{row['seconds']:.3f}", _number(row["paper_seconds"]),
            f"{row['initial_assignments']:,.0f}", _number(row["paper_initial"]), f"{row['dual_updates']:g}",
        )
        for row in part["summary"]
    ]  # fmt: skip
    heads = ("n", "costs", "variant", "s", "paper's s", "initial", "paper's", "dual updates")
    return f"{_table(heads, rows)}\n\n{_origin(part)}"


def serial_share() -> str:
    """The largest share of one thread's time in stages that never have more, as words."""
    rows = _record()["cpu"]["date-nagi-table3"]["summary"]
    largest = max(row["n"] for row in rows)
    one = [row for row in rows if row["n"] == largest and row["case"].startswith("OMP-1")]
    shares = {
        kind: max(row["serial_seconds"] / row["seconds"] for row in one if ("CLASS" in row["case"]) == kind)
        for kind in (True, False)
    }
    return f"{shares[True]:.1%} (classical) and {shares[False]:.1%} (tree, whose joins are not counted)"


def shard_times() -> str:
    """Measured and predicted seconds over shards."""
    rows = []
    for name in ("date-nagi-table4", "date-nagi-table5"):
        part = dict(_parts()).get(name)
        if part is None:
            continue
        rows += [
            (
                "weak" if name.endswith("4") else "strong", row["case"],
                f"{row['n']:,}", f"{row['shards']:g}",
                row["kind"], f"{row['seconds']:.3f}", f"{row['efficiency']:.2f}",
                _number(row["paper_efficiency"]), f"{row['messages']:,.0f}", f"{row['bytes_sent'] / 1e6:.2f}",
            )
            for row in part["summary"]
        ]  # fmt: skip
    heads = ("scaling", "variant", "n", "P", "", "s", "efficiency", "paper's", "messages", "MB a shard")
    return _table(heads, rows)


def solver_times() -> str:
    """Seconds of tracking by every solver on a GPU and on the CPU."""
    path = REPOSITORY / "tests" / "gpu_long_record.json"
    record = json.loads(path.read_text("utf-8")).get("solvers")
    if record is None:
        return "Not measured yet: `make gpu-bench` measures it."
    rows = [
        (
            f"`{row['solver']}`",
            f"{row['gpu_s']:g}",
            f"{row['cpu_s']:g}",
            f"{row['links']:,}",
            row["fallbacks"],
        )
        for row in record["rows"]
    ]  # fmt: skip
    first = record["rows"][0]
    size = f"{first['frames']} frames of {first['particles']:,} particles. "
    origin = f"Commit {_short(record['commit'])}, {record['date']}; {record['card']}; {record['provenance']}."
    heads = ("solver", "GPU, s", "CPU, s", "links, the same on both", "fallbacks")
    return f"{_table(heads, rows)}\n\n{size}{origin}"


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.4g}"
