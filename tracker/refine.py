"""Refinement: a whole movie is linked again and again, with what is known of every particle.

Every pair of detections is weighed by the likelihood of one track against an end and a start, given the past
of the one and the future of the other: first by what all probable links tell of both (`sweep`), then by the
Kalman filter along the links of the pass before, forward and backward in time. All pairs of the movie, those
over gaps included, make one assignment problem, solved exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ._arrays import in_threads
from .assign.gains import best_pairs
from .candidates import Pairs, kept_above, over_gaps, pairs_of, places_of
from .detections import Detections
from .link import Links
from .linking import Linking, LinkModel
from .movie import Movie, movie_of
from .sweep import Belief, Beliefs, Swept, swept

_NEW = 0.5
"""What a link's trust is worth while it is new."""
_STILL = 0.01
"""Change of a link's trust that is none."""
_ROUNDS = 4
"""Rounds of belief propagation after the first; more change a probability by .0005 in the mean, by .014 where
particles remember nothing and many could swap."""
_MESSAGE = 1e-3
"""Change of its messages that is none."""
DOUBT = 3.0
"""Log odds by which a link over a gap may lose to an end and a start, where the model is known."""
_IMPROBABLE = 6e-4
"""Probability below which a pair is not looked at again."""
_SURE = 0.98
"""Probability of a link to the next frame from which on no link over a gap is looked for beside it."""
_HOPELESS = -10.0
"""Log odds below which a pair is not looked at."""
_WORTH_A_THREAD = 50_000


def refine(
    detections: Detections,
    model: LinkModel,
    *,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
    passes: int = 10,
    solver: str = "bid_and_augment",
    workers: int = 1,
) -> Links:
    """Link a movie by a model that is known, pass after pass until no link and no trust changes.

    Parameters
    ----------
    detections : Detections
    model : LinkModel
        In units of position x spacing.
    spacing : (float, float, float)
    passes : int
        At most this many.
    solver : str
    workers : int
        Threads.

    Returns
    -------
    Links
        Cost is minus the log odds of a link; cost, margin and gap in nats.

    Examples
    --------
    >>> from .motion import Motion
    >>> seen = Detections.from_table([0, 0, 1, 1, 2, 2], [[0, 0, x] for x in (0, 9, 2, 7, 4, 5.2)])
    >>> motion = Motion.constant_velocity((2.0,), noise=(0.1,))
    >>> model = LinkModel(motion, follow=(0.9,), end=0.1, start=0.1, gate=(9.0,))
    >>> refine(seen, model).pairs.tolist()
    [[0, 2], [1, 3], [2, 4], [3, 5]]
    """
    movie = movie_of(detections, spacing, interval=1)
    near = pairs_of(movie, model.gate, workers=workers)
    shift = np.zeros_like(movie.position)
    none = Linking.none(len(movie.frame))
    pairs = with_gaps(movie, near, model, shift, workers=workers)
    linking, pairs = soft_pass(movie, pairs, model, none, shift, solver=solver, workers=workers)
    for _ in range(passes - 1):
        known = linking
        linking = link_pass(movie, pairs, model, known, shift, solver=solver, workers=workers)
        if np.abs(known.trust - linking.trust).max(initial=0.0) < _STILL and not linking.changed.any():
            break
    return links_of(movie, linking)


def with_gaps(
    movie: Movie,
    near: Pairs,
    model: LinkModel,
    shift: NDArray[np.float64],
    *,
    doubt: float = DOUBT,
    sweep: Callable[..., Swept] = swept,
    workers: int = 1,
    most_bytes: int | None = None,
) -> Pairs:
    """The pairs that the past does not exclude, and those over gaps of detections without a sure link.

    They are looked for where the past expects the particle, as far as a link may still gain. All pairs, if
    the model knows of no gaps.

    Parameters
    ----------
    near : Pairs
        To the next frame.
    doubt : float
        Log odds by which a link over a gap may lose to an end and a start and still be weighed.
    sweep : callable
        Tells what the past expects, as `swept` does.
    movie, model, shift, workers, most_bytes
        As in `link_pass` and `pairs_of`.
    """
    motion, longest = model.motion.floored(), len(model.follow)
    if longest == 1:
        return near
    told = sweep(movie, near, model, shift, forward=True)
    pairs, count = told.pairs, len(movie.frame)
    row = np.repeat(np.arange(count), np.diff(pairs.indptr))
    rows, cols = (
        np.nonzero(np.bincount(ends, told.chance, count) < _SURE)[0] for ends in (row, pairs.indices)
    )
    mean = told.beliefs.past[0][rows]
    ahead, gates = [], []
    for gap in range(2, longest + 1):
        reach = motion.transition(gap)[:, 0]
        ahead.append(mean[:, :, 0] + reach * mean[:, :, 1] - movie.position[rows] + gap * shift[rows])
        gates.append(gate_over(gap, model, float(pairs.log_density.mean()), doubt))
    return over_gaps(movie, pairs, gates, rows, cols, ahead, workers=workers, most_bytes=most_bytes)


def gate_over(gap: int, model: LinkModel, log_density: float, doubt: float) -> tuple[float, ...]:
    """Radii along the axes outside of which a link over a gap loses to an end and a start; 0 for none."""
    variance = model.motion.floored().step_variance(gap)
    odds = np.log(max(model.follow[gap - 1], 1e-12) / (model.end * model.start)) - log_density
    room = odds - 0.5 * np.log(2 * np.pi * variance).sum() + doubt
    if room <= 0:
        return (0.0,) * len(variance)
    if model.freedom > 0:
        far = model.freedom * model.scale * np.expm1(2 * room / (model.freedom + len(variance)))
    else:
        far = 2 * room
    widest = np.asarray(model.gate) * gap**0.75
    return tuple(np.minimum(np.sqrt(far * variance), widest).tolist())


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
    """Link the movie once, with what the links `known` tell.

    Parameters
    ----------
    movie : Movie
    pairs : Pairs
    model : LinkModel
    known : Linking
        Of the pass before; each link counts as much as it is trusted.
    shift : (N, axes) float64 array
        Displacement in one frame that is known of each detection beforehand, such as a drift.
    caution : float
        What a link's trust is worth while it is new. Less than 1, or two neighbours may swap for ever, pass
        by pass; but the first passes get on faster with 1.
    solver : str
    workers : int
        Threads; they do not change the result.
    """
    trust = known.trust * np.where(known.changed, caution, 1.0)
    beliefs = chained(movie, model, known, trust, shift, workers)
    return weighed(movie, pairs, model, beliefs, known, shift, solver=solver, workers=workers)


def still_links(
    movie: Movie, near: Pairs, model: LinkModel, step: NDArray[np.float64], *, solver: str = "bid_and_augment"
) -> NDArray[np.int64]:
    """(N,) the detection linked after each in the next frame, -1 for none, where no past is known.

    As `link_pass` would link without known links, but far quicker: only the links are found.

    Parameters
    ----------
    near : Pairs
    model : LinkModel
        Its rates and its tails.
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
    """The pairs that are not hopeless by their distances alone, where the model knows nothing but steps."""
    gain = _gain_of_still(movie, near, model, np.sqrt(model.motion.step_variance(1)))
    indptr, indices, *_ = kept_above(near.indptr, near.indices, gain, _HOPELESS)
    return Pairs(indptr, indices, near.log_density)


def _gain_of_still(
    movie: Movie, near: Pairs, model: LinkModel, step: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(P,) log odds of the pairs by their distances."""
    from . import motion_cpu as kernels

    gain = np.empty(len(near.indices))
    gain_of_col = np.log(max(model.follow[0], 1e-12) / (model.end * model.start)) - near.log_density
    kernels.weigh_still(
        near.indptr, near.indices, movie.position, np.square(step), gain_of_col, model.freedom, model.scale,
        gain,
    )  # fmt: skip
    return gain


def soft_pass(
    movie: Movie,
    pairs: Pairs,
    model: LinkModel,
    known: Linking,
    shift: NDArray[np.float64],
    *,
    solver: str = "bid_and_augment",
    workers: int = 1,
) -> tuple[Linking, Pairs]:
    """Link the movie once, by what all probable links tell (`swept`); no earlier links are needed.

    Parameters
    ----------
    pairs : Pairs
        As `with_gaps` finds them.
    known : Linking
        Of the pass before, only to tell what changed.
    movie, model, shift, solver, workers
        As in `link_pass`.

    Returns
    -------
    Linking, Pairs
        And the pairs that are worth another look.
    """
    found = swept(movie, pairs, model, shift)
    linking = weighed(movie, found.pairs, model, found.beliefs, known, shift, solver=solver, workers=workers)
    indptr, indices = found.pairs.indptr, found.pairs.indices
    indptr, indices, *_ = kept_above(indptr, indices, linking.probability, _IMPROBABLE)
    return linking, Pairs(indptr, indices, pairs.log_density)


def weighed(
    movie: Movie,
    pairs: Pairs,
    model: LinkModel,
    beliefs: Beliefs,
    known: Linking,
    shift: NDArray[np.float64],
    *,
    solver: str = "bid_and_augment",
    workers: int = 1,
) -> Linking:
    """Weigh the pairs by what is believed of both ends, and link the best.

    Parameters
    ----------
    beliefs : Beliefs
    movie, pairs, model, known, shift, solver, workers
        As in `soft_pass`.
    """
    from . import motion_cpu as kernels

    motion, (count, axes) = model.motion.floored(), movie.position.shape
    table = motion.transitions(len(model.follow))
    speed2, noise2 = np.square(motion.speed), np.square(motion.noise)
    place, weight, constant = np.empty((count, axes, 2)), np.empty((count, axes, 3)), np.empty(count)
    kernels.messages(
        movie.position, beliefs.followed, *beliefs.future, speed2, noise2, place, weight, constant
    )
    gain_of_gap = np.log(np.maximum([0.0, *model.follow], 1e-12) / model.end)
    before, after = beliefs.alone
    gain_of_row = model.freedom_to_link(before, model.end)
    gain_of_col = model.freedom_to_link(after, model.start) - np.log(model.start) - pairs.log_density
    distance2, gain = np.empty(len(pairs.indices)), np.empty(len(pairs.indices))

    def weigh(run: tuple[int, int]) -> None:
        kernels.weigh_pairs(
            *run, pairs.indptr, pairs.indices, movie.frame, *beliefs.past, shift, place, weight, constant,
            table, gain_of_gap, gain_of_row, gain_of_col, model.freedom, model.scale, distance2, gain,
        )  # fmt: skip

    parts = workers if len(gain) > _WORTH_A_THREAD else 1
    cuts = np.searchsorted(pairs.indptr, np.linspace(0, len(gain), parts + 1)[1:-1]).tolist()
    list(in_threads(weigh, zip([0, *cuts], [*cuts, count], strict=True), parts))
    size = axes * np.where(weight[:, 0, 2] > 0, 2, 1)
    return solved(pairs, known.follower, gain, distance2, size, solver)


def links_of(movie: Movie, linking: Linking) -> Links:
    """Links between the detections as they were given, sorted by source."""
    source = np.nonzero(linking.follower >= 0)[0]
    pairs = np.column_stack([movie.order[source], movie.order[linking.follower[source]]])
    order = np.argsort(pairs[:, 0])
    source = source[order]
    return Links(
        pairs[order],
        -linking.gain[source],
        linking.margin[source],
        linking.gap,
        probability=linking.trust[source],
    )


def chained(
    movie: Movie,
    model: LinkModel,
    known: Linking,
    trust: NDArray[np.float64],
    shift: NDArray[np.float64],
    workers: int,
) -> Beliefs:
    """The filter along the known links from both sides, each as far as it is trusted."""
    from . import motion_cpu as kernels

    motion, (count, axes) = model.motion.floored(), movie.position.shape
    follower = known.follower if model.two_sided else np.full(count, -1, dtype=np.int64)
    ahead = movie.frame[known.follower] - movie.frame
    table = motion.transitions(int(ahead[known.follower >= 0].max(initial=1)))

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
    """Probabilities that each is clutter, from its past and from its future, as far as links tell of them."""
    found, frame = [], movie.frame
    for ends, unlinked, edge in ((known.col, model.start, frame[:1]), (known.row, model.end, frame[-1:])):
        new = np.maximum(1 - np.bincount(ends, known.probability, len(frame)), 0)
        blind = (frame == edge) if len(ends) else True
        found.append(np.where(blind, model.clutter, model.strange(new, unlinked)))
    before, after = found
    return before, after if model.two_sided else np.full(len(frame), model.clutter)


def solved(
    pairs: Pairs,
    known: NDArray[np.int64],
    gain: NDArray[np.float64],
    distance2: NDArray[np.float64],
    size: NDArray[np.int64],
    solver: str,
) -> Linking:
    """The best set of links, and how likely each of its links is."""
    from . import motion_cpu as kernels

    count = len(known)
    probability = np.empty(len(gain))
    kernels.pair_probabilities(
        pairs.indptr.view(np.uint64), pairs.indices.view(np.uint32), count, gain, _ROUNDS, _MESSAGE,
        probability,
    )  # fmt: skip
    # Only what beats an end and a start can be in the optimum: this cut is exact.
    indptr, col, useful, useful_gain = kept_above(pairs.indptr, pairs.indices, gain, 0.0)
    answer, unit = best_pairs(indptr, col, useful_gain, (count, count), solver)
    follower = answer.col_of_row.astype(np.int64)
    trust, gained = np.zeros(count), np.zeros(count)
    linked, taken = places_of(indptr, col, follower)
    trust[linked], gained[linked] = probability[useful[taken]], useful_gain[taken]
    return Linking(
        follower, answer.row_of_col.astype(np.int64), trust, gained, answer.margin * unit,
        np.repeat(np.arange(count), np.diff(pairs.indptr)), pairs.indices.astype(np.int64), gain,
        probability, distance2, size[pairs.indices], follower != known, float(answer.gap * unit),
    )  # fmt: skip
