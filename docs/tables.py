"""Tables of the pages that are made from the code or from a record, so that they cannot differ from it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from outbid.formats import FORMATS
from outbid.formats.tables.columns import ALIASES

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path += [str(REPOSITORY / "tests" / "bench"), str(REPOSITORY / "tests")]

from accuracy.measured import BINS, Record  # noqa: E402
from accuracy.movies import plan  # noqa: E402

ACCURACY = REPOSITORY / "tests" / "bench" / "accuracy"
Row = Mapping[str, Any]
_T = TypeVar("_T")
SCORES = {"link_f1": "link F1", "filled": "link F1, gaps filled,", "idf1": "IDF1"}
_GROUPS = (0, 6, 10, 12, 14, 16, 18, 19, 20)
"""Where groups of the bins of probability begin: at 0, .3, .5, .6, … .9, .95."""


def table(heads: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Rows as Markdown."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def shown(
    rows: Iterable[Row] | Mapping[str, Row], columns: Mapping[str, str | Callable[[Any], object]]
) -> str:
    """Rows of a record as Markdown, each column by a format or a function; empty where a row lacks values.

    Rows that are in the record by name have it as the value "name".
    """
    if isinstance(rows, Mapping):
        rows = [{**row, "name": name} for name, row in rows.items()]
    return table(columns, ([_cell(row, way) for way in columns.values()] for row in rows))


def _cell(row: Row, way: str | Callable[[Any], object]) -> object:
    try:
        return way(row) if callable(way) else way.format_map(row)
    except KeyError:
        return ""


def grouped(rows: Iterable[_T], key: Callable[[_T], Any]) -> dict[Any, list[_T]]:
    """Rows by a key, in the order in which these come."""
    groups: dict[Any, list[_T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def mean(rows: Iterable[Row], key: str, form: str) -> str:
    """The mean of a column."""
    return format(np.mean([row[key] for row in rows]), form)


def formats() -> str:
    """What is read and written, a row a format, in the order in which files are recognised."""
    rows = []
    for each in FORMATS:
        ends = [f"`{end}`" for end in each.suffixes]
        more = [name.strip("*") if name.startswith("*.") else name for name in each.patterns]
        ends += [f"`{name}`" for name in more if not name.endswith("/")]
        extra = f"`{each.extra}`" if each.extra else ""
        rows.append((each.name, ", ".join(ends) or "folder", each.about, each.reads, each.writes, extra))
    return table(("format", "files", "", "read", "written", "extra"), rows)


def doors() -> str:
    """Where unit and interval are on each way in and out; tests send a movie through each."""
    import doors as law

    doors = (*law.FILES, *law.ALONE, *law.COMMANDS, *law.CLUSTER, *law.LABELS)
    tried = [(door.name, door.keeps) for door in doors]
    return table(("door", "unit and time"), [*tried, *law.OTHERS, *law.FORMS])


def read(name: str) -> dict[str, Any]:
    """A file of tests/bench/."""
    return json.loads((REPOSITORY / "tests" / "bench" / name).read_text("utf-8"))


def record(name: str) -> dict[str, Any]:
    """A record of tests/bench/."""
    return read(f"{name}_record.json")


def short(commit: str) -> str:
    """The first 10 characters, and the "+" of files that differ from the commit.

    Examples
    --------
    >>> short("0123456789abcdef+")
    '0123456789+'
    """
    return commit[:10] + "+" * commit.endswith("+")


def origin(seen: Row) -> str:
    """Where a record comes from: commit, date, card and driver, and machine, as a phrase."""
    parts = [seen.get("card"), f"driver {seen['driver']}" if "driver" in seen else None]
    parts = [f"commit {short(seen['commit'])}", seen["date"], *filter(None, parts)]
    return f"{', '.join(parts)}; {seen.get('machine') or seen.get('provenance')}"


def aliases() -> str:
    """Names of columns that are understood."""
    rows = ((f"`{role}`", ", ".join(f"`{name}`" for name in names)) for role, names in ALIASES.items())
    return table(("column", "names"), rows)


def motions_measured() -> str:
    """Bias and coverage of measures by motion, beside trackpy's."""
    seen = record("motions")

    def apart(row: Row, name: str) -> str:
        if row[name] is None:
            return ""
        share = f" ({row[name] / row['true']:+.0%})" if row["true"] else ""
        return f"{row[name]:+.3f}{share}".replace("-", "−")

    columns = {
        "motion": "{motion}", "tracks": "{way}", "quantity": lambda row: row["quantity"].replace("_", " "),
        "true": "{true:.3g}", "error": lambda row: apart(row, "bias"), "scatter": "{scatter:.3f}",
        "68 % holds": "{held_68:.0%}", "95 % holds": "{held_95:.0%}",
        "trackpy's error": lambda row: apart(row, "trackpy_bias"),
        "movies": "{movies}", "of which chosen": "{chosen}",
    }  # fmt: skip
    return f"{shown(seen['rows'], columns)}\n\nMeasured on {origin(seen)}."


def accuracy() -> str:
    """Scores of recorded movies when `make accuracy` ran last, of every frame and of every third."""
    rows: Any = [row for row in learned().rows if row.movie.recorded and row.movie.level in (1, 3)]
    columns = {
        "movie": lambda row: row.movie.kind, "every": lambda row: f"{row.movie.level:g}",
        "detections": lambda row: f"{row.detections:,}", "link F1": lambda row: f"{row.link_f1:.4f}",
        "IDF1": lambda row: f"{row.idf1:.4f}",
        "division F1": lambda row: "" if np.isnan(row.division_f1) else f"{row.division_f1:.4f}",
        "stated": lambda row: f"{sum(row.stated) / sum(row.count):.4f}",
        "right": lambda row: f"{sum(row.right) / sum(row.count):.4f}",
    }  # fmt: skip
    return f"{shown(rows, columns)}\n\nMeasured on {origin(learned().about)}."


def _by_kind(chosen: Callable[[str], bool]) -> str:
    """Mean scores of some kinds of movies when `make accuracy` ran last: link F1 at each κ."""
    rows, lines = [row for row in learned().rows if chosen(row.movie.kind)], []
    for kind, every in grouped(rows, lambda row: row.movie.kind).items():
        levels = dict(sorted(grouped(every, lambda row: row.movie.level).items()))
        scores = ("idf1", "division_f1", "calibration_error")
        means = [[getattr(row, name) for row in every] for name in scores]
        lines.append((
            f"`{kind}`" if "/" in kind else kind.replace("_", " "),
            ", ".join(f"{level:g}" for level in levels),
            ", ".join(f"{np.mean([row.link_f1 for row in some]):.3f}" for some in levels.values()),
            *("" if np.isnan(values).all() else f"{np.nanmean(values):.3f}" for values in means),
        ))  # fmt: skip
    heads = ("movies", "κ, or every n-th frame", "link F1", "IDF1", "division F1", "calibration error")
    return f"{table(heads, lines)}\n\nMeasured on {origin(learned().about)}."


@cache
def learned() -> Record:
    """Each movie by `track` with nothing set."""
    return Record.load(ACCURACY / "learned.npz")


def _is_developed(kind: str) -> bool:
    """Whether changes were chosen on this kind, be it by other seeds."""
    chosen = plan()["developed"]
    return kind in chosen["kinds"] + chosen["recorded"]


def posterior_developed() -> str:
    """Scores by kind, of the kinds on which the posterior was developed."""
    return _by_kind(_is_developed)


def posterior_reported() -> str:
    """The same of the kinds on which nothing was chosen."""
    return _by_kind(lambda kind: not _is_developed(kind))


def posterior_reliability() -> str:
    """Share of right links among those of like probability."""
    sums = np.array([[getattr(row, name) for row in learned().rows] for name in ("stated", "right", "count")])
    rows = []
    for first, last in zip(_GROUPS[:-1], _GROUPS[1:], strict=True):
        stated, right, count = sums.sum(axis=1)[:, first:last].sum(axis=1)
        shares = (f"{part / count:.3f}" if count else "" for part in (stated, right))
        rows.append((f"{first / BINS:g} to {last / BINS:g}", f"{int(count):,}", *shares))
    made = table(("probability", "links", "mean", "right"), rows)
    return f"{made}\n\nMeasured on {origin(learned().about)}."


def ablation() -> str:
    """What each addition to the posterior is worth, paired over the developed movies."""
    return _changes("ablation.json")


def sensitivity() -> str:
    """What half and double of each option of learning change."""
    return _changes("sensitivity.json")


def _changes(name: str) -> str:
    rows = []
    for row in read(f"accuracy/{name}")["rows"]:
        gains = [
            "" if score not in row else f"{row[score][0]:+.4f} ± {row[score][1]:.4f}"
            for score in ("link F1", "IDF1", "calibration")
        ]
        kind, lost = row["worst"]
        worst = f"`{kind}`" if "/" in kind else kind.replace("_", " ")
        rows.append((row["name"], row["movies"], *gains, f"{worst} {lost:+.4f}", row.get("time", "")))
    heads = ("change", "movies", "link F1", "IDF1", "calibration error", "worst kind", "time")
    return table(heads, rows)


def columns_gained() -> str:
    """Mean paired gains of columns over other ways to link rendered movies, by axes and kappa."""
    seen = read("accuracy/columns.json")
    groups = grouped(seen["grid"], lambda row: f"{row['case'][0]}D, κ {row['case'][1]:g}")
    groups["**all**"] = seen["grid"]
    wanted = [(o, s) for o in ("alone", "threshold", "laptrack") for s in SCORES if s in seen["grid"][0][o]]

    def gain(rows: list[dict[str, Any]], other: str, score: str) -> str:
        each = [row["columns"][score] - row[other][score] for row in rows if other in row]
        return f"{np.mean(each):+.4f} ± {np.std(each, ddof=1) / len(each) ** 0.5:.4f}" if each else ""

    heads = ("movies", "number", *(f"{SCORES[name]} over {other}" for other, name in wanted))
    lines = [(name, len(rows), *(gain(rows, *each) for each in wanted)) for name, rows in groups.items()]
    return f"{table(heads, lines)}\n\nMeasured on {origin(seen['about'])}."


def columns_kinds() -> str:
    """Link F1, and stated probability less the share that is right, by kinds of columns."""
    rows = read("accuracy/columns.json")["kinds"]
    wanted = [(k, key) for k in sorted({row["case"][0] for row in rows}) for key in ("link_f1", "over")]

    def mean(kind: str, level: float, key: str) -> str:
        value = np.mean([row[kind][key] for row in rows if row["case"][0] == level])
        return f"{value:+.3f}" if key == "over" else f"{value:.4f}"

    heads = [f"{'link F1' if key == 'link_f1' else 'stated - right'}, κ {level:g}" for level, key in wanted]
    kinds = [name for name in rows[0] if name != "case"]
    return table(("columns", *heads), [(kind, *(mean(kind, *each) for each in wanted)) for kind in kinds])


def certified() -> str:
    """What `make certify` found last: outcomes by solver."""
    seen = record("certify")
    heads = {
        "optimal": "right", "optimal, unproved": "feasible, and optimal", "feasible": "feasible",
        "refused": "refused", "refused wrongly": "refused, though feasible", "wrong": "wrong",
    }  # fmt: skip
    solvers = dict.fromkeys(name.partition(": ")[0] for name in seen["outcomes"] if ": " in name)
    rows = (
        (f"`{one}`", *(f"{seen['outcomes'].get(f'{one}: {kind}', 0):,}" for kind in heads.values()))
        for one in solvers
    )
    text = f"{seen['assignments']:,} assignments; measured on {origin(seen)}."
    return f"{table(('solver', *heads), rows)}\n\n{text}"


def faults() -> str:
    """What `make fuzz`, `make torture` and `make certify` found last: a line a class, wrong ones last."""
    fuzz, torture, certify = (record(name) for name in ("fuzz", "torture", "certify"))
    rows: list[tuple[str, ...]] = []
    for name, counts in fuzz["outcomes"].items():
        clean = [counts.get(kind, 0) for kind in ("agrees", "refused", "not judged")]
        rows.append(_counted(f"damaged files: {name}", sum(counts.values()), *clean))
    for act, tried in torture["tried"].items():
        wrong = sum(find["act"] == act for find in torture["finds"])
        rows.append(_counted(f"commands that write: {act}", tried, tried - wrong))
    # Right are also answers that claim no more than they prove; refusals are those of heuristics.
    kinds: dict[str, int] = {}
    for name, count in certify["outcomes"].items():
        kind = name.partition(": ")[2].partition(",")[0]
        kinds[kind] = kinds.get(kind, 0) + count
    right = kinds.get("right", 0) + kinds.get("feasible", 0)
    rows.append(
        ("assignments", *(f"{n:,}" for n in (certify["assignments"], right, kinds.get("refused", 0))), "",
         f"{kinds.get('wrong', 0):,}")
    )  # fmt: skip
    text = (
        f"The cases reach {fuzz['branches']['all']:.0f} % of the readers' branches. Files: {_spent(fuzz)}. "
        f"Commands: {_spent(torture)}. Assignments: {_spent(certify)}."
    )
    heads = ("class", "tried", "right", "refused cleanly", "not judged", "wrong")
    return f"{table(heads, rows)}\n\n{text}"


def _counted(name: str, tried: int, *clean: int) -> tuple[str, ...]:
    """A row: what was not clean was wrong."""
    cells = [f"{count:,}" for count in clean]
    return (name, f"{tried:,}", *cells, *[""] * (3 - len(cells)), f"{tried - sum(clean):,}")


def _spent(seen: Row) -> str:
    return (f"{seen['hours']:g} hours of processes, " if "hours" in seen else "") + origin(seen)


def gpu_record() -> str:
    """What the benchmark of the GPU measured last."""
    seen = record("gpu")
    columns = {
        "particles": "{particles:,}", "displacement": "{displacement}", "gate": "{gate}",
        "candidates each": "{candidates}", "GPU": "{gpu_ms:g} ms", "CPU": "{cpu_ms:g} ms", "gap": "{gap}",
    }  # fmt: skip
    return f"{shown(seen['frame_pairs'], columns)}\n\nMeasured on {origin(seen)}."


def huge_movie() -> str:
    """Where the time went when the benchmark linked a huge movie last."""
    seen = record("gpu_long")["huge_movie"]
    made, runs = seen["rows"][0], [row for row in seen["rows"] if "worst_gap" in row]
    stages = dict.fromkeys(name.removesuffix("_s") for run in runs for name in run if name.endswith("_s"))
    rows = [
        *([stage.replace("_", " "), *(_share(run, stage) for run in runs)] for stage in stages),
        ["**all**", *(f"**{run['seconds']:g} s**" for run in runs)],
        ["most memory", *(f"{run['peak_gb']:.1f} GB" for run in runs)],
        ["most of the GPU's", *(f"{run['peak_gpu_gb']:.1f} GB" for run in runs)],
    ]
    text = (
        f"A file of {seen['frames']} frames of {seen['particles']:,} particles ({made['gb']} GB), "
        f"displacement (κ) {seen['displacement']} and gate {seen['gate']}, to one of "
        f"{runs[0]['tracks']:,} tracks ({runs[0]['gb']} GB); gap {max(run['worst_gap'] for run in runs):g}. "
        f"Measured on {origin(seen)}."
    )
    return f"{table(['stage', *(run['who'] for run in runs)], rows)}\n\n{text}"


def _share(run: Row, stage: str) -> str:
    """Seconds, and their share of the whole if they are part of it and did not pass beside it."""
    if f"{stage}_s" not in run:
        return ""
    share = f", {run[f'{stage}_percent']:.0f} %" if f"{stage}_percent" in run else ""
    return f"{run[f'{stage}_s']:.1f} s{share}"


def gpu_scaling() -> str:
    """How the time of a frame pair grew with its particles when the benchmark ran last."""
    seen = record("gpu_long")["scaling"]
    columns = {"particles": "{n:,}", "time": "{gpu_ms:.3g} ms"}
    columns |= {
        f"{name}, ms": f"{{{name}_ms:.3g}}" for name in ("candidates", "bids", "paths", "certificate")
    }
    columns |= {"bound": "{bound_ms:.2g} ms", "times the bound": "{x_bound:.0f}"}
    many = seen["many"][0]
    text = (
        f"The time grows as n to the power of {seen['exponent']} from 10^5 on, of "
        f"{seen['last_exponent']} from 10^6 on. The bound is the bytes that must be moved, over 4.3 TB/s. "
        f"A frame pair of {many['particles']:,} particles with "
        f"{many['candidates']:,} candidates, more than 32 bits count, took {many['gpu_ms'] / 1e3:.1f} s, gap "
        f"{many['gap']}."
    )
    return f"{shown(seen['rows'], columns)}\n\n{text} Measured on {origin(seen)}."
