"""One wider spot, such as a bead out of focus, that was found as several; see `wider` in the folder above."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from ...compute.arrays import cupy_module, to_device, to_host
from ...compute.cuda import cuda_function, launch
from ...compute.tolerances import LEAST
from ..fit import SIZES, STEPS
from ..fit_cpu import AMPLITUDE, DEPTH, LEVEL, PARAMETERS, REACH, SIZE, X
from ..joint import ONE_SPOT, PROFILE
from ..stabilise import WIDEST
from ..wider import PIECES
from .light import grey, with_spots

SOURCE = "detection/gpu/wider.cu"


class _Groups(NamedTuple):
    """Spots that may be one, on the host.

    Parameters
    ----------
    piece : (p,) int64 array
        Rows of spots, those of a group together.
    first : (G + 1,) int64 array
        First piece of each group.
    frame : (G,) int32 array
    middle : (G, 3) float64 array
        In voxels.
    grown : (G,) float64 array
        Widths of the one spot over the common ones.
    """

    piece: object
    first: object
    frame: object
    middle: object
    grown: object


def as_one(fit, rows, significance, significant, results):
    """Results of `GreyFit.fitted` with a wider spot in place of the best of its pieces, and which stay.

    Parameters
    ----------
    fit : GreyFit
    rows : Rows
    significance, significant : (n,) array
    results : (n, 14) float64 array
    """
    stay = np.ones(len(rows), bool)
    maybe = _maybe(fit, rows, significant, results)
    groups = _groups(maybe, rows, results, fit.sigma) if len(maybe) > 1 else None
    if groups is None or not len(groups.frame):
        return results, to_device(stay)
    found, error, is_one = _fitted(fit, rows, results, groups)
    significance, ones = to_host(significance)[groups.piece], {}
    for one in np.flatnonzero(is_one).tolist():
        own = slice(groups.first[one], groups.first[one + 1])
        best = int(groups.piece[own][np.argmax(significance[own])])
        stay[groups.piece[own]], ones[best] = groups.piece[own] == best, one
    if not ones:
        return results, to_device(stay)
    at, taken = (to_device(np.array(list(each), np.int64)) for each in (ones, ones.values()))
    columns = to_device(np.delete(np.arange(PARAMETERS), LEVEL))
    results[at[:, None], columns] = found[taken[:, None], columns]
    results[at, PARAMETERS:-1] = error[taken]
    return results, to_device(stay)


def _maybe(fit, rows, significant, results):
    """Rows, on the host, of significant spots with two neighbours, next to one with two, or in one place."""
    xp, n = cupy_module(), len(rows)

    def near(counted, far):
        out = xp.empty(n, np.int32)
        launch(
            cuda_function(SOURCE, "count_near"), n,
            (results, np.int32(results.shape[1]), rows.frame, rows.start, np.int32(n), significant, counted,
             fit.widths, np.float64(far), out),
        )  # fmt: skip
        return out

    middle = near(significant, WIDEST) >= PIECES - 1
    together = near(significant, ONE_SPOT) > 0
    return to_host(xp.flatnonzero(middle | (near(middle, WIDEST) > 0) | together))


def _groups(maybe, rows, results, sigma):
    """Groups of neighbours among these rows, as `wider` takes them, with all spots near them."""
    frame, spots, start = to_host(rows.frame), to_host(results[:, : AMPLITUDE + 1]), to_host(rows.start)
    deep = sigma > 0
    places, weight = spots[:, : X + 1][:, deep] / sigma[deep], spots[:, AMPLITUDE]
    far = 1e3 + np.ptp(places)  # frames do not meet
    tree = cKDTree(np.column_stack([frame[maybe] * far, places[maybe]]))
    first, second = tree.query_pairs(WIDEST, output_type="ndarray").T
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(len(maybe), len(maybe)))
    label = connected_components(graph, directed=False)[1]
    members = np.bincount(label)
    own, edges = maybe[np.argsort(label, kind="stable")], np.cumsum(members) - members
    light = np.add.reduceat(weight[own], edges)[:, None]
    middle = np.add.reduceat(weight[own, None] * spots[own, : X + 1], edges) / light
    group = np.repeat(np.arange(len(edges)), members)
    away = ((places[own] - middle[group][:, deep] / sigma[deep]) ** 2).sum(axis=1)
    spread = np.add.reduceat(weight[own] * away, edges) / light[:, 0]
    grown = np.sqrt(1 + spread / deep.sum())
    second = np.minimum(edges + 1, len(own) - 1)
    apart = np.linalg.norm(places[own[edges]] - places[own[second]], axis=1)
    several = (members >= PIECES) | ((members == 2) & (apart < ONE_SPOT))
    kept = np.flatnonzero(several & (grown <= WIDEST))
    number = np.full(len(edges), -1)
    number[kept] = np.arange(len(kept))
    frames, middle, grown = frame[own[edges[kept]]], middle[kept], grown[kept]
    length = start[frames + 1] - start[frames]
    of = np.repeat(np.arange(len(kept)), length)
    row = np.arange(len(of)) - np.repeat(np.cumsum(length) - length, length) + start[frames][of]
    away = ((places[row] - middle[of][:, deep] / sigma[deep]) ** 2).sum(axis=1)
    near, mine = away < (2 * grown[of]) ** 2, number[group] >= 0
    both = np.unique(
        np.concatenate([of[near], number[group][mine]]) * len(frame) + np.concatenate([row[near], own[mine]])
    )
    first = np.searchsorted(both, np.arange(len(kept) + 1) * len(frame))
    return _Groups(both % len(frame), first, frames, middle, grown)


def _fitted(fit, rows, results, groups):
    """Spots (G, 7) of groups in voxels of the frame, their errors, and on the host which are one.

    Their sizes are over the common ones.
    """
    xp = cupy_module()
    level = results[:, :PARAMETERS].copy()
    level[:, LEVEL] = 0
    light = grey(fit.background, fit.noise)
    whole = with_spots(light, level, None, rows.start, fit.widths, REACH, fit.noise, stable=False)
    pieces, first, numbers, middle, grown = groups
    wide, shape = grown[:, None] * fit.sigma, np.array(whole.shape[1:])
    low = np.maximum(np.floor(middle - REACH * wide).astype(int), 0)
    size = np.minimum(np.ceil(middle + REACH * wide).astype(int) + 1, shape) - low
    voxels = size.prod(axis=1)
    boxes = [xp.empty(int(voxels.sum()), np.float32) for _ in range(3)]
    where = to_device(size.astype(np.int32)), to_device(np.cumsum(voxels) - voxels)
    at = to_device(numbers), to_device(low.astype(np.int32))
    cuda_function(SOURCE, "cut_out")(
        (len(grown),), (fit.team,),
        (fit.voxels, whole, *map(np.int32, shape), *at, *where, level, to_device(pieces), to_device(first),
         fit.widths, np.float64(REACH), *boxes),
    )  # fmt: skip
    spot = np.zeros((len(grown), PARAMETERS))
    spot[:, : X + 1] = middle - low
    spot[:, AMPLITUDE] = np.maximum.reduceat(to_host(level[to_device(pieces), AMPLITUDE]), first[:-1])
    unit, flat, size_prior = np.where(wide > 0, wide, 1.0), LEAST / fit.noise.least, 1 / SIZES**2
    prior, most = [flat, flat, size_prior, size_prior], STEPS[AMPLITUDE:]
    prior, most = (np.tile(each, (len(grown), 1)) for each in (prior, most))
    prior, most = np.hstack([1 / unit**2, prior]), np.hstack([STEPS[: X + 1] * unit, most])
    spot, error, is_one = to_device(spot), xp.empty((len(grown), 6)), xp.empty(len(grown), bool)
    camera = map(np.float64, (*fit.noise.line, fit.noise.saturation, REACH, PROFILE))
    cuda_function(SOURCE, "fit_wider")(
        (len(grown),), (fit.team,),
        (*boxes, *where, *map(to_device, (wide, prior, most)), *camera, spot, error, is_one),
    )  # fmt: skip
    spot[:, : X + 1] += to_device(low.astype(float))
    spot[:, SIZE : DEPTH + 1] += to_device(np.log(grown))[:, None]
    return spot, error, to_host(is_one)
