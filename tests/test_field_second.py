"""Inputs met in the field, the second set: each was wrong or lost before, or gave numbers without a word."""

import os
from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import assert_refused, run, succeed

from outbid import Detections, Tracks, measure, read_record, read_tracks, write_tracks


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


@pytest.mark.usefixtures("here")
def test_names_of_files_that_are_not_utf8() -> None:
    """Case 31: a zip made on Windows, a micro sign in Latin-1."""
    name = Path(os.fsdecode(b"5\xb5m.csv"))
    name.write_text(
        "frame,track_id,y,x\n" + "".join(f"{t},{i},{9 * i},{t}\n" for t in range(3) for i in "01")
    )
    for output in ("out.csv", "out.parquet", os.fsdecode(b"2\xb5m.csv")):
        succeed("convert", name, output)
        assert read_record(output)["input"]["name"] == name.name
        assert read_tracks(output).track_count == 2


def spots(*, white: bool = False) -> None:
    """Cases 35 and 40: two frames of 9 spots in m.tif."""
    rng = np.random.default_rng(0)
    yy, xx = np.mgrid[:40, :40]
    image = np.full((2, 40, 40), 20.0)
    for y in (8, 20, 32):
        for x in (8, 20, 32):
            image += 150 * np.exp(-((yy - y) ** 2 + (xx - x) ** 2) / 4.5)
    grey = rng.poisson(image).clip(0, 255).astype("u1")
    kind = "miniswhite" if white else "minisblack"
    tifffile.imwrite("m.tif", 255 - grey if white else grey, photometric=kind, metadata={"axes": "TYX"})


@pytest.mark.usefixtures("here")
def test_a_radius_in_another_unit_is_said() -> None:
    spots()
    options = ("-o", "o.csv", "--threshold", 8, "--overwrite", "--workers", 1)
    small = succeed("detect", "m.tif", *options, "--radius", 0.01).stderr
    assert "smaller than half a voxel" in small
    assert "another unit" not in succeed("detect", "m.tif", *options, "--radius", 1.5).stderr
    assert_refused(run("detect", "m.tif", *options, "--radius", 500), 2, "larger than half", "another unit")


@pytest.mark.usefixtures("here")
def test_white_is_zero_is_said() -> None:
    spots(white=True)
    assert "--dark" in succeed("detect", "m.tif", "-o", "o.csv", "--workers", 1).stderr
    assert "white" not in succeed("detect", "m.tif", "-o", "d.csv", "--workers", 1, "--dark").stderr


@pytest.mark.usefixtures("here")
def test_grey_values_as_labels_are_said() -> None:
    """Case 33; and label images that lie inside an OME-Zarr are named."""
    spots()
    assert "grey values" in succeed("detect", "m.tif", "--labels", "-o", "o.csv").stderr
    labels = np.kron(np.arange(16, dtype="u2").reshape(4, 4), np.ones((5, 5), "u2"))
    tifffile.imwrite("l.tif", labels[None], metadata={"axes": "TYX"})
    assert "grey" not in succeed("detect", "l.tif", "--labels", "-o", "l.csv").stderr


def walks(drift: float, seed: int = 0, tracks: int = 100) -> dict[str, np.ndarray]:
    """Cases 36 and 37: plain diffusion of .045, all of it moved along x by `drift` a frame."""
    rng, frames = np.random.default_rng(seed), 40
    place = rng.random((tracks, 2)) * 500 + rng.normal(0, 0.3, (frames, tracks, 2)).cumsum(0)
    place[..., 1] += drift * np.arange(frames)[:, None]
    frame, number = np.divmod(np.arange(frames * tracks), tracks)
    return {"frame": frame, "track_id": number, "y": place[..., 0].ravel(), "x": place[..., 1].ravel()}


def test_drift_common_to_all_tracks_is_said_and_can_be_subtracted() -> None:
    found = measure(walks(0.5))
    assert any("drift" in remark and "0.5" in remark for remark in found.remarks)
    still = measure(walks(0.5), drift="tracks")
    assert still.groups["diffusion_px2_per_frame"][0].as_py() == pytest.approx(0.045, rel=0.1)
    assert not [remark for remark in still.remarks if "together" in remark]
    assert not [remark for remark in measure(walks(0)).remarks if "together" in remark]


def test_pure_diffusion_has_no_persistence_beyond_its_error() -> None:
    beyond = 0
    for seed in range(4):
        group = measure(walks(0, seed)).groups.to_pylist()[0]
        beyond += group["persistence_frame"] > 2 * (group["persistence_error_frame"] or np.inf)
    assert beyond <= 1
