"""Summary: what was learned from a movie, in the user's units, as text and as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import array_module, rows_here, to_host
from ..compute.tolerances import LEAST, NEGLIGIBLE, TINY
from ..particles.reliability import rounded
from .features import ColumnBits, Columns
from .latest import LatestColumns
from .learn import Fit
from .learn.em import LEAST_REACH
from .learn.errors import standard_errors
from .learn.features import bits_of_clutter, bits_of_links
from .learn.registration import CLEAR
from .learn.whole import SHARED
from .model import AssociationModel, MotionModel
from .model.features import clutter_odds
from .model.gate import radius
from .model.movie import OUTER, Movie, weighted
from .prepare import HOLE, Reading

_SHORT = 0.5
"""Error level: persistence in frames below which steps count as independent."""
_UNEVEN = 0.01
"""Error level: standard deviation of step scales below which all intervals are alike."""

_OF_CLASSES = "share", "correlation", "renewal"
_NOT_STATED = "motion", "association", "basis", "columns", "latest"
"""Fields of a summary that are no plain values, or are stated in parts."""


@dataclass(frozen=True, eq=False)
class Summary:
    """What was learned from a movie, in units of position x spacing and in frames.

    Parameters
    ----------
    step : (A,) float64 array
        Root mean square displacement per frame along each axis, as observed.
    noise : (A,) float64 array
        Standard deviation of the localisation error.
    gate : (A,) float64 array
        Distance from the predicted position within which successors are searched in the next frame.
    persistence_frames : float
        Correlation time: frames over which the correlation of the steps relative to the flow decreases
        to 1/e, from its decrease between one and two frames; 0 if there is hardly any. Walls, which reverse
        particles, and turns shorten it.
    follow : tuple of float
        Probabilities that the next detection of a particle is 1, 2, … frames later.
    end, start : float
        Probability of no successor, and of no predecessor.
    clutter : float
        Probability that a detection is clutter.
    neighbours : int or None
        Number of neighbours that predict the step of a particle; 0 means the whole frame, None no prediction.
    uncertainty : mapping of str to float
        Standard errors of step, persistence_frames, noise, end and start, if these were learned.
    sweeps : int
        Number of sweeps of the posterior.
    axes : str
        The A axes (of z, y, x) to which the values refer; axes without variation are omitted.
    motion, association : MotionModel, AssociationModel
        The model, in the coordinates of the inference.
    basis : (A, D) float64 array
        Matrix that converts displacements to these coordinates.
    interval : int
        Difference between the numbers of consecutive frames. If it is not 1, all values per frame refer to
        this interval.
    drift : (F, A) float64 array or None
        Offset of each frame relative to the first one, if whole frames drift. F is the length of `time`, or
        else the number of intervals from the first frame to the last.
    step_scale : (F - 1,) float64 array or None
        Step from each frame to the next relative to the root mean square over all frames, if it varies.
    time : (F,) int64 array or None
        Time of each frame in intervals, if some frames in between were apparently not recorded (none of many
        particles has a detection in them); consecutive numbers if frames are unevenly spaced.
    known : tuple of str
        Names of the values that were fixed, not learned.
    columns : ColumnBits or None
        What columns say, if there are any.
    unit : str
        Short name of the unit of lengths; empty if it is not known.
    latest : LatestColumns or None
        Columns of the last frames, by which `Live` goes on.
    """

    step: NDArray[np.float64]
    noise: NDArray[np.float64]
    gate: NDArray[np.float64]
    persistence_frames: float
    follow: tuple[float, ...]
    end: float
    start: float
    clutter: float
    neighbours: int | None
    uncertainty: Mapping[str, float]
    sweeps: int
    axes: str
    motion: MotionModel
    association: AssociationModel
    basis: NDArray[np.float64]
    interval: int = 1
    drift: NDArray[np.float64] | None = None
    step_scale: NDArray[np.float64] | None = None
    time: NDArray[np.int64] | None = None
    known: tuple[str, ...] = ()
    columns: ColumnBits | None = None
    unit: str = ""
    latest: LatestColumns | None = None

    def __str__(self) -> str:
        axes, error, unit = self.axes, self.uncertainty, f" {self.unit}" if self.unit else ""
        lasts, within = self.persistence_frames, _within(error, "persistence_frames", " ± {}")
        persistence = f"persistence {lasts:.3g}{within} frames" if lasts > 0 else "no persistence"
        local = self.neighbours is not None
        flow = (
            f"mean step of {self.neighbours} neighbours"
            if self.neighbours
            else "mean step of the whole frame"
        )
        fixed = f"\nFixed, not learned: {', '.join(self.known)}." if self.known else ""
        fixed += "" if self.columns is None else f"\n{self.columns}"
        return (
            f"{self._frames()}Step per frame: {_each(self.step, axes)}{_within(error, 'step')}{unit}; "
            f"{persistence}. {f'Neighbour flow: {flow}. ' if local else ''}"
            f"Localisation noise: {_each(self.noise, axes)}{_within(error, 'noise')}{unit}. "
            f"Gate: {_each(self.gate, axes)}{unit}.\n"
            f"Per detection, {_percent(self.end)}{_within(error, 'end', shown=_percent)} of tracks end "
            f"and {_percent(self.start)}{_within(error, 'start', shown=_percent)} start; "
            f"{_percent(self.clutter)} of detections are clutter. Next detection after 1, 2, … frames: "
            f"{', '.join(map(_percent, self.follow))}.{fixed}"
        )

    @property
    def persistence(self) -> float:
        """The former name of `persistence_frames`, for one release."""
        return self.persistence_frames

    @property
    def warning(self) -> str:
        """A warning of columns that say where detections are; else empty."""
        return "" if self.columns is None else self.columns.warning

    def _frames(self) -> str:
        """Sentences about what differs from frame to frame."""
        messages = "" if self.interval == 1 else f"Frame numbers increase by {self.interval}. "
        if self.time is not None:
            ahead = np.diff(self.time)
            lost = int((ahead - 1)[ahead <= HOLE + 1].sum())
            messages += (
                "Frames are unevenly spaced in time and are linked in sequence. "
                if (ahead == 1).all()
                else f"Frames without detections, taken as not recorded: {lost}. "
            )
        if self.drift is not None:
            farthest = float(np.linalg.norm(np.diff(self.drift, axis=0), axis=1).max(initial=0.0))
            messages += f"Whole frames drift by up to {farthest:.3g}; this is corrected. "
        if self.step_scale is not None:
            messages += f"Steps differ from frame to frame by {self.step_scale.std():.0%}. "
        return messages

    def as_dict(self) -> dict[str, object]:
        """Plain values, for run records and summaries."""
        classes = {name: getattr(self.motion, name).tolist() for name in _OF_CLASSES}
        names = [field.name for field in fields(self) if field.name not in _NOT_STATED]
        values = {name: _plain(getattr(self, name)) for name in names} | {"classes": classes}
        return values | ({} if self.columns is None else {"columns": self.columns.as_dict()})


def summarise(
    reading: Reading,
    fit: Fit,
    known: Mapping[str, float | tuple[float, ...]],
    *,
    columns: Columns | None = None,
    shorten: bool = True,
) -> Summary:
    """Sum up what was learned.

    Parameters
    ----------
    reading : Reading
        The movie in the user's units.
    fit : Fit
    known : mapping
        The values that were fixed, as `known.values_along`.
    columns : Columns, optional
        Those that were given to learning.
    shorten : bool
        Whether to leave out late detections that occur in no link; not if a longest gap was given.
    """
    movie, motion, rates = fit.movie, fit.model.motion, fit.model.association
    given = movie.variance_given
    own = np.sqrt(given(weighted(motion.share, motion.variance) + 2 * motion.noise))  # beside the flow
    flow = fit.model.local.flow
    flow = flow @ array_module(flow).asarray(np.linalg.pinv(movie.basis))
    reach = max(radius(motion, 1, NEGLIGIBLE * float(np.median(movie.density))), LEAST_REACH)
    mean = movie.mean_by_frame(fit.model.local.flow)
    drift, scale = _drift(reading, movie, mean, own), motion.step_scale
    summary = Summary(
        step=np.sqrt(np.square(own) + movie.mean_square(flow)), noise=np.sqrt(given(motion.noise)),
        gate=np.sqrt(given(np.full(movie.axes, reach**2))),
        persistence_frames=persistence_of(motion.kept(1), motion.kept(2)),
        follow=_follow(rates, len(movie) if shorten else None), end=_rate(rates.clutter, rates.delay),
        start=_rate(rates.clutter, rates.delay_back), clutter=rates.clutter,
        neighbours=_neighbours(fit, mean, drift), uncertainty=_WhenRead(fit, tuple(known)),
        sweeps=fit.posterior.sweeps, axes=reading.axes, motion=motion, association=rates,
        basis=movie.basis, interval=reading.interval, drift=drift,
        step_scale=scale if scale.std() > _UNEVEN else None, time=reading.time,
        columns=None if columns is None else _bits(fit, columns),
    )  # fmt: skip
    return _with_known(summary, known)


def _bits(fit: Fit, columns: Columns) -> ColumnBits:
    """What columns say, by the movie that they were learned from."""
    part, features = fit.motion_from, fit.model.features
    links = bits_of_links(part.movie, part.posterior, columns.blocks, columns.labels)
    if features is None or not features.links():  # they explain less than they cost
        links = dict.fromkeys(links, 0.0)
    odds = clutter_odds(part.movie.features, features, part.model.association.clutter)
    return ColumnBits(links, bits_of_clutter(odds), columns.by_place)


def persistence_of(kept: float, later: float) -> float:
    """Correlation time in frames, from the correlations of steps one and two frames apart.

    Examples
    --------
    >>> round(persistence_of(0.4, 0.3), 2), persistence_of(0.02, 0.0004)
    (3.48, 0.0)
    """
    ratio = min(later / kept, 1 - LEAST) if kept > 0 else 0.0
    return float(-1 / np.log(ratio)) if ratio > np.exp(-1 / _SHORT) else 0.0


def _with_known(summary: Summary, known: Mapping[str, float | tuple[float, ...]]) -> Summary:
    """The summary with the values that were fixed, which have no standard error."""
    stated = {
        name: np.asarray(value) if isinstance(value, tuple) else value
        for name, value in known.items()
        if name != "miss"  # it is in `follow`
    }
    return replace(summary, **stated, known=tuple(known))  # type: ignore[arg-type]


class _WhenRead(Mapping[str, float]):
    """Standard errors, computed when one is read first: that takes a sixth of the time of a small movie.

    Those of what was fixed are none; those of end and start are of shares of so many detections. Until they
    are read, the part of the movie from which motion was learned stays in memory.
    """

    def __init__(self, fit: Fit, known: tuple[str, ...]) -> None:
        part, rates, self._known = fit.motion_from, fit.model.association, known
        rest = {"end": _rate(rates.clutter, rates.delay), "start": _rate(rates.clutter, rates.delay_back)}
        self._ends = {name: float(np.sqrt(p * (1 - p) / len(fit.movie))) for name, p in rest.items()}
        self._given: tuple | None = (replace(part.movie, near=None), part.model, part.posterior)
        self._found: dict[str, float] = {}

    @property
    def _errors(self) -> dict[str, float]:
        if (given := self._given) is not None:
            errors = standard_errors(*given)
            errors |= self._ends if errors else {}
            self._found = {name: error for name, error in errors.items() if name not in self._known}
            self._given = None  # after the errors, for other threads
        return self._found

    def __getitem__(self, name: str) -> float:
        return self._errors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._errors)

    def __len__(self) -> int:
        return len(self._errors)

    def __reduce__(self) -> tuple[type, tuple[dict[str, float]]]:
        return dict, (self._errors,)


def _rate(clutter: float, delay: NDArray[np.float64]) -> float:
    """Probability that a detection, clutter or not, has no link on one side."""
    return float(np.clip(1 - (1 - clutter) * delay.sum(), LEAST, 1 - LEAST))


def _follow(rates: AssociationModel, detections: int | None) -> tuple[float, ...]:
    """Probabilities of the next detection; without late ones that occur less than once."""
    follow = (1 - rates.clutter) * rates.delay
    often = np.flatnonzero(follow * detections >= 1) if detections is not None else np.arange(len(follow))
    many = int(often[-1]) + 1 if len(often) else 1
    kept = follow[:many] * ((1 - _rate(rates.clutter, rates.delay)) / max(follow[:many].sum(), TINY))
    return tuple(kept.tolist())


def _neighbours(fit: Fit, mean: NDArray[np.float64], drift: NDArray[np.float64] | None) -> int | None:
    """Number of neighbours whose steps predict that of a particle: 0 for the whole frame, None for none.

    mean (F, D) is that of the flow.
    """
    movie, flow, motion = fit.movie, fit.model.local.flow, fit.model.motion
    shared = sum(
        float(np.square(column - movie.of_frames(each)).mean())
        for column, each in zip(flow.T, mean.T, strict=True)
    )
    own = float((motion.share @ motion.variance).sum())
    if shared > SHARED * (shared + own):
        return OUTER
    return None if drift is None else 0


def _drift(
    reading: Reading, movie: Movie, mean: NDArray[np.float64], step: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """(F, A) offset of each frame relative to the first, if frames shift by more than the scatter of steps.

    It is the sum of the jumps that were removed from the positions, and of the mean flow (F, D). step (A,)
    is the root mean square displacement relative to the flow.
    """
    start = reading.frame_start
    occupied = np.diff(start) > 0
    rows = start[:-1][occupied]
    first = rows_here(reading.position, rows) - to_host(reading.position.mean(axis=0))
    jumped, flow = first @ movie.basis - rows_here(movie.position, rows), mean[occupied]
    seen = (jumped - jumped[0] + np.cumsum(flow, axis=0) - flow) @ np.linalg.pinv(movie.basis)
    error = np.linalg.norm(step) / np.sqrt(np.diff(start)[occupied][1:])
    if not (np.linalg.norm(np.diff(seen, axis=0), axis=1) > CLEAR * error).any():
        return None
    return np.asarray(seen[np.maximum(np.cumsum(occupied) - 1, 0)])


def _plain(value: object) -> object:
    """Arrays and tuples as lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value


def _within(
    error: Mapping[str, float], name: str, form: str = " (± {})", shown: Callable[[float], str] = rounded
) -> str:
    """The standard error as text, if known."""
    return form.format(shown(error[name])) if name in error else ""


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _each(values: Iterable[float], axes: str) -> str:
    """Text with one value for each axis."""
    return ", ".join(f"{axis} {value:.3g}" for axis, value in zip(axes, values, strict=True))
