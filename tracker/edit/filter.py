"""Filter tracks by length, confidence or any column, and cut unlikely links."""

from __future__ import annotations

import difflib
import logging
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, SettingsError, refuse_unlike
from ..particles.tracks import Tracks

if TYPE_CHECKING:
    from ..formats.coerce import TracksLike

_LOG = logging.getLogger("outbid")
_OPERATORS: Mapping[str, Callable[[NDArray, float], NDArray[np.bool_]]] = {
    "<=": operator.le, ">=": operator.ge, "!=": operator.ne, "==": operator.eq, "<": operator.lt,
    ">": operator.gt, "=": operator.eq,
}  # fmt: skip
_CONDITION = re.compile(
    r"\s*(?:(mean|min|max)\(\s*(.+?)\s*\)|('.+?'|\".+?\"|[^<>=!]+?))\s*(<=|>=|!=|==|<|>|=)\s*(\S.*?)\s*"
)
_SHOWN = 8
"""Texts of a column that a message names."""
_EQUAL = ("==", "=", "!=")
_ROW = "row of the movie"
LENGTH = "length"
"""Name of a track's number of detections in conditions."""


@dataclass(frozen=True)
class Condition:
    """A condition on a column, for example ``mass > 10``, ``mean(mass) > 10`` or ``type == A``.

    Parameters
    ----------
    column : str
        frame, z, y, x, length, a feature, or a measure of links.
    of_track : {"mean", "min", "max", ""}
        Statistic over the track; without one, the condition applies to each detection.
    sign : str
        One of <, <=, >, >=, ==, !=; for a text == or !=.
    text : str
        What follows the sign, without quotes.
    """

    column: str
    of_track: str
    sign: str
    text: str

    @property
    def number(self) -> float | None:
        """The text as a number, if it is one."""
        try:
            return float(self.text)
        except ValueError:
            return None


def condition_from(text: str) -> Condition:
    """Parse a condition on a column of the tracks.

    Raises
    ------
    SettingsError
        If the text is not a condition.

    Examples
    --------
    >>> condition_from("mean(mass) >= 10")
    Condition(column='mass', of_track='mean', sign='>=', text='10')
    """
    found = _CONDITION.fullmatch(text)
    column, of_track, sign, value = (
        ("", "", "", "") if found is None else (found[2] or found[3], *found.group(1, 4, 5))
    )
    condition = Condition(_bare(column), of_track or "", sign, _bare(value))
    if found is None or (condition.number is None and (of_track or sign not in _EQUAL)):
        raise SettingsError(
            f"{text!r} is not a condition. Write COLUMN SIGN NUMBER, for example 'mass > 10' or "
            "'mean(mass) > 10'; or COLUMN == TEXT, for example 'type == A'. Several conditions: one --where "
            "each (Python: a list)."
        )
    return condition


def _bare(text: str) -> str:
    """A text without the quotes around it."""
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text


def filter(  # noqa: A001 - it is called as its command is: `outbid.filter`
    tracks: TracksLike,
    *,
    cut_below: float | None = None,
    where: str | Sequence[str] = (),
    min_confidence: float | None = None,
    min_length: int = 1,
    max_length: int | None = None,
) -> Tracks:
    """Keep the tracks that meet all conditions, as `outbid filter` does, in the order of the parameters.

    Parameters
    ----------
    tracks : Tracks, TrackingRun, path, data frame, mapping or array
    cut_below : float, optional
        Cut links with a probability below this.
    where : str or sequence of str
        Conditions on columns: ``"mean(quality) > 20"``, ``"type == A"``.
    min_confidence : float, optional
        Keep tracks whose links all have at least this probability.
    min_length, max_length : int
        Keep tracks of so many detections.

    Raises
    ------
    TypeError
        If there are no tracks.
    SettingsError, InputError
        If a condition is none, or there is no such column.

    Examples
    --------
    >>> seen = {"track_id": [0, 0, 1], "frame": [0, 1, 1], "y": [1, 1, 9], "x": [1, 2, 9]}
    >>> filter(seen, min_length=2)
    <Tracks: 1 track from 2 detections; 1 link, without probabilities.>
    """
    from ..formats.coerce import tracks_of

    given = where if isinstance(where, (list, tuple)) else (where,)
    if not all(isinstance(one, str) for one in given):
        raise SettingsError(f"where is {where!r}; it must be a text such as 'mass > 10', or a list of these.")
    least = {"cut_below": cut_below, "min_confidence": min_confidence}
    refuse_unlike(Real, "a number", least | {"min_length": min_length, "max_length": max_length})
    kept = tracks_of(tracks)
    if cut_below is not None:
        kept = without_unlikely(kept, cut_below)
    for condition in map(condition_from, given):
        kept = fulfilling(kept, condition)
    if min_confidence is not None:
        kept = of_confidence(kept, min_confidence)
    return of_length(kept, min_length, max_length)


def fulfilling_all(tracks: Tracks, where: Sequence[str]) -> NDArray[np.bool_]:
    """(N,) bool: the detections that `filter` keeps under these conditions, one after the other.

    Examples
    --------
    >>> from ..particles.detections import Detections
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]], features={"mass": [5, 15]})
    >>> fulfilling_all(Tracks(seen, np.array([[0, 1]])), ["mass > 9"]).tolist()
    [False, True]
    """
    seen = tracks.detections
    numbered = replace(seen, features={**seen.features, _ROW: np.arange(len(seen))})
    kept = replace(tracks, detections=numbered)
    for condition in map(condition_from, where):
        kept = fulfilling(kept, condition)
    shown = np.zeros(len(seen), np.bool_)
    shown[kept.detections.features[_ROW]] = True
    return shown


def without_unlikely(tracks: Tracks, probability: float) -> Tracks:
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
    >>> without_unlikely(tracks, 0.5).links.tolist()
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


def fulfilling(tracks: Tracks, condition: Condition) -> Tracks:
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
    >>> len(fulfilling(tracks, condition_from("mass > 9")).detections)
    1
    >>> len(fulfilling(tracks, condition_from("mean(mass) > 9")).detections)
    2
    """
    values = tracks.detections.features.get(condition.column)
    if values is None or values.dtype.kind in "iufb":
        values = column_of(tracks, condition.column, condition.of_track)
    return _kept(tracks, values_that_meet(values, condition))


def values_that_meet(values: NDArray, condition: Condition) -> NDArray[np.bool_]:
    """(N,) bool: which values of a condition's column fulfil it.

    Raises
    ------
    SettingsError
        If the column holds texts and the condition a number, or the other way round.

    Examples
    --------
    >>> values_that_meet(np.array([5.0, 15.0]), condition_from("mass > 9")).tolist()
    [False, True]
    """
    if values.dtype.kind not in "iufb":
        return _of_text(values, condition)
    if condition.number is None:
        raise SettingsError(f"Column {condition.column!r} holds numbers: {condition.text!r} is none.")
    return _OPERATORS[condition.sign](values, condition.number)


def _of_text(texts: NDArray, condition: Condition) -> NDArray[np.bool_]:
    """Whether each text is that of a condition."""
    if condition.sign not in _EQUAL or condition.of_track:
        raise SettingsError(f"Column {condition.column!r} holds texts: compare them by == or !=.")
    same = np.array([str(text).strip() == condition.text.strip() for text in texts.tolist()], dtype=np.bool_)
    if len(same) and not same.any():
        there = sorted({str(text) for text in texts.tolist()})
        more = f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else ""
        _LOG.warning(
            "No detection has %r in column %r. There are: %s%s.", condition.text, condition.column,
            ", ".join(map(repr, there[:_SHOWN])), more,
        )  # fmt: skip
    return ~same if condition.sign == "!=" else same


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


def columns_in(tracks: Tracks) -> tuple[str, ...]:
    """Names of the columns of numbers on which conditions may be.

    Examples
    --------
    >>> from ..particles.detections import Detections
    >>> seen = Detections.from_table([0], [[0, 0, 0]], features={"mass": [5], "type": ["A"]})
    >>> columns_in(Tracks(seen, np.empty((0, 2), np.int64)))
    ('mass', 'frame', 'z', 'y', 'x', 'length')
    """
    features = tracks.detections.features.items()
    own = [name for name, values in features if values.dtype.kind in "iufb"]
    return tuple(dict.fromkeys([*own, "frame", *"zyx", LENGTH, *tracks.measures]))


def column_of(tracks: Tracks, name: str, of_track: str = "") -> NDArray[np.float64]:
    """(N,) float64: a column by name, or its mean, min or max over the track of each detection.

    Raises
    ------
    InputError
        If there is no such column of numbers.
    """
    seen = tracks.detections
    known: dict[str, NDArray] = dict(seen.features) | {
        "frame": seen.frame, **dict(zip("zyx", seen.position.T, strict=True)),
        LENGTH: np.bincount(tracks.track_id, minlength=1)[tracks.track_id] if len(seen) else np.zeros(0),
    }  # fmt: skip
    for measure, values in tracks.measures.items():
        known[measure] = np.full(len(seen), np.nan)
        known[measure][tracks.links[:, 1]] = values
    if name not in known:
        near = difflib.get_close_matches(name.lower(), [one.lower() for one in known], 1)
        meant = [one for one in known if near and one.lower() == near[0]]
        hint = f" Is {meant[0]!r} meant?" if meant else ""
        raise InputError(f"There is no column {name!r}. Choose one of: {', '.join(known)}.{hint}")
    values = known[name].astype(np.float64)
    return _of_tracks(values, tracks, of_track)[tracks.track_id] if of_track else values


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
