"""A recording that is followed in a real window: image, tracks, lineage, events, and how it ends."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari_scenes import Window
from recordings import WrittenMovie, images_of, truth_of, write_frame

from outbid import read_tracks
from outbid.watching.parts import live_folder

FRAMES = 30
IMAGES = images_of(truth_of(FRAMES, particles=18, side=64), FRAMES, (1, 64, 64))
WATCH = "--learn 6 --poll 0.02 --idle 600"


class Camera:
    """Writes frames to a folder, and goes on while the window is busy."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.frame = folder, 0
        folder.mkdir()

    def write(self, count: int) -> None:
        for _ in range(count):
            write_frame(self.folder, self.frame, IMAGES[self.frame])
            self.frame += 1


@pytest.fixture
def camera(tmp_path: Path) -> Camera:
    return Camera(tmp_path / "cells")


def started(window: Window, camera: Camera, options: str = "", by: Any = None) -> Any:
    """The form, opened by its entry or by a button, which has begun to follow."""
    if by is not None:
        window.click(by)
    form = window.form("Live")
    form.source.setText(str(camera.folder))
    form.source.textEdited.emit(str(camera.folder))
    form.options.setText(f"{WATCH} {options}")
    window.click(form.button)
    return form


def ended(window: Window, form: Any) -> str:
    """End it by the button; what the form says then."""
    window.click(form.button)
    window.wait(lambda: form.layers is None, 120)
    return str(form.said.label.text())


def written_of(output: Path) -> int:
    """The last frame that the watch has written so far."""
    from outbid.watching.reading import Reading

    reading = Reading(output)
    reading.new()
    return reading.last


@pytest.mark.smoke
def test_a_recording_is_followed_until_it_is_stopped(window: Window, camera: Camera) -> None:
    form = started(window, camera, '--when "speed > 1.6"', by=window.form("Outbid").pages[0].live_button)
    assert "Waiting for the first frames" in form.said.label.text()
    output = camera.folder.with_name("cells_tracks.parquet")
    assert form.output.text() == str(output)
    camera.write(12)
    window.wait(lambda: form.layers.reading.last == 11, 120)
    image, tracks = form.layers.image, form.layers.tracks
    assert [layer.name for layer in window.viewer.layers] == ["cells", "Tracks of cells"]
    assert window.viewer.dims.point[0] == 11
    assert np.array_equal(image.data[11], IMAGES[11, 0])
    assert form.said.label.text().startswith(f"Frame 11: {(tracks.data[:, 1] == 11).sum() - 1} spots, 0 fra")

    window.viewer.dims.set_point(0, 5)
    camera.write(8)
    window.wait(lambda: form.layers.reading.last == 19)
    assert window.viewer.dims.point[0] == 5
    assert "move the time to its end" in form.said.label.text()
    window.viewer.dims.set_point(0, window.viewer.dims.range[0].stop)
    assert window.viewer.dims.point[0] == 19
    camera.write(2)
    window.wait(lambda: window.viewer.dims.point[0] == 21)
    assert image.data.shape == (22, 64, 64)
    window.wait(lambda: form.lineage.forest is not None and form.lineage.forest.spans.last.max() == 21)
    assert form.events.count() > 0
    assert "Last event: speed > 1.6 = " in form.said.label.text()
    window.shot("live")

    said = ended(window, form)
    assert "(stop file): 22 frames, 0 missing, 0 late." in said
    assert (
        f"In {output.parent}: {output.name}, cells_tracks_detections.parquet, cells_tracks.watch.json" in said
    )
    assert len(tracks.data) == len(read_tracks(output).detections)
    assert tracks.name == output.name
    assert not live_folder(output).exists()
    window.shot("live_ended")


def test_drawing_delays_no_link(window: Window, camera: Camera) -> None:
    """While the window is busy and answers nothing, all frames that come are linked and written."""
    form = started(window, camera)
    camera.write(10)
    window.wait(lambda: form.layers.reading.last == 9, 120)
    output, end = Path(form.output.text()), time.monotonic() + 60
    camera.write(15)
    while (last := written_of(output)) < 24 and time.monotonic() < end:
        sum(range(10**6))  # no event of the window is handled, and no other thread of its process runs long
    assert last == 24
    assert form.layers.reading.last == 9
    window.wait(lambda: window.viewer.dims.point[0] == 24)
    ended(window, form)


def test_what_is_drawn_does_not_grow_and_earlier_frames_are_read(window: Window, tmp_path: Path) -> None:
    """The layer has the tracks around the frame that is shown; those of earlier frames are read again."""
    many, form = WrittenMovie(tmp_path, [*IMAGES[:, 0]], 50), window.form("Live")
    for _ in range(400):
        many.next()
    form.follow(str(many.images), many.output)
    window.wait(lambda: form.layers.reading.last == 399)
    tracks = form.layers.tracks
    assert len(tracks.data) < 50 * 33
    assert len(form.layers.recent) < 200
    window.viewer.dims.set_point(0, 90)
    window.wait(lambda: 90 in form.layers.tracks.data[:, 1])
    frames = np.unique(tracks.data[:-2, 1])
    assert (frames.min(), frames.max()) == (60, 91)
    assert window.viewer.dims.range[0].stop == 399


def test_what_cannot_be_followed_says_why(window: Window, tmp_path: Path) -> None:
    form = window.form("Live")
    window.click(form.button)
    assert "Choose the folder" in form.said.label.text()
    form.source.setText(str(tmp_path / "none"))
    form.output.setText(str(tmp_path / "tracks.parquet"))
    form.options.setText('--when "speed')
    window.click(form.button)
    assert "not as in a shell" in form.said.label.text()
    form.options.setText("--when speed")
    window.click(form.button)
    assert "none is not there" in form.said.label.text()
    form.source.setText(str(tmp_path))
    window.click(form.button)
    window.wait(lambda: form.layers is None)
    assert "'speed'" in form.said.label.text()
    assert form.button.isEnabled()


# ------------------------------------------------------------ the command, in a window of its own

SHOWN = [sys.executable, "-c", "from outbid.cli import main; main()", "watch"]


@pytest.fixture
def shown(camera: Camera) -> Iterator[subprocess.Popen]:
    output = camera.folder.with_name("tracks.parquet")
    camera.write(12)
    settings = camera.folder.with_name("napari.yaml")  # else napari asks before it closes
    settings.write_text("application:\n  confirm_close_window: false\n")
    words = [str(camera.folder), "-o", str(output), "--show", *WATCH.split()]
    more = {"NAPARI_CONFIG": str(settings)}
    process = subprocess.Popen([*SHOWN, *words], stderr=subprocess.PIPE, env=os.environ | more)
    yield process
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


def is_closed(title: str) -> bool:
    """Ask windows of a title to close; whether there was one."""
    asked = subprocess.run(
        [sys.executable, Path(__file__).with_name("x_windows.py"), title], capture_output=True, check=False
    )
    return asked.returncode == 0


@pytest.mark.skipif(not os.environ.get("DISPLAY"), reason="there is no screen")
def test_closing_the_window_ends_the_watch_with_all_outputs(shown: subprocess.Popen, camera: Camera) -> None:
    output, end = camera.folder.with_name("tracks.parquet"), time.monotonic() + 100
    while written_of(output) < 11:
        assert time.monotonic() < end
        assert shown.poll() is None
        time.sleep(0.2)
    camera.write(5)
    while written_of(output) < 16:
        time.sleep(0.1)
    while not is_closed(str(camera.folder)):  # it opens
        assert time.monotonic() < end
        time.sleep(0.5)
    assert shown.stderr is not None
    assert shown.wait(60) == 0, shown.stderr.read()
    record = json.loads(output.with_name("tracks.watch.json").read_text("utf-8"))
    assert (record["live"]["ended"], record["live"]["frames"]) == ("stop file", 17)
    assert read_tracks(output).detections.frame.max() == 16
