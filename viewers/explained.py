"""Explain in a sentence why a link of low probability was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from outbid.particles.calibration import Calibration
from outbid.particles.tracks import Tracks

if TYPE_CHECKING:
    from .proofreading import Question, Session

_REACH = 1.5
"""Search radius for competing detections around the ends of a link, as a multiple of its length."""
_SAMPLE = 10_000
"""Guard: links of which the median length is taken."""
_LONG = 3.0
"""Multiple of the median link length above which a link counts as long."""


def why(tracks: Tracks, link: int, calibration: Calibration | None = None) -> str:
    """Explain why a link is uncertain: competitors near its ends, or its length.

    Parameters
    ----------
    tracks : Tracks
    link : int
        Row of `Tracks.links`.
    calibration : Calibration, optional
        What the positions mean; by default that of the detections.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 0, -1]])
    >>> why(Tracks(seen, np.array([[0, 1]])), 0)
    '1 other detection at its end is about as near.'
    """
    seen, size = tracks.detections, (calibration or tracks.detections.calibration).spacing
    source, target = tracks.links[link].tolist()
    reach = _REACH * float(np.linalg.norm((seen.position[target] - seen.position[source]) * size))

    def near(frame_of: int, at: int) -> int:
        away = (seen.position[seen.rows_of(int(seen.frame[frame_of]))] - seen.position[at]) * size
        return int((np.linalg.norm(away, axis=1) <= reach * (1 + 1e-9)).sum())

    rivals = {"end": near(target, source) - 1, "start": near(source, target) - 1}
    if any(rivals.values()):
        messages = [f"{n} other detection{'s' * (n > 1)} at its {side}" for side, n in rivals.items() if n]
        return f"{' and '.join(messages)} {'are' if sum(rivals.values()) > 1 else 'is'} about as near."
    some = tracks.links[:: max(1, len(tracks.links) // _SAMPLE)]
    step = (seen.position[some[:, 1]] - seen.position[some[:, 0]]) * size
    length = np.linalg.norm(step, axis=1)
    if reach / _REACH > _LONG * float(np.median(length)):
        return "It is much longer than usual: the particle may have ended, and another begun."
    gap = int(seen.frame[target] - seen.frame[source])
    if gap > 1:
        return f"It spans {gap} frames."
    model = "" if tracks.link_probability is None else "; the model expects a different step"
    return f"No competing detection is near{model}."


def why_chosen(asked: Question, session: Session) -> str:
    """Explain why the present answer of a question holds, though another one may be more probable.

    Parameters
    ----------
    asked : Question
    session : Session

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> from outbid.tracking import TrackingSettings
    >>> from .proofreading import opened, question
    >>> seen = Detections.from_table([0, 0, 1, 1], [[0, 0, 0], [0, 9, 9], [0, 9, 8], [0, 0, 1]])
    >>> session = opened(Tracks(seen, np.array([[0, 3]])), TrackingSettings(), foreign=True)
    >>> why_chosen(question(session, 1), session)
    'Its track ends.'
    """
    tracks, link = session.tracks, asked.link
    present = link.successors[0] if link.successors else -1
    chances = dict(link.alternatives) if asked.probable else {}
    better = [row for row, p in chances.items() if row >= 0 and p > chances.get(present, 1.0)]
    state = "It goes on" if present >= 0 else "Its track ends"
    reasons = []
    for row in better:
        into = np.flatnonzero(tracks.links[:, 1] == row)
        number = [*(row for row in chances if row >= 0)].index(row) + 1
        if len(into):
            rival, p = tracks.track_id[tracks.links[into[0], 0]], _chance(tracks, int(into[0]))
            reasons.append(f"{number} follows track {rival}{p}")
    if reasons:
        rest = "and no two tracks share a spot" if len(link.successors) < 2 else "so it divides"
        return f"{state}, because {', '.join(reasons)}, {rest}."
    if present < 0:
        return f"{state}{': that is the most probable' if chances else ''}."
    of = int(np.flatnonzero((tracks.links == [link.row, present]).all(axis=1))[0])
    return why(tracks, of)


def _chance(tracks: Tracks, link: int) -> str:
    chance = tracks.link_probability
    return "" if chance is None else f" ({chance[link]:.0%})"
