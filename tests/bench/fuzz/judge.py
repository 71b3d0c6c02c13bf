"""Reads a case in this process, under limits of time and memory, and compares with the second reader."""

from __future__ import annotations

import faulthandler
import resource
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from outbid import OutbidError, SettingsError
from outbid.formats.files import memory

from .cases import Case, Kind, placed
from .second import Broken, Found, Unsure

SECONDS = 5
"""A case that computes longer hangs: seconds of the processor, for other processes may have it meanwhile."""
_WAITS = 60
"""A case that takes so many seconds of the clock waits for something that does not come."""
_DEADLY = 90
"""Seconds after which the process ends itself: the case hangs where Python cannot stop it."""
FREE = 1 << 30
"""Bytes of memory that the readers believe to be free."""
_MORE = 4 << 30
"""Bytes of address space beyond what is there at the beginning: more is refused by the system."""
FAULTS = ("wrong", "crash", "hang", "unclean message")
"""Verdicts beside "agrees", "refused" and "not judged"."""
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A folder in memory, where there is such a place: thousands of cases are written."""


class _TooLong(BaseException):
    """The time is over; no reader may catch it."""


@dataclass(frozen=True)
class Verdict:
    """What became of a case, and the error or the difference if it is a fault."""

    name: str
    said: str = ""


@contextmanager
def limits() -> Iterator[None]:
    """Limits of memory for all that is read inside."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    believed = memory.free_memory
    memory.free_memory = lambda: FREE
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _MORE, hard))
    try:
        yield
    finally:
        memory.free_memory = believed
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def _in_time() -> Iterator[None]:
    def over(_number: int, _frame: FrameType | None) -> None:
        raise _TooLong

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, SECONDS), signal.SIGALRM: (signal.ITIMER_REAL, _WAITS)}
    before = {number: signal.signal(number, over) for number in timers}
    with suppress(RuntimeError):  # no thread is left for it: trouble of this harness, not of a reader
        faulthandler.dump_traceback_later(_DEADLY, exit=True)
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
        faulthandler.cancel_dump_traceback_later()


def verdict_on(kind: Kind, case: Case) -> Verdict:
    """Read the harmed files both ways."""
    with tempfile.TemporaryDirectory(dir=_MEMORY, ignore_cleanup_errors=True) as scratch:
        folder, files = Path(scratch), case.files(kind)
        placed(files, folder)
        path = folder / case.seed.given
        try:
            with _in_time():
                ours = kind.ours(path, case.seed)
        except _TooLong:
            return Verdict("hang", f"more than {SECONDS} s of the processor, or {_WAITS} s in all")
        except OutbidError as error:
            if not (case.harms or case.seed.hint.get("refused")):
                return Verdict("wrong", f"a good file is refused: {error}")
            names = [path.name, *(Path(name).name for name in files)]
            return _of_refusal(str(error), [""] if isinstance(error, SettingsError) else names)
        except Exception as error:
            return Verdict("crash", f"{type(error).__name__}: {error}"[:300])
        return _compared(kind, case, path, ours)


def _of_refusal(said: str, names: list[str]) -> Verdict:
    """A message names the file, unless it is about an option, on one line that any terminal shows."""
    clean = said.isprintable() and any(name in said for name in names)
    return Verdict("refused" if clean else "unclean message", said)


def _compared(kind: Kind, case: Case, path: Path, ours: Found) -> Verdict:
    if not path.exists():
        return Verdict("wrong", "read, though broken: nothing is there")
    try:
        theirs = kind.second(path, case.seed)
    except Unsure as reason:
        return Verdict("not judged", str(reason))
    except Broken as reason:
        return Verdict("wrong", f"read, though broken: {reason}")
    if not case.harms and ours.links is None and theirs.links:
        return Verdict("wrong", "the links of a good file are refused")
    if ours.agrees(theirs):
        return Verdict("agrees")
    return Verdict("wrong", _difference(ours, theirs))


def _difference(ours: Found, theirs: Found) -> str:
    what, mine, other = "links", {*(ours.links or ())}, {*(theirs.links or ())}
    if ours.rows != theirs.rows:
        what, mine, other = f"{len(ours.rows)} rows for {len(theirs.rows)}", {*ours.rows}, {*theirs.rows}
    shown = [str(sorted(few, key=str)[:2])[:200] for few in (mine - other, other - mine)]
    return f"{what}: {shown[0]} for {shown[1]}"
