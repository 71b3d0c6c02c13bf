"""The forms *Detect spots* and *Simulate*, and the manifest, in a real window."""

from importlib import import_module
from time import process_time
from typing import Any

import numpy as np
import pytest
from napari_scenes import Window, is_settled, link_count, named, run
from numpy.typing import NDArray

from outbid.detection import detect
from outbid.settings.detection import DetectionSettings
from outbid.simulate.camera import Camera, render
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import BrownianWalk
from outbid.simulate.walks import WalkSettings, walk

BOX = (12.0, 90.0, 110.0)
SPACING = (2.0, 0.5, 0.5)
PLACE = {"scale": (1.0, *SPACING), "units": ("pixel", "micrometer", "micrometer", "micrometer")}


def movie(particles: int = 25, frames: int = 4) -> NDArray[np.uint16]:
    """Spots at a signal to noise of 6, as a microscope with these voxels sees them."""
    truth = walk(WalkSettings(BrownianWalk(0.5), particles, frames, BOX))
    camera = Camera.looking_at(BOX, psf=(2, 0.8, 0.8), snr=6, spacing=SPACING)
    return np.stack(list(render(truth.detections, camera)))


def labels() -> NDArray[np.uint8]:
    image = np.zeros((3, 40, 40), np.uint8)
    for t in range(3):
        image[t, 5:10, 5 + t : 10 + t], image[t, 20:24, 30:36] = 1, 2
    return image


# ---------------------------------------------------------------- detection


def test_the_threshold_is_seen_before_a_run(window: Window) -> None:
    stack = movie()
    window.viewer.add_image(stack, name="stack", **PLACE)
    window.viewer.dims.set_point(0, 2)
    form = window.form("Detect spots")
    window.wait(lambda: named(window, "Preview") and is_settled(form))
    seen, used = detect(list(stack), DetectionSettings(spacing=SPACING))
    rings = named(window, "Preview").data
    assert {2.0} == set(rings[:, 0])
    planes = 1 + 2 * round(used.radius_z / SPACING[0])
    shown = rings[planes // 2 :: planes]  # a ring in each plane that the spot reaches
    here = seen.position[seen.rows_of(2)] / SPACING
    assert sorted(map(tuple, shown[:, 1:].round(9))) == sorted(map(tuple, here.round(9)))
    assert f"Frame 2: {len(here)} spots, about " in form.message.text()
    window.viewer.dims.ndisplay = 3
    picture = window.shot("detect_preview", canvas_only=True)
    assert window.count(picture, "#ffd24d") > 10 * len(here)
    window.viewer.dims.ndisplay = 2
    window.viewer.dims.set_point(1, here[0, 0] * SPACING[0] + 2)  # a plane beside that of a spot
    assert window.count(window.shot("detect_plane"), "#ffd24d") > 50

    start = process_time()  # which a busy machine does not lengthen
    form.slider.setValue(form.slider.maximum() * 97 // 100)
    took = process_time() - start
    fewer = named(window, "Preview").data[::planes]
    threshold = form.rows["threshold"].number()
    assert threshold is not None
    assert took < 0.5
    want = detect(list(stack), DetectionSettings(threshold=threshold, spacing=SPACING))[0]
    assert 0 < len(fewer) == len(want.position[want.rows_of(2)]) < len(shown)
    assert f"above {threshold:.4g} (automatic" in form.message.text()
    window.shot("detect_threshold")

    run(window, form)
    points = named(window, "Spots of stack")
    np.testing.assert_allclose(points.data[:, 1:], want.position / SPACING)
    np.testing.assert_array_equal(points.features["quality"], want.features["quality"])
    assert tuple(points.scale) == PLACE["scale"]
    assert tuple(map(str, points.units)) == PLACE["units"]
    assert named(window, "Preview") is None
    assert points.metadata["outbid"]["settings"]["threshold"] == threshold

    form.rows["threshold"].set_number(None)
    form.result.choose(points)
    assert form.rows["threshold"].number() == pytest.approx(threshold)
    assert form.rows["radius"].number() == pytest.approx(used.radius, abs=1e-5)


def test_a_preview_beside_tracks_is_emptied_and_shown_again_in_the_same_layer(window: Window) -> None:
    stack = movie(frames=2)
    window.viewer.add_image(stack, name="stack", **PLACE)
    rows = np.array([[0, 0, 2, 40, 40], [0, 1, 2, 140, 180]], dtype=float)
    window.viewer.add_tracks(rows, name="lines", **PLACE)
    form = window.form("Detect spots")
    window.wait(lambda: named(window, "Preview") and is_settled(form))
    preview = named(window, "Preview")
    count = len(preview.data)
    window.viewer.dims.ndisplay = 3
    bright = window.count(window.shot("detect_beside_tracks", canvas_only=True), "#ffd24d")
    window.tick(form.live, False)
    assert named(window, "Preview") is preview
    assert len(preview.data) == 0
    window.shot("detect_preview_emptied")
    window.tick(form.live)
    window.wait(lambda: 0 < len(preview.data) <= count)  # in 3D a spot has one ring
    assert [layer.name for layer in window.viewer.layers].count(preview.name) == 1
    again = window.count(window.shot("detect_preview_again", canvas_only=True), "#ffd24d")
    assert 0.8 * bright < again < 1.25 * bright
    run(window, form)
    assert len(preview.data) == 0
    assert len(named(window, "Spots of stack").data) > 0
    window.viewer.layers.remove(named(window, "lines"))
    window.tick(form.live)
    window.wait(lambda: len(preview.data) > 0)
    window.tick(form.live, False)
    assert named(window, "Preview") is None


def test_dark_spots_and_a_given_radius_reach_the_detection(window: Window) -> None:
    stack = 1000 - movie(frames=2).max(axis=1)
    window.viewer.add_image(stack, name="dark")
    form = window.form("Detect spots")
    window.wait(lambda: "Dark spots stand out more" in form.message.text())
    window.tick(form.live, False)
    window.write(form.rows["radius"], "3")
    form.rows["dark"].setChecked(True)
    run(window, form)
    settings = DetectionSettings(radius=3, dark=True)
    want = detect([frame[None] for frame in stack], settings)[0]
    assert len(named(window, "Spots of dark").data) == len(want) > 20
    assert named(window, "Spots of dark").data.shape[1] == 3


@pytest.mark.smoke
def test_labels_give_their_centroids(window: Window) -> None:
    window.viewer.add_labels(labels(), name="cells", scale=(1, 0.5, 0.5))
    form = window.form("Detect spots")
    assert not form.rows["radius"].isEnabled()
    run(window, form)
    points = named(window, "Spots of cells")
    assert [tuple(row) for row in points.data[:2]] == [(0, 7, 7), (0, 21.5, 32.5)]
    assert len(points.data) == 6
    assert "6 labels in 3 frames" in form.message.text()


def test_a_preview_of_what_is_no_movie_says_what_to_change(window: Window) -> None:
    window.viewer.add_image(np.zeros((40, 40)), name="still")
    form = window.form("Detect spots")
    window.wait(lambda: "Open it as a movie" in form.message.text())
    window.write(form.rows["radius_z"], "3")
    run(window, form)
    assert "Open it as a movie" in form.message.text()
    assert len(window.viewer.layers) == 1


# ---------------------------------------------------------------- simulation


def test_a_simulation_gives_movie_points_and_truth_on_one_grid(window: Window) -> None:
    form = window.form("Simulate particles")
    window.write(form.rows["particles"], "40")
    window.write(form.rows["frames"], "6")
    form.rows["motion"].setCurrentText("brownian")
    form.rows["unit"].setCurrentText("micrometer")
    for box, size in zip(form.rows["voxel"].boxes, ("2", "0.5", "0.5"), strict=True):
        box.setValue(float(size))
    window.tick(form.movie)
    run(window, form)
    images, points, truth = window.viewer.layers
    used = form.settings()
    walks = WalkSettings(BrownianWalk(used.step), 40, 6, used.box, "reflect", 0.02, 0.02, 0)
    microscope = Microscope(used.noise, used.miss, used.clutter)
    seen = observe(walk(walks), microscope, box=used.box)
    np.testing.assert_allclose(points.data[:, 1:] * SPACING, seen.detections.position)
    assert link_count(truth) == len(seen.links)
    camera = Camera.looking_at(used.box, psf=used.psf, snr=used.snr, spacing=SPACING)
    assert np.array_equal(images.data, list(render(walk(walks).detections, camera)))
    assert {tuple(layer.scale) for layer in window.viewer.layers} == {(1, *SPACING)}
    assert {tuple(map(str, layer.units)) for layer in window.viewer.layers} == {PLACE["units"]}
    window.viewer.dims.ndisplay = 3
    window.viewer.reset_view()
    window.shot("simulate")

    record = truth.metadata["outbid"]
    assert (record["command"], record["seed"]) == ("simulate", 0)
    window.write(form.rows["particles"], "3")
    form.rows["unit"].setCurrentText("pixel")
    form.result.choose(None)
    form.result.choose(truth)
    assert form.rows["particles"].value() == 40
    assert (form.rows["motion"].currentText(), form.rows["unit"].currentText()) == ("brownian", "micrometer")


def test_a_movie_too_large_for_the_memory_is_refused(window: Window) -> None:
    form = window.form("Simulate particles")
    form.rows["box"].set_values((1000, 10000, 10000))
    window.tick(form.movie)
    run(window, form)
    assert "Take a smaller box" in form.message.text()
    form.movie.setChecked(False)
    form.rows["box"].set_values((0, 100, 100))
    run(window, form)
    assert "box" in form.message.text()
    assert len(window.viewer.layers) == 0


# ---------------------------------------------------------------- manifest


def test_three_forms_stand_in_one_window_and_scroll(window: Window) -> None:
    """None makes the window higher, and each shows its first row and reaches its last."""
    scroll_area = import_module("qtpy.QtWidgets").QScrollArea
    high = window.viewer.window._qt_window.height()
    forms = [window.form(name) for name in ("Detect spots", "Track particles", "Simulate particles")]
    window.wait(lambda: all(form.height() > 0 for form in forms))
    assert window.viewer.window._qt_window.height() == high
    for form in forms:
        area = form.findChild(scroll_area)
        assert form.isVisible()
        assert area.viewport().height() > 40
        assert form.scroll.widget().height() == area.verticalScrollBar().maximum() + area.viewport().height()


@pytest.mark.smoke
def test_the_manifest_is_valid_and_all_that_it_names_is_there(window: Window) -> None:
    from npe2 import PluginManager, PluginManifest

    manifest = PluginManifest.from_distribution("outbid")
    manifest.validate_imports()
    for command in manifest.contributions.commands or []:
        module, name = command.python_name.split(":")
        assert callable(getattr(import_module(module), name))
    assert "outbid" in PluginManager.instance()
    listed: list[Any] = [widget.display_name for widget in manifest.contributions.widgets or []]
    for name in listed:
        form = window.form(name)
        assert form.isVisible(), name
        scrolled = getattr(form.scroll, "widget", lambda form=form: form)
        inside = form.stack if hasattr(form, "stack") else scrolled()
        assert inside.width() <= form.width(), f"{name} is wider than its place"
        window.viewer.window.remove_dock_widget("all")
