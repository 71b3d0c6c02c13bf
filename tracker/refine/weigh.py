"""Weighing: one pass over a whole movie, with the beliefs about each particle.

The weight of a pair is the log likelihood ratio of a common track against an end and a start, given the past
of one detection and the future of the other. All pairs of the movie, including gap pairs, form one assignment
problem, which is solved exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._threads import in_threads
from ..assignment.assignment import Assignment
from ..assignment.gains import best_pairs
from ..motion import Motion
from .candidates import Pairs, kept_above, places_of
from .linking import Linking, LinkModel
from .movie import Movie
from .sweep import Belief, Beliefs, swept

_NEW = 0.5
"""Factor for the trust of a new link."""
_ROUNDS = 4
"""Number of rounds of belief propagation after the first. More rounds change a probability by .0005 on
average, or by .014 for particles without persistence of which many could be exchanged."""
_MESSAGE = 1e-3
"""Change of messages at which the iteration stops."""
_HOPELESS = -10.0
"""Log odds below which a pair is ignored."""
_WORTH_A_THREAD = 50_000


@dataclass(frozen=True, eq=False)
class Weighed:
    """Pairs of detections and their weights.

    Parameters
    ----------
    pairs : Pairs
    gain, distance2 : (P,) float64 arrays
        Log odds of each pair, in nats, and its squared Mahalanobis distance.
    size : (P,) int8 array
        Dimensions of that distance.
    """

    pairs: Pairs
    gain: NDArray[np.float64]
    distance2: NDArray[np.float64]
    size: NDArray[np.int8]

    def where(self, kept: NDArray[np.bool_]) -> Weighed:
        """The pairs selected by a mask (P,)."""
        return Weighed(self.pairs.where(kept), self.gain[kept], self.distance2[kept], self.size[kept])


def link_pass(
    movie: Movie,
    pairs: Pairs,
    model: LinkModel,
    known: Linking,
    shift: NDArray[np.float64],
    *,
    caution: float = _NEW,
    solver: str = "bid_and_augment",
    workers: int = 1,
) -> Linking:
    """Link the movie once, with beliefs along the links `known`.

    Parameters
    ----------
    movie : Movie
    pairs : Pairs
    model : LinkModel
    known : Linking
        Links of the previous pass; each is weighted by its trust.
    shift : (N, axes) float64 array
        Predicted displacement per frame of each detection, such as a drift.
    caution : float
        Factor for the trust of a new link. It must be below 1, otherwise two neighbours may be exchanged in
        every pass forever; but the first passes converge faster with 1.
    solver : str
    workers : int
        Threads; they do not change the result.
    """
    trust = known.trust * np.where(known.changed, caution, 1.0)
    beliefs = chained(movie, model, known, trust, shift, workers)
    found = weighed(movie, pairs, model, beliefs, shift, workers=workers)
    return solved(found, known, solver, workers=workers)


def weighed_softly(
    movie: Movie, pairs: Pairs, model: LinkModel, shift: NDArray[np.float64], *, workers: int = 1
) -> Weighed:
    """Weigh the pairs with beliefs from all probable links (`swept`); no earlier links are needed.

    Parameters
    ----------
    pairs : Pairs
        Pairs as returned by `with_gaps`.
    movie, model, shift, workers
        As in `link_pass`.

    Returns
    -------
    Weighed
        The pairs that are possible.
    """
    found = swept(movie, pairs, model, shift)
    return weighed(movie, found.pairs, model, found.beliefs, shift, workers=workers)


def still_links(
    movie: Movie, near: Pairs, model: LinkModel, step: NDArray[np.float64], *, solver: str = "bid_and_augment"
) -> NDArray[np.int64]:
    """(N,) follower of each detection in the next frame, -1 for none, if no past is known.

    The result of `link_pass` without known links, but much faster: only the links are found.

    Parameters
    ----------
    near : Pairs
    model : LinkModel
        The model, of which rates and tails are used.
    step : (axes,) float64 array
        Root mean square step along each axis.
    movie, solver
        As in `link_pass`.
    """
    count, gain = len(movie.frame), _gain_of_still(movie, near, model, step)
    indptr, col, _, gained = kept_above(near.indptr, near.indices, gain, 0.0)
    answer, _ = best_pairs(indptr, col, gained, (count, count), solver)
    return answer.col_of_row.astype(np.int64)


def possible(movie: Movie, near: Pairs, model: LinkModel) -> Pairs:
    """The pairs with a useful gain from their distances alone, for a model without persistence.

    Parameters
    ----------
    movie, near, model
        As in `still_links`.
    """
    gain = _gain_of_still(movie, near, model, np.sqrt(model.motion.step_variance(1)))
    indptr, indices, *_ = kept_above(near.indptr, near.indices, gain, _HOPELESS)
    return Pairs(indptr, indices, near.log_density)


def _gain_of_still(
    movie: Movie, near: Pairs, model: LinkModel, step: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(P,) log odds of the pairs from their distances."""
    from . import weigh_cpu as kernels

    gain = np.empty(len(near.indices))
    gain_of_col = np.log(max(model.follow[0], 1e-12) / (model.end * model.start)) - near.log_density
    kernels.weigh_still(
        near.indptr, near.indices, movie.frame, movie.position, movie.reaches(model.motion), np.square(step),
        gain_of_col, model.freedom, model.scale, gain,
    )  # fmt: skip
    return gain


def weighed(
    movie: Movie,
    pairs: Pairs,
    model: LinkModel,
    beliefs: Beliefs,
    shift: NDArray[np.float64],
    *,
    workers: int = 1,
) -> Weighed:
    """Weigh the pairs with the beliefs about both ends.

    Parameters
    ----------
    beliefs : Beliefs
    movie, pairs, model, shift, workers
        As in `link_pass`.
    """
    from . import weigh_cpu as kernels

    motion, axes = model.motion.floored(), movie.axes
    table = movie.transitions(motion, len(model.follow), shift)
    place, weight, constant = futures(movie, beliefs, motion, workers)
    before, after = beliefs.alone
    gain_of_row = model.freedom_to_link(before, model.end)
    gain_of_col = model.freedom_to_link(after, model.start) - np.log(model.start) - pairs.log_density
    distance2, gain = np.empty(len(pairs.indices)), np.empty(len(pairs.indices))

    def weigh(run: tuple[int, int]) -> None:
        kernels.weigh_pairs(
            *run, pairs.indptr, pairs.indices, movie.frame, *beliefs.past, shift, place, weight, constant,
            table, model.gain_of_gap(), gain_of_row, gain_of_col, model.freedom, model.scale, distance2, gain,
        )  # fmt: skip

    in_runs(weigh, pairs.indptr, workers)
    size = (axes * np.where(weight[:, 0, 2] > 0, 2, 1)).astype(np.int8)
    return Weighed(pairs, gain, distance2, size[pairs.indices])


def futures(
    movie: Movie, beliefs: Beliefs, motion: Motion, workers: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Likelihood of the state at each detection, from it and its future, by the kernel `messages`.

    Parameters
    ----------
    motion : Motion
        Floored.
    movie, beliefs, workers
        As in `weighed`.

    Returns
    -------
    place : (N, axes, 2) float64 array
    weight : (N, axes, 3) float64 array
    constant : (N,) float64 array
    """
    from .weigh_cpu import messages

    count, axes = movie.position.shape
    place, weight, constant = np.empty((count, axes, 2)), np.empty((count, axes, 3)), np.empty(count)
    (mean, cov), followed = beliefs.future, beliefs.followed
    speed2, noise2 = np.square(motion.speed), np.square(motion.noise)

    def tell(run: tuple[int, int]) -> None:
        rows = slice(*run)
        messages(
            movie.position[rows], followed[rows], mean[rows], cov[rows], speed2, noise2, place[rows],
            weight[rows], constant[rows],
        )  # fmt: skip

    in_runs(tell, np.arange(count + 1), workers)
    return place, weight, constant


def in_runs(weigh: Callable[[tuple[int, int]], None], indptr: NDArray[np.int64], workers: int) -> None:
    """Weigh the pairs of rows in runs, with several threads if there are many.

    Parameters
    ----------
    weigh : callable
        Called with (first, last).
    indptr : (N + 1,) int64 array
        Start of the pairs of each row.
    workers : int
    """
    count, many = len(indptr) - 1, int(indptr[-1])
    parts = workers if many > _WORTH_A_THREAD else 1
    cuts = np.searchsorted(indptr, np.linspace(0, many, parts + 1)[1:-1]).tolist()
    list(in_threads(weigh, zip([0, *cuts], [*cuts, count], strict=True), parts))


def chained(
    movie: Movie,
    model: LinkModel,
    known: Linking,
    trust: NDArray[np.float64],
    shift: NDArray[np.float64],
    workers: int,
) -> Beliefs:
    """Kalman filter along the known links from both sides, with each link weighted by its trust.

    Parameters
    ----------
    known : Linking
        The links, and the probabilities of pairs.
    trust : (N,) float64 array
        Trust of the link from each detection, from 0 to 1.
    movie, model, shift, workers
        As in `link_pass`.
    """
    from . import weigh_cpu as kernels

    motion, (count, axes) = model.motion.floored(), movie.position.shape
    follower = known.follower if model.two_sided else np.full(count, -1, dtype=np.int64)
    ahead = movie.frame[known.follower] - movie.frame
    table = movie.transitions(motion, int(ahead[known.follower >= 0].max(initial=1)), shift)

    def filtered(way: tuple[NDArray[np.int64], bool]) -> Belief:
        neighbour, backward = way
        mean, cov = np.empty((count, axes, 2)), np.empty((count, axes, 3))
        kernels.filter_tracks(
            movie.position, movie.frame, neighbour, shift, trust, table, np.square(motion.speed),
            np.square(motion.noise), backward, mean, cov,
        )  # fmt: skip
        return mean, cov

    past, future = in_threads(filtered, [(known.before, False), (follower, True)], workers)
    return Beliefs(past, future, follower >= 0, _alone(movie, model, known))


def _alone(movie: Movie, model: LinkModel, known: Linking) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probabilities that each detection is clutter, from the links in its past and in its future."""
    found, frame = [], movie.frame
    for ends, unlinked, edge in ((known.col, model.start, frame[:1]), (known.row, model.end, frame[-1:])):
        new = np.maximum(1 - np.bincount(ends, known.probability, len(frame)), 0)
        blind = (frame == edge) if len(ends) else True
        found.append(np.where(blind, model.clutter, model.strange(new, unlinked)))
    before, after = found
    return before, after if model.two_sided else np.full(len(frame), model.clutter)


def solved(found: Weighed, known: Linking, solver: str = "bid_and_augment", *, workers: int = 1) -> Linking:
    """The best set of links, and the probability of each.

    Parameters
    ----------
    found : Weighed
    known : Linking
        Links of the previous pass, used to mark changes.
    solver : str
    workers : int
        Threads; they do not change the result.
    """
    from . import weigh_cpu as kernels

    pairs, gain, count = found.pairs, found.gain, len(known.follower)
    probability = np.empty(len(gain))
    # Only what beats an end and a start can be in the optimum: this cut is exact.
    indptr, col, useful, useful_gain = kept_above(pairs.indptr, pairs.indices, gain, 0.0)

    def best() -> tuple[Assignment, float]:
        return best_pairs(indptr, col, useful_gain, (count, count), solver)

    def probable() -> None:
        kernels.pair_probabilities(
            pairs.indptr.view(np.uint64), pairs.indices.view(np.uint32), count, gain, _ROUNDS, _MESSAGE,
            probability,
        )  # fmt: skip

    both: tuple[Callable[[], Any], ...] = best, probable
    parts = workers if len(gain) > _WORTH_A_THREAD else 1
    (answer, unit), _ = in_threads(lambda one: one(), both, parts)
    follower = answer.col_of_row.astype(np.int64)
    trust, gained = np.zeros(count), np.zeros(count)
    linked, taken = places_of(indptr, col, follower)
    trust[linked], gained[linked] = probability[useful[taken]], useful_gain[taken]
    return Linking(
        follower, answer.row_of_col.astype(np.int64), trust, gained, answer.margin * unit,
        pairs.row, pairs.indices, gain, probability, found.distance2, found.size,
        follower != known.follower, float(answer.gap * unit),
    )  # fmt: skip
