"""Layers of `outbid view`, without a window: one grid, frames that fit, frames read when viewed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile

from outbid import Detections, InputError, SettingsError, Tracks, write_detections, write_tracks
from outbid.formats.images.folders import open_movie
from outbid.viewers.layers import tracks_layer
from outbid.viewers.opened import open_files, scene_of
from outbid.viewers.scene import (
    LAST_FRAME,
    Grid,
    contrast_of,
    grid_of,
    in_frames,
    on_grid,
    point_size,
    scene,
    share_outside,
)

VOXELS = np.random.default_rng(0).integers(0, 60_000, (5, 3, 8, 10), dtype=np.uint16)
MICROMETRES = {"spacing": 2.0, "unit": "um"}


def movie_file(folder: Path, **metadata: object) -> Path:
    path = folder / "movie.tif"
    tifffile.imwrite(
        path, VOXELS, imagej=True, resolution=(4, 4), metadata={"axes": "TZYX", **(metadata or MICROMETRES)}
    )
    return path


def straight(frames: int, particles: int = 2, unit: str = "pixel") -> Tracks:
    """Particles that move along x by 1 a frame, 4 apart along y."""
    frame, particle = np.divmod(np.arange(frames * particles), particles)
    position = np.column_stack([np.zeros(len(frame)), 4.0 * particle, frame])
    return Tracks.from_track_ids(Detections.from_table(frame, position, unit=unit), particle)


def test_contrast_leaves_out_hot_voxels_and_nan() -> None:
    frame = np.full((1, 100, 100), 7.0)
    frame[0, :50] = 3.0
    frame[0, 0, :3] = [1e9, np.nan, np.inf]
    assert contrast_of(frame) == (3.0, 7.0)
    assert contrast_of(np.zeros((1, 2, 2))) == (0.0, 1.0)
    assert contrast_of(np.full((1, 2, 2), np.nan)) == (0.0, 1.0)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("unit", "in_voxels", "expected"),
    [
        ("pixel", None, [1.0, 2.0, 3.0]),  # the grid is in micrometres, so these are voxels
        ("micrometer", None, [0.5, 8.0, 12.0]),
        ("nanometer", None, [0.0005, 0.008, 0.012]),
        ("micrometer", True, [1.0, 2.0, 3.0]),
        ("pixel", False, [0.5, 8.0, 12.0]),
        ("nanometer", False, [0.0005, 0.008, 0.012]),
    ],
)
def test_positions_go_onto_the_grid(unit: str, in_voxels: bool | None, expected: list[float]) -> None:
    grid = Grid((2.0, 0.25, 0.25), "micrometer")
    seen = Detections.from_table([0], [[1, 2, 3]], unit=unit)
    placed = on_grid(seen, grid, in_voxels=in_voxels)
    np.testing.assert_allclose(placed.position, [expected])
    assert placed.unit == "micrometer"


def test_without_units_positions_are_in_that_of_the_voxel_size() -> None:
    seen = Detections.from_table([0], [[10, 2, 3]])
    assert on_grid(seen, Grid((5, 1, 1))).position.tolist() == [[2, 2, 3]]
    assert on_grid(seen, Grid((5, 1, 1)), in_voxels=True).position.tolist() == [[10, 2, 3]]


def test_units_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SettingsError, match="--positions"):
        on_grid(Detections.from_table([0], [[0, 0, 0]], unit="inch"), Grid(unit="micrometer"))


def test_the_unit_comes_from_the_movie_else_from_positions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    measured = Detections.from_table([0], [[0, 0, 0]], unit="micrometer")
    assert grid_of(open_movie(movie_file(tmp_path)), [measured]) == Grid((2.0, 0.25, 0.25), "micrometer")
    plain = open_movie(movie_file(tmp_path, unit="pixel"))
    assert caplog.text == ""
    assert grid_of(plain, [measured]) == Grid((1, 1, 1), "micrometer")
    assert "--spacing" in caplog.text
    caplog.clear()
    assert grid_of(replace(plain, spacing=(3, 1, 1)), [measured]) == Grid((3, 1, 1), "micrometer")
    assert caplog.text == ""


@pytest.mark.smoke
def test_all_layers_share_scale_and_unit() -> None:
    tracks = straight(4, unit="micrometer")
    grid = Grid((2.0, 0.25, 0.25), "micrometer")
    shown = scene(grid, {"spots": tracks.detections}, {"tracks": tracks}, tracks)
    assert {layer.scale for layer in shown.layers} == {(1, 2.0, 0.25, 0.25)}
    assert {layer.unit for layer in shown.layers} == {"micrometer"}
    # The speed is that of the particles, not of their voxels.
    assert shown.layers[1].features["speed"].tolist() == [0.25] * 8


def test_a_truth_shows_what_links_are_and_hides_the_rest() -> None:
    truth = straight(6)
    found = replace(truth, links=truth.links[truth.links[:, 0] != 4])
    shown = scene(Grid(), {"spots": truth.detections}, {"tracks": found}, truth)
    assert shown.hidden == {"spots", "tracks", "Truth"}
    names = {layer.name: len(layer.data) for layer in shown.layers}
    assert names == {
        "spots": 12, "tracks": 12, "Truth": 12, "True links": 12, "False links": 0, "Missed links": 2,
        "Errors": 1,
    }  # fmt: skip
    assert shown.legend == "links: green true, red false, blue missed"


@pytest.mark.smoke
def test_links_are_judged_in_the_unit_of_the_grid() -> None:
    truth = straight(6)
    moved = replace(truth, detections=replace(truth.detections, position=truth.detections.position + 3.0))
    right = [
        len(scene(Grid((size,) * 3), {}, {"tracks": moved}, truth, gate=4).layers[2].data)
        for size in (1, 0.5)
    ]
    assert right[1] == 12  # 3 voxels along each axis are 2.6 units
    assert right[0] < 12  # or 5.2, farther than the next particle


def test_too_many_vertices_are_cut_to_the_first_frames_and_it_is_reported() -> None:
    shown = scene(Grid(), {"spots": straight(50).detections}, {"tracks": straight(50)}, most=30)
    assert [layer.data[:, -4].max() for layer in shown.layers] == [14, 14]
    assert "frames 0 to 14" in shown.cut
    assert "100 vertices" in shown.cut
    around = [scene(Grid(), {}, {"tracks": straight(50)}, around=t, most=30) for t in (20, LAST_FRAME)]
    shown_frames = [np.unique(of.layers[0].data[:, 1]).tolist() for of in around]
    assert shown_frames == [list(range(13, 28)), list(range(35, 50))]
    assert scene(Grid(), {}, {"tracks": straight(15)}, most=30).cut == ""
    # A single frame that is too large is shown all the same.
    assert scene(Grid(), {}, {"tracks": straight(3, 40)}, most=30).layers[0].data[:, 1].max() == 0


def test_frames_that_are_asked_for_are_shown() -> None:
    shown = scene(Grid(), {}, {"tracks": straight(50)}, frames=(20, 29), most=30)
    assert np.unique(shown.layers[0].data[:, 1]).tolist() == list(range(20, 30))
    assert shown.cut == ""
    with pytest.raises(SettingsError, match="after the last"):
        scene(Grid(), {}, {}, frames=(3, 2))


@pytest.mark.smoke
def test_a_layer_cut_in_time_keeps_its_graph_and_numbers_from_zero() -> None:
    """Track 0 divides into 2 and 3, and 3 into 4 and 5; track 1 ends early."""
    frame = [0, 0, 1, 2, 2, 3, 3, 4, 4]
    seen = Detections.from_table(frame, np.column_stack([np.zeros(9), np.zeros(9), np.arange(9)]))
    links = np.array([[0, 2], [2, 3], [2, 4], [3, 5], [4, 6], [6, 7], [6, 8]])
    layer = tracks_layer(Tracks(seen, links))
    cut = in_frames(layer, 2, 4)
    assert np.unique(cut.data[:, 0]).tolist() == list(range(len(np.unique(cut.data[:, 0]))))
    children = {tuple(cut.data[cut.data[:, 0] == child][0, 1:]) for child in cut.graph}
    assert children == {(4, 0, 0, 7), (4, 0, 0, 8)}
    (parents,) = {tuple(parents) for parents in cut.graph.values()}
    assert cut.data[cut.data[:, 0] == parents[0]][-1, 1:].tolist() == [3, 0, 0, 6]
    assert {name: len(values) for name, values in cut.features.items()} == dict.fromkeys(cut.features, 6)


def test_points_do_not_cover_each_other() -> None:
    assert point_size(scene(Grid(), {"spots": straight(1, 50).detections}, {}).layers[0]) == 3.0  # 4 apart
    one = Detections.from_table([0], [[0, 0, 0]])
    assert point_size(scene(Grid(), {"spots": one}, {}).layers[0]) == 10.0
    assert point_size(scene(Grid(), {"spots": one.take(slice(0))}, {}).layers[0]) == 10.0


def test_files_are_distinguished_by_what_they_hold(tmp_path: Path) -> None:
    tracks = straight(5)
    (tmp_path / "again").mkdir()
    write_tracks(tmp_path / "tracks.csv", tracks)
    write_tracks(tmp_path / "again" / "tracks.csv", tracks)
    write_detections(tmp_path / "spots.csv", tracks.detections)
    files = [
        tmp_path / "spots.csv", tmp_path / "tracks.csv", movie_file(tmp_path), tmp_path / "again/tracks.csv",
    ]  # fmt: skip
    found = open_files(files, tmp_path / "tracks.csv", axes="TZYX")
    assert found.movie is not None
    assert (found.movie[0], found.movie[1].frame_count) == ("movie.tif", 5)
    assert (list(found.points), list(found.tracks)) == (["spots.csv"], ["tracks.csv", "tracks.csv (2)"])
    assert found.truth is not None
    with pytest.raises(InputError, match="both movies"):
        open_files([files[2], files[2]])
    write_detections(tmp_path / "none.csv", tracks.detections.take(slice(0)))
    with pytest.raises(InputError, match="nothing to show"):
        open_files([tmp_path / "none.csv"])


def test_positions_outside_the_movie_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tracks = straight(5)
    write_tracks(tmp_path / "tracks.csv", tracks)
    found = open_files([movie_file(tmp_path), tmp_path / "tracks.csv"])
    scene_of(found)
    assert caplog.text == ""
    far = replace(tracks.detections, position=tracks.detections.position + 50)
    assert share_outside(far, open_movie(movie_file(tmp_path))) == 1
    found.tracks["tracks.csv"] = replace(tracks, detections=far)
    scene_of(found)
    assert "Most positions of tracks.csv lie outside the movie" in caplog.text
