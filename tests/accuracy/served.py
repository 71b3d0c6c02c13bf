"""A linker in a process of its own: ``python -m accuracy.served LINKER`` answers on its standard streams.

Each request is a pickled (frame, position), each answer a pickled (links, probability, seconds, error).
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .linkers import Linker, named

TESTS = Path(__file__).resolve().parent.parent

_THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_ONE_CORE = dict.fromkeys(_THREADS, "1")


@dataclass(frozen=True, eq=False)
class Answer:
    """Links (E, 2), probabilities (E,), seconds, and the text of an error; then there are no links."""

    links: NDArray[np.int64]
    probability: NDArray[np.float64]
    seconds: float
    error: str = ""


@dataclass(frozen=True, eq=False)
class Served:
    """A linker that runs beside this process."""

    process: subprocess.Popen

    @classmethod
    def start(cls, linker: str, path: str = "") -> Served:
        """Start a linker on one core; `path` is searched for packages before everything else."""
        search = os.pathsep.join(filter(None, [path, str(TESTS), os.environ.get("PYTHONPATH", "")]))
        command = [sys.executable, "-m", "accuracy.served", linker]
        environment = os.environ | _ONE_CORE | {"PYTHONPATH": search}
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return cls(subprocess.Popen(command, env=environment, **streams))

    def link(self, frame: NDArray[np.int32], position: NDArray[np.float64]) -> Answer:
        """The links of a movie."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        pickle.dump((frame, position), self.process.stdin)
        self.process.stdin.flush()
        return Answer(*pickle.load(self.process.stdout))

    def stop(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def answered(linker: Linker, frame: NDArray[np.int32], position: NDArray[np.float64]) -> tuple:
    """What `Answer` holds."""
    begin = time.perf_counter()
    try:
        links, probability = linker(frame, position)
    except Exception as error:  # a linker that is measured may fail in any way: the record says how
        nothing = np.zeros((0, 2), np.int64), np.zeros(0)
        return *nothing, time.perf_counter() - begin, f"{type(error).__name__}: {error}"[:80]
    seconds = time.perf_counter() - begin
    order = np.lexsort((links[:, 1], links[:, 0]))
    return np.asarray(links, np.int64)[order], np.asarray(probability, float)[order], seconds, ""


def main() -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a linker prints is no answer
    linker = named(sys.argv[1])
    while True:
        try:
            frame, position = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(answered(linker, frame, position), answers)
        answers.flush()


if __name__ == "__main__":
    main()
