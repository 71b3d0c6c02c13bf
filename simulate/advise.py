"""Advice before linking: difficulty of a movie, effect of each gate, and changes to the recording.

Nearest neighbours within a frame give the density; nearest neighbours in the next frame give the step
length (`first_step`). Each gate is then simulated: every particle in some frames of the movie takes a
random step of that length, and the frames are linked with the gate. The truth of these links is known, so
the wrong ones can be counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import chi2

from outbid.errors import InputError, SettingsError, refuse_unlike
from outbid.formats.coerce import DetectionsLike, detections_of
from outbid.formats.tables.columns import AS_NAMED
from outbid.gated.matching import match
from outbid.geometry.gating import pairs_within
from outbid.learned.features import ColumnBits
from outbid.learned.prepare import read_movie
from outbid.particles.calibration import checked_spacing
from outbid.particles.detections import Detections
from outbid.settings.columns import check_columns
from outbid.settings.costs import check_costs
from outbid.settings.declare import taking_former_names
from outbid.settings.tracking import TrackingSettings

from .first_step import NearestDistances, drift_of, first_step

_SAMPLE = 6000
"""Largest number of detections whose frames are simulated."""
_KEPT = 0.998
"""Share of Gaussian steps that lie within the advised gate."""
_GATES = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Gates to evaluate, as multiples of the advised gate."""
_GOOD = 0.01
"""Share of wrong and missing links up to which the recording needs no change."""
_MANY = 300_000
"""Number of detections from which learning takes long enough to be named."""
_SLOWER = 2.0 ** -np.arange(0, 5.25, 0.25)
"""Shorter steps to try, as fractions of the estimated step."""


@dataclass(frozen=True)
class GatePreview:
    """The expected effect of one gate.

    Parameters
    ----------
    max_distance : float
        The gate, in the unit of position x spacing.
    candidates : float
        Mean number of detections of the next frame within the gate of a detection.
    in_one_component : float
        Largest share of the detections of two frames that the candidate pairs connect into one component.
    wrong, missing : float
        Share of links expected to be wrong, and of true ones expected to be missing.
    """

    max_distance: float
    candidates: float
    in_one_component: float
    wrong: float
    missing: float

    @property
    def error(self) -> float:
        """1 - F1 of the links."""
        right = 1 - self.wrong, 1 - self.missing
        return 1 - 2 * right[0] * right[1] / max(sum(right), 1e-300)


@dataclass(frozen=True)
class Advice:
    """Advice from detections alone: how hard the movie is to link, and which gate to use.

    Parameters
    ----------
    detections, frames : int
        How many there are; frames without a detection do not count.
    neighbour_distance : float
        Median distance to the nearest neighbour in the frame, in the unit of position x spacing.
    step : float
        Standard deviation of a step along an axis, in the same unit.
    seen_again : float
        Share of the particles that also have a detection in the next frame; a coarse estimate.
    kappa : float
        Step x density^(1 / axes). Links by distance are good below .1, poor above .3.
    gates : tuple of GatePreview
        From narrow to wide.
    best : int
        Which of them has the fewest wrong and missing links.
    shorter : float or None
        How much shorter steps would have to be for 1 % of wrong and missing links: 1 if they are short
        enough, None if no shorter steps help.
    axes : int
        How many axes the positions have, flat ones left out.
    drift : float
        How far whole frames move at most from one to the next, if by about density^(-1 / axes) or
        more; else 0. All other values are of positions without it.
    columns : ColumnBits or None
        What columns that were named say about links and clutter, learned from the first frames.
    """

    detections: int
    frames: int
    neighbour_distance: float
    step: float
    seen_again: float
    kappa: float
    gates: tuple[GatePreview, ...]
    best: int
    shorter: float | None
    axes: int
    drift: float = 0.0
    columns: ColumnBits | None = None

    def __str__(self) -> str:
        head = (
            f"{self.detections} detections in {self.frames} frames, {self.axes} axes. Nearest neighbour at "
            f"{self.neighbour_distance:.3g}; step {self.step:.3g} along each axis: kappa {self.kappa:.2g}. "
            f"About {self.seen_again:.0%} are seen again in the next frame.\n\n"
            "  max distance  candidates  in one component   wrong  missing"
        )
        rows = [
            f"{'>' if number == self.best else ' '} {gate.max_distance:12.4g}  {gate.candidates:10.2f}  "
            f"{gate.in_one_component:16.1%}  {gate.wrong:6.1%}  {gate.missing:7.1%}"
            for number, gate in enumerate(self.gates)
        ]
        return "\n".join([head, *rows, "", *self.advice()])

    def _repr_html_(self) -> str:
        """HTML for notebooks, with the printed text."""
        return f"<pre>{escape(str(self))}</pre>"

    def advice(self) -> list[str]:
        """Sentences that advise on the gate and the recording."""
        best = self.gates[self.best]
        messages = []
        if self.drift > 0:
            messages.append(
                f"Whole frames move, by up to {self.drift:.3g} a frame. Without a max distance outbid takes "
                "that out, and so does this advice; with one it stays in: take it out of the positions first."
            )
        messages.append(
            f"Expected at a max distance of {best.max_distance:.3g}: {best.error:.1%} wrong or missing."
        )
        if self.shorter == 1:
            messages.append("Distance alone identifies the particles: there is no need to record otherwise.")
            return messages if self.columns is None else [*messages, str(self.columns)]
        if self.shorter is None:
            messages.append(
                "Shorter steps would not help: too few particles are seen again. Detect more of them."
            )
        else:
            messages.append(
                f"For 1 %, steps must be {1 / self.shorter:.2g} times shorter: as many times the frame rate "
                f"if particles keep their way, {self.shorter**-2:.2g} times if they diffuse; or "
                f"{self.shorter**-self.axes:.2g} times fewer particles at once."
            )
        if self.columns is not None:
            messages.append(str(self.columns))
        messages.append("Without a max distance outbid uses motion and neighbours as well, and errs less.")
        if self.detections > _MANY:
            messages.append("Learning takes about a minute and 2 GB for a million detections.")
        return messages

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON summaries."""
        return asdict(self) | {"advice": self.advice()}


@taking_former_names(TrackingSettings)
def advise(
    detections: DetectionsLike,
    *,
    columns: Mapping[str, str] = AS_NAMED,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
    max_distances: tuple[float, ...] = (),
    features: Mapping[str, str] | None = None,
    seed: int = 0,
    workers: int = 1,
) -> Advice:
    """Predict the effect of gates on a movie, before linking.

    Parameters
    ----------
    detections : Detections, path, data frame, mapping or array
        See `outbid.formats.coerce.detections_of` for what holds detections.
    columns : mapping of str to str
        As for `outbid.read_detections`, where there are columns.
    spacing : (float, float, float)
        Size of a voxel along z, y, x: positions are multiplied by it.
    max_distances : tuple of float, optional
        Gates to look at; some around the one advised if left out.
    features : mapping of str to str, optional
        Columns of which to learn how much they say, with their kinds, as in `TrackingSettings`.
    seed : int
        Decides the random steps.
    workers : int
        Threads; they do not change the result.

    Raises
    ------
    InputError
        If no two consecutive frames hold two detections each, or nothing moves.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> rng = np.random.default_rng(0)
    >>> place = rng.uniform(0, 9, (729, 3)) + np.cumsum(rng.normal(0, 0.1, (5, 729, 3)), axis=0)
    >>> advice = advise(Detections.from_table(np.repeat(np.arange(5), 729), place.reshape(-1, 3)))
    >>> round(advice.kappa, 1), advice.gates[advice.best].error < 0.03
    (0.1, True)
    """
    refuse_unlike(Integral, "a whole number", {"seed": seed, "workers": workers})
    check_columns(features)
    if not isinstance(max_distances, Sequence) or isinstance(max_distances, str | bytes):
        raise SettingsError(f"max_distances is {max_distances!r}; it must be a list of lengths.")
    for distance in max_distances:
        check_costs(distance, "euclidean", None)
    detections = detections_of(detections, columns=columns)
    movie = read_movie(detections, checked_spacing(spacing))
    position, start, axes = movie.position, movie.frame_start, len(movie.axes)
    near, farthest = NearestDistances.of(position, start, workers=workers), 0.0
    drift = drift_of(position, start, near)
    if drift is not None:
        farthest = float(np.linalg.norm(np.diff(drift, axis=0), axis=1).max())
        position = position - drift[movie.frame]
        near = NearestDistances.of(position, start, workers=workers)
    step, seen_again = first_step(near, axes)
    size = np.diff(start)
    if step == 0 or not ((size[:-1] > 1) & (size[1:] > 1)).any():
        raise InputError(
            "Nothing can be said: no two consecutive frames hold two detections each, or nothing moves. "
            "Give more frames, or number them consecutively."
        )
    point = np.zeros((len(movie.frame), 3))
    point[:, :axes] = position
    neighbour = near.spacing
    scene = _Scene(point, start, axes, seen_again, neighbour, workers)
    gate = step * math.sqrt(float(chi2.ppf(_KEPT, axes)))
    asked = sorted(max_distances) or [factor * gate for factor in _GATES]
    gates = tuple(_looked_at(scene, distance, step, seed) for distance in asked)
    # Of a Poisson process half of the points have a neighbour in the ball of volume ln 2 / density.
    ball = (2.0, math.pi, 4 / 3 * math.pi)[axes - 1]
    density = math.log(2) / (ball * neighbour**axes) if neighbour else math.inf
    best = min(range(len(gates)), key=lambda number: gates[number].error)
    shorter = next(
        (float(s) for s in _SLOWER if _error(_simulated(scene, s * gate, s * step, seed)) <= _GOOD), None
    )
    return Advice(
        len(detections), int((np.diff(start) > 0).sum()), neighbour, step, seen_again,
        step * density ** (1 / axes), gates, best, 1.0 if gates[best].error <= _GOOD else shorter,
        axes, farthest, None if features is None else _bits_of(detections, features, spacing, workers),
    )  # fmt: skip


def _bits_of(
    detections: Detections, features: Mapping[str, str], spacing: tuple[float, float, float], workers: int
) -> ColumnBits | None:
    """What columns say, as learned from the first frames."""
    from outbid.learned.linking import fit_movie

    after = detections.frame.searchsorted(detections.frame[min(_SAMPLE, len(detections)) - 1], "right")
    part = detections.take(np.arange(len(detections)) < after)
    settings = TrackingSettings(spacing=spacing, features=features, divisions=False)
    return fit_movie(part, settings, workers).summary.columns


@dataclass(frozen=True, eq=False)
class _Scene:
    """The movie and the frames to evaluate: point (N, 3), frame_start (F + 1,), median neighbour distance."""

    point: NDArray[np.float64]
    frame_start: NDArray[np.int64]
    axes: int
    seen_again: float
    neighbour: float
    workers: int

    def frames(self) -> NDArray[np.int64]:
        """Frames, spread evenly over the movie, that together with the next ones hold enough detections."""
        size = np.diff(self.frame_start)
        usable = np.nonzero((size[:-1] > 1) & (size[1:] > 1))[0]
        count = max(1, int(_SAMPLE / max(float(size[usable].mean()), 1)))
        return usable[np.linspace(0, len(usable) - 1, min(count, len(usable))).astype(int)]

    def rows(self, frames: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of all detections in the frames, and the offset of each frame among these rows."""
        sizes = np.diff(self.frame_start)[frames]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return np.repeat(self.frame_start[frames] - starts[:-1], sizes) + np.arange(starts[-1]), starts


def _looked_at(scene: _Scene, max_distance: float, step: float, seed: int) -> GatePreview:
    """Evaluate one gate: candidates counted in the movie itself, errors in simulated steps."""
    frames = scene.frames()
    (here, here_start), (there, there_start) = scene.rows(frames), scene.rows(frames + 1)
    near = pairs_within(
        scene.point[here], scene.point[there], max_distance, here_start, there_start, workers=scene.workers
    )
    count = len(here) + len(there)
    row = np.repeat(np.arange(len(here)), np.diff(near.indptr))
    graph = csr_array((np.ones(len(row), bool), (row, near.indices + len(here))), shape=(count, count))
    group = connected_components(graph, directed=False)[1]
    block = np.concatenate([np.repeat(np.arange(len(frames)), np.diff(s)) for s in (here_start, there_start)])
    largest = np.zeros(len(frames))
    np.maximum.at(largest, block, np.bincount(group)[group])
    wrong, missing = _simulated(scene, max_distance, step, seed)
    share = float(largest.sum()) / count
    return GatePreview(float(max_distance), len(row) / len(here), share, wrong, missing)


def _simulated(scene: _Scene, max_distance: float, step: float, seed: int) -> tuple[float, float]:
    """Shares of wrong and of missing links when the particles of some frames take random steps."""
    rng = np.random.default_rng(seed)
    rows, start = scene.rows(scene.frames())
    here = scene.point[rows]
    there = here.copy()
    there[:, : scene.axes] += rng.normal(0, step, (len(rows), scene.axes))
    # A particle that is not seen again is replaced by an unrelated one near a random detection.
    lost = rng.random(len(rows)) >= scene.seen_again
    there[lost] = scene.point[rng.integers(0, len(scene.point), int(lost.sum()))]
    there[lost, : scene.axes] += rng.normal(0, scene.neighbour, (int(lost.sum()), scene.axes))
    block = np.repeat(np.arange(len(start) - 1), np.diff(start))
    found = match(here, there, max_distance, source_block=block, target_block=block, workers=scene.workers)
    right = int(((found.source == found.target) & ~lost[found.source]).sum())
    return 1 - right / max(len(found.source), 1), 1 - right / max(int((~lost).sum()), 1)


def _error(shares: tuple[float, float]) -> float:
    """1 - F1 from the shares of wrong and missing links."""
    return GatePreview(0.0, 0.0, 0.0, *shares).error
