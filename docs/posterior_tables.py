"""Tables that set the posterior over links beside the engine of passes, from records of `make accuracy`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from tables import ACCURACY, REPOSITORY, _short, _table

sys.path.append(str(REPOSITORY / "tests"))

from accuracy.compare import Difference, Kind, Verdict, compared, mean_of
from accuracy.measured import BINS, Measured, Record
from accuracy.movies import plan

_GROUPS = (0, 6, 10, 12, 14, 16, 18, 19, 20)
"""Where groups of the bins of probability begin: at 0, .3, .5, .6, … .9, .95."""
_SCORES = ("link F1", "IDF1", "calibration")


@cache
def _passes() -> Record:
    return Record.load(ACCURACY / "baseline.npz")


@cache
def _learned() -> Record:
    return Record.load(ACCURACY / "learned.npz")


@cache
def _rows() -> tuple[Measured, ...]:
    """Each movie by `track` with nothing set."""
    return tuple(_learned().rows)


def _compared(rows: Iterable[Measured]) -> Verdict:
    return compared(Record({}, list(rows), {}), _passes())


def _developed(row: Measured) -> bool:
    """Whether changes were chosen on this kind, be it by other seeds."""
    chosen = plan()["developed"]
    return row.movie.kind in chosen["kinds"] + chosen["recorded"]


def posterior_developed() -> str:
    """Scores by kind and their gains, of the kinds on which the posterior was developed."""
    return _by_kind([row for row in _rows() if _developed(row)])


def posterior_reported() -> str:
    """The same of the kinds on which nothing was chosen."""
    return _by_kind([row for row in _rows() if not _developed(row)])


def _by_kind(rows: Sequence[Measured]) -> str:
    if not rows:
        return "No record holds them yet: `make accuracy` measures them."
    kinds = _compared(rows).kinds
    names = (*_SCORES, "division F1")
    shown = [(_name(kind.name), *(_with_gain(kind.scores[name]) for name in names)) for kind in kinds]
    groups = (
        ("mean of simulated", [kind for kind in kinds if not kind.recorded]),
        ("mean of recorded", [kind for kind in kinds if kind.recorded]),
    )
    for title, some in groups:
        if some:
            mean = mean_of(title, some)
            shown.append((f"**{title}**", *(_with_gain(mean.scores[name]) for name in names)))
    heads = ("movies, κ", "link F1", "IDF1", "calibration error", "division F1")
    return f"{_table(heads, shown)}\n\n{_origin()}"


def _name(kind: str) -> str:
    return f"`{kind}`" if "/" in kind else kind.replace("_", " ")


def _with_gain(found: Difference) -> str:
    """The posterior's score, and its gain against the passes with the standard error."""
    if not found.movies:
        return ""
    error = "" if np.isnan(found.error) else f" ± {found.error:.4f}"
    return f"{found.new:.4f} ({found.gain:+.4f}{error})"


def posterior_decision() -> str:
    """The strict rule, condition by condition; kinds that are behind are limits of the posterior."""
    verdict = _compared(_rows())
    rows = [("yes" if answer else "**no**", text.replace("_", " ")) for text, answer in verdict.conditions]
    counted = f"{len(_rows()):,} of the {len(_passes().rows):,} movies, of {len(verdict.kinds)} kinds."
    return f"{_table(('met', 'condition'), rows)}\n\n{counted}\n\n{_origin()}"


def posterior_behind() -> str:
    """The kinds whose link F1 is lowest against the passes, and those that gain most."""
    kinds = sorted(_compared(_rows()).kinds, key=lambda kind: kind.scores["link F1"].gain)
    rows = [(_listed(kinds[place]), _listed(kinds[-1 - place])) for place in range(5)]
    return _table(("lose most link F1", "gain most"), rows)


def _listed(kind: Kind) -> str:
    found = kind.scores["link F1"]
    error = "" if np.isnan(found.error) else f" ± {found.error:.4f}"
    return f"{_name(kind.name)}: {found.gain:+.4f}{error}"


def posterior_reliability() -> str:
    """Share of right links among those of like probability, by both engines over the same movies."""
    new = _rows()
    before = {row.movie: row for row in _passes().rows}
    sides = [new, [before[row.movie] for row in new]]
    sums = [
        np.array([[getattr(row, name) for row in side] for name in ("stated", "right", "count")]).sum(axis=1)
        for side in sides
    ]
    rows = []
    for first, last in zip(_GROUPS[:-1], _GROUPS[1:], strict=True):
        cells = [f"{first / BINS:g} to {last / BINS:g}"]
        for stated, right, count in (side[:, first:last].sum(axis=1) for side in sums):
            links = f"{int(count):,}"
            cells += [links, *(f"{part / count:.3f}" if count else "" for part in (stated, right))]
        rows.append(cells)
    engines = ("posterior", "passes")
    heads = (
        "probability",
        *(f"{engine}: {what}" for engine in engines for what in ("links", "mean", "right")),
    )
    return f"{_table(heads, rows)}\n\n{_origin()}"


def ablation() -> str:
    """What each addition to the posterior is worth, paired over the developed movies."""
    return _changes("ablation.json")


def sensitivity() -> str:
    """What half and double of each option of learning change."""
    if not (ACCURACY / "sensitivity.json").exists():
        return "Not measured yet: `make ablation` makes the record."
    return _changes("sensitivity.json")


def _changes(name: str) -> str:
    table = json.loads((ACCURACY / name).read_text("utf-8"))
    rows = []
    for row in table["rows"]:
        gains = [
            "" if score not in row else f"{row[score][0]:+.4f} ± {row[score][1]:.4f}" for score in _SCORES
        ]
        worst, lost = row["worst"]
        lost_most = f"{_name(worst)} {lost:+.4f}"
        rows.append((f"{row['name']}", row["movies"], *gains, lost_most, row.get("time", "")))
    heads = ("change", "movies", "link F1", "IDF1", "calibration error", "worst kind", "time")
    return _table(heads, rows)


def _origin() -> str:
    """Where the records come from."""
    said = []
    for name, record in (("passes", _passes()), ("posterior", _learned())):
        part = f"{len(record.rows):,} of {len(_passes().rows):,} movies"
        commit = f"commit {_short(record.about['commit'])}, {record.about['date']}"
        said.append(f"{name}: {commit}" + ("" if record is _passes() else f", {part}"))
    against = "Gains are against the engine of passes, with standard errors over seeds."
    return f"{against} Records: {'; '.join(said)}."
