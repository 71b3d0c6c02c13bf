"""Corrections by hand: acts on detections that were selected, and a sentence that states what each changed.

Each act is a pin or an edit of a session of `proofreading`, which undo takes back, and after which all other
links are solved again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outbid.errors import InputError
from outbid.particles.tracks import Tracks

from .proofreading import Question, Session, Spot, answer, edit, question


class Corrected(NamedTuple):
    """A session after an act.

    Parameters
    ----------
    session : Session
    said : str
        What was done, and how many other links changed.
    rows : tuple of int
        Rows of the detections of the act, after it.
    """

    session: Session
    said: str
    rows: tuple[int, ...]


Act = Callable[..., Corrected]
"""Takes a session, and rows that were selected."""


def link(session: Session, rows: Sequence[int]) -> Corrected:
    """Link two detections.

    Raises
    ------
    InputError
        As all acts, if others must be selected.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> from outbid.tracking import TrackingSettings
    >>> from .proofreading import opened
    >>> seen = Detections.from_table([0, 0, 1, 1], [[0, 0, 0], [0, 9, 9], [0, 9, 8], [0, 0, 1]])
    >>> session = opened(Tracks(seen, np.array([[0, 2], [1, 3]])), TrackingSettings(), foreign=True)
    >>> made = link(session, [0, 3])
    >>> made.said, made.session.tracks.links.tolist()
    ('Linked track 0 in frame 0 to track 1 in frame 1; 2 other links changed.', [[0, 3]])
    >>> cut(session, [0]).said
    'Cut track 0 between frames 0 and 1; no other link changed.'
    """
    first, then = _in_time(session, rows, 2)
    asked = question(session, first)
    said = f"Linked {_name(session, first)} to {_name(session, then)}"
    return _done(session, answer(session, asked, "link", then), said, (first, then))


def cut(session: Session, rows: Sequence[int]) -> Corrected:
    """Cut the link between two detections, or from one to the next."""
    links = session.tracks.links
    if len(rows) == 1:
        after = links[links[:, 0] == rows[0], 1].tolist()
        if len(after) != 1:
            state = "divides" if after else "ends"
            raise InputError(f"{_name(session, rows[0])} {state} here. Select both ends of the link to cut.")
        rows = [rows[0], after[0]]
    first, then = _in_time(session, rows, 2)
    if not ((links == [first, then]).all(axis=1)).any():
        raise InputError(
            f"{_name(session, first)} and {_name(session, then)} are not linked. Select both ends of a link."
        )
    frame = session.tracks.detections.frame
    track = session.tracks.track_id[first]
    said = f"Cut track {track} between frames {frame[first]} and {frame[then]}"
    made = answer(session, question(session, first), "forbid", then)
    return _done(session, made, said, (first, then))


def divide(session: Session, rows: Sequence[int]) -> Corrected:
    """Divide a detection into two later ones; or into its successor and a later one."""
    if len(rows) == 2:
        mother, daughter = _in_time(session, rows, 2)
        links = session.tracks.links
        after = [row for row in links[links[:, 0] == mother, 1].tolist() if row != daughter]
        if len(after) != 1:
            raise InputError("Select the mother and both daughters: she has no other successor.")
        rows = [mother, after[0], daughter]
    mother, one, other = _in_time(session, rows, 3)
    said = f"{_name(session, mother)} divides into {_name(session, one)} and {_name(session, other)}"
    made = answer(session, question(session, mother), "division", one, other)
    return _done(session, made, said[0].upper() + said[1:], (mother, one, other))


def join(session: Session, rows: Sequence[int]) -> Corrected:
    """State that two detections are of one particle; of tracks one after the other, their ends are joined."""
    first, then = _in_time(session, rows, 2)
    tracks = session.tracks
    one, other = (np.flatnonzero(tracks.track_id == tracks.track_id[row]) for row in (first, then))
    if tracks.track_id[first] == tracks.track_id[then]:
        raise InputError("Both are of one track already. Select detections of two tracks.")
    if tracks.detections.frame[one[-1]] < tracks.detections.frame[other[0]]:
        first, then = int(one[-1]), int(other[0])
    said = f"Joined {_name(session, first)} and {_name(session, then)}"
    made = answer(session, question(session, first), "same_cell", then)
    return _done(session, made, said, (first, then))


def remove(session: Session, rows: Sequence[int]) -> Corrected:
    """Remove one detection."""
    if len(rows) != 1:
        raise InputError(f"{len(rows)} detections are selected. Select the one to remove.")
    made = edit(session, "remove", session.spot(rows[0]))
    return _done(session, made, f"Removed {_name(session, rows[0])}", rows)


def add(session: Session, spot: Spot) -> Corrected:
    """Add a detection at a frame and a place."""
    made = edit(session, "add", spot)
    row = row_of(made.tracks, spot)
    return _done(session, made, f"Added {_name(made, row)}", (), (row,))


def move(session: Session, row: int, spot: Spot) -> Corrected:
    """Move a detection within its frame."""
    made = edit(session, "move", session.spot(row), spot)
    return _done(session, made, f"Moved {_name(session, row)}", (row,), (row_of(made.tracks, spot),))


def answered(session: Session, asked: Question, kind: str, *others: int) -> Corrected:
    """Answer a question, by a kind of pin."""
    row = asked.link.row
    name, then = _name(session, row), "".join(_name(session, other) for other in others[:1])
    said = {
        "link": f" goes on to {then}",
        "end": " is the last of its track",
        "no_particle": " is no particle",
    }
    made = answer(session, asked, kind, *others)
    return _done(session, made, name[0].upper() + name[1:] + said[kind], (row, *others), (row,))


def row_of(tracks: Tracks, spot: Spot) -> int:
    """Row of the detection that is nearest to a place in a frame."""
    rows = tracks.detections.rows_of(spot[0])
    away = np.linalg.norm(tracks.detections.position[rows] - spot[1], axis=1)
    return rows.start + int(away.argmin())


def other_changes(before: Tracks, after: Tracks, rows: Sequence[int]) -> int:
    """How many links are gone or new, the greater number; without those between some rows before.

    Detections are the same if frame and position are.
    """
    ends = [np.column_stack([_places(tracks)[end] for end in tracks.links.T]) for tracks in (before, after)]
    named = _places(before)[np.asarray(rows, np.int64)]
    places = np.concatenate([named, *(each.reshape(-1, 4) for each in ends)])
    number = np.unique(places.view([("", places.dtype)] * 4).ravel(), return_inverse=True)[1]
    pairs = number[len(named) :].reshape(-1, 2)
    key = np.where(np.isin(pairs, number[: len(named)]).all(axis=1), -1, pairs @ [len(number), 1])
    old, new = np.unique(key[: len(before.links)]), np.unique(key[len(before.links) :])
    shared = len(np.intersect1d(old[old >= 0], new[new >= 0], assume_unique=True))
    return max(int((old >= 0).sum()), int((new >= 0).sum())) - shared


def _done(
    before: Session, after: Session, said: str, rows: Sequence[int], new: tuple[int, ...] | None = None
) -> Corrected:
    count = other_changes(before.tracks, after.tracks, rows)
    others = f"{count or 'no'} other link{'s' * (count > 1)} changed"
    said = f"{said}; {others}."
    if after.edits != before.edits and after.frozen.learned is not None:
        said += " The model stays as it was learned: Learn again, in Proofread, learns it with this."
    return Corrected(after, said, tuple(rows) if new is None else new)


def _in_time(session: Session, rows: Sequence[int], count: int) -> list[int]:
    """The rows, the earliest first."""
    frame = session.tracks.detections.frame
    ordered = sorted(rows, key=lambda row: int(frame[row]))
    if len(ordered) != count:
        raise InputError(f"{len(rows)} detections are selected, {count} are needed. Shift adds one to them.")
    if any(frame[row] == frame[ordered[0]] for row in ordered[1:]):
        raise InputError(f"Two of these are in frame {frame[ordered[0]]}. Select one in a later frame.")
    return ordered


def _name(session: Session, row: int) -> str:
    return f"track {session.tracks.track_id[row]} in frame {session.tracks.detections.frame[row]}"


def _places(tracks: Tracks) -> NDArray[np.float64]:
    """(N, 4) Frame and position of each detection."""
    return np.column_stack([tracks.detections.frame, tracks.detections.position])
