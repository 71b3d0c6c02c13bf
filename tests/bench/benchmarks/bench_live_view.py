"""The viewer of a movie while it is recorded: CPU seconds of a frame, early and late, and pictures a second.

``.ci/on_a_screen python tests/bench/benchmarks/bench_live_view.py``: what a watch would write of 512 x 512
pixels and 300 spots is written at 10 Hz to a window; between, as fast as it goes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import measure
import numpy as np
from bench_detect import frame_of

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from recordings import WrittenMovie

SPOTS, SIDE, IMAGES = 300, 512, 20
"""Spots of a frame, pixels of a side, and files that are different."""
RATE, MEASURED = 10.0, 60
"""Frames a second, and how many are measured at a time."""


def shown(camera: WrittenMovie, form: Any, drawn: list[int]) -> measure.Row:
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
        "frames a second": round(MEASURED / seconds, 1), "GB at most": round(measure.peak_gb(), 2),
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
        image = frame_of((1, SIDE, SIDE), SPOTS, 0)[0]
        images = [np.roll(image, k, 0) for k in range(IMAGES)]
        camera, form = WrittenMovie(Path(scratch), images, SPOTS), window.form("Live")
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
