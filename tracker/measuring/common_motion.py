"""Motion that all tracks share: drift of the stage or the sample, which adds to diffusion and exponent."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve_banded, cholesky_banded

from ..compute.tolerances import LEAST
from ..errors import SettingsError
from ..particles.tracks import Tracks
from .likelihood import Floats

_FEWEST = 5
"""Guard: tracks below which nothing is said of their common motion."""
_ERRORS = 5.0
"""Error level: standard errors by which the common step must differ from 0."""
_CORNERS = 3
"""Guard: links from which a rotation is estimated."""
_OF_TRACKS = ("tracks", "smooth", "rigid")
_WANDERS = np.geomspace(1e-6, 1e3, 28)
"""Variances of the change of a drift from frame to frame that are tried, relative to that of a mean step."""
_SHARE = 0.05
"""Guard: share of the mean square step below which a common step hardly changes any measure."""


def on_common_motion(tracks: Tracks) -> list[str]:
    """A sentence if all tracks move together, so that drift is likely.

    Examples
    --------
    >>> from outbid import Detections
    >>> frame, number = np.divmod(np.arange(60), 6)
    >>> place = np.column_stack([0 * frame, 9.0 * number, frame + number % 2 / 8])
    >>> on_common_motion(Tracks.from_track_ids(Detections.from_table(frame, place), number))[0][:62]
    'All tracks move together, by 1 pixel a frame on average: drift'
    """
    step, of = _steps(tracks)
    count = np.bincount(of, minlength=tracks.track_count)
    some = count > 0
    if some.sum() < _FEWEST:
        return []
    sums = [np.bincount(of, step[:, axis], tracks.track_count) for axis in range(3)]
    mean = np.column_stack(sums)[some] / count[some, None]
    common, square = mean.mean(axis=0), float(np.square(step).sum(axis=1).mean())
    error = float(np.sqrt(np.square(mean - common).sum() / len(mean) / (len(mean) - 1)))
    size = float(np.linalg.norm(common))
    if size <= _ERRORS * error or size**2 < _SHARE * square:
        return []
    return [
        f"All tracks move together, by {size:.3g} {tracks.detections.unit} a frame on average: drift, or "
        'a flow. It adds to diffusion and exponent. To subtract it: --drift tracks (Python: drift="tracks").'
    ]


class Drift(NamedTuple):
    """Which drift is subtracted before tracks are measured.

    Parameters
    ----------
    source : {"learned", "tracks", "smooth", "rigid", "none"}
        What tracking learned, the mean step of tracks, this step smoothed over frames, their rigid motion
        with rotation, or nothing.
    tracks : tuple of int
        Numbers of the tracks that it is estimated from; all if empty.
    """

    source: str
    tracks: tuple[int, ...] = ()

    @classmethod
    def of(cls, given: object) -> Drift:
        """From words such as ``"rigid"`` or ``"tracks=3,8"``.

        Raises
        ------
        SettingsError
            If it has another form.

        Examples
        --------
        >>> Drift.of("tracks=3,8")
        Drift(source='tracks', tracks=(3, 8))
        """
        source, _, numbers = given.partition("=") if isinstance(given, str) else ("", "", "")
        fits = source in ("learned", "none", *_OF_TRACKS)
        chosen = [word.strip() for word in numbers.split(",")] if numbers else []
        if not fits or (chosen and source in ("learned", "none")) or not all(map(str.isdecimal, chosen)):
            raise SettingsError(
                f"The drift is {given!r}; choose learned, tracks, smooth, rigid or none, or name the tracks "
                "that show it, such as tracks=3,8."
            )
        return cls(source, tuple(map(int, chosen)))


def without_common_motion(tracks: Tracks, drift: Drift) -> tuple[Tracks, float]:
    """Subtract the motion that tracks share from frame to frame; also the largest shift of a detection.

    A smooth motion is the mean step, smoothed over frames where its scatter between tracks explains its
    changes (`smoothed`). A rigid motion is the rotation and shift between two frames with the least square
    error (Kabsch 1976), of the links of at least three tracks; of fewer, and without rotation, it is their
    mean step.

    Raises
    ------
    SettingsError
        If a track that is named has no links.
    """
    seen = tracks.detections
    if not len(tracks.links):
        return tracks, 0.0
    first = seen.frame.astype(np.int64) - seen.first_frame
    links = tracks.links[np.diff(first[tracks.links], axis=1)[:, 0] == 1]
    if drift.tracks:
        label = tracks.track_id[links[:, 0]]
        if lost := set(drift.tracks) - set(label.tolist()):
            raise SettingsError(f"Track {min(lost)} has no links, so it shows no drift. Name other tracks.")
        links = links[np.isin(label, drift.tracks)]
    links = links[np.argsort(first[links[:, 1]], kind="stable")]
    begin = np.searchsorted(first[links[:, 1]], np.arange(int(first.max()) + 2))
    if drift.source == "smooth":
        return _shifted(tracks, _smooth_shift(seen.position[links], begin)[first])
    turned, shift, place = np.eye(3), np.zeros(3), seen.position.copy()
    for frame in range(1, len(begin) - 1):
        before, after = seen.position[links[begin[frame] : begin[frame + 1]].T]
        if len(before):
            turn = _turn(before, after) if drift.source == "rigid" else np.eye(3)
            turned = turned @ turn.T
            shift = shift - turned @ (after.mean(axis=0) - turn @ before.mean(axis=0))
        here = first == frame
        place[here] = seen.position[here] @ turned.T + shift
    return _shifted(tracks, seen.position - place)


def _shifted(tracks: Tracks, drift: Floats) -> tuple[Tracks, float]:
    """The tracks without a drift of each detection, and how large it is at most."""
    seen = replace(tracks.detections, position=tracks.detections.position - drift)
    return replace(tracks, detections=seen), float(np.linalg.norm(drift, axis=1).max())


def _smooth_shift(ends: Floats, begin: NDArray[np.int64]) -> Floats:
    """(F, 3) shift of each frame by smoothed mean steps of links (L, 2, 3), by frame from `begin` on."""
    step, many = ends[:, 1] - ends[:, 0], np.diff(begin)
    frame = np.repeat(np.arange(len(many)), many)
    shift = np.zeros((len(many), 3))
    for axis in np.flatnonzero(np.ptp(step, axis=0) > 0) if len(step) else ():
        mean = np.bincount(frame, step[:, axis], len(many)) / np.maximum(many, 1)
        apart = np.square(step[:, axis] - mean[frame]).sum() / max(len(step) - np.sum(many > 0), 1)
        shift[1:, axis] = np.cumsum(smoothed(mean[1:], many[1:] / max(apart, LEAST)))
    return shift


def smoothed(values: Floats, precision: Floats) -> Floats:
    """Values (F,) of a level that walks at random, given the precision of each; 0 if it is not known.

    The variance of the steps of the level is the most likely one, of multiples of that of the values.

    Examples
    --------
    >>> smoothed(np.array([1.0, 1.2, 0.8, 1.1, 0.9]), np.full(5, 25.0)).round(2).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    if len(values) < 2 or not precision.any():
        return values
    best, found = np.inf, values
    for multiple in _WANDERS:
        stiff = precision[precision > 0].mean() / multiple
        inner = np.full(len(values), 2 * stiff)
        inner[[0, -1]] = stiff
        band = np.stack([np.full(len(values), -stiff), precision + inner])  # (2, F), the upper diagonal first
        lower = cholesky_banded(band)
        level = cho_solve_banded((lower, False), precision * values)
        cost = (precision * values * (values - level)).sum() + 2 * np.log(lower[1]).sum()
        cost -= (len(values) - 1) * np.log(stiff)
        if cost < best:
            best, found = cost, level
    return np.asarray(found)


def _turn(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3, 3) rotation of points (N, 3) about their centre; none of fewer than three."""
    if len(before) < _CORNERS:
        return np.eye(3)
    moment = (after - after.mean(axis=0)).T @ (before - before.mean(axis=0))
    left, _, right = np.linalg.svd(moment)
    mirror = np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right)) or 1.0])
    return np.asarray(left @ mirror @ right)


def _steps(tracks: Tracks) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The displacement a frame of each link, and the track that it ends in."""
    source, target = tracks.links.T
    position, frame = tracks.detections.position, tracks.detections.frame.astype(np.int64)
    step = (position[target] - position[source]) / (frame[target] - frame[source])[:, None]
    return step, tracks.track_id[target]
