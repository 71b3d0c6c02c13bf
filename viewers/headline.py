"""The most important scores, each with a line that explains it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from outbid.scoring import Scores

MEANINGS: Mapping[str, tuple[str, str]] = {
    "link_f1": ("Link F1", "Harmonic mean of precision and recall of the links; 1 is perfect."),
    "link_precision": ("Link precision", "Share of the links found that are right."),
    "link_recall": ("Link recall", "Share of the true links that were found."),
    "idf1": ("IDF1", "How much of each particle one track follows; a swap in mid-track costs much."),
    "hota": ("HOTA", "Geometric mean of detection accuracy and association accuracy."),
    "jsc": ("Jaccard index", "Share of detections that pair with the truth, of all found or missed (ISBI)."),
    "complete_tracks": ("Complete tracks", "Share of the true tracks followed from beginning to end."),
    "division_f1": ("Division F1", "Divisions found: harmonic mean of precision and recall."),
    "merge_f1": ("Merge F1", "Merges found: harmonic mean of precision and recall."),
    "id_switches": ("Identity switches", "How often a track passes from one particle to another."),
}
"""Label and meaning of each score at the top of a report."""


class Headline(NamedTuple):
    """A score formatted for display."""

    label: str
    value: str
    meaning: str


def headlines(scores: Scores) -> list[Headline]:
    """The scores at the top of a report that apply to these tracks.

    Examples
    --------
    >>> headlines(Scores({"link_f1": 0.5, "mota": 0.9}, {}))[0].value
    '0.5000'
    """
    shown = scores.shown()
    return [Headline(label, shown[name], says) for name, (label, says) in MEANINGS.items() if name in shown]
