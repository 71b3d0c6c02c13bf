"""Launches the GPU kernels of `greedy_switching`; names, arguments and results are those of its CPU kernels.

Difference evaluation comes in the two forms of Roverso et al.: `evaluate_global`, a thread a line, and
`evaluate_shared`, in which what all lines ask of the other side lies in shared memory.
"""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import array_module, to_host
from ...compute.cuda import cuda_function, launch

_SOURCE = "assignment/papers/greedy_switching.cu"
_TILE, _LINES = 256, 8
"""Lines of the other side and of this one in a block, as in greedy_switching.cu."""
_MOST_BLOCKS = 65_535
"""Blocks that a launch may have in its second direction."""


def evaluate_global(state, first, last):
    """Difference evaluation of lines first to last that do not wait, rows, then columns: a thread a line."""
    for side, waits, _, span, _, _ in _sides(state, first, last):
        given = (*_given(state), waits, *map(np.int32, span))
        launch(_kernel(state, f"evaluate_{side}_global"), span[1] - span[0], given)


def evaluate_shared(state, first, last):
    """`evaluate_global` in shared memory: a warp a line and tile of the other side, then the best tile."""
    xp = array_module(state.waits)
    for side, waits, others, (begin, end), choice, gain in _sides(state, first, last):
        tiles = -(-others // _TILE)
        step = min(end - begin, _LINES * _MOST_BLOCKS)
        found, gained = xp.empty((step, tiles), np.int32), xp.empty((step, tiles), gain.dtype)
        for start in range(begin, end, step):
            span = np.int32(start), np.int32(min(start + step, end))
            given = (*_given(state), waits, *span, found, gained)
            _kernel(state, f"evaluate_{side}_shared")((tiles, -(-step // _LINES)), (_TILE,), given)
            best = (found, gained, np.int32(tiles), waits, *span, choice, gain)
            launch(_kernel(state, "best_of_tiles"), step, best)


def switch_best_first(state, most):
    """The switching of Algorithm 1; returns the number of switches tried and done."""
    report = array_module(state.job).zeros(2, np.int64)
    _kernel(state, "switch_best_first")((1,), (1024,), (*_given(state), np.int32(most), report))
    return tuple(to_host(report).tolist())


def switch_at_once(state):
    """Conflict check (Algorithm 4) and switches (Algorithm 3); returns rounds, 0 or 1, and switches."""
    xp, lines = array_module(state.waits), len(state.waits)
    report = xp.zeros(2, np.int64)
    claim, undecided = xp.full(lines, np.iinfo(np.int32).max, np.int32), xp.empty((2, lines), np.int32)
    given = (*_given(state), state.waits)
    _kernel(state, "check_conflicts")((1,), (1024,), (*given, claim, undecided, report))
    launch(_kernel(state, "switch_at_once"), lines, (*given, report[1:]))
    return tuple(to_host(report).tolist())


def take_nearest(state, first, last):
    """Greedy start of rows first to last; written: job, agent."""
    _kernel(state, "take_nearest")((1,), (1024,), (*_given(state), np.int32(first), np.int32(last)))


def _sides(state, first, last):
    """What to evaluate of rows and of columns: name, waits, length of the other side, span, results."""
    rows, cols = len(state.job), len(state.agent)
    if first < rows:
        span = first, min(last, rows)
        yield "rows", state.waits[:rows], cols, span, state.row_choice, state.row_gain
    if last > rows:
        span = max(first - rows, 0), last - rows
        yield "cols", state.waits[rows:], rows, span, state.col_choice, state.col_gain


def _given(state):
    """The state as the kernels take it, without waits."""
    costs, by_col, *others, _ = state
    size = np.int32(len(state.job)), np.int32(len(state.agent))
    if not isinstance(costs, tuple):
        return (costs, costs, by_col, by_col, *size, np.int32(0), np.int32(0), *others)
    (source, target_by_axis, squared), (target, source_by_axis, _) = costs, by_col
    points = (source, target_by_axis, target, source_by_axis)
    return (*points, *size, np.int32(source.shape[1]), np.int32(squared), *others)


def _kernel(state, name):
    if isinstance(state.costs, tuple):
        axes = state.costs[0].shape[1]
        kind = (f"-DAXES={axes if axes <= 3 else 0}",)
    else:
        kind = (f"-DCOST={state.costs.dtype.str[1:]}", f"-DKEY={state.row_held.dtype.str[1:]}")
    return cuda_function(_SOURCE, name, options=kind)
