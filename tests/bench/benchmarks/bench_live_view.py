"""The viewer of a movie while it is recorded: CPU seconds of a frame, early and late, and pictures a second.

``.ci/on_a_screen python tests/bench/benchmarks/bench_live_view.py``: what a watch would write of 512 x 512
pixels and 300 spots is written at 10 Hz to a window; between, as fast as it goes.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import measure
import numpy as np
import tifffile
from bench_detect import frame_of
from bench_watch import resident

from outbid import Detections
from outbid.watching.following import Followed
from outbid.watching.parts import GrowingOutput

SPOTS, SIDE, LENGTH = 300, 512, 60
"""Spots of a frame, pixels of a side, frames of a track."""
IMAGES = 20
"""Files that are different; the others are links to them."""
RATE, MEASURED = 10.0, 60
"""Frames a second, and how many are measured at a time."""
STATE = {"seen": np.empty(0, np.int64)}


class Camera:
    """Writes images, and what a watch writes of them."""

    def __init__(self, folder: Path) -> None:
        self.images, self.output, self.frame = folder / "images", folder / "tracks.parquet", 0
        self.images.mkdir()
        (folder / "kept").mkdir()
        image = frame_of((1, SIDE, SIDE), SPOTS, 0)[0]
        self._kept = [folder / "kept" / f"{k}.tif" for k in range(IMAGES)]
        for k, path in enumerate(self._kept):
            tifffile.imwrite(path, np.roll(image, k, 0))
        self._rng = np.random.default_rng(0)
        self._place = self._rng.uniform(0, SIDE, (SPOTS, 2))
        self.out = GrowingOutput(self.output, {"command": "watch"}, overwrite=False)

    def next(self) -> None:
        """One more frame."""
        k = self.frame
        os.link(self._kept[k % IMAGES], self.images / f"img_{k:06d}.tif")
        self._place = np.clip(self._place + self._rng.normal(0, 1, self._place.shape), 0, SIDE)
        who = np.arange(SPOTS)
        track = who + SPOTS * ((k + who) // LENGTH)
        seen = Detections.from_table(np.full(SPOTS, k), np.column_stack([0 * who, self._place]))
        sure = self._rng.beta(20, 1, SPOTS)
        self.out.took(k, k, 0)
        self.out.add([Followed(k, seen, track, sure, np.full(SPOTS, -1))])
        if k % round(RATE) == 0:
            self.out.commit(STATE)
        self.frame += 1


def shown(camera: Camera, form: Any, drawn: list[int]) -> measure.Row:
    """Show frames at 10 Hz."""
    from napari_window import pause

    def wait() -> None:
        while form.layers.reading.last < camera.frame - 1:
            pause(1)

    wait()
    pause(500)
    begin, cpu, pictures, written = time.monotonic(), time.process_time(), drawn[0], 0.0
    first = camera.frame
    for k in range(MEASURED):
        now = time.process_time()
        camera.next()
        written += time.process_time() - now
        pause(max(round(1000 * (begin + (k + 1) / RATE - time.monotonic())), 1))
    wait()
    seconds, cpu = time.monotonic() - begin, time.process_time() - cpu - written
    return {
        "from frame": first, "CPU of a frame": round(cpu / MEASURED, 4),
        "pictures a second": round((drawn[0] - pictures) / seconds, 1),
        "frames a second": round(MEASURED / seconds, 1), "MB": resident(os.getpid()),
    }  # fmt: skip


def main() -> None:
    """Show frames early, and late."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--pictures", type=Path, default=Path(tempfile.gettempdir(), "live"))
    given = parser.parse_args()
    from napari_window import Window

    window = Window(given.pictures)
    window.viewer.window.resize(1200, 800)
    drawn = [0]
    canvas = window.viewer.window._qt_viewer.canvas._scene_canvas
    canvas.events.draw.connect(lambda _: drawn.__setitem__(0, drawn[0] + 1))
    with tempfile.TemporaryDirectory() as scratch:
        camera, form = Camera(Path(scratch)), window.form("Live")
        for _ in range(40):
            camera.next()
        form.follow(str(camera.images), camera.output)
        for frame in given.at:
            while camera.frame < frame:
                camera.next()
            print(json.dumps(shown(camera, form, drawn)), flush=True)
            window.shot(f"at_{frame}")
        print([repr(error) for error in window.errors], json.dumps(measure.stated()))
    window.close()


if __name__ == "__main__":
    main()
