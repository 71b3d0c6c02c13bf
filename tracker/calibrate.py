"""Calibration: the detections themselves tell how particles move, how often they are missed, start and end.

Expectation and maximisation over links. The first step length comes from the mixture of true steps and
strangers among nearest neighbours; then the movie is linked (`refine`), the links tell the motion and the
rates, each link counting as much as it is probable, and the movie is linked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .detections import Detections
from .divisions import Divisions, find_divisions
from .estimates import LAGS, first_step, motion_from, spacing_of, tail_from
from .flow import flow_of
from .link import Links
from .motion import Motion
from .refine import Linking, LinkModel, Movie, link_pass, links_of, movie_of, pairs_of

PASSES = 10
"""Passes over the movie, unless the links stop changing before."""

_REACH = 4.5
"""Gate in standard deviations of a step: 3D Gaussian steps beyond it are one in 6,000."""
_ROOM, _MOST_REACH = 0.6, 18.0
"""Where particles are sparse the gate is this share of their spacing, up to so many standard deviations: few
strangers are that near, and whole frames may jump."""
_SAMPLE = 40_000
_SETTLED = 0.002
"""Share of the links that may still change when the passes end."""
_RARE = 5e-4
"""Share of gaps so long among all links below which they are not looked for any more."""
_ALIKE = 3.0
"""Steps' worth of belief that all axes move as much."""
_GROUPS = 8
"""Parts of the particles that are estimated apart, for the uncertainties."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """What a movie told of itself, in units of position x spacing and frames.

    Parameters
    ----------
    model : LinkModel
    crowd : int or None
        How many neighbours foretell a particle's step; 0 is the whole frame, None if they do not.
    step : (axes,) float64 array
        Root mean square displacement along each axis in one frame, as seen.
    uncertainty : dict of str to float
        Standard errors of step, persistence, noise, end and start, from groups of particles.
    passes : int
        How often the movie was linked.
    axes : str
        Which of z, y, x the values stand for: axes along which nothing varies are left out.
    """

    model: LinkModel
    crowd: int | None
    step: NDArray[np.float64]
    uncertainty: dict[str, float]
    passes: int
    axes: str

    def __str__(self) -> str:
        motion, model, error = self.model.motion, self.model, self.uncertainty
        axes = self.axes
        remembered = (
            f"velocity {_each(motion.speed, axes)}, kept for {motion.persistence:.3g} "
            f"± {error.get('persistence', 0):.1g} frames"
            if motion.persistence > 0 and any(motion.speed)
            else "no lasting velocity"
        )
        crowd = {None: "none", 0: "a drift of whole frames"}.get(self.crowd, f"{self.crowd} neighbours")
        return (
            f"Learned in {self.passes} passes. "
            f"Step: {_each(self.step, axes)} a frame (± {error.get('step', 0):.1g}); {remembered}; "
            f"flow foretold by: {crowd}.\n"
            f"Localisation noise: {_each(motion.noise, axes)} (± {error.get('noise', 0):.1g}). "
            f"Gate: {_each(model.gate, axes)}.\n"
            f"Tracks end: {model.end:.2%} (± {error.get('end', 0):.2%}) and start: {model.start:.2%} "
            f"(± {error.get('start', 0):.2%}) a detection; next seen after 1, 2, … frames: "
            f"{', '.join(f'{share:.2%}' for share in model.follow)}."
        )

    def as_dict(self) -> dict[str, object]:
        """Plain values, for run records and summaries."""
        motion = self.model.motion
        return {
            "step": self.step.tolist(),
            "gate": list(self.model.gate),
            "diffusion": list(motion.diffusion),
            "speed": list(motion.speed),
            "persistence": motion.persistence,
            "noise": list(motion.noise),
            "follow": list(self.model.follow),
            "end": self.model.end,
            "start": self.model.start,
            "freedom": self.model.freedom,
            "scale": self.model.scale,
            "crowd": self.crowd,
            "uncertainty": dict(self.uncertainty),
            "passes": self.passes,
            "axes": self.axes,
        }


def _each(values: Iterable[float], axes: str) -> str:
    """One value an axis, as text."""
    return ", ".join(f"{axis} {value:.3g}" for axis, value in zip(axes, values, strict=True))


def calibrate(
    detections: Detections,
    *,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
    max_gap: int = 2,
    two_sided: bool = True,
    divisions: bool = True,
    solver: str = "bid_and_augment",
    workers: int = 1,
    most_bytes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Calibration, Links]:
    """Learn from a movie how to link it, and link it.

    Parameters
    ----------
    detections : Detections
    spacing : (float, float, float)
        Size of a voxel along z, y, x.
    max_gap : int
        Frames in which a particle may be missing.
    two_sided : bool
        Whether links may use the future.
    divisions : bool
        Whether starts are joined to mothers where the movie gives evidence of divisions.
    solver : str
    workers : int
        Threads.
    most_bytes : int, optional
        Memory that the candidate pairs may take.
    progress : callable, optional
        Told (detections done, detections in all) after every pass, as if all passes were needed.

    Returns
    -------
    Calibration, Links
        Cost is minus the log odds of a link; cost, margin and gap in nats.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> place = rng.uniform(0, 9, (200, 3)) + np.cumsum(rng.normal(0, 0.1, (12, 200, 3)), axis=0)
    >>> movie = Detections.from_table(np.repeat(np.arange(12), 200), place.reshape(-1, 3))
    >>> learned, links = calibrate(movie)
    >>> learned.step.round(2).tolist(), len(links.pairs)
    ([0.1, 0.1, 0.1], 2200)
    """
    movie = movie_of(detections, spacing)
    count, axes = movie.position.shape
    # Where nothing moves, or nothing can be linked, any small step will do.
    sigma = first_step(movie.position, movie.frame_start)
    sigma = sigma or 1e-6 * max(float(np.abs(movie.position).max(initial=0.0)), 1.0)
    room = _ROOM * spacing_of(movie.position, movie.frame_start)
    step = np.full(axes, sigma)
    gate = _gate(step, room)
    model = LinkModel(Motion.static((sigma,) * axes), (0.9,), 0.05, 0.05, gate, two_sided=two_sided)
    linking, shift, crowd = Linking.none(count), np.zeros_like(movie.position), None
    pairs = pairs_of(movie, model, workers=workers, most_bytes=most_bytes)
    gaps, flowing, done = 1, True, 0
    for done in range(1, PASSES + 1):
        known = linking
        linking = link_pass(movie, pairs, model, known, shift, solver=solver)
        if progress is not None:
            progress(count * done // PASSES, count)
        changed = int((known.follower != linking.follower).sum())
        if done == PASSES or (done > 5 and changed <= _SETTLED * count):
            break
        if flowing:
            shift, crowd = flow_of(movie.frame_start, movie.position, _steps(movie, linking.follower))
            flowing = crowd is not None or done < 3
        model, step = _learned(movie, linking, shift, model, max_gap if done >= 2 else 0, room)
        while done >= 4 and 0 < max_gap < len(model.follow) and model.follow[max_gap] < _RARE:
            max_gap -= 1  # most of the pairs of a movie lie over the longest gap
            model = replace(model, follow=model.follow[:-1])
        # Candidates are kept while the gate stays about what it was.
        if len(model.follow) != gaps or not np.allclose(gate, model.gate, rtol=0.1):
            pairs = pairs_of(movie, model, workers=workers, most_bytes=most_bytes)
            gate, gaps = model.gate, len(model.follow)
    found = Calibration(model, crowd, step, {}, done, movie.names)
    found = replace(found, uncertainty=_uncertainty(movie, linking, shift, model))
    links = links_of(movie, linking)
    if divisions:
        links = _with_daughters(links, movie, find_divisions(movie, linking, pairs.log_density))
    return found, links


def _with_daughters(links: Links, movie: Movie, found: Divisions) -> Links:
    """The links and those to daughters, sorted by source; nothing is known of a daughter's margin."""
    daughters = np.column_stack([movie.order[found.mother], movie.order[found.daughter]])
    pairs = np.concatenate([links.pairs, daughters])
    cost = np.concatenate([links.cost, np.log1p(-found.probability) - np.log(found.probability)])
    margin = np.concatenate([links.margin, np.zeros(len(daughters))])
    trust = np.concatenate([_known(links.probability), found.probability])
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return Links(pairs[order], cost[order], margin[order], links.gap, probability=trust[order])


def _known(probability: NDArray[np.float64] | None) -> NDArray[np.float64]:
    return np.empty(0) if probability is None else probability


def _steps(movie: Movie, follower: NDArray[np.int64]) -> NDArray[np.float64]:
    """(N, axes) step of each detection to the next frame; NaN without a link there."""
    steps = movie.position[follower] - movie.position
    steps[(follower < 0) | (movie.frame[follower] != movie.frame + 1)] = np.nan
    return steps


def _learned(
    movie: Movie, linking: Linking, shift: NDArray[np.float64], model: LinkModel, max_gap: int, room: float
) -> tuple[LinkModel, NDArray[np.float64]]:
    """The model and the root mean square step (axes,) that the links tell."""
    covariance, weight, step2 = _covariances(movie, linking, shift, np.ones(len(movie.frame), dtype=bool))
    if weight[0] == 0:
        return model, np.sqrt(step2)
    follow, end, start = _rates(movie, linking, max_gap)
    certain = linking.probability > 0.01
    freedom, scale = tail_from(
        linking.distance2[certain], linking.size[certain], linking.probability[certain]
    )
    step = np.sqrt(np.maximum(step2, 1e-300))
    motion = motion_from(covariance, weight)
    return LinkModel(motion, follow, end, start, _gate(step, room), freedom, scale, model.two_sided), step


def _gate(step: NDArray[np.float64], room: float) -> tuple[float, ...]:
    """Radii along the axes outside of which no particle is looked for in the next frame."""
    return tuple(np.clip(room, _REACH * step, _MOST_REACH * step).tolist())


def _covariances(
    movie: Movie, linking: Linking, shift: NDArray[np.float64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Covariances of steps less flow by lag (LAGS, axes), weights (LAGS,), mean square of steps (axes,).

    The last step of each chain is any probable pair; those before are links. Products of steps count by
    the fourth power of the probabilities and as correlations: wrong links know no past, and even few
    of them would hide a persistence.
    """
    row, col, trust = linking.row, linking.col, linking.probability
    taken = chosen[row] & (movie.frame[col] - movie.frame[row] == 1) & (trust > 1e-3)
    taken &= row % max(1, len(movie.frame) // _SAMPLE) == 0
    row, col, trust = row[taken], col[taken], trust[taken, None]
    step = movie.position[col] - movie.position[row]
    weight, sums = np.zeros(LAGS), np.zeros((LAGS, movie.axes))
    weight[0] = trust.sum()
    step2 = _mean_square(step, trust)
    step = step - shift[row]
    sums[0] = _mean_square(step, trust)
    here, trust = row, trust**4
    for lag in range(1, LAGS):
        before = linking.before[here]
        on = (before >= 0) & (movie.frame[before] == movie.frame[here] - 1)
        here, before, trust, step = here[on], before[on], trust[on], step[on]
        earlier = movie.position[here] - movie.position[before] - shift[before]
        trust = trust * linking.trust[before, None] ** 4
        size2 = (trust * step**2).sum(axis=0) * (trust * earlier**2).sum(axis=0)
        weight[lag] = trust.sum()
        sums[lag] = sums[0] * (trust * step * earlier).sum(axis=0) / np.sqrt(np.maximum(size2, 1e-300))
        here = before
    return sums, weight, step2


def _mean_square(step: NDArray[np.float64], trust: NDArray[np.float64]) -> NDArray[np.float64]:
    """(axes,) mean square of the steps; where there are few, the axes are taken to be much alike."""
    sums = (trust * step**2).sum(axis=0)
    total = float(trust.sum())
    return (sums + _ALIKE * sums.mean() / max(total, 1e-300)) / (total + _ALIKE)


def _rates(movie: Movie, linking: Linking, max_gap: int) -> tuple[tuple[float, ...], float, float]:
    """Probabilities of being seen next after 1, 2, … frames, of an end and of a start."""
    count, first, last = len(movie.frame), movie.frame[0], movie.frame[-1]
    gap = movie.frame[linking.col] - movie.frame[linking.row]
    reach = int(gap.max(initial=1))
    leaves = np.minimum(np.bincount(linking.row, linking.probability, count), 1)
    reached = np.minimum(np.bincount(linking.col, linking.probability, count), 1)
    # Only where the movie is long enough to show what happens.
    early, late = movie.frame <= last - reach, movie.frame >= first + reach
    if not early.any():
        early, late = movie.frame < last, movie.frame > first
    seen = early[linking.row]
    shares = np.bincount(gap[seen], linking.probability[seen], reach + 1)[1:] + 0.5
    lost = float(np.sum(1 - leaves[early])) + 0.5
    known = (shares / (shares.sum() + lost)).tolist()
    # A gap that was not tried yet starts with the odds of a rare miss.
    follow = tuple((known + [0.02 / 2**k for k in range(max_gap)])[: max_gap + 1])
    end = lost / float(shares.sum() + lost)
    start = (float(np.sum(1 - reached[late])) + 0.5) / (int(late.sum()) + 1.0)
    return follow, min(end, 0.5), min(start, 0.5)


def _uncertainty(
    movie: Movie, linking: Linking, shift: NDArray[np.float64], model: LinkModel
) -> dict[str, float]:
    """Standard errors, from the scatter between groups of particles."""
    # A track keeps its group: the group of its first detection goes along the links.
    group = np.arange(len(movie.frame)) % _GROUPS
    for row in np.nonzero(linking.before >= 0)[0]:
        group[row] = group[linking.before[row]]
    motions = []
    for number in range(_GROUPS):
        covariance, weight, _ = _covariances(movie, linking, shift, group == number)
        if weight[0] > 0:
            motions.append((covariance[0], motion_from(covariance, weight)))
    if len(motions) < 2:
        return {}
    root = np.sqrt(len(motions))
    rows = len(movie.frame)
    return {
        "step": float(np.std([np.sqrt(variance.mean()) for variance, _ in motions], ddof=1) / root),
        "persistence": float(np.std([motion.persistence for _, motion in motions], ddof=1) / root),
        "noise": float(np.std([np.mean(motion.noise) for _, motion in motions], ddof=1) / root),
        "end": float(np.sqrt(model.end * (1 - model.end) / rows)),
        "start": float(np.sqrt(model.start * (1 - model.start) / rows)),
    }
