"""What scores are called at the top of a report, and a sentence about each."""

from __future__ import annotations

from collections.abc import Mapping

LABELS = {
    "link_f1": "Link F1", "link_precision": "Link precision", "link_recall": "Link recall", "idf1": "IDF1",
    "hota": "HOTA", "jsc": "Jaccard index", "complete_tracks": "Complete tracks",
    "division_f1": "Division F1", "merge_f1": "Merge F1", "id_switches": "Identity switches",
}  # fmt: skip
"""Label of each score at the top of a report, in order."""
_MEANINGS: Mapping[str, str] = {
    "link_precision": "Share of the links found that are true.",
    "link_recall": "Share of the true links that are found.",
    "link_f1": "Harmonic mean of precision and recall of links; 1 is perfect.",
    "link_jaccard": "True links found, among all links that are true or found.",
    "alpha": "ISBI challenge: nearness of the found tracks to the true ones; false tracks do not count.",
    "beta": "ISBI challenge: as alpha; false tracks reduce it.",
    "jsc": "ISBI challenge: true positions found, among all positions that are true or found.",
    "jsc_theta": "ISBI challenge: true tracks found, among all tracks that are true or found.",
    "rmse": "Root mean square distance of paired positions, in the unit of the positions.",
    "idf1": "How much of each particle one track follows; a swap in mid-track costs much.",
    "mota": "1 less the misses, false detections and switches, for each true detection.",
    "id_switches": "How often a track passes from one particle to another.",
    "hota": "Geometric mean of detection accuracy and association accuracy.",
    "det_a": "Accuracy of detection within HOTA.",
    "ass_a": "Accuracy of association within HOTA.",
    "complete_tracks": "Share of the true tracks that one track follows from start to end.",
    "track_purity": "Share of a found track that belongs to one particle.",
    "target_effectiveness": "Share of a particle's detections that are in one track.",
}
"""In a sentence; docs/explanation/scores.md has the definitions."""


def meaning(score: str) -> str:
    """What a score means, those of divisions and merges as those of links; empty if it is not explained.

    Examples
    --------
    >>> meaning("division_recall")
    'Share of the true divisions that are found.'
    """
    kind, _, rate = score.rpartition("_")
    of = {"division": "divisions", "merge": "merges"}.get(kind)
    return _MEANINGS.get(f"link_{rate}", "").replace("links", of) if of else _MEANINGS.get(score, "")
