"""Where a record comes from: commit, date, machine."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import measure


def stated() -> dict[str, str]:
    """The first three entries of a record."""
    return {"commit": measure.commit(), "date": measure.today(), "machine": measure.provenance()}
