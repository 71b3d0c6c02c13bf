"""Conditions on tracks while they are recorded, and which tracks meet them in a frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..edit.crop import CropBounds
from ..edit.filter import Condition, condition_from, values_that_meet
from ..errors import SettingsError
from ..learned.summary import Summary
from .following import Followed

LOST, SPEED = "lost", "speed"
"""Columns that only tracks which are followed have."""
_DIVISION, _ENTERS, _LEAVES = "division", "enters ", "leaves "


@dataclass(frozen=True)
class Event:
    """A track that meets a condition, which it did not meet in the frame before; of a division, the mother.

    Parameters
    ----------
    when : str
        The condition, as it was given.
    frame, track : int
    place : (float, float, float)
        z, y, x: the last position of the track.
    value : float or None
        Of the condition's column.
    """

    when: str
    frame: int
    track: int
    place: tuple[float, float, float]
    value: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as a line of JSON has them."""
        z, y, x = (round(value, 6) for value in self.place)
        known = {"when": self.when, "frame": self.frame, "track": self.track, "z": z, "y": y, "x": x}
        return known if self.value is None else known | {"value": self.value}


@dataclass(frozen=True)
class _When:
    """A condition, parsed: of a division, of a region, or of a column."""

    text: str
    region: CropBounds | None = None
    enters: bool = True
    condition: Condition | None = None


def when_from(text: str) -> _When:
    """Parse ``division``, ``enters REGION``, ``leaves REGION`` or a condition on a column.

    Raises
    ------
    SettingsError
        If it is something else.

    Examples
    --------
    >>> when_from("speed > 2").condition
    Condition(column='speed', of_track='', sign='>', text='2')
    >>> when_from("enters :,0:50,0:50").region.region[1]
    (0.0, 50.0)
    """
    plain = text.strip()
    if plain == _DIVISION:
        return _When(text)
    for word in (_ENTERS, _LEAVES):
        if plain.startswith(word):
            region = CropBounds.from_texts(plain.removeprefix(word).replace(" ", ""), None)
            return _When(text, region=region, enters=word == _ENTERS)
    try:
        condition = condition_from(plain)
    except SettingsError as error:
        raise SettingsError(f"{error} Or: division, 'enters REGION', 'leaves REGION'.") from None
    return _When(text, condition=condition)


@dataclass
class _Track:
    """What is known of a track that goes on."""

    frame: int
    place: NDArray[np.float64]
    length: int = 0
    sums: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # count, sum, least, greatest


class Watch:
    """Finds events frame by frame; each is given once, when its condition begins to be met.

    Parameters
    ----------
    conditions : sequence of str
        See `when_from`.

    Attributes
    ----------
    interval : float or None
        Seconds between frames: a speed is by the second then, else by the frame.
    """

    interval: float | None = None

    def __init__(self, conditions: Sequence[str]) -> None:
        self._whens = [when_from(text) for text in conditions]
        self._tracks: dict[int, _Track] = {}
        self._met: list[set[int]] = [set() for _ in self._whens]

    def events(self, one: Followed, learned: Summary | None) -> list[Event]:
        """The events of a frame."""
        if not self._whens:
            return []
        columns = self._columns(one)
        lost = self._lost(one.frame, set(one.track.tolist()), learned)
        found = [event for k in range(len(self._whens)) for event in self._found(k, one, columns, lost)]
        self._forget(one.frame, learned)
        return found

    def _columns(self, one: Followed) -> dict[str, NDArray]:
        """Values of the frame's detections by name; the tracks are extended by them."""
        seen, tracks = one.detections, one.track.tolist()
        before = [self._tracks.get(track) for track in tracks]
        came = np.array([last.place if last else (np.nan,) * 3 for last in before]).reshape(-1, 3)
        took = np.array([one.frame - last.frame if last else 1 for last in before])
        speed = np.linalg.norm(seen.position - came, axis=1) / (took * (self.interval or 1.0))
        for track, place in zip(tracks, seen.position, strict=True):
            known = self._tracks.setdefault(track, _Track(one.frame, place))
            known.frame, known.place, known.length = one.frame, place, known.length + 1
        columns = dict(seen.features) | dict(zip("zyx", seen.position.T, strict=True)) | {
            "frame": seen.frame, SPEED: speed, "link_probability": one.probability,
            "length": np.array([self._tracks[track].length for track in tracks]), "came": came,
        }  # fmt: skip
        for when in self._whens:
            if when.condition is not None and when.condition.of_track:
                self._sum_up(when.condition.column, columns, tracks)
        return columns

    def _sum_up(self, name: str, columns: Mapping[str, NDArray], tracks: list[int]) -> None:
        """Extend the mean, least and greatest value of each track by those of the frame."""
        for track, value in zip(tracks, _column(columns, name).astype(np.float64), strict=True):
            known = self._tracks[track]
            sums = known.sums.setdefault(name, np.array([0.0, 0.0, np.inf, -np.inf]))
            if np.isfinite(value):
                sums[:] = sums[0] + 1, sums[1] + value, min(sums[2], value), max(sums[3], value)

    def _lost(self, frame: int, seen: set[int], learned: Summary | None) -> dict[int, float]:
        """Probability that a track without a detection in this frame has ended, by how long it is unseen."""
        if learned is None:
            return {}
        follow, end = np.array(learned.follow), learned.end
        unseen = {t: frame - known.frame for t, known in self._tracks.items() if t not in seen}
        return {
            track: end / (end + follow[round(gap / learned.interval) :].sum())
            for track, gap in unseen.items()
        }

    def _found(
        self, k: int, one: Followed, columns: Mapping[str, NDArray], lost: Mapping[int, float]
    ) -> Iterator[Event]:
        """The events of one condition."""
        when = self._whens[k]
        if when.condition is None and when.region is None:
            yield from self._divisions(when, one)
            return
        if when.condition is not None and when.condition.column == LOST:
            names, values = list(lost), np.array(list(lost.values()))
        else:
            names, values = one.track.tolist(), self._values(when, one, columns)
        met = self._meets(when, one, columns, values)
        now = {track for track, is_met in zip(names, met.tolist(), strict=True) if is_met}
        for track, value in zip(names, values.tolist(), strict=True):
            if track in now and track not in self._met[k]:
                z, y, x = self._tracks[track].place.tolist()
                known = round(value, 6) if np.isfinite(value) else None
                yield Event(when.text, one.frame, track, (z, y, x), known)
        self._met[k] = (self._met[k] - set(names)) | now

    def _divisions(self, when: _When, one: Followed) -> Iterator[Event]:
        """Of mothers, whose daughters are seen for the first time."""
        born = [self._tracks[track].length == 1 for track in one.track.tolist()]
        for mother in dict.fromkeys(one.parent[np.array(born, np.bool_) & (one.parent >= 0)].tolist()):
            if mother in self._tracks:
                z, y, x = self._tracks[mother].place.tolist()
                yield Event(when.text, one.frame, mother, (z, y, x))

    def _values(self, when: _When, one: Followed, columns: Mapping[str, NDArray]) -> NDArray:
        """The values of a condition's column, by detection."""
        condition = when.condition
        if condition is None:
            return np.full(len(one.track), np.nan)
        values = _column(columns, condition.column)
        if not condition.of_track:
            return values
        sums = np.array([self._tracks[track].sums[condition.column] for track in one.track.tolist()])
        count, total, least, greatest = sums.reshape(-1, 4).T
        with np.errstate(invalid="ignore", divide="ignore"):
            return {"mean": total / count, "min": least, "max": greatest}[condition.of_track]

    def _meets(
        self, when: _When, one: Followed, columns: Mapping[str, NDArray], values: NDArray
    ) -> NDArray[np.bool_]:
        """Whether each meets the condition now."""
        if when.condition is not None:
            return values_that_meet(values, when.condition)
        assert when.region is not None
        low, high = np.array(when.region.region).T
        came, here = columns["came"], one.detections.position
        inside, before = (((at >= low) & (at < high)).all(axis=1) for at in (here, came))
        known = np.isfinite(came).all(axis=1)
        return known & (inside & ~before if when.enters else before & ~inside)

    def _forget(self, frame: int, learned: Summary | None) -> None:
        """Forget tracks that have ended, so that memory does not grow."""
        longest = (len(learned.follow) if learned else 1) * (learned.interval if learned else 1)
        for track in [t for t, known in self._tracks.items() if frame - known.frame > longest]:
            del self._tracks[track]
            for met in self._met:
                met.discard(track)


def _column(columns: Mapping[str, NDArray], name: str) -> NDArray:
    if name not in columns:
        known = ", ".join(sorted({*columns, LOST} - {"came"}))
        raise SettingsError(f"There is no column {name!r} while a movie is watched. Choose one of: {known}.")
    return columns[name]
