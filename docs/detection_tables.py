"""Tables of detection, from the record of `make detection-accuracy`; parts that it lacks are left out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tables

RECORD = Path(__file__).resolve().parent.parent / "tests" / "detection_record.json"
ENOUGH = 0.97
"""Of the best peer's Jaccard index: cells below are marked."""
SCORES = {"alpha": "α", "beta": "β", "jsc": "JSC", "jsc_theta": "JSC_θ"}
_MARK = " *"
Row = dict[str, Any]


def record() -> Row:
    """What was measured last."""
    return json.loads(RECORD.read_text("utf-8"))


def detection_summary() -> str:
    """How many cells reach the best tuned peer, and where the others are, in words."""
    seen = record()
    rows = _cells(seen)
    short = [row for row in rows if row["ratio"] < ENOUGH]
    mean = seen["grid"]["summary"]
    text = (
        f"In {len(rows) - len(short)} of {len(rows)} cells the Jaccard index with nothing set is at least "
        f"{ENOUGH:g} of the best tuned peer's; its mean is {mean['mean']:.3f}, the peers' "
        f"{mean['peers_mean']:.3f}."
    )
    if short:
        text += f" It falls short {_where(short, rows)}."
    return f"{text} {_origin(seen)}"


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
    """Jaccard index with nothing set, and the best peer's after it, by cell."""
    seen = record()
    rows = _cells(seen)
    snrs = sorted({row["snr"] for row in rows}, key=float)
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        where = tuple(row[name] for name in ("renderer", "dimensions", "radius", "spacing"))
        mark = _MARK if row["ratio"] < ENOUGH else ""
        lines.setdefault(where, {})[row["snr"]] = f"{row['jsc']:.2f} / {row['peer_jsc']:.2f}{mark}"
    heads = ("renderer", "", "radius", "spacing", *(f"SNR {snr}" for snr in snrs))
    return _table(heads, ((*where, *(line.get(snr, "") for snr in snrs)) for where, line in lines.items()))


def _cells(seen: Row) -> list[Row]:
    """The cells with what their names say."""
    rows = []
    for name, row in seen["grid"]["cells"].items():
        *renderer, dimensions, radius, snr, spacing = name.split()
        rows.append({
            **row, "renderer": " ".join(renderer), "dimensions": dimensions, "radius": radius[1:],
            "snr": snr[3:], "spacing": spacing[1:],
        })  # fmt: skip
    return rows


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


def _origin(seen: Row) -> str:
    return f"Measured on commit {seen['commit'][:10]}, {seen['date']}; {seen['machine']}."


def _table(heads: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    return tables._table(list(map(str, heads)), [list(row) for row in rows])
