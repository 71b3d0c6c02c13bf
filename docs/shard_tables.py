"""Tables of one matrix divided over several GPUs, from the record of `make gpu-scaling`."""

from __future__ import annotations

from typing import Any

from paper_tables import card
from tables import Row, record, shown, table, verdict

VARIANTS = ("classical", "tree")


def _record() -> dict[str, Any]:
    return record("gpu_long")["shards"]


def _key(row: Row) -> tuple[str, str, int, int]:
    return row["table"], row["variant"], row["n"], row["gpus"]


def shard_times() -> str:
    """Seconds and efficiency, and the paper's."""
    rows = {(*_key(row), row["ranks"]): row for row in _record()["rows"] if row["measured"]}.values()
    columns = {
        "scaling": "{table}", "solver": "{variant}", "n": "{n:,}", "GPUs": "{gpus}",
        "joined as": lambda row: _joined(row) if row["gpus"] > 1 else "",
        "measured, s": "{seconds:.3g}",
        "efficiency": lambda row: _share(row["efficiency"]),
        "the paper's": lambda row: _share(row.get("paper_efficiency")),
        "messages": "{messages:,.0f}", "MB a shard": lambda row: f"{row['bytes_sent'] / 1e6:.1f}",
    }  # fmt: skip
    return f"{shown(rows, columns)}\n\n{card(_record())}"


def _joined(row: Row) -> str:
    """How the GPUs are joined, and whether the processors had other work."""
    return row.get("ranks", "") + (" ¹" if row.get("is_beside_other_work") else "")


def _share(share: Any) -> str:
    return f"{share:.2f}" if isinstance(share, float | int) else ""


def shard_claims() -> str:
    """The claims of section 6.3, judged by what several GPUs measured."""
    found: dict[tuple[str, int, int], dict[str, float]] = {}
    for row in _record()["rows"]:
        if row["gpus"] > 1 and row["efficiency"] is not None and not row.get("is_beside_other_work"):
            found.setdefault((row["table"], row["n"], row["gpus"]), {})[row["variant"]] = row["efficiency"]
    lines = []
    for (scaling, n, gpus), shares in found.items():
        if {*VARIANTS} <= {*shares}:
            where = f"section 6.3, Table {4 if scaling == 'weak' else 5}"
            both = ", ".join(f"{name} {shares[name]:.2f}" for name in VARIANTS)
            text = f"{scaling} scaling, n = {n:,} on {gpus} GPUs: {both}"
            falls, better = max(map(shares.get, VARIANTS)) < 1, shares["classical"] > shares["tree"]
            lines.append((where, "efficiency deteriorates with more GPUs", text, verdict(falls)))
            lines.append((where, "the classical variant scales better", text, verdict(better)))
    return table(("where", "claim", "measured here", "verdict"), lines)


def shard_movie() -> str:
    """Frame pairs of a movie over one GPU and over several, as words."""
    rows = _record()["movie"]
    alone, most = rows[0], rows[-1]
    same = "the same links" if most["same"] else "other links"
    return (
        f"{alone['frames']} frames of {alone['particles']:,} particles are linked in {alone['seconds']:g} s "
        f"by one GPU and in {most['seconds']:g} s by {most['gpus']}, with {same}"
    )
