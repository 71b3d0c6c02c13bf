"""Pictures of the forms in napari, for docs/howto/napari.md; the build has no screen, so they are kept.

``xvfb-run -a -s "-screen 0 1600x1000x24" python docs/napari_pictures.py`` renews docs/howto/*.jpg.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from napari_window import Window, pause  # noqa: E402

import outbid  # noqa: E402
from outbid.particles.calibration import Calibration  # noqa: E402
from outbid.simulate.camera import Camera, render  # noqa: E402
from outbid.simulate.motions import PersistentWalk  # noqa: E402
from outbid.simulate.walks import WalkSettings, walk  # noqa: E402
from outbid.viewers.layers import tracks_layer  # noqa: E402

BOX = (15.0, 80.0, 80.0)
VOXEL = (1.0, 0.5, 0.5)
PLACE = {"scale": (1.0, *VOXEL), "units": ("pixel", "micrometer", "micrometer", "micrometer")}
SIZE, WIDTH = (1300, 800), 1100


def named(window: Window, name: str) -> Any:
    """The first layer of a name that begins so, or None."""
    return next((layer for layer in window.viewer.layers if layer.name.startswith(name)), None)


def detect(window: Window) -> None:
    """The tutorial's movie with the preview of its spots."""
    truth = walk(WalkSettings(PersistentWalk(1.0, 0.8), particles=50, frames=30, box=BOX, seed=7))
    camera = Camera.looking_at(BOX, psf=(1.0, 0.8, 0.8), snr=5.0, spacing=VOXEL)
    movie = np.stack(list(render(truth.detections, camera, seed=7)))
    window.viewer.add_image(movie, name="movie", **PLACE)
    window.viewer.dims.ndisplay = 3
    window.viewer.dims.set_point(0, 8)
    form = window.form("Detect spots")
    window.write(form.rows["radius"], "1.4")
    window.wait(lambda: named(window, "Preview") and "1.4" in form.message.text())


def track(window: Window) -> None:
    """What follows from its spots."""
    form = window.form("Detect spots")
    window.write(form.rows["radius"], "1.4")
    window.click(form.run_button)
    window.wait(lambda: named(window, "Spots"))
    window.viewer.window.remove_dock_widget("all")
    form = window.form("Track particles")
    form.source.layers.choose(named(window, "Spots"))
    window.tick(form.rows["divisions"], False)
    window.click(form.run_button)
    window.wait(lambda: named(window, "Tracks"))
    named(window, "Spots").visible = False
    window.viewer.dims.set_point(0, 29)


def score(window: Window) -> None:
    """Its tracks against the truth, at the first error."""
    truth = walk(WalkSettings(PersistentWalk(1.0, 0.8), particles=50, frames=30, box=BOX, seed=7))
    seen = replace(truth.detections, position=truth.detections.position / VOXEL)
    layer = tracks_layer(
        replace(truth, detections=seen), calibration=Calibration(spacing=VOXEL), name="Truth"
    )
    data, attributes, _ = layer.as_tuple()
    shown = window.viewer.add_tracks(data, features=attributes["features"], name="Truth", **PLACE)
    form = window.form("Score against truth")
    form.first.choose(named(window, "Tracks"))
    form.second.choose(shown)
    window.write(form.gate, "2")
    window.click(form.run_button)
    window.wait(form.table.rowCount)
    window.viewer.dims.set_point(0, 0)
    window.click(form.way.next_button)


def proofread(window: Window) -> None:
    """A crowd in a plane after some answers, at the next question."""
    box = (1.0, 60.0, 60.0)
    truth = walk(WalkSettings(PersistentWalk(1.4, 0.6), particles=110, frames=15, box=box, seed=5))
    window.viewer.layers.clear()
    window.viewer.dims.ndisplay = 2
    camera = Camera.looking_at(box, psf=(1.0, 0.9, 0.9), snr=6.0, spacing=(1.0, 0.5, 0.5))
    movie = np.stack([frame[0] for frame in render(truth.detections, camera, seed=5)])
    place = {name: (value[0], *value[2:]) for name, value in PLACE.items()}
    window.viewer.add_image(movie, name="crowd", **place)
    rows = np.column_stack([truth.detections.frame, truth.detections.position[:, 1:] / 0.5])
    window.viewer.add_points(rows, name="spots", size=0.1, **place)
    form = window.form("Proofread")
    form.file.setText(str(window.pictures / "crowd_proofread.csv"))
    window.click(form.run_button)
    window.wait(lambda: form.asked, 120)
    for key in "1N1N1N1N1N2N":
        form.press(key)
        window.wait(lambda: form.is_idle)
    pause(2000)  # what changed has blinked


def lineage(window: Window) -> None:
    """A dividing population, coloured by generation, filtered by length, with two detections selected."""
    window.viewer.layers.clear()
    chance = 0.02
    settings = WalkSettings(PersistentWalk(0.6, 0.8), 12, 40, (0.1, 60, 60), seed=5, division_rate=chance)
    truth = walk(settings)
    run = outbid.track(truth.detections)
    data, more, _ = tracks_layer(run.tracks, name="cells").in_plane().as_tuple()
    record = {"command": "track", "settings": run.settings.as_dict()}
    window.viewer.add_tracks(data, **more, metadata={"outbid": record}, tail_length=12)
    form = window.form("Lineage")
    form.file.setText(str(window.pictures / "cells_proofread.csv"))
    box = form.filter
    box.columns.setCurrentText("length")
    window.click(box.add_button)
    box.filters[0].slider.setValue((4.0, box.filters[0].slider.value()[1]))
    window.wait(box.text.text)
    tracks = form.tracks
    link = int(tracks.link_probability.argmin())
    form.select(int(tracks.links[link, 0]))
    form.select(int(tracks.links[link, 1]), more=True)
    window.click(form.buttons["F"])
    window.wait(lambda: form.is_idle and form.session is not None)
    form.colour.asked.emit()
    window.wait(lambda: form.colour.names.findText("generation") >= 0)
    form.colour.names.setCurrentText("generation")
    form.lineage.fit()


def dock(window: Window) -> None:
    """The dock at its page Check, with tracks of the tutorial's movie."""
    window.viewer.layers.clear()
    window.viewer.dims.ndisplay = 2
    detect_movie = walk(WalkSettings(PersistentWalk(1.6, 0.8), particles=50, frames=12, box=BOX, seed=7))
    camera = Camera.looking_at(BOX, psf=(1.0, 0.8, 0.8), snr=5.0, spacing=VOXEL)
    movie = np.stack(list(render(detect_movie.detections, camera, seed=7)))
    window.viewer.add_image(movie, name="movie", **PLACE)
    form = window.form("Outbid")
    for _ in range(5):
        window.click(form.next_button)
        window.wait(lambda: not form.page.busy(), 120)
    window.viewer.dims.set_point(0, 11)
    window.click(form.page.way.next_button)
    pause(1000)  # the sentence finds its room


def main() -> None:
    """Draw them all, one after the other, in one window."""
    with tempfile.TemporaryDirectory() as name:
        window = Window(Path(name))
        window.viewer.window.resize(*SIZE)
        chosen = sys.argv[1:]  # all, or some by their names
        for show in (detect, track, score, proofread, lineage, dock):
            if chosen and show.__name__ not in chosen:
                continue
            show(window)
            window.shot(show.__name__)
            with Image.open(Path(name) / f"{show.__name__}.png") as drawn:
                small = drawn.convert("RGB").resize((WIDTH, drawn.height * WIDTH // drawn.width))
            small.save(HERE / "howto" / f"napari-{show.__name__}.jpg", quality=75, optimize=True)
            window.viewer.window.remove_dock_widget("all")
        window.close()


if __name__ == "__main__":
    main()
