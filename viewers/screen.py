"""Find a display for napari: the user's, or a virtual one."""

from __future__ import annotations

import atexit
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from outbid.errors import ResourceError

_INSTALL = "pip install 'outbid[napari]' PyQt6"
_LIBRARIES = (
    "apt-get install xvfb libegl1 libgl1 libgl1-mesa-dri libdbus-1-3 libfontconfig1 libglib2.0-0 "
    "libx11-xcb1 libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 libxcb-randr0 libxcb-shape0 libxcb-xinerama0 "
    "libxcb-xkb1 libxkbcommon-x11-0"
)
_BLIND = {
    "offscreen", "minimal", "minimalegl", "eglfs", "vnc",
}  # platforms of Qt that draw no pixels of OpenGL  # fmt: skip
_SIZE = "1600x1200x24"
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
_PROBE = "from qtpy.QtWidgets import QApplication; QApplication([])"
_SECONDS = 60


def find_screen(*, virtual: bool) -> None:
    """Ensure that napari can draw, without importing napari or Qt.

    Parameters
    ----------
    virtual : bool
        Whether a display that nobody sees will do: Xvfb is started where there is no other. It ends with
        this process, and napari's own settings stay as they are.

    Raises
    ------
    ResourceError
        If napari, Qt, one of its libraries, a display or Xvfb is missing; the message says how to get it.
    """
    if find_spec("napari") is None:
        raise ResourceError(f"napari is not installed. Install it: {_INSTALL}.")
    if virtual:
        folder = tempfile.mkdtemp(prefix="outbid_")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["NAPARI_CONFIG"] = str(Path(folder) / "napari.yaml")
    if sys.platform.startswith("linux") and not _sees_display():
        if not virtual:
            raise ResourceError(
                "There is no display to open a window on. Log in with one (ssh -X), or save a picture: "
                "--screenshot picture.png."
            )
        os.environ["DISPLAY"] = _start_xvfb()
        os.environ["QT_QPA_PLATFORM"] = "xcb"
        os.environ.pop("WAYLAND_DISPLAY", None)
    _refuse_broken_qt()


def _sees_display() -> bool:
    blind = os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0] in _BLIND
    return not blind and bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _start_xvfb() -> str:
    """Start Xvfb and return the name of its display."""
    program = shutil.which("Xvfb")
    if program is None:
        raise ResourceError(
            f"There is no display, and no Xvfb to draw without one. Install it: {_LIBRARIES}."
        )
    libc = ctypes.CDLL(None)
    server = subprocess.Popen(
        [program, "-displayfd", "1", "-screen", "0", _SIZE, "-nolisten", "tcp"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        # Qt aborts if the server goes first, so it must outlive the end of this process.
        preexec_fn=lambda: libc.prctl(_DIES_WITH_PARENT, signal.SIGTERM),  # noqa: PLW1509
    )  # fmt: skip
    assert server.stdout is not None
    with server.stdout as answer:
        number = answer.readline().strip() if select.select([answer], [], [], _SECONDS)[0] else ""
    if not number:
        server.kill()
        raise ResourceError(
            f"Xvfb does not start (exit code {server.wait()}). Try: xvfb-run -a outbid view …"
        )
    _SERVERS.append(server)
    return f":{number}"


_SERVERS: list[subprocess.Popen[str]] = []
"""Reference to the server process; Python warns of a process object deleted while it runs."""


def _refuse_broken_qt() -> None:
    """Test Qt in a separate process, because Qt ends the process if a display or library is missing."""
    done = subprocess.run(
        [sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode == 0:
        return
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    reason = next((line for line in lines if "needed" in line or "No Qt" in line), lines[0] if lines else "")
    if "No Qt" in reason or "ModuleNotFoundError" in done.stderr:
        raise ResourceError(f"napari finds no Qt ({lines[-1][:200]}). Install it: {_INSTALL}.")
    raise ResourceError(
        f"Qt cannot open a window ({reason[:200]}). Check DISPLAY, or install what is missing: {_LIBRARIES}."
    )
