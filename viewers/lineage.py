"""Lineages of dividing tracks, drawn as trees; time runs to the right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outbid.tracks import Tracks

_MOST_TREES = 6
_MOST_LEAVES = 400
"""Most leaves of a tree that is drawn in full; of a larger tree only the first generations are drawn."""
_ROW = 9.0
"""Units from one leaf to the next."""
_WIDTH = 640.0
"""Units from the first frame of a tree to its last."""


class Tree(NamedTuple):
    """A tree of tracks as lines.

    Parameters
    ----------
    track : int
        Number of the track at the root.
    tracks : int
        How many tracks the family has.
    frames : (int, int)
        First and last.
    height : float
        Of the picture, whose width is 640.
    path : str
        Of all lines.
    """

    track: int
    tracks: int
    frames: tuple[int, int]
    height: float
    path: str


def trees(tracks: Tracks) -> tuple[list[Tree], int]:
    """The largest lineages with divisions, largest first, and the number of such lineages.

    Examples
    --------
    >>> from outbid.detections import Detections
    >>> seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 1, 0]])
    >>> found, families = trees(Tracks(seen, np.array([[0, 1], [0, 2]])))
    >>> [(tree.track, tree.tracks, tree.frames) for tree in found]
    [(0, 3, (0, 1))]
    """
    if not tracks.branches:
        return [], 0
    count, of = tracks.track_count, tracks.track_id
    frame = tracks.detections.frame.astype(np.int64)
    first, last = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(first, of, frame)
    np.maximum.at(last, of, frame)
    parent = np.full(count, -1, np.int64)
    parent[of] = tracks.parent
    children: dict[int, list[int]] = {}
    for child in np.nonzero(parent >= 0)[0].tolist():
        children.setdefault(int(parent[child]), []).append(child)
    roots = [root for root in children if parent[root] < 0]
    families = sorted((-len(_family(root, children)), root) for root in roots)
    return [_tree(root, children, first, last) for _, root in families[:_MOST_TREES]], len(families)


def _family(root: int, children: dict[int, list[int]]) -> list[int]:
    """List the tracks of a lineage tree: each track before its children, and siblings next to each other."""
    found, open_ = [], [root]
    while open_:
        found.append(open_.pop())
        open_ += reversed(children.get(found[-1], []))
    return found


def _tree(
    root: int, children: dict[int, list[int]], first: NDArray[np.int64], last: NDArray[np.int64]
) -> Tree:
    members = _family(root, children)
    leaves = [one for one in members if one not in children][:_MOST_LEAVES]
    row = {one: _ROW * (number + 0.5) for number, one in enumerate(leaves)}
    for one in reversed(members):  # children before their parents
        known = [row[child] for child in children.get(one, []) if child in row]
        if known:
            row[one] = sum(known) / len(known)
    begin, end = int(first[members].min()), int(last[members].max())
    scale = _WIDTH / max(end - begin, 1)
    parts = []
    for one in members:
        if one not in row:
            continue
        start, stop = (first[one] - begin) * scale, (last[one] - begin) * scale
        parts.append(f"M{start:.1f} {row[one]:.1f}H{stop:.1f}")
        parts += [
            f"M{stop:.1f} {row[one]:.1f}V{row[child]:.1f}H{(first[child] - begin) * scale:.1f}"
            for child in children.get(one, [])
            if child in row
        ]
    return Tree(root, len(members), (begin, end), _ROW * len(leaves), "".join(parts))
