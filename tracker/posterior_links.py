"""Links by the posterior, in five steps: read, learn, decide, sum up, restore the original row numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ._timing import lap
from .calibrate.calibration import Calibration
from .calibrate.known import EACH_AXIS, Known
from .calibrate.maximise import gate_of
from .detections import Detections
from .errors import ResourceError
from .inference.decide import decide
from .inference.passes import link_model, ornstein_uhlenbeck
from .learn import Learned, learn
from .learn.errors import Kinematics, errors_of_rates, standard_errors
from .learn.fixed import Fixed
from .learn.options import LearnOptions
from .lineage import with_divisions
from .linking import Links
from .model.movie import OUTER
from .refine.linking import LinkModel
from .refine.movie import Movie as Reading
from .refine.movie import movie_of

if TYPE_CHECKING:
    from .learned import Asked

_PAIR_BYTES = 12
"""Bytes of a candidate pair, of which `most_bytes` allows for nine times as much."""
_ROOM = 1.5
"""Prior: distances to the nearest neighbour that a gate has at least, as far as steps allow."""
_ASTRAY = 1e4
"""Guard: median distances from the middle, beyond which a detection is linked to none: nothing is so far."""
_SLICE = 0.6
"""Prior: standard deviation of a step between slices at least, in their distance."""
_CLEAR = 5.0
"""Error level: standard errors by which a frame's shift, or what neighbours predict, is no chance."""
_SHARED = 0.1
"""Error level: share of the variance of displacements that neighbours predict, above which they are named."""
_UNEVEN = 0.01
"""Error level: standard deviation of step scales below which all intervals are alike."""


def linked(detections: Detections, asked: Asked) -> tuple[Calibration, Links]:
    """Learn a model from the detections of a movie, and link them by the posterior over links.

    This engine finds no merges, and cannot link by the past alone (`forward_only`).

    Parameters
    ----------
    detections : Detections
    asked : Asked
    """
    reading = _without_strays(movie_of(detections, asked.spacing, holes=asked.max_gap is None))
    known = Known.of(asked.known or {}, reading.names)
    options = _options(asked, known, reading)
    _refuse_more_than(asked.most_bytes, reading.frame_start, options.nearest)
    found = learn(reading.position, reading.frame_start, options, time=reading.time)
    lap("learning")
    if asked.divisions:
        links, _ = with_divisions(
            found.movie, found.model, found.posterior, solver=asked.solver, exact=asked.exact_margins
        )
    else:
        some = found.posterior
        links = decide(some.candidates, some.probability, solver=asked.solver, exact=asked.exact_margins)
    lap("deciding")
    summary = _summary(reading, known, found, asked)
    lap("errors of what is learned")
    if asked.progress is not None:
        asked.progress(len(detections), len(detections))
    return summary, _as_given(links, reading.order)


def _without_strays(reading: Reading) -> Reading:
    """The movie without outliers: detections so far away that all others are close together in comparison."""
    away = np.abs(reading.position - np.median(reading.position, axis=0)).max(axis=1)
    near = away <= _ASTRAY * np.median(away)
    if near.all() or not np.median(away) > 0:
        return reading
    start = np.concatenate([[0], np.cumsum(near)])[reading.frame_start]
    return replace(
        reading, frame=reading.frame[near], position=reading.position[near], order=reading.order[near],
        frame_start=start,
    )  # fmt: skip


def _refuse_more_than(most_bytes: int | None, frame_start: NDArray[np.int64], nearest: int) -> None:
    """Refuse a movie whose candidate pairs to the nearest detections need more memory."""
    count = np.diff(frame_start)
    pairs = int((count[:-1] * np.minimum(count[1:], nearest)).sum())
    if most_bytes is not None and pairs * _PAIR_BYTES > most_bytes:
        raise ResourceError(
            f"{pairs:,} pairs or more are candidates: {pairs * _PAIR_BYTES / 1e9:.1f} GB, more than the "
            f"{most_bytes / 1e9:.1f} GB that may be used. Link the movie in ranges of frames: --cluster."
        )


def _reporting(asked: Asked, detections: int, work: int) -> Callable[[int], None]:
    """What reports sweeps as detections done; the last is reported when all is done."""
    covered = 0

    def report(more: int) -> None:
        nonlocal covered
        covered += more
        if asked.progress is not None:
            asked.progress(min(detections * covered // work, detections - 1), detections)

    return report


def _options(asked: Asked, known: Known, reading: Reading) -> LearnOptions:
    """Options of `learn` for the given options of linking."""
    each = {name: values for name, values in known.told.items() if name in EACH_AXIS}
    one = {name: value for name, (value, *_) in known.told.items() if name not in EACH_AXIS}
    options = LearnOptions(fixed=Fixed(**each, **one), workers=asked.workers)  # type: ignore[arg-type]
    many = len(reading.frame)
    options = replace(options, on_sweep=_reporting(asked, many, options.work(many)))
    if reading.slices.any():
        options = replace(options, least_step=tuple((_SLICE * reading.slices).tolist()))
    if asked.max_gap is None:
        return options
    lag = asked.max_gap + 1
    return replace(options, longest_lag=lag, gaps=asked.max_gap > 0)


def _as_given(links: Links, order: NDArray[np.int64]) -> Links:
    """Convert links to the original row numbers, sorted by source and target."""
    pairs = order[links.pairs]
    place = np.lexsort((pairs[:, 1], pairs[:, 0]))
    assert links.probability is not None
    return replace(
        links, pairs=pairs[place], cost=links.cost[place], margin=links.margin[place],
        probability=links.probability[place],
    )  # fmt: skip


def _summary(reading: Reading, known: Known, found: Learned, asked: Asked) -> Calibration:
    """Summary of the learned model as a `Calibration`, the type that reports and records read."""
    shown = Kinematics.of(found.movie, found.model)
    flow = found.model.surroundings.flow @ np.linalg.pinv(found.movie.basis)
    step = np.sqrt(np.square(shown.step) + found.movie.mean_square(flow))
    spacing = float(np.sqrt(found.movie.variance_given(np.ones(found.movie.axes)).mean()))
    part = found.motion_from
    errors = standard_errors(part.movie, part.model, part.posterior, asked.workers)
    errors |= errors_of_rates(found.movie, found.model) if errors else {}
    scale, drift = found.model.motion.step_scale, _drift(reading, found, shown)
    return Calibration(
        _link_model(found, shown, gate_of(step, _ROOM * spacing), known, asked.max_gap),
        _neighbours(found, drift),
        known.step(step),
        {name: error for name, error in errors.items() if name not in known.told},
        found.posterior.sweeps,
        reading.names,
        reading.interval,
        drift,
        tuple(known.told),
        np.append(scale, 1.0) if scale.std() > _UNEVEN else None,
        reading.time,
        engine="posterior",
    )


def _link_model(
    found: Learned, shown: Kinematics, gate: tuple[float, ...], known: Known, asked: int | None
) -> LinkModel:
    """Motion model of one velocity and diffusion whose steps have the same correlations, in given units.

    The longest gap is the one asked for, or the longest that occurs.
    """
    moved = np.maximum(np.square(shown.step) - 2 * np.square(shown.noise), 0.0)
    kept = max(shown.kept, 0.0), max(shown.later, 0.0)
    motion = ornstein_uhlenbeck(moved, kept, tuple(shown.noise.tolist()))
    whole = known.held(link_model(found.model, motion, gate))
    return whole if asked is not None else replace(whole, follow=_shown(whole.follow, len(found.movie)))


def _shown(follow: tuple[float, ...], detections: int) -> tuple[float, ...]:
    """Probabilities of the next detection after 1, 2, … frames, without late ones that occur in no link.

    Examples
    --------
    >>> [round(rate, 4) for rate in _shown((0.9, 0.05, 0.002, 1e-6), 1000)]
    [0.9, 0.05, 0.002]
    """
    often = np.flatnonzero(np.asarray(follow) * detections >= 1)
    many = int(often[-1]) + 1 if len(often) else 1
    kept = np.asarray(follow[:many])
    return tuple((kept * sum(follow) / max(kept.sum(), 1e-300)).tolist())


def _neighbours(found: Learned, drift: NDArray[np.float64] | None) -> int | None:
    """Number of neighbours whose steps predict that of a particle: 0 for the whole frame, None for none."""
    movie, flow, motion = found.movie, found.model.surroundings.flow, found.model.motion
    local = flow - movie.mean_by_frame(flow)[movie.frame]
    shared, own = float(np.square(local).sum(axis=1).mean()), float((motion.share @ motion.variance).sum())
    if shared > _SHARED * (shared + own):
        return OUTER
    return None if drift is None else 0


def _drift(reading: Reading, found: Learned, shown: Kinematics) -> NDArray[np.float64] | None:
    """(F, A) shift of each frame relative to the first, if frames shift by more than the scatter of steps.

    It is made of the jumps that were taken out of the positions, and of the mean flow.
    """
    movie, start = found.movie, reading.frame_start
    held = np.diff(start) > 0
    rows = start[:-1][held]
    jumped = (reading.position - reading.position.mean(axis=0))[rows] @ movie.basis - movie.position[rows]
    flow = movie.mean_by_frame(found.model.surroundings.flow)[held]
    seen = (jumped - jumped[0] + np.cumsum(flow, axis=0) - flow) @ np.linalg.pinv(movie.basis)
    error = np.linalg.norm(shown.step) / np.sqrt(np.diff(start)[held][1:])
    if not (np.linalg.norm(np.diff(seen, axis=0), axis=1) > _CLEAR * error).any():
        return None
    return np.asarray(seen[np.maximum(np.cumsum(held) - 1, 0)])
