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
from ...compute.cuda import cuda_function
from ..fit import SIZES
from ..fit_cpu import AMPLITUDE, DEPTH, LEVEL, PARAMETERS, REACH, SIZE, X
from ..joint import PROFILE
from ..stabilise import WIDEST
from ..wider import PIECES
from .light import grey, with_spots

SOURCE = "detection/gpu/wider.cu"


class _Group(NamedTuple):
    """Rows of spots that may be one, of so many widths, around a place."""

    pieces: object
    middle: object
    grown: float


def as_one(fit, rows, significance, significant, results):
    """Results of `GreyFit.fitted` with a wider spot in place of the best of its pieces, and which stay.

    Parameters
    ----------
    fit : GreyFit
    rows : Rows
    significance, significant : (n,) array
    results : (n, 14) float64 array
    """
    frame, spots = to_host(rows.frame), to_host(results[:, :PARAMETERS])
    groups = list(_groups(frame, spots, fit.sigma, to_host(significant)))
    stay = np.ones(len(frame), bool)
    if not groups:
        return results, to_device(stay)
    found, error, is_one = _fitted(fit, rows, results, groups, frame, spots)
    significance = to_host(significance)
    best = np.array([group.pieces[np.argmax(significance[group.pieces])] for group in groups])
    for one, row in zip(np.flatnonzero(is_one), best[is_one], strict=True):
        stay[groups[one].pieces] = groups[one].pieces == row
    at, taken = to_device(best[is_one]), to_device(np.flatnonzero(is_one))
    columns = np.delete(np.arange(PARAMETERS), LEVEL)
    results[at[:, None], to_device(columns)] = found[taken[:, None], to_device(columns)]
    results[at, PARAMETERS:-1] = error[taken]
    return results, to_device(stay)


def _groups(frame, spots, sigma, significant):
    """Groups of three or more significant neighbours, with all spots near them."""
    deep = sigma > 0
    far = 1e3 * (1 + np.abs(spots[:, : X + 1]).max(initial=0))  # frames do not meet
    places = np.column_stack([frame * far, spots[:, : X + 1][:, deep] / sigma[deep]])
    rows, tree = np.flatnonzero(significant), cKDTree(places)
    first, second = cKDTree(places[rows]).query_pairs(WIDEST, output_type="ndarray").T
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(len(rows), len(rows)))
    label = connected_components(graph, directed=False)[1]
    order = np.argsort(label, kind="stable")
    edges = np.append(0, np.cumsum(np.bincount(label)))
    for number in np.flatnonzero(np.diff(edges) >= PIECES):
        own = rows[order[edges[number] : edges[number + 1]]]
        weight = spots[own, AMPLITUDE]
        middle = np.average(spots[own, : X + 1], axis=0, weights=weight)
        place = np.append(frame[own[0]] * far, middle[deep] / sigma[deep])
        away = ((places[own] - place) ** 2).sum(axis=1)
        grown = float(np.sqrt(1 + np.average(away, weights=weight) / deep.sum()))
        if grown <= WIDEST:
            near = tree.query_ball_point(place, np.nextafter(2 * grown, 0))
            yield _Group(np.union1d(own, near).astype(np.int64), middle, grown)


def _fitted(fit, rows, results, groups, frame, spots):
    """Spots (G, 7) of groups in voxels of the frame, their errors, and on the host which are one.

    Their sizes are over the common ones.
    """
    xp = cupy_module()
    level = results[:, :PARAMETERS].copy()
    level[:, LEVEL] = 0
    light = grey(fit.background, fit.noise)
    whole = with_spots(light, level, None, rows.start, fit.widths, REACH, fit.noise, stable=False)
    middle, grown = np.array([group.middle for group in groups]), np.array([group.grown for group in groups])
    wide, shape = grown[:, None] * fit.sigma, np.array(whole.shape[1:])
    low = np.maximum(np.floor(middle - REACH * wide).astype(int), 0)
    size = np.minimum(np.ceil(middle + REACH * wide).astype(int) + 1, shape) - low
    voxels = size.prod(axis=1)
    pieces = np.concatenate([group.pieces for group in groups])
    first = np.append(0, np.cumsum([len(group.pieces) for group in groups]))
    boxes = [xp.empty(int(voxels.sum()), np.float32) for _ in range(3)]
    numbers = frame[[group.pieces[0] for group in groups]]
    where = to_device(size.astype(np.int32)), to_device(np.cumsum(voxels) - voxels)
    at = to_device(numbers), to_device(low.astype(np.int32))
    cuda_function(SOURCE, "cut_out")(
        (len(groups),), (fit.team,),
        (fit.voxels, whole, *map(np.int32, shape), *at, *where, level, to_device(pieces), to_device(first),
         fit.widths, np.float64(REACH), *boxes),
    )  # fmt: skip
    spot = np.zeros((len(groups), PARAMETERS))
    spot[:, : X + 1] = middle - low
    spot[:, AMPLITUDE] = np.maximum.reduceat(spots[pieces, AMPLITUDE], first[:-1])
    unit, flat, size_prior = np.where(wide > 0, wide, 1.0), 1e-6 / fit.noise.least, 1 / SIZES**2
    prior, most = [flat, flat, size_prior, size_prior], [0.5, np.inf, 0.2, 0.2]
    prior, most = (np.tile(each, (len(groups), 1)) for each in (prior, most))
    prior, most = np.hstack([1 / unit**2, prior]), np.hstack([0.3 * unit, most])
    spot, error, is_one = to_device(spot), xp.empty((len(groups), 6)), xp.empty(len(groups), bool)
    camera = map(np.float64, (*fit.noise.line, fit.noise.saturation, REACH, PROFILE))
    cuda_function(SOURCE, "fit_wider")(
        (len(groups),), (fit.team,),
        (*boxes, *where, *map(to_device, (wide, prior, most)), *camera, spot, error, is_one),
    )  # fmt: skip
    spot[:, : X + 1] += to_device(low.astype(float))
    spot[:, [SIZE, DEPTH]] += to_device(np.log(grown))[:, None]
    return spot, error, to_host(is_one)
