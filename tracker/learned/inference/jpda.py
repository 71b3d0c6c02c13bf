r"""JPDA: one sweep, which is one E-step.

1. The forward and the backward filter send messages along candidate links (`filter_cpu`).
2. Both sides of a link give its likelihood ratio G (`smoother_cpu`).
3. Fractional belief propagation over the whole movie gives the marginals (`propagation_cpu`):

.. math:: R_f = n_i^{1/\omega} + \sum_{f' \ne f} G R^{1-\omega} / C^\omega, \quad
          odds_f = G_f / (R_f C_f)^\omega

with C likewise over columns. The weight of no link, n, is that of a death or birth, d, and of clutter; a
filter, which follows a particle, takes the share :math:`d n^{1/\omega - 1}` of it. The exponent 1 is belief
propagation as Williams and Lau (2014) have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import array_module, kernels
from ...compute.threads import in_threads, threads_for
from ...compute.tolerances import LEAST, ROUNDS
from ..model import Model
from ..model.advection import displaced
from ..model.movie import Movie
from .blocks import BLOCK, blocks, in_blocks
from .candidates import Candidates
from .features import feature_ratios, odds_of_clutter
from .posterior import Displacements, LinkPosterior
from .records import Direction, Messages, Moments, Places, Steps

Ends = tuple[NDArray[np.float64], NDArray[np.float64]] | NDArray[np.float64]
"""Weights (N,) of no successor and of no predecessor."""
OMEGA = 0.75, 0.875
"""Weight of the row and column entropies: n equivalent tails and heads have n! matchings, which is right with
.75 for two of them, .843 for four, .918 for ten. The first holds where links are sure, the second where
p (1 - p) is a quarter. With 1 the evidence of a crowd is not too large: EM moves towards it there."""


def updated(
    movie: Movie, model: Model, posterior: LinkPosterior, *, omega: float = 1.0,
    unlinked: Ends | None = None, with_moments: bool = True,
) -> LinkPosterior:  # fmt: skip
    """The posterior after one more sweep.

    Parameters
    ----------
    movie : Movie
    model : Model
    posterior : LinkPosterior
        Provides the candidates and the initial competing weights.
    omega : float
        Exponent of competing weights. Only with 1 is there evidence.
    unlinked : two (N,) float64 arrays, optional
        Weights of no successor and of no predecessor, if they are not the model's: with divisions.
    with_moments : bool
        Whether the M-steps need them; on the host alone.
    """
    shifts = _displaced(movie, model, posterior)
    competing = posterior.competing.copy()  # in the order of rows, as kernels have it
    posterior = replace(posterior, displaced=shifts, competing=competing)
    ends = death, birth = _ends(movie, model, unlinked)
    past, future, ratio, moments, incoming_weight = _smoothed(
        movie, model, posterior, shifts.away, omega, ends, with_moments
    )
    candidates, odds = posterior.candidates, odds_of_clutter(movie, model)
    row_none, column_none = death + odds * past.fresh / birth, birth + odds * future.fresh / death
    propagate(candidates, ratio, (row_none, column_none), competing, omega=omega)
    probability, evidence = marginals(ratio, competing, omega), -np.inf
    if movie.pins is not None:  # of rows whose successor is stated no other link is a candidate
        probability[movie.pins.row_closed[candidates.tail]] = 1.0
    if omega == 1:
        share = model.association.clutter if isinstance(odds, float) else odds / (1 + odds)
        odds_of_links = ratio / (competing[0] * competing[1])
        weights = row_none + candidates.at_tails(odds_of_links * competing[0]), past.total
        evidence = log_evidence(odds_of_links, weights, birth, share)
    free = np.maximum(1 - candidates.at_tails(probability), 0)  # no successor: death or clutter
    clutter = free * odds * past.fresh / birth / row_none
    return replace(
        posterior, probability=probability, ratio=ratio, clutter=clutter, death=np.maximum(free - clutter, 0),
        birth=np.maximum(1 - candidates.at_heads(probability) - clutter, 0), birth_forward=past.fresh,
        clutter_weight=np.stack([row_none - death, column_none - birth]), log_evidence=evidence,
        change=float(np.abs(probability - posterior.probability).sum()) / max(len(movie), 1),
        moments=moments, sweeps=posterior.sweeps + 1, omega=omega, incoming_weight=incoming_weight,
    )  # fmt: skip


def _displaced(movie: Movie, model: Model, posterior: LinkPosterior) -> Displacements:
    """Those of the last sweep while the flow is the same, else new ones."""
    known, flow = posterior.displaced, model.local.flow
    if known is not None and known.flow is flow:
        return known
    return Displacements(flow, displacements(movie, flow, posterior.candidates))


def _ends(
    movie: Movie, model: Model, unlinked: Ends | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights of no successor and of no predecessor: the given ones or those of the model, under pins."""
    death, birth = no_link(movie, model) if unlinked is None else unlinked
    if movie.pins is not None:
        death, birth = death.copy(), birth.copy()
        death[movie.pins.forced[:, 0]] = birth[movie.pins.forced[:, 1]] = LEAST * LEAST  # all but never
    return death, birth


def converged(
    movie: Movie, model: Model, posterior: LinkPosterior, *, sweeps: int = ROUNDS, still: float = 0.0,
) -> LinkPosterior:  # fmt: skip
    """The posterior under a model that stays as it is, with the exponent of results, `exponent`."""
    for _ in range(sweeps):
        omega = exponent(posterior.probability)
        posterior = updated(movie, model, posterior, omega=omega, with_moments=False)
        if posterior.change < still:
            break
    return posterior


class Smoothed(NamedTuple):
    """Messages of both filters, ratios (E,), moments, and weights (2, E) by which features are followed."""

    past: Messages
    future: Messages
    ratio: NDArray[np.float64]
    moments: Moments | None
    incoming_weight: NDArray[np.float32] | None


def _smoothed(
    movie: Movie, model: Model, posterior: LinkPosterior, away: NDArray[np.float32], omega: float,
    unlinked: Ends, with_moments: bool,
) -> Smoothed:  # fmt: skip
    """What both directions of time say of links, under a model; away (E, D) are the displacements."""
    candidates, steps = posterior.candidates, steps_of(movie, model)
    on = kernels("outbid.learned.inference.smoother", posterior.competing)
    places, weights = _places(movie, model, posterior, away, omega)
    ends, begins = (
        each * raised(each + of_clutter, 1 / omega - 1)
        for each, of_clutter in zip(unlinked, posterior.clutter_weight, strict=True)
    )
    behind = _direction(candidates, 1, begins, weights[0])
    ahead = _direction(candidates, -1, ends, weights[1])
    three = [places] * 3  # priors of the forward and the backward filter, and of the smoother
    if (by_features := feature_ratios(movie, model, candidates, posterior.incoming_weight)) is not None:
        three = [places._replace(prior=(places.prior * each).astype(np.float32)) for each in by_features]
    past, future = messages = _filtered(movie, steps, three, (behind, ahead))
    factor, ratio = np.empty_like(future.likelihood), array_module(places.lag).empty(candidates.size)
    moments = _moments(candidates.size if with_moments else 0, steps, ratio)

    def observe(block: tuple[int, int]) -> None:
        on.future_as_observations(*block, steps, future, factor)

    def smooth(block: tuple[int, int]) -> None:
        on.smooth_rows(*block, steps, three[2], behind, ahead, past, future, factor, ratio, moments)

    in_blocks(observe, candidates.size, ratio)
    in_blocks(smooth, len(movie), ratio)
    incoming = None if by_features is None else np.stack([each.weight.sum(axis=1) for each in messages])
    return Smoothed(past, future, ratio, moments if with_moments else None, incoming)


def propagate(
    candidates: Candidates, ratio: NDArray[np.float64],
    unlinked: tuple[NDArray[np.float64], NDArray[np.float64]],
    competing: NDArray[np.float64], *, omega: float = 1.0, rounds: int = ROUNDS,
) -> None:  # fmt: skip
    """Fractional belief propagation for the matching of all tails to all heads.

    Parameters
    ----------
    candidates : Candidates
    ratio : (E,) float64 array
        Likelihood ratios.
    unlinked : (N,) float64 arrays
        Weights of no successor and of no predecessor.
    competing : (2, E) float64 array
        Initial values; overwritten by the weights of the competitors in rows and columns.
    omega : float
        Exponent of competing weights.
    rounds : int
        Largest number of these.
    """
    R, C = competing
    moved = array_module(competing).ones((2, candidates.size), np.uint8)
    by_row = _half(candidates[3:5], unlinked[0], ratio, (R, C), omega, moved)
    by_column = _half(candidates[5:], unlinked[1], ratio, (C, R), omega, moved[::-1])
    for _ in range(rounds):
        in_blocks(*by_row, ratio)
        if not sum(in_blocks(*by_column, ratio)):
            break


def _half(
    segments: tuple, unlinked: NDArray[np.float64], ratio: NDArray[np.float64], competing: tuple,
    omega: float, moved: NDArray[np.uint8],
) -> tuple[Callable[[tuple[int, int]], int], int]:  # fmt: skip
    """What passes over blocks of contested rows, or columns, and their number; weights: own, of others."""
    n, on = raised(unlinked, 1 / omega), kernels("outbid.learned.inference.propagation", ratio)
    contested = on.begin(*segments, n, competing[0], moved[0])
    arrays = (contested, *segments, ratio, n, *competing, omega, *moved)
    return lambda block: on.compete(*block, *arrays), len(contested)


def raised(values: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Powers of positive values (N,)."""
    powers: NDArray[np.float64] = kernels("outbid.learned.inference.powers", values).raised(values, exponent)
    return powers


def marginals(
    ratio: NDArray[np.float64], competing: NDArray[np.float64], omega: float = 1.0
) -> NDArray[np.float64]:
    """(E,) link probabilities from likelihood ratios (E,) and competing weights (2, E)."""
    return ratio / (ratio + raised(competing[0] * competing[1], omega))


def exponent(probability: NDArray[np.float64], most: float = OMEGA[1]) -> float:
    """The exponent of competing weights, from the probabilities (E,) of links in the sweep before.

    It grows with the expected share of wrong links, each of which is right with its own probability.
    """
    wrong = float((probability * (1 - probability)).sum() / max(probability.sum(), 1.0))
    return OMEGA[0] + (most - OMEGA[0]) * min(4 * wrong, 1.0)


def log_evidence(
    odds: NDArray[np.float64], weights: tuple[NDArray[np.float64], NDArray[np.float64]],
    birth: NDArray[np.float64], clutter: NDArray[np.float64] | float,
) -> float:  # fmt: skip
    r"""Log likelihood of a movie relative to 'no two detections are linked', from a sweep with exponent 1.

    .. math:: \sum (\log row + \log column) - \sum \log(1 + odds) + \sum (\log(1 - c) + (1 - c)(1 - q'))

    This is the Bethe approximation, whose columns are those of the filter of the past. Tracks that begin and
    clutter, of probability c, are Poisson processes; the last term is for their expected numbers. Without it
    the model would win under which most tracks begin anew. Where columns give each detection a probability
    of clutter, log(1 - c) is also the density of its columns among particles, up to that among all, and the
    filter of the past holds the densities of features given those before them: so evidence compares what
    explains features as clutter with what explains them as tracks.
    """
    both_ways = sum(float(np.log(each).sum()) for each in weights)
    apart = np.log1p(-clutter) + (1 - clutter) * (1 - birth)
    return both_ways - float(np.log1p(odds).sum()) + float(apart.sum())


def steps_of(movie: Movie, model: Model) -> Steps:
    """The motion model as kernels take it: of one type, however it was made."""
    motion = replace(model.motion, step_scale=np.repeat(model.motion.step_scale, movie.intervals))
    return Steps(*(np.array(getattr(motion, name), np.float64, order="C") for name in Steps._fields))


def displacements(movie: Movie, flow: NDArray[np.float64], candidates: Candidates) -> NDArray[np.float32]:
    """(E, D) the places of tails, moved by the flow, from their heads."""
    tail, head, lag, *_ = candidates
    away = movie.position[tail] - movie.position[head]
    away += displaced(movie, flow, (tail, lag))
    return away.astype(np.float32)


def _places(
    movie: Movie, model: Model, posterior: LinkPosterior, away: NDArray[np.float32], omega: float
) -> tuple[Places, NDArray[np.float32]]:
    """The movie, and weights (2, E) of links where they come in."""
    around, (tail, head, lag, *_), competing = model.local, posterior.candidates, posterior.competing
    made = array_module(tail).empty((4, len(tail)), np.float32)
    on = kernels("outbid.learned.inference.filter", tail)
    # A movie in reverse is a view with strides, for which the kernel would be compiled once more.
    plain = array_module(tail).ascontiguousarray
    survival, density = (plain(around.survival), plain(around.survival_back)), plain(movie.density)

    def prepare(block: tuple[int, int]) -> None:
        ends, delay = (tail, head, lag), model.association.delay
        on.prepare_links(*block, ends, delay, survival, density, competing, omega, *made)

    in_blocks(prepare, len(tail), tail)
    between = lag if movie.time is None else (movie.when[head] - movie.when[tail]).astype(np.int32)
    return Places(when=movie.when, away=away, prior=made[0], exclusion=made[1], lag=between), made[2:]


def no_link(movie: Movie, model: Model) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(N,) probabilities of no successor, and of no predecessor: none within the longest lag or the movie."""
    rates, around = model.association, model.local
    death, birth = (
        np.maximum(1 - survival * _within(delay, survival)[np.minimum(frames, len(delay))], LEAST)
        for delay, frames, survival in (
            (rates.delay, movie.left, around.survival), (rates.delay_back, movie.frame, around.survival_back),
        )
    )  # fmt: skip
    return death, birth


def _within(delay: NDArray[np.float64], like: NDArray) -> NDArray[np.float64]:
    """(L + 1,) probabilities of a lag of at most 0, 1, …, L, on the device of an array."""
    return array_module(like).asarray(np.concatenate([[0.0], np.cumsum(delay)]))


def _direction(
    candidates: Candidates, way: int, n: NDArray[np.float64], weights: NDArray[np.float32]
) -> Direction:
    """The forward (1) or the backward (-1) direction; weights of no link (N,), and of links that come in."""
    rows = (candidates.row_start, candidates.row_link)
    columns = (candidates.column_start, candidates.column_link)
    (in_start, in_link), (out_start, out_link) = (columns, rows) if way > 0 else (rows, columns)
    near, far = candidates[:2][::way]
    return Direction(
        in_start=in_start, in_link=in_link, out_start=out_start, out_link=out_link, far=far, near=near,
        way=way, n=n, competing=weights, most=int(np.diff(in_start).max()) if len(n) else 0,
    )  # fmt: skip


def _filtered(
    movie: Movie, steps: Steps, places: list[Places], directions: tuple[Direction, Direction]
) -> list[Messages]:
    """Messages of both filters: frames in order; rows of a frame and both directions in parallel."""
    forward = np.stack([movie.frame_start[:-1], movie.frame_start[1:]], axis=1)
    spans = {1: forward, -1: np.ascontiguousarray(forward[::-1])}
    each = [_messages(len(places[0].lag), len(movie), steps, side.n) for side in directions]
    of = {1: places[0], -1: places[1]}
    sides = list(zip(directions, each, strict=True))
    filter_rows = kernels("outbid.learned.inference.filter", directions[0].n).filter_rows

    def sweep(job: tuple[Direction, Messages, NDArray[np.int64]]) -> None:
        side, messages, rows = job
        filter_rows(rows, steps, of[side.way], side, messages)

    workers = threads_for(directions[0].n)
    if workers <= len(sides) or len(movie) < workers * BLOCK * movie.frames:
        whole = [(*side, spans[side[0].way]) for side in sides]
        list(in_threads(sweep, whole, min(workers, len(sides)) if len(movie) > BLOCK else 1))
        return each
    for f in range(movie.frames):
        ends = [(int(spans[side.way][f, 0]), int(spans[side.way][f, 1])) for side in directions]
        cut = [(side, blocks(*end, workers)) for side, end in zip(sides, ends, strict=True)]
        jobs = [(*side, np.array([block])) for side, parts in cut for block in parts]
        list(in_threads(sweep, jobs, workers))
    return each


def _messages(links: int, detections: int, steps: Steps, like: NDArray) -> Messages:
    (classes, axes), xp = steps.variance.shape, array_module(like)
    return Messages(
        likelihood=xp.empty((links, classes)), weight=xp.empty((links, classes), np.float32),
        state=xp.empty((links, classes, axes, 5), np.float32), fresh=xp.empty(detections),
        total=xp.empty(detections),
    )  # fmt: skip


def _moments(links: int, steps: Steps, like: NDArray) -> Moments:
    (classes, axes), xp = steps.variance.shape, array_module(like)
    shapes = (links, classes, 2), (links, classes, axes, 4), (links, axes)
    return Moments(*(xp.empty(shape, np.float32) for shape in shapes))
