"""What a reader makes of a file, rows and links in order; and when a second one cannot judge."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Row = tuple[float, ...]
"""Frame, z, y, x, and what else both readers know of a detection."""
DECIMAL = re.compile(r"[ \t]*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*", re.ASCII)


class Unsure(Exception):
    """The second reader does not understand the file, which may be read or refused."""


class Broken(Exception):
    """No reader may take data from the file: it must be refused."""


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


def with_links(rows: Sequence[Row], links: Callable[[], Iterable[tuple[int, int]] | None]) -> Found:
    """Rows, and links between their places, unless those turn out to be broken."""
    try:
        return found(rows, links())
    except Broken:
        return Found(found(rows, None).rows, None, no_tracks=True)


def found(rows: Sequence[Row], links: Iterable[tuple[int, int]] | None, digits: int | None = None) -> Found:
    """Rows in any order, and links between their places.

    Raises
    ------
    Broken
        If a link stays in a frame, or leads nowhere.
    """
    kept = [tuple(_rounded(value, digits) for value in row) for row in rows]
    pairs = None
    if links is not None:
        links = list(links)
        if any(not 0 <= end < len(kept) for pair in links for end in pair):
            raise Broken("a link to a detection that is not there")
        if any(kept[a][0] == kept[b][0] for a, b in links):
            raise Broken("a link within a frame")
        ordered = ((a, b) if kept[a][0] <= kept[b][0] else (b, a) for a, b in links)
        pairs = tuple(sorted({(kept[a][:4], kept[b][:4]) for a, b in ordered}))
    return Found(tuple(sorted(kept)), pairs)


def _rounded(value: float, digits: int | None) -> float:
    """A number that equals itself: NaN, which has none, is a huge one; -0 is 0."""
    if value != value:
        return 1.2345e308
    return (float(value) if digits is None else round(float(value), digits)) + 0.0


def decimal(text: str) -> float:
    """A plain decimal number.

    Raises
    ------
    Broken
        If it is none.
    """
    if not DECIMAL.fullmatch(text):
        raise Broken(f"{text[:40]!r} is no number")
    return float(text)


def whole(value: float, most: float = 2**53) -> int:
    """A whole number.

    Raises
    ------
    Broken
        If it is none, or so large that it has lost digits.
    """
    if 0 < abs(value) < sys.float_info.min:
        raise Unsure("a number that some processors take for 0")
    if value != value or abs(value) >= most or value != int(value):
        raise Broken(f"{value} is no whole number")
    return int(value)


def frame_of(value: float) -> int:
    """A number of a frame, from 0 up.

    Raises
    ------
    Broken
        If it is none.
    """
    frame = whole(value, 2**31)
    if frame < 0:
        raise Broken(f"frame {frame}")
    return frame


def finite(value: float) -> float:
    """A coordinate.

    Raises
    ------
    Broken
        If it is not finite.
    """
    if value != value or abs(value) == float("inf"):
        raise Broken(f"{value} is no place")
    return value


def links_by_label(labels: Sequence[int], frames: Sequence[float]) -> list[tuple[int, int]]:
    """Detections of one label follow each other; a negative label is none.

    Raises
    ------
    Broken
        If a label is there twice in a frame.
    """
    of: dict[int, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        if label >= 0:
            of[label].append(place)
    links = []
    for places in of.values():
        places.sort(key=lambda place: frames[place])
        for a, b in zip(places, places[1:], strict=False):
            if frames[a] == frames[b]:
                raise Broken("a track in two places")
            links.append((a, b))
    return links
