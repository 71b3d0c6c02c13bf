"""The form *Score against truth*: true, false and missed links apart, and a way through the errors."""

from __future__ import annotations

from collections.abc import Mapping

from outbid.scoring import score

from ..judged import JudgedLinks
from ..layers import Layer, error_layers
from .pair import PairForm
from .shown import record_of
from .work import Report

_MEANINGS = {
    "link_precision": "Share of the links found that are true.",
    "link_recall": "Share of the true links that are found.",
    "link_f1": "Harmonic mean of precision and recall of links.",
    "link_jaccard": "True links found, among all links that are true or found.",
    "alpha": "ISBI challenge: nearness of the found tracks to the true ones; false tracks do not count.",
    "beta": "ISBI challenge: as alpha; false tracks reduce it.",
    "jsc": "ISBI challenge: true positions found, among all positions that are true or found.",
    "jsc_theta": "ISBI challenge: true tracks found, among all tracks that are true or found.",
    "rmse": "Root mean square distance of paired positions, in the unit of the positions.",
    "idf1": "How long a track stays with its particle, over the whole movie.",
    "mota": "1 less the misses, false detections and switches, for each true detection.",
    "id_switches": "How often a particle changes its track.",
    "hota": "Detection and association, balanced.",
    "det_a": "Accuracy of detection within HOTA.",
    "ass_a": "Accuracy of association within HOTA.",
    "complete_tracks": "Share of the true tracks that one track follows from begin to end.",
    "track_purity": "Share of a found track that is of one particle.",
    "target_effectiveness": "Share of a particle's detections that are in one track.",
}
"""Tooltips of the scores; docs/explanation/scores.md has the definitions."""


class ScoreForm(PairForm):
    """Form that scores tracks against the true tracks."""

    run_text = "Score"

    def hold(
        self, judged: JudgedLinks, gate: float, report: Report
    ) -> tuple[Mapping[str, str], Mapping[str, object], str]:
        """Compute all scores of the tracks against the true tracks."""
        scores = score(judged.tracks, judged.truth, gate=gate, progress=report)
        table = dict(line.split() for line in str(scores).splitlines())
        record = {"command": "score", "values": scores.values, "provenance": scores.provenance}
        return table, record, scores.remark

    def meaning(self, name: str) -> str:
        """What a score means."""
        kind, _, rate = name.rpartition("_")
        of = {"division": "divisions", "merge": "merges"}.get(kind)
        return _MEANINGS.get(f"link_{rate}", "").replace("links", of) if of else _MEANINGS.get(name, "")

    def _guess(self, _: object = None) -> None:
        """Take the last result of tracking, and as its truth the tracks that were opened last beside it."""
        layers = [layer for layer in self.viewer.layers if self.first.takes(layer)]
        results = [layer for layer in layers if (record_of(layer) or {}).get("command") == "track"]
        others = [layer for layer in layers if layer not in results]
        if not results or not others:
            return
        self.first.choose(results[-1])
        self.second.choose(others[-1])
        if len(others) > 1:
            self.show_message(
                f"Is {others[-1].name}, which was opened last, the truth? There are {len(others)} layers "
                "that may be."
            )

    def layers_of(self, judged: JudgedLinks, spacing: tuple[float, float, float]) -> list[Layer]:
        """True links green, false ones red, missed ones blue; errors as points."""
        return error_layers(judged, spacing=spacing)
