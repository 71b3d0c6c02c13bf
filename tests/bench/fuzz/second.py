"""What a reader makes of a file, rows and links in order; and when a second one cannot judge."""

from __future__ import annotations

import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Row = tuple[float, ...]
"""Frame, z, y, x, and what else both readers know of a detection."""
Links = list[tuple[int, int]]
"""Pairs of places of rows."""
DECIMAL = re.compile(r"[ \t]*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*", re.ASCII)


class Unsure(Exception):
    """The second reader does not understand the file, which may be read or refused."""


class Broken(Exception):
    """No reader may take data from the file: it must be refused. All functions of this module raise it."""


@dataclass(frozen=True)
class Found:
    """What was read.

    Parameters
    ----------
    rows : tuple of Row
        Sorted.
    links : tuple of (Row, Row), or None
        Sorted; None if the reader does not know.
    no_tracks : bool
        Whether no reader may take links from the file, though detections are there.
    """

    rows: tuple[Row, ...]
    links: tuple[tuple[Row, Row], ...] | None = None
    no_tracks: bool = False

    def agrees(self, second: Found) -> bool:
        """Whether the second reader found the same, as far as both know."""
        if second.no_tracks:
            return self.rows == second.rows and self.links is None
        return self.rows == second.rows and (None in (self.links, second.links) or self.links == second.links)


def with_links(rows: Sequence[Row], links: Callable[[], Links | None]) -> Found:
    """Rows, and links between their places, unless those turn out to be broken."""
    try:
        return found(rows, links())
    except Broken:
        return Found(found(rows, None).rows, None, no_tracks=True)


def found(rows: Sequence[Row], links: Links | None, digits: int | None = None) -> Found:
    """Rows in any order, and links between their places, each to another frame."""
    kept = [tuple(_rounded(value, digits) for value in row) for row in rows]
    if links is None:
        return Found(tuple(sorted(kept)))
    if any(kept[a][0] == kept[b][0] for a, b in links):
        raise Broken("a link within a frame")
    ends = (sorted((kept[a][:4], kept[b][:4]), key=lambda row: row[0]) for a, b in links)
    return Found(tuple(sorted(kept)), tuple(sorted({(early, late) for early, late in ends})))


def _rounded(value: float, digits: int | None) -> float:
    """A number that equals itself: NaN, which has none, is a huge one; -0 is 0."""
    if value != value:
        return 1.2345e308
    return (float(value) if digits is None else round(float(value), digits)) + 0.0


def decimal(text: str) -> float:
    """A plain decimal number."""
    if not DECIMAL.fullmatch(text):
        raise Broken(f"{text[:40]!r} is no number")
    return float(text)


def whole(value: float, most: float = 2**53) -> int:
    """A whole number that is not so large that it has lost digits."""
    if 0 < abs(value) < sys.float_info.min:
        raise Unsure("a number that some processors take for 0")
    if value != value or abs(value) >= most or value != int(value):
        raise Broken(f"{value} is no whole number")
    return int(value)


def row_of(frame: float, *place: float) -> Row:
    """A frame from 0 up, and coordinates that are finite."""
    if whole(frame, 2**31) < 0 or not all(map(math.isfinite, place)):
        raise Broken(f"frame {frame} at {place}")
    return (whole(frame), *place)


def by_number(numbers: Sequence[object], pairs: Iterable[Sequence[object]]) -> Links:
    """Links of detections by their numbers."""
    place = {number: k for k, number in enumerate(numbers)}
    if len(place) < len(numbers):
        raise Broken("a number twice")
    links = [tuple(place.get(end, -1) for end in pair) for pair in pairs]
    if any(len(link) != 2 or -1 in link for link in links):
        raise Broken("a link to a detection that is not there")
    return [(a, b) for a, b in links]


def by_label(labels: Sequence[int], rows: Sequence[Row]) -> Links:
    """Detections of one label follow each other; a negative label is none."""
    of: dict[int, list[int]] = defaultdict(list)
    for place in sorted(range(len(labels)), key=lambda place: rows[place][0]):
        if labels[place] >= 0:
            of[labels[place]].append(place)
    links = [pair for places in of.values() for pair in zip(places, places[1:], strict=False)]
    if any(rows[a][0] == rows[b][0] for a, b in links):
        raise Broken("a track in two places")
    return links
