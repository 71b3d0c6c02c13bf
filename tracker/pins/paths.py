"""Chains: the best links from one detection to a later one of the same particle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError
from .rows import PinnedRows, Rows

Edges = tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.float64]]
"""Tails, heads and costs, which are 0 or more, of the links that a chain may consist of."""
_LEAST = 1e-12
"""Guard: cost of a link in a chain, for SciPy takes 0 for no link."""


def with_chains(
    pins: PinnedRows, frame: NDArray[np.integer], edges_between: Callable[[int, int], Edges]
) -> PinnedRows:
    """Pins in which each pair of detections of one particle is a chain of forced links.

    It is the chain of least cost among those that other pins allow; without any, one link bridges what no
    chain does. Links whose ends are in the frames of two rows or between come from `edges_between`; there may
    be others among them. Raises SettingsError if other pins leave no chain.
    """
    for first, last in pins.same.tolist():
        tail, head, cost = edges_between(first, last)
        allowed = pins.allows(tail, head) & (frame[tail] >= frame[first]) & (frame[head] <= frame[last])
        links = np.concatenate([np.column_stack([tail, head])[allowed], pins.forced])
        cost = np.append(cost[allowed], np.zeros(len(pins.forced)))
        bridge = np.array([[_last_of(pins.forced, first), _last_of(pins.forced[:, ::-1], last)]])
        if frame[bridge[0, 0]] < frame[bridge[0, 1]] and pins.allows(*bridge.T)[0]:
            links, cost = np.concatenate([links, bridge]), np.append(cost, 1 + 2 * cost.sum())
        chain = _shortest(links, cost, first, last)
        if not len(chain):
            raise SettingsError(
                f"Detections in frames {frame[first]} and {frame[last]} are pinned as one particle, and "
                "other pins leave no chain of links between them. Remove this pin or one of the others."
            )
        pins = pins.with_forced(chain)
    return pins


def _last_of(links: Rows, row: int) -> int:
    """The last row to which links (K, 2) lead on from a row."""
    following = dict(links.tolist())
    while row in following:
        row = following[row]
    return row


def _shortest(links: Rows, cost: NDArray[np.float64], first: int, last: int) -> Rows:
    """(L, 2) links of the chain of least cost from first to last; none if there is no chain."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    nodes, place = np.unique(np.append(links, [first, last]), return_inverse=True)
    pairs = place[:-2].reshape(-1, 2)
    once = np.unique(pairs @ [len(nodes), 1], return_index=True)[1]  # repeated entries would be added
    graph = csr_matrix((np.maximum(cost, _LEAST)[once], pairs[once].T), (len(nodes), len(nodes)))
    before = dijkstra(graph, indices=place[-2], return_predecessors=True)[1]
    way = [place[-1]]
    while before[way[-1]] >= 0:
        way.append(before[way[-1]])
    chain = nodes[way[::-1]]
    return np.column_stack([chain[:-1], chain[1:]]) if chain[0] == first else np.empty((0, 2), np.int64)
