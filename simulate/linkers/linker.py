"""The interface of linkers in experiments."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise, product
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outbid.particles.detections import Detections
from outbid.particles.tracks import Tracks

from ..scenes import NEAREST

Settings = dict[str, float | int | str]
"""Values by name. Lengths are in units of density^(-1/3)."""
Grid = dict[str, tuple[float | int | str, ...]]
"""Values to try, by name."""

PIXELS = 10 / NEAREST
"""Pixels in density^(-1/3), for the defaults of other packages: 10 in a mean nearest-neighbour distance."""

Links = NDArray[np.int64]
"""(E, 2) rows of source and target."""
NONE: Links = np.empty((0, 2), dtype=np.int64)
"""No links; also the result of a linker that gives up on a movie."""


class Linker(ABC):
    """A method that makes links of detections, with settings."""

    package: str = ""
    """Another package that it needs."""
    usual: ClassVar[Settings | None] = {}
    """Its default settings; None if it has none."""

    def missing(self) -> str | None:
        """A sentence if the package that it needs is not installed, else None."""
        if not self.package or find_spec(self.package) is not None:
            return None
        return f"{self.package} left out: not installed (pip install 'outbid[rivals]')."

    def grid(self, *, gaps: bool) -> list[Settings]:
        """Settings to try on the truth of other movies; by default there are none.

        Parameters
        ----------
        gaps : bool
            Whether particles may be missed.
        """
        del gaps
        return []

    def defaults(self, *, gaps: bool) -> Settings | None:
        """The default settings; `gaps` as for `grid`: any user would set this."""
        del gaps
        return self.usual

    @abstractmethod
    def link(self, detections: Detections, settings: Settings, unit: float) -> Links:
        """The links.

        Parameters
        ----------
        detections : Detections
        settings : Settings
        unit : float
            density^(-1/3) in the unit of the positions.
        """


def lengths(*nearest: float) -> tuple[float, ...]:
    """Mean nearest-neighbour distances in units of density^(-1/3).

    Examples
    --------
    >>> lengths(1.0, 2.0)
    (0.554, 1.1079)
    """
    return tuple(round(length * NEAREST, 4) for length in nearest)


def grid_of(values: Grid) -> list[Settings]:
    """All combinations of the given values of each setting, as a list of settings.

    Examples
    --------
    >>> grid_of({"radius": (1.0, 2.0), "memory": (0,)})
    [{'radius': 1.0, 'memory': 0}, {'radius': 2.0, 'memory': 0}]
    """
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def links_of(detections: Detections, tracks: Iterable[ArrayLike]) -> Links:
    """Links between successive detections of each track, given by rows; negative rows are none."""
    label = np.full(len(detections), -1)
    for number, rows in enumerate(tracks):
        row = np.asarray(rows, dtype=np.int64)
        label[row[row >= 0]] = number
    return Tracks.from_track_ids(detections, label).links


def matched(detections: Detections, match: Callable[..., NDArray]) -> Links:
    """Links of each two successive frames: `match` gives the partner of each row, or -1, by positions."""
    found, place = [NONE], detections.position
    for (a, b), (_, c) in pairwise(pairwise(detections.frame_start)):
        if a < b < c:
            source, target = rows_and_partners(match(place[a:b], place[b:c]))
            found.append(np.column_stack([a + source, b + target]))
    return np.concatenate(found)


def rows_and_partners(partner: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that have a partner, and these partners; -1 is none."""
    row = np.nonzero(partner >= 0)[0]
    return row, partner[row].astype(np.int64)


def by_frame(detections: Detections) -> list[NDArray[np.float64]]:
    """Positions (n, 3) of every frame from the first to the last."""
    return np.split(detections.position, detections.frame_start[1:-1])


@contextmanager
def silence() -> Iterator[None]:
    """Suppress progress bars, logs and warnings of other packages."""
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
