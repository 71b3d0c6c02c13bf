"""The form *Score against truth*: true, false and missed links apart, and a way through the errors."""

from __future__ import annotations

from collections.abc import Mapping

from outbid.scoring import score

from ..judged import JudgedLinks
from .pair import PairForm
from .shown import record_of
from .work import Report


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
