"""The form *Compare*: links that two results share, and those that only one of them has."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from ..judged import JudgedLinks
from .pair import PairForm
from .work import Report


class CompareForm(PairForm):
    """Form that compares two tracking results link by link."""

    run_text = "Compare"
    first_text, second_text = "one", "other"
    error_text = "difference"
    names = ("one", "other")

    def hold(
        self,
        judged: JudgedLinks,
        gate: float,
        report: Report,  # noqa: ARG002 - it is done at once
    ) -> tuple[Mapping[str, str], Mapping[str, object], str]:
        """Count the links that the two tracking results share."""
        both, of_one, of_other = int(judged.right.sum()), len(judged.right), len(judged.found_again)
        either = of_one + of_other - both
        values = {
            "links in both": both, "links only in one": of_one - both, "links only in other": of_other - both,
            "shared (Jaccard index)": both / either if either else float("nan"),
            "tracks of one": judged.tracks.track_count, "tracks of other": judged.truth.track_count,
            "detections of one": len(judged.tracks.detections),
            "detections of other": len(judged.truth.detections),
        }  # fmt: skip
        table = {
            name: f"{value:,}" if isinstance(value, int) else f"{value:.4f}" for name, value in values.items()
        }
        record = {"command": "compare", "version": version("outbid"), "gate": gate, "values": values}
        return table, record, ""
