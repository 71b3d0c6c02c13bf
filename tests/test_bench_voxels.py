"""Raw voxels in sessions: what is done is kept, and the whole has the spots of one run."""

from __future__ import annotations

import json
import os
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from outbid import read_detections
from outbid.ranges import movie

SHAPE = (26, 64, 64)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no processes bound to cores")
def test_sessions_end_with_the_spots_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent / "benchmarks")
    bench_voxels = import_module("bench_voxels")
    monkeypatch.setattr(movie, "_VOXELS", 3 * 26 * 64 * 64)

    def session(name: str, lanes: int, seconds: float) -> dict[str, object] | None:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        ends = bench_voxels.Lanes(lanes, time.monotonic() + seconds)
        return bench_voxels.session(folder, 9, SHAPE, ends)

    assert session("often", 1, -1.0) is None  # over at once
    notes = json.loads((tmp_path / "often" / "sessions.json").read_text())
    assert notes[-1]["left"] == "3 of 3 ranges are left"
    found, whole = session("often", 2, 600.0), session("once", 1, 600.0)
    assert found is not None
    assert whole is not None
    assert (found["sessions"], whole["sessions"], found["ranges"]) == (2, 1, 3)
    assert found["voxels"] == 9 * 26 * 64 * 64
    assert found["spots"] == whole["spots"] > 0
    assert found["links"] == whole["links"]
    first, second = (read_detections(tmp_path / name / "spots.parquet") for name in ("often", "once"))
    np.testing.assert_array_equal(first.position, second.position)
    assert found["detect_seconds"] > 0
    assert found["peak_bytes"] >= found["peak_bytes_at_an_eighth"] > 10**8
