"""Tables of detection, from the record of `make detection-accuracy`; parts that it lacks are left out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tables

RECORD = Path(__file__).resolve().parent.parent / "tests" / "detection_record.json"
UNEVEN = RECORD.with_name("detection_uneven.json")
ENOUGH = 0.97
"""Of the best peer's Jaccard index: cells below are marked."""
SCORES = {"alpha": "α", "beta": "β", "jsc": "JSC", "jsc_theta": "JSC_θ"}
_MARK = " *"
_ABSENT = "–"
Row = dict[str, Any]


def record() -> Row:
    """What was measured last."""
    return json.loads(RECORD.read_text("utf-8"))


def detection_summary() -> str:
    """How many cells were measured, how many reach the best tuned peer, and where the others are."""
    seen = record()
    rows = _cells(seen)
    short = [row for row in rows if row["ratio"] < ENOUGH]
    groups: dict[str, list[Row]] = {}
    for row in _cells(seen, missing=True):
        groups.setdefault(f"{row['renderer']} {row['dimensions']}", []).append(row)
    lines = []
    for name, every in groups.items():
        some = [row for row in every if "jsc" in row]
        means = [
            f"{sum(row[key] for row in some) / len(some):.3f}" if some else "" for key in ("jsc", "peer_jsc")
        ]
        reached = sum(row["ratio"] >= ENOUGH for row in some)
        lines.append((name, len(every), len(some), reached if some else "", *means))
    heads = ("cells", "count", "measured", "reached", "mean JSC of the measured", "peers' there")
    text = f"Of {sum(map(len, groups.values()))} cells that count, {len(rows)} are measured{_why(seen)}; "
    text += (
        f"means are over these alone. In {len(rows) - len(short)} of them the Jaccard index with nothing set "
        f"is at least {ENOUGH:g} of the best tuned peer's."
    )
    if short:
        text += f" It falls short {_where(short, rows)}."
    return f"{_table(heads, lines)}\n\n{text}"


def _why(seen: Row) -> str:
    return f" ({seen['why_missing']})" if seen.get("why_missing") and seen["missing"].get("grid") else ""


def detection_uneven() -> str:
    """Jaccard index in uneven light beside the oracle's, by what makes it uneven."""
    seen = json.loads(UNEVEN.read_text("utf-8"))
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in seen["rows"]:
        for name in ("all", row["light"]):
            groups.setdefault((name, "" if name == "all" else row["kind"][:2]), []).append(row)
    lines = []
    for (light, axes), rows in sorted(groups.items(), key=lambda group: (group[0][0] != "all", group[0])):
        mine, oracle = ([row[name] for row in rows] for name in ("jsc", "oracle"))
        reach = sum(a >= ENOUGH * b for a, b in zip(mine, oracle, strict=True))
        worst = min(rows, key=lambda row: row["jsc"] - row["oracle"])
        lines.append(
            (light, axes, len(rows), *(f"{sum(x) / len(x):.2f}" for x in (mine, oracle)), reach,
             f"{worst['kind']}: {worst['jsc']:.2f} / {worst['oracle']:.2f}")
        )  # fmt: skip
    stated, true = (sum(row[name] for row in seen["rows"]) for name in ("stated", "stated_true"))
    heads = ("light", "", "images", "Outbid", "oracle", f"reach {ENOUGH:g} of it", "farthest below it")
    return f"""{_table(heads, lines)}

Of {stated} detections stated with a probability of .9 to .99, {true / max(stated, 1):.0%} are true. Commit \
{seen["commit"][:10]}, {seen["date"]}; {seen["machine"]}."""


def detection_runs() -> str:
    """Where and on which commit each part was measured, and what was not."""
    seen = record()
    rows = [
        (
            ", ".join(f"{part} {n}" for part, n in run["tasks"].items()),
            run["commit"][:10],
            run["date"],
            run["machine"],
        )
        for run in seen["runs"]
    ]
    table = _table(("measured, and how many", "commit", "date", "machine"), rows)
    missing = {part: names for part, names in seen["missing"].items() if part != "grid"}
    if not missing:
        return table
    lines = [f"- {part}: {', '.join(names)}" for part, names in missing.items()]
    return f"{table}\n\nNot measured, beside cells of the grid:\n\n" + "\n".join(lines)


def detection_short() -> str:
    """What falls short of what was asked for, but for cells of the grid, which have stars."""
    every = {part: wrong for part, wrong in record()["failures"].items() if part != "grid"}
    lines = [f"- {text}" for wrong in every.values() for text in wrong]
    return "\n".join(lines) or "Nothing."


def _where(short: list[Row], rows: list[Row]) -> str:
    """Counts of cells by renderer and dimensions, and how close spots are there."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(f"{row['renderer']} {row['dimensions']}", []).append(row)
    parts = []
    for name, every in groups.items():
        some = [row for row in every if row in short]
        if some:
            worst = min(some, key=lambda row: row["ratio"])
            parts.append(
                f"in {len(some)} of {len(every)} cells of {name} (worst {worst['ratio']:.2f}: radius "
                f"{worst['radius']}, spacing {worst['spacing']}, SNR {worst['snr']})"
            )
    close = [float(row["spacing"]) / float(row["radius"]) for row in short]
    return f"{'; '.join(parts)}. Half of these have spacings below {sorted(close)[len(close) // 2]:.2g} radii"


def detection_grid() -> str:
    """Jaccard index with nothing set, and the best peer's after it, by cell; a dash: not measured."""
    rows = _cells(record(), missing=True)
    snrs = sorted({row["snr"] for row in rows}, key=float)
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        where = tuple(row[name] for name in ("renderer", "dimensions", "radius", "spacing"))
        line = lines.setdefault(where, {})
        if "jsc" in row:
            mark = _MARK if row["ratio"] < ENOUGH else ""
            line[row["snr"]] = f"{row['jsc']:.2f} / {row['peer_jsc']:.2f}{mark}"
        else:
            line[row["snr"]] = _ABSENT
    heads = ("renderer", "", "radius", "spacing", *(f"SNR {snr}" for snr in snrs))
    return _table(heads, ((*where, *(line.get(snr, "") for snr in snrs)) for where, line in lines.items()))


def _cells(seen: Row, missing: bool = False) -> list[Row]:
    """The cells with what their names say, in order; if asked for, with those that were not measured."""
    rows = []
    absent: dict[str, Row] = {name: {} for name in seen["missing"].get("grid", ())} if missing else {}
    for name, row in (seen.get("grid", {"cells": {}})["cells"] | absent).items():
        *renderer, dimensions, radius, snr, spacing = name.split()
        rows.append({
            **row, "renderer": " ".join(renderer), "dimensions": dimensions, "radius": radius[1:],
            "snr": snr[3:], "spacing": spacing[1:],
        })  # fmt: skip
    return sorted(
        rows,
        key=lambda row: (row["renderer"], row["dimensions"], *map(float, (row["radius"], row["spacing"]))),
    )


def detection_whole_way() -> str:
    """Scores from images to tracks with nothing set, and those of trackpy and laptrack tuned on the truth."""
    rows = [
        (name, *(_beside(row, key) for key in SCORES)) for name, row in record().get("whole_way", {}).items()
    ]
    return _table(("movie", *SCORES.values()), rows)


def _beside(row: Row, key: str) -> str:
    if f"peer_{key}" not in row:
        return f"{row[key]:.2f}"
    return f"{row[key]:.2f} / {row[f'peer_{key}']:.2f}{_MARK if row[key] <= row[f'peer_{key}'] else ''}"


def detection_precision() -> str:
    """Errors over the Cramér-Rao bound, and the share of errors within the stated one."""
    rows = []
    for name, row in record().get("precision", {}).items():
        ratio, covered = (
            [f"{row[f'{what}_{axis}']:.2f}" if f"{what}_{axis}" in row else "" for axis in "zyx"]
            for what in ("ratio", "covered")
        )
        rows.append((name.rpartition(" ")[0], f"{row['found']} of {row['spots']}", *ratio, *covered))
    heads = ("spots", "found", *(f"error {a}" for a in "zyx"), *(f"covered {a}" for a in "zyx"))
    return _table(heads, rows)


def detection_false_spots() -> str:
    """False spots in images without any, and realised shares where one was asked for."""
    seen = record().get("false_spots", {"empty": {}, "fdr": {}})
    empty = _table(
        ("images without spots", "images", "false spots", "most in one"),
        ((name, row["images"], row["false"], row["most"]) for name, row in seen["empty"].items()),
    )
    first: Row = next(iter(seen["fdr"].values()), {})
    shares = [name.removeprefix("found_") for name in first if name.startswith("found_")]
    asked = _table(
        ("separated spots", "spots", *(f"--fdr {share}" for share in shares)),
        (
            (
                name.rpartition(" ")[0],
                row["spots"],
                *(f"{row[f'false_{q}'] / max(row[f'found_{q}'], 1):.3f}" for q in shares),
            )
            for name, row in seen["fdr"].items()
        ),
    )
    return f"{empty}\n\n{asked}"


def detection_recorded() -> str:
    """Recorded stacks; and speed, in a sentence."""
    seen = record()
    rows = [
        (name, f"{row['radius']:.2f}", f"{row['jsc']:.3f}" if "jsc" in row else "", _counts(row))
        for name, row in seen.get("real", {}).items()
    ]
    table = _table(("stack", "radius", "JSC", "spots"), rows)
    fast = seen.get("speed")
    if not fast:
        return table
    text = (
        f"A stack of {fast['voxels'] / 1e6:.1f} million voxels on {fast['workers']} threads: "
        f"{fast['mvoxel_a_second']:g} million voxels a second without spots, "
        f"{fast['spots_a_second']:,} spots a second beyond that, {fast['bytes_a_voxel']:g} bytes a voxel."
    )
    return f"{table}\n\n{text}"


def _counts(row: Row) -> str:
    if "counts" in row:
        return ", ".join(map(str, row["counts"]))
    return f"{row['right']} right, {row['wrong']} wrong, {row['missed']} missed"


def _table(heads: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    return tables._table(list(map(str, heads)), [list(row) for row in rows])
