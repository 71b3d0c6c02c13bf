"""Layers for the tests of the plugin, and what is asked of a window and a form; napari is not imported."""

import threading
from importlib import import_module
from time import sleep
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outbid import Detections, read_detections
from outbid.data import sample
from outbid.simulate.motions import PersistentWalk
from outbid.simulate.walks import WalkSettings, walk
from outbid.viewers.from_layers import tracks_from

if TYPE_CHECKING:
    from napari_window import Window
else:
    Window = Any

SCALE = (1.0, 1.0, 0.5, 0.5)
UNITS = ("pixel", "micrometer", "micrometer", "micrometer")


def rows_of(seen: Detections) -> NDArray[np.float64]:
    return np.column_stack([seen.frame, seen.position])


def walks(window: Window) -> Any:
    """The sample as a layer of points, in voxels."""
    rows = rows_of(read_detections(sample("walks")))
    return window.viewer.add_points(rows, name="walks", size=3, scale=SCALE, units=UNITS)


def many(window: Window, count: int, frames: int) -> Any:
    """A movie of so many points in all."""
    seen = walk(WalkSettings(PersistentWalk(1.0, 0.8), count // frames, frames, (100, 300, 300))).detections
    return window.viewer.add_points(rows_of(seen), name="many", size=2)


def named(window: Window, start: str) -> Any:
    """The layer whose name starts so."""
    return next((layer for layer in window.viewer.layers if layer.name.startswith(start)), None)


def link_count(layer: Any) -> int:
    return len(tracks_from(layer.data, features=dict(layer.features), graph=layer.graph).links)


def is_settled(form: Any) -> bool:
    """Whether neither a preview is on its way nor one is awaited."""
    return form._preview is None and not form._settled.isActive()


def no_thread_is_left() -> bool:
    return not [thread for thread in threading.enumerate() if thread.name == "outbid"]


def endless(*_: Any, gate: float = 0.0, progress: Any) -> None:  # noqa: ARG001 - as it is called
    """In place of `track` or `score`: it reports that a third is done, and ends when it is cancelled."""
    while True:
        progress(1, 3)
        sleep(0.01)


def run(window: Window, form: Any, seconds: float = 90.0) -> None:
    window.click(form.run_button)
    window.wait(lambda: form._work is None, seconds)


def preferences() -> Any:
    return import_module("napari.settings").get_plugin_settings("outbid")


def gated(window: Window, distance: str = "2") -> Any:
    """The form for tracks of the sample, with a max. distance."""
    walks(window)
    form = window.form("Track particles")
    window.write(form.rows["max_distance"], distance)
    return form
