"""The last fit of the spots of many frames, in grey values; see `fit.fit_in_grey`."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...compute.arrays import cupy_module, to_device, to_host
from ...compute.cuda import cuda_function, launch
from ..decision import _HALO, _HALO_REACH, _HALO_WIDTH
from ..fit import _FAR, _LEAST_AMPLITUDE, SWEEPS, FittedSpots, limits_of
from ..fit_cpu import LEVEL, PARAMETERS, REACH
from .joint import levels
from .light import grey, spot_rows, with_spots
from .modes import back, forward

SOURCE = "detection/gpu/fit.cu"
_TEAM = {True: 32, False: 128}
"""Guard: threads that fit a spot, in one plane or in several; at most four warps, as in fit.cu."""


@dataclass(eq=False)
class GreyFit:
    """Frames in which spots are fitted.

    Parameters
    ----------
    voxels, values, background : (B, Z, Y, X) float32 array
        Grey values, NaN where nothing was measured; frames and light without spots in units of the noise.
    wiener : (B, z, y, x) float32 array
        Share of uneven light in the modes of the band.
    sigma : (3,) float64 array
        Widths in voxels, on the host.
    noise : Noise
    """

    voxels: object
    values: object
    background: object
    wiener: object
    sigma: object
    noise: object

    def __post_init__(self):
        camera, prior, most = limits_of(self.sigma, self.noise)
        self.widths = to_device(np.asarray(self.sigma, float))
        self.prior, self.most = to_device(prior), to_device(most)
        self.team = _TEAM[self.voxels.shape[1] == 1]
        shape = map(np.int32, self.voxels.shape[1:])
        self.given = *shape, self.widths, *map(np.float64, (*camera, REACH))

    def fitted(self, rows, height, significant):
        """Results (n, 14) of the fit of rows (Rows) that stand out of the background by heights (n,)."""
        xp = cupy_module()
        lowest = _LEAST_AMPLITUDE * np.sqrt(self.noise.least)
        spots = spot_rows(self.background, rows, height, self.noise, lowest)
        light, whole = grey(self.background, self.noise), grey(self.values, self.noise)
        moving, band = xp.ones(len(rows), bool), self.wiener.shape[1:]
        for number, sweeps in enumerate(SWEEPS):
            if number == 1:
                moving[:] = True
            if number:
                rest = self._with(whole, spots, significant, rows, stable=True)
                smooth = back(forward(rest, band) * self.wiener, whole.shape[1:])
                light = grey(smooth, self.noise)
            model = self._with(light, spots, None, rows, stable=False)
            for sweep in range(sweeps if len(rows) else 0):
                self._sweep(model, spots, rows, moving, last=sweep == sweeps - 1)
        return self._results(model, light, spots, rows)

    def _with(self, light, spots, used, rows, *, stable):
        return with_spots(light, spots, used, rows.start, self.widths, REACH, self.noise, stable=stable)

    def _sweep(self, model, spots, rows, moving, *, last):
        """One step of all spots that move, those whose windows may meet in turn."""
        step = cuda_function(SOURCE, "step_spots")
        order, sizes = self._turns(spots, rows, moving)
        for begin, size in zip(np.cumsum(sizes) - sizes, sizes, strict=True):
            step(
                (int(size),), (self.team,),
                (self.voxels, model, spots, rows.position, order[begin : begin + size], rows.frame,
                 *self.given, self.prior, self.most, np.float64(_FAR), np.int32(last), moving),
            )  # fmt: skip

    def _turns(self, spots, rows, moving):
        """Spots that move in the order of their turns, and the number of each turn on the host."""
        xp, n = cupy_module(), len(rows)
        count, null, extent = xp.empty(n, np.int64), np.int64(0), xp.empty((n, 3))
        reach = self.widths, np.float64(REACH), self.most
        launch(cuda_function(SOURCE, "extents"), n, (spots, moving, np.int32(n), *reach, extent))
        find = cuda_function(SOURCE, "meetings")
        given = (spots, extent, rows.frame, rows.start, np.int32(n))
        launch(find, n, (*given, count, null, null), block=64)
        indptr = xp.zeros(n + 1, np.int64)
        indptr[1:] = xp.cumsum(count)
        indices = xp.empty(int(indptr[-1]), np.int32)
        launch(find, n, (*given, null, indptr, indices), block=64)
        level = levels(rows.start, indptr, indices, moving)
        sizes = to_host(xp.bincount(level + 1))
        order = xp.argsort(level.astype(np.int64) * n + xp.arange(n))
        return order[int(sizes[0]) :], sizes[1:]

    def _results(self, model, light, spots, rows):
        """Spots, their errors, and the light under them."""
        xp, n = cupy_module(), len(rows)
        error = xp.empty((n, 6))
        if n:
            given = (self.voxels, model, spots, rows.frame, *self.given, self.prior, error)
            cuda_function(SOURCE, "errors_of")((n,), (self.team,), given)
        voxel = tuple(xp.rint(rows.position).astype(np.int64).T)
        under = light[(rows.frame, *voxel)].astype(np.float64)
        return xp.concatenate([spots, error, under[:, None]], axis=1)


def on_host(results):
    """Fitted spots of rows that `GreyFit.fitted` returned."""
    spots, error, under = np.split(to_host(results), [PARAMETERS, -1], axis=1)
    return FittedSpots.of_columns(spots, error, under[:, 0] + spots[:, LEVEL])


def beside_bright(rows, height, significance, sigma):
    """(n,) significances if the halo of much brighter spots is noise; see `decision.beside_bright`."""
    xp = cupy_module()
    halo = xp.empty(len(rows))
    launch(
        cuda_function(SOURCE, "halos"), len(rows),
        (rows.position, height, rows.frame, rows.start, np.int32(len(rows)), sigma, np.float64(_HALO),
         np.float64(_HALO_WIDTH), np.float64(_HALO_REACH), halo),
    )  # fmt: skip
    return significance / xp.sqrt(1 + (significance * halo / xp.maximum(height, 1e-9)) ** 2)
