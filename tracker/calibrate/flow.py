"""Flow: predict the step of a particle from its neighbours, in fluids, tissues or on a moving stage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..neighbours import nearest
from .registration import NEIGHBOURS, registered

CROWDS = (0, 16, 8, 4)
"""Numbers of nearest neighbours to try; 0 means the whole frame, so that the flow is a drift."""

_FRAMES = 12
"""Number of frames, spread over the movie, on which the number of neighbours is chosen: flow may vary."""
_ASKED = 1500
"""Number of detections used in these frames."""
_CHOICES = 3
"""How often the number of neighbours is chosen while the steps become known."""
_WORTH, _CHANCE = 0.01, 12.0
"""Least share of the step variance that an accepted flow explains, and least number of steps to which this
must correspond: by chance, neighbours explain one or two."""
_TWICE, _ASTRAY = 2, 0.17
"""Number of passes after which a flow must also explain at least this multiple of the share of wrong links:
wrong links also create a flow and confirm it, but a weaker one."""
_FEWER = 1.02
"""Factor by which fewer neighbours must explain more variance to be preferred: many are more robust."""
_TELLING = 8
"""Number of detections from which the flow at another position is interpolated."""
_FEWEST = 3
"""Least number of neighbours with a step for a prediction."""


class Flow:
    """Predict the displacement per frame from the steps of neighbours, repeatedly as steps become known.

    The prediction for a particle never includes its own step. It is the weighted mean of the neighbours'
    steps, in which near and probable steps have more weight, times the slope of a regression of steps on such
    means along each axis. So the flow of pure noise is 0. Neighbours are determined once; their number is
    chosen in the first few calls.

    Parameters
    ----------
    frame_start : (F + 1,) int64 array
        Frame f holds the rows frame_start[f] to frame_start[f + 1].
    position : (N, axes) float64 array
        Position of each detection.
    crowds : tuple of int
        Numbers of neighbours to try; 0 is the whole frame.
    workers : int
        Threads; they do not change the result.

    Examples
    --------
    >>> place = np.random.default_rng(0).random((500, 2))
    >>> step = np.stack([place[:, 1], 1 - place[:, 0]], axis=1)
    >>> foretold, crowd = Flow(np.array([0, 500]), place).foretold(step)
    >>> crowd, bool(np.abs(foretold - step).mean() < 0.05)
    (16, True)
    """

    def __init__(
        self,
        frame_start: NDArray[np.int64],
        position: NDArray[np.float64],
        *,
        crowds: tuple[int, ...] = CROWDS,
        workers: int = 1,
    ) -> None:
        self._frame_start, self._position = frame_start, position
        self._all, self._crowds, self._workers, self._chosen = crowds, crowds, workers, 0
        frames = np.nonzero(np.diff(frame_start))[0]
        tried = min(_FRAMES, len(frames))
        self._some = frames[((np.arange(tried) + 0.5) * len(frames) / max(tried, 1)).astype(np.int64)]
        rows = [np.arange(*frame_start[frame : frame + 2]) for frame in self._some]
        self._every = max(1, sum(map(len, rows)) // _ASKED)
        self._rows = np.concatenate([row[:: self._every] for row in rows] or [np.empty(0, np.int64)])
        self._near: dict[bool, tuple[NDArray[np.int32], NDArray[np.float64]]] = {}
        self._ahead: NDArray[np.float64] | None = None
        self._led, self.explained = 0, 0.0  # share of the steps' variance, by what was foretold last

    @property
    def led(self) -> bool:
        """Whether the current or the next estimate of the flow only corrects the result of registration."""
        return self._ahead is not None

    def register(self, guess: NDArray[np.float64], *, lead: int = 0) -> NDArray[np.float64]:
        """(N, axes) flow by registration without links (`registered`), or the guess if that is better.

        Parameters
        ----------
        guess : (N, axes) float64 array
            The predicted flow.
        lead : int
            Number of further calls in which neighbours predict only the residual of the steps.
        """
        start, place, workers = self._frame_start, self._position, self._workers
        # So many neighbours are not asked again, and would fill the memory.
        near, distance2 = nearest(place, start, np.arange(len(place)), NEIGHBOURS, workers=workers)
        ahead = registered(start, place, near, distance2, guess, workers=workers)
        if ahead is not guess:
            self._ahead, self._led = (ahead, lead) if lead else (None, 0)
        return ahead

    @property
    def shown(self) -> NDArray[np.int64]:
        """A sample of detections in some of the frames, except the last frame."""
        return self._rows[self._rows < self._frame_start[-2]]

    def elsewhere(self, shift: NDArray[np.float64], place: NDArray[np.float64]) -> NDArray[np.float64]:
        """(M, axes) flow at other positions, assuming that it is constant in time.

        Parameters
        ----------
        shift : (N, axes) float64 array
            Flow at each detection.
        place : (M, axes) float64 array
        """
        # Those of the last frame have no step.
        return around(self._position[: self._frame_start[-2]], shift, place, workers=self._workers)

    def amiss(self, ahead: NDArray[np.float64]) -> float:
        """Median distance from the predicted positions of `shown` to the nearest detection of the next frame.

        Parameters
        ----------
        ahead : (M, axes) float64 array
            Predicted displacement of each of these.
        """
        start, shown = self._frame_start, self.shown
        frame = np.searchsorted(start, shown, side="right") - 1
        parts: list[NDArray[np.float64]] = []
        for there in np.unique(frame + 1):
            here = frame + 1 == there
            parts += [self._position[shown[here]] + ahead[here], self._position[slice(*start[there:][:2])]]
        begins = np.append(0, np.cumsum([len(part) for part in parts]))
        asking = np.concatenate([np.arange(*begins[at:][:2]) for at in range(0, len(parts), 2)])
        _, distance2 = nearest(np.concatenate(parts), begins, asking, 1, offset=1, workers=self._workers)
        return float(np.sqrt(np.median(distance2)))

    def anew(self) -> Flow:
        """A copy without memory of earlier steps; the neighbours are kept."""
        flow = Flow(self._frame_start, self._position, crowds=self._all, workers=self._workers)
        flow._near = self._near
        return flow

    def foretold(
        self, step: NDArray[np.float64], trust: NDArray[np.float64] | None = None
    ) -> tuple[NDArray[np.float64], int | None]:
        """Predict the flow at each detection; returns it with the number of neighbours used.

        Parameters
        ----------
        step : (N, axes) float64 array
            Step of each detection to the next frame; NaN if it has none.
        trust : (N,) float64 array, optional
            Probability of each step, used as its weight; by default all weights are equal. Neighbours are the
            particles most easily confused with each other, so doubtful steps must not confirm themselves.

        Returns
        -------
        (N, axes) float64 array and int or None
            0 and None if no number of neighbours explains 1 % of the variance, or more than chance.
        """
        if self._led == 0:
            self._ahead = None
        if self._ahead is None:
            return self._foretold(step, trust)
        self._led -= 1
        left, crowd = self._foretold(step - self._ahead, trust)
        # Where the whole frame, or nobody, tells what is left, neighbours still told the rest.
        return self._ahead + left, crowd or CROWDS[1]

    def _foretold(
        self, step: NDArray[np.float64], trust: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], int | None]:
        """Predict the flow at each detection as `foretold` does, from steps alone."""
        everywhere = len(self._crowds) == 1
        heed = np.ones(len(step)) if trust is None else trust
        rows = slice(None) if everywhere else self._rows
        own = step[rows]
        known = ~np.isnan(own[:, 0])
        worth = max(_WORTH, _CHANCE / max(int(known.sum()), 1))
        if self._chosen >= _TWICE and not everywhere and known.any():
            worth = max(worth, _ASTRAY * (1 - float(heed[rows][known].mean())))
        best, most, slope, mean = None, worth, np.zeros(step.shape[1]), step
        for crowd in self._crowds:
            tried = self._mean(step, heed, crowd, everywhere=everywhere)
            found, rest = _regressed(own, tried, heed[rows])
            if 1 - rest > most:
                best, most, slope, mean = crowd, _FEWER * (1 - rest), found, tried
        self.explained = 0.0 if best is None else most / _FEWER
        if best is None:
            return np.zeros_like(self._position), None
        self._chosen += 1
        if self._chosen == _CHOICES:
            self._crowds = (best,)
        if not everywhere:
            mean = self._mean(step, heed, best, everywhere=True)
            slope, _ = _regressed(step, mean, heed)
        mean *= slope
        return mean, best

    def _mean(
        self, step: NDArray[np.float64], heed: NDArray[np.float64], crowd: int, *, everywhere: bool = False
    ) -> NDArray[np.float64]:
        """(M, axes) mean step of the neighbours of each detection, or of those in some frames.

        heed (N,) float64: weight of each step.
        """
        from . import flow_cpu as kernels

        frames = np.nonzero(np.diff(self._frame_start))[0] if everywhere else self._some
        every = 1 if everywhere else self._every
        mean = np.empty((len(step) if everywhere else len(self._rows), step.shape[1]))
        if crowd == 0:
            first, last = self._frame_start[frames], self._frame_start[frames + 1]
            kernels.mean_of_others(first, last, every, step, heed, _FEWEST, mean)
            return mean
        # Farther ones count less, and stand in for those that have no step.
        count = (crowd if everywhere else max(self._crowds)) * 3 // 2
        near, distance2 = self._neighbours(count, everywhere=everywhere)
        kernels.mean_of_near(near[:, : crowd * 3 // 2], distance2, step, heed, crowd, _FEWEST, mean)
        return mean

    def _neighbours(self, count: int, *, everywhere: bool) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """(M, count or more) neighbours of each detection, or of those in some frames; squared distances."""
        known = self._near.get(everywhere)
        if known is None or known[0].shape[1] < count:
            asking = np.arange(len(self._position)) if everywhere else self._rows
            near, distance2 = np.empty((len(asking), count), np.int32), np.empty((len(asking), count))
            if everywhere and False in self._near:
                some, far = self._near[False]
                near[self._rows], distance2[self._rows] = some[:, :count], far[:, :count]
                asking = np.delete(asking, self._rows)
            to = asking if everywhere else slice(None)
            near[to], distance2[to] = nearest(
                self._position, self._frame_start, asking, count, workers=self._workers
            )
            known = self._near[everywhere] = near, distance2
        return known


def around(
    known: NDArray[np.float64], shift: NDArray[np.float64], place: NDArray[np.float64], *, workers: int = 1
) -> NDArray[np.float64]:
    """(M, axes) mean flow of the detections nearest to each position.

    Parameters
    ----------
    known, shift : (N, axes) float64 arrays
        Some positions, and the flow there.
    place : (M, axes) float64 array
    workers : int
        Threads; they do not change the result.
    """
    many, both = len(place), np.concatenate([place, known])
    start, asking = np.array([0, many, len(both)]), np.arange(many)
    near, _ = nearest(both, start, asking, min(_TELLING, len(known)), offset=1, workers=workers)
    return np.asarray(shift[near - many].mean(axis=1))


def _regressed(
    step: NDArray[np.float64], mean: NDArray[np.float64], heed: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """(axes,) regression slopes of the steps on the means, from 0 to 1, and the residual share of squares."""
    from .flow_cpu import products

    sums = np.empty((3, step.shape[1]))
    products(step, mean, heed, sums)
    square, mixed, square_of_mean = sums
    slope = np.clip(mixed / np.maximum(square_of_mean, 1e-300), 0.0, 1.0)
    moving = square > 0
    rest = (square - 2 * slope * mixed + slope**2 * square_of_mean)[moving] / square[moving]
    return slope, float(rest.mean()) if moving.any() else 1.0
