"""Date & Nagi's Figure 2: the seconds of Table 1 as curves."""

from __future__ import annotations

from ...experiment import Panel, Row
from ...paper import curve, where
from .date_nagi_table1 import Table1


class Figure2(Table1):
    """The measurements are those of Table 1."""

    shows = "Date & Nagi's Figure 2: seconds over n of CPU and GPU, [0, n]."

    def panels(self, summary: list[Row]) -> list[Panel]:
        cases = list(dict.fromkeys(str(row["case"]) for row in summary))
        ours = [curve(case, where(summary, case=case), "n", "seconds") for case in cases]
        paper = [
            curve(f"{case}, paper", where(summary, case=case), "n", "paper_seconds", kind="theory")
            for case in cases
        ]
        return [Panel("", "n", "seconds", [*ours, *(one for one in paper if one.x)])]


PAPER = Figure2()
