"""Filter tracks by length, confidence or any column, and cut unlikely links."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, SettingsError
from ..particles.tracks import Tracks

_OPERATORS: Mapping[str, Callable[[NDArray, float], NDArray[np.bool_]]] = {
    "<=": operator.le, ">=": operator.ge, "!=": operator.ne, "==": operator.eq, "<": operator.lt,
    ">": operator.gt, "=": operator.eq,
}  # fmt: skip
_CONDITION = re.compile(r"\s*(?:(mean|min|max)\(\s*(.+?)\s*\)|(.+?))\s*(<=|>=|!=|==|<|>|=)\s*(\S+)\s*")
LENGTH = "length"
"""Name of a track's number of detections in conditions."""


@dataclass(frozen=True)
class Condition:
    """A condition on a column, for example ``mass > 10`` or ``mean(mass) > 10``.

    Parameters
    ----------
    column : str
        frame, z, y, x, length, a feature, or a measure of links.
    of_track : {"mean", "min", "max", ""}
        Statistic over the track; without one, the condition applies to each detection.
    sign : str
        One of <, <=, >, >=, ==, !=.
    value : float
    """

    column: str
    of_track: str
    sign: str
    value: float


def condition_from(text: str) -> Condition:
    """Parse a condition on a column of the tracks.

    Raises
    ------
    SettingsError
        If the text is not a condition.

    Examples
    --------
    >>> condition_from("mean(mass) >= 10")
    Condition(column='mass', of_track='mean', sign='>=', value=10.0)
    """
    found = _CONDITION.fullmatch(text)
    try:
        value = float(found[5]) if found else np.nan
    except ValueError:
        found = None
    if found is None:
        raise SettingsError(
            f"{text!r} is not a condition. Write COLUMN SIGN NUMBER, for example 'mass > 10' or "
            "'mean(mass) > 10'."
        )
    return Condition(found[2] or found[3], found[1] or "", found[4], value)


def cut_below(tracks: Tracks, probability: float) -> Tracks:
    """Remove the links below a probability; each track is cut there into two.

    Raises
    ------
    InputError
        If the links have no probabilities.

    Examples
    --------
    >>> from ..particles.detections import Detections
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> tracks = Tracks(seen, np.array([[0, 1], [1, 2]]), link_probability=np.array([0.9, 0.3]))
    >>> cut_below(tracks, 0.5).links.tolist()
    [[0, 1]]
    """
    kept = ~(_probability(tracks) < probability)
    measures = {name: values[kept] for name, values in tracks.measures.items()}
    return Tracks(tracks.detections, tracks.links[kept], **measures)


def of_length(tracks: Tracks, least: int = 1, most: int | None = None) -> Tracks:
    """Keep the tracks with `least` to `most` detections."""
    length = np.bincount(tracks.track_id, minlength=tracks.track_count)
    kept = (length >= least) & (length <= (np.inf if most is None else most))
    return _kept(tracks, kept[tracks.track_id])


def of_confidence(tracks: Tracks, least: float) -> Tracks:
    """Keep the tracks whose links all have at least this probability; unlinked detections are kept.

    Raises
    ------
    InputError
        If the links have no probabilities.
    """
    unlikely = _probability(tracks) < least
    doubtful = np.zeros(tracks.track_count, dtype=np.bool_)
    doubtful[tracks.track_id[tracks.links[unlikely]].ravel()] = True
    return _kept(tracks, ~doubtful[tracks.track_id])


def where(tracks: Tracks, condition: Condition) -> Tracks:
    """Keep the detections, or the tracks, that fulfil a condition; a removed detection leaves a gap.

    Raises
    ------
    InputError
        If there is no such column of numbers.

    Examples
    --------
    >>> from ..particles.detections import Detections
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]], features={"mass": [5, 15]})
    >>> tracks = Tracks(seen, np.array([[0, 1]]))
    >>> len(where(tracks, condition_from("mass > 9")).detections)
    1
    >>> len(where(tracks, condition_from("mean(mass) > 9")).detections)
    2
    """
    values = _column(tracks, condition.column)
    if condition.of_track:
        values = _of_tracks(values, tracks, condition.of_track)[tracks.track_id]
    return _kept(tracks, _OPERATORS[condition.sign](values, condition.value))


def _kept(tracks: Tracks, rows: NDArray[np.bool_]) -> Tracks:
    """A subset of the detections, with the links between them and their measures."""
    if rows.all():
        return tracks
    kept = tracks.take(rows)
    whole = rows[tracks.links].all(axis=1)
    if whole.sum() != len(kept.links):  # a chain over an omitted detection becomes a link without values
        return kept
    measures = {name: values[whole] for name, values in tracks.measures.items()}
    return Tracks(kept.detections, kept.links, **measures)


def _column(tracks: Tracks, name: str) -> NDArray[np.float64]:
    """(N,) float64: a column by name."""
    seen = tracks.detections
    known: dict[str, NDArray] = dict(seen.features) | {
        "frame": seen.frame, **dict(zip("zyx", seen.position.T, strict=True)),
        LENGTH: np.bincount(tracks.track_id, minlength=1)[tracks.track_id] if len(seen) else np.zeros(0),
    }  # fmt: skip
    for measure, values in tracks.measures.items():
        known[measure] = np.full(len(seen), np.nan)
        known[measure][tracks.links[:, 1]] = values
    if name not in known or known[name].dtype.kind not in "iufb":
        numbers = [one for one, values in known.items() if values.dtype.kind in "iufb"]
        raise InputError(f"There is no column of numbers {name!r}. Choose one of: {', '.join(numbers)}.")
    return known[name].astype(np.float64)


def _of_tracks(values: NDArray[np.float64], tracks: Tracks, which: str) -> NDArray[np.float64]:
    """(track_count,) float64: mean, minimum or maximum over each track, without missing values."""
    given = np.isfinite(values)
    of, values = tracks.track_id[given], values[given]
    if which == "mean":
        count = np.bincount(of, minlength=tracks.track_count)
        return np.bincount(of, values, tracks.track_count) / np.where(count, count, np.nan)
    found = np.full(tracks.track_count, np.nan)
    (np.fmin if which == "min" else np.fmax).at(found, of, values)
    return found


def _probability(tracks: Tracks) -> NDArray[np.float64]:
    if tracks.link_probability is None:
        raise InputError(
            "The links have no probabilities: tracks of a fixed max distance, or from another program. "
            "Track without --max-distance to have them."
        )
    return tracks.link_probability
