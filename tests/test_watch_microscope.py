"""Micro-Manager's demo camera is watched while it records."""

from pathlib import Path

import numpy as np
import pytest

from outbid import read_tracks

pytest.importorskip("pymmcore_plus", reason="needs pymmcore-plus: pip install 'outbid[microscope]'")
pytest.importorskip("mm_test_adapters", reason="needs the demo camera: pip install mm-test-adapters")


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.filterwarnings("ignore")  # those of other packages
def test_a_stage_that_turns_round_when_a_bead_is_seen(tmp_path: Path) -> None:
    from microscope import STEP, acquire

    made, events = acquire(tmp_path, "length == 5", after=8)
    assert made["live"]["missing"] == 0
    assert (
        made["live"]["frames"] <= 8 + 8 + 2
    )  # those learned from, those after the turn, and those on the way
    assert made["live"]["events"] == len(events) > 50
    tracks = read_tracks(tmp_path / "tracks.parquet")
    place, frame = tracks.detections.position, tracks.detections.frame
    step = np.median(np.diff(place[tracks.links], axis=1)[:, 0, 2][frame[tracks.links[:, 1]] <= 4])
    last = np.median(
        np.diff(place[tracks.links], axis=1)[:, 0, 2][frame[tracks.links[:, 1]] >= frame.max() - 2]
    )
    assert step == pytest.approx(-STEP, abs=0.05)
    assert last == pytest.approx(STEP, abs=0.05)
