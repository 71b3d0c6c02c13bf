"""The joint fit of all spots of many frames, in passes and rounds; see `candidates` and `joint`."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...compute.arrays import cupy_module, to_device, to_host
from ...compute.cuda import cuda_function, launch
from ..candidates import _KEPT, _MORE, _PASSES
from ..fit_cpu import REACH
from ..joint import (
    _BELOW,
    _FALSE,
    _MOST,
    _NEIGHBOURS,
    _NEW,
    _RIDGE,
    _ROUNDS,
    _SAME,
    _SPARROW,
    _STEP,
    _SWEEPS,
    _WEAKEST,
    ONE_SPOT,
    PROFILE,
)
from .light import spot_rows, taken_out
from .modes import HEIGHTS, back, filters, forward, noise_above, rings_of, thresholds
from .response import NoiseScales
from .rows import Rows

SOURCE = "detection/gpu/joint.cu"


@dataclass(eq=False)
class JointSearch:
    """Frames of one shape in their band, and what is known of their spots.

    Parameters
    ----------
    values, background : (B, Z, Y, X) float32 array
        Frames without their mean, and their light without spots, in units of the camera's noise.
    sigma : (3,) float64 array
        Widths of a spot in voxels, on the host.
    noise : Noise
    """

    values: object
    background: object
    sigma: object
    noise: object

    def __post_init__(self):
        xp = cupy_module()
        self.shape = self.values.shape[1:]
        self.rings = rings_of(self.shape)
        self.dark = self.background.copy()
        self.residual, self.response = xp.empty_like(self.values), xp.empty_like(self.values)
        self.least = np.zeros(len(self.values))
        self.widths = to_device(np.asarray(self.sigma, float))

    def find(self, modes):
        """Candidates (Rows) of all frames; modes: their cosine transforms."""
        frames, floor = len(self.values), 1.0 if self.noise.given else 0.0
        first = self.rings.power(modes, floor)
        self.filters = filters(self.rings.modes, self.sigma, first)
        self._learn_maxima()
        active, ended, significant = np.arange(frames), [], Rows.none(frames)
        for turn in range(_PASSES):
            peaks = self._fitted_together(significant, modes, active)
            before = significant.counts()
            significant = peaks.of(peaks.above(to_device(self.alone)))
            without = forward(self._without(significant, active, whole=True), self.shape)
            at = self._at(active)
            self.background[at] = back(without * self.filters.wiener[at], self.shape) + self.dark[at]
            last = np.ones(frames, bool)
            if turn < _PASSES - 1:
                last = significant.counts() <= _MORE * before if turn else np.zeros(frames, bool)
            ended.append(peaks.of(peaks.in_frames(last)))
            going = ~last[active]
            active = active[going]
            if not len(active):
                break
            significant = significant.of(significant.in_frames(~last))
            at, keep = self._at(active), to_device(going)
            power = self.rings.power(without[keep], floor, first[at], _KEPT)
            scale = self.filters.scale.copy()
            self.filters.replace(at, filters(self.rings.modes, self.sigma, power))
            self._learn_maxima()
            stronger = (self.filters.scale / scale)[significant.frame]
            significant = replace(significant, amplitude=significant.amplitude * stronger)
        return Rows.joined(ended, frames)

    def _learn_maxima(self):
        self.curvature = to_host(self.filters.curvature)
        self.above = self.noise_above(HEIGHTS)
        self.alone = thresholds(self.above, 1.0)

    def noise_above(self, u):
        """(B, n) on the host: expected maxima of noise in each frame above heights u (n,)."""
        return noise_above(float(np.prod(self.shape)), self.curvature, np.asarray(u))

    def _at(self, active):
        """Index of some frames."""
        return slice(None) if len(active) == len(self.values) else to_device(active)

    def _without(self, spots, active, used=None, *, whole=False):
        """Response of some frames without spots, or without the `used` ones; if `whole`, their values."""
        at = self._at(active)
        rows = spot_rows(
            self.background, spots, spots.amplitude / self.filters.scale[spots.frame], self.noise
        )
        which = to_device(active.astype(np.int32))
        rest = taken_out(
            self.values, self.background, which, rows, used, spots.start, self.widths, REACH, self.noise
        )
        return rest if whole else self._respond(forward(rest, self.shape), at)

    def _respond(self, modes, at):
        return back(modes * self.filters.taps[at], self.shape)

    def _measure_noise(self, peaks, significant, active):
        """Response of some frames without the significant spots, and its noise."""
        at, frames = self._at(active), len(self.values)
        all_are = bool(significant.all())
        rest = self.residual[at] if all_are else self._without(peaks, active, significant)
        rest = rest / self.filters.gain[at]
        scales = NoiseScales.of(rest, self.sigma, self.noise_above([_BELOW])[active, 0])
        self.response[at] = rest
        if len(active) == frames:
            self.scales = scales
        else:
            self.scales.blocks[at] = scales.blocks

    def _fitted_together(self, start, modes, active):
        """The joint fit of some frames, see `joint.fit_together`: their candidates."""
        xp, ended = cupy_module(), []
        at, alone = self._at(active), to_device(self.alone)
        peaks = resolved(start, self.widths)
        nothing = not len(peaks)
        self.residual[at] = self._respond(modes[at], at) if nothing else self._without(peaks, active)
        significant = xp.ones(len(peaks), bool)
        self._measure_noise(peaks, significant, active)
        for turn in range(_ROUNDS):
            expected = np.maximum(1.0, _FALSE * peaks.counts(significant))
            self.least[active] = thresholds(self.above, expected)[active]
            ahead = self._moved(peaks)
            fresh = self._maxima(active)
            both = Rows.joined([ahead, fresh], len(self.values))
            there = both.counts() > 0
            active = active[there[active]]
            if not len(active):
                break
            before = peaks.counts()
            peaks = self._settled(both, peaks)
            significant = peaks.above(alone)
            self.residual[self._at(active)] = self._without(peaks, active)
            last = (
                np.ones(len(before), bool)
                if turn == _ROUNDS - 1
                else (peaks.counts() - before <= _NEW * before if turn else np.zeros(len(before), bool))
            )
            measured = active if turn == 0 else active[last[active]]
            if len(measured):
                earlier = self.scales.at(peaks.frame, peaks.position)
                rows = peaks.in_frames(np.isin(np.arange(len(before)), measured))
                some = peaks.of(rows)
                self._measure_noise(some, significant[rows], measured)
                ratio = self.scales.at(peaks.frame, peaks.position) / earlier
                peaks = replace(peaks, error=peaks.error * xp.where(rows, ratio, 1.0))
            stay = peaks.in_frames(~last)
            ended.append(peaks.of(~stay))
            peaks, significant = peaks.of(stay), significant[stay]
            active = active[~last[active]]
            if not len(active):
                break
        peaks = Rows.joined(ended, len(self.values))
        return resolved(peaks, self.widths, peaks.above(alone))

    def _maxima(self, active):
        """Candidates that join: the maxima of the residual."""
        xp, at = cupy_module(), self._at(active)
        rest = self.residual[at] / self.filters.gain[at]
        frame, position, _ = self.scales.maxima(rest, active.astype(np.int32), self.least)
        none = xp.zeros(len(frame))
        return Rows(len(self.values), frame, position, none, none)

    def _moved(self, peaks):
        """Candidates after a step up the slope of the residual."""
        out = cupy_module().empty_like(peaks.position)
        launch(
            cuda_function(SOURCE, "moved"), len(peaks),
            (peaks.position, peaks.amplitude, peaks.frame, np.int32(len(peaks)), self.residual,
             self.filters.curvature, self.widths, np.float64(_STEP), *map(np.int32, self.shape), out),
        )  # fmt: skip
        return replace(peaks, position=out)

    def _settled(self, rows, before):
        """Amplitudes and errors of candidates besides each other; see `joint._fitted`."""
        xp, n = cupy_module(), len(rows)
        octant, shape = self.filters.octant, tuple(map(np.int32, self.shape))
        kernel = (octant, self.filters.half, *map(np.int32, octant.shape[1:]))
        response = xp.empty(n)
        launch(
            cuda_function(SOURCE, "respond"), n,
            (rows.position, rows.frame, np.int32(n), self.residual, *shape, before.position,
             before.amplitude, before.start, *kernel, response),
            block=64,
        )  # fmt: skip
        count, null = xp.empty(n, np.int64), np.int64(0)
        given = (rows.position, rows.frame, rows.start, np.int32(n), *kernel)
        find = cuda_function(SOURCE, "overlaps")
        launch(find, n, (*given, count, null, null, null), block=64)
        indptr = xp.zeros(n + 1, np.int64)
        indptr[1:] = xp.cumsum(count)
        total = int(indptr[-1])
        indices, data = xp.empty(total, np.int32), xp.empty(total)
        launch(find, n, (*given, null, indptr, indices, data), block=64)
        level = levels(rows.start, indptr, indices)
        limits = (_WEAKEST, _SWEEPS, _MOST, _SAME, PROFILE, _NEIGHBOURS, PROFILE, _RIDGE)
        amplitude, error, wide = xp.empty(n), xp.empty(n), xp.empty(n)
        stay, alive = xp.zeros(n, bool), xp.zeros(n, bool)
        cuda_function(SOURCE, "settle")(
            (rows.frames,), (512,),
            (rows.position, response, rows.start, indptr, indices, data, level, self.filters.gain, *shape,
             *self.scales.arguments, to_device(self.least), to_device(ONE_SPOT * self.sigma),
             to_device(np.array(limits)), amplitude, error, wide, stay, alive),
        )  # fmt: skip
        return replace(rows, amplitude=amplitude, error=error).of(alive)


def levels(start, indptr, indices, active=None):
    """(n,) i4: the turn of each row, after its neighbours before it; -1 where not active."""
    xp = cupy_module()
    out = xp.empty(len(indptr) - 1, np.int32)
    active = xp.ones(len(out), bool) if active is None else active
    cuda_function(SOURCE, "levels")((len(start) - 1,), (512,), (start, indptr, indices, active, out))
    return out


def resolved(peaks, sigma, significant=None):
    """Without the dimmer of spots nearer than the Sparrow limit, unless significant."""
    dimmer = cupy_module().empty(len(peaks), bool)
    launch(
        cuda_function(SOURCE, "dimmer_of_near"), len(peaks),
        (peaks.position, peaks.amplitude, peaks.frame, peaks.start, np.int32(len(peaks)), sigma,
         np.float64(_SPARROW), dimmer),
    )  # fmt: skip
    return peaks.of(~dimmer if significant is None else ~dimmer | significant)
