"""The loop: frames that arrive are detected, linked, written and acted on; at the end all is linked again."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compute.interrupt import forget
from ..errors import InputError, SettingsError
from ..particles.detections import Detections
from ..settings.detection import DetectionSettings
from ..settings.tracking import TrackingSettings
from ..work.jobs import Opening, run_record
from .account import Account, How
from .acting import Actor
from .choice import source_of
from .ending import LastPass, changes, write_watch_record
from .events import Event, Watch
from .following import Followed, Follower
from .light import FRAMES
from .order import InOrder
from .parts import GrowingOutput
from .rows import GrowingTable
from .seeing import Ahead, Seer, numbered
from .sources import NotYet, Source

_LOG = logging.getLogger("outbid")
_GONE = "Looking for new frames has failed: {}. Bring the source back, and give the same command to go on."
_NOTHING = (
    "No frame came to {} before its recording counted as ended ({}). Begin to record, and give the same "
    "command again; --idle waits longer."
)
_REPORTED = 10.0
"""Guard: seconds from message to message where there is no bar."""


def watch(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    settings: DetectionSettings | None = None,
    *,
    tracking: TrackingSettings | None = None,
    how: How | None = None,
    when: Sequence[str] = (),
    do: str | Callable[[Event], object] | None = None,
    opening: Opening | None = None,
    columns: dict[str, str] | None = None,
    detections: Path | None = None,
    overwrite: bool = False,
    progress: Callable[..., Any] | None = None,
) -> dict[str, Any]:
    """Follow a movie while it is recorded; see the command `outbid watch`.

    Parameters
    ----------
    source : path
        A folder of images, a growing TIFF, OME-Zarr or table; ``-`` is stdin.
    output : path
        Tracks, a Parquet file: the current ones while it is recorded, those of the last pass at the end.
    settings, tracking : DetectionSettings, TrackingSettings
    how : How
    when : sequence of str
        Conditions: ``speed > 2``, ``division``, ``enters 0:5,0:100,0:100``, ``lost > 0.5``.
    do : str or callable, optional
        What is done at an event: a command, or a function of an `Event`. Default: a line on stdout.
    opening, columns
        How images are opened, or tables read.
    detections : Path, optional
        Where the detections of the last pass go. Default: the output's name and ``_detections``.
    overwrite : bool
    progress : callable, optional
        Called after each frame with (frames done, frames known, text), and with those of the last pass,
        whose texts begin with `ending.LAST`.

    Returns
    -------
    dict
        The record of the run, which is also written beside the output.

    Raises
    ------
    SettingsError, InputError
        If the output exists, there is nothing to follow, or the frames begin again.
    """
    path = Path(output)
    if path.suffix.lower() != ".parquet":
        raise SettingsError(f"{path} would not be Parquet, which alone grows. Let it end in .parquet.")
    named, how, opening = os.fspath(source), how or How(), opening or Opening()
    settings, tracking = settings or DetectionSettings(), tracking or TrackingSettings()
    used: dict[str, object] = (
        asdict(settings) | asdict(opening) | {"columns": columns or {}, "learn": how.learn}
    )
    used["tracking"] = tracking.as_dict()
    known = run_record("watch", {"name": named}) | {"settings": used}
    seen = detections or path.with_name(f"{path.stem}_detections.{'csv' if named == '-' else 'parquet'}")
    with GrowingOutput(path, known, overwrite=overwrite) as out:
        run = _Run(
            source=source_of(named, opening, columns or {}, out.spool), out=out, how=how,
            settings=settings, tracking=tracking,
            when=Watch(when), actor=Actor(out.events, do), progress=progress,
        )  # fmt: skip
        if not out.ended:
            run.follow()
            if not run.order.frame + 1:
                raise InputError(_NOTHING.format(named, run.account.ended))
            out.end(run.account.as_dict() | run.counts())
        last = LastPass(
            named, seen, path, run.settings, opening, run.tracking, columns or {}, how.workers
        )  # fmt: skip
        return _finished(run, last, known)


def _finished(run: _Run, last: LastPass, known: dict[str, Any]) -> dict[str, Any]:
    """The last pass, and the record of the run."""
    if last.source == "-":
        last = replace(last, source=str(last.detections))
        last.detections.write_bytes(run.out.spool.read_bytes())
    images = not isinstance(run.source, GrowingTable)
    made = last.run(images=images, progress=run.progress)
    record = known | {
        "live": run.out.live,
        "links_changed": changes(run.out.folder, made.tracks),
    }  # fmt: skip
    write_watch_record(last.output, record)
    if not run.how.keep:
        run.out.remove()
    return record | {"summary": made.summary}


@dataclass
class _Run:
    """A movie that is watched."""

    source: Source
    out: GrowingOutput
    how: How
    settings: DetectionSettings
    tracking: TrackingSettings
    when: Watch
    actor: Actor
    progress: Callable[..., Any] | None
    account: Account = field(default_factory=Account)
    seer: Seer | None = None
    order: InOrder = field(init=False)
    follower: Follower = field(init=False)

    def __post_init__(self) -> None:
        step = 1 if self.source.counts else -1
        self.order = InOrder(self.how.wait, min(FRAMES, self.how.learn), step=step)
        self.follower = Follower(self.tracking, self.how.learn, self.how.workers)
        self._arrived: dict[int, float] = {}
        self._reported, self._begun = time.monotonic(), False
        self._looks = self._reported, self._reported
        self._half: list[int] = []
        self._failure: InputError | None = None
        self._dark = -1  # up to here no spot stood out
        self._ahead = Ahead(self.how.workers)
        self._heard = self._reported

    def counts(self) -> dict[str, Any]:
        """Frames that were missing or late, and from how many was learned."""
        first = self.seer.learned_from if self.seer else ()
        return {
            "missing": self.order.missing, "late": self.order.late,
            "linking_learned_from": self.follower.learned_from, "detection_learned_from": len(first),
            "detection_learned_again": self.seer.again if self.seer else [], "events": self.actor.count,
        }  # fmt: skip

    def follow(self) -> None:
        """Follow the movie until its recording ends."""
        ended, self._heard = False, time.monotonic()
        with _stopped_by_signals(self.account), closing(self._ahead):
            while not ended:
                self._looked(ended=False)
                goes_on = self._goes_on()
                self._has_ended()
                ended = bool(self.account.ended)
                if ended:
                    self._looked(ended=True)
                while goes_on and self._step(ended=ended):
                    self._report()
                    if self.out.is_due():
                        self._write()
                    if not ended and self._stops():
                        break
                if self.out.is_due():
                    self._write()
                self._report()
                if not ended:
                    time.sleep(self.how.poll)
        self._linked(self.follower.rest(ended=True))
        self._write()
        self.out.refresh(now=True)
        self.actor.finish()
        if self._failure is not None:
            raise self._failure
        self.how.stop_of(self.out.output).unlink(missing_ok=True)

    def _looked(self, *, ended: bool) -> None:
        """Look for new frames; an error ends the recording, once the frames that came before are linked."""
        if self._failure is not None:
            return
        try:
            if self._poll(ended=ended):
                self._heard = time.monotonic()
        except InputError as error:
            self._failure, self.account.ended = error, "error"
        except OSError as error:  # as of a share that is gone
            self._failure, self.account.ended = InputError(_GONE.format(error)), "error"

    def _poll(self, *, ended: bool) -> Sequence[int]:
        """Look for new frames."""
        new = self.source.poll(ended=ended)
        new = [*self._half, *new] if ended else self._of_first(new)
        now = time.monotonic()
        self._looks = self._looks[1], now
        for number in self.order.add(new, now):
            self.source.drop(number)
        self._arrived |= dict.fromkeys(new, now)
        self.account.behind = max(self.account.behind, len(self.order))
        return new

    def _of_first(self, new: Sequence[int]) -> Sequence[int]:
        """Of the first frames, which are learned from together, those that can be read; others are kept."""
        given, self._half = [*self._half, *new], []
        if self.order.last is not None:
            return given
        whole = [number for number in given if self._is_whole(number)]
        if len(self.order) + len(whole) >= self.order.hold:
            return given
        self._half = [number for number in given if number not in whole]
        return whole

    def _has_ended(self) -> None:
        """Find whether the recording has ended, and why."""
        if self.account.ended:
            return
        until, quiet = self.how.until, time.monotonic() - self._heard
        if self._stops():
            self.account.ended = "stop file"
        elif until is not None and self.order.frame >= until:
            self.account.ended = "last frame"
        elif self.source.ended:
            self.account.ended = "end of input"
        elif quiet > self.how.idle:
            self.account.ended = "idle"

    def _stops(self) -> bool:
        return self.how.stop_of(self.out.output).exists() or self.out.is_stopped

    def _step(self, *, ended: bool) -> bool:
        """Take the next frame, if it is there; whether it was."""
        # A file is whole when two looks saw it alike: only what the one before the last saw was waited for.
        now = self._looks[0]
        number = self.order.next(now, ended=ended)
        until = self.how.until
        if number is None or (until is not None and self.order.frame >= until):
            return False
        try:
            what = self.source.read(number)
        except NotYet as reason:
            passed = self.order.failed(now, ended=ended)
            if passed:
                _LOG.warning("Frame %d cannot be read, and counts as missing: %s", number, reason)
            return passed
        frame = self.order.done()
        self.out.took(frame, number, len(self.order))
        seen = what if isinstance(what, Detections) else self._detected(number, what, frame, ended=ended)
        linked = self.follower.add(frame, seen)
        self._linked(linked)
        done = time.monotonic()
        self.account.took(self._arrived.pop(number, done), done, is_linked=bool(linked))
        return True

    def _detected(self, number: int, image: NDArray, frame: int, *, ended: bool) -> Detections:
        """The detections of an image; the first ones, with those that follow, are learned from."""
        seer = self.seer = self.seer or self._begun_seer()
        if not seer.learned_from and number > self._dark:
            numbers = [number, *filter(self._is_whole, self.order.first_there(self.order.hold - 1))]
            self._dark = number if seer.learn(self._image, numbers) else max(numbers)
        if seer.learned_from:
            self._begin(seer, number)
            while not self._ahead.is_done(number, self.how.poll):
                if not ended:
                    self._looked(ended=False)
                    self._begin(seer, number)
        found = numbered(self._ahead.found(seer, number, image), frame)
        if seer.learned_from:
            seer.compare(self._image, number, frame, found)
        return found

    def _begin(self, seer: Seer, number: int) -> None:
        """Begin to detect this image, and those that wait."""
        self._ahead.begin(seer, self._image, [number, *self.order.first_there(self.how.workers)])

    def _begun_seer(self) -> Seer:
        """What will detect, once it has learned."""
        movie = self.source.movie()
        assert movie is not None
        return Seer(movie, self.settings, self.how.workers)

    def _image(self, number: int) -> NDArray:
        image = self.source.read(number)
        assert isinstance(image, np.ndarray)
        return image

    def _is_whole(self, number: int) -> bool:
        """Whether an image can be read; detections, which are read once, always can."""
        if isinstance(self.source, GrowingTable):
            return True
        try:
            self.source.read(number)
        except NotYet:
            return False
        return True

    def _linked(self, frames: list[Followed]) -> None:
        """Write frames that were linked, and act on them."""
        self.out.add(frames)
        movie = self.source.movie() if frames else None
        if movie is not None:
            self.when.interval = movie.interval
        for one in frames:
            self.actor.act(self.when.events(one, self.follower.learned))

    def _write(self) -> None:
        """Write a part of what was linked, with the state after it; and the current table, if it is due."""
        seen = self.seer.state() if self.seer else {"seen": np.empty(0, np.int64)}
        own = {"order": self.order.state(), "account": [self.account.frames, self.account.behind]}
        numbers = {name: np.array(values, np.int64) for name, values in own.items()}
        self.out.commit(self.follower.state() | seen | numbers)
        self.out.refresh()

    def _goes_on(self) -> bool:
        """Go on where a run was killed, once the frames that it learned from are there again."""
        state = self.out.state
        if not state or self._begun:
            return True
        if not set(state["seen"].tolist()) <= self._arrived.keys():
            return False
        self._begun = True
        self.account.frames, self.account.behind = state["account"].tolist()
        for number in self.order.restore(state["order"].tolist()):
            self.source.drop(number)
        if len(state["seen"]):
            self.seer = self._begun_seer()
            self.seer.restore(self._image, state)
        until = int(state["learned_from"])
        self.follower.restore(state, [one.detections for one in self.out.frames() if one.frame < until])
        for one in self.out.frames():
            self.when.events(one, self.follower.learned)  # these were acted on
        return True

    def _report(self) -> None:
        """State how far it is: to what moves a bar, or now and then in the log."""
        done, behind = self.account.frames, len(self.order)
        there, first = done + behind, self.follower.frames
        learns = not self.follower.learned_from
        text = f"Frame {self.order.frame}, {behind} behind"
        text = f"{there} of the first {first} frames, to learn from" if learns and there < first else text
        if self.progress is not None:
            self.progress(done, there, text)
        elif time.monotonic() > self._reported + _REPORTED:
            self._reported = time.monotonic()
            _LOG.info("%s", text)


@contextmanager
def _stopped_by_signals(account: Account) -> Iterator[None]:
    """The first Ctrl-C ends the recording, not the run."""
    try:
        yield
    except KeyboardInterrupt:
        forget()
        account.ended = "interrupted"
        _LOG.warning("Watching has ended; now the whole movie is linked. Ctrl-C again ends that too.")
