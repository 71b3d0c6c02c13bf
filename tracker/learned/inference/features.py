"""Likelihood ratios of links by features: from the past, from the future, and from both."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...compute.tolerances import LEAST
from ..model import Model
from ..model.features import Features, KeptAxes, clutter_odds
from ..model.movie import Movie
from .blocks import in_blocks
from .candidates import Candidates
from .features_cpu import feature_filter, feature_ratio

_OUTLIER = 0.02
"""Prior: share of links whose features are unrelated, as where a detection is of two particles."""


def odds_of_clutter(movie: Movie, model: Model) -> NDArray[np.float64] | float:
    """Odds that a detection is clutter: one for all, or (N,) if columns or pins say so."""
    odds = clutter_odds(movie.features, model.features, model.association.clutter)
    if movie.pins is None:
        return odds
    stated = np.broadcast_to(odds, len(movie)).copy()
    stated[movie.pins.pairs.ravel()] = 0
    stated[movie.pins.clutter] = 1 / LEAST  # certain, with finite weights
    return stated


def feature_ratios(
    movie: Movie, model: Model, candidates: Candidates, incoming_weight: NDArray[np.float32] | None
) -> NDArray[np.float64] | None:
    """(3, E) likelihood ratios by features: from the past, the future, and both; None if all are 1.

    Features count by the probability that both ends are particles. incoming_weight (2, E) are the
    weights of links where they come in, forward and backward, in the sweep before; None before the first.
    """
    features, learned = movie.features, model.features
    if features is None or learned is None or not learned.links():
        return None
    tail, head, ratio = candidates.tail, candidates.head, np.ones((3, candidates.size))
    if learned.axes is not None:
        _by_axes(features, learned.axes, candidates, incoming_weight, ratio)
        ratio = _OUTLIER + (1 - _OUTLIER) * ratio
    for table, label in zip(learned.labels, features.label.T, strict=False):
        if table is not None:
            a, b = label[tail], label[head]
            ratio *= np.where((a < 0) | (b < 0), 1.0, table[a, b])
    odds = odds_of_clutter(movie, model)
    real = np.broadcast_to(1 / (1 + odds), len(movie))
    return np.asarray(1 + (ratio - 1) * (real[tail] * real[head]))


def _by_axes(
    features: Features, axes: KeptAxes, candidates: Candidates, incoming_weight: NDArray[np.float32] | None,
    ratio: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write the ratios (3, E) by numbers that tracks keep."""
    (tail, head, lag, *_), (value, error) = candidates, axes.seen_in(features)
    if incoming_weight is None or incoming_weight.shape[1] != candidates.size:
        incoming_weight = np.zeros((2, candidates.size), np.float32)
    incoming_weight = np.ascontiguousarray(incoming_weight)  # whose rows are of one type
    past, future = np.zeros((2, *value.shape, 2))
    for way, segments, far, state in ((0, candidates[5:], tail, past), (1, candidates[3:5], head, future)):
        order, links = (
            np.arange(len(value))[:: 1 - 2 * way].copy(),
            (*segments, far, lag, incoming_weight[way]),
        )
        feature_filter(order, *links, value, error, axes.kept, axes.correlation, state)

    def compare(block: tuple[int, int]) -> None:
        feature_ratio(
            *block, (tail, head), lag, value, error, axes.kept, axes.correlation, past, future, ratio
        )

    in_blocks(compare, candidates.size, ratio)
