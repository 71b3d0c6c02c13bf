"""Live linking: link each frame as it is recorded, with a model learned from an earlier recording."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compute.threads import computing
from ..errors import InputError, SettingsError
from ..particles.calibration import Calibration, calibration_given
from .inference.decide import decide
from .inference.jpda import updated
from .inference.posterior import LinkPosterior
from .learn.em import with_gaps
from .learn.options import LearnOptions
from .model import LocalFields, Model
from .model.features import Features
from .prepare import HOLE
from .summary import Summary
from .window import Window

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
        self._window, self._tracks = Window.empty(learned.basis, features), 0

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

    def _joined(self, window: Window) -> Joined:
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

    def _posterior(self, window: Window) -> tuple[LinkPosterior, Window]:
        """Two sweeps, the first with all candidates of the new frame; the flow follows from the first."""
        movie, model = window.movie, self._model(window)
        posterior = with_gaps(movie, model, window.known, self._options)
        window = window.with_flow_of(posterior)
        posterior = updated(
            movie, self._model(window), posterior, omega=_OMEGA, with_moments=False,
        )  # fmt: skip
        return posterior, replace(window, tail=posterior.candidates.tail, head=posterior.candidates.head,
            probability=posterior.probability, competing=posterior.competing)  # fmt: skip

    def _model(self, window: Window) -> Model:
        """The learned model, with the flow of the window and even steps."""
        motion = replace(self._learned.motion, step_scale=np.ones(len(window.movie.intervals)))
        features = None if self._columns is None else self._columns.model
        return Model(motion, self._rates, LocalFields.uniform(window.flow), features)
