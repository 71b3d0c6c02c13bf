"""The form *Track particles*, in a real window, driven as a user drives it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari_scenes import SCALE, UNITS, Window, gated, is_settled, link_count, named, rows_of, run, walks

from outbid import SettingsError, TrackingSettings, track
from outbid.viewers.from_layers import detections_from
from outbid.viewers.layers import tracks_layer
from outbid.viewers.nearby import part_around


@pytest.mark.smoke
def test_points_become_tracks_with_the_settings_of_the_form(window: Window) -> None:
    points = walks(window)
    form = window.form("Track particles")
    assert [box.value() for box in form.source.voxel.boxes] == [1.0, 0.5, 0.5]
    window.write(form.rows["max_distance"], "1.5")
    window.write(form.rows["max_gap"], "2")
    run(window, form)
    tracks = named(window, "Tracks of walks")
    want = track(
        detections_from(points.data), TrackingSettings(max_distance=1.5, max_gap=2, spacing=(1, 0.5, 0.5))
    )
    assert link_count(tracks) == len(want.tracks.links) > 2000
    assert sorted(map(tuple, tracks.data[:, 1:])) == sorted(map(tuple, points.data))
    assert (tuple(tracks.scale), tuple(map(str, tracks.units))) == (SCALE, UNITS)
    record = tracks.metadata["outbid"]
    assert (record["command"], record["input"]) == ("track", {"name": "walks"})
    # In places, as the command tracks a file.
    assert record["settings"] == want.settings.as_dict() | {"spacing": [1.0, 1.0, 1.0]}
    assert form.message.text().startswith(want.summary.removesuffix("."))
    assert "optimality gap" not in form.message.text()
    assert named(window, "Preview") is None


def test_objects_of_labels_get_the_numbers_of_their_tracks(window: Window) -> None:
    image = np.zeros((3, 40, 40), np.uint8)
    for t in range(3):
        image[t, 5:10, 5 + t : 10 + t], image[t, 20:24, 30:36] = 3 - t, 4 + t
    window.viewer.add_labels(image, name="cells", scale=(1, 0.5, 0.5))
    form = window.form("Track particles")
    window.write(form.rows["max_distance"], "3")
    run(window, form)
    by_track = named(window, "cells by track")
    assert (type(by_track).__name__, tuple(by_track.scale)) == ("Labels", (1, 0.5, 0.5))
    found = np.asarray(by_track.data)
    assert [len(np.unique(found[image == k])) for k in (3, 2, 1, 4, 5, 6)] == [1] * 6
    assert len({*found[0].ravel()}) == len(np.unique(found)) == 3
    assert np.array_equal(found > 0, image > 0)
    run(window, form)
    assert [layer.name for layer in window.viewer.layers].count("cells by track") == 1


def test_the_preview_follows_the_settings_and_the_frame_and_goes_with_the_form(window: Window) -> None:
    points = walks(window)
    # More than a preview takes.
    rows = np.concatenate([np.add(points.data, (0, 0, 0, 200 * k)) for k in range(4)])
    points.data = rows
    window.viewer.dims.set_point(0, 12)
    form = window.form("Track particles")
    window.tick(form.live)
    window.wait(lambda: named(window, "Preview") and is_settled(form))
    assert "Step per frame" in form.message.text()
    window.shot("track_preview_learned")

    def expected(frame: int, distance: float) -> int:
        middle = np.divide(window.viewer.scene.camera.center[-2:], SCALE[-2:])
        part = part_around(detections_from(rows), frame, tuple(middle))
        assert 1000 < len(part) < len(rows)
        settings = TrackingSettings(max_distance=distance, spacing=(1, 0.5, 0.5))
        return len(track(part, settings).tracks.links)

    seen = []
    for distance, frame in (("0.6", 12), ("2", 12), ("2", 3)):
        window.write(form.rows["max_distance"], distance)
        window.viewer.dims.set_point(0, frame)
        window.wait(lambda: is_settled(form))
        seen.append(link_count(named(window, "Preview")))
        assert seen[-1] == expected(frame, float(distance))
    assert seen[0] < seen[1] != seen[2]
    assert len(window.viewer.layers) == 2
    window.viewer.window.remove_dock_widget("all")
    window.wait(lambda: named(window, "Preview") is None, 2)


def test_colours_distinguish_doubtful_links_from_sure_ones(window: Window) -> None:
    """Above a particle on its own, below two so near each other that their links might be exchanged."""
    t = np.arange(12)
    place = [np.column_stack([t, np.full(12, y), 10 + 3 * t]) for y in (10.0, 40.0, 41.0)]
    window.viewer.add_points(np.concatenate(place), name="three", size=0.1)
    window.viewer.dims.set_point(0, 11)
    form = window.form("Track particles")
    window.write(form.rows["max_distance"], "10")
    run(window, form)
    assert named(window, "Tracks of three").data.shape == (36, 4)  # in 2D nothing has a z
    window.viewer.reset_view()
    picture = window.shot("track_confidence", canvas_only=True)
    above, below = np.array_split(picture, 2)
    assert window.count(above, "#4cc9ff") > 100 > 5 > window.count(above, "#ff2d2d")
    assert window.count(below, "#ff2d2d") > 100 > 5 > window.count(below, "#4cc9ff")
    form.colour.setCurrentText("track length")
    changed = window.shot("track_length", canvas_only=True)
    assert window.count(changed, "#ff2d2d") + window.count(changed, "#4cc9ff") == 0


def test_what_fuses_has_two_parents_in_the_graph(window: Window) -> None:
    from scenes import backward, tissue

    seen = backward(tissue(cells=60, frames=20, apart=0.15)).detections
    window.viewer.add_points(rows_of(seen), name="vesicles", size=0.1)
    form = window.form("Track particles")
    window.tick(form.rows["merges"])
    run(window, form)
    parents = [len(each) for each in named(window, "Tracks of vesicles").graph.values()]
    assert parents.count(2) >= 10
    assert set(parents) == {2}


def test_what_is_given_is_taken_and_comes_back_from_the_result(window: Window) -> None:
    walks(window)
    form = window.form("Track particles")
    form.rows["fixed"].setText("noise=0.2; gate=4,4,4")
    run(window, form)
    known = {"noise": 0.2, "gate": (4.0, 4.0, 4.0)}
    wanted = TrackingSettings(fixed=known, spacing=(1, 0.5, 0.5))
    assert form.settings() == wanted
    for text, column in (("-", None), ("area; theta:angle=180", {"area": "", "theta": "angle=180"})):
        form.rows["features"].setText(text)
        with_columns = form.settings()
        assert with_columns.features == column
        form.rows["features"].setText("")
        form.set_settings(with_columns.as_dict())
        assert form.settings() == with_columns
    form.rows["features"].setText("")
    form.rows["fixed"].setText("nose=1")
    with pytest.raises(SettingsError, match="nose"):
        form.settings()
    form.set_settings(wanted.as_dict())
    assert form.settings() == wanted


def rows_in(columns: Any) -> dict[str, tuple[bool, str, str]]:
    """Tick, kind and bits of each column in the list."""
    items = [columns.topLevelItem(row) for row in range(columns.topLevelItemCount())]
    return {item.text(0): (bool(item.checkState(0).value), item.text(1), item.text(2)) for item in items}


def tick_column(window: Window, columns: Any, name: str) -> None:
    """Change the tick of a column by the keyboard."""
    names = [columns.topLevelItem(row).text(0) for row in range(columns.topLevelItemCount())]
    columns.setCurrentItem(columns.topLevelItem(names.index(name)))
    before = rows_in(columns)
    window.press(columns, "Space")
    window.wait(lambda: not columns._ticked.isActive() and rows_in(columns) != before)


def test_columns_are_ticked_and_their_bits_shown(window: Window) -> None:
    from test_columns import informative, movie

    truth = movie()
    rng = np.random.default_rng(0)
    said = {name: values for name, values in informative(truth).items() if values.ndim == 1}
    features = said | {"white": rng.normal(size=len(truth.detections)), "track_id": truth.track_id}
    layer = window.viewer.add_points(rows_of(truth.detections), name="cells", size=0.1, features=features)
    form = window.form("Track particles")
    assert form.columns.isVisible()
    assert rows_in(form.columns) == dict.fromkeys([*said, "white"], (False, "", ""))
    for name in ("brightness", "kind", "white"):
        tick_column(window, form.columns, name)
    assert form.rows["features"].text() == "brightness; kind; white"
    run(window, form)
    rows, learned = rows_in(form.columns), named(window, "Tracks of cells").metadata["outbid"]["learned"]
    bits = learned["columns"]["links"]
    assert set(bits) == {"brightness", "kind", "white"}
    assert rows["brightness"] == (True, "number", f"{bits['brightness']:.2g}")
    assert rows["kind"] == (True, "label", f"{bits['kind']:.2g}")
    assert rows["white"] == (True, "number", "says nothing")
    assert "Columns: " in form.message.text()
    seen = detections_from(layer.data, features=dict(layer.features))
    wanted = track(seen, TrackingSettings(features=form.settings().features))
    assert link_count(named(window, "Tracks of cells")) == len(wanted.tracks.links)
    window.shot("track_columns")
    tick_column(window, form.columns, "white")
    assert form.settings().features == {"brightness": "", "kind": ""}
    form.result.choose(named(window, "Tracks of cells"))  # which brings its settings and bits back
    assert rows_in(form.columns) == rows
    window.write(form.rows["max_distance"], "1")
    assert not form.columns.isEnabled()
    assert [form.rows[name].isEnabled() for name in ("cost", "device", "merges", "fixed")] == [1, 1, 0, 0]
    proofread = window.form("Proofread")  # which learns from the same columns
    run(window, proofread)
    assert proofread.session.frozen.learned.summary.columns.links == pytest.approx(bits)


def test_columns_of_detection_are_ticked_unasked(window: Window) -> None:
    from test_columns import detected

    seen = detected().detections
    window.viewer.add_points(rows_of(seen), name="spots", size=0.1, features=dict(seen.features))
    form = window.form("Track particles")
    kinds = {name: row[:2] for name, row in rows_in(form.columns).items()}
    assert kinds["amplitude"] == kinds["radius"] == (True, "number")
    assert (kinds["probability"], kinds["quality"]) == ((True, "probability"), (True, "clutter"))
    tick_column(window, form.columns, "radius")
    assert form.settings().features == {"radius": "none"}
    tick_column(window, form.columns, "radius")
    assert form.settings().features == "auto"
    for name in kinds:
        tick_column(window, form.columns, name)
    assert form.settings().features is None
    form.rows["features"].setText("amp*")
    assert rows_in(form.columns)["amp*"] == (True, "number", "")
    window.viewer.add_labels(np.zeros((3, 8, 8), np.uint8), name="masks")
    form.source.layers.choose(window.viewer.layers["masks"])
    form.rows["features"].setText("")
    tick_column(window, form.columns, "angle")
    assert rows_in(form.columns)["angle"] == (True, "angle=180", "")


def test_divisions_stand_in_the_graph_also_of_a_result_that_loses_them(
    window: Window,
) -> None:
    """What napari keeps of an emptied graph lets vispy crash with Mesa: another layer stands in its place."""
    from scenes import tissue

    seen = tissue(cells=60, frames=20).detections
    window.viewer.add_points(rows_of(seen), name="tissue", size=0.1, scale=(1, 10, 10, 10))
    form = window.form("Track particles")
    run(window, form)
    divided = named(window, "Tracks of tissue")
    spaced = track(seen, TrackingSettings(spacing=(10, 10, 10)))
    assert divided.graph == tracks_layer(spaced.tracks).graph
    window.viewer.dims.ndisplay = 3
    window.viewer.reset_view()
    window.shot("track_divisions")
    window.viewer.dims.ndisplay = 2
    window.viewer.add_labels(np.zeros((3, 8, 8), np.uint8), name="above")
    form.result.choose(divided)
    window.tick(form.rows["divisions"], False)
    run(window, form)
    single = named(window, "Tracks of tissue")
    assert single.graph == {}
    assert form.result.layer() is single is not divided
    assert not form.rows["divisions"].isChecked()
    window.tick(form.rows["divisions"])
    run(window, form)
    assert [layer.name for layer in window.viewer.layers] == ["tissue", "Tracks of tissue", "above"]
    assert form.result.layer() is single
    assert len(single.graph) >= 10
    form.result.choose(None)
    run(window, form)
    assert len(window.viewer.layers) == 4


def test_settings_come_back_from_a_result_and_a_run_replaces_it(window: Window) -> None:
    form = gated(window)
    form.rows["solver"].setCurrentText("jonker_volgenant")
    run(window, form)
    first = named(window, "Tracks of walks")
    links = link_count(first)
    window.viewer.window.remove_dock_widget("all")
    form = window.form("Track particles")
    assert (form.rows["max_distance"].number(), form.result.layer()) == (None, None)
    form.result.choose(first)
    assert (form.rows["max_distance"].number(), form.rows["solver"].currentText()) == (
        2.0,
        "jonker_volgenant",
    )
    assert "Tracks of walks" in form.message.text()
    window.write(form.rows["max_distance"], "0.8")
    form.colour.setCurrentText("speed")
    run(window, form)
    assert len(window.viewer.layers) == 2
    assert link_count(first) < links
    assert first.color_by == "speed"
    assert first.metadata["outbid"]["settings"]["max_distance"] == 0.8
    first.metadata["outbid"]["settings"]["solver"] = "wishes"
    form.result.choose(None)
    form.result.choose(first)
    assert "There is no solver 'wishes'" in form.message.text()


def test_an_image_is_detected_then_tracked(window: Window) -> None:
    y, x = np.mgrid[:64, :80]
    movie = np.zeros((10, 64, 80), np.float32)
    for t in range(10):
        for row, column in ((15, 10 + 4 * t), (45, 60 - 3 * t)):
            movie[t] += 100 * np.exp(-((y - row) ** 2 + (x - column) ** 2) / 8)
    movie += np.random.default_rng(0).normal(0, 1, movie.shape)
    place = {"scale": (2.0, 0.5, 0.5), "translate": (0.0, 3.0, 4.0), "units": ("second", "um", "um")}
    window.viewer.add_image(movie, name="movie", **place)
    form = window.form("Track particles")
    window.write(form.rows["max_distance"], "4")
    window.viewer.dims.set_point(0, 14)  # seconds: the eighth frame
    window.tick(form.live)
    window.wait(lambda: named(window, "Preview"))
    preview = named(window, "Preview")
    assert (link_count(preview), set(preview.data[:, 1])) == (8, {5, 6, 7, 8, 9})
    run(window, form)
    spots, tracks = named(window, "Spots of movie"), named(window, "Tracks of movie")
    assert [len(spots.data), link_count(tracks)] == [20, 18]
    for layer in (spots, tracks):
        assert tuple(layer.scale) == place["scale"]
        assert tuple(layer.translate) == place["translate"]
        assert tuple(map(str, layer.units)) == ("second", "micrometer", "micrometer")
    first = spots.data[spots.data[:, 0] == 0]
    np.testing.assert_allclose(first[np.argsort(first[:, 1])][:, 1:], [[15, 10], [45, 60]], atol=0.3)
    window.viewer.dims.set_point(0, 18)
    window.shot("track_image")


@pytest.mark.smoke
def test_the_size_of_a_voxel_is_that_of_the_layer(window: Window) -> None:
    points = walks(window)
    form = window.form("Track particles")
    window.write(form.source.voxel.boxes[0], "3")
    assert tuple(points.scale) == (1, 3, 0.5, 0.5)
    window.write(form.rows["max_distance"], "2")
    run(window, form)
    assert tuple(named(window, "Tracks of walks").scale) == (1, 3, 0.5, 0.5)
    settings = TrackingSettings(max_distance=2, spacing=(3, 0.5, 0.5))
    want = track(detections_from(points.data), settings).tracks
    assert link_count(named(window, "Tracks of walks")) == len(want.links)


@pytest.mark.timeout(300)
def test_real_nuclei_from_the_raw_stacks(window: Window, real_data: Path) -> None:
    from outbid.formats.images.folders import open_movie

    frames = open_movie(real_data / "drosophila_nuclei" / "tif").frames()
    movie = np.stack([frame for frame, _ in zip(frames, range(3), strict=False)])
    units = ("pixel", "micrometer", "micrometer", "micrometer")
    window.viewer.add_image(movie, name="nuclei", scale=(1, 5, 1, 1), units=units, rendering="mip")
    window.viewer.dims.ndisplay = 3
    form = window.form("Track particles")
    run(window, form, seconds=240)  # a fifth of it on a core of its own, and kernels compile in it
    tracks = named(window, "Tracks of nuclei")
    assert tracks is not None, form.message.text()
    assert link_count(tracks) > 0.4 * len(tracks.data)  # nothing set: texture of nuclei counts as spots
    window.viewer.reset_view()
    window.shot("track_nuclei")
