"""The command `outbid view`: a picture without a display, and what it says where something is missing."""

import importlib.util
import os
import sys
from pathlib import Path
from shutil import which

import numpy as np
import pytest
import tifffile
from commands import assert_refused, headless, run

from outbid import Detections, Images, Tracks, write_detections, write_tracks
from outbid.viewers.opened import open_files, scene_of
from outbid.viewers.scene import Grid, scene

FRAMES, HEIGHT, WIDTH = 8, 40, 60


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Two spots that move along x, 20 apart along y; the tracks exchange them half-way."""
    frame, particle = np.divmod(np.arange(2 * FRAMES), 2)
    place = np.column_stack([np.zeros(len(frame)), 10.0 + 20 * particle, 12.0 + 5 * frame])
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    movie = np.zeros((FRAMES, HEIGHT, WIDTH), np.uint16)
    for t, (_, row, column) in zip(frame, place, strict=True):
        movie[t] += (1000 * np.exp(-((y - row) ** 2 + (x - column) ** 2) / 4)).astype(np.uint16)
    seen = Detections.from_table(frame, place)
    swapped = np.where(frame < FRAMES // 2, particle, 1 - particle)
    paths = {name: tmp_path / name for name in ("movie.tif", "spots.csv", "tracks.csv", "truth.csv")}
    tifffile.imwrite(paths["movie.tif"], movie, imagej=True, metadata={"axes": "TYX"})
    write_detections(paths["spots.csv"], seen)
    write_tracks(paths["tracks.csv"], Tracks.from_track_ids(seen, swapped))
    write_tracks(paths["truth.csv"], Tracks.from_track_ids(seen, particle))
    return paths


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where pictures are kept that somebody may want to look at."""
    folder = Path(os.environ.get("OUTBID_PICTURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.usefixtures("window")  # napari runs there with settings of its own
def test_the_window_holds_all_with_scale_units_and_labels(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from outbid.viewers.window import open_window

    stack = np.repeat(tifffile.imread(files["movie.tif"])[:, None], 3, axis=1)
    metadata = {"axes": "TZYX", "spacing": 2.0, "unit": "um"}
    tifffile.imwrite(files["movie.tif"], stack, imagej=True, resolution=(4, 4), metadata=metadata)
    asked: list[int] = []
    read = Images.frames
    monkeypatch.setattr(Images, "frames", lambda self, numbers: asked.extend(numbers) or read(self, numbers))
    found = open_files([files["movie.tif"], files["spots.csv"], files["tracks.csv"]], files["truth.csv"])
    viewer = open_window("all", scene_of(found), found.movie)
    try:
        shown = {layer.name: layer.visible for layer in viewer.layers}
        assert shown == {
            "movie.tif": True, "spots.csv": False, "tracks.csv": False, "Truth": False, "True links": True,
            "False links": True, "Missed links": True, "Errors": True,
        }  # fmt: skip
        for layer in viewer.layers:
            assert tuple(layer.scale) == (1, 2, 0.25, 0.25), layer.name
            assert tuple(map(str, layer.units)) == ("pixel", *["micrometer"] * 3), layer.name
            assert tuple(layer.axis_labels) == ("t", "z", "y", "x"), layer.name
        assert viewer.dims.ndisplay == 3
        assert viewer.dims.axis_labels == ("t", "z", "y", "x")
        assert viewer.layers["movie.tif"].data.shape == (FRAMES, 3, HEIGHT, WIDTH)
        viewer.dims.set_point(0, 7)
        assert set(asked) < set(range(FRAMES)), "not all frames were needed"
        assert 7 in asked
        # The spots lie on the image: voxels under them are bright.
        points = viewer.layers["spots.csv"].data.round().astype(int)
        assert (np.asarray(viewer.layers["movie.tif"].data)[tuple(points.T)] > 900).all()
    finally:
        viewer.close()


@pytest.mark.usefixtures("window")
def test_a_picture_is_of_the_last_frame_wherever_tracks_begin() -> None:
    from outbid.viewers.window import open_window, png_of

    seen = Detections.from_table(np.arange(10, 21), np.arange(33).reshape(11, 3))
    late = scene(Grid(), {}, {"late": Tracks.from_track_ids(seen, np.zeros(11))})
    viewer = open_window("late", late)
    try:
        for asked, shown in ((None, 20), (15, 15)):
            png_of(viewer, late, asked)
            assert viewer.dims.point[0] == shown
            assert viewer.canvas.overlays.text.text.startswith(f"frame {shown} ")
    finally:
        viewer.close()


needs_napari = pytest.mark.skipif(
    importlib.util.find_spec("napari") is None, reason="napari is not installed: pip install 'outbid[napari]'"
)
needs_xvfb = pytest.mark.skipif(which("Xvfb") is None, reason="Xvfb is not installed: apt-get install xvfb")


@pytest.mark.smoke
@needs_napari
@needs_xvfb
def test_a_picture_of_movie_tracks_and_truth_needs_no_display(files: dict[str, Path], pictures: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    picture = pictures / "view_truth.png"
    done = headless(
        files["movie.tif"], files["tracks.csv"], "--truth", files["truth.csv"], "--screenshot", picture,
        "--overwrite",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    gate, shown_layers = done.stderr.splitlines()
    assert (
        gate
        == "Gate: 10 pixel, half of the median distance from a true detection to the nearest in its frame."
    )
    assert shown_layers.startswith("movie.tif, True links, False links, Missed links, Errors; ")
    seen = np.asarray(pillow.open(picture)).astype(int)
    assert seen.shape == (800, 1200, 3)  # as the movie, the longer side 1200
    red, green, blue = np.moveaxis(seen, -1, 0)
    shown = {
        "true": (green > 120) & (red < 100) & (blue < 100),
        "false": (red > 150) & (green < 60) & (blue < 60),
        "missed": (blue > 150) & (red < 60),
        "spots": (red > 200) & (green > 200) & (blue > 200),
    }
    assert {name: bool(of.sum() > 50) for name, of in shown.items()} == dict.fromkeys(shown, True)
    # The false links cross from one row of spots to the other; the true ones stay in theirs.
    rows = {name: np.nonzero(of)[0] * HEIGHT / 800 for name, of in shown.items()}
    assert np.ptp(rows["false"]) > 15
    assert np.abs(rows["true"][:, None] - [10, 30]).min(axis=1).max() < 3
    assert not list(Path.cwd().glob("*.yaml"))


@needs_napari
@needs_xvfb
def test_a_picture_of_stacks_at_a_frame(files: dict[str, Path], tmp_path: Path, pictures: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    movie = np.repeat(tifffile.imread(files["movie.tif"])[:, None], 5, axis=1)
    for number, stack in enumerate(movie):
        tifffile.imwrite(stacks / f"t{number}.tif", stack, metadata={"axes": "ZYX"})
    picture = pictures / "view_stacks.png"
    done = headless(
        stacks, files["spots.csv"], "--spacing", 4, 1, 1, "--frame", 2, "--screenshot", picture, "--overwrite"
    )
    assert done.returncode == 0, done.stderr
    seen = np.asarray(pillow.open(picture)).astype(int)
    yellow = (seen[..., 0] > 150) & (seen[..., 2] < 120) & (seen[..., 1] > 100)
    y, x = (where.mean() for where in np.nonzero(yellow))
    scale = seen.shape[1] * 0.92 / WIDTH
    middle = np.array(seen.shape[:2]) / 2
    # Both rings of frame 2 are at x = 22, around the middle along y.
    np.testing.assert_allclose(y, middle[0] + (20 - (HEIGHT - 1) / 2) * scale, atol=12)
    np.testing.assert_allclose(x, middle[1] + (22 - (WIDTH - 1) / 2) * scale, atol=12)
    late = tmp_path / "late.png"
    assert_refused(
        run("view", files["spots.csv"], "--frame", 99, "--screenshot", late), 2, "no frame 99; there"
    )
    assert_refused(run("view", files["spots.csv"], "--frames", 50, 60, "--screenshot", late), 2, "--frames")


@needs_napari
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is always a display")
def test_what_is_missing_is_said(files: dict[str, Path], tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    done = headless(files["spots.csv"])
    assert (done.returncode, done.stdout) == (4, "")
    assert "no display" in done.stderr
    assert "--screenshot" in done.stderr
    done = headless(files["spots.csv"], "--screenshot", picture, env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (4, "")
    assert "apt-get install xvfb" in done.stderr
    broken = {"DISPLAY": ":4711", "QT_QPA_PLATFORM": "xcb"}
    done = headless(files["spots.csv"], "--screenshot", picture, env=broken)
    assert (done.returncode, done.stdout) == (4, "")
    assert "Qt cannot open a window" in done.stderr
    assert not picture.exists()


def test_a_missing_napari_is_said(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbid.viewers.screen.find_spec", lambda _: None)
    assert_refused(run("view", files["spots.csv"]), 4, "pip install 'outbid[napari]'")


def test_options_that_make_no_sense_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    missing = tmp_path / "movie.tif"
    done = run("view", missing, "--screenshot", tmp_path / "a.jpg")
    assert done.exit_code == 2
    assert ".png" in done.stderr
    assert run("view", missing, "--frame", 3).exit_code == 2
    (tmp_path / "there.png").touch()
    assert_refused(run("view", missing, "--screenshot", tmp_path / "there.png"), 2, "--overwrite")
    assert_refused(run("view", missing), 3, "There is no file")
