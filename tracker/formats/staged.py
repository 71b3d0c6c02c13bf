"""Temporary files beside an output: locked while in use, removed by a later run after a kill."""

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
"""Patterns of temporary names, for an output or its folder of parts."""
_LOCKS = os.name == "posix"
"""Whether files are locked; on systems where open files cannot be moved, nothing is locked or removed."""
_TRIES, _PAUSE = 100, 0.02
"""Attempts, and seconds between them, to remove a folder in which files still appear."""
_STILL_WRITTEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT)
"""Errors of a removal while files appear and vanish."""
BEFORE, AFTER = "old", "new"
"""Names, within the temporary folder, of the folder that is replaced and of its replacement."""


def hold(path: Path) -> int:
    """Lock a file or folder.

    Returns
    -------
    int
        A file descriptor; the lock is released when it is closed or the process ends in any way.

    Raises
    ------
    BlockingIOError
        If another process holds the lock, or has removed the file.
    OSError
        If this file system has no locks.
    """
    from filelock import lock_descriptor  # imported only to write: the import takes a while

    writes = path.is_file() and os.access(path, os.W_OK)  # NFS cannot lock files that are opened for reading
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
    """Wait until no other run renames files in a folder, so that the renames of two runs do not mix."""
    from filelock import lock_descriptor

    handle = os.open(folder, os.O_RDONLY) if _LOCKS else None
    try:
        if handle is not None:
            with suppress(OSError):  # the file system has no locks
                lock_descriptor(handle, blocking=True)
        yield
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def staged(final: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """Context with a temporary file or folder made by `make`; it is removed at the end unless it was moved.

    A temporary folder may contain the old output as `BEFORE`; it is restored unless `AFTER` has replaced it.
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
    """Lock a file that names this process, and remove it at the end; an unlocked file is of a killed run.

    Raises
    ------
    SettingsError
        If another process holds the lock; the message names that process.
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


def remove_folder(folder: Path) -> None:
    """Remove a folder of parts; it loses its name first, so that a kill leaves it whole or as a leftover."""
    gone = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}.tmp")
    try:
        folder.replace(gone)
    except OSError:  # a system where open files cannot be moved
        gone = folder
    shutil.rmtree(gone, ignore_errors=True)  # another run may remove what it takes for a leftover


def remove_leftovers(final: Path) -> None:
    """Remove and report leftovers of killed runs beside `final`; restore an output moved away by one."""
    if not _LOCKS:
        return
    names = sorted(name for name in os.listdir(final.parent) if name.startswith(final.name))  # noqa: PTH208 - fast
    for found in filter(None, (_ENDING.fullmatch(name, len(final.name)) for name in names)):
        left, whole = final.with_name(found.string), final.with_name(final.name + (found[1] or ""))
        with suppress(OSError):  # in use by a running process, or impossible to lock or remove
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
            continue  # another run removed it as a leftover before it was locked
        except OSError:
            return temporary, None
        except BaseException:
            _discard(temporary, final)
            raise


def _discard(temporary: Path, final: Path) -> bool:
    """Remove a leftover; returns whether an old output was restored first, so that none is lost."""
    before, after = temporary / BEFORE, temporary / AFTER
    if temporary.suffix == ".old":  # version 0.1 placed them side by side
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
    """Remove a folder into which threads of an interrupted library may still write for a moment."""
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
