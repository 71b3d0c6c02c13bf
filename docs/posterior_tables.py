"""Tables of the accuracy of learned linking, from the records of `make accuracy` and `make ablation`."""

from __future__ import annotations

import json
import sys
from functools import cache

import numpy as np
from tables import ACCURACY, REPOSITORY, by_kind, origin, table

sys.path.append(str(REPOSITORY / "tests"))

from accuracy.measured import BINS, Record
from accuracy.movies import plan

_GROUPS = (0, 6, 10, 12, 14, 16, 18, 19, 20)
"""Where groups of the bins of probability begin: at 0, .3, .5, .6, … .9, .95."""


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
    return by_kind(_is_developed)


def posterior_reported() -> str:
    """The same of the kinds on which nothing was chosen."""
    return by_kind(lambda kind: not _is_developed(kind))


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
    for row in json.loads((ACCURACY / name).read_text("utf-8"))["rows"]:
        gains = [
            "" if score not in row else f"{row[score][0]:+.4f} ± {row[score][1]:.4f}"
            for score in ("link F1", "IDF1", "calibration")
        ]
        kind, lost = row["worst"]
        worst = f"`{kind}`" if "/" in kind else kind.replace("_", " ")
        rows.append((row["name"], row["movies"], *gains, f"{worst} {lost:+.4f}", row.get("time", "")))
    heads = ("change", "movies", "link F1", "IDF1", "calibration error", "worst kind", "time")
    return table(heads, rows)
