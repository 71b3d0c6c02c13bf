"""A session of proofreading, without a window: questions, answers, undo and redo, and expected errors.

A session is a record that does not change; each function returns another one. Its tracks are a function of
detections, model and pins. Tracks of another program have no model: pins replace only those links that they
concern.
"""

from __future__ import annotations

import getpass
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outbid.edit.proofreading import (
    FrozenModel,
    Resolved,
    UncertainLink,
    hold,
    hold_again,
    resolve,
    uncertain_link_at,
    uncertain_links,
)
from outbid.errors import SettingsError
from outbid.particles.tracks import Tracks
from outbid.pins import (
    EDITS,
    Pin,
    PinnedRows,
    append_pin,
    check_pins,
    drop_last,
    edited,
    edits_in,
    followed,
    read_pins,
    resolve_pins,
    taken_back,
)
from outbid.tracking import TrackingRun, TrackingSettings

from .layers import link_speed

AUDIT_EVERY = 5
"""Prior: of as many questions one is about a random link, by which the expected errors are judged."""
_QUEUE = 100
"""Guard: uncertain links in the queue; more are sought when it is empty."""
_SHOWN = 4
"""Guard: alternatives of a question."""
Spot = tuple[int, tuple[float, float, float]]
Report = Callable[[int, int], None]


class Question(NamedTuple):
    """What follows a detection?"""

    link: UncertainLink  # without probabilities, alternatives have lengths of steps; no link has NaN
    audit: bool  # whether the link was chosen at random
    probable: bool  # whether the alternatives have probabilities


@dataclass(frozen=True, eq=False)
class Session:
    """Tracks under the answers that were given."""

    frozen: FrozenModel  # of another program's tracks the settings by which lengths are taken, and no more
    given: Tracks | None  # of another program, as they were opened
    now: Resolved
    wrong_at_first: float  # expected number of wrong links without pins
    had: tuple[Pin, ...] = ()  # edits that the detections had when they were opened: undo takes them back
    pins: tuple[Pin, ...] = ()  # what holds, the last at the end
    past: tuple[tuple[Pin, ...], ...] = ()  # what held before each act, and, after undo, what held then
    future: tuple[tuple[Pin, ...], ...] = ()
    queue: tuple[UncertainLink, ...] = ()  # the least certain first
    asked: int = 0  # questions so far
    skipped: frozenset[Spot] = frozenset()
    changed: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """(K,) Rows of the detections whose successors the last step changed."""

    @property
    def tracks(self) -> Tracks:
        """The tracks under all pins."""
        return self.now.run.tracks

    @property
    def edits(self) -> list[tuple[object, ...]]:
        """What was added, moved and removed."""
        return [pin[:2] for pin in self.pins if pin.kind in EDITS]

    def spot(self, row: int) -> Spot:
        """Frame and position of a detection, as pins name it."""
        z, y, x = self.tracks.detections.position[row].tolist()
        return int(self.tracks.detections.frame[row]), (z, y, x)


def opened(
    tracks: Tracks,
    settings: TrackingSettings,
    pins: Sequence[Pin] = (),
    *,
    foreign: bool = False,
    progress: Report | None = None,
) -> Session:
    """Begin, or go on with the pins of an earlier session.

    The links count if they are foreign, of another program: then only pins change them. Else a model is
    learned, which reports its progress.

    >>> from outbid import Detections
    >>> seen = Detections.from_table([0, 0, 1, 1], [[0, 0, 0], [0, 9, 9], [0, 9, 8], [0, 0, 1]])
    >>> session = opened(Tracks(seen, np.array([[0, 2], [1, 3]])), TrackingSettings(), foreign=True)
    >>> session, question = next_question(session)
    >>> session.tracks.links[session.tracks.links[:, 0] == question.link.row].tolist()
    [[0, 2]]
    >>> [row for row, _ in question.link.alternatives]
    [3, 2, -1]
    >>> session = answer(session, question, "link", 3)
    >>> session.tracks.links.tolist(), headline(session)
    ([[0, 3]], '1 link, without probabilities; 1 answer.')
    >>> undo(session).tracks.links.tolist()
    [[0, 2], [1, 3]]
    """
    if foreign:
        frozen, given = FrozenModel(tracks.detections, settings, 1), tracks
    else:
        frozen, given = hold(tracks.detections, settings, progress=progress), None
    pins, had = tuple(pins), edits_in(tracks.detections, pins)
    first = _solved(frozen, given, (), had)
    now = _solved(frozen, given, pins, had) if pins else first
    queue = _uncertain(now, frozen)
    return Session(
        frozen, given, now, first.expected_wrong, had, pins, queue=queue, asked=len(pins),
        past=tuple(pins[:k] for k in range(len(pins))),
    )  # fmt: skip


def next_question(session: Session, seed: int = 0) -> tuple[Session, Question | None]:
    """The least certain link that was not asked since the last answer; every fifth time a random link.

    None if no link is uncertain.
    """
    tracks, count = session.tracks, session.asked + 1
    asked = replace(session, asked=count)
    if count % AUDIT_EVERY == 0:
        closed = PinnedRows.of(session.now.found, len(tracks.detections)).row_closed
        open_ = np.flatnonzero(~closed[tracks.links[:, 0]])
        if len(open_):
            chosen = np.random.default_rng([seed, count]).choice(open_)
            return asked, question(session, int(tracks.links[chosen, 0]), audit=True)
    queue = session.queue or _uncertain(session.now, session.frozen, len(session.skipped))
    for k, doubt in enumerate(queue, 1):
        if session.spot(doubt.row) not in session.skipped:
            return replace(asked, queue=queue[k:]), question(session, doubt.row)
    return session, None


def question(session: Session, row: int, *, audit: bool = False) -> Question:
    """The question about one detection."""
    doubt = uncertain_link_at(session.now, row)
    if np.isfinite(session.now.probability).any():
        known = dict(doubt.alternatives)
        value = min(known.get(to, math.nan) for to in doubt.successors or (-1,))
        return Question(doubt._replace(value=value), audit, probable=True)
    seen, spacing = session.tracks.detections, session.frozen.settings.spacing
    there = seen.rows_of(int(seen.frame[row]) + 1)
    rows = np.union1d(np.arange(there.start, there.stop), np.array(doubt.successors, np.int64))
    length = np.linalg.norm((seen.position[rows] - seen.position[row]) * spacing, axis=1)
    order = np.argsort(length, kind="stable")
    shown = order[(np.arange(len(order)) < _SHOWN) | np.isin(rows[order], doubt.successors)]
    ways = [(int(rows[k]), float(length[k])) for k in shown]
    return Question(doubt._replace(alternatives=(*ways, (-1, math.nan))), audit, probable=False)


def answer(session: Session, asked: Question, kind: str, *others: int) -> Session:
    """Pin what was answered, a kind of `outbid.pins.KINDS` with rows of further detections; and solve again.

    It takes the place of earlier answers that it contradicts; undo brings them back.
    """
    doubt = asked.link
    stated = {"link": set(others), "division": set(others), "end": set(), "no_particle": {-2}}.get(kind)
    right = stated == set(doubt.successors) if stated is not None else kind != "forbid"
    known = dict(doubt.alternatives) if asked.probable else {}
    target = {"end": -1, "no_particle": -2}.get(kind, others[0] if others else -1)
    before = known.get(target, math.nan) if kind != "division" else math.nan
    before = 1 - before if kind == "forbid" else before
    audit = ("right" if right else "wrong") if asked.audit and kind != "same_cell" else ""
    spots = tuple(session.spot(row) for row in (doubt.row, *others))
    pin = Pin(kind, spots, user=getpass.getuser(), p_before=before, audit=audit)
    of = _as_link if session.given is not None else (lambda pin: pin)
    earlier = zip(session.pins, followed(session.pins), strict=True)
    kept = (one for one, now in earlier if not _contradict(of(now), of(pin)))
    return act(session, (*kept, pin))


def edit(session: Session, kind: str, *spots: Spot) -> Session:
    """Add, move or remove a detection, a kind of `outbid.pins.EDITS` with its place, or both."""
    return act(session, (*session.pins, Pin(kind, spots, user=getpass.getuser())))


def act(session: Session, pins: tuple[Pin, ...]) -> Session:
    """The session with other pins, which undo takes back together."""
    return _with(session, pins, ((*session.past, session.pins), ()))


def undo(session: Session) -> Session:
    """The session before its last act."""
    *past, last = session.past or (None,)
    ahead = (*session.future, session.pins)
    return session if last is None else _with(session, last, (tuple(past), ahead))


def redo(session: Session) -> Session:
    """The session after the act that was undone last."""
    *future, last = session.future or (None,)
    behind = (*session.past, session.pins)
    return session if last is None else _with(session, last, (behind, tuple(future)))


def learned_again(session: Session) -> Session:
    """The session with a model that is learned once more, with the pins held."""
    frozen = hold_again(session.frozen, _with_undone(session.pins, session.had))
    now = _solved(frozen, session.given, session.pins, session.had)
    return replace(
        session, frozen=frozen, now=now, changed=_changed(session.now, now), queue=_uncertain(now, frozen)
    )


def skip(session: Session, asked: Question) -> Session:
    """The session in which this detection is not asked about again."""
    return replace(session, skipped=session.skipped | {session.spot(asked.link.row)})


def stored(session: Session, path: Path) -> Session:
    """Bring the table of pins of the tracks up to date; the pins have the numbers of its lines."""
    frozen, pins = (read_pins(path) if path.exists() else ()), session.pins
    same = _same(frozen, pins)
    for _ in frozen[same:]:
        drop_last(path)
    return replace(session, pins=(*frozen[:same], *(append_pin(path, pin) for pin in pins[same:])))


def _contradict(earlier: Pin, pin: Pin) -> bool:
    """Whether two pins cannot both hold."""
    if earlier.kind == "forbid" and pin.kind == "same_cell":
        return earlier.detections == pin.detections
    try:
        check_pins([earlier, pin])
    except SettingsError:
        return True
    return False


def _as_link(pin: Pin) -> Pin:
    """What a pin states of tracks without a model: what is of one particle is linked."""
    return pin._replace(kind="link") if pin.kind == "same_cell" else pin


def headline(session: Session) -> str:
    """How many links are expected to be wrong, what the answers removed, and what audits say of it."""
    links, pins = len(session.tracks.links), [pin for pin in session.pins if pin.kind not in EDITS]
    text, answers = f"{links:,} link{'s' * (links != 1)}", f"{len(pins)} answer{'s' * (len(pins) != 1)}"
    chance = session.tracks.link_probability
    if chance is None:
        text += f", without probabilities; {answers}."
    else:
        wrong, error = session.now.expected_wrong, float(np.sqrt((chance * (1 - chance)).sum()))
        removed = f"; {answers} removed about {session.wrong_at_first - wrong:,.0f}" if pins else ""
        text = f"{wrong:,.0f} ± {error:,.0f} wrong links expected of {links:,}{removed}."
    audits = [pin.audit == "wrong" for pin in pins if pin.audit]
    if audits:
        count, wrong = len(audits), sum(audits)
        rate = (wrong + 0.5) / (count + 1)  # Jeffreys' prior: the error of no error among few is not 0
        error = links * math.sqrt(rate * (1 - rate) / (count + 2))
        text += f" Audits: {wrong} of {count} wrong, hence {links * wrong / count:,.0f} ± {error:,.0f}."
    return text


# ---------------------------------------------------------------- tracks under pins


def _with(session: Session, pins: tuple[Pin, ...], acts: tuple[tuple[tuple[Pin, ...], ...], ...]) -> Session:
    """The session with other pins, and acts before and after it."""
    frozen, (past, future) = session.frozen, acts
    solved = _solved(frozen, session.given, pins, session.had)
    kept = replace(session, pins=pins, past=past, future=future)
    changed = _changed(session.now, solved) if kept.edits == session.edits else np.empty(0, np.int64)
    return replace(kept, now=solved, changed=changed, queue=_uncertain(solved, frozen))


def _same(one: Sequence[Pin], other: Sequence[Pin]) -> int:
    """How many pins two sequences begin with alike."""
    return len(list(takewhile(lambda two: two[0][:2] == two[1][:2], zip(one, other, strict=False))))


def _with_undone(pins: Sequence[Pin], had: Sequence[Pin]) -> tuple[Pin, ...]:
    """The pins, after what takes back those edits that the detections had and that hold no more."""
    edits = [pin for pin in pins if pin.kind in EDITS]
    return (*taken_back(had[_same(had, edits) :]), *pins)


def _solved(frozen: FrozenModel, given: Tracks | None, pins: Sequence[Pin], had: Sequence[Pin]) -> Resolved:
    """The tracks under pins; of another program the given links, but where pins say otherwise."""
    acts = _with_undone(pins, had)
    now = resolve(frozen, acts) if given is None else _as_given(frozen, given, acts)
    settings = replace(now.run.settings, pins=tuple(pins))
    there = {pin[:2] for pin in had}
    unmatched = tuple(pin for pin in now.found.unmatched if pin[:2] not in there)
    return now._replace(
        run=replace(now.run, settings=settings), found=now.found._replace(unmatched=unmatched)
    )


def _as_given(frozen: FrozenModel, given: Tracks, pins: Sequence[Pin]) -> Resolved:
    """The links of another program, but where pins say otherwise."""
    edits = edited(given.detections, pins)
    seen, count = edits.detections, len(edits.detections)
    found = resolve_pins(
        [_as_link(pin) for pin in pins], seen, calibration=frozen.settings.calibration_of(seen)
    )
    rows = PinnedRows.of(found, count)
    links = edits.row[given.links]
    there = (links >= 0).all(axis=1)
    kept = there & rows.allows(*links.T) & ~rows.row_closed[links[:, 0]]  # the others are stated
    links = np.concatenate([links[kept], rows.pairs])
    order = np.lexsort((links[:, 1], links[:, 0]))
    sure = {"link_probability": 1.0, "link_margin": math.inf, "link_cost": 0.0}
    measures = {
        name: np.append(values[kept], np.full(len(rows.pairs), sure[name]))[order]
        for name, values in given.measures.items()
    }
    run = TrackingRun(Tracks(seen, links[order], **measures), frozen.settings, {})
    none = np.full(count, np.nan)
    found = found._replace(unmatched=edits.unmatched + found.unmatched)
    return Resolved(run, links[order], np.full(len(links), np.nan), none, none, none, found)


def _uncertain(now: Resolved, frozen: FrozenModel, skipped: int = 0) -> tuple[UncertainLink, ...]:
    """The least certain links; the longest ones if links have neither probability nor margin."""
    tracks = now.run.tracks
    if not tracks.measures.keys() & {"link_probability", "link_margin"}:
        of = frozen.settings.calibration_of(tracks.detections)
        tracks = replace(tracks, link_margin=-link_speed(tracks, of))
        now = now._replace(run=replace(now.run, tracks=tracks))
    return tuple(uncertain_links(now, _QUEUE + skipped))


def _changed(before: Resolved, after: Resolved) -> NDArray[np.int64]:
    """Rows whose successors differ."""
    count = len(after.end)
    one, other = (each.run.tracks.links @ [count, 1] for each in (before, after))
    return np.unique(np.setxor1d(one, other) // max(count, 1))
