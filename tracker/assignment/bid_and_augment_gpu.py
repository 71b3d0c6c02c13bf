"""Launches the GPU kernels of `bid_and_augment`; same names and arguments as bid_and_augment_cpu.py.

Rows bid in synchronous rounds and search their paths at once, where the CPU goes row after row: the
cost is the same, duals and the choice among equal optima may differ. Neither depends on the order of threads
nor on the number of blocks. All is launched at once; how far it went is asked when the proof is on its way.
"""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ..compute.arrays import array_module, to_device, to_host
from ..compute.cuda import cuda_function, launch, processors, shared_memory
from ..compute.timing import lap
from .solver import Answer

_BID, _AUGMENT = "assignment/bid.cu", "assignment/augment.cu"
_BLOCK = 512
_BLOCKS_A_PROCESSOR = 2
_ROUNDS_A_BID = 32
_FEW = 1 / 75
"""Share of the rows below which rounds of bids no longer pay."""
_SEARCHES = ((128, 1, 65536, 2048), (512, 4, 16384, 0), (1500, 8, 4096, 0), (6000, 8, 1024, 0))
"""Of each attempt: columns a search may reach, warps that search together, searches at once, and how few rows
are left to the next attempt."""
_WARPS_A_PROCESSOR = 32
"""As many as the registers of a search allow."""
_TURNS = 2
"""Times that claims are made in a round, at most 7."""
_STATE = 116
"""Size of State in words.cuh, in int32; where attempt k counts the rows it leaves over is 5 + 14 k."""


def solve(indptr, indices, values, row_unmatched, col_unmatched, never, budget):
    """Bids, 32 rounds for each of `budget`, then shortest augmenting paths; see bid_and_augment_cpu.solve."""
    xp = array_module(values)
    rows, cols = len(row_unmatched), len(col_unmatched)
    if rows == 0 or cols == 0:
        return -1, xp.full(rows, -1, np.int32), col_unmatched, {"bids": 0, "paths": 0, "scanned": 0}
    col_of_row, v = xp.empty(rows, np.int32), xp.empty(cols, np.int64)
    budget = _ROUNDS_A_BID * budget
    word, spare, claim = (xp.empty(cols, np.uint64) for _ in range(3))
    edge, lists = xp.empty(rows, np.int64), xp.empty((3, rows), np.int32)
    state = xp.zeros(_STATE + budget + 2, np.int32)
    start = (col_unmatched, word, spare, claim, np.int32(cols), edge, np.int32(rows))
    launch(cuda_function(_BID, "begin"), max(rows, cols), start)
    pairs = (indptr, indices, values, row_unmatched, word)
    few = (np.int32(budget), np.int32(_FEW * rows), np.int32(rows))
    cuda_function(_BID, "bid_rounds", cooperative=True)(
        (_BLOCKS_A_PROCESSOR * processors(),),
        (_BLOCK,),
        (*pairs, spare, edge, *few, xp.empty((2, rows, 4), np.uint64), state, lists),
    )
    lap("bids", edge)
    attempts = _augment((*pairs, edge, np.int32(rows), np.int32(cols), lists, claim), state)
    launch(
        cuda_function(_BID, "finish"),
        max(rows, cols),
        (word, v, np.int32(cols), edge, indices, col_of_row, np.int32(rows)),
    )
    lap("paths", v)
    stats = {}

    def finish():
        counted = to_host(state)
        left_over = counted[5:_STATE:14]
        stats["bids"] = rows + int(counted[_STATE:].sum())
        stats["paths"] = int(left_over[0])
        stats["scanned"] = int(counted[:2].view(np.int64)[0])
        if left_over[attempts] == 0:
            return None
        free = to_host(lists[attempts % 2, : left_over[attempts]])
        host = [to_host(array) for array in (indptr, indices, values, row_unmatched)]
        *answer, scanned = _augment_on_host(*host, never, to_host(word), to_host(edge), np.sort(free))
        stats["scanned"] += scanned
        return Answer(*map(to_device, answer), stats)

    return -1, col_of_row, v, stats, finish


def _augment(problem, state):
    """Launch one attempt after the other, each with room for larger trees; returns how many there are."""
    xp = array_module(state)
    rows = int(problem[6])
    # As few searches at once as there are rows, but for those that a hash chooses too many.
    attempts = [(room, warps, min(most, rows + 128), few) for room, warps, most, few in _SEARCHES]
    steps = xp.empty(max(most * (room + 1) for room, _, most, _ in attempts) * 4, np.int32)
    counts = xp.empty((2, max(most for _, _, most, _ in attempts)), np.int32)
    of_block, of_processor = shared_memory()
    for number, (room, warps, most, few) in enumerate(attempts):
        block = max(4, warps)
        scratch = _scratch_bytes(room)
        used = scratch * (block // warps)
        if used > of_block:
            return number
        search = _search(warps, of_block)
        blocks = min(_WARPS_A_PROCESSOR // block, of_processor // (used + 1024))
        sizes = map(np.int32, (most, room, scratch, number + 1, few, _TURNS))
        arguments = (*problem, steps, counts[0], counts[1], *sizes, state)
        search((blocks * processors(),), (32 * block,), arguments, shared_mem=used)
    return len(attempts)


def _search(warps, of_block):
    """The kernel, allowed the most memory that any attempt gives it: threads share it."""
    search = cuda_function(_AUGMENT, f"find_paths_{warps}", cooperative=True)
    used = [_scratch_bytes(room) * (max(4, many) // many) for room, many, _, _ in _SEARCHES if many == warps]
    search.max_dynamic_shared_size_bytes = max(size for size in used if size <= of_block)
    return search


def _scratch_bytes(room):
    """Shared memory of one search; see search.cuh: Shared, then the places and the list of them."""
    places = room + room // 4
    return -(-(320 + 20 * places + 4 * room) // 16) * 16


def _augment_on_host(indptr, indices, values, row_unmatched, never, word, edge, free):
    """The CPU's kernel for the few searches that outgrow the GPU's scratch memory; see words.cuh."""
    from . import bid_and_augment_cpu

    v, owner = (1 << 30) - (word >> 32).astype(np.int64), (word & 0xFFFFFFFF).astype(np.int32) - 1
    pairs = (indptr, indices, values, row_unmatched)
    scanned, _ = bid_and_augment_cpu.augment(*pairs, never, v, owner, edge, free)
    return bid_and_augment_cpu.columns_of(edge, indices), v, scanned
