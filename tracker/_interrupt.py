"""A signal that asks for the end is remembered: the exception that it raises may be lost on its way.

Python drops what is raised in a finaliser or a callback. So stages of work ask here as well.
"""

from __future__ import annotations

import threading

_asked = threading.Event()


def interrupt(*_: object) -> None:
    """Handle a signal: remember it, and raise KeyboardInterrupt as Ctrl-C does."""
    _asked.set()
    raise KeyboardInterrupt


def forget() -> None:
    """Begin anew: no signal has come."""
    _asked.clear()


def asked() -> bool:
    """Whether a signal has come.

    Examples
    --------
    >>> asked()
    False
    """
    return _asked.is_set()


def end_if_asked() -> None:
    """Raise KeyboardInterrupt if a signal has come, in the main thread, which ends the others.

    Examples
    --------
    >>> end_if_asked()
    """
    if _asked.is_set() and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt
