"""A microscope that acts on what it sees: Micro-Manager's demo camera, whose stage turns round.

Run ``python docs/microscope.py FOLDER``, with ``pip install 'outbid[microscope]' mm-test-adapters``. For a
real microscope load its configuration instead of the demo devices.
"""

import sys
import threading
from pathlib import Path
from typing import Any

import tifffile

from outbid.watching.account import How
from outbid.watching.events import Event
from outbid.watching.watch import watch

STEP = 0.4  # µm that the stage drifts from frame to frame, until an event turns it round
MOST = 300  # frames, if there is no event


def demo_microscope() -> Any:
    """Micro-Manager with a simulated camera, which sees beads, and a simulated stage."""
    from mm_test_adapters import device_adapter_path
    from pymmcore_plus import CMMCorePlus

    core = CMMCorePlus()
    core.setDeviceAdapterSearchPaths([device_adapter_path()])
    for label, device in (("Camera", "DCam"), ("XY", "DXYStage")):
        core.loadDevice(label, "DemoCamera", device)
        core.initializeDevice(label)
    core.setCameraDevice("Camera")
    core.setXYStageDevice("XY")
    core.setProperty("Camera", "Mode", "Fluorescent Beads")
    core.setProperty("Camera", "PixelType", "16bit")
    return core


class Recording:
    """A movie of the demo camera, one file a frame, whose stage drifts; `turn` is called at an event.

    After the first frames, from which is learned, the camera waits until the frame before the last is linked:
    so an event comes one frame after what caused it, however fast the computer is.
    """

    def __init__(self, folder: Path, after: int, learn: int) -> None:
        self.core, self.images, self.after, self.learn = demo_microscope(), folder / "images", after, learn
        self.stop, self.events = folder / "tracks.parquet.stop", list[Event]()
        self.linked, self.over, self.news = 0, False, threading.Condition()
        self.images.mkdir()

    def turn(self, event: Event) -> None:
        """The stage turns round: called within a frame's time of what was seen."""
        self.events.append(event)

    def progress(self, done: int, *_: object) -> None:
        """Frames that are linked: called after each of them."""
        with self.news:
            self.linked = done
            self.news.notify_all()

    def end(self) -> None:
        """Record no more, also if watching has failed."""
        with self.news:
            self.over = True
            self.news.notify_all()

    def record(self) -> None:
        """Record until some frames after the first event; a file gets its name when it is whole."""
        left = self.after
        for k in range(MOST):
            with self.news:
                self.news.wait_for(lambda k=k: self.over or k < self.learn or k - self.linked < 2)
            left -= bool(self.events)
            if self.over or not left:
                break
            self.core.setRelativeXYPosition(-STEP if self.events else STEP, 0)
            self.core.waitForDevice("XY")  # the stage has arrived
            tifffile.imwrite(self.images / ".writing", self.core.snap())
            (self.images / ".writing").replace(self.images / f"frame_{k:04d}.tif")
        self.stop.touch()


def acquire(folder: Path, when: str, *, after: int = 8, learn: int = 8) -> tuple[dict[str, Any], list[Event]]:
    """Record while the movie is watched; the record of the latter, and the events."""
    recording = Recording(folder, after, learn)
    camera = threading.Thread(target=recording.record)
    camera.start()
    try:
        made = watch(
            recording.images, folder / "tracks.parquet", how=How(learn=learn, poll=0.02), when=[when],
            do=recording.turn, progress=recording.progress,
        )  # fmt: skip
    finally:
        recording.end()
        camera.join()
    return made, recording.events


if __name__ == "__main__":
    made, events = acquire(Path(sys.argv[1]), "enters :,0:512,200:210")
    sys.stdout.write(f"{made['live']['frames']} frames; {len(events)} events; {made['summary']}\n")
