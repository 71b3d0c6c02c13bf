"""Learned linking behind one door: what `track` asks where no gate is given.

Two engines answer alike. `calibrate` links, learns and links again; `learn` finds the posterior over links.
`_engine_for` says which: the one place where that is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ._timing import lap
from .calibrate import calibrate
from .calibrate.calibration import Calibration
from .calibrate.known import EACH_AXIS, Known
from .calibrate.maximise import gate_of
from .detections import Detections
from .inference.decide import decide
from .learn import Learned, learn
from .learn.errors import Kinematics, standard_errors
from .learn.field import OUTER
from .learn.fixed import Fixed
from .learn.options import LearnOptions
from .lineage import with_divisions
from .linking import Links
from .motion import Motion
from .refine.linking import LinkModel
from .refine.movie import Movie as Reading
from .refine.movie import movie_of

_ROOM = 1.5
"""Prior: distances to the nearest neighbour that a gate has at least, as far as steps allow."""
_CLEAR = 5.0
"""Error level: standard errors by which a frame's shift, or what neighbours predict, is no chance."""
_SHARED = 0.1
"""Error level: share of the variance of displacements that neighbours predict, above which they are named."""
_UNEVEN = 0.01
"""Error level: standard deviation of step scales below which all intervals are alike."""
_SHORT = 0.5
"""Error level: frames of persistence below which a velocity is none."""
_LEAST = 1e-6
"""Guard: least rate of a summary, whose rates lie between 0 and 1."""


@dataclass(frozen=True)
class Asked:
    """What is asked of learned linking; as in `TrackingSettings` and `track`.

    Parameters
    ----------
    spacing : (float, float, float)
        Size of a voxel along z, y, x.
    max_gap : int, optional
        Frames in which a particle may be missing. Default: learned.
    forward_only : bool
        Whether links use the past alone.
    divisions, merges : bool
        Whether they are looked for.
    known : mapping
        Values that are given, not learned.
    solver : str
    exact_margins : bool
        Whether margins are exact instead of lower bounds.
    workers : int
        Threads; they do not change the result.
    most_bytes : int, optional
        Memory that candidate pairs may take.
    progress : callable, optional
        Called with (detections done, detections in all).
    """

    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    max_gap: int | None = None
    forward_only: bool = False
    divisions: bool = True
    merges: bool = False
    known: Mapping[str, float | tuple[float, ...]] | None = None
    solver: str = "bid_and_augment"
    exact_margins: bool = False
    workers: int = 1
    most_bytes: int | None = None
    progress: Callable[[int, int], None] | None = None


Engine = Callable[[Detections, Asked], tuple[Calibration, Links]]


def learned_links(detections: Detections, asked: Asked | None = None) -> tuple[Calibration, Links]:
    """What a movie shows of its particles, and the links by that.

    Parameters
    ----------
    detections : Detections
    asked : Asked, optional

    Returns
    -------
    Calibration, Links

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> place = rng.uniform(0, 9, (200, 3)) + np.cumsum(rng.normal(0, 0.1, (12, 200, 3)), axis=0)
    >>> movie = Detections.from_table(np.repeat(np.arange(12), 200), place.reshape(-1, 3))
    >>> shown, links = learned_links(movie)
    >>> shown.step.round(2).tolist(), len(links.pairs)
    ([0.1, 0.1, 0.1], 2200)
    """
    asked = asked or Asked()
    return _engine_for(asked)(detections, asked)


def _engine_for(asked: Asked) -> Engine:
    """Which engine links: by whether divisions, merges or links by the past alone are asked for."""
    if asked.divisions or asked.merges or asked.forward_only:
        return by_passes
    return by_passes  # by_posterior, once it is as accurate on every kind of movie


def by_passes(detections: Detections, asked: Asked) -> tuple[Calibration, Links]:
    """Link, learn, and link again: `calibrate`."""
    return calibrate(
        detections, spacing=asked.spacing, max_gap=asked.max_gap, two_sided=not asked.forward_only,
        divisions=asked.divisions, merges=asked.merges, known=asked.known, solver=asked.solver,
        exact_margins=asked.exact_margins, workers=asked.workers, most_bytes=asked.most_bytes,
        progress=asked.progress,
    )  # fmt: skip


def by_posterior(detections: Detections, asked: Asked) -> tuple[Calibration, Links]:
    """Learn the posterior over links, and decide: `learn`. Neither merges nor links by the past alone."""
    reading = movie_of(detections, asked.spacing, holes=asked.max_gap is None)
    known = Known.of(asked.known or {}, reading.names)
    found = learn(reading.position, reading.frame_start, _options(asked, known), time=reading.time)
    lap("learning")
    if asked.divisions:
        links, _ = with_divisions(
            found.movie, found.model, found.posterior, solver=asked.solver, exact=asked.exact_margins
        )
    else:
        some = found.posterior
        links = decide(some.candidates, some.probability, solver=asked.solver, exact=asked.exact_margins)
    lap("deciding")
    summary = _summary(reading, known, found, asked.workers)
    lap("errors of what is learned")
    if asked.progress is not None:
        asked.progress(len(detections), len(detections))
    return summary, _as_given(links, reading.order)


def _options(asked: Asked, known: Known) -> LearnOptions:
    """Options of learning."""
    each = {name: values for name, values in known.told.items() if name in EACH_AXIS}
    one = {name: value for name, (value, *_) in known.told.items() if name not in EACH_AXIS}
    options = LearnOptions(fixed=Fixed(**each, **one), workers=asked.workers)  # type: ignore[arg-type]
    if asked.max_gap is None:
        return options
    return replace(options, longest_lag=asked.max_gap + 1, gaps=asked.max_gap > 0)


def _as_given(links: Links, order: NDArray[np.int64]) -> Links:
    """The links between rows as they were given, sorted by source and target."""
    pairs = order[links.pairs]
    place = np.lexsort((pairs[:, 1], pairs[:, 0]))
    assert links.probability is not None
    return replace(
        links, pairs=pairs[place], cost=links.cost[place], margin=links.margin[place],
        probability=links.probability[place],
    )  # fmt: skip


def _summary(reading: Reading, known: Known, found: Learned, workers: int) -> Calibration:
    """What was learned, as all that read it know it."""
    shown = Kinematics.of(found.movie, found.model)
    errors = standard_errors(found.movie, found.model, found.posterior, workers)
    scale = found.model.motion.step_scale / np.sqrt(found.movie.spread)
    return Calibration(
        _link_model(found, shown, known),
        _neighbours(found),
        known.step(shown.step),
        {name: error for name, error in errors.items() if name not in known.told},
        found.posterior.sweeps,
        reading.names,
        reading.interval,
        _drift(reading, found, shown),
        tuple(known.told),
        np.append(scale, 1.0) if scale.std() > _UNEVEN else None,
        reading.time,
    )


def _link_model(found: Learned, shown: Kinematics, known: Known) -> LinkModel:
    """The model of one Ornstein-Uhlenbeck velocity and diffusion with the same correlations of steps."""
    rates, noise = found.model.association, shown.noise
    moved = np.maximum(np.square(shown.step) - 2 * np.square(noise), 0.0)
    kept, later = max(shown.kept, 0.0), max(shown.later, 0.0)
    lasting = min(later / kept, 1 - _LEAST) if kept > 0 else 0.0
    motion = Motion.static(tuple(np.sqrt(moved).tolist()), tuple(noise.tolist()))
    if lasting > np.exp(-1 / _SHORT):
        time = -1 / np.log(lasting)
        unit = Motion((0.0,), (1.0,), time, (0.0,)).step_variance(1)[0]
        speed2 = np.minimum(moved * kept / (time * (1 - lasting)) ** 2, moved / unit)
        diffusion = np.sqrt(np.maximum(moved - speed2 * unit, 0.0))
        motion = Motion(tuple(diffusion.tolist()), tuple(np.sqrt(speed2).tolist()), time, motion.noise)
    real = 1 - rates.clutter
    end, start = (
        float(np.clip(1 - real * delay.sum(), _LEAST, 1 - _LEAST))
        for delay in (rates.delay, rates.delay_back)
    )
    clutter = min(rates.clutter, (1 - _LEAST) * min(end, start))
    spacing = float(np.sqrt(found.movie.variance_given(np.ones(found.movie.axes)).mean()))
    gate = gate_of(shown.step, _ROOM * spacing)
    follow = tuple((real * rates.delay).tolist())
    return known.held(LinkModel(motion, follow, end, start, gate, clutter=clutter))


def _neighbours(found: Learned) -> int | None:
    """How many neighbours predict a step; None if they hardly do."""
    flow = found.model.surroundings.flow
    shared = float(np.square(flow).sum(axis=1).mean())
    motion = found.model.motion
    own = float((motion.share @ motion.variance).sum())
    return OUTER if shared > _SHARED * (shared + own) else None


def _drift(reading: Reading, found: Learned, shown: Kinematics) -> NDArray[np.float64] | None:
    """(F, A) where each frame lies against the first, if frames shift by more than steps scatter."""
    movie, start = found.movie, reading.frame_start
    held = np.diff(start) > 0
    rows = start[:-1][held]
    centred = (reading.position - reading.position.mean(axis=0))[rows] @ movie.basis - movie.position[rows]
    seen = (centred - centred[0]) @ np.linalg.pinv(movie.basis)
    error = np.linalg.norm(shown.step) / np.sqrt(np.diff(start)[held][1:])
    if not (np.linalg.norm(np.diff(seen, axis=0), axis=1) > _CLEAR * error).any():
        return None
    return np.asarray(seen[np.maximum(np.cumsum(held) - 1, 0)])
