"""The same numbers at the doors of images: their voxels, interval and origin reach detections and tracks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run, succeed, written
from doors import INTERVAL, VOXEL

from outbid import (
    Detections,
    Tracks,
    read_detections,
    read_tracks,
    write_tracks,
)
from outbid.formats.images.opening import open_images
from outbid.particles.calibration import Calibration
from outbid.work.chunks.movie import How, detect_in_chunks
from outbid.work.jobs import DetectJob


@pytest.fixture(scope="module")
def movie(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("movie")
    succeed(
        "simulate", "-o", folder / "truth.csv", "--movie", folder / "movie.ome.tif", "--box", 6, 24, 24,
        "--voxel", *VOXEL, "--psf", 1, 0.6, 0.6, "--particles", 12, "--frames", 4, "--frame-interval",
        INTERVAL, "--step", 0.5, "--snr", 8, "--seed", 3,
    )  # fmt: skip
    return folder / "movie.ome.tif"


def test_the_truth_of_a_movie_has_its_interval(movie: Path) -> None:
    seen = read_tracks(movie.with_name("truth.csv")).detections
    assert seen.calibration == Calibration("micrometer", interval=INTERVAL)


def _detected(movie: Path, folder: Path, more: tuple[str, ...] = ()) -> Path:
    done = succeed("detect", movie, "-o", folder / "spots.csv", *more)
    assert "positions in µm, times in s" in done.stderr
    return folder / "spots.csv"


def _detected_many(movie: Path, folder: Path) -> Path:
    succeed("detect", movie, "--out-dir", folder / "many")
    return next((folder / "many").glob("*.csv"))


def _detected_in_chunks(movie: Path, folder: Path) -> Path:
    detect_in_chunks(str(movie), folder / "spots.csv", DetectJob(), How())
    return folder / "spots.csv"


MOVIE_DOORS: dict[str, Callable[[Path, Path], Path]] = {
    "detect": _detected,
    "detect --out-dir": _detected_many,
    "detect --cluster": _detected_in_chunks,
    "detect --region": partial(_detected, more=("--region", ":,0:60,0:60")),
}


@pytest.mark.parametrize("door", MOVIE_DOORS)
def test_detections_of_a_movie_are_in_its_units(door: str, movie: Path, tmp_path: Path) -> None:
    seen = read_detections(MOVIE_DOORS[door](movie, tmp_path))
    assert seen.calibration == Calibration("micrometer", interval=INTERVAL)
    true = read_detections(movie.with_name("truth.csv"))
    near = [
        np.linalg.norm(true.position[true.rows_of(frame)] - place, axis=1).min()
        for frame, place in zip(seen.frame.tolist(), seen.position, strict=True)
    ]
    assert np.median(near) < 0.1


def zarr_of(movie: Path, folder: Path, axes: list[dict[str, str]], *transforms: dict[str, object]) -> Path:
    """The movie as OME-Zarr with these axes and coordinate transformations."""
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(folder / "movie.zarr", mode="w", zarr_format=2)
    pixels = np.stack([*open_images(movie).frames()])
    group.create_array("0", data=pixels)
    each = {"path": "0", "coordinateTransformations": list(transforms)}
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": [each]}]
    return folder / "movie.zarr"


SPACE = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
AXES = [{"name": "t", "type": "time", "unit": "second"}, *SPACE]
SCALE = {"type": "scale", "scale": [INTERVAL, *VOXEL]}


def test_the_origin_of_a_movie_is_kept(movie: Path, tmp_path: Path) -> None:
    shift = np.array([5.0, -30.0, 100.0])
    moved = zarr_of(movie, tmp_path, AXES, SCALE, {"type": "translation", "translation": [0, *shift]})
    assert open_images(moved).calibration == Calibration("micrometer", VOXEL, INTERVAL, (5, -30, 100))
    (tmp_path / "a").mkdir()
    plain = read_detections(_detected(movie, tmp_path / "a"))
    seen = read_detections(_detected(moved, tmp_path))
    assert np.allclose(seen.position, plain.position + shift)
    on = seen.on_grid(open_images(moved).calibration)
    assert np.allclose(on.position, plain.position / VOXEL)


def test_a_translation_before_a_scale_is_scaled(movie: Path, tmp_path: Path) -> None:
    moved = zarr_of(movie, tmp_path, AXES, {"type": "translation", "translation": [0, 1, 1, 10]}, SCALE)
    assert open_images(moved).origin == (1, 0.4, 4)


def test_masks_are_found_from_the_origin_of_their_images(movie: Path, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    shift = {"type": "translation", "translation": [0, 5.0, -30.0, 100.0]}
    path = zarr_of(movie, tmp_path, AXES, SCALE, shift)
    masks = np.zeros((4, 7, 61, 61), np.uint16)
    masks[:, 3, 10:13, 20:23] = 9
    group = zarr.open_group(path, mode="r+")
    del group["0"]
    group.create_array("0", data=masks)
    succeed("detect", path, "--labels", "-o", tmp_path / "spots.csv")
    assert np.allclose(read_detections(tmp_path / "spots.csv").position, (5 + 3, -30 + 4.4, 100 + 8.4))
    succeed("track", tmp_path / "spots.csv", "-o", tmp_path / "t.csv", "--max-distance", 1)
    tracks = read_tracks(tmp_path / "t.csv")
    bare = replace(tracks, detections=replace(tracks.detections, features={}))
    write_tracks(tmp_path / "bare.csv", bare)
    succeed("convert", path, tmp_path / "bare.csv", tmp_path / "out.tif")
    assert np.array_equal(np.stack([*open_images(tmp_path / "out.tif").frames()]), masks // 9)


@pytest.mark.parametrize(
    "units", [("pixel", None, None), ("nanometer", None, None), ("nanometer", "pixel", "pixel")]
)
def test_a_tilted_unit_is_refused_in_images(
    units: tuple[str | None, ...], movie: Path, tmp_path: Path
) -> None:
    axes = [
        {"name": n, "type": "space"} | ({"unit": u} if u else {}) for n, u in zip("zyx", units, strict=True)
    ]
    path = zarr_of(movie, tmp_path, [AXES[0], *axes], SCALE)
    if units[0] == "pixel":
        assert open_images(path).unit == "pixel"
        return
    assert_refused(run("detect", path, "-o", tmp_path / "s.csv"), 3, "different units", "z in nanometer")


def test_a_tilted_unit_is_refused_in_tables(tmp_path: Path) -> None:
    path = written(tmp_path / "s.csv", "frame,z [nm],y [px],x [px]\n0,100,1,1\n1,200,1,2\n")
    assert_refused(run("track", path, "-o", tmp_path / "t.csv"), 3, "nanometer beside pixel")


def test_sizes_of_voxels_in_several_units_become_one(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    sizes = {"PhysicalSizeX": 0.4, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 400, "PhysicalSizeYUnit": "nm"}
    sizes |= {"PhysicalSizeZ": 1000, "PhysicalSizeZUnit": "nm", "axes": "TZYX"}
    path = tmp_path / "m.ome.tif"
    tifffile.imwrite(path, np.zeros((2, 3, 8, 8), np.uint16), metadata=sizes)
    assert (open_images(path).spacing, open_images(path).unit) == (VOXEL, "micrometer")
    pixels = {
        "PhysicalSizeX": 1,
        "PhysicalSizeXUnit": "pixel",
        "PhysicalSizeY": 1,
        "PhysicalSizeYUnit": "pixel",
    }
    tifffile.imwrite(path, np.zeros((2, 3, 8, 8), np.uint16), metadata=sizes | pixels)
    assert_refused(run("detect", path, "-o", tmp_path / "s.csv"), 3, "pixel along x", "nanometer along z")


@pytest.mark.parametrize("ways", [("micrometer", "nanometer"), ("micrometer", "pixel")])
def test_labels_that_do_not_fit_the_unit_of_tracks(
    ways: tuple[str, str], movie: Path, tmp_path: Path
) -> None:
    """Images without a size of voxels cannot be matched with positions in micrometers."""
    path = zarr_of(movie, tmp_path, [AXES[0], *({**axis, "unit": ways[1]} for axis in SPACE)], SCALE)
    tracks = Tracks(Detections.from_table([0], [[1, 2, 2]], unit=ways[0]), np.empty((0, 2), np.int64))
    write_tracks(tmp_path / "t.csv", tracks)
    done = run("convert", path, tmp_path / "t.csv", tmp_path / "out.tif")
    assert (done.exit_code == 0) == (ways[1] == "nanometer"), done.output


def test_several_movies_state_their_units(movie: Path, tmp_path: Path) -> None:
    for command, source in (("track", movie.with_name("truth.csv")), ("detect", movie)):
        done = succeed(command, source, "--out-dir", tmp_path / command)
        assert done.stderr.splitlines()[-1].startswith(
            "1 done, 0 kept, 0 failed; positions in µm, times in s"
        )
