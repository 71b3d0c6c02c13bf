"""Tables of one matrix divided over several GPUs, from the record of `make gpu-scaling`.

``python docs/shard_tables.py`` draws images/shards.png from the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paper_tables import _card, _parts, _verdict
from tables import REPOSITORY, _table

from outbid.assignment.shards.tree import RECORDS
from outbid.simulate.paper import values_of

PICTURE = Path(__file__).resolve().parent / "images" / "shards.png"
VARIANTS = ("classical", "tree")
COLOURS = {"classical": "#0969da", "tree": "#bc4c00"}
PAPERS = {"weak": "date-nagi-table4", "strong": "date-nagi-table5"}
_OF_PAPER = 20_000
"""The n of the paper's strong scaling that is drawn."""
_DRAWN = {10_000: "x", 20_000: "o", 60_000: "s"}
"""Marks of strong scaling, by n."""
STAGES = (
    "reading", "initial_reduction", "compress", "forward_pass", "search", "augmentation_pass", "dual_update",
)  # fmt: skip
_FIXED = 16 + 16
"""Bytes of the message that says that blocks were read, and of that about the types of duals."""
Row = dict[str, Any]


def _record() -> Row:
    path = REPOSITORY / "tests" / "gpu_long_record.json"
    found: Row = json.loads(path.read_text("utf-8"))["shards"]
    return found


def _predicted() -> Iterator[Row]:
    """Rows of more than one GPU that the message model gives, if they were made beside a GPU."""
    parts = dict(_parts())
    for table, name in PAPERS.items():
        for row in parts[name]["summary"] if parts[name]["card"] else ():
            if row["kind"] == "predicted":
                yield row | {"table": table, "variant": row["case"], "gpus": int(row["shards"])}


def _key(row: Row) -> tuple[str, str, int, int]:
    return row["table"], row["variant"], row["n"], row["gpus"]


def shard_times() -> str:
    """Seconds and efficiency: measured, by the message model, and the paper's."""
    measured = {(*_key(row), row["ranks"]): row for row in _record()["rows"] if row["measured"]}
    predicted = {_key(row): row for row in _predicted()}
    rows = [_line(row, predicted.get(_key(row))) for row in measured.values()]
    there = {key[:4] for key in measured}
    rows += [_line(None, row) for key, row in predicted.items() if key not in there]
    heads = (
        "scaling", "solver", "n", "GPUs", "joined as", "measured, s", "efficiency", "predicted",
        "the paper's", "messages", "MB a shard",
    )  # fmt: skip
    return f"{_table(heads, rows)}\n\n{_card(_record())}"


def _line(row: Row | None, model: Row | None) -> tuple[str, ...]:
    some = row or model
    assert some is not None
    paper = some.get("paper_efficiency")
    return (
        some["table"], some["variant"], f"{some['n']:,}", f"{some['gpus']}",
        _joined(some) if some["gpus"] > 1 else "", "" if row is None else f"{row['seconds']:.3g}",
        _share(row), _share(model), f"{paper:.2f}" if isinstance(paper, float | int) else "",
        f"{some['messages']:,.0f}", f"{some['bytes_sent'] / 1e6:.1f}",
    )  # fmt: skip  # fmt: skip


def _joined(row: Row) -> str:
    """How the GPUs are joined, and whether the processors had other work."""
    return row.get("ranks", "") + (" ¹" if row.get("is_beside_other_work") else "")


def _share(row: Row | None) -> str:
    share = None if row is None else row["efficiency"]
    return "" if share is None else f"{share:.2f}"


def shard_stages() -> str:
    """Seconds of the stages at the largest n that one GPU holds, too."""
    rows = [row for row in _record()["rows"] if row["measured"] and row["variant"] in VARIANTS]
    both = [row for row in rows if row["table"] == "strong" and row["efficiency"] is not None]
    largest = max(row["n"] for row in both if row["gpus"] > 1)
    lines = [
        (row["variant"], f"{row['gpus']}", f"{row['passes']:,}", *(_seconds(row[name]) for name in STAGES))
        for row in both
        if row["n"] == largest
    ]
    heads = ("variant", "GPUs", "passes", *(name.replace("_", " ") for name in STAGES))
    return f"{_table(heads, lines)}\n\nSeconds, n = {largest:,}."


def _seconds(value: float) -> str:
    return f"{value:.3g}" if value else ""


def message_times() -> str:
    """Microseconds from one message to the next, with nothing else to do."""
    lines = [
        (
            row["call"], f"{row['bytes']:,}", "the GPU" if row["on_gpu"] else "the host", _joined(row),
            f"{row['us']:.0f} µs",
        )
        for row in _record()["messages"]
    ]  # fmt: skip
    return _table(("call", "bytes of a shard", "arrays on", "joined as", "time"), lines)


def formula(row: Row) -> tuple[int, int, int]:
    """Messages of a shard, their bytes, and the bytes of one entry of the lists, which come on top.

    A pass and a dual update of trees are a message of `RECORDS` records; those that have more send another
    one. Classical compression sends the number of pairs of every row, and the pairs.
    """
    lines, updates = -(-row["n"] // row["gpus"]), row["dual_updates"]
    if row["variant"] == "tree":
        turns = row["passes"] + updates
        return 4 + turns, _FIXED + 4 * (row["n"] + lines) + 8 * (2 + 3 * RECORDS) * turns, 24
    compressed = updates + 1
    fixed = _FIXED + 4 * (row["n"] + lines) + 4 * (lines * compressed + updates)
    return 4 + 2 * compressed + updates, fixed, 4


def shard_messages() -> str:
    """Messages and bytes by the formula, and those that were counted."""
    lines = []
    for row in _record()["rows"]:
        is_twice = row["table"] == "weak" or "is_beside_other_work" in row
        if row["gpus"] == 1 or is_twice or row["variant"] not in VARIANTS:
            continue
        messages, fixed, entry = formula(row)
        entries = (row["bytes_sent"] - fixed) // entry
        more = row["messages"] - messages
        lists = f"{entries:,} records in {more:,} messages" if more else f"{entries:,} pairs"
        sent = f"{fixed / 1e6:.2f}", f"{row['bytes_sent'] / 1e6:.2f}"
        size = f"{row['n']:,}", f"{row['gpus']}"
        lines.append((row["variant"], *size, f"{messages:,}", f"{row['messages']:,}", *sent, lists))
    heads = (
        "variant", "n", "GPUs", "messages, formula", "counted", "MB, formula without lists", "sent",
        "lists on top",
    )  # fmt: skip
    return _table(heads, lines)


def shard_claims() -> str:
    """The claims of section 6.3, judged by what several GPUs measured."""
    rows = [row for row in _record()["rows"] if row["gpus"] > 1 and row["efficiency"] is not None]
    found: dict[tuple[str, int, int], Row] = {}
    for row in rows:
        if not row.get("is_beside_other_work"):
            found.setdefault(_key(row)[:1] + _key(row)[2:], {})[row["variant"]] = row["efficiency"]
    lines = []
    for (table, n, gpus), shares in found.items():
        if not {*VARIANTS} <= {*shares}:
            continue
        where = f"section 6.3, Table {4 if table == 'weak' else 5}"
        both = ", ".join(f"{name} {shares[name]:.2f}" for name in VARIANTS)
        text = f"{table} scaling, n = {n:,} on {gpus} GPUs: {both}"
        claims = {
            "efficiency deteriorates with more GPUs": max(shares[name] for name in VARIANTS) < 1,
            "the classical variant scales better": shares["classical"] > shares["tree"],
        }
        lines += [(where, claim, text, _verdict(holds)) for claim, holds in claims.items()]
    return _table(("where", "claim", "measured here", "verdict"), lines)


def shard_movie() -> str:
    """Frame pairs of a movie over one GPU and over several, as words."""
    rows = _record()["movie"]
    alone, most = rows[0], rows[-1]
    same = "the same links" if most["same"] else "other links"
    return (
        f"{alone['frames']} frames of {alone['particles']:,} particles are linked in {alone['seconds']:g} s "
        f"by one GPU and in {most['seconds']:g} s by {most['gpus']}, with {same}"
    )


def draw() -> None:
    """Efficiency over the number of GPUs: measured, predicted, and the paper's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    for axes, table in zip(figure.subplots(1, 2, sharey=True), ("weak", "strong"), strict=True):
        for variant in VARIANTS:
            for (name, style), points in _curves(table, variant).items():
                label = f"{variant}, {name}"
                axes.plot(*zip(*points, strict=True), style, color=COLOURS[variant], label=label)
        axes.set(xscale="log", xlabel="GPUs", ylim=(0, 1.05), title=f"{table} scaling")
        axes.set_xticks([1, 2, 4, 8, 16], labels=["1", "2", "4", "8", "16"], minor=False)
        axes.minorticks_off()
        axes.legend(fontsize="x-small")
    figure.axes[0].set_ylabel("efficiency")
    figure.savefig(PICTURE, dpi=110)


def _curves(table: str, variant: str) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """Points of each curve, by its label and its style."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    rows = [row for row in _record()["rows"] if row["efficiency"] is not None]
    rows = [row for row in rows if not row.get("is_beside_other_work")]
    for name, line, some in (("measured", "-", rows), ("predicted", "--", list(_predicted()))):
        for row in some:
            mark = "o" if table == "weak" else _DRAWN.get(row["n"])
            if mark and (row["table"], row["variant"]) == (table, variant):
                of = f", n = {row['n']:,}" if table == "strong" else ""
                found.setdefault((name + of, mark + line), []).append((row["gpus"], row["efficiency"]))
    known = [row for row in values_of(PAPERS[table]) if table == "weak" or row["n"] == _OF_PAPER]
    first = known[0][variant]
    shares = [(row["shards"], first / row[variant]) for row in known]
    over = [(gpus, share / (1 if table == "weak" else gpus)) for gpus, share in shares]
    return {name: sorted({(1, 1.0), *points}) for name, points in found.items()} | {("the paper", ":"): over}


if __name__ == "__main__":
    draw()
