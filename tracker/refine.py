"""Refinement: a whole movie is linked again and again, with what the last pass tells of every particle.

In each pass the Kalman filter runs along the links of the pass before, forward and backward in time, and
every pair of detections is weighed by the likelihood of one track against an end and a start, given
the past of the one and the future of the other. All pairs of the movie, those over gaps included, make
one assignment problem, solved exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ._arrays import in_threads
from .assign import AssignmentProblem, SparseCosts, solve_and_certify
from .candidates import Pairs, over_gaps, pairs_of, still_open
from .detections import Detections
from .errors import SettingsError
from .link import Links
from .motion import Motion
from .movie import Movie, movie_of

_UNITS = 1 << 26
"""Integer units in the largest gain, so that the certificate is exact."""
_FLOOR = 1e-3
"""Least speed, noise and diffusion in steps: without any the filter would divide by 0."""
_NEW = 0.5
"""What a link's trust is worth while it is new."""
_STILL = 0.01
"""Change of a link's trust that is none."""
_ROUNDS = 8
"""Rounds of belief propagation; 20 change no probability by more than .01 on crowded movies."""
_MESSAGE = 1e-3
"""Change of its messages that is none."""
_HOPELESS = -8.0
"""Log odds below which a pair counts in no probability."""
_SURE = 0.98
"""Probability of a link to the next frame from which on no link over a gap is looked for beside it."""
_WORTH_A_THREAD = 50_000


@dataclass(frozen=True)
class LinkModel:
    """All that decides how likely a link is; the unmatched costs follow from the rates.

    Parameters
    ----------
    motion : Motion
    follow : tuple of float
        Probabilities that a particle is seen next after 1, 2, … frames.
    end : float
        Probability that it is never seen again within that time: it left, died or was missed.
    start : float
        Probability that a detection has none before it: a birth, an arrival, or clutter.
    freedom : float
        Degrees of freedom of Student's t that replaces the Gaussian of the filter; 0 keeps it. Real
        particles jump now and then; a Gaussian would not forgive them.
    scale : float
        Square of the width of that t against the filter's own.
    gate : tuple of float
        Radii along the axes, in the unit of the positions, outside of which no particle is looked for
        in the next frame; over g frames they grow by g^(3/4), between diffusion and straight flight.
    two_sided : bool
        Whether the future of a detection counts as its past does; live data have none.

    Raises
    ------
    SettingsError
        If a probability is not between 0 and 1.
    """

    motion: Motion
    follow: tuple[float, ...]
    end: float
    start: float
    gate: tuple[float, ...]
    freedom: float = 0.0
    scale: float = 1.0
    two_sided: bool = True

    def __post_init__(self) -> None:
        if not self.follow or not all(0 <= share <= 1 for share in self.follow):
            raise SettingsError(f"follow is {self.follow}; give probabilities for 1, 2, … frames.")
        if not (0 < self.end < 1 and 0 < self.start < 1):
            raise SettingsError(f"end is {self.end} and start {self.start}; they must be between 0 and 1.")


@dataclass(frozen=True, eq=False)
class Linking:
    """What one pass found.

    Parameters
    ----------
    follower, before : (N,) int64 arrays
        The detection linked after and before each; -1 for none.
    trust, gain, margin : (N,) float64 arrays
        Of the link to the follower: its probability, its log odds, and how much the optimum would lose
        without it, at least; 0 for none.
    row, col : (Q,) int64 arrays
        All pairs that are not hopeless.
    probability, distance2 : (Q,) float64 arrays
        Probability of each such pair, and its squared Mahalanobis distance.
    size : (Q,) int64 array
        In how many dimensions that was measured: those of the position, or of the velocity, too, where
        the future tells it.
    changed : (N,) bool array
        Whether the link to the follower is another than in the pass before.
    gap : float
        Gap between cost and lower bound, in nats; 0 proves the links optimal.
    """

    follower: NDArray[np.int64]
    before: NDArray[np.int64]
    trust: NDArray[np.float64]
    gain: NDArray[np.float64]
    margin: NDArray[np.float64]
    row: NDArray[np.int64]
    col: NDArray[np.int64]
    probability: NDArray[np.float64]
    distance2: NDArray[np.float64]
    size: NDArray[np.int64]
    changed: NDArray[np.bool_]
    gap: float = 0.0

    @classmethod
    def none(cls, count: int) -> Linking:
        """No links between `count` detections."""
        no, zero, empty = np.full(count, -1, dtype=np.int64), np.zeros(count), np.empty(0, dtype=np.int64)
        return cls(no, no, zero, zero, zero, empty, empty, np.empty(0), np.empty(0), empty, zero > 0)


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
    >>> seen = Detections.from_table([0, 0, 1, 1, 2, 2], [[0, 0, x] for x in (0, 9, 2, 7, 4, 5.2)])
    >>> motion = Motion.constant_velocity((2.0,), noise=(0.1,))
    >>> model = LinkModel(motion, follow=(0.9,), end=0.1, start=0.1, gate=(9.0,))
    >>> refine(seen, model).pairs.tolist()
    [[0, 2], [1, 3], [2, 4], [3, 5]]
    """
    movie = movie_of(detections, spacing, interval=1)
    near = pairs_of(movie, model.gate, workers=workers)
    linking, shift = Linking.none(len(movie.frame)), np.zeros_like(movie.position)
    for _ in range(passes):
        known = linking
        pairs = with_gaps(movie, near, model, known, workers=workers)
        linking = link_pass(movie, pairs, model, known, shift, solver=solver, workers=workers)
        if np.abs(known.trust - linking.trust).max(initial=0.0) < _STILL and not linking.changed.any():
            break
    return links_of(movie, linking)


def with_gaps(
    movie: Movie,
    near: Pairs,
    model: LinkModel,
    known: Linking,
    *,
    workers: int = 1,
    most_bytes: int | None = None,
) -> Pairs:
    """The pairs, and those over gaps of detections without a sure link to the next frame.

    Parameters
    ----------
    near : Pairs
        To the next frame.
    known : Linking
        Of the pass before; its probabilities decide what is sure. Without any there are no gaps yet.
    movie, model, workers, most_bytes
        As in `link_pass` and `pairs_of`.
    """
    if len(model.follow) == 1 or not len(known.row):
        return near
    count, next_frame = len(movie.frame), movie.frame[known.col] == movie.frame[known.row] + 1
    chance = known.probability[next_frame]
    rows, cols = (
        np.nonzero(np.bincount(ends[next_frame], chance, count) < _SURE)[0] for ends in (known.row, known.col)
    )
    longest = len(model.follow)
    return over_gaps(movie, near, model.gate, longest, rows, cols, workers=workers, most_bytes=most_bytes)


def unsettled(near: Pairs, known: Linking) -> Pairs:
    """The links, and the pairs that they leave open: what is sure and did not change needs no new choice."""
    settled = (known.trust > _SURE) & ~known.changed
    return still_open(near, known.follower, known.before, settled)


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
    from . import motion_cpu as kernels

    model = replace(model, motion=_floored(model.motion))
    count, axes = movie.position.shape
    table = _transitions(model.motion, len(model.follow))
    speed2, noise2 = np.square(model.motion.speed), np.square(model.motion.noise)
    follower = known.follower if model.two_sided else np.full(count, -1, dtype=np.int64)
    place, weight, constant = np.empty((count, axes, 2)), np.empty((count, axes, 3)), np.empty(count)
    trust = known.trust * np.where(known.changed, caution, 1.0)
    ways = [(known.before, False), (follower, True)]
    past, future = in_threads(
        lambda way: _believed(movie, model, way[0], trust, shift, backward=way[1]), ways, workers
    )
    kernels.messages(movie.position, follower, *future, speed2, noise2, place, weight, constant)
    gain_of_gap = np.log(np.maximum([0.0, *model.follow], 1e-12) / model.end)
    gain_of_col = -np.log(model.start) - pairs.log_density
    distance2, gain = np.empty(len(pairs.indices)), np.empty(len(pairs.indices))

    def weigh(run: tuple[int, int]) -> None:
        kernels.weigh_pairs(
            *run, pairs.indptr, pairs.indices, movie.frame, *past, shift, place, weight, constant, table,
            gain_of_gap, gain_of_col, model.freedom, model.scale, distance2, gain,
        )  # fmt: skip

    parts = workers if len(gain) > _WORTH_A_THREAD else 1
    cuts = np.searchsorted(pairs.indptr, np.linspace(0, len(gain), parts + 1)[1:-1]).tolist()
    list(in_threads(weigh, zip([0, *cuts], [*cuts, count], strict=True), parts))
    size = axes * np.where(weight[:, 0, 2] > 0, 2, 1)
    return _solved(pairs, known.follower, gain, distance2, size, solver)


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


def _believed(
    movie: Movie,
    model: LinkModel,
    neighbour: NDArray[np.int64],
    trust: NDArray[np.float64],
    shift: NDArray[np.float64],
    *,
    backward: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The filter's mean and covariance at each detection, coming from one side in time."""
    from . import motion_cpu as kernels

    count, axes = movie.position.shape
    linked = neighbour >= 0
    earlier = np.arange(count) if backward else neighbour
    frames = np.where(linked, np.abs(movie.frame - movie.frame[neighbour]), 0)
    on_way = np.where(linked[:, None], (-1 if backward else 1) * frames[:, None] * shift[earlier], 0.0)
    mean, cov = np.empty((count, axes, 2)), np.empty((count, axes, 3))
    kernels.filter_tracks(
        movie.position, neighbour, frames, on_way, trust[earlier],
        _transitions(model.motion, int(frames.max(initial=1))),
        np.square(model.motion.speed), np.square(model.motion.noise), backward, mean, cov,
    )  # fmt: skip
    return mean, cov


def _transitions(motion: Motion, longest: int) -> NDArray[np.float64]:
    """(longest + 1, axes, 5) float64: `Motion.transition` over 0, 1, 2, … frames."""
    return np.stack([np.zeros((motion.axes, 5))] + [motion.transition(gap) for gap in range(1, longest + 1)])


def _floored(motion: Motion) -> Motion:
    """The motion with nothing exactly 0."""
    least = _FLOOR * np.maximum(np.sqrt(motion.step_variance(1)), 1e-30)
    diffusion, speed, noise = (
        tuple(np.maximum(given, least).tolist()) for given in (motion.diffusion, motion.speed, motion.noise)
    )
    return Motion(diffusion, speed, motion.persistence, noise)


def _solved(
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
    indptr, row, col, kept = _above(pairs.indptr, pairs.indices, gain, _HOPELESS)
    gain, probability = gain[kept], np.empty(len(kept))
    kernels.pair_probabilities(indptr, col, count, gain, _ROUNDS, _MESSAGE, probability)
    # Only what beats an end and a start can be in the optimum: this cut is exact.
    useful_indptr, _, useful_col, useful = _above(indptr, col, gain, 0.0)
    unit = gain.max(initial=1e-9) / _UNITS
    cost = (_UNITS - np.rint(gain[useful] / unit)).astype(np.int32)
    unmatched = np.full(count, _UNITS // 2, dtype=np.int64)
    costs = SparseCosts(useful_indptr, useful_col, cost, (count, count))
    answer = solve_and_certify(AssignmentProblem(costs, unmatched, unmatched), solver)
    follower = answer.col_of_row.astype(np.int64)
    trust, gained = np.zeros(count), np.zeros(count)
    taken = np.nonzero(follower[row] == col)[0]
    trust[row[taken]], gained[row[taken]] = probability[taken], gain[taken]
    return Linking(
        follower, answer.row_of_col.astype(np.int64), trust, gained, answer.margin * unit, row,
        col.astype(np.int64), probability, distance2[kept], size[col], follower != known,
        float(answer.gap * unit),
    )  # fmt: skip


def _above(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], gain: NDArray[np.float64], least: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """The pairs that gain more: their indptr, rows and columns, and where they stood."""
    from . import candidates_cpu as kernels

    kept = np.empty_like(indptr)
    kernels.count_above(indptr, gain, least, kept)
    row, place = np.empty(kept[-1], dtype=np.int64), np.empty(kept[-1], dtype=np.int64)
    col = np.empty(kept[-1], dtype=np.int32)
    kernels.take_above(indptr, indices, gain, least, row, col, place)
    return kept, row, col, place
