"""Readers, writers and samples of the plugin; some of them as napari calls them, in a real window."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from commands import fresh_python
from napari_scenes import Window

from outbid import Detections, Tracks, read_detections, read_record, read_tracks, write_tracks
from outbid.data import sample
from outbid.particles.calibration import Calibration
from outbid.viewers.layers import points_layer, tracks_layer
from outbid.viewers.plugin import (
    layers_of_movie,
    layers_of_positions,
    read_movie,
    read_positions,
    write_points,
)
from outbid.viewers.plugin import write_tracks as write_tracks_layer

pytest.importorskip("napari.layers", reason="napari is not installed: pip install 'outbid[napari]'")

RECORD = {"command": "track", "settings": {"spacing": [2.0, 0.5, 0.5], "max_distance": 3.0}}


def division() -> Tracks:
    seen = Detections.from_table([0, 1, 2, 2], [[1, 2, 3], [1, 2, 4], [1, 4, 4], [1, 0, 4]])
    links = np.array([[0, 1], [1, 2], [1, 3]])
    return Tracks(seen, links, np.array([1.0, 2.0, 3.0]), None, np.array([0.9, 0.5, 0.4]))


def shown(tracks: Tracks, **attributes: Any) -> tuple[Any, dict[str, Any]]:
    """A tracks layer's data and attributes, as napari gives them to writers."""
    data, own, _ = tracks_layer(tracks, calibration=Calibration(spacing=(2, 0.5, 0.5))).as_tuple()
    return data, own | {"translate": np.zeros(4), "metadata": {"outbid": RECORD}} | attributes


@pytest.mark.smoke
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".geff", ".xml"])
def test_tracks_are_written_in_their_unit_and_read_back(tmp_path: Path, suffix: str) -> None:
    path = str(tmp_path / f"tracks{suffix}")
    units = ("pixel", "micrometer", "micrometer", "micrometer")
    data, attributes = shown(division(), units=units)
    assert write_tracks_layer(path, data, attributes) == [path]
    back = read_tracks(path)
    assert back.links.tolist() == division().links.tolist()
    np.testing.assert_allclose(back.detections.position, division().detections.position * (2, 0.5, 0.5))
    assert read_positions(path) is layers_of_positions
    ((again, keywords, kind),) = layers_of_positions(path)
    assert (kind, keywords["graph"]) == ("tracks", {1: [0], 2: [0]})
    np.testing.assert_allclose(again[:, 1:], data[:, 1:] * (1, 2, 0.5, 0.5))
    assert tuple(keywords["scale"]) == (1, 1, 1, 1)
    if suffix in (".csv", ".parquet"):
        confidence = attributes["features"]["link_probability"]
        np.testing.assert_allclose(keywords["features"]["link_probability"], confidence)
        record = keywords["metadata"]["outbid"]
        assert record["settings"] == {"spacing": [1, 1, 1], "max_distance": 3}
    if suffix in (".geff", ".xml"):
        assert keywords["units"][-1] == "micrometer"


def test_points_are_written_with_their_features_and_read_back(tmp_path: Path) -> None:
    path = str(tmp_path / "points.csv")
    seen = Detections.from_table([0, 3], [[0, 5, 6], [0, 7, 8]], features={"quality": [1.5, 2.5]})
    data, attributes, _ = points_layer(seen, calibration=Calibration(spacing=(1, 0.5, 0.5))).as_tuple()
    attributes["features"]["word"] = np.array(["a", "b"])
    write_points(path, data, attributes)
    back = read_detections(path)
    assert back.position.tolist() == [[0, 2.5, 3], [0, 3.5, 4]]
    kept = {name: values.tolist() for name, values in back.features.items()}
    assert kept == {"quality": [1.5, 2.5], "word": ["a", "b"]}
    ((again, keywords, kind),) = layers_of_positions(path)
    assert kind == "points"
    assert again.tolist() == [[0, 2.5, 3], [3, 3.5, 4]]  # in one plane nothing has a z
    assert keywords["axis_labels"] == ("t", "y", "x")


def test_positions_in_voxels_get_the_voxel_of_their_record(tmp_path: Path) -> None:
    path = str(tmp_path / "tracks.csv")
    write_tracks(path, division(), record=RECORD)
    ((data, keywords, _),) = layers_of_positions(path)
    assert tuple(keywords["scale"]) == (1, 2, 0.5, 0.5)
    assert data[:, 1:].tolist() == tracks_layer(division()).data[:, 1:].tolist()


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "<html></html>", "\x00\x01"])
@pytest.mark.parametrize("name", ["other.csv", "other.xml", "other.parquet", "other.tif"])
def test_files_of_others_are_left_to_others(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert read_positions(str(path)) is None
    assert read_movie(str(path)) is None
    assert read_positions([str(path)]) is None
    assert read_movie(str(tmp_path)) is None


@pytest.mark.parametrize("planes", [1, 3])
def test_a_movie_has_its_voxels_and_is_read_frame_by_frame(tmp_path: Path, planes: int) -> None:
    path = str(tmp_path / "movie.tif")
    values = np.random.default_rng(0).integers(0, 99, (4, planes, 8, 9), dtype=np.uint16)
    size = {"spacing": 2.0, "unit": "um"}
    tifffile.imwrite(path, values, imagej=True, resolution=(2, 2), metadata={"axes": "TZYX", **size})
    assert read_movie(path) is layers_of_movie
    ((frames, keywords, kind),) = layers_of_movie(path)
    assert kind == "image"
    assert frames.shape == (values.shape if planes > 1 else (4, 8, 9))
    assert np.array_equal(np.asarray(frames), values.squeeze())
    assert np.array_equal(frames[2].compute(), values[2].squeeze())
    assert tuple(keywords["scale"][-2:]) == (0.5, 0.5)
    assert keywords["units"][-1] == "micrometer"
    assert len(keywords["scale"]) == len(keywords["units"]) == len(keywords["axis_labels"]) == frames.ndim


def test_every_scene_and_every_channel_of_a_file_is_a_layer(tmp_path: Path) -> None:
    path, values = str(tmp_path / "two.ome.tif"), np.arange(120, dtype=np.uint16).reshape(6, 4, 5)
    with tifffile.TiffWriter(path, ome=True) as file:
        for planes, size in ((values[:2], 0.5), (values[2:], 2.0)):
            metadata = {"axes": "TYX", "PhysicalSizeX": size, "PhysicalSizeY": size}
            file.write(planes, metadata=metadata, photometric="minisblack")
    assert read_movie(path) is layers_of_movie
    first, second = layers_of_movie(path)
    assert [layer[1]["name"] for layer in (first, second)] == ["two.ome.tif: scene 0", "two.ome.tif: scene 1"]
    assert np.array_equal(np.asarray(first[0]), values[:2])
    assert np.array_equal(np.asarray(second[0]), values[2:])
    assert [tuple(layer[1]["scale"]) for layer in (first, second)] == [(1, 0.5, 0.5), (1, 2, 2)]
    path, values = str(tmp_path / "a.tif"), np.arange(3 * 2 * 16 * 12, dtype=np.uint16).reshape(3, 2, 16, 12)
    tifffile.imwrite(path, values, imagej=True, metadata={"axes": "TCYX"})
    assert read_movie(path) is layers_of_movie
    layers = layers_of_movie(path)
    assert [attributes["name"] for _, attributes, _ in layers] == ["a.tif: channel 0", "a.tif: channel 1"]
    for channel, (data, _, _) in enumerate(layers):
        np.testing.assert_array_equal(np.asarray(data), values[:, channel])


def test_asking_about_a_file_loads_nothing_heavy() -> None:
    code = (
        "import sys; from outbid.viewers import layers, plugin; "
        f"assert plugin.read_positions({str(sample('walks'))!r}); plugin.read_movie('nothing.tif'); "
        "print([name for name in ('napari', 'qtpy', 'PyQt6', 'matplotlib', 'numba') if name in sys.modules])"
    )
    assert fresh_python(code) == "[]"


@pytest.mark.smoke
def test_napari_opens_and_saves_through_the_plugin(window: Window, tmp_path: Path) -> None:
    viewer = window.viewer
    viewer.open_sample("outbid", "walks")
    truth = viewer.layers["walks: truth"]
    assert len(viewer.layers["walks"].data) == 3429
    viewer.layers.selection.active = truth
    saved = truth.save(str(tmp_path / "saved.parquet"), plugin="outbid")
    assert saved == [str(tmp_path / "saved.parquet")]
    viewer.layers.clear()
    (again,) = viewer.open(saved[0], plugin="outbid")
    assert len(again.data) == 3429
    assert again.graph == truth.graph
    window.shot("opened")
    viewer.layers.clear()
    (movie,) = viewer.open_sample("outbid", "movie")
    assert (type(movie).__name__, movie.data.shape) == ("Image", (20, 7, 81, 81))
    movie.data = movie.data[:4]  # files are asked for here, not the movie
    form = window.form("Track particles")
    window.click(form.run_button)
    window.wait(form.run_button.isEnabled)
    tracks = viewer.layers[-1]
    tracks.save(str(tmp_path / "tracks.geff"), plugin="outbid")
    assert read_record(tmp_path / "tracks.geff")["settings"]["spacing"] == [1, 1, 1]
    assert tuple(movie.scale) == tuple(tracks.scale) == (1, 2, 1, 1)
    (opened,) = viewer.open(str(tmp_path / "tracks.geff"), plugin="outbid")
    form.result.choose(opened)
    assert f"These are the settings of {opened.name}" in form.message.text()
