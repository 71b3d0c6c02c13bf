"""Live linking: link each frame as it is recorded, with a model learned from an earlier recording."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compute.arrays import LINK, LINK_BY_SIDE, ROW, Arrays
from ..compute.threads import computing
from ..errors import InputError, SettingsError
from ..geometry.neighbours import nearest
from ..particles.calibration import Calibration, calibration_given
from .inference.candidates import candidates_of
from .inference.decide import decide
from .inference.jpda import updated
from .inference.posterior import LinkPosterior
from .learn.em import with_gaps
from .learn.field import Fields
from .learn.m_steps import raw_steps
from .learn.options import LearnOptions
from .learn.registration import frame_shifts
from .learn.starts import first_candidates, first_order
from .model import LocalFields, Model
from .model.features import Features
from .model.movie import OUTER, Movie, movie_of
from .prepare import HOLE
from .summary import Summary

_LOG = logging.getLogger("outbid")
_MEMORY = 4
"""Prior: frames beside those of the longest gap; more frames add little to an estimated velocity."""
_OMEGA = 1.0
"""Prior: exponent of competing weights; by the past alone few links correct each other, and all compete."""
_LIKELY = 1e-3
"""Error level: probability of a link below which it is no longer followed."""


@dataclass(frozen=True, eq=False)
class Joined:
    """The links found for the detections of one frame.

    Parameters
    ----------
    track : (M,) int64 array
        The track of each, numbered as they begin.
    probability : (M,) float64 array
        Of the link to the track's last detection; 0 where a track begins.
    gap : float
        Between the cost of the frame's links and its lower bound, in nats; 0 proves them optimal.
    """

    track: NDArray[np.int64]
    probability: NDArray[np.float64]
    gap: float


class Live:
    """Tracks that grow frame by frame; each frame is linked by an exact assignment that uses the past alone.

    The latest frames are a window. A new frame gets its candidates and the flow to it from displacements,
    then two sweeps of the posterior under the learned model follow. The last frame has no future, so its
    links are weighed by the past alone. Links are decided once: those of earlier frames stay, but the
    posterior keeps the candidates that compete with them. A track ends after more frames without a detection
    than the longest gap that was learned. If frames that were not recorded were found (no detection where
    there were many particles), an empty frame counts as not recorded, not as one in which all particles are
    missed; after more than ten empty frames, all tracks end.

    If the earlier recording was linked with columns, `add` takes them as well. They count by their ranks in
    the latest thousand detections, relative to their frame and neighbours, as they do in a whole movie.
    Frames without them are linked by positions alone; a warning says so once.

    Parameters
    ----------
    learned : Summary
        Of an earlier recording of the same kind, or of the first frames of this one: ``track(…).learned``.
    calibration : Calibration, optional
        What the positions of the frames mean, in the unit of the earlier recording. By default they are
        places in that unit.
    solver : str
        As in `TrackingSettings`.
    workers : int
        Threads; they do not change the result.
    spacing
        The former argument, for one release.

    Examples
    --------
    >>> from ..particles.detections import Detections
    >>> from ..tracking import track
    >>> rng = np.random.default_rng(0)
    >>> place = rng.uniform(0, 9, (200, 3)) + np.cumsum(rng.normal(0, 0.1, (12, 200, 3)), axis=0)
    >>> recorded = Detections.from_table(np.repeat(np.arange(6), 200), place[:6].reshape(-1, 3))
    >>> live = Live(track(recorded).learned)
    >>> found = [live.add(points) for points in place]
    >>> all((each.track == np.arange(200)).mean() > 0.98 for each in found)
    True
    """

    def __init__(
        self,
        learned: Summary,
        *,
        calibration: Calibration | None = None,
        solver: str = "bid_and_augment",
        workers: int = 1,
        spacing: Sequence[float] | None = None,
    ) -> None:
        self._learned, self._solver = learned, solver
        self._calibration = calibration_given(calibration, spacing=spacing)
        if isinstance(calibration, Calibration) and learned.unit not in ("", "px", self._calibration.symbol):
            raise SettingsError(
                f"The positions are in {self._calibration.symbol}, and the model was learned in "
                f"{learned.unit}. Convert them, or give a calibration in {learned.unit}."
            )
        self._axes = ["zyx".index(axis) for axis in learned.axes]
        self._options = LearnOptions(dropped=_LIKELY, workers=workers)
        lags, rates = len(learned.follow), learned.association
        self._rates = replace(rates, delay=rates.delay[:lags], delay_back=rates.delay_back[:lags])
        self._frames = _MEMORY + lags - 1
        ahead = np.ones(1, np.int64) if learned.time is None else np.diff(learned.time)
        self._skips, self._waited = learned.time is not None, 0
        # The frames of an uneven recording were taken one by one: so are these.
        self._uneven = self._skips and bool((ahead == 1).all())
        self._columns, self._warned = learned.latest, False
        features = None if self._columns is None else self._columns.unknown(0)
        self._window, self._tracks = _Window.empty(learned.basis, features), 0

    def add(
        self, position: ArrayLike, *, after: int = 1, features: Mapping[str, ArrayLike] | None = None
    ) -> Joined:
        """Link the detections of the next frame.

        Parameters
        ----------
        position : (M, 3) array_like of float
            z, y, x; M may be 0.
        after : int
            Intervals since the frame before: 2 or more where frames were not recorded. Without effect if
            those of the earlier recording came at uneven times.
        features : mapping of str to (M,) array_like, optional
            Columns, of which those count with which the earlier recording was linked.

        Returns
        -------
        Joined

        Raises
        ------
        InputError
            If they are no finite positions, or come before the frame before; or if columns are missing.
        """
        if after < 1:
            raise InputError(f"The frame comes {after} intervals after the one before: it must be 1 or more.")
        points = np.asarray(position, dtype=np.float64)
        points = points.reshape(0, 3) if points.size == 0 else points
        if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
            raise InputError(
                "A frame is an array (M, 3) of finite positions z, y, x. Fix it, and add it again."
            )
        given = self._calibration.placed(points)[:, self._axes]
        place, columns = given @ self._learned.basis, self._of_frame(given, features)
        if self._skips and not len(place):
            self._waited += after
            return Joined(np.empty(0, np.int64), np.empty(0), 0.0)
        after, self._waited = 1 if self._uneven else after + self._waited, 0
        earlier = self._window.latest(0 if after > HOLE + 1 else self._frames - 1)
        with computing(self._options.workers):
            return self._joined(earlier.with_frame(place, after, columns))

    @property
    def tracks(self) -> NDArray[np.int64]:
        """The tracks of the latest frames, which alone may go on."""
        return np.unique(self._window.track)

    def state(self) -> dict[str, NDArray]:
        """What it knows of the latest frames, as arrays: another `Live` of the same model goes on with it."""
        counts = np.array([self._tracks, self._waited])
        columns = {} if self._columns is None else self._columns.arrays()
        return {"counts": counts, **self._window.arrays(), **columns}

    def restore(self, state: Mapping[str, NDArray]) -> None:
        """Go on with the `state` of another one."""
        self._tracks, self._waited = state["counts"].tolist()
        self._window = self._window.of_arrays(state)
        if self._columns is not None:
            self._columns = self._columns.of_arrays(state)

    def _of_frame(self, place: NDArray[np.float64], given: Mapping[str, ArrayLike] | None) -> Features | None:
        """The features of a frame's detections; None if columns do not count."""
        if self._columns is None:
            return None
        if len(place) and given is not None:
            self._columns, found = self._columns.with_frame(place, given)
            return found
        if len(place) and not self._warned:
            named = ", ".join(self._columns.wanted)
            _LOG.warning(
                "The earlier recording was linked with columns (%s), which these frames lack.", named
            )
            self._warned = True
        return self._columns.unknown(len(place))

    def _joined(self, window: _Window) -> Joined:
        """Link the latest frame and store the result."""
        new, count = window.new, window.new.stop - window.new.start
        source, probability, gap = np.full(count, -1), np.zeros(count), 0.0
        if count and new.start:
            window = window.with_flow(self._options)
            posterior, window = self._posterior(window)
            links = decide(*window.open_links(posterior), solver=self._solver)
            assert links.probability is not None
            head, gap = links.pairs[:, 1] - new.start, links.gap
            source[head], probability[head] = links.pairs[:, 0], links.probability
        begins = source < 0
        track = np.where(begins, -1, window.track[source] if new.start else -1)
        track[begins] = self._tracks + np.arange(begins.sum())
        self._tracks += int(begins.sum())
        self._window = window.joined(track, source[~begins])
        return Joined(track, probability, gap)

    def _posterior(self, window: _Window) -> tuple[LinkPosterior, _Window]:
        """Two sweeps, the first with all candidates of the new frame; the flow follows from the first."""
        movie, model = window.movie, self._model(window)
        posterior = with_gaps(movie, model, window.known, self._options)
        window = window.with_flow_of(posterior)
        posterior = updated(
            movie, self._model(window), posterior, omega=_OMEGA, with_moments=False,
        )  # fmt: skip
        return posterior, replace(window, tail=posterior.candidates.tail, head=posterior.candidates.head,
            probability=posterior.probability, competing=posterior.competing)  # fmt: skip

    def _model(self, window: _Window) -> Model:
        """The learned model, with the flow of the window and even steps."""
        motion = replace(self._learned.motion, step_scale=np.ones(len(window.movie.intervals)))
        features = None if self._columns is None else self._columns.model
        return Model(motion, self._rates, LocalFields.uniform(window.flow), features)


@dataclass(frozen=True, eq=False)
class _Window(Arrays):
    """The latest frames, with the tracks of their detections and the candidate links between them.

    Parameters
    ----------
    movie : Movie
        In the coordinates of the inference.
    track : (N,) int64 array
        -1 in the last frame, until it is linked.
    ended : (N,) bool array
        Whether no link leads on from it.
    flow : (N, D) float64 array
        Step to the next frame that a detection shares with its neighbours.
    near : (N, 24) int32 array
        Nearest detections of the same frame, counted from its first; -1 for none.
    tail, head, probability : (E,) arrays
        Candidate links, and their probabilities in the last sweep.
    competing : (2, E) float64 array
        As in `LinkPosterior`.
    """

    movie: Movie
    track: NDArray[np.int64] = field(metadata=ROW)
    ended: NDArray[np.bool_] = field(metadata=ROW)
    flow: NDArray[np.float64] = field(metadata=ROW)
    near: NDArray[np.int32] = field(metadata=ROW)
    tail: NDArray[np.int32] = field(metadata=LINK)
    head: NDArray[np.int32] = field(metadata=LINK)
    probability: NDArray[np.float64] = field(metadata=LINK)
    competing: NDArray[np.float64] = field(metadata=LINK_BY_SIDE)

    @classmethod
    def empty(cls, basis: NDArray[np.float64], features: Features | None) -> _Window:
        """State before the first frame."""
        place, row, link = np.empty((0, basis.shape[1])), np.empty(0, np.int64), np.empty(0, np.int32)
        movie = Movie(
            position=place, frame=row, frame_start=np.zeros(1, np.int64), density=np.empty(0), basis=basis,
            time=row, features=features,
        )  # fmt: skip
        return cls(
            movie=movie, track=row, ended=row > 0, flow=place, near=np.empty((0, OUTER), np.int32),
            tail=link, head=link, probability=np.empty(0), competing=np.empty((2, 0)),
        )  # fmt: skip

    def arrays(self) -> dict[str, NDArray]:
        """All arrays by name; those of the movie begin with a dot."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        movie = own.pop("movie")
        within = {f".{one.name}": getattr(movie, one.name) for one in fields(movie)}
        if (columns := within.pop(".features")) is not None:
            within |= {f"..{one.name}": getattr(columns, one.name) for one in fields(columns)}
        return {name: values for name, values in (own | within).items() if values is not None}

    def of_arrays(self, arrays: Mapping[str, NDArray]) -> _Window:
        """The window of `arrays`."""
        inside: dict[str, Any] = {
            name[1:]: values for name, values in arrays.items() if name.startswith(".") and name[1] != "."
        }
        if self.movie.features is not None:
            inside["features"] = Features(*(arrays[f"..{one.name}"] for one in fields(Features)))
        own = {one.name: arrays[one.name] for one in fields(self) if one.name != "movie"}
        return replace(self, movie=replace(self.movie, **inside), **own)

    @property
    def new(self) -> slice:
        """Rows of the last frame."""
        return slice(*self.movie.frame_start[-2:].tolist())

    @property
    def known(self) -> LinkPosterior:
        """The candidates between earlier frames."""
        key = self.tail * np.int64(len(self.movie)) + self.head
        return LinkPosterior.begun(candidates_of(key, self.movie.frame), self.probability, self.competing)

    def latest(self, frames: int) -> _Window:
        """The latest frames, at most this many."""
        first = max(self.movie.frames - frames, 0)
        row = int(self.movie.frame_start[first])
        part = self.take("row", slice(row, None)).take("link", self.tail >= row)
        movie = part.movie.during(slice(first, self.movie.frames))
        return replace(part, movie=movie, tail=part.tail - row, head=part.head - row)

    def with_frame(self, place: NDArray[np.float64], after: int, features: Features | None) -> _Window:
        """The window with one more frame, `after` intervals later."""
        movie, count = self.movie, len(place)
        assert movie.time is not None
        # A lone detection shows no density: it has that of the frames before.
        density = np.full(count, np.median(movie.density)) if len(movie) else np.ones(count)
        near = np.full((count, OUTER), -1, np.int32)
        if count > 1:
            shown = movie_of(place, np.array([0, count]), spacing=1.0)
            density, near = shown.density, shown.near if shown.near is not None else near
        last = int(movie.time[-1]) if movie.frames else 0
        alone = replace(
            movie, position=place, frame=np.full(count, movie.frames), density=density, features=features
        )  # fmt: skip
        new = replace(
            self, movie=alone, track=np.full(count, -1), ended=np.ones(count, np.bool_),
            flow=np.zeros_like(place), near=near,
        )  # fmt: skip
        grown = self.join(new, "row")
        start = np.append(movie.frame_start, movie.frame_start[-1] + count)
        time = np.append(movie.time, last + after)
        return replace(grown, movie=replace(grown.movie, frame_start=start, time=time))

    def _pair(self) -> tuple[Movie, slice]:
        """The last frame and the one before, and the rows of the latter."""
        pair = self.latest(2)
        near, many = pair.near.copy(), int(pair.movie.frame_start[1])
        near[many:][near[many:] >= 0] += many
        begin = len(self.movie) - len(pair.movie)
        return replace(pair.movie, near=near), slice(begin, begin + many)

    def with_flow(self, options: LearnOptions) -> _Window:
        """The window with the flow to the last frame, estimated from displacements."""
        pair, before = self._pair()
        if before.start == before.stop:
            return self
        steady = np.zeros_like(pair.position)
        steady[: before.stop - before.start] = self._steady(before)
        flow = min((0 * steady, steady), key=partial(_distance, pair))
        flow += frame_shifts(pair.position + flow, pair.frame_start)[pair.frame]
        candidates = first_candidates(pair, flow, max(options.nearest // 2, 1))
        found = first_order(pair, candidates, flow, Fields.of(pair))
        return self._with_flow(before, found.flow)

    def _steady(self, before: slice) -> NDArray[np.float64]:
        """(M, D) flow of the frame before as it was around each of its detections one frame earlier."""
        start = self.movie.frame_start[-4:]
        if len(start) < 4 or start[0] == start[1] or before.start != start[1]:
            return np.zeros_like(self.movie.position[before])
        rows = slice(int(start[0]), int(start[2]))
        place = self.movie.position[rows].copy()
        earlier = slice(0, int(start[1] - start[0]))
        place[earlier] += self.flow[rows][earlier]
        asking = np.arange(earlier.stop, len(place))
        near, _ = nearest(place, start[:3] - start[0], asking, 1, offset=-1)
        lasts = np.diff(self.movie.time[-3:])  # type: ignore[index]
        return self.flow[rows][near[:, 0]] * (lasts[1] / lasts[0])

    def with_flow_of(self, posterior: LinkPosterior) -> _Window:
        """The window with the flow to the last frame, estimated from probable links."""
        pair, before = self._pair()
        if before.start == before.stop:
            return self
        step, weight = (each[before.start :] for each in raw_steps(self.movie, posterior))
        return self._with_flow(before, Fields.of(pair).flow(step, weight))

    def _with_flow(self, before: slice, flow: NDArray[np.float64]) -> _Window:
        """The window with the flow (M, D) of the frame before the last."""
        changed = self.flow.copy()
        changed[before] = flow[: before.stop - before.start]
        return replace(self, flow=changed)

    def open_links(self, posterior: LinkPosterior) -> tuple:
        """The candidates that join the end of a track to a detection of the last frame; probabilities."""
        candidates = posterior.candidates
        may = self.ended[candidates.tail] & (candidates.head >= self.new.start)
        return candidates.kept(may), posterior.probability[may]

    def joined(self, track: NDArray[np.int64], source: NDArray[np.int64]) -> _Window:
        """The window whose last frame is linked: each detection gets a track, some a predecessor (rows)."""
        tracks, ended = self.track.copy(), self.ended.copy()
        tracks[self.new], ended[source] = track, False
        return replace(self, track=tracks, ended=ended)


def _distance(pair: Movie, flow: NDArray[np.float64]) -> float:
    """Median squared distance from predicted positions to the nearest detections of the next frame."""
    rows = np.arange(pair.frame_start[1])
    _, square = nearest(pair.position + flow, pair.frame_start, rows, 1, offset=1)
    return float(np.median(square))
