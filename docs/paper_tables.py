"""Tables of the page on the three papers, made from tests/papers_record.json and the record of the GPU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tables import REPOSITORY, _short, _table

from outbid.simulate.experiments.papers import paper_named
from outbid.simulate.paper import values_of

_LARGEST = 20_000
"""The n at which variants on a GPU are compared with the paper's."""
_SLOWER = {"[0, n/10]": "tree", "[0, n]": "classical", "[0, 10n]": "classical"}
"""The paper's slower variant at that n."""
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


def paper_sizes() -> str:
    """The sizes that were recorded, beside the paper's."""
    rows = []
    for name, part in _parts():
        of_paper = paper_named(name).gpu
        sizes = sorted({row["n"] for row in part["summary"]})
        largest = max(of_paper.sizes)
        if name == "date-nagi-table4":  # it grows with the number of shards
            largest = max(row["n"] for row in values_of(name))
        instances = sorted({int(row["instances"]) for row in part["summary"]})
        verdict = "yes" if sizes[-1] >= largest else "no"
        where = "GPU" if part["card"] else "CPU"
        counts = f"{' to '.join(map(str, instances))} of {of_paper.instances}"
        span = " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1])))
        rows.append((f"`{name}`", where, span, f"{largest:,}", verdict, counts))
    heads = ("experiment", "on", "n here", "n goes to", "reached", "instances")
    return _table(heads, rows)


def hungarian_times() -> str:
    """Seconds of the Hungarian variants on a GPU at n = 20,000, beside the paper's."""
    record = _gpu_record()
    known = {row["costs"]: row for row in values_of("date-nagi-table3") if row["n"] == _LARGEST}
    rows = []
    for row in record["hungarian"]:
        if row["n"] != _LARGEST:
            continue
        paper = known.get(row["costs"], {})
        name = "CU-TREE" if row["variant"] == "tree" else "CU-CLASS"
        rows.append(
            (
                row["costs"], row["variant"], f"{1e3 * row['seconds']:.1f} ms",
                f"{paper[name]:g} s" if name in paper else "not legible",
                f"{row['initial_assignments']:,}", _number(paper.get("initial", "not legible")),
                row["iterations"], row["dual_updates"],
            )
        )  # fmt: skip
    heads = ("costs", "variant", "time", "paper's", "initial", "paper's", "iterations", "dual updates")
    return f"{_table(heads, rows)}\n\nn = 20,000. {_card(record)}"


def card_claims() -> str:
    """Claims on GPUs, judged by the record that `make gpu-test` made."""
    record = _gpu_record()
    rows = [_order(record, costs, slower) for costs, slower in _SLOWER.items()]
    forms = [row["global_ms"] / row["shared_ms"] for row in record["evaluations"]]
    rows.append(
        (
            "Roverso et al., Figure 1", "shared memory is consistently better than global memory",
            f"{min(forms):.1f} to {max(forms):.1f} times as fast, transfers not counted",
            _verdict(min(forms) > 1),
        )
    )  # fmt: skip
    worst = max(row["worst_percent"] for row in record["switching"])
    rows.append(
        (
            "Roverso et al., section 3", "the answer is at most 0.6 % from the optimum",
            f"at most {worst:.3f} %, GEOM, n = {_span(record['switching'])}", _verdict(worst < 0.6),
        )
    )  # fmt: skip
    faster = [row["cpu_ms"] / row["gpu_ms"] for row in record["switching"] if "cpu_ms" in row]
    rows.append(
        (
            "Roverso et al., section 7", "an order of magnitude faster than C for large n",
            f"{max(faster):.1f} times at n up to 2,000, over the CPU's kernels here",
            _verdict(max(faster) > 10),
        )
    )  # fmt: skip
    both = [row["cpu_auction_ms"] / row["gpu_ms"] for row in record["auctions"] if "cpu_auction_ms" in row]
    rows.append(
        (
            "Vasconcelos & Rosenhahn, Figure 6", "the GPU considerably accelerates the auction",
            f"{max(both):.1f} times, distances, n = 1,000, with ε scaling", _verdict(max(both) > 2),
        )
    )  # fmt: skip
    return f"{_table(('where', 'claim', 'measured here', 'verdict'), rows)}\n\n{_card(record)}"


def _order(record: dict[str, Any], costs: str, slower: str) -> tuple[str, ...]:
    """Which variant is the slower one in a range of costs."""
    times = {
        row["variant"]: row["seconds"]
        for row in record["hungarian"]
        if (row["n"], row["costs"]) == (_LARGEST, costs)
    }
    over = times["classical"] / times["tree"]
    holds = (over > 1) == (slower == "classical")
    words = f"the {slower} variant is the slower one in {costs}"
    return "Date & Nagi, Table 3", words, f"classical over tree {over:.2f}", _verdict(holds)


def _span(rows: list[dict[str, Any]]) -> str:
    sizes = [row["n"] for row in rows]
    return f"{min(sizes):,} to {max(sizes):,}"


def not_on_a_gpu() -> str:
    """Tables that were recorded on a CPU alone, as words."""
    record = _record()
    names = [f"`{name}`" for name in record["cpu"] if name not in record.get("gpu", {})]
    return ", ".join(names)


def _verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def _gpu_record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REPOSITORY / "tests" / "gpu_record.json").read_text("utf-8"))
    return found


def _card(record: dict[str, Any]) -> str:
    commit, date, card = _short(record["commit"]), record["date"], record["card"]
    return f"Commit {commit}, {date}; {card}; {record['provenance']}."


def thread_times() -> str:
    """Seconds of Table 1 by threads, and on a GPU, beside the paper's."""
    part = dict(_parts())["date-nagi-table1"] if "gpu" in _record() else None
    if part is None:
        return "Not recorded yet: `python tests/papers.py --device gpu --only date-nagi-table1`."
    cases = list(dict.fromkeys(row["case"] for row in part["summary"]))
    found = {(row["n"], row["case"]): row for row in part["summary"]}
    rows = []
    for size in sorted({row["n"] for row in part["summary"]}):
        cells = [found.get((size, case), {}) for case in cases]
        rows.append((f"{size:,}", *(_both(cell) for cell in cells)))
    return f"{_table(('n', *cases), rows)}\n\nSeconds, in parentheses the paper's. {_origin(part)}"


def _both(row: dict[str, Any]) -> str:
    if not row:
        return ""
    paper = row.get("paper_seconds", "")
    return f"{row['seconds']:.3f}" + (f" ({paper:g})" if paper not in ("", None) else "")


def huge_problems() -> str:
    """What fits no GPU as a matrix, or only just."""
    path = REPOSITORY / "tests" / "gpu_long_record.json"
    record = json.loads(path.read_text("utf-8")).get("huge_problems")
    if record is None:
        return "Not measured yet: `make gpu-bench` measures it."
    rows = [
        (
            row["costs"], f"{row['n']:,}", row["shards"], f"{row['seconds']:.1f}",
            f"{row['gap']:g}", row["passes"], f"{row['candidates']:,}", row["gpu_gb"],
        )
        for row in record["rows"]
    ]  # fmt: skip
    heads = ("costs", "n", "shards", "s", "gap", "passes", "candidates", "GB of the GPU")
    return f"{_table(heads, rows)}\n\n{_card(record)}"


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
    ]
    first = record["rows"][0]
    size = f"{first['frames']} frames of {first['particles']:,} particles. "
    origin = f"Commit {_short(record['commit'])}, {record['date']}; {record['card']}; {record['provenance']}."
    heads = ("solver", "GPU, s", "CPU, s", "links, the same on both", "fallbacks")
    return f"{_table(heads, rows)}\n\n{size}{origin}"


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.6g}"
