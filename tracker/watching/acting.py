"""What is done at an event: a line of JSON on stdout, a command, or a Python function."""

from __future__ import annotations

import json
import logging
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from ..errors import SettingsError
from .events import Event

_LOG = logging.getLogger("outbid")
_MOST = 8
"""Guard: commands of events that run at the same time; a further one waits until the first has ended."""


class Actor:
    """Acts on events, each of which is logged in a file first: a run that goes on repeats none.

    Parameters
    ----------
    log : Path
        A line of JSON for each event.
    do : str or callable, optional
        A command, which gets the event as JSON on stdin, and is not waited for; or a function, which is
        called with the `Event`. Without it a line of JSON is printed.

    Raises
    ------
    SettingsError
        If the command cannot be parsed.
    """

    def __init__(self, log: Path, do: str | Callable[[Event], object] | None = None) -> None:
        self._log = log
        before = log.read_text("utf-8", "replace") if log.is_file() else ""
        self._done = set(before.splitlines())
        self.count = before.count("\n")
        if not before.endswith("\n") and before:  # a run was killed in the middle of a line
            log.write_text(before + "\n", "utf-8")
        self._running: list[subprocess.Popen[bytes]] = []
        try:
            self._do = shlex.split(do) if isinstance(do, str) else do
        except ValueError as error:
            raise SettingsError(f"--do {do!r} is no command: {error}. Quote it as a shell does.") from None

    def act(self, events: Iterable[Event]) -> None:
        """Act on each event that was not acted on before."""
        for event in events:
            line = json.dumps(event.as_dict())
            if line in self._done:
                self._done.discard(line)
                continue
            with self._log.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
            self.count += 1
            if isinstance(self._do, list):
                self._start(self._do, line)
            elif self._do is not None:
                self._do(event)
            else:
                sys.stdout.write(line + "\n")
                sys.stdout.flush()

    def finish(self) -> None:
        """Wait for the commands that still run."""
        while self._running:
            self._ended(self._running.pop(0))

    def _start(self, command: list[str], line: str) -> None:
        self._running = [one for one in self._running if one.poll() is None or self._ended(one)]
        if len(self._running) >= _MOST:
            self._ended(self._running.pop(0))
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE)
        except OSError as error:
            raise SettingsError(
                f"--do {shlex.join(command)}: {error.strerror or error}. Check the name."
            ) from None
        assert process.stdin is not None
        try:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.close()
        except BrokenPipeError:  # it does not read
            _LOG.info("%s does not read its stdin", shlex.join(command))
        self._running.append(process)

    def _ended(self, process: subprocess.Popen[bytes]) -> bool:
        """Warn of a command that failed."""
        code = process.wait()
        if code:
            _LOG.warning("The command of an event ended with exit code %d.", code)
        return False
