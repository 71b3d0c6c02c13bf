"""Tables of the pages that are made from the code or from a record, so that they cannot differ from it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import front_page
import numpy as np
import scale_plan as scale

from outbid.formats.columns import ALIASES

REPOSITORY = Path(__file__).resolve().parent.parent
ACCURACY = REPOSITORY / "tests" / "accuracy"
SCORES = {"link_f1": "link F1", "idf1": "IDF1"}


def aliases() -> str:
    """Names of columns that are understood."""
    rows = ((f"`{role}`", ", ".join(f"`{n}`" for n in names)) for role, names in ALIASES.items())
    return _table(("column", "names"), rows)


def accuracy() -> str:
    """Scores of recorded movies when `make nightly` ran last."""
    record = json.loads((REPOSITORY / "tests" / "nightly_record.json").read_text("utf-8"))
    names = ("link_f1", "idf1", "division_f1", "stated", "right")
    rows = (
        (
            row["movie"],
            row["every"],
            f"{row['detections']:,}",
            *("" if row[name] is None else f"{row[name]:.4f}" for name in names),
        )
        for row in record["accuracy"]
    )
    heads = ("movie", "every", "detections", "link F1", "IDF1", "division F1", "stated", "right")
    origin = f"commit {_short(record['commit'])}, {record['date']}; {record['machine']}"
    return f"{_table(heads, rows)}\n\nMeasured on {origin}."


def accuracy_by_kind() -> str:
    """Mean scores of each kind of movie in the frozen record of `make accuracy`."""
    return _by_kind(lambda _: True)


def accuracy_unseen() -> str:
    """The same of the simulated kinds on which nothing was chosen."""
    listed = tomllib.loads((ACCURACY / "movies.toml").read_text("utf-8"))
    return _by_kind(listed["reported"]["kinds"].__contains__)


def _by_kind(shown: Callable[[str], bool]) -> str:
    with np.load(ACCURACY / "baseline.npz") as record:
        about = json.loads(str(record["about"]))
        movies = [json.loads(movie) for movie in record["movie"]]
        names = ("link_f1", "idf1", "division_f1", "stated", "right", "count")
        found = {name: record[name] for name in names}
    error = np.abs(found["stated"] - found["right"]).sum(axis=1) / np.maximum(found["count"].sum(axis=1), 1)
    groups: dict[str, dict[float, list[int]]] = {}
    for row, movie in enumerate(movies):
        if shown(movie["kind"]):
            groups.setdefault(movie["kind"], {}).setdefault(movie["level"], []).append(row)
    rows = []
    for kind, levels in groups.items():
        link_f1 = ", ".join(f"{found['link_f1'][some].mean():.3f}" for some in levels.values())
        every = [row for some in levels.values() for row in some]
        means = [found["idf1"][every], found["division_f1"][every], error[every]]
        scores = ("" if np.isnan(values).all() else f"{np.nanmean(values):.3f}" for values in means)
        name = f"`{kind}`" if "/" in kind else kind.replace("_", " ")
        rows.append((name, ", ".join(f"{level:g}" for level in levels), link_f1, *scores))
    heads = ("movies", "κ, or every n-th frame", "link F1", "IDF1", "division F1", "calibration error")
    origin = f"commit {_short(about['commit'])}, {about['date']}; {about['machine']}"
    return f"{_table(heads, rows)}\n\nMeasured on {origin}."


def columns_gained() -> str:
    """Mean paired gains of columns over other ways to link rendered movies, by axes and kappa."""
    record, groups = _of_columns(), dict[str, list[dict[str, Any]]]()
    for row in record["grid"]:
        groups.setdefault(f"{row['case'][0]}D, κ {row['case'][1]:g}", []).append(row)
    groups["**all**"] = record["grid"]
    wanted = [(other, name) for other in ("alone", "threshold", "laptrack") for name in SCORES]

    def gain(rows: list[dict[str, Any]], other: str, score: str) -> str:
        each = [row["columns"][score] - row[other][score] for row in rows if other in row]
        return f"{np.mean(each):+.4f} ± {np.std(each, ddof=1) / len(each) ** 0.5:.4f}" if each else ""

    heads = ("movies", "number", *(f"{SCORES[name]} over {other}" for other, name in wanted))
    lines = [(name, len(rows), *(gain(rows, *each) for each in wanted)) for name, rows in groups.items()]
    return f"{_table(heads, lines)}\n\n{_origin(record['about'])}"


def columns_kinds() -> str:
    """Link F1, and stated probability less the share that is right, by kinds of columns."""
    rows = _of_columns()["kinds"]
    wanted = [(k, key) for k in sorted({row["case"][0] for row in rows}) for key in ("link_f1", "over")]

    def mean(kind: str, level: float, key: str) -> str:
        value = np.mean([row[kind][key] for row in rows if row["case"][0] == level])
        return f"{value:+.3f}" if key == "over" else f"{value:.4f}"

    heads = [f"{'link F1' if key == 'link_f1' else 'stated - right'}, κ {level:g}" for level, key in wanted]
    kinds = [name for name in rows[0] if name != "case"]
    return _table(("columns", *heads), [(kind, *(mean(kind, *each) for each in wanted)) for kind in kinds])


def _of_columns() -> dict[str, Any]:
    return json.loads((ACCURACY / "columns.json").read_text("utf-8"))


def rivals() -> str:
    """Link F1 on recorded movies beside peers tuned on sibling movies, and the time of frame pairs."""
    return "\n".join(front_page.of_peers())


def certified() -> str:
    """What `make certify` found last: outcomes by solver."""
    record = _record("certify")
    kinds = ("right", "feasible, and optimal", "feasible", "refused", "refused, though feasible", "wrong")
    solvers = dict.fromkeys(name.partition(": ")[0] for name in record["outcomes"] if ": " in name)
    rows = (
        (f"`{solver}`", *(f"{record['outcomes'].get(f'{solver}: {kind}', 0):,}" for kind in kinds))
        for solver in solvers
    )
    heads = ("solver", "optimal", "optimal, unproved", "feasible", "refused", "refused wrongly", "wrong")
    origin = f"commit {_short(record['commit'])}, {record['date']}; {record['machine']}"
    return f"{_table(heads, rows)}\n\n{record['assignments']:,} assignments; measured on {origin}."


def faults() -> str:
    """What `make fuzz`, `make torture` and `make certify` found last: a line a class, wrong ones last."""
    fuzz, torture, certify = (_record(name) for name in ("fuzz", "torture", "certify"))
    rows = [_of_format(name, counts) for name, counts in fuzz["outcomes"].items()]
    rows += [_of_act(act, tried, torture["finds"]) for act, tried in torture["tried"].items()]
    rows.append(_of_assignments(certify))
    heads = ("class", "tried", "right", "refused cleanly", "not judged", "wrong")
    planted = sum(number is not None for number in fuzz["planted"].values())
    text = (
        f"{planted} of {len(fuzz['planted'])} planted faults were found; the cases reach "
        f"{fuzz['branches']['all']:.0f} % of the readers' branches. Files: {_spent(fuzz)}. "
        f"Commands: {_spent(torture)}. Assignments: {_spent(certify)}."
    )
    return f"{_table(heads, rows)}\n\n{text}"


def _of_format(name: str, counts: dict[str, int]) -> tuple[str, ...]:
    clean = [counts.get(kind, 0) for kind in ("agrees", "refused", "not judged")]
    every = sum(counts.values())
    return (f"damaged files: {name}", *(f"{count:,}" for count in (every, *clean)), f"{every - sum(clean):,}")


def _of_act(act: str, tried: int, finds: list[dict[str, Any]]) -> tuple[str, ...]:
    wrong = sum(find["act"] == act for find in finds)
    return (f"commands that write: {act}", f"{tried:,}", f"{tried - wrong:,}", "", "", f"{wrong}")


def _of_assignments(record: dict[str, Any]) -> tuple[str, ...]:
    """Right are also answers that claim no more than they prove; refusals are those of heuristics."""
    count = dict.fromkeys(("right", "feasible", "refused", "wrong"), 0)
    for name, of in record["outcomes"].items():
        kind = name.partition(": ")[2].partition(",")[0]
        if kind in count:
            count[kind] += of
    found = (record["assignments"], count["right"] + count["feasible"], count["refused"])
    return ("assignments", *(f"{number:,}" for number in found), "", f"{count['wrong']:,}")


def _spent(record: dict[str, Any]) -> str:
    hours = f"{record['hours']:g} hours of processes, " if "hours" in record else ""
    return f"{hours}commit {_short(record['commit'])}, {record['date']}; {record['machine']}"


def gpu_record() -> str:
    """What the benchmark of the GPU measured last."""
    record = _record("gpu")
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
    return f"{_table(heads, rows)}\n\n{_origin(record)}"


def huge_movie() -> str:
    """Where the time went when the benchmark linked a huge movie last."""
    record = _long_record("huge_movie")
    made, runs = record["rows"][0], [row for row in record["rows"] if "worst_gap" in row]
    stages = dict.fromkeys(name.removesuffix("_s") for run in runs for name in run if name.endswith("_s"))
    rows = [
        *([stage.replace("_", " "), *(_share(run, stage) for run in runs)] for stage in stages),
        ["**all**", *(f"**{run['seconds']:g} s**" for run in runs)],
        ["most memory", *(f"{run['peak_gb']:.1f} GB" for run in runs)],
        ["most of the GPU's", *(f"{run['peak_gpu_gb']:.1f} GB" for run in runs)],
    ]
    text = (
        f"A file of {record['frames']} frames of {record['particles']:,} particles ({made['gb']} GB), "
        f"displacement (κ) {record['displacement']} and gate {record['gate']}, to one of "
        f"{runs[0]['tracks']:,} tracks ({runs[0]['gb']} GB); gap {max(run['worst_gap'] for run in runs):g}. "
        f"{_origin(record)}"
    )
    return f"{_table(['stage', *(run['who'] for run in runs)], rows)}\n\n{text}"


def _share(run: dict[str, Any], stage: str) -> str:
    """Seconds, and their share of the whole if they are part of it and did not pass beside it."""
    if f"{stage}_s" not in run:
        return ""
    share = f", {run[f'{stage}_percent']:.0f} %" if f"{stage}_percent" in run else ""
    return f"{run[f'{stage}_s']:.1f} s{share}"


def gpu_scaling() -> str:
    """How the time of a frame pair grew with its particles when the benchmark ran last."""
    record = _long_record("scaling")
    stages = ("candidates", "bids", "paths", "certificate")
    rows = (
        (
            f"{row['n']:,}",
            f"{row['gpu_ms']:.3g} ms",
            *(f"{row[f'{stage}_ms']:.3g}" for stage in stages),
            f"{row['bound_ms']:.2g} ms",
            f"{row['x_bound']:.0f}",
        )
        for row in record["rows"]
    )
    heads = ("particles", "time", *(f"{stage}, ms" for stage in stages), "bound", "times the bound")
    many = record["many"][0]
    text = (
        f"The time grows as n to the power of {record['exponent']} from 10^5 on, of "
        f"{record['last_exponent']} from 10^6 on. The bound is the bytes that must be moved, over 4.3 TB/s. "
        f"A frame pair of {many['particles']:,} particles with "
        f"{many['candidates']:,} candidates, more than 32 bits count, took {many['gpu_ms'] / 1e3:.1f} s, gap "
        f"{many['gap']}."
    )
    return f"{_table(heads, rows)}\n\n{text} {_origin(record)}"


def scale_measured() -> str:
    """What `bench_scale.py` measured last."""
    record = json.loads(scale.RECORD.read_text("utf-8"))
    origin = f"commit {_short(record['commit'])}, {record['date']}; {record['machine']}"
    return f"{scale.measured(record)}\n\nMeasured on {origin}."


def scale_plan() -> str:
    """Movies of any size, by those rates."""
    return scale.table(json.loads(scale.RECORD.read_text("utf-8")))


def _origin(record: dict[str, Any]) -> str:
    """Card, driver, commit, date and versions of a record, as a sentence."""
    parts = [record[key] for key in ("card", "device") if key in record][:1]  # records older than their keys
    known = {"driver": str, "commit": _short, "date": str}
    parts += [f"{key} {of(record[key])}".removeprefix("date ") for key, of in known.items() if key in record]
    return f"Measured on {', '.join(parts)}; {record.get('provenance', record.get('machine'))}."


def _short(commit: str) -> str:
    """The first 10 characters, and the "+" of files that differ from the commit.

    Examples
    --------
    >>> _short("0123456789abcdef+")
    '0123456789+'
    """
    return commit[:10] + "+" * commit.endswith("+")


def _record(name: str) -> dict[str, Any]:
    return json.loads((REPOSITORY / "tests" / f"{name}_record.json").read_text("utf-8"))


def _long_record(name: str) -> dict[str, Any]:
    return _record("gpu_long")[name]


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
