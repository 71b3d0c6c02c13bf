"""The form *Track particles*, in a real window."""

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from outbid.data import sample
from outbid.tracker import TrackingSettings, Tracks, read_detections, track
from outbid.viewers.taken import detections_from, tracks_from

if TYPE_CHECKING:
    from napari_window import Window

SCALE = (1.0, 1.0, 0.5, 0.5)
UNITS = ("pixel", "micrometer", "micrometer", "micrometer")


def walks(window: "Window") -> Any:
    """The sample as a layer of points, in voxels."""
    seen = read_detections(sample("walks"))
    rows = np.column_stack([seen.frame, seen.position])
    return window.viewer.add_points(rows, name="walks", size=3, scale=SCALE, units=UNITS)


def result(window: "Window") -> Any:
    return next((layer for layer in window.viewer.layers if layer.name.startswith("Tracks of")), None)


def links_of(layer: Any) -> list[list[int]]:
    found = tracks_from(layer.data, features=dict(layer.features), graph=layer.graph)
    return found.links.tolist()


def expected(layer: Any, settings: TrackingSettings) -> Tracks:
    return track(detections_from(layer.data), settings).tracks


def test_points_become_tracks_with_the_settings_of_the_form(window: "Window") -> None:
    points = walks(window)
    form = window.form("Track particles")
    window.write(form.max_distance, "1.5")
    window.write(form.max_gap, "2")
    window.click(form.run_button)
    window.wait(lambda: result(window))
    tracks = result(window)
    want = expected(points, TrackingSettings(max_distance=1.5, max_gap=2, spacing=SCALE[1:]))
    assert len(links_of(tracks)) == len(want.links) > 2000
    assert sorted(map(tuple, tracks.data[:, 1:])) == sorted(map(tuple, points.data))
    assert tuple(tracks.scale) == SCALE
    assert tuple(map(str, tracks.units)) == UNITS
    assert tracks.metadata["outbid"]["settings"]["max_distance"] == 1.5
    assert "proved optimal" in form.message.text()


def test_a_closed_form_is_gone(window: "Window") -> None:
    gone = weakref.ref(window.form("Track particles"))
    window.clear()
    assert gone() is None
