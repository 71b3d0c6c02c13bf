"""Lineages of dividing tracks, drawn as trees; time runs to the right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outbid.particles.tracks import Tracks

_MOST_TREES = 6
_MOST_LEAVES = 400
"""Most leaves of a tree that is drawn in full; of a larger tree only the first generations are drawn."""
_ROW = 9.0
"""Units from one leaf to the next."""
WIDTH = 640.0
"""Units from the first frame of a tree to its last."""


class Tree(NamedTuple):
    """A tree of tracks as lines, in a picture whose width is 640."""

    track: int  # number of the track at the root
    tracks: int  # how many tracks the family has
    frames: tuple[float, float]  # first and last
    height: float
    lines: list[tuple[float, float, float, float]]  # x, y, x, y of tracks, and of divisions between them

    @property
    def path(self) -> str:
        """All lines as a path of SVG."""
        return "".join(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for a, b, c, d in self.lines)

    @property
    def ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Frame or time, and height, of the two ends of each line; (L, 2) each."""
        lines, (begin, end) = np.array(self.lines, np.float64).reshape(-1, 4), self.frames
        return begin + lines[:, ::2] / WIDTH * (end - begin), lines[:, 1::2]


def trees(tracks: Tracks) -> tuple[list[Tree], int]:
    """The largest lineages with divisions, largest first, and the number of such lineages.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 1, 0]])
    >>> found, families = trees(Tracks(seen, np.array([[0, 1], [0, 2]])))
    >>> [(tree.track, tree.tracks, tree.frames) for tree in found]
    [(0, 3, (0, 1))]
    """
    return trees_of(spans_of(tracks)) if tracks.branches else ([], 0)


class Spans(NamedTuple):
    """The mother of each track, -1 if it has none, and its first and last frame or time; all (T,)."""

    parent: NDArray[np.int64]
    first: NDArray
    last: NDArray


def spans_of(tracks: Tracks) -> Spans:
    """From where to where each track goes, in frames."""
    parent = np.full(tracks.track_count, -1, np.int64)
    parent[tracks.track_id] = tracks.parent
    return Spans(parent, *tracks.span)


def columns_of(tracks: Tracks) -> dict[str, NDArray]:
    """A table with a row a track: number, frames, detections, mother, and its least certain link.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 1, 0]])
    >>> columns = columns_of(Tracks(seen, np.array([[0, 1]]), link_probability=np.array([0.75])))
    >>> [values.tolist() for values in columns.values()]
    [[0, 1], [0, 1], [1, 1], [2, 1], [-1, -1], [0.75, nan]]
    """
    spans = spans_of(tracks)
    certain = tracks.link_margin if tracks.link_probability is None else tracks.link_probability
    least = np.full(tracks.track_count, np.inf)
    if certain is not None:
        np.minimum.at(least, tracks.track_id[tracks.links[:, 1]], certain)
    least[np.isinf(least)] = np.nan
    return {
        "track": np.arange(tracks.track_count), "from": spans.first, "to": spans.last,
        "detections": np.bincount(tracks.track_id, minlength=tracks.track_count), "mother": spans.parent,
        "least": least,
    }  # fmt: skip


def trees_of(spans: Spans, most: int = _MOST_TREES) -> tuple[list[Tree], int]:
    """As `trees`, for these spans; up to `most`."""
    children = _children(spans.parent)
    roots = [root for root in children if spans.parent[root] < 0]
    families = sorted((-len(_family(root, children)), root) for root in roots)
    return [_tree(root, children, spans) for _, root in families[:most]], len(families)


def _children(parent: NDArray[np.int64]) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for child in np.nonzero(parent >= 0)[0].tolist():
        children.setdefault(int(parent[child]), []).append(child)
    return children


def _family(root: int, children: dict[int, list[int]]) -> list[int]:
    """List the tracks of a lineage tree: each track before its children, and siblings next to each other."""
    found, open_ = [], [root]
    while open_:
        found.append(open_.pop())
        open_ += reversed(children.get(found[-1], []))
    return found


def _tree(root: int, children: dict[int, list[int]], spans: Spans) -> Tree:
    _, first, last = spans
    members = _family(root, children)
    leaves = [one for one in members if one not in children][:_MOST_LEAVES]
    row = {one: _ROW * (number + 0.5) for number, one in enumerate(leaves)}
    for one in reversed(members):  # children before their parents
        known = [row[child] for child in children.get(one, []) if child in row]
        if known:
            row[one] = sum(known) / len(known)
    begin, end = first[members].min().item(), last[members].max().item()
    scale = WIDTH / ((end - begin) or 1)
    lines = []
    for one in members:
        if one not in row:
            continue
        start, stop, height = (first[one] - begin) * scale, (last[one] - begin) * scale, row[one]
        lines.append((start, height, stop, height))
        for child in children.get(one, []):
            if child in row:
                lines.append((stop, height, stop, row[child]))
                lines.append((stop, row[child], (first[child] - begin) * scale, row[child]))
    return Tree(root, len(members), (begin, end), _ROW * len(leaves), lines)
