"""Report the compilation of kernels, which happens at their first use on a machine."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

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
        Called at the first compilation, in the thread that compiles. Default: `MESSAGE` on stderr.
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

    collects = gc.isenabled()  # during a compilation searches take a sixth of its time and find little
    with event.install_listener("numba:compile", Counter()):
        yield


def _reporter(stack: ExitStack, *, bar: bool) -> tuple[Callable[[], None], Callable[[int], None]]:
    """A message on stderr and, if that is a terminal, a bar that moves until the stack is closed."""
    if not bar or not sys.stderr.isatty():
        return lambda: _say(MESSAGE), _no_step
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    moving = Progress(*columns, console=Console(stderr=True), transient=True)
    task = moving.add_task("Compiling", total=None)

    def begin() -> None:
        _say(MESSAGE)
        stack.enter_context(moving)

    return begin, lambda count: moving.update(task, description=f"Compiling: {count} kernels so far")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _no_step(_count: int) -> None:
    """Show no step."""
