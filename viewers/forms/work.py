"""A function that runs in the background, reports its progress, and stops when it is cancelled."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic

from qtpy.QtCore import QObject, Signal

from outbid.compute.compiling import compilation_reported

Report = Callable[[int, int], None]
"""What a task calls to report its progress: (done, in all). It raises if the work was cancelled."""
Task = Callable[[Report], object]
Slots = Mapping[str, Callable[..., object]]
"""What is called at signals of work, by their names."""

_REPORT_EVERY = 0.05  # seconds


class Work(QObject):
    """A task that runs in a separate thread, and reports its progress and its result by Qt signals.

    The thread touches no widget and no layer: it reports by signals, which Qt delivers in the thread of the
    window. napari's ``thread_worker`` is not used: it loses errors that are RuntimeErrors in
    generators, and two of them at once leave Python's warnings silenced.

    Parameters
    ----------
    task : callable
        Called with a function to report its progress to; returns a result.
    """

    progressed = Signal(int, int)
    """Done, and in all."""
    compiling = Signal()
    """At the first kernel that is compiled; the task reports no progress meanwhile."""
    returned = Signal(object)
    failed = Signal(object)
    """The exception."""
    ended = Signal()
    """In any case, also of cancelled work, when the thread is free again."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self._task = task
        self._cancelled = threading.Event()
        self._last = 0.0
        self.warnings: list[str] = []
        """What Outbid warned of while the task ran, each once."""

    def call(self, slots: Slots) -> None:
        """Call slots at the signals with these names, until the work is cancelled."""
        for name, slot in slots.items():
            getattr(self, name).connect(
                lambda *given, slot=slot: None if self._cancelled.is_set() else slot(*given)
            )

    def start(self) -> None:
        """Start the thread that runs the task."""
        threading.Thread(target=self._run, name="outbid", daemon=True).start()

    def cancel(self) -> None:
        """Drop the result; the thread ends when the task next reports its progress."""
        self._cancelled.set()

    def _report(self, done: int, total: int) -> None:
        if self._cancelled.is_set():
            raise _CancelledError
        if monotonic() - self._last > _REPORT_EVERY:
            self._last = monotonic()
            self.progressed.emit(done, total)

    def _run(self) -> None:
        try:
            with compilation_reported(self.compiling.emit), _warnings_to(self.warnings):
                result = self._task(self._report)
        except _CancelledError:
            pass
        except Exception as error:  # the window shows every error
            self.failed.emit(error)
        else:
            self.returned.emit(result)
        del self._task  # what it holds may be large
        self.ended.emit()


@contextmanager
def _warnings_to(messages: list[str]) -> Iterator[None]:
    """Collect what Outbid warns of in this thread; other threads may run other tasks."""

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread and record.getMessage() not in messages:
                messages.append(record.getMessage())

    thread, logger, collector = threading.get_ident(), logging.getLogger("outbid"), Collector(logging.WARNING)
    logger.addHandler(collector)
    try:
        yield
    finally:
        logger.removeHandler(collector)


class _CancelledError(Exception):
    """Ends a task that was cancelled."""
