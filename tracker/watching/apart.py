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
_RUNNING: list[Apart] = []
"""Python warns of a process object that is deleted while it runs."""


class Apart:
    """A process that goes on when this one ends, and is not reached by its Ctrl-C.

    Parameters
    ----------
    words : sequence of str
        The command, and its arguments.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - the process writes to it
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from outbid.cli import main; main()", *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._said, start_new_session=True,
        )  # fmt: skip
        _RUNNING.append(self)

    def failure(self) -> str:
        """What it said last, if it has ended with an error; else empty."""
        code = self.process.poll()
        if not code:
            return ""
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"It ended with exit code {code}."


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
    threading.Thread(target=_wait, args=(viewer, output), daemon=True).start()
    return viewer


def _wait(viewer: Apart, output: Path) -> None:
    viewer.process.wait()
    if problem := viewer.failure():
        _LOG.warning("The viewer has ended, and watching goes on. %s", problem)
    else:
        stop(output)
