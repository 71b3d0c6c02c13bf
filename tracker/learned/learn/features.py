"""M-steps of features: weights of clutter by logistic regression, kept axes by canonical correlations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...compute.tolerances import NEGLIGIBLE, PRIOR, ROUNDS, TINY
from ..inference.posterior import LinkPosterior
from ..model.features import FeatureModel, Features, Floats, KeptAxes
from ..model.motion import CORRELATION
from ..model.movie import Movie, summed

_SURE = 2.0
"""Error level: standard errors by which a correlation must exceed the largest of chance."""


def feature_step(movie: Movie, model: FeatureModel | None, posterior: LinkPosterior) -> FeatureModel | None:
    """The features after one M-step: weights of clutter first; once links are compared, what tracks keep."""
    features = movie.features
    if features is None:
        return None
    if model is None or not model.opened:
        last = np.zeros(features.clutter.shape[1]) if model is None else model.clutter
        return FeatureModel(_clutter(features.clutter, posterior.clutter, last))
    tables = tuple(_label_ratio(label, posterior)[0] for label in features.label.T)
    return replace(model, axes=_axes(movie, features, posterior), labels=tables)


def bits_of_clutter(odds: Floats | float) -> float:
    """Mean information of columns about whether a detection is clutter, in bits a detection."""
    if isinstance(odds, float) or not len(odds):
        return 0.0
    p = odds / (1 + odds)
    return float(_entropy(p.mean()) - _entropy(p).mean())


def _entropy(p: Floats) -> Floats:
    p = np.clip(p, TINY, 1 - TINY)
    return np.asarray(-p * np.log2(p) - (1 - p) * np.log2(1 - p))


def bits_of_links(
    movie: Movie, posterior: LinkPosterior, blocks: dict[str, slice], labels: tuple[str, ...]
) -> dict[str, float]:
    r"""Bits of each column about a link to the next frame: :math:`-\frac12 \log_2(1 - \rho^2)`.

    It is 0 where the correlation is within its error. blocks are the scores of each column.
    """
    features = movie.features
    assert features is not None
    result = {}
    for name, block in blocks.items():
        *_, rho, least = _correlated(features.value[:, block], features.seen[:, block], posterior)
        result[name] = float(-0.5 * np.log2(1 - np.minimum(rho[rho > least], 1 - NEGLIGIBLE) ** 2).sum())
    for name, label in zip(labels, features.label.T, strict=True):
        result[name] = _label_ratio(label, posterior)[1]
    return result


def _correlated(
    value: Floats, known: NDArray[np.bool_], posterior: LinkPosterior
) -> tuple[Floats, Floats, Floats, float]:
    """Covariance (M, M), turn (M, M) to canonical variates, correlations (M,), and the largest of chance.

    Links to the next frame count by their probability, detections by that of being particles, and pairs of
    scores where both are known.
    """
    seen, many, links = known.astype(np.float64), value.shape[1], posterior.candidates
    real = np.sqrt(np.clip(1 - posterior.clutter, 0, 1))[:, None]
    some = np.flatnonzero((links.lag == 1) & (posterior.probability > TINY))
    weight, tail, head = posterior.probability[some][:, None], links.tail[some], links.head[some]
    covariance = _product(real * value, real * value) / np.maximum(_product(real * seen, real * seen), 1)
    both = _product(weight * seen[tail], seen[head])
    across = _product(weight * value[tail], value[head]) / np.maximum(both, 1)
    size, axes = np.linalg.eigh(covariance)
    usable = size > NEGLIGIBLE
    half = axes[:, usable] / np.sqrt(size[usable])
    rho, turn = np.linalg.eigh(half.T @ (across + across.T) / 2 @ half)
    least = (_SURE + np.sqrt(2 * many)) / np.sqrt(max(float(both.max(initial=0.0)), 1.0))
    return covariance, half @ turn, rho, least


def _product(a: Floats, b: Floats) -> Floats:
    """Sum over rows of outer products; BLAS is not used, because its sums depend on the number of threads."""
    return np.asarray(np.einsum("ni,nj->ij", a, b))


def _axes(movie: Movie, features: Features, posterior: LinkPosterior) -> KeptAxes | None:
    """Axes whose correlation along links exceeds its error; of an AR(1) seen with noise.

    The correlation over one frame is kept x phi, over two frames kept x phi^2.
    """
    if features.value.shape[1] == 0:
        return None
    covariance, turn, rho, least = _correlated(features.value, features.seen, posterior)
    clear = np.flatnonzero(rho > least)
    if not len(clear):
        return None
    turn, once, count = turn[:, clear], posterior.candidates.lag == 1, len(movie)
    p, tail, head = posterior.probability * once, posterior.candidates.tail, posterior.candidates.head
    variate, _ = KeptAxes(covariance, turn, rho, rho).seen_in(features)
    variate[~features.seen.any(axis=1)] = 0.0
    both, *twice = (  # sums over pairs two frames apart
        float((summed(head, p * score[tail], count) * summed(tail, p * score[head], count)).sum())
        for score in (np.ones(count), *variate.T)
    )
    one, two = rho[clear], np.array(twice) / max(both, 1.0)
    phi = np.clip(two / one, one, CORRELATION[1])
    return KeptAxes(covariance, turn, np.minimum(one / phi, CORRELATION[1]), phi)


def _label_ratio(label: NDArray[np.int64], posterior: LinkPosterior) -> tuple[Floats | None, float]:
    """(L, L) likelihood ratio of the labels at both ends of a link, and its bits; None within its error.

    Labels count as particles have them: a kind of clutter is no evidence of links between clutter.
    """
    some, links = int(label.max(initial=-1)) + 1, posterior.candidates
    if some < 2:
        return None, 0.0
    a, b = label[links.tail], label[links.head]
    seen = (a >= 0) & (b >= 0)
    real = np.clip(1 - posterior.clutter, 0, 1)
    share = summed(label[label >= 0], real[label >= 0], some) + 1.0
    share /= share.sum()
    joint = summed(a[seen] * some + b[seen], posterior.probability[seen], some**2).reshape(some, some)
    count = float(joint.sum())
    joint = joint + joint.T + 2 * PRIOR * np.outer(share, share) * some
    joint /= joint.sum()
    side = joint.sum(axis=0)
    ratio = joint / np.outer(side, side)
    nats, freedom = float((joint * np.log(ratio)).sum()), (some - 1) ** 2
    if 2 * count * nats < freedom + (_SURE + np.sqrt(2)) * np.sqrt(2 * freedom):
        return None, 0.0
    return ratio, nats / float(np.log(2))


def _clutter(score: Floats, target: Floats, weight: Floats) -> Floats:
    """Weights of the logistic regression of clutter (N,) on scores (N, P), with pseudo-counts of 0.

    Scores whose correlation with clutter is within the largest error of chance have none.
    """
    many, apart = score.shape[1], target - target.mean()
    size = np.sqrt(np.square(score).sum(axis=0) * float(np.square(apart).sum()) / len(target))
    clear = np.abs(np.einsum("n,ni->i", apart, score)) > (_SURE + np.sqrt(2 * np.log(many + 1))) * size
    if not clear.any():
        return np.zeros(many)
    result, weight = np.zeros(many), weight[clear]
    one = np.column_stack([score[:, clear], np.ones(len(score))])
    share = (float(target.sum()) + 0.5) / (len(target) + 1)
    full = np.append(weight, np.log(share / (1 - share)))
    ridge = np.append(np.full(len(weight), PRIOR), 0.0)
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(one @ full, -15, 15)))
        slope = np.einsum("ni,n,nj->ij", one, p * (1 - p), one) + np.diag(ridge + TINY)
        gradient = np.einsum("n,ni->i", target - p, one) - ridge * full
        full = full + np.clip(np.linalg.solve(slope, gradient), -2, 2)
    result[clear] = full[:-1]
    return result
