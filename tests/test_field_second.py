"""Inputs met in the field, the second set: each was wrong or lost before, or gave numbers without a word."""

from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import succeed

from outbid import Detections, Tracks, write_tracks


@pytest.mark.usefixtures("here")
def test_masks_of_more_tracks_than_16_bits_hold() -> None:
    side = 260
    labels = np.arange(1, side * side + 1, dtype=np.uint32).reshape(1, side, side)
    tifffile.imwrite("m.tif", labels, metadata={"axes": "TYX"}, photometric="minisblack")
    y, x = np.divmod(np.arange(side * side), side)
    seen = Detections.from_table(np.zeros(side * side), np.column_stack([0 * y, y, x]).astype(float))
    write_tracks("t.csv", Tracks(seen, np.empty((0, 2), np.int64)))
    done = succeed("convert", "m.tif", "t.csv", "01_RES")
    assert "32 bits" in done.stderr
    mask = tifffile.imread("01_RES/mask000.tif")
    assert (mask.dtype, len(np.unique(mask))) == (np.uint32, side * side)
    assert len(Path("01_RES/res_track.txt").read_text().splitlines()) == side * side
