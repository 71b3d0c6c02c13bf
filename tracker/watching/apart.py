"""A command of Outbid in a process of its own: a watch that a viewer starts, a viewer that a watch starts."""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .reading import stop

_LOG = logging.getLogger("outbid")


class Apart:
    """A process that goes on when this one ends, and is not reached by its Ctrl-C.

    Parameters
    ----------
    words : sequence of str
        The command, and its arguments.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._problem = ""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe would break with this process
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from outbid.cli import main; main()", *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._said, start_new_session=True,
        )  # fmt: skip
        self._waiting = threading.Thread(target=self._wait, daemon=True)
        self._waiting.start()

    def wait(self) -> str:
        """Wait until it has ended; what it said last, if that was with an error, else empty."""
        self._waiting.join()
        return self._problem

    def problem(self) -> str:
        """As `wait`, without waiting: empty as long as it runs."""
        return self._problem

    def _wait(self) -> None:
        code = self._process.wait()
        with self._said:
            self._said.seek(0)
            lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        if code:
            self._problem = lines[-1] if lines else f"It ended with exit code {code}."


def show(source: str, output: Path, opened: Mapping[str, Any]) -> Apart:
    """Show a watch in napari, in a process of its own; when its window is closed, the recording ends.

    Parameters
    ----------
    source : str
    output : Path
    opened : mapping
        How images are opened.
    """
    files = [str(output)] if source == "-" else [source, str(output)]
    names = (name for name in ("axes", "channel", "scene") if opened[name] is not None)
    options = [word for name in names for word in (f"--{name}", str(opened[name]))]
    if opened["spacing"] is not None:
        options += ["--spacing", *map(str, opened["spacing"])]
    viewer = Apart(["view", *files, "--live", *options])
    threading.Thread(target=_end, args=(viewer, output), daemon=True).start()
    return viewer


def _end(viewer: Apart, output: Path) -> None:
    """Wait until the window is closed, and end the recording then."""
    if problem := viewer.wait():
        _LOG.warning("The viewer has ended, and watching goes on. %s", problem)
    else:
        stop(output)
