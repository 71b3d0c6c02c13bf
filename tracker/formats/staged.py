"""Temporary names beside an output: locked while in use, removed by a later run if theirs was killed."""

from __future__ import annotations

import errno
import logging
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import SettingsError

_LOG = logging.getLogger("outbid")
_ENDING = re.compile(r"(\.parts)?\.[0-9a-f]{8}\.(tmp|old)")
"""Of temporary names: of an output, or of the folder of its parts."""
_LOCKS = os.name == "posix"
"""Elsewhere what is open cannot be moved: nothing is locked, and nothing removed."""
_TRIES, _PAUSE = 100, 0.02
"""How often, and after how many seconds, a folder is removed in which files still appear."""
_STILL_WRITTEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT)
"""What a removal meets there: new files, and names that are gone before they are removed."""
BEFORE, AFTER = "old", "new"
"""What a folder that is being replaced, and the one that takes its place, are called in the temporary one."""


def hold(path: Path) -> int:
    """Lock a file or folder.

    Returns
    -------
    int
        A descriptor: the lock ends when it is closed, or when the process dies, however it does.

    Raises
    ------
    BlockingIOError
        If another process holds it, or has removed it.
    OSError
        If this file system has no locks.
    """
    from filelock import lock_descriptor  # only where something is written: it takes a while to import

    writes = path.is_file() and os.access(path, os.W_OK)  # NFS locks nothing that is opened for reading
    handle = os.open(path, os.O_RDWR if writes else os.O_RDONLY)
    try:
        if lock_descriptor(handle, blocking=False) and os.fstat(handle).st_nlink:
            return handle
        raise BlockingIOError(f"{path} is in use")
    except BaseException:
        os.close(handle)
        raise


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other run renames files in a folder: two renames are not one, and runs might mix."""
    from filelock import lock_descriptor

    handle = os.open(folder, os.O_RDONLY) if _LOCKS else None
    try:
        if handle is not None:
            with suppress(OSError):  # this file system has no locks
                lock_descriptor(handle, blocking=True)
        yield
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def staged(final: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """A temporary file or folder beside `final`, as `make` makes it; gone afterwards, unless it was moved.

    A folder may hold what was at `final`, as `BEFORE`; it goes back there if `AFTER` has not taken its place.
    """
    temporary, handle = _made(final, make)
    try:
        yield temporary
    finally:
        _discard(temporary, final)
        if handle is not None:
            os.close(handle)


@contextmanager
def held_here(file: Path) -> Iterator[None]:
    """Hold a file that names this process, and remove it in the end; one that is not held is of a killed run.

    Raises
    ------
    SettingsError
        If another process holds it; the message names that.
    """
    here = f"process {os.getpid()} on {platform.node()}"
    file.touch()
    before = file.read_text("utf-8", "replace").strip()
    handle = None
    try:
        handle = hold(file)
    except (BlockingIOError, FileNotFoundError):
        raise SettingsError(
            f"{file.parent} is in use by {before or 'another process'}. Wait until that ends, or choose "
            "another name for the output."
        ) from None
    except OSError:
        _LOG.warning("%s cannot be locked here: start no second run that writes there.", file)
    try:
        if before:
            _LOG.warning("%s was in use by %s, which was killed: its lock is taken.", file.parent, before)
        file.write_text(here, "utf-8")
        yield
    finally:
        file.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def remove_leftovers(final: Path) -> None:
    """Remove what runs that were killed left beside `final`, and say so; put back what one had moved away."""
    if not _LOCKS:
        return
    names = sorted(name for name in os.listdir(final.parent) if name.startswith(final.name))  # noqa: PTH208 - fast
    for found in filter(None, (_ENDING.fullmatch(name, len(final.name)) for name in names)):
        left, whole = final.with_name(found.string), final.with_name(final.name + (found[1] or ""))
        with suppress(OSError):  # of a run that still lives, or of what cannot be locked or removed
            handle = hold(left)
            try:
                put_back = _discard(left, whole)
            finally:
                os.close(handle)
            done = f"what it was replacing is at {whole} again" if put_back else "removed"
            _LOG.warning("%s was left by a run that was killed: %s.", left, done)


def _made(final: Path, make: Callable[[Path], object]) -> tuple[Path, int | None]:
    """A new temporary name, and its lock."""
    while True:
        temporary = final.with_name(f"{final.name}.{secrets.token_hex(4)}.tmp")
        make(temporary)
        try:
            return temporary, hold(temporary) if _LOCKS else None
        except (BlockingIOError, FileNotFoundError):
            continue  # another run took it for a leftover, before it was locked
        except OSError:
            return temporary, None
        except BaseException:
            _discard(temporary, final)
            raise


def _discard(temporary: Path, final: Path) -> bool:
    """Remove it; whether something was put back before, for no folder may be lost between two moves."""
    before, after = temporary / BEFORE, temporary / AFTER
    if temporary.suffix == ".old":  # version 0.1 had them side by side
        before, after = temporary, temporary.with_suffix(".tmp")
    put_back = before.is_dir() and after.is_dir() and not final.exists()
    if put_back:
        before.replace(final)
    if temporary.is_dir():
        _remove(temporary)
    else:
        temporary.unlink(missing_ok=True)
    return put_back


def _remove(folder: Path) -> None:
    """Remove a folder to which threads of an interrupted library may still write for a moment."""
    for _ in range(_TRIES):
        try:
            return shutil.rmtree(folder)
        except OSError as error:
            if error.errno not in _STILL_WRITTEN:
                raise
            if not folder.exists():
                return None
            time.sleep(_PAUSE)
    return shutil.rmtree(folder)
