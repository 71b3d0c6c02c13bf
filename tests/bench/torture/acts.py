"""What is done to a command while it writes, and what must hold afterwards: old or new, never half."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .folders import State, faults, state_of
from .runs import Ended, begin, ended, run
from .writers import Writer

_DONE, _REFUSED, _NO_ROOM, _INTERRUPTED = 0, 2, 4, 130
_SOON = 0.02
"""Seconds, about, that a run goes on after its temporary file has appeared."""


@dataclass(frozen=True)
class Stage:
    """A command with its folder, and what that holds before and after a whole run."""

    writer: Writer
    folder: Path
    replaces: bool
    before: State
    after: State
    seconds: float

    def words(self, *more: str) -> list[str]:
        """Of the run that is disturbed."""
        return self.writer.arguments(1, *(["--overwrite"] if self.replaces else []), *more)


def signalled(number: signal.Signals, stage: Stage, rng: random.Random) -> list[str]:
    """The signal at any moment."""
    process = begin(stage.words(), stage.folder)
    _wait(stage, rng)
    os.kill(process.process, number)
    end = ended(process)
    was_killed = number == signal.SIGKILL
    good = (-number, _DONE) if was_killed else (_INTERRUPTED, _DONE, -number)
    wrong = [] if end.code in good else [f"exit code {end.code}: {end.said[-300:]}"]
    return wrong + _afterwards(stage, end, leaves_parts=True, was_killed=was_killed)


def full_disk(stage: Stage, rng: random.Random) -> list[str]:
    """No file can have more than so many bytes."""
    sizes = [len(of) for name in stage.writer.outputs for of in stage.after.of(name).values()]
    process = begin(stage.words(), stage.folder, limit=rng.randrange(max(sizes)))
    end = ended(process)
    wrong = [] if end.code in (_DONE, _NO_ROOM) else [f"exit code {end.code}: {end.said[-300:]}"]
    return wrong + _afterwards(stage, end, leaves_parts=True, was_killed=False)


def read_only(stage: Stage, rng: random.Random) -> list[str]:
    """The folder belongs to somebody else, or cannot be written."""
    stage.folder.chmod(0o555)
    try:
        end = ended(begin(stage.words(), stage.folder, alone=True))
    finally:
        stage.folder.chmod(0o755)
    wrong = [] if end.code in (_NO_ROOM, _REFUSED) else [f"exit code {end.code}: {end.said[-300:]}"]
    return wrong + _afterwards(stage, end, leaves_parts=False, was_killed=False)


def two_runs(stage: Stage, rng: random.Random) -> list[str]:
    """Another run makes another output of the same name at the same time."""
    first = begin(stage.writer.arguments(1, "--overwrite"), stage.folder)
    time.sleep(rng.random() * stage.seconds * 0.7)
    second = begin(stage.writer.arguments(2, "--overwrite"), stage.folder)
    ends = [ended(first), ended(second)]
    now = state_of(stage.folder)
    wrong = [f"exit code {end.code}: {end.said[-300:]}" for end in ends if end.code not in (_DONE, _REFUSED)]
    if all(end.code != _DONE for end in ends):
        wrong.append("neither run is done")
    run(stage.writer.arguments(2, "--overwrite"), stage.folder)
    wholes = [stage.after, state_of(stage.folder), *([stage.before] if wrong else [])]
    return wrong + _looked_at(stage, now, wholes, Ended(_DONE, ""), parts=False)


ACTS: Mapping[str, Callable[[Stage, random.Random], list[str]]] = {
    **{name: partial(signalled, signal.Signals[f"SIG{name}"]) for name in ("KILL", "TERM", "INT")},
    "full disk": full_disk,
    "read-only folder": read_only,
    "two runs": two_runs,
}
"""By name; each returns what was wrong."""


def _wait(stage: Stage, rng: random.Random) -> None:
    """Until some moment of the run: any, or one at which it writes."""
    end = time.monotonic() + stage.seconds * (0.3 + rng.random())
    if rng.random() < 0.4:
        time.sleep(max(rng.random() * stage.seconds, 0.0))
        return
    names = tuple(f"{name}." for name in stage.writer.outputs)
    while time.monotonic() < end:
        there = (path.name for path in stage.folder.iterdir())
        if any(name.startswith(names) and name.endswith((".tmp", ".parts")) for name in there):
            time.sleep(rng.expovariate(1 / _SOON) if rng.random() < 0.7 else 0)
            return


def _afterwards(stage: Stage, end: Ended, *, leaves_parts: bool, was_killed: bool) -> list[str]:
    """What is wrong now, and after the run has been repeated."""
    now = state_of(stage.folder)
    wholes = [stage.before, stage.after]
    parts = leaves_parts and stage.writer.resumes
    wrong = _looked_at(stage, now, wholes, end, parts=parts, was_killed=was_killed)
    going_on = ["--resume"] if any(name.endswith(".parts") for name in now.left) else []
    if stage.replaces and not going_on:
        again = run(stage.writer.arguments(1), stage.folder)
        if again.code != _REFUSED:
            wrong.append(f"without --overwrite: exit code {again.code}: {again.said[-300:]}")
        wrong += _looked_at(
            stage, state_of(stage.folder), wholes, again, parts=False, was_killed=was_killed, swept=True
        )
    again = run(stage.writer.arguments(1, "--overwrite", *going_on), stage.folder)
    if again.code != _DONE:
        wrong.append(f"repeated: exit code {again.code}: {again.said[-300:]}")
    if state_of(stage.folder) != stage.after:
        wrong.append(f"repeated: not what a whole run leaves, but also {state_of(stage.folder).left}")
    return wrong


def _looked_at(
    stage: Stage,
    now: State,
    wholes: list[State],
    end: Ended,
    *,
    parts: bool,
    was_killed: bool = False,
    swept: bool = False,
) -> list[str]:
    wrong = [fault for name in stage.writer.outputs for fault in faults(name, now, wholes, killed=was_killed)]
    others, before = now.without(stage.writer.outputs), stage.before.without(stage.writer.outputs)
    if others != before:
        names = [name for name in sorted({*others, *before}) if others.get(name) != before.get(name)]
        wrong.append(f"inputs or other files have changed: {names}")
    left = [name for name in now.left if not (parts and name.endswith(".parts"))]
    alone = len(stage.writer.outputs) == 1  # else it was refused at the first of them
    if left and ((swept and alone) or not was_killed):
        wrong.append(f"left over: {left}")
    if "Traceback" in end.said:
        wrong.append(f"a traceback: {end.said[-300:]}")
    return wrong


def staged(writer: Writer, inputs: Path, scratch: Path, *, replaces: bool) -> Stage:
    """A folder for a command, with its inputs, and perhaps the output of an earlier run.

    Raises
    ------
    RuntimeError
        If the command does not work as it is, or not twice alike.
    """
    folder = scratch / "work"
    states: list[State] = []
    for _ in range(2):
        renewed(folder, inputs)
        if replaces and (end := run(writer.arguments(2), folder)).code:
            raise RuntimeError(f"{writer.name}: {end.said}")
        before, start = state_of(folder), time.monotonic()
        end = run(writer.arguments(1, *(["--overwrite"] if replaces else [])), folder)
        seconds = time.monotonic() - start
        states.append(state_of(folder))
        if end.code or states[0] != states[-1]:
            raise RuntimeError(f"{writer.name} does not make the same output twice: {end.said}")
    return Stage(writer, folder, replaces, before, states[0], seconds)


def renewed(folder: Path, inputs: Path, before: State | None = None) -> None:
    """Have a folder as it was before a run."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(inputs, folder)
    for name, content in (before.content if before is not None else {}).items():
        for inside, of in content.items():
            file = folder / name / inside if inside else folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(of)
