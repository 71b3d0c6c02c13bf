"""Features: what is known of each detection beside its position.

A column of numbers counts by its ranks, as normal scores, so a monotone transform changes nothing. Along a
track what is kept of a score is a stationary autoregression seen with noise, as steps are; between tracks it
is independent. Odds of clutter are log-linear in columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import ROW, Arrays
from ...compute.tolerances import NEGLIGIBLE, ROUNDS, SURE, TINY

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Features(Arrays):
    """Columns of the detections of a movie."""

    value: Floats = field(metadata=ROW)
    """(N, M) Scores of mean 0 and variance 1 that tracks may keep; 0 where they are missing."""
    seen: NDArray[np.bool_] = field(metadata=ROW)  # (N, M) which are known
    clutter: Floats = field(metadata=ROW)
    """(N, P) Scores that may distinguish clutter from particles; 0 where they are missing."""
    label: NDArray[np.int64] = field(metadata=ROW)  # (N, Q) labels, from 0 in each column; -1 is unknown


@dataclass(frozen=True, eq=False)
class KeptAxes:
    """What tracks keep of scores: canonical variates of the two ends of a link, seen with noise."""

    covariance: Floats  # (M, M) covariance of scores, by which missing ones are predicted
    turn: Floats  # (M, K) scores times this are variates of variance 1
    kept: Floats  # (K,) share of the variance of each that tracks keep
    correlation: Floats  # (K,) of what is kept from one frame to the next

    def seen_in(self, features: Features) -> tuple[Floats, Floats]:
        r"""(N, K) variates, and the variance of their error where scores are missing.

        If what is seen predicts a variate up to a variance q, the prediction over 1 - q is the variate plus
        an error of variance q / (1 - q): infinite where nothing is seen.
        """
        value, error = features.value @ self.turn, np.zeros((len(features.value), len(self.kept)))
        holes = np.flatnonzero(~features.seen.all(axis=1))
        if not len(holes):
            return value, error
        masks, which = np.unique(features.seen[holes], axis=0, return_inverse=True)
        for k, mask in enumerate(masks):
            rows = holes[which.ravel() == k]
            to = np.linalg.pinv(self.covariance[np.ix_(mask, mask)]) @ self.covariance[mask] @ self.turn
            explained = np.clip(np.einsum("mk,mk->k", to, self.covariance[mask] @ self.turn), TINY, 1.0)
            value[rows] = features.value[rows][:, mask] @ to / explained
            error[rows] = (1 - explained) / explained
        return value, error


@dataclass(frozen=True, eq=False)
class FeatureModel:
    """What is learned of features."""

    clutter: Floats = field(default_factory=lambda: np.empty(0))
    """(P,) Weights of the log odds of clutter; their constant follows from the share of clutter."""
    axes: KeptAxes | None = None  # until links are compared by features, and if tracks keep none
    labels: tuple[Floats | None, ...] = ()
    """(L, L) Likelihood ratios of the labels at the two ends of a link, for each column; None if it is 1."""
    opened: bool = False  # links are compared by features; the weights of clutter stay as they are

    def links(self) -> bool:
        """Whether features change the weight of any link."""
        return self.axes is not None or any(table is not None for table in self.labels)

    def parameters(self) -> int:
        """Number of parameters of links, for the criterion by which models are compared."""
        of_axes = 0 if self.axes is None else (len(self.axes.turn) + 1) * len(self.axes.kept)
        return of_axes + sum((len(table) - 1) ** 2 for table in self.labels if table is not None)


def clutter_odds(features: Features | None, model: FeatureModel | None, share: float) -> Floats | float:
    """Odds that detections are clutter, (N,) if columns say so, whose mean probability is `share`."""
    if features is None or model is None or not model.clutter.any():
        return share / (1 - share)
    lean, constant = features.clutter @ model.clutter, np.log(share / (1 - share))
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(lean + constant, -SURE, SURE)))
        slope = max(float((p * (1 - p)).mean()), NEGLIGIBLE * share * (1 - share))
        constant += np.clip((share - float(p.mean())) / slope, -2.0, 2.0)
    return np.asarray(np.exp(np.clip(lean + constant, -SURE, SURE)))
