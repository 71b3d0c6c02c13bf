"""Projections of all tracks along each axis, as SVG that the page's script can zoom."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outbid.particles.calibration import Calibration
from outbid.particles.html import links_to_draw, path_of
from outbid.particles.tracks import Tracks

_MOST_LINKS = 6000
"""Most links in each projection: 150 kB. If there are more, some whole tracks are omitted, evenly."""
_COLOURS = 12
"""Groups of frames, from blue (first) to orange (last): all readable on white and on black."""
_SIZE = 1000.0
"""Length of the longest side of a projection, in units of its picture."""
_VIEWS = (("y", "x"), ("z", "x"), ("z", "y"))


class Projection(NamedTuple):
    """A view along one axis.

    Parameters
    ----------
    name : str
        Axes down and to the right, for example ``"y, x"``.
    extent : str
        From where to where the axes run.
    width, height : float
        Of the picture.
    lines : list of (str, str)
        Colour and path of the links of each group of frames.
    """

    name: str
    extent: str
    width: float
    height: float
    lines: list[tuple[str, str]]


def projections(tracks: Tracks, of: Calibration) -> list[Projection]:
    """The views along z, y and x; along z alone where all positions are in a plane.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 1, 2]])
    >>> [(view.name, view.lines) for view in projections(Tracks(seen, np.array([[0, 1]])), seen.calibration)]
    [('y, x', [('hsl(225 70% 50%)', 'M0 0L1000 500')])]
    """
    kept = links_to_draw(tracks, _MOST_LINKS)
    position = tracks.detections.position * of.spacing
    if not len(kept):
        return []
    low, span = position.min(axis=0), np.ptp(position, axis=0)
    scale = _SIZE / (float(span.max()) or 1.0)
    ends = (position[tracks.links[kept]] - low) * scale
    group = _groups(tracks.detections.frame[tracks.links[kept, 0]].astype(np.int64))
    views = [view for view in _VIEWS if all(span["zyx".index(axis)] > 0 for axis in view)] or [_VIEWS[0]]
    return [_view(view, ends, group, low, span, scale) for view in views]


def colours() -> list[str]:
    """Colours of the groups of frames, from the first to the last."""
    return [f"hsl({hue:.0f} 70% 50%)" for hue in np.linspace(225, 25, _COLOURS)]


def _view(
    view: tuple[str, str], ends: NDArray[np.float64], group: NDArray[np.int64], low: NDArray[np.float64],
    span: NDArray[np.float64], scale: float,
) -> Projection:  # fmt: skip
    down, right = ("zyx".index(axis) for axis in view)
    flat = ends[..., [right, down]]
    lines = [
        (colour, path_of(flat[group == number]))
        for number, colour in enumerate(colours())
        if (group == number).any()
    ]
    extent = " · ".join(
        f"{'zyx'[axis]} {low[axis]:.3g} to {low[axis] + span[axis]:.3g}" for axis in (right, down)
    )
    width, height = (max(float(span[axis] * scale), 20.0) for axis in (right, down))
    return Projection(", ".join(view), extent, width, height, lines)


def _groups(frame: NDArray[np.int64]) -> NDArray[np.int64]:
    """The group of each frame; groups have equal numbers of frames."""
    first, last = int(frame.min()), int(frame.max())
    return (frame - first) * _COLOURS // (last - first + 1)
