"""Date & Nagi's Table 4: weak scaling, sqrt(2) times as many rows for each doubling of the shards."""

from __future__ import annotations

from ...paper import Problems
from ...scaling import Scaling


class Table4(Scaling):
    """Integers in [0, 10n]."""

    table = "date-nagi-table4"
    is_weak = True
    shows = "Date & Nagi's Table 4: weak scaling: messages of shards, seconds of one."
    takes = "2 minutes; seconds with --quick"
    quick = Problems((60,))
    cpu = Problems((500, 1000))
    gpu = Problems((10_000,), instances=3, device="gpu")


PAPER = Table4()
