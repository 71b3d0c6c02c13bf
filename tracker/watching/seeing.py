"""Detections of one frame, by a model that was learned from the first frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..detection.frames import detect_frame, learn_from
from ..formats.images.frames import Images
from ..particles.detections import Detections, in_places
from ..settings.detection import DetectionSettings

if TYPE_CHECKING:
    from ..detection.model import SpotModel


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
        self._settings = replace(settings, spacing=movie.spacing)
        self._model: SpotModel | None = None
        self.learned_from: tuple[int, ...] = ()

    def learn(self, read: Callable[[int], NDArray], numbers: Sequence[int]) -> None:
        """Learn from some of these frames, evenly spread; nothing is learned if no spot stands out."""

        def some(places: Sequence[int]) -> Iterable[NDArray]:
            return (read(numbers[place]) for place in places)

        self._model, used = learn_from(some, len(numbers), self._settings, workers=self._workers)
        if self._model is not None:
            self._settings, self.learned_from = used, tuple(numbers)

    def detections(self, image: NDArray, frame: int) -> Detections:
        """The detections of a frame, in places."""
        found = detect_frame(
            image, self._settings, self._model, unit=self._movie.unit, workers=self._workers
        )  # fmt: skip
        found = replace(found, frame=np.full(len(found), frame, np.int32))
        return in_places(found, self._movie.calibration)
