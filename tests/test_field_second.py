"""Inputs met in the field, the second set: each was wrong or lost before, or gave numbers without a word."""

from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import assert_refused, run, succeed

from outbid import Detections, Tracks, read_tracks, write_tracks


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


@pytest.mark.usefixtures("here")
def test_conditions_on_texts() -> None:
    Path("t.csv").write_text("track_id,frame,y,x,type\n0,0,1,1,A\n0,1,1,2,A\n1,0,9,9,B b\n1,1,9,8,B b\n")
    for condition, kept in (("type == A", 1), ("type != A", 1), ("type == 'B b'", 1), ("type == C", 0)):
        succeed("filter", "t.csv", "-o", "o.csv", "--overwrite", "--where", condition)
        assert read_tracks("o.csv").track_count == kept, condition
    assert_refused(run("filter", "t.csv", "-o", "p.csv", "--where", "type > A"), 2, "not a condition")
    assert_refused(run("filter", "t.csv", "-o", "p.csv", "--where", "x == A"), 2, "holds numbers")
    assert_refused(run("filter", "t.csv", "-o", "p.csv", "--where", "kind == A"), 3, "kind")
