"""Date & Nagi's Table 5: strong scaling, the same matrix over more and more shards."""

from __future__ import annotations

from ...paper import Problems
from ...scaling import Scaling


class Table5(Scaling):
    """Integers in [0, 10n]."""

    table = "date-nagi-table5"
    is_weak = False
    shows = "Date & Nagi's Table 5: strong scaling: messages of shards, seconds of one."
    takes = "2 minutes; seconds with --quick"
    quick = Problems((90,))
    cpu = Problems((1000, 1414, 2000))
    gpu = Problems((10_000, 14_142, 20_000), instances=1, device="gpu")


PAPER = Table5()
