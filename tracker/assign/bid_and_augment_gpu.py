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
_ROUNDS_A_BID = 32
_FEW = 1 / 100
"""Share of the rows below which rounds of bids no longer pay."""
_SEARCHES = ((128, 8, 65536), (512, 1, 16384), (1500, 1, 4096), (6000, 1, 1024))
"""Columns a search may reach, searches a block and searches at once, in each attempt."""
_WIDE = 4
"""Warps that search together where a block has but one search."""
_TURNS = 2
"""Times that claims are made in a round, at most 7."""
_CHECK_EVERY = 4
"""Rounds of paths launched before the host asks how many rows are left."""
_MOST_ROUNDS = 4096


def bid(indptr, indices, values, row_unmatched, never, v, owner, edge, budget, free):  # noqa: ARG001
    """Rounds of bids without epsilon, 32 for each bid of `budget`; see bid_and_augment_cpu.bid."""
    xp = array_module(values)
    budget = _ROUNDS_A_BID * budget
    rows = len(indptr) - 1
    if rows == 0 or len(v) == 0:
        return 0, 0
    word = _packed(v, owner)
    live = xp.zeros(budget + 2, np.int32)
    cuda_function(_BID, "bid_rounds", cooperative=True)(
        (_BLOCKS_A_PROCESSOR * processors(),),
        (_BLOCK,),
        (
            *(indptr, indices, values, row_unmatched, word, word.copy(), edge),
            *(np.int32(budget), np.int32(_FEW * rows), np.int32(rows)),
            *(xp.empty((2, rows, 4), np.uint64), live, xp.zeros(1, np.uint32), free),
        ),
    )
    _unpack(word, v, owner)
    slots = to_host(live)
    return int(slots[-1]), rows + int(slots[:-1].sum())


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
    wide = warps == 1
    search = cuda_function(_AUGMENT, "search_by_blocks" if wide else "search_by_warps")
    choose, again, apply = (
        cuda_function(_AUGMENT, name) for name in ("choose_searches", "claim_again", "apply_paths")
    )
    scratch = _scratch_bytes(room)
    search.max_dynamic_shared_size_bytes = warps * scratch
    grid, block = (-(-most // warps),), (32 * (_WIDE if wide else warps),)
    few, few_block = (-(-most // 8),), (256,)
    left, sizes = count, (np.int32(most), np.int32(room))
    while left and round_number + _CHECK_EVERY < _MOST_ROUNDS:
        for _ in range(_CHECK_EVERY):
            round_number += 1
            moment = (np.int32(round_number), rounds)
            launch(choose, count, (rows, np.int32(count), *moment, sizes[0], slots))
            arguments = (*pairs, rows, slots, *moment, *sizes, np.int32(scratch), *found)
            search(grid, block, arguments, shared_mem=warps * scratch)
            for turn in range(_TURNS):
                moment = (np.int32(round_number), np.int32(turn), rounds)
                if turn:
                    again(few, few_block, (rows, slots, *moment, *sizes, *found[:3]))
                state = (indptr, word, edge, rows, slots, *moment, *sizes, *found, too_large, counts)
                apply(few, few_block, state)
        left_then, _, _, won = to_host(rounds[round_number]).tolist()
        left = left_then - won
    outgrown, scanned = to_host(counts).tolist()
    return xp.concatenate([too_large[:outgrown], rows[rows >= 0]]), scanned, round_number


def _scratch_bytes(room):
    """Shared memory of one search; see search.cuh: Shared, then the places and the list of them."""
    places = room + room // 4
    return -(-(320 + 20 * places + 4 * room) // 16) * 16


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
