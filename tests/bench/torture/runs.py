"""A command in a process of its own, forked when all is imported: a run takes a tenth of a second."""

from __future__ import annotations

import ctypes
import os
import pkgutil
import resource
import signal
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

_CAPABILITIES = 0x20080522
"""Version of the kernel's interface."""
_SIGNALS = {signal.SIGINT, signal.SIGTERM}
_LONGEST = 300.0
"""Seconds after which a run hangs."""


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code, or minus the number of the signal; and what it said on stderr."""

    code: int
    said: str


def import_all() -> None:
    """Import every module, so that no run has to; none runs threads yet, which a fork would lose."""
    import outbid

    for module in pkgutil.walk_packages(outbid.__path__, "outbid."):
        if "gpu" not in module.name and ".forms" not in module.name and not module.name.endswith(".window"):
            try:
                import_module(module.name)
            except ImportError:  # of packages that are not installed
                continue


@dataclass(frozen=True)
class Running:
    """A run: its process, and the end of the pipe into which it speaks."""

    process: int
    reader: int


def begin(words: Sequence[str], folder: Path, *, limit: int | None = None, alone: bool = False) -> Running:
    """Start a command in a folder.

    Parameters
    ----------
    words : sequence of str
    folder : Path
        Where it runs.
    limit : int, optional
        Bytes that a file of its may have, as on a disk that is full.
    alone : bool
        Whether it gives up the rights of root, if we have those.
    """
    reader, writer = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # else it would be raised in our own code
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(writer)
        os.set_blocking(reader, False)
        return Running(process, reader)
    code = 70
    try:
        _become(folder, writer, limit, alone)
        from outbid.cli import main

        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        main(list(words), prog_name="outbid")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except KeyboardInterrupt:  # before the command has begun
        code = 130
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)


def _become(folder: Path, writer: int, limit: int | None, alone: bool) -> None:
    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.dup2(writer, 2)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if alone and os.getuid() == 0:
        _give_up_rights()


def _give_up_rights() -> None:
    """Have root obey the modes of files, as everybody does, by having no capabilities any more."""
    head = struct.pack("Ii", _CAPABILITIES, 0)
    if ctypes.CDLL(None, use_errno=True).capset(head, bytes(24)):
        raise OSError(ctypes.get_errno(), "capset")


def ended(run: Running) -> Ended:
    """Wait for a run.

    Raises
    ------
    TimeoutError
        If it hangs.
    """
    end, said, status = time.monotonic() + _LONGEST, b"", None
    try:
        while status is None:
            done, code = os.waitpid(run.process, os.WNOHANG)
            status = code if done else None
            with suppress(BlockingIOError):
                while piece := os.read(run.reader, 1 << 16):
                    said += piece
            if time.monotonic() > end:
                os.kill(run.process, signal.SIGKILL)
                os.waitpid(run.process, 0)
                raise TimeoutError(f"more than {_LONGEST} s")
            time.sleep(0.001)
    finally:
        os.close(run.reader)
    return Ended(os.waitstatus_to_exitcode(status), said.decode("utf-8", "replace"))


def run(words: Sequence[str], folder: Path) -> Ended:
    """Run a command to its end."""
    return ended(begin(words, folder))
