"""Tables of the three papers and of shards of GPUs, from their records and those of the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tables import Row, origin, record, shown, table

from outbid.simulate.experiments.papers import PAPERS
from outbid.simulate.paper import Claim, values_of

_LARGEST = 20_000
"""The n at which variants on a GPU are compared with the paper's."""
VARIANTS = ("classical", "tree")
CLAIM = {"claim": "{claim}", "where": "{where}", "measured here": "{measured}", "verdict": "{verdict}"}
"""Columns of claims that were judged."""


def parts() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and record of every table, once: with a GPU if there is such a record."""
    seen = record("papers")
    on_gpu = seen.get("gpu", {})
    yield from (on_gpu | {name: part for name, part in seen["cpu"].items() if name not in on_gpu}).items()


def card(seen: Row) -> str:
    """Where a record comes from, as a sentence."""
    said = origin(seen)
    return f"{said[0].upper()}{said[1:]}."


def paper_claims() -> str:
    """Every claim that was checked, where it is made, what was measured and whether it holds."""
    rows = [
        claim | {"name": name}
        for name, part in parts()
        for claim in part["claims"]
        if not claim["measured"].startswith("predicted")  # of earlier versions; shard_claims has the measured
    ]
    origins = dict.fromkeys(card(part) for _, part in parts())
    return f"{shown(rows, {'experiment': '`{name}`'} | CLAIM)}\n\n" + "\n".join(origins)


def paper_sizes() -> str:
    """The sizes that were recorded, beside the paper's."""
    rows = []
    for name, part in parts():
        of_paper = PAPERS[name].gpu
        sizes = sorted({row["n"] for row in part["summary"]})
        # That of Table 4 grows with the number of shards.
        largest = max(row["n"] for row in values_of(name)) if "table4" in name else max(of_paper.sizes)
        instances = sorted({int(row["instances"]) for row in part["summary"]})
        rows.append((
            f"`{name}`", "GPU" if part["card"] else "CPU",
            " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1]))), f"{largest:,}",
            "yes" if sizes[-1] >= largest else "no",
            f"{' to '.join(map(str, instances))} of {of_paper.seeds}",
        ))  # fmt: skip
    return table(("experiment", "on", "n here", "n goes to", "reached", "instances"), rows)


def hungarian_times() -> str:
    """Seconds of the Hungarian variants on a GPU at n = 20,000, beside the paper's."""
    part = dict(parts())["date-nagi-table3"]
    columns = {
        "costs": "{costs}", "variant": "{case}", "time": lambda row: f"{1e3 * row['seconds']:.1f} ms",
        "paper's": lambda row: _of_paper(row["paper_seconds"], "{:g} s"),
        "initial": "{initial_assignments:,.0f}",
        "paper's initial": lambda row: _of_paper(row["paper_initial"], "{:,.6g}"),
        "iterations": "{iterations:g}", "dual updates": "{dual_updates:g}",
    }  # fmt: skip
    rows = [row for row in part["summary"] if row["n"] == _LARGEST]
    return f"{shown(rows, columns)}\n\nn = {_LARGEST:,}. {card(part)}"


def _of_paper(value: float | str, form: str) -> str:
    return "not legible" if isinstance(value, str) else form.format(value)


def not_on_a_gpu() -> str:
    """Tables that were recorded on a CPU alone, as words."""
    seen = record("papers")
    return ", ".join(f"`{name}`" for name in seen["cpu"] if name not in seen.get("gpu", {}))


def thread_times() -> str:
    """Seconds of Table 1 by threads, and on a GPU, beside the paper's."""
    part = dict(parts())["date-nagi-table1"]
    found = {(row["n"], row["case"]): row for row in part["summary"]}
    cases = list(dict.fromkeys(case for _, case in found))
    rows = [
        (f"{size:,}", *(_both(found.get((size, case), {})) for case in cases))
        for size in sorted({size for size, _ in found})
    ]
    return f"{table(('n', *cases), rows)}\n\nSeconds, in parentheses the paper's. {card(part)}"


def _both(row: Row) -> str:
    paper = row.get("paper_seconds", "")
    return (f"{row['seconds']:.3f}" if row else "") + (f" ({paper:g})" if paper not in ("", None) else "")


def serial_share() -> str:
    """The largest share of one thread's time in stages that never have more, as words."""
    rows = record("papers")["cpu"]["date-nagi-table3"]["summary"]
    largest = max(row["n"] for row in rows)
    one = [row for row in rows if row["n"] == largest and row["case"].startswith("OMP-1")]
    classical, tree = (
        max(row["serial_seconds"] / row["seconds"] for row in one if ("CLASS" in row["case"]) == kind)
        for kind in (True, False)
    )
    return f"{classical:.1%} (classical) and {tree:.1%} (tree, whose joins are not counted)"


def huge_problems() -> str:
    """What fits no GPU as a matrix, or only just."""
    seen = record("gpu_long")["huge_problems"]
    columns = {
        "costs": "{costs}", "n": "{n:,}", "shards": "{shards}", "s": "{seconds:.1f}", "gap": "{gap:g}",
        "passes": "{passes}", "candidates": "{candidates:,}", "GB of the GPU": "{gpu_gb}",
    }  # fmt: skip
    return f"{shown(seen['rows'], columns)}\n\n{card(seen)}"


def solver_times() -> str:
    """Seconds of tracking by every solver on a GPU and on the CPU."""
    seen = record("gpu_long")["solvers"]
    columns = {
        "solver": "`{solver}`", "GPU, s": "{gpu_s:g}", "CPU, s": "{cpu_s:g}",
        "links, the same on both": "{links:,}", "fallbacks": "{fallbacks}",
    }  # fmt: skip
    first = seen["rows"][0]
    return (
        f"{shown(seen['rows'], columns)}\n\n{first['frames']} frames of {first['particles']:,} particles. "
        f"{card(seen)}"
    )


def shard_times() -> str:
    """Seconds and efficiency, and the paper's."""
    seen, of_run = record("gpu_long")["shards"], ("table", "variant", "n", "gpus", "ranks")
    rows = {tuple(row[name] for name in of_run): row for row in seen["rows"] if row["measured"]}.values()
    columns = {
        "scaling": "{table}", "solver": "{variant}", "n": "{n:,}", "GPUs": "{gpus}",
        "joined as": lambda row: _joined(row) if row["gpus"] > 1 else "",
        "measured, s": "{seconds:.3g}",
        "efficiency": lambda row: _share(row["efficiency"]),
        "the paper's": lambda row: _share(row.get("paper_efficiency")),
        "messages": "{messages:,.0f}", "MB a shard": lambda row: f"{row['bytes_sent'] / 1e6:.1f}",
    }  # fmt: skip
    return f"{shown(rows, columns)}\n\n{card(seen)}"


def _joined(row: Row) -> str:
    """How the GPUs are joined, and whether the processors had other work."""
    return row.get("ranks", "") + (" ¹" if row.get("is_beside_other_work") else "")


def _share(share: Any) -> str:
    return f"{share:.2f}" if isinstance(share, float | int) else ""


def shard_claims() -> str:
    """The claims of section 6.3, judged by what several GPUs measured."""
    found: dict[tuple[str, int, int], dict[str, float]] = {}
    for row in record("gpu_long")["shards"]["rows"]:
        if row["gpus"] > 1 and row["efficiency"] is not None and not row.get("is_beside_other_work"):
            found.setdefault((row["table"], row["n"], row["gpus"]), {})[row["variant"]] = row["efficiency"]
    claims = []
    for (scaling, n, gpus), shares in found.items():
        if {*VARIANTS} <= {*shares}:
            where = f"section 6.3, Table {4 if scaling == 'weak' else 5}"
            both = ", ".join(f"{name} {shares[name]:.2f}" for name in VARIANTS)
            text = f"{scaling} scaling, n = {n:,} on {gpus} GPUs: {both}"
            falls, better = max(map(shares.get, VARIANTS)) < 1, shares["classical"] > shares["tree"]
            claims.append(Claim("efficiency deteriorates with more GPUs", where, text, falls))
            claims.append(Claim("the classical variant scales better", where, text, better))
    columns = {name: CLAIM[name] for name in ("where", "claim", "measured here", "verdict")}
    return shown([claim.row() for claim in claims], columns)


def shard_movie() -> str:
    """Frame pairs of a movie over one GPU and over several, as words."""
    rows = record("gpu_long")["shards"]["movie"]
    alone, most = rows[0], rows[-1]
    same = "the same links" if most["same"] else "other links"
    return (
        f"{alone['frames']} frames of {alone['particles']:,} particles are linked in {alone['seconds']:g} s "
        f"by one GPU and in {most['seconds']:g} s by {most['gpus']}, with {same}"
    )
