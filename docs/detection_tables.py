"""Tables of detection, from the record of `make detection-accuracy`; parts that it lacks are left out."""

from __future__ import annotations

from typing import Any

from tables import grouped, mean, origin, read, record, shown, table

ENOUGH = 0.97
"""Of the best peer's Jaccard index: cells below are marked."""
_MARK = " *"
Row = dict[str, Any]


def detection_summary() -> str:
    """How many cells were measured, how many reach the best tuned peer, and where the others are."""
    seen = record("detection")
    lines = []
    for name, every in grouped(_cells(seen, missing=True), _kind).items():
        some = [row for row in every if "jsc" in row]
        means = [mean(some, key, ".3f") if some else "" for key in ("jsc", "peer_jsc")]
        reached = sum(row["ratio"] >= ENOUGH for row in some) if some else ""
        lines.append((name, len(every), len(some), reached, *means))
    heads = ("cells", "count", "measured", "reached", "mean JSC of the measured", "peers' there")
    rows = _cells(seen)
    short = [row for row in rows if row["ratio"] < ENOUGH]
    text = (
        f"Of {sum(line[1] for line in lines)} cells that count, {len(rows)} are measured; means are "
        f"over these alone. In {len(rows) - len(short)} of them the Jaccard index with nothing set is at "
        f"least {ENOUGH:g} of the best tuned peer's."
    )
    return f"{table(heads, lines)}\n\n{text}" + (f" It falls short {_where(short, rows)}." if short else "")


def _kind(cell: Row) -> str:
    return f"{cell['renderer']} {cell['dimensions']}"


def _where(short: list[Row], rows: list[Row]) -> str:
    """Counts of cells by renderer and dimensions, and how close spots are there."""
    parts, counts = [], {name: len(every) for name, every in grouped(rows, _kind).items()}
    for name, some in grouped(short, _kind).items():
        worst = min(some, key=lambda row: row["ratio"])
        parts.append(
            f"in {len(some)} of {counts[name]} cells of {name} (worst {worst['ratio']:.2f}: radius "
            f"{worst['radius']}, spacing {worst['spacing']}, SNR {worst['snr']})"
        )
    close = sorted(float(row["spacing"]) / float(row["radius"]) for row in short)
    return f"{'; '.join(parts)}. Half of these have spacings below {close[len(close) // 2]:.2g} radii"


def detection_uneven() -> str:
    """Jaccard index in uneven light beside the oracle's, by what makes it uneven."""
    seen, lines = read("detection_uneven.json"), []
    groups = grouped(seen["rows"], lambda row: (row["light"], row["kind"][:2]))
    for (light, axes), rows in [(("all", ""), seen["rows"]), *sorted(groups.items())]:
        means = [mean(rows, name, ".2f") for name in ("jsc", "oracle")]
        reach = sum(row["jsc"] >= ENOUGH * row["oracle"] for row in rows)
        worst = min(rows, key=lambda row: row["jsc"] - row["oracle"])
        farthest = f"{worst['kind']}: {worst['jsc']:.2f} / {worst['oracle']:.2f}"
        lines.append((light, axes, len(rows), *means, reach, farthest))
    stated, true = (sum(row[name] for row in seen["rows"]) for name in ("stated", "stated_true"))
    heads = ("light", "", "images", "Outbid", "oracle", f"reach {ENOUGH:g} of it", "farthest below it")
    return f"""{table(heads, lines)}

Of {stated} detections stated with a probability of .9 to .99, {true / max(stated, 1):.0%} are true. Commit \
{seen["commit"][:10]}, {seen["date"]}; {seen["machine"]}."""


def detection_sensitivity() -> str:
    """By how much the mean Jaccard index changes when a constant is halved, and doubled."""
    seen, lines = read("detection_sensitivity.json"), []
    for name, rows in grouped(seen["rows"], lambda row: row["name"]).items():
        said = (f"{row['gain']:+.3f} ± {row['error']:.3f}" if row["error"] else "0" for row in rows)
        lines.append((f"`{name}`", *said))
    text = f"{seen['images']} images, mean {seen['mean']:.3f}. Measured on {origin(seen)}."
    return f"{table(('constant', 'halved', 'doubled'), lines)}\n\n{text}"


def detection_runs() -> str:
    """Where and on which commit each part was measured, and what was not."""
    seen = record("detection")
    columns = {
        "measured, and how many": lambda run: ", ".join(f"{part} {n}" for part, n in run["tasks"].items()),
        "commit": "{commit:.10}", "date": "{date}", "machine": "{machine}",
    }  # fmt: skip
    missing = {part: names for part, names in seen["missing"].items() if part != "grid"}
    lines = [f"- {part}: {', '.join(names)}" for part, names in missing.items()]
    said = ["Not measured, beside cells of the grid:", "\n".join(lines)] if lines else []
    return "\n\n".join([shown(seen["runs"], columns), *said])


def detection_short() -> str:
    """What falls short of what was asked for, but for cells of the grid, which have stars."""
    every = {part: wrong for part, wrong in record("detection")["failures"].items() if part != "grid"}
    return "\n".join(f"- {text}" for wrong in every.values() for text in wrong) or "Nothing."


def detection_grid() -> str:
    """Jaccard index with nothing set, and the best peer's after it, by cell; a dash: not measured."""
    rows = _cells(record("detection"), missing=True)
    snrs = sorted({row["snr"] for row in rows}, key=float)
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        where = tuple(row[name] for name in ("renderer", "dimensions", "radius", "spacing"))
        mark = _MARK if row.get("ratio", 1) < ENOUGH else ""
        cell = f"{row['jsc']:.2f} / {row['peer_jsc']:.2f}{mark}" if "jsc" in row else "–"
        lines.setdefault(where, {})[row["snr"]] = cell
    heads = ("renderer", "", "radius", "spacing", *(f"SNR {snr}" for snr in snrs))
    return table(heads, ((*where, *(line.get(snr, "") for snr in snrs)) for where, line in lines.items()))


def _cells(seen: Row, missing: bool = False) -> list[Row]:
    """The cells with what their names say, in order; if asked for, with those that were not measured."""
    rows = []
    absent: dict[str, Row] = {name: {} for name in seen["missing"].get("grid", ())} if missing else {}
    for name, row in (seen.get("grid", {"cells": {}})["cells"] | absent).items():
        *renderer, dimensions, radius, snr, spacing = name.split()
        of_name = {"renderer": " ".join(renderer), "dimensions": dimensions, "radius": radius[1:]}
        rows.append({**row, **of_name, "snr": snr[3:], "spacing": spacing[1:]})
    return sorted(
        rows,
        key=lambda row: (row["renderer"], row["dimensions"], *map(float, (row["radius"], row["spacing"]))),
    )


def detection_precision() -> str:
    """Errors over the Cramér-Rao bound, and the share of errors within the stated one."""
    columns: dict[str, Any] = {"spots": _spots, "found": "{found} of {spots}"}
    for head, what in (("error", "ratio"), ("covered", "covered")):
        columns |= {f"{head} {axis}": f"{{{what}_{axis}:.2f}}" for axis in "zyx"}
    return shown(record("detection").get("precision", {}), columns)


def detection_false_spots() -> str:
    """False spots in images without any, and realised shares where one was asked for."""
    seen = record("detection").get("false_spots", {"empty": {}, "fdr": {}})
    empty = {
        "images without spots": "{name}", "images": "{images}", "false spots": "{false}",
        "most in one": "{most}",
    }  # fmt: skip
    asked: dict[str, Any] = {"separated spots": _spots, "spots": "{spots}"}
    for share in (name[6:] for name in next(iter(seen["fdr"].values()), {}) if name.startswith("found_")):
        asked[f"--fdr {share}"] = lambda row, q=share: f"{row[f'false_{q}'] / max(row[f'found_{q}'], 1):.3f}"
    return f"{shown(seen['empty'], empty)}\n\n{shown(seen['fdr'], asked)}"


def _spots(row: Row) -> str:
    """Name of some images without the last word."""
    return row["name"].rpartition(" ")[0]


def detection_recorded() -> str:
    """Recorded stacks; and speed, in a sentence."""
    seen = record("detection")
    columns = {"stack": "{name}", "radius": "{radius:.2f}", "JSC": "{jsc:.3f}", "spots": _counts}
    made = shown(seen.get("real", {}), columns)
    fast = seen.get("speed")
    if not fast:
        return made
    return (
        f"{made}\n\nA stack of {fast['voxels'] / 1e6:.1f} million voxels on {fast['workers']} threads: "
        f"{fast['mvoxel_a_second']:g} million voxels a second without spots, "
        f"{fast['spots_a_second']:,} spots a second beyond that, {fast['bytes_a_voxel']:g} bytes a voxel."
    )


def _counts(row: Row) -> str:
    if "counts" in row:
        return ", ".join(map(str, row["counts"]))
    return f"{row['right']} right, {row['wrong']} wrong, {row['missed']} missed"
