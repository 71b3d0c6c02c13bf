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

_BID, _AUGMENT = "assign/bid.cu", "assign/augment.cu"
_BLOCK = 512
_BLOCKS_A_PROCESSOR = 2
_ROUNDS_A_BID = 8
_FEW = 1 / 500
"""Share of the rows below which rounds of bids no longer pay."""
_SEARCHES = ((128, 8, 65536), (256, 4, 32768), (512, 2, 16384), (1024, 1, 4096), (3000, 1, 1024))
"""Columns a search may reach, searches a block and searches at once, in each attempt."""
_CHECK_EVERY = 4
"""Rounds of paths launched before the host asks how many rows are left."""
_MOST_ROUNDS = 4096


def bid(indptr, indices, values, row_unmatched, never, v, owner, edge, budget, free):  # noqa: ARG001
    """Rounds of bids without epsilon, eight for each bid of `budget`; see bid_and_augment_cpu.bid."""
    xp = array_module(values)
    budget = _ROUNDS_A_BID * budget
    rows = len(indptr) - 1
    if rows == 0 or len(v) == 0:
        return 0, 0
    word = _packed(v, owner)
    slot_rows = xp.empty((2, rows), np.int32)
    slot_rows[0] = xp.arange(rows, dtype=np.int32)
    live = np.zeros(budget + 2, np.int32)
    live[0] = rows
    live = to_device(live)
    bids = (xp.empty(rows, np.int32), xp.zeros(rows, np.uint64), xp.empty(rows, np.int64))
    cuda_function(_BID, "bid_rounds", cooperative=True)(
        (_BLOCKS_A_PROCESSOR * processors(),),
        (_BLOCK,),
        (
            *(indptr, indices, values, row_unmatched, word, edge),
            *(np.int32(budget), np.int32(_FEW * rows), np.int64(rows)),
            *(slot_rows, *bids, xp.empty(rows, np.int32), live, xp.zeros(1, np.uint32), free),
        ),
    )
    _unpack(word, v, owner)
    slots = to_host(live)
    return int(slots[-1]), int(slots[:-1].sum())


def augment(indptr, indices, values, row_unmatched, never, v, owner, edge, free):
    """Shortest augmenting paths from all free rows, many at once; see bid_and_augment_cpu.augment."""
    xp = array_module(values)
    pairs = (indptr, indices, values, row_unmatched, _packed(v, owner), edge)
    claim, rounds = xp.zeros(len(v), np.uint64), xp.zeros((_MOST_ROUNDS, 4), np.int32)
    total, stuck, round_number = 0, -1, 0
    for room, warps, most in _SEARCHES:
        if len(free):
            free, scanned, round_number = _paths(pairs, claim, rounds, free, room, warps, most, round_number)
            total += scanned
    _unpack(pairs[4], v, owner)
    if len(free):
        more, stuck = _augment_on_host(*pairs[:4], never, v, owner, edge, xp.sort(free))
        total += more
    return total, stuck


def _paths(pairs, claim, rounds, free, room, warps, most, round_number):
    """Rounds of searches until each row has its path.

    Returns the rows whose tree is too large, the columns scanned and the round number reached.
    """
    xp = array_module(free)
    indptr, _, _, _, word, edge = pairs
    count = len(free)
    most = min(most, count + 128)
    # So few trees seldom meet; the rounds then find how many may search at once.
    wanted = max(512, len(claim) // 128)
    rounds[round_number] = to_device(np.array([count, wanted, 0, 0], np.int32))
    rows, slots = free.copy(), xp.empty(count, np.int32)
    too_large, counts = xp.empty(count, np.int32), xp.zeros(2, np.uint64)
    found = (
        claim,
        xp.empty((most, room + 1, 4), np.int32),
        xp.empty(most, np.int32),
        xp.empty(most, np.int32),
    )
    choose, search, apply = (
        cuda_function(_AUGMENT, name) for name in ("choose_searches", "search_paths", "apply_paths")
    )
    shared = warps * 8 * room * 4
    search.max_dynamic_shared_size_bytes = shared
    grid, block = (-(-most // warps),), (32 * warps,)
    left, sizes = count, (np.int32(most), np.int32(room))
    while left and round_number + _CHECK_EVERY < _MOST_ROUNDS:
        for _ in range(_CHECK_EVERY):
            round_number += 1
            moment = (np.int32(round_number), rounds)
            launch(choose, count, (rows, np.int32(count), *moment, sizes[0], slots))
            search(grid, block, (*pairs, rows, slots, *moment, *sizes, *found), shared_mem=shared)
            apply(
                grid,
                block,
                (indptr, word, edge, rows, slots, *moment, *sizes, *found, too_large, counts),
            )
        left_then, _, _, won = to_host(rounds[round_number]).tolist()
        left = left_then - won
    outgrown, scanned = to_host(counts).tolist()
    return xp.concatenate([too_large[:outgrown], rows[rows >= 0]]), scanned, round_number


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
    launch(cuda_function(_BID, "pack"), len(v), (v, owner, word, np.int64(len(v))))
    return word


def _unpack(word, v, owner):
    launch(cuda_function(_BID, "unpack"), len(v), (word, v, owner, np.int64(len(v))))
