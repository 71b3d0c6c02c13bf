"""``python x_windows.py TITLE`` asks the windows of a title to close, as a window manager does.

In a process of its own, which an error of X ends. It exits with 1 if there is no such window.
"""

import ctypes
import sys
from collections.abc import Iterator
from typing import Any


class _Message(ctypes.Structure):
    """``XClientMessageEvent``, as long as an ``XEvent``."""

    _fields_ = (
        ("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p), ("window", ctypes.c_ulong), ("message", ctypes.c_ulong),
        ("format", ctypes.c_int), ("data", ctypes.c_long * 5), ("rest", ctypes.c_char * 96),
    )  # fmt: skip


def named(x: Any, display: ctypes.c_void_p, title: str) -> Iterator[int]:
    """Windows whose title begins so."""
    open_ = [x.XDefaultRootWindow(display)]
    while open_:
        one = ctypes.c_ulong(open_.pop())
        name, children, count = ctypes.c_char_p(), ctypes.POINTER(ctypes.c_ulong)(), ctypes.c_uint()
        if x.XFetchName(display, one, ctypes.byref(name)) and (name.value or b"").startswith(title.encode()):
            yield one.value
        other = ctypes.c_ulong()
        x.XQueryTree(display, one, *map(ctypes.byref, (other, other, children, count)))
        open_ += children[: count.value] if count.value else []


def main() -> None:
    """Ask the windows of a title to close."""
    x = ctypes.CDLL("libX11.so.6")
    x.XOpenDisplay.restype, x.XDefaultRootWindow.restype = ctypes.c_void_p, ctypes.c_ulong
    x.XInternAtom.restype = ctypes.c_ulong
    display = ctypes.c_void_p(x.XOpenDisplay(None))
    found = [*named(x, display, sys.argv[1])]
    protocols, close = (
        x.XInternAtom(display, name, False) for name in (b"WM_PROTOCOLS", b"WM_DELETE_WINDOW")
    )
    for window in found:
        event = _Message(33, 0, 1, display, window, protocols, 32, (close, 0, 0, 0, 0))
        x.XSendEvent(display, ctypes.c_ulong(window), False, ctypes.c_long(0), ctypes.byref(event))
    x.XSync(display, False)
    sys.exit(not found)


if __name__ == "__main__":
    main()
