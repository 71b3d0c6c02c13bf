"""The form *Track particles*, in a real window, driven as a user drives it."""

import gc
import threading
import weakref
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from outbid.data import sample
from outbid.simulate.motions import PersistentWalk
from outbid.simulate.walks import WalkSettings, walk
from outbid.tracker import Detections, TrackingSettings, read_detections, track
from outbid.viewers.layers import tracks_layer
from outbid.viewers.nearby import part_around
from outbid.viewers.taken import detections_from, tracks_from

if TYPE_CHECKING:
    from napari_window import Window

SCALE = (1.0, 1.0, 0.5, 0.5)
UNITS = ("pixel", "micrometer", "micrometer", "micrometer")


def rows_of(seen: Detections) -> NDArray[np.float64]:
    return np.column_stack([seen.frame, seen.position])


def walks(window: "Window") -> Any:
    """The sample as a layer of points, in voxels."""
    rows = rows_of(read_detections(sample("walks")))
    return window.viewer.add_points(rows, name="walks", size=3, scale=SCALE, units=UNITS)


def many(window: "Window", count: int, frames: int) -> Any:
    """A movie of so many points in all."""
    seen = walk(WalkSettings(PersistentWalk(1.0, 0.8), count // frames, frames, (100, 300, 300))).detections
    return window.viewer.add_points(rows_of(seen), name="many", size=2)


def named(window: "Window", start: str) -> Any:
    """The layer whose name starts so."""
    return next((layer for layer in window.viewer.layers if layer.name.startswith(start)), None)


def link_count(layer: Any) -> int:
    return len(tracks_from(layer.data, features=dict(layer.features), graph=layer.graph).links)


def is_settled(form: Any) -> bool:
    """Whether neither a preview is on its way nor one is awaited."""
    return form._preview is None and not form._settled.isActive()


def run(window: "Window", form: Any) -> None:
    window.click(form.run_button)
    window.wait(form.run_button.isEnabled)


def preferences() -> Any:
    return import_module("napari.settings").get_plugin_settings("outbid")


def test_points_become_tracks_with_the_settings_of_the_form(window: "Window") -> None:
    points = walks(window)
    form = window.form("Track particles")
    assert [box.value() for box in form.source.voxel.boxes] == [1.0, 0.5, 0.5]
    window.write(form.max_distance, "1.5")
    window.write(form.max_gap, "2")
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
    assert record["settings"] == want.settings.as_dict()
    assert "proved optimal" in form.message.text()
    assert named(window, "Preview") is None


def test_the_preview_follows_the_settings_and_the_frame_and_goes_with_the_form(window: "Window") -> None:
    points = walks(window)
    # More than a preview takes.
    rows = np.concatenate([np.add(points.data, (0, 0, 0, 200 * k)) for k in range(4)])
    points.data = rows
    window.viewer.dims.set_point(0, 12)
    form = window.form("Track particles")
    window.tick(form.live)
    window.wait(lambda: named(window, "Preview") and is_settled(form))
    assert "Learned in" in form.message.text()
    window.shot("track_preview_learned")

    def expected(frame: int, distance: float) -> int:
        middle = np.divide(window.viewer.scene.camera.center[-2:], SCALE[-2:])
        part = part_around(detections_from(rows), frame, tuple(middle))
        assert 1000 < len(part) < len(rows)
        settings = TrackingSettings(max_distance=distance, spacing=(1, 0.5, 0.5))
        return len(track(part, settings).tracks.links)

    seen = []
    for distance, frame in (("0.6", 12), ("2", 12), ("2", 3)):
        window.write(form.max_distance, distance)
        window.viewer.dims.set_point(0, frame)
        window.wait(lambda: is_settled(form))
        seen.append(link_count(named(window, "Preview")))
        assert seen[-1] == expected(frame, float(distance))
    assert seen[0] < seen[1] != seen[2]
    assert len(window.viewer.layers) == 2
    window.viewer.window.remove_dock_widget("all")
    window.wait(lambda: named(window, "Preview") is None, 2)


def test_colours_tell_doubtful_links_from_sure_ones(window: "Window") -> None:
    """Above a particle on its own, below two so near each other that their links might be exchanged."""
    t = np.arange(12)
    place = [np.column_stack([t, np.full(12, y), 10 + 3 * t]) for y in (10.0, 40.0, 41.0)]
    window.viewer.add_points(np.concatenate(place), name="three", size=0.1)
    window.viewer.dims.set_point(0, 11)
    form = window.form("Track particles")
    window.write(form.max_distance, "10")
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


def test_divisions_stand_in_the_graph(window: "Window") -> None:
    from test_divisions import tissue

    seen = tissue(cells=60, frames=20).detections
    window.viewer.add_points(rows_of(seen), name="tissue", size=0.1, scale=(1, 10, 10, 10))
    form = window.form("Track particles")
    run(window, form)
    graph = named(window, "Tracks of tissue").graph
    spaced = track(seen, TrackingSettings(spacing=(10, 10, 10)))
    assert graph == tracks_layer(spaced.tracks).graph
    assert len(graph) >= 10
    window.viewer.dims.ndisplay = 3
    window.viewer.reset_view()
    window.shot("track_divisions")
    window.tick(form.divisions, False)
    run(window, form)
    assert len(window.viewer.layers) == 3
    assert window.viewer.layers[-1].graph == {}


def test_settings_come_back_from_a_result_and_a_run_replaces_it(window: "Window") -> None:
    walks(window)
    form = window.form("Track particles")
    window.write(form.max_distance, "2")
    form.solver.setCurrentText("jonker_volgenant")
    run(window, form)
    first = named(window, "Tracks of walks")
    links = link_count(first)
    window.viewer.window.remove_dock_widget("all")
    form = window.form("Track particles")
    assert (form.max_distance.number(), form.result.layer()) == (None, None)
    form.result.choose(first)
    assert (form.max_distance.number(), form.solver.currentText()) == (2.0, "jonker_volgenant")
    assert "Tracks of walks" in form.message.text()
    window.write(form.max_distance, "0.8")
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


def test_a_large_movie_leaves_the_window_usable_and_a_run_is_cancelled_at_once(window: "Window") -> None:
    many(window, 200_000, 50)
    form = window.form("Track particles")
    with window.longest_stall() as stall:
        window.tick(form.live)
        assert window.wait(lambda: named(window, "Preview")) < 10
        assert len(named(window, "Preview").data) == 5000
        window.tick(form.live, False)
        window.click(form.run_button)
        window.click(form.run_button)  # which does not start it twice
        window.wait(lambda: form.bar.maximum() > 0 and form.bar.value() > 0)
        window.shot("track_running")
        assert not form.run_button.isEnabled()
        start = monotonic()
        window.click(form.cancel_button)
        assert form.run_button.isEnabled()
        assert monotonic() - start < 1
        window.wait(lambda: not [thread for thread in threading.enumerate() if thread.name == "outbid"], 5)
    assert stall.seconds < 2
    assert named(window, "Tracks") is None
    assert "Cancelled" in form.message.text()


def test_layers_may_go_while_a_run_is_on_its_way(window: "Window") -> None:
    walks(window)
    form = window.form("Track particles")
    window.write(form.max_distance, "2")
    run(window, form)
    edited = named(window, "Tracks of walks")
    form.result.choose(edited)
    window.click(form.run_button)
    window.viewer.layers.clear()
    window.wait(form.run_button.isEnabled)
    assert form.source.layers.layer() is None
    (tracks,) = window.viewer.layers
    assert tracks is not edited
    assert link_count(tracks) > 2000
    run(window, form)
    assert "There is no layer to work on" in form.message.text()


def test_a_preview_that_is_deleted_is_not_made_again(window: "Window") -> None:
    walks(window)
    form = window.form("Track particles")
    window.write(form.max_distance, "2")
    window.tick(form.live)
    window.wait(lambda: named(window, "Preview"))
    window.viewer.layers.remove(named(window, "Preview"))
    assert not form.live.isChecked()
    window.write(form.max_distance, "3")
    window.wait(lambda: is_settled(form))
    assert named(window, "Preview") is None


@pytest.mark.parametrize(
    ("kind", "data", "settings", "message"),
    [
        ("points", np.zeros((5, 2)), {}, "Add a first column: the frame"),
        ("points", np.zeros((0, 4)), {}, "The layer has no points"),
        ("points", np.full((5, 4), 0.5), {}, "frames must be whole numbers"),
        ("image", np.zeros((8, 8)), {}, "Open it as a movie"),
        ("image", np.zeros((3, 8, 8, 3), np.uint8), {"rgb": True}, "Split its channels"),
        ("image", np.full((3, 8, 8), np.nan), {"contrast_limits": (0, 1)}, "not finite"),
    ],
)
def test_layers_that_cannot_be_tracked_say_what_to_change(
    window: "Window", kind: str, data: NDArray, settings: dict[str, Any], message: str
) -> None:
    getattr(window.viewer, f"add_{kind}")(data, **settings)
    form = window.form("Track particles")
    run(window, form)
    assert message in form.message.text()
    assert len(window.viewer.layers) == 1


def test_settings_that_make_no_sense_say_what_to_change(window: "Window") -> None:
    walks(window)
    form = window.form("Track particles")
    window.write(form.max_distance, "2")
    window.write(form.unmatched_cost, "1000000")
    run(window, form)
    assert "unmatched_cost" in form.message.text()
    assert named(window, "Tracks") is None


def test_an_image_is_detected_then_tracked(window: "Window") -> None:
    y, x = np.mgrid[:64, :80]
    movie = np.zeros((10, 64, 80), np.float32)
    for t in range(10):
        for row, column in ((15, 10 + 4 * t), (45, 60 - 3 * t)):
            movie[t] += 100 * np.exp(-((y - row) ** 2 + (x - column) ** 2) / 8)
    movie += np.random.default_rng(0).normal(0, 1, movie.shape)
    place = {"scale": (2.0, 0.5, 0.5), "translate": (0.0, 3.0, 4.0), "units": ("second", "um", "um")}
    window.viewer.add_image(movie, name="movie", **place)
    form = window.form("Track particles")
    window.write(form.max_distance, "4")
    window.tick(form.live)
    window.wait(lambda: named(window, "Preview"))
    assert link_count(named(window, "Preview")) == 8  # two particles, five frames
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


def test_the_size_of_a_voxel_is_that_of_the_layer(window: "Window") -> None:
    points = walks(window)
    form = window.form("Track particles")
    window.write(form.source.voxel.boxes[0], "3")
    assert tuple(points.scale) == (1, 3, 0.5, 0.5)
    window.write(form.max_distance, "2")
    run(window, form)
    assert tuple(named(window, "Tracks of walks").scale) == (1, 3, 0.5, 0.5)
    settings = TrackingSettings(max_distance=2, spacing=(3, 0.5, 0.5))
    want = track(detections_from(points.data), settings).tracks
    assert link_count(named(window, "Tracks of walks")) == len(want.links)


def test_more_vertices_than_preferred_are_shown_when_the_user_says_so(
    window: "Window", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preferences().window, "vertices", 3000)
    walks(window)
    form = window.form("Track particles")
    window.write(form.max_distance, "2")
    run(window, form)
    assert named(window, "Tracks") is None
    assert "stand still" in form.message.text()
    window.click(form.offer_button)
    assert link_count(named(window, "Tracks of walks")) > 2000
    assert not form.offer_button.isVisible()


def test_a_fault_of_the_program_is_told_and_the_form_goes_on(
    window: "Window", monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("out of luck")

    module = import_module("outbid.viewers.forms.track")
    walks(window)
    form = window.form("Track particles")
    window.write(form.max_distance, "2")
    with monkeypatch.context() as patch:
        patch.setattr(module, "track", fails)
        run(window, form)
    assert "Outbid failed: RuntimeError: out of luck" in form.message.text()
    assert [str(error) for error in window.errors] == ["out of luck"]
    window.errors.clear()
    run(window, form)
    assert named(window, "Tracks of walks") is not None


def test_a_closed_form_is_gone(window: "Window") -> None:
    gone = weakref.ref(window.form("Track particles"))
    window.clear()
    gc.collect()
    assert gone() is None


def test_real_nuclei_from_the_raw_stacks(window: "Window", real_data: Path) -> None:
    from outbid.tracker.formats.images import open_movie

    frames = open_movie(real_data / "drosophila_nuclei" / "tif").frames()
    movie = np.stack([frame for frame, _ in zip(frames, range(4), strict=False)])
    units = ("pixel", "micrometer", "micrometer", "micrometer")
    window.viewer.add_image(movie, name="nuclei", scale=(1, 5, 1, 1), units=units, rendering="mip")
    window.viewer.dims.ndisplay = 3
    form = window.form("Track particles")
    run(window, form)
    tracks = named(window, "Tracks of nuclei")
    assert tracks is not None, form.message.text()
    assert link_count(tracks) > 0.8 * len(tracks.data) * 3 / 4
    window.viewer.reset_view()
    window.shot("track_nuclei")
