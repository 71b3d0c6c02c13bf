"""Launches the GPU kernels of `bid_and_augment`; same names and arguments as bid_and_augment_cpu.py.

Rows bid in synchronous rounds and search their paths at once, where the CPU goes row after row: the
cost is the same, duals and the choice among equal optima may differ. Neither depends on the order of threads
nor on the launch geometry.
"""

# mypy: ignore-errors
# CuPy is known to _arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from .._arrays import array_module, cuda_function, launch, processors, to_device, to_host

_SOURCE = "assign/bid_and_augment.cu"
_BLOCK = 256
_BLOCKS_A_PROCESSOR = 4
_FEW = 256
"""Rows below which rounds of bids no longer pay."""
_SEARCHES = ((128, 8), (1600, 1))
"""Columns a search may reach, and searches a block, in the first and the second attempt."""
_ROUNDS_A_CHECK = 3
"""Rounds of paths launched before the host asks how many rows are left."""


def bid(indptr, indices, values, row_unmatched, never, v, owner, edge, budget, free):  # noqa: ARG001
    """Rounds of bids without epsilon, `budget` of them; see bid_and_augment_cpu.bid."""
    xp = array_module(values)
    rows = len(indptr) - 1
    if rows == 0 or len(v) == 0:
        return 0, 0
    word = _packed(v, owner)
    listed = xp.empty((2, rows), np.int32)
    listed[0] = xp.arange(rows, dtype=np.int32)
    live = np.zeros(budget + 2, np.int32)
    live[0] = rows
    live = to_device(live)
    state = (listed, xp.empty(rows, np.int32), xp.empty(rows, np.uint64), xp.empty(rows, np.int64))
    cuda_function(_SOURCE, "bid_rounds", cooperative=True)(
        (_BLOCKS_A_PROCESSOR * processors(),),
        (_BLOCK,),
        (
            *(indptr, indices, values, row_unmatched, word, edge),
            *(np.int32(budget), np.int32(_FEW), np.int64(rows), *state, xp.empty(rows, np.int32)),
            *(live, xp.zeros(1, np.uint32), free),
        ),
    )
    _unpack(word, v, owner)
    turns = to_host(live)
    return int(turns[-1]), int(turns[:-1].sum())


def augment(indptr, indices, values, row_unmatched, never, v, owner, edge, free):
    """Shortest augmenting paths from all free rows, many at once; see bid_and_augment_cpu.augment."""
    xp = array_module(values)
    word = _packed(v, owner)
    claim = xp.zeros(len(v), np.uint64)
    scanned = xp.zeros(1, np.uint64)
    round_number = 0
    for room, warps in _SEARCHES:
        if len(free) == 0:
            break
        pairs = (indptr, indices, values, row_unmatched, word, edge)
        round_number, free = _paths(pairs, claim, scanned, free, room, warps, round_number)
    _unpack(word, v, owner)
    total, stuck = int(scanned[0]), -1
    if len(free):
        more, stuck = _augment_on_host(
            indptr, indices, values, row_unmatched, never, v, owner, edge, xp.sort(free)
        )
        total += more
    return total, stuck


def _paths(pairs, claim, scanned, free, room, warps, round_number):
    """Rounds of searches until every row has its path; returns the round and the rows with too large trees."""
    indptr, _, _, _, word, edge = pairs
    xp = array_module(free)
    left = len(free)
    listed = [free.copy(), xp.empty(left, np.int32)]
    counts = xp.zeros(2, np.int32)
    counts[0] = left
    too_large, too_large_count = xp.empty(left, np.int32), xp.zeros(1, np.int32)
    steps = xp.empty((left, room + 1, 4), np.int32)
    step_count, closing = xp.empty(left, np.int32), xp.empty(left, np.int32)
    search, apply = cuda_function(_SOURCE, "search_paths"), cuda_function(_SOURCE, "apply_paths")
    block, shared = (32 * warps,), warps * 7 * room * 4
    now = 0
    while left:
        for _ in range(_ROUNDS_A_CHECK):
            grid = (-(-left // warps),)
            here, there = counts[now : now + 1], counts[1 - now : 2 - now]
            there.fill(0)
            moment = (np.int32(round_number), np.int32(room))
            found = (claim, steps, step_count, closing)
            search(
                grid,
                block,
                (*pairs, listed[now], here, *moment, *found, too_large, too_large_count),
                shared_mem=shared,
            )
            rest = (listed[1 - now], there, scanned)
            apply(grid, block, (indptr, word, edge, listed[now], here, *moment, *found, *rest))
            now = 1 - now
            round_number += 1
        left = int(counts[now])
    return round_number, too_large[: int(too_large_count[0])]


def _augment_on_host(indptr, indices, values, row_unmatched, never, v, owner, edge, free):
    """The CPU's kernel for the few searches that outgrow the GPU's scratch memory."""
    from . import bid_and_augment_cpu

    state = [to_host(array) for array in (v, owner, edge)]
    fixed = [to_host(array) for array in (indptr, indices, values, row_unmatched)]
    result = bid_and_augment_cpu.augment(*fixed, never, *state, to_host(free))
    for array, host in zip((v, owner, edge), state, strict=True):
        array[:] = to_device(host)
    return result


def _packed(v, owner):
    word = array_module(v).empty(len(v), np.uint64)
    launch(cuda_function(_SOURCE, "pack"), len(v), (v, owner, word, np.int64(len(v))))
    return word


def _unpack(word, v, owner):
    launch(cuda_function(_SOURCE, "unpack"), len(v), (word, v, owner, np.int64(len(v))))
