"""Report the compilation of kernels, which happens at their first use on a machine, and divide it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any

MESSAGE = (
    "Compiling the kernels for this machine; this is done once and takes a minute or two. "
    "`outbid warm-up` does it beforehand."
)
_reported = threading.Event()
"""Whether someone reports compilations already: a command reports for the functions that it calls."""


@contextmanager
def compilation_reported(begin: Callable[[], None] | None = None, *, bar: bool = True) -> Iterator[None]:
    """Report the first compilation and show that it goes on, unless someone does so already.

    Parameters
    ----------
    begin : callable, optional
        Called at the first compilation, in the thread that compiles. Default: `MESSAGE` on stderr, if this is
        the `first_time`.
    bar : bool
        With the default, show a moving bar with the number of kernels if stderr is a terminal.
    """
    if _reported.is_set():
        yield
        return
    _reported.set()
    try:
        with ExitStack() as stack:
            started, step = _reporter(stack, bar=bar) if begin is None else (begin, _no_step)

            def announce(count: int) -> None:
                if count == 1:
                    started()
                step(count)

            with kernels_counted(announce):
                yield
    finally:
        _reported.clear()


@contextmanager
def kernels_counted(step: Callable[[int], None]) -> Iterator[None]:
    """Call `step` with the number of kernels whose compilation has begun so far, at each of them."""
    from numba.core import event

    class Counter(event.Listener):
        def __init__(self) -> None:
            self.count = self.open = 0

        def on_start(self, _event: object) -> None:
            self.count += 1
            self.open += 1
            gc.disable()
            step(self.count)

        def on_end(self, _event: object) -> None:
            self.open -= 1
            if not self.open and collects:
                gc.enable()

    collects = gc.isenabled()  # see `without_collections`
    with event.install_listener("numba:compile", Counter()):
        yield


def _reporter(stack: ExitStack, *, bar: bool) -> tuple[Callable[[], None], Callable[[int], None]]:
    """A message on stderr and, if that is a terminal, a bar that moves until the stack is closed."""
    if not bar or not sys.stderr.isatty():
        return _announce, _no_step
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    moving = Progress(*columns, console=Console(stderr=True), transient=True)
    task = moving.add_task("Compiling", total=None)

    def begin() -> None:
        _announce()
        stack.enter_context(moving)

    return begin, lambda count: moving.update(task, description=f"Compiling: {count} kernels so far")


def _announce() -> None:
    if first_time():
        sys.stderr.write(f"{MESSAGE}\n")


def first_time() -> bool:
    """Whether nobody has asked before with this version and cache of kernels; True if that cannot be noted.

    A later command may compile what no earlier one did: to say again that this is done once would be wrong.
    """
    from numba.core import caching

    cache_of: Callable[[object], Any] = caching.FunctionCache
    with suppress(OSError, RuntimeError):  # numba found no folder that it may write
        note = Path(cache_of(first_time).cache_path) / f"outbid-{metadata.version('outbid')}.announced"
        if note.exists():
            return False
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()
    return True


def _no_step(_count: int) -> None:
    """Show no step."""


# ---------------------------------------------------------------- a second process


_START = "import sys; sys.path[:] = {!r}; from outbid.compute.compiling import compile_lines; compile_lines()"


@contextmanager
def without_collections() -> Iterator[None]:
    """Leave out searches for unused objects: they take a sixth of a compilation's time and find little."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class SecondProcess:
    """Another Python that compiles kernels into the same cache; it ends with the context, whatever ends that.

    Parameters
    ----------
    lines : list of str
        Lines of the table in `signatures`. Without any, no process is started.
    done : callable, optional
        Called with each line whose kernel is in the cache, in a thread.
    """

    def __init__(self, lines: Sequence[str], done: Callable[[str], object] = str) -> None:
        self.lines, self._done, self._finished = list(lines), done, set[str]()
        self.process: subprocess.Popen[str] | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> SecondProcess:
        self.start()
        return self

    def start(self) -> None:
        """Start it, unless that cannot be done."""
        if not self.lines or not sys.executable:
            return
        command, pipe = [sys.executable, "-c", _START.format(sys.path)], subprocess.PIPE
        with suppress(OSError):
            self.process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
            self._reader.start()

    def wait(self) -> set[str]:
        """Wait for its end; returns the lines whose kernels are in the cache."""
        if self.process is not None:
            self._reader.join()
        return self._finished

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self.process is not None:
            self.process.kill()
            self._reader.join()
            self.process.wait()

    def _read(self) -> None:
        assert self.process is not None
        with suppress(OSError, ValueError), self.process as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("".join(f"{line}\n" for line in [*self.lines, ""]))
            process.stdin.flush()
            for line in map(str.strip, process.stdout):
                self._finished.add(line)
                self._done(line)


def compile_lines() -> None:
    """Compile the kernels of lines on stdin, up to an empty one, and write each line when that is done.

    The end of stdin is that of the process which asked for them, and ends this one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both
    lines = list(iter(lambda: sys.stdin.readline().strip(), ""))
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    from .signatures import Signature

    with without_collections():
        for line in lines:
            Signature.of(line).compile()
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


def _end_with_stdin() -> None:
    os.read(sys.stdin.fileno(), 1)  # a thread within `sys.stdin.read` would keep Python from ending
    os._exit(1)


@contextmanager
def compilation_shared(table: str) -> Iterator[None]:
    """Have a second process compile the kernels of a table as soon as this one compiles any.

    Not in one of several processes, each of which would start another; nor on a single core.
    """
    if multiprocessing.parent_process() is not None or (os.cpu_count() or 1) < 2:
        yield
        return
    with SecondProcess([]) as second, kernels_counted(partial(_start_once, second, table)):
        yield


def _start_once(second: SecondProcess, table: str, count: int) -> None:
    if count == 1:
        second.lines = table.strip().splitlines()
        second.start()
