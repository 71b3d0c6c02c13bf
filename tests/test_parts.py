"""A part of a movie: region, frames and mask, for detection and for tracks."""

from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import assert_refused, run, succeed
from containers import SPACING, VOXELS, hdf5, tiff

from outbid import Detections, SettingsError, TrackingSettings, read_detections, read_tracks, track
from outbid.edit.crop import Crop, track_part
from outbid.work.jobs import DetectionSettings, DetectJob, Opening

REGION = ":,8:30,10:40"


def spots(path: Path, *options: object) -> Detections:
    output = path.with_name("spots.csv")
    succeed(
        "detect",
        path,
        "-o",
        output,
        "--radius",
        1.5,
        "--threshold",
        15,
        "--overwrite",
        *options,
    )
    return read_detections(output)


def rows(seen: Detections) -> list[tuple[int, ...]]:
    """Rounded, for what the filters work on is rounded after the mean of what is read is taken off."""
    return [(int(f), *p) for f, p in zip(seen.frame, np.rint(seen.position * 2**14).tolist(), strict=True)]


@pytest.mark.parametrize("write", [tiff, hdf5])
def test_a_region_finds_what_the_whole_movie_has_there(write: object, tmp_path: Path) -> None:
    path = write(tmp_path)  # type: ignore[operator]
    whole = spots(path)
    part = spots(path, "--region", REGION, "--frames", "1:")
    y, x = (whole.position / SPACING).T[1:]
    inside = (whole.frame >= 1) & (y >= 8) & (y < 30) & (x >= 10) & (x < 40)
    assert 3 < inside.sum() < len(whole)
    done = run(
        "detect", path, "-o", path.with_name("n.csv"), "--radius", 1.5, "--frames", "1:", "--overwrite"
    )
    assert "in 2 frames" in done.stderr
    assert rows(part) == rows(whole.take(inside))
    halves = [rows(spots(path, "--region", f":,{side},:")) for side in (":17.5", "17.5:")]
    assert sorted(halves[0] + halves[1]) == sorted(rows(whole))
    frames = [rows(spots(path, "--frames", f"{a}:{a + 1}")) for a in range(3)]
    assert frames[0] + frames[1] + frames[2] == rows(whole)


def test_a_mask_of_one_frame_or_of_all(tmp_path: Path) -> None:
    path = tiff(tmp_path)
    whole = spots(path)
    mask = np.zeros(VOXELS.shape[1:], np.uint8)
    mask[:, 8:30, 10:40] = 7
    tifffile.imwrite(tmp_path / "one.tif", mask, imagej=True, metadata={"axes": "ZYX"})
    found = spots(path, "--mask", tmp_path / "one.tif")
    at = np.floor(whole.position / SPACING + 0.5).astype(int)
    inside = mask[tuple(at.T)] != 0
    assert 3 < inside.sum() < len(whole)
    assert rows(found) == rows(whole.take(inside))
    many = np.stack([mask, mask * 0, mask * 0 + 1])
    tifffile.imwrite(tmp_path / "all.tif", many, imagej=True, metadata={"axes": "TZYX"})
    found = spots(path, "--mask", tmp_path / "all.tif")
    kept = (inside & (whole.frame == 0)) | (whole.frame == 2)
    assert rows(found) == rows(whole.take(kept))
    tifffile.imwrite(tmp_path / "small.tif", mask[:, :9], imagej=True, metadata={"axes": "ZYX"})
    done = run("detect", path, "-o", tmp_path / "b.csv", "--mask", tmp_path / "small.tif")
    assert_refused(done, 3, "Give a mask of the same size")


def crossing() -> Detections:
    """Two particles that cross the border of a region, one back and forth, and one that stays inside."""
    frame = np.arange(8)
    leaves = np.column_stack([0 * frame, 0 * frame, 2.0 * frame])
    swings = np.column_stack([0 * frame, 20 + 0 * frame, [6.0, 8, 10, 11, 10, 8, 6, 4]])
    stays = np.column_stack([0 * frame, 40 + 0 * frame, 3 + 0.1 * frame])
    return Detections.from_table(np.tile(frame, 3), np.concatenate([leaves, swings, stays]))


@pytest.mark.smoke
def test_a_path_that_leaves_ends_there_and_is_not_joined_again() -> None:
    run = track_part(crossing(), TrackingSettings(max_distance=4.0, max_gap=3), Crop(region=":,:,:9"))
    seen = run.tracks.detections
    assert (seen.position[:, 2] < 9).all()
    ids = [run.tracks.track_id[seen.position[:, 1] == y] for y in (0, 20, 40)]
    assert [len(set(each.tolist())) for each in ids] == [1, 2, 1]
    assert (run.stats["leave"], run.stats["enter"], run.stats["gap_links"]) == (2, 1, 0)
    assert run.stats["links"] == len(run.tracks.links)
    assert run.stats["tracks"] == run.tracks.track_count == 4
    assert run.tracks.link_cost is not None
    assert len(run.tracks.link_cost) == len(run.tracks.links)


def test_leaving_is_no_death_to_what_is_learned() -> None:
    """A drift across the border: within the region alone all ends would be deaths."""
    rng = np.random.default_rng(0)
    frame, n = np.repeat(np.arange(12), 100), 100
    start = rng.uniform(0, 60, (n, 3))
    steps = np.cumsum(rng.normal(0, 0.1, (12, n, 3)) + np.array([0, 0, 1.5]), axis=0)
    seen = Detections.from_table(frame, (start + steps).reshape(-1, 3))
    whole = track(seen).learned
    part = track_part(seen, crop=Crop(region=":,:,20:50"))
    assert whole is not None
    assert part.learned is not None
    assert part.learned.end == whole.end
    assert int(part.stats["leave"]) > 20
    cut = track(seen.take((seen.position[:, 2] >= 20) & (seen.position[:, 2] < 50))).learned
    assert cut is not None
    assert cut.end > 2 * part.learned.end


@pytest.mark.smoke
def test_the_command_and_its_record(tmp_path: Path) -> None:
    from outbid import read_record, write_detections

    write_detections(tmp_path / "a.csv", crossing())
    options = ["--max-distance", 4, "--region", ":,:,:9", "--frames", "1:7"]
    succeed("track", tmp_path / "a.csv", "-o", tmp_path / "t.csv", *options)
    tracks = read_tracks(tmp_path / "t.csv")
    assert {*tracks.detections.frame.tolist()} == {*range(1, 7)}
    settings = read_record(tmp_path / "t.csv")["settings"]
    assert (settings["region"], settings["frames"]) == (":,:,:9", "1:7")
    succeed("track", tmp_path / "a.csv", "-o", tmp_path / "u.csv", "--config", tmp_path / "t.csv.json")
    assert (tmp_path / "u.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()
    mask = np.ones((1, 30, 9), np.uint8)
    tifffile.imwrite(tmp_path / "m.tif", mask, imagej=True, metadata={"axes": "ZYX"})
    output = ["-o", tmp_path / "v.csv", "--max-distance", 4]
    succeed("track", tmp_path / "a.csv", *output, "--mask", tmp_path / "m.tif")
    assert read_tracks(tmp_path / "v.csv").detections.position[:, 1].max() == 20
    for wrong in (["--region", "1,2,3"], ["--region", ":,:"], ["--frames", "5"], ["--frames", "7:3"],
                  ["--frames", "1.5:2"], ["--region", ":,:,9:9"]):  # fmt: skip
        assert_refused(run("track", tmp_path / "a.csv", "-o", tmp_path / "w.csv", *wrong), 2)
    wrong = ["--frames", "2:9", "--radius", "1.5"]
    assert_refused(run("detect", tiff(tmp_path), "-o", tmp_path / "w.csv", *wrong), 2, "there are 3")


@pytest.mark.smoke
def test_only_what_the_region_needs_is_read(tmp_path: Path) -> None:
    path = hdf5(tmp_path)
    job = DetectJob(DetectionSettings(radius=1.0), opening=Opening(), crop=Crop(region="0:1,0:4,0:4"))
    cut = job.crop.bounds().of(job.opening.open(str(path)), (1.0, 1.0))
    assert cut.box == (slice(0, 3), slice(0, 12), slice(0, 12))
    with pytest.raises(SettingsError, match="region along y"):
        Crop(region=":,40:50,:").bounds().of(job.opening.open(str(path)))
