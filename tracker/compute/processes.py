"""Processes that work for threads: Python's lock is held by one thread at a time, and threads wait for it."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from threading import local
from typing import IO, Any, Self, TypeVar, TypeVarTuple, cast

_Given = TypeVarTuple("_Given")
_Made = TypeVar("_Made")
_START = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); import {0}; {0}.serve()"
"""What a process runs; unlike those of `multiprocessing` it does not run the caller's script again."""
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("NUMBA", "OMP", "OPENBLAS", "MKL")}


class ProcessOfEach:
    """A process for each thread that calls: it starts with the first call, and ends with the block.

    Examples
    --------
    >>> with ProcessOfEach() as processes:
    ...     processes.call(pow, 2, 5)
    32
    """

    def __init__(self) -> None:
        self._own = local()
        self._started: list[subprocess.Popen[bytes]] = []

    def call(self, work: Callable[[*_Given], _Made], *given: *_Given) -> _Made:
        """Call a function of a module in the process of this thread, and return or raise what it does.

        Raises
        ------
        ChildProcessError
            If the process was ended.
        """
        process = getattr(self._own, "process", None)
        if process is None:
            process = self._own.process = _started()
            self._started.append(process)
        calls, answers = cast("tuple[IO[bytes], IO[bytes]]", (process.stdin, process.stdout))
        try:
            pickle.dump((work, given), calls, pickle.HIGHEST_PROTOCOL)
            calls.flush()
            result, error = pickle.load(answers)
        except (EOFError, OSError) as ended:
            raise ChildProcessError("A process was ended.") from ended
        if error is not None:
            raise error
        return cast("_Made", result)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            process.communicate()  # no more work: it ends


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _START.format(__name__), json.dumps(sys.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | _ONE_THREAD,
    )  # fmt: skip


def serve() -> None:
    """Answer calls from the standard input until it ends; what is printed goes to the standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller ends it
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        answer: tuple[Any, Exception | None]
        try:
            work, given = pickle.load(calls)
        except EOFError:
            return
        try:
            answer = work(*given), None
        except Exception as error:
            answer = None, error
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()
