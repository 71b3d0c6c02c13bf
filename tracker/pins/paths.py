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
    chain does.

    Parameters
    ----------
    pins : PinnedRows
    frame : (N,) int array
        Non-decreasing.
    edges_between : callable
        Links whose ends are in the frames of two rows or between; they may be some of other frames as well.

    Raises
    ------
    SettingsError
        If other pins leave no chain.
    """
    for first, last in pins.same.tolist():
        tail, head, cost = edges_between(first, last)
        allowed = pins.allows(tail, head) & (frame[tail] >= frame[first]) & (frame[head] <= frame[last])
        ends = _last_of(pins.forced, first), _last_of(pins.forced[:, ::-1], last)
        bridge = np.array([ends], np.int64)
        if not (frame[ends[0]] < frame[ends[1]] and pins.allows(*bridge.T)[0]):
            bridge = bridge[:0]
        rows, columns = (
            np.concatenate([end[allowed], forced, far])
            for end, forced, far in zip((tail, head), pins.forced.T, bridge.T, strict=True)
        )
        far = np.full(len(bridge), 1 + 2 * float(cost[allowed].sum()))
        costs = np.concatenate([cost[allowed], np.zeros(len(pins.forced)), far])
        chain = _shortest(rows, columns, costs, (first, last))
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


def _shortest(tail: Rows, head: Rows, cost: NDArray[np.float64], ends: tuple[int, int]) -> Rows:
    """(L, 2) links of the chain of least cost; none if there is no chain."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    nodes = np.unique(np.concatenate([tail, head, ends]))
    row, column, (first, last) = (np.searchsorted(nodes, each) for each in (tail, head, ends))
    once = np.unique(row * len(nodes) + column, return_index=True)[1]  # repeated entries would be added
    shape = len(nodes), len(nodes)
    graph = csr_matrix((np.maximum(cost, _LEAST)[once], (row[once], column[once])), shape)
    before = dijkstra(graph, indices=first, return_predecessors=True)[1]
    way = [last]
    while way[-1] != first and before[way[-1]] >= 0:
        way.append(before[way[-1]])
    if way[-1] != first:
        return np.empty((0, 2), np.int64)
    chain = nodes[np.array(way[::-1])]
    return np.column_stack([chain[:-1], chain[1:]])
