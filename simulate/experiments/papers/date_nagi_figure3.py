"""Date & Nagi's Figure 3: what each stage contributes to the time of the largest instances."""

from __future__ import annotations

from ...experiment import Curve, Panel, Row
from ...matrices import RANGES
from ...paper import Problems, where
from .date_nagi_table3 import STAGES, Table3


class Figure3(Table3):
    """The largest size of Table 3 alone."""

    shows = "Date & Nagi's Figure 3: share of each stage, largest instances."
    takes = "2 minutes; seconds with --quick"
    cpu = Problems((3000,))
    gpu = Problems((20_000,), instances=3, device="gpu")

    def panels(self, summary: list[Row]) -> list[Panel]:
        cases = list(dict.fromkeys(str(row["case"]) for row in summary))
        places = [float(k) for k in range(len(RANGES))]
        found = []
        for case in cases:
            curves = []
            for stage in STAGES:
                lines = [where(summary, case=case, costs=costs)[0] for costs in RANGES]
                shares = [100 * float(line[stage]) / float(line["seconds"]) for line in lines]
                curves.append(Curve(stage, places, shares))
            found.append(Panel(case, "range: n/10, n, 10n", "% of the time", curves))
        return found


PAPER = Figure3()
