"""HTML that notebooks show of detections and tracks: a table, and a small picture of tracks as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .tracks import Tracks

_MOST_LINKS = 4000
"""Most links to draw, some 100 kB in a notebook. If there are more, evenly spaced tracks are dropped."""
_COLOURS = 24
"""Number of hues; tracks use them in turn."""
_WIDTH = 360
"""Width of the picture in pixels; the height follows from the positions."""
_GOLDEN = 0.6180339887498949
"""Difference of hue between consecutive tracks, so that they differ clearly in colour."""


def html_table(caption: str, facts: Mapping[str, object]) -> str:
    """A table in HTML, a row a fact.

    Examples
    --------
    >>> html_table("Tracks", {"unit": "<pixel>"})
    '<table><caption>Tracks</caption><tr><th>unit</th><td>&lt;pixel&gt;</td></tr></table>'
    """
    cells = [(escape(name), escape(str(fact))) for name, fact in facts.items()]
    rows = "".join(f"<tr><th>{name}</th><td>{fact}</td></tr>" for name, fact in cells)
    return f"<table><caption>{caption}</caption>{rows}</table>"


def svg_of(tracks: Tracks) -> str:
    """Draw all tracks along z, in 24 colours; an empty text if there is no link.

    Examples
    --------
    >>> from .detections import Detections
    >>> from .tracks import Tracks
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 1, 2]])
    >>> svg_of(Tracks(seen, np.array([[0, 1]])))[:31]
    '<svg class="outbid" width="360"'
    """
    kept = links_to_draw(tracks, _MOST_LINKS)
    if not len(kept):
        return ""
    place = tracks.detections.position[:, 2:0:-1]
    low = place.min(axis=0)
    span = place.max(axis=0) - low
    scale = _WIDTH / (max(span[0], span[1] / 2) or 1.0)  # no more than twice as high as wide
    size = np.maximum(span * scale, 20)
    ends = (place[tracks.links[kept]] - low) * scale
    hue = np.floor(tracks.track_id[tracks.links[kept, 1]] * _GOLDEN % 1 * _COLOURS).astype(int)
    lines = "".join(
        f'<path stroke="hsl({360 * one // _COLOURS},70%,45%)" d="{path_of(ends[hue == one])}"/>'
        for one in np.unique(hue).tolist()
    )
    return (
        f'<svg class="outbid" width="{size[0]:.0f}" height="{size[1]:.0f}" '
        f'viewBox="-3 -3 {size[0] + 6:.0f} {size[1] + 6:.0f}" fill="none" stroke-width="1.2" role="img" '
        f'aria-label="tracks, y down and x to the right">{lines}</svg>'
    )


def path_of(ends: NDArray[np.float64]) -> str:
    """SVG path data of lines, given their ends (E, 2, 2) as x and y.

    Examples
    --------
    >>> path_of(np.array([[[0, 0], [1, 2.25]]]))
    'M0 0L1 2.2'
    """
    return "".join(
        f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}".replace(".0", "") for a, b, c, d in ends.reshape(-1, 4).tolist()
    )


def links_to_draw(tracks: Tracks, most: int) -> NDArray[np.int64]:
    """Rows of the links to draw: all, or those of evenly spaced tracks, at most `most` links."""
    every = -(-len(tracks.links) // most) if len(tracks.links) else 1
    rows = np.arange(len(tracks.links))
    return rows if every == 1 else rows[tracks.track_id[tracks.links[:, 1]] % every == 0][:most]
