"""Units and time through the forms: from an image to what is measured, saved, and read by the commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import succeed
from napari_scenes import Window, run

from outbid import Detections, Tracks, read_detections, read_tracks, score
from outbid.particles.calibration import Calibration
from outbid.pins import read_pins
from outbid.viewers.layers import tracks_layer
from outbid.viewers.plugin import layers_of_positions

WORLD = Calibration("micrometer", interval=20.0)


@pytest.fixture(scope="module")
def movie(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("movie")
    succeed(
        "simulate", "-o", folder / "truth.csv", "--movie", folder / "movie.ome.tif", "--box", 6, 24, 24,
        "--voxel", 1, 0.4, 0.4, "--psf", 1, 0.6, 0.6, "--particles", 12, "--frames", 5, "--frame-interval",
        20, "--step", 0.5, "--snr", 8, "--seed", 3,
    )  # fmt: skip
    return folder / "movie.ome.tif"


def saved(layer: object, path: Path) -> Path:
    assert layer.save(str(path), plugin="outbid")  # type: ignore[attr-defined]
    return path


def test_units_and_time_go_through_all_forms(movie: Path, window: Window, tmp_path: Path) -> None:
    viewer = window.viewer
    viewer.open(str(movie), plugin="outbid")
    detect = window.form("Detect spots")
    detect.live.setChecked(False)
    run(window, detect, 120)
    spots = saved(viewer.layers[-1], tmp_path / "spots.csv")
    succeed("detect", movie, "-o", tmp_path / "shell.csv")
    seen, shell = read_detections(spots), read_detections(tmp_path / "shell.csv")
    assert (seen.calibration, shell.calibration) == (WORLD, WORLD)
    assert np.allclose(seen.position, shell.position)

    form = window.form("Track particles")
    form.source.layers.choose(viewer.layers[-1])
    run(window, form, 120)
    layer = viewer.layers[-1]
    tracks = saved(layer, tmp_path / "tracks.csv")
    assert read_tracks(tracks).detections.calibration == WORLD

    measure = window.form("Measure motion")
    measure.layers.choose(layer)
    assert measure.interval.number() == 20
    run(window, measure, 120)
    assert "/s" in measure.message.text()

    proofread = window.form("Proofread")
    proofread.layers.choose(layer)
    proofread.file.setText(str(tmp_path / "proof.csv"))
    run(window, proofread, 120)
    proofread.press("1")
    window.wait(lambda: proofread.run_button.isEnabled() and len(proofread.session.pins) == 1)
    proofread.save()
    window.wait(lambda: proofread.run_button.isEnabled() and (tmp_path / "proof.csv").exists())
    assert "positions in µm, times in s" in proofread.message.text()
    found = read_tracks(tmp_path / "proof.csv")
    assert found.detections.calibration == WORLD
    saved_before = read_tracks(tracks).detections.position
    assert np.allclose(*(np.sort(one, axis=0) for one in (found.detections.position, saved_before)))
    assert score(found, movie.with_name("truth.csv")).values["link_f1"] > 0.5
    assert len(read_pins(proofread.pins_path)) == 1
    pins = proofread.pins_path
    done = succeed("track", tmp_path / "shell.csv", "-o", tmp_path / "pinned.csv", "--pins", pins)
    assert "left out: 0" in done.stderr
    assert not window.errors


def test_a_saved_layer_opens_with_its_interval(movie: Path) -> None:
    _, attributes, _ = layers_of_positions(str(movie.with_name("truth.csv")))[0]
    assert attributes["metadata"]["outbid"]["calibration"] == {"unit": "micrometer", "interval": 20.0}


def test_remarks_on_what_is_found_reach_the_form(window: Window, tmp_path: Path) -> None:
    """White is zero by the file, a radius in another unit, and grey values given as labels."""
    yy, xx = np.mgrid[:48, :48]
    image = sum(200 * np.exp(-((yy - y) ** 2 + (xx - x) ** 2) / 4.5) for y in (12, 30) for x in (12, 30)) + 20
    grey = np.random.default_rng(0).poisson(np.stack([image] * 2)).clip(0, 255).astype("u1")
    tifffile.imwrite(tmp_path / "w.tif", 255 - grey, photometric="miniswhite", metadata={"axes": "TYX"})
    window.viewer.open(str(tmp_path / "w.tif"), plugin="outbid")
    form = window.form("Detect spots")
    form.live.setChecked(False)
    form.rows.show({"radius": 0.2})
    run(window, form, 120)
    assert "white is zero" in form.message.text()
    assert "smaller than half a voxel" in form.message.text()
    form.rows.show({"radius": None})
    window.viewer.add_labels(grey.astype(int), name="grey")
    form.source.layers.choose(window.viewer.layers["grey"])
    run(window, form, 120)
    assert "separate parts" in form.message.text()


def test_results_in_voxels_and_in_places_are_compared_as_places(window: Window) -> None:
    """One result, shown with the voxels of a movie, whose origin is not 0, and without."""
    from outbid.viewers.forms.napari_layers import show

    seen = Detections.from_table(np.tile(np.arange(6), 2), np.arange(36.0).reshape(12, 3), calibration=WORLD)
    tracks = Tracks.from_track_ids(seen, np.arange(12) % 2)
    voxels = replace(WORLD, spacing=(1.0, 0.4, 0.4), origin=(0.0, 2.0, 2.0))
    numbers = replace(seen, position=voxels.numbers(seen.position), calibration=voxels)
    for name, of in (("voxels", replace(tracks, detections=numbers)), ("places", tracks)):
        show(window.viewer, tracks_layer(of, name=name))
    form = window.form("Compare two results")
    run(window, form, 120)
    both = window.viewer.layers["Links in both"]
    assert (len(both.data), len(window.viewer.layers["Differences"].data)) == (12, 0)
    world = both.data[:, 2:] * both.scale[1:] + both.translate[1:]
    assert np.allclose(np.sort(world, axis=0), np.sort(seen.position, axis=0))
    assert np.allclose(both.features["speed"].max(), tracks_layer(tracks).features["speed"].max())
    assert not window.errors
