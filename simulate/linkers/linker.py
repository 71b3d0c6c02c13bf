"""What a linker is to an experiment."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import product

import numpy as np
from numpy.typing import NDArray

from outbid.detections import Detections
from outbid.tracks import Tracks

Settings = dict[str, float | int | str]
"""Values by name. Lengths are in mean distances to the nearest neighbour."""

PIXELS = 10.0
"""Defaults of other packages are lengths in pixels: the nearest neighbour is taken to be so many away."""

NONE: NDArray[np.int64] = np.empty((0, 2), dtype=np.int64)
"""No links: what a linker returns that gives up on a movie."""


class Linker(ABC):
    """A way from detections to links, with settings to choose.

    `packages` are the modules that it imports beside those of Outbid.
    """

    packages: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """A sentence, if a package that it needs is not there."""
        absent = [name for name in self.packages if find_spec(name) is None]
        if not absent:
            return None
        return f"{' and '.join(absent)} left out: not installed (pip install 'outbid[rivals]')."

    def grid(self, *, gaps: bool) -> list[Settings]:
        """Settings to try on the truth of other movies; none here, where nothing is to be set.

        Parameters
        ----------
        gaps : bool
            Whether particles may be missed.
        """
        del gaps
        return []

    def defaults(self, *, gaps: bool) -> Settings | None:
        """What it does if nothing is set; None if something must be.

        Parameters
        ----------
        gaps : bool
            As for `grid`: what everybody would set.
        """
        del gaps
        return {}

    @abstractmethod
    def link(self, detections: Detections, settings: Settings, nearest: float) -> NDArray[np.int64]:
        """(E, 2) int64 links, rows of source and target.

        Parameters
        ----------
        detections : Detections
        settings : Settings
        nearest : float
            Mean distance to the nearest neighbour, in the unit of the positions.
        """


def grid_of(values: dict[str, tuple[float | int | str, ...]]) -> list[Settings]:
    """Every combination of these values.

    Examples
    --------
    >>> grid_of({"radius": (1.0, 2.0), "memory": (0,)})
    [{'radius': 1.0, 'memory': 0}, {'radius': 2.0, 'memory': 0}]
    """
    if not values:
        return []
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def links_of_labels(detections: Detections, label: NDArray[np.int64]) -> NDArray[np.int64]:
    """Links between detections of the same label; -1 is no track."""
    return Tracks.from_track_ids(detections, label).links


def by_frame(detections: Detections) -> list[NDArray[np.float64]]:
    """Positions (n, 3) of every frame from the first to the last."""
    return np.split(detections.position, detections.frame_start[1:-1])


@contextmanager
def silence() -> Iterator[None]:
    """Other packages' bars, logs and warnings are none of this experiment's."""
    before, nowhere = logging.root.manager.disable, io.StringIO()
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stderr(nowhere),
        contextlib.redirect_stdout(nowhere),
    ):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)
