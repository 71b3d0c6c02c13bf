"""The table of results in the README, from the records in tests/; `renew` puts it there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_CROWDED = 0.5
"""Step times gate, in units of the spacing, above which each particle has several candidates."""
REPOSITORY = Path(__file__).resolve().parent.parent


def table() -> str:
    """Link F1 on real movies beside tuned peers, and the time of a frame pair, as Markdown."""
    return "\n".join([*of_peers(), *_on_gpu(_record("gpu_record"))]) + "\n"


def of_peers() -> list[str]:
    """Lines of the table beside peers, with where it was measured."""
    record = _record("peers_record")
    return [] if record is None else [*_accuracy(record), *_speed(record)]


def _record(name: str) -> dict[str, Any] | None:
    file = REPOSITORY / "tests" / f"{name}.json"
    return json.loads(file.read_text("utf-8")) if file.exists() else None


def _accuracy(record: dict[str, Any]) -> list[str]:
    peers = [f"{name} {version}, tuned" for name, version in record["peers"].items()]
    rows: dict[str, dict[str, str]] = {}
    for row in record["accuracy"]:
        kept = f", every {row['every']} frames" if row["every"] > 1 else ""
        rows.setdefault(f"{row['what']}{kept}", {})[row["linker"]] = f"{row['link_f1']:.3f}"
    heads = ["link F1 on real movies", "Outbid, nothing set", *peers]
    return [_line(heads), _line(["---"] * len(heads)), *_lines(rows, record)]


def _speed(record: dict[str, Any]) -> list[str]:
    rows: dict[str, dict[str, str]] = {}
    for row in record["speed"]:
        dense = "crowded" if row["kappa"] * row["gate"] > _CROWDED else "sparse"
        name = f"linking two frames of {row['particles']:,} particles, {dense}: time on one core"
        taken = f"{row['cpu_s']:.3g} s" if "cpu_s" in row else "not in 120 s"
        rows.setdefault(name, {})[row["linker"]] = taken
    origin = (
        "Link F1 is 1 if all links are right. Crowded: the steps along an axis are half as long as particles "
        "are apart (standard deviation); sparse: a fifth. "
        f"Peers use the settings that link a sibling movie best by its truth. `{record['command']}`, commit "
        f"{record['commit'][:10]}, {record['date']}; {record['machine']}."
    )
    return [*_lines(rows, record), "", origin, ""]


def _lines(rows: dict[str, dict[str, str]], record: dict[str, Any]) -> list[str]:
    linkers = ["outbid", *record["peers"]]
    return [_line([name, *(cells.get(one, "") for one in linkers)]) for name, cells in rows.items()]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _on_gpu(record: dict[str, Any] | None) -> list[str]:
    if record is None:
        return []
    row = max(record["frame_pairs"], key=lambda pair: (pair["particles"], pair["candidates"]))
    pair = f"{row['particles']:,} particles with {row['candidates']} candidates each"
    return [
        f"On a GPU ({record['card']}), {pair} are linked to the next frame in {row['gpu_ms']:g} ms, "
        f"optimality gap {row['gap']:g} (`make gpu-test`, commit {record['commit'][:10]}, {record['date']})."
    ]
