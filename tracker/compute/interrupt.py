"""Remember an interrupt signal, because the exception that it raises can be lost.

Python drops exceptions that are raised in a finaliser or a callback. So long computations also check here
whether a signal has arrived. Steps that belong together, such as two renames, are completed first.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

_WHOLE = {
    "_raw_object_cache_notify", "_raw_object_cache_getbuffer",
    "close", "detach", "__del__", "__enter__", "__exit__",
}  # fmt: skip
"""Functions of llvmlite that signals do not interrupt.

By the first two LLVM asks for a stored kernel or hands over a compiled one. It drops what they raise, takes
the kernel for one that is not there, and the process ends with a segmentation fault at its first use. The
others release memory, which would be released twice, and the lock for which other threads wait.
"""


class _State:
    """Plain attributes, for a handler may come between any two steps, where a lock would wait for itself."""

    asked = False
    waits = False


_state = _State()


def interrupt(_number: int = 0, frame: FrameType | None = None) -> None:
    """Handle a signal: record it, and raise KeyboardInterrupt as Ctrl-C does, unless it has to wait."""
    _state.asked = True
    if not (_state.waits or _within_llvm(frame)):
        raise KeyboardInterrupt


def _within_llvm(frame: FrameType | None) -> bool:
    """Whether the signal came upon one of these functions, or upon what one has called."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if frame.f_code.co_name in _WHOLE and module.startswith("llvmlite.binding"):
            return True
        frame = frame.f_back
    return False


def forget() -> None:
    """Reset: no signal has arrived."""
    _state.asked = False


def asked() -> bool:
    """Whether a signal has arrived.

    Examples
    --------
    >>> asked()
    False
    """
    return _state.asked


def end_if_asked() -> None:
    """Raise KeyboardInterrupt in the main thread if a signal has arrived; the main thread ends the others.

    Examples
    --------
    >>> end_if_asked()
    """
    if _state.asked and not _state.waits and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


class _Signals:
    """A context in which signals wait, or do not; a class, for an interrupted generator would end late."""

    def __init__(self, *, wait: bool) -> None:
        self._main = threading.current_thread() is threading.main_thread()  # only there handlers run
        self._wait, self._before, self._replaced = wait, _state.waits, False

    def __enter__(self) -> None:
        if self._main and self._wait and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            forget()  # outside our commands, where nobody else has
            self._replaced = True
            signal.signal(signal.SIGINT, interrupt)
        if self._main:
            _state.waits = self._wait
            end_if_asked()  # of what has come while it had to wait

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if not self._main:
            return
        _state.waits = self._before
        if self._replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        end = _state.asked and not _state.waits and kind is None  # else an error ends it
        if self._replaced:
            forget()
        if end:
            raise KeyboardInterrupt


def undisturbed() -> _Signals:
    """A context in which signals wait for its end; in other threads than the main one it does nothing.

    Examples
    --------
    >>> try:
    ...     with undisturbed():
    ...         interrupt()
    ...         print("all is done")
    ... except KeyboardInterrupt:
    ...     print("then it ends")
    all is done
    then it ends
    >>> forget()
    """
    return _Signals(wait=True)


def disturbed() -> _Signals:
    """A context, inside one that is `undisturbed`, in which signals raise at once.

    Examples
    --------
    >>> with undisturbed(), disturbed():
    ...     asked()
    False
    """
    return _Signals(wait=False)
