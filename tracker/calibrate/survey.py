"""Survey: step variance, share of particles detected again, and share of clutter, without any link.

In crowded movies, links do not distinguish clutter from particles that are missed later, and short steps are
linked more often than long ones. But around the position of a detection, the next frame contains more
detections than around a random position. The size of this excess gives the share of particles detected again,
and its width gives the step variance (particle image correlation; Semrau & Schmidt 2007). A simultaneous
excess in the previous and next frame comes from particles detected in both, which excludes clutter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..refine.candidates import near_points
from ..refine.linking import LinkModel
from ..refine.movie import Movie

_NARROW, _WIDE, _REACH = 0.35, 1.05, 3.0
"""Variances of two Gaussians that weigh how near others are, in those of a step; radius beyond which none is
near, in standard deviations of the wider one;"""
_AWAY, _INSIDE = 2.0, 2.0
"""how many radii from a detection other places are looked at; and how many standard deviations of a step from
walls, which throw particles back."""
_ENOUGH, _FEWEST = 25_000, 4_000
"""Detections that are looked at, about, and at least;"""
_NEAR, _SOME = 100, 200
"""others around each, at most, and of how many that is asked."""
_BLOCKS = 16
"""Number of groups of the jackknife."""
_LEARNED, _OF_DOUBT = 0.05, 0.4
"""How wrong the variance of steps may be that links tell, relative to it, at least and of what share of the
links may be wrong;"""
_UNLIKE = 0.3
"""and how far from it what is seen may be before nothing is believed."""
_CROWDING, _SURE = 0.1, 4.0
"""Surplus of detections in the same frame, in that of the next, from which on particles keep apart or
cluster; and how many times its error that must be."""
_UNTOLD, _SEEN = 0.05, 0.02
"""How wrong links may be about clutter, and about those that are seen in the next frame."""
_CLEAR, _CERTAIN = 2.5, 4.0
"""Standard errors from which on there is clutter, little by little, and from which on as much as is seen;"""
_MORE_CLUTTER, _MORE_MISSED, _MOST_CLUTTER, _MOST = 4.0, 1.3, 0.9, 0.5
"""how many times as much of it, and as many misses, as links tell there may be, for they tell whether any are
at all; and how much of them at most."""


@dataclass(frozen=True)
class Survey:
    """Estimates from pairs and triples of detections, without links.

    Parameters
    ----------
    seen : float
        Probability that the particle of a detection is also detected in the next (or previous) frame.
    clutter : float
        Share of clutter among detections.
    errors : (2,) float64 array
        Standard errors of `seen` and `clutter`.
    variance : (axes,) float64 array
        Variance of the step per frame.
    spread : float
        Relative standard error of `variance`.
    """

    seen: float
    clutter: float
    errors: NDArray[np.float64]
    variance: NDArray[np.float64]
    spread: float

    def widened(self, model: LinkModel, doubt: float) -> LinkModel:
        """The model with a step variance combined from the survey and from links.

        Parameters
        ----------
        model : LinkModel
        doubt : float
            Share of the links that may be wrong.

        Examples
        --------
        >>> from ..motion import Motion
        >>> model = LinkModel(Motion.static((1.0,)), (0.8,), 0.2, 0.2, gate=(4.0,))
        >>> seen = Survey(0.8, 0.0, np.zeros(2), variance=np.array([1.5]), spread=0.1)
        >>> [round(float(seen.widened(model, doubt).motion.step_variance(1)[0]), 2) for doubt in (0.1, 0.5)]
        [1.08, 1.38]
        """
        share = float(np.mean(self.variance / model.motion.floored().step_variance(1)))
        return replace(model, motion=model.motion.widened(share ** _heed(self.spread, doubt)))

    def revised(self, model: LinkModel) -> LinkModel:
        """The model with rates closer to the survey, increasingly from pass to pass.

        In crowded movies, gap links are often not found, but rarely found wrongly. So links give a lower
        bound of misses and an upper bound of ends.

        Examples
        --------
        >>> from ..motion import Motion
        >>> model = LinkModel(Motion.static((1.0,)), (0.8, 0.05), 0.15, 0.15, gate=(4.0,), clutter=0.03)
        >>> seen = Survey(0.8, 0.1, np.array([0.01, 0.01]), variance=np.ones(1), spread=0.1)
        >>> new = seen.revised(model)
        >>> round(new.clutter, 3), round(new.end, 3), np.round(new.follow, 3).tolist()
        (0.097, 0.135, [0.8, 0.065])
        """
        surely = self.clutter / max(float(self.errors[1]), 1e-6)
        if surely < _CLEAR or self.clutter < model.clutter or model.clutter == 0:
            return model
        # Little by little as it gets clear that there is any: hardly another count must not make for quite
        # another model.
        heed, new = min((surely - _CLEAR) / (_CERTAIN - _CLEAR), 1.0), self._agreed(model)
        was, now = (np.array([one.end, one.start, one.clutter, *one.follow]) for one in (model, new))
        end, start, clutter, *follow = (was + heed * (now - was)).tolist()
        return replace(model, follow=tuple(follow), end=end, start=start, clutter=clutter)

    def _agreed(self, model: LinkModel) -> LinkModel:
        """The model with the rates of the survey."""
        follow = np.array(model.follow)
        seen = _mean((self.seen, self.errors[0]), (follow[0], _SEEN))
        clutter = min(_mean((self.clutter, self.errors[1]), (model.clutter, _UNTOLD)), _MOST_CLUTTER)
        again = min(seen / (1 - clutter), 1.0)
        late = follow[1] / follow[0] if len(follow) > 1 else 0.0
        # Of those that are neither seen again nor known to be missed half are, and half are lost.
        missed = min(late + max(1 - again - late, 0.0) / 2, _MORE_MISSED * late, _MOST)
        follow = seen * missed ** np.arange(len(follow))
        end = float(np.clip(1 - follow.sum(), model.end / 4, 4 * model.end))
        start = min(model.start * end / model.end, 0.9)
        clutter = min(clutter, _MORE_CLUTTER * model.clutter, 0.98 * min(end, start))
        follow *= (1 - end) / follow.sum()
        return replace(model, follow=tuple(follow.tolist()), end=end, start=start, clutter=clutter)


def _heed(spread: float, doubt: float) -> float:
    """Weight of the survey, relative to doubtful links, for the variance of steps."""
    wrong = max(_LEARNED, _OF_DOUBT * doubt)
    return wrong**2 / (wrong**2 + spread**2)


def _mean(*values: tuple[float, float]) -> float:
    """Mean of values, weighted by their standard errors."""
    weight = np.array([1 / max(error, 1e-6) ** 2 for _, error in values])
    return float(weight @ [value for value, _ in values] / weight.sum())


def surveyed(movie: Movie, model: LinkModel, *, doubt: float = 0.0, workers: int = 1) -> Survey | None:
    r"""Estimate step variance, share detected again and clutter; None if it is not possible.

    Let others be weighed by :math:`w(d) = \exp(-d^2 / 2 k v)`, with :math:`v` the variance of a step and k
    one of two numbers. Around a detection, in the next frame, they sum up to that around any other place and
    :math:`A f` more, where A is the share that is seen again and :math:`f = (1 + r / k)^{-n/2}` in n
    dimensions if the variance is r v; both numbers together tell r as well. In the frames before and after
    the product of both sums is that of any other place and more, of which the share T that is seen in both is
    told in the same way. Of the detections that are particles T / A are seen again, and
    :math:`1 - A^2 / T` are none.

    Parameters
    ----------
    movie : Movie
        Of particles that do not drift, whose places tell nothing of each other, and all as easily seen: if
        some are missed more often than others, as much as that varies passes for clutter.
    model : LinkModel
        A model whose motion is approximately known.
    doubt : float
        Share of possibly wrong links in its estimate.
    workers : int
        Threads; they do not change the result.

    References
    ----------
    Semrau & Schmidt, Particle image correlation spectroscopy (2007).
    """
    motion, axes = model.motion.floored(), movie.axes
    variance = motion.step_variance(1)
    correlation = motion.step_covariance(1) / variance
    place, other = _places(movie, variance)
    if min(len(place.row), len(other.row)) < _FEWEST or _crowd(movie, place, variance) > _NEAR:
        return None
    axis = int(np.argmax(np.ptp(movie.bounds, axis=0)))
    cuts = np.quantile(place.place[:, axis], np.arange(1, _BLOCKS) / _BLOCKS)
    here, there = (
        _in_blocks(np.searchsorted(cuts, points.place[:, axis]), _counts(movie, points, variance, workers))
        for points in (place, other)
    )
    if not (here[:, 0].all() and there[:, 0].all()):
        return None
    whole = here.sum(axis=0), there.sum(axis=0)
    parts = [(whole[0] - here[b], whole[1] - there[b]) for b in range(_BLOCKS)]
    # How wide steps are, by what is seen and by what links tell.
    width, spread = _width(*whole, axes), float(_error(np.array([_width(*part, axes) for part in parts])))
    if not (width > 0 and abs(width - 1) < _UNLIKE + 3 * spread):
        return None
    trust = _heed(spread, doubt)

    def told(here: NDArray[np.float64], there: NDArray[np.float64]) -> NDArray[np.float64]:
        return _told(here, there, 1 + (_width(here, there, axes) - 1) * trust, correlation)

    seen, clutter, crowding = told(*whole)
    errors = _error(np.array([told(*part) for part in parts]))
    if not np.isfinite(errors).all() or abs(crowding) > max(_CROWDING, _SURE * errors[2]):
        return None
    return Survey(seen, clutter, errors[:2], width * variance, spread)


@dataclass(frozen=True, eq=False)
class _Points:
    """Points, and the rows of their detections."""

    row: NDArray[np.int64]
    place: NDArray[np.float64]


def _gate(variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """(axes,) search radii along the axes."""
    return np.asarray(_REACH * np.sqrt(_WIDE * variance))


def _places(movie: Movie, variance: NDArray[np.float64]) -> tuple[_Points, _Points]:
    """Detections far from walls, and an equal number of other positions."""
    rng, (low, high) = np.random.default_rng(0), movie.bounds
    frames, margin = len(movie.frame_start) - 1, _INSIDE * np.sqrt(variance)

    def inside(place: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray(((place > low + margin) & (place < high - margin)).all(axis=1))

    def some(row: NDArray[np.int64]) -> NDArray[np.int64]:
        return row[:: max(1, len(row) // _ENOUGH)]

    row = np.nonzero((movie.frame >= 1) & (movie.frame < frames - 1))[0]
    here = some(row[inside(movie.position[row])])
    row = some(row)
    way = rng.normal(size=(len(row), movie.axes))
    way *= _AWAY * _gate(variance) / np.sqrt(np.square(way).sum(axis=1, keepdims=True))
    other = movie.position[row] + way
    other = np.where(inside(other)[:, None], other, movie.position[row] - way)
    kept = inside(other)
    return _Points(here, movie.position[here]), _Points(row[kept], other[kept])


def _crowd(movie: Movie, points: _Points, variance: NDArray[np.float64]) -> float:
    """Approximate number of detections of the next frame near each point."""
    some = slice(None, None, max(1, len(points.row) // _SOME))
    row, place = points.row[some], points.place[some]
    start, gate = np.searchsorted(row, movie.frame_start), tuple(_gate(variance).tolist())
    indptr, _ = near_points(movie, place, start, gate, 1)
    return float(indptr[-1]) / max(len(row), 1)


def _in_blocks(block: NDArray[np.int64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """(_BLOCKS, 5) number of points in each part of the volume, and sums of their counts."""
    rows = [np.ones(len(block)), *counts]
    return np.stack([np.bincount(block, row, _BLOCKS) for row in rows], axis=1)


def _counts(
    movie: Movie, points: _Points, variance: NDArray[np.float64], workers: int
) -> NDArray[np.float64]:
    """(4, R) weighted counts of detections around each point.

    One frame away by both Gaussians; by the wider one a frame before and after at once, as a product, and in
    the same frame.
    """
    from .survey_cpu import add_around

    start = np.searchsorted(points.row, movie.frame_start)

    def around(ahead: int) -> NDArray[np.float64]:
        found = np.empty((2, len(points.row)))
        near = near_points(movie, points.place, start, gate, ahead, workers=workers)
        add_around(*near, points.place, movie.position, 1 / (_WIDE * variance), found)
        return found

    gate = tuple(_gate(variance).tolist())
    after, before = around(1), around(-1)
    return np.stack([*(after + before) / 2, after[1] * before[1], around(0)[1]])


def _width(here: NDArray[np.float64], there: NDArray[np.float64], axes: int) -> float:
    """Step variance relative to the model, from sums of `_counts` at both kinds of points; else NaN."""
    narrow, wide = here[1:3] / here[0] - there[1:3] / there[0]
    if not min(narrow, wide) > 0:
        return np.nan
    ratio = (narrow / wide) ** (2 / axes)
    return float((1 - ratio) / (ratio / _NARROW - 1 / _WIDE))


def _told(
    here: NDArray[np.float64], there: NDArray[np.float64], width: float, correlation: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(3,) share detected again, share of clutter, and excess of detections in the same frame."""
    here, there = here[1:] / here[0], there[1:] / there[0]
    _, surplus, both, same = here - there
    seen = surplus * (1 + width / _WIDE) ** (len(correlation) / 2)
    both -= 2 * surplus * there[1]
    both *= np.sqrt(np.prod((1 + width / _WIDE) ** 2 - np.square(correlation * width / _WIDE)))
    return np.array([seen, 1 - seen**2 / max(both, 1e-9), (same - 1) / surplus])


def _error(left_out: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard errors from the jackknife."""
    return np.asarray(np.std(left_out, axis=0) * np.sqrt(len(left_out) - 1))
