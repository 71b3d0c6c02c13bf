"""Tables of the pages that are made from the code or from a record, so that they cannot differ from it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from outbid.tracker.formats.columns import ALIASES

REPOSITORY = Path(__file__).resolve().parent.parent


def aliases() -> str:
    """Names of columns that are understood."""
    return _table(
        ("column", "names"),
        ((f"`{role}`", ", ".join(f"`{n}`" for n in names)) for role, names in ALIASES.items()),
    )


def gpu_record() -> str:
    """What the benchmark of the GPU measured last."""
    record = json.loads((REPOSITORY / "tests" / "gpu_record.json").read_text("utf-8"))
    rows = (
        (
            f"{row['particles']:,}",
            *(row[name] for name in ("displacement", "gate", "candidates")),
            *(f"{row[name]:g} ms" if name in row else "" for name in ("gpu_ms", "cpu_ms")),
            row["gap"],
        )
        for row in record["frame_pairs"]
    )
    heads = ("particles", "displacement", "gate", "candidates each", "GPU", "CPU", "gap")
    return f"{_table(heads, rows)}\n\n{record['device']}; {record['provenance']}."


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
