"""Date & Nagi's Figure 2: the seconds of Table 1 as curves."""

from __future__ import annotations

from ...experiment import Panel, Row
from ...paper import curves_of
from .date_nagi_table1 import Table1


class Figure2(Table1):
    """The measurements are those of Table 1."""

    shows = "Date & Nagi's Figure 2: seconds over n of CPU and GPU, [0, n]."

    def panels(self, summary: list[Row]) -> list[Panel]:
        ours = curves_of(summary, "n", "seconds")
        paper = curves_of(summary, "n", "paper_seconds", "{}, paper", kind="theory")
        return [Panel("", "n", "seconds", [*ours, *(one for one in paper if one.x)])]


PAPER = Figure2()
