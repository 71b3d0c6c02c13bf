"""Detections of one frame, by a model that was learned from the first frames, and again when they change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..detection.frames import detect_frame, learn_from
from ..formats.images.frames import Images
from ..particles.detections import Detections, in_places
from ..settings.detection import DetectionSettings
from .light import Light
from .sources import NotYet

if TYPE_CHECKING:
    from ..detection.model import SpotModel

_LOG = logging.getLogger("outbid")
_CHANGED = (
    "Frame %d: the latest frames differ from those that detection was learned from (%s). It is learned again "
    "from them. Check focus and light if this is not meant."
)
Read = Callable[[int], NDArray]


class Seer:
    """Detects frame by frame; noise, width and filter are those of the frames that were learned from.

    Parameters
    ----------
    movie : Images
        Metadata of the images.
    settings : DetectionSettings
        Without a spacing, which is that of the movie.
    workers : int
        Threads; they do not change the result.
    """

    def __init__(self, movie: Images, settings: DetectionSettings, workers: int) -> None:
        self._movie, self._workers = movie, workers
        self._given = self._settings = replace(settings, spacing=movie.spacing)
        self._model: SpotModel | None = None
        self._in_tiles = Lock()
        self._light = Light()
        self.learned_from: tuple[int, ...] = ()
        self.again: list[int] = []
        """Frames at which it was learned again."""

    def learn(self, read: Read, numbers: Sequence[int]) -> bool:
        """Learn from some of these frames, evenly spread; nothing is learned if no spot stands out."""

        def some(places: Sequence[int]) -> Iterable[NDArray]:
            return (read(numbers[place]) for place in places)

        model, used = learn_from(some, len(numbers), self._given, workers=self._workers)
        if model is not None:
            self._model, self._settings, self.learned_from = model, used, tuple(numbers)
        return model is not None

    def found(self, image: NDArray) -> Detections:
        """The detections of an image, in places, as of frame 0."""
        from ..detection.spots import LARGE

        tiled = image.size > LARGE  # which takes all threads, and memory
        with self._in_tiles if tiled else nullcontext():
            found = detect_frame(
                image, self._settings, self._model, unit=self._movie.unit,
                workers=self._workers if tiled else 1,
            )  # fmt: skip
        return in_places(found, self._movie.calibration)

    def compare(self, read: Read, number: int, frame: int, found: Detections) -> None:
        """Compare a frame's detections with those of the first frames; learn again if the latest differ."""
        self._light.add(number, found)
        change = self._light.change()
        if not change:
            return
        try:
            if self.learn(read, self._light.latest):
                _LOG.warning(_CHANGED, frame, change)
                self.again.append(frame)
        except NotYet:  # files are gone
            _LOG.info("Frame %d: detection cannot be learned again, for frames are gone.", frame)
        self._light = Light()

    def state(self) -> dict[str, NDArray]:
        """From which `restore` goes on."""
        return {
            "seen": np.array(self.learned_from, np.int64), "light": self._light.state(),
            "again": np.array(self.again, np.int64),
        }  # fmt: skip

    def restore(self, read: Read, state: Mapping[str, NDArray]) -> None:
        """Go on from a state, learning from the same frames as before."""
        self.learn(read, state["seen"].tolist())
        self._light.restore(state["light"])
        self.again = state["again"].tolist()


def numbered(found: Detections, frame: int) -> Detections:
    """Detections of a frame."""
    return replace(found, frame=np.full(len(found), frame, np.int32))


class Ahead:
    """Detects images that wait, by threads of their own, while earlier frames are linked.

    What is found does not depend on it: an image that has changed since, or that was begun before the seer
    learned again, is detected anew.

    Parameters
    ----------
    workers : int
        Images at the same time.
    """

    def __init__(self, workers: int) -> None:
        self._workers, self._pool = workers, ThreadPoolExecutor(workers)
        self._begun: dict[int, tuple[int, NDArray, Future[Detections]]] = {}

    def begin(self, seer: Seer, read: Read, numbers: Sequence[int]) -> None:
        """Begin with the first of these images that can be read; forget others."""
        now = len(seer.again)
        self._begun = {number: of for number, of in self._begun.items() if number in numbers and of[0] == now}
        for number in numbers[: self._workers]:
            if number in self._begun:
                continue
            try:
                image = read(number)
            except NotYet:
                continue
            self._begun[number] = (now, image, self._pool.submit(seer.found, image))

    def is_done(self, number: int, seconds: float) -> bool:
        """Whether there is nothing to wait for, after so many seconds at most."""
        begun = self._begun.get(number)
        return begun is None or bool(wait([begun[2]], seconds).done)

    def found(self, seer: Seer, number: int, image: NDArray) -> Detections:
        """What the seer finds in an image."""
        again, seen, found = self._begun.pop(number, (-1, image, Future[Detections]()))
        if again == len(seer.again) and image.shape == seen.shape and image.tobytes() == seen.tobytes():
            return found.result()
        return seer.found(image)

    def close(self) -> None:
        """Leave what was begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)
