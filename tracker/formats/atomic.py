"""Files and folders appear whole or not at all, also when the process is killed or the disk is full."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from .._interrupt import disturbed, end_if_asked, undisturbed
from .outputs import refuse_output
from .staged import AFTER, BEFORE, alone_in, staged


def write_whole(
    path: Path,
    write: Callable[[BinaryIO], object],
    *,
    overwrite: bool,
    beside: tuple[Path, bytes | None] | None = None,
) -> None:
    """Write a file, and perhaps its run record beside it, so that neither is ever seen in part.

    One that is there keeps its mode.

    Parameters
    ----------
    path : Path
    write : callable
        Given the open file, writes the content.
    overwrite : bool
        Whether a file may be there already.
    beside : (Path, bytes or None), optional
        The record and its content; None removes one that is left of an earlier output.

    Raises
    ------
    SettingsError
        As `refuse_output`.
    OSError
        If the disk is full or cannot be written; nothing has changed then.

    Notes
    -----
    Both are complete on the disk under temporary names before either gets its own. Two renames are not
    one, so their order decides what a crash between them leaves. A new output gets its record first: a
    file that is there has its record. An old output loses its record first: no file is ever seen
    with the record of another run. Signals, which raise at once while `write` runs, wait for the renames.
    """
    refuse = partial(refuse_output, path, overwrite=overwrite, record=None if beside is None else beside[0])
    target = path.resolve()  # a symbolic link stays one
    with undisturbed(), ExitStack() as stack:
        refuse()
        written = stack.enter_context(_written(target, write))
        moves = [(written, target)]
        second, content = (beside[0].resolve(), beside[1]) if beside is not None else (None, None)
        if second is not None and content is not None:
            note = stack.enter_context(_written(second, lambda file: file.write(content)))
            moves.append((note, second))
        with disturbed():
            end_if_asked()
            stack.enter_context(alone_in(target.parent))
        refuse()  # another run may have been faster
        if second is not None and (target.exists() or content is None):
            second.unlink(missing_ok=True)
            _sync_folder(second.parent)
        elif second is not None:
            moves.reverse()
        for temporary, final in moves:
            temporary.replace(final)
            _sync_folder(final.parent)


def write_whole_folder(
    path: Path,
    write: Callable[[Path], object],
    *,
    overwrite: bool,
    foreign: Callable[[Path], str | None],
) -> None:
    """Write a folder, as `write_whole` does a file.

    Parameters
    ----------
    path : Path
    write : callable
        Given a folder that is not there yet, makes and fills it.
    overwrite, foreign
        As for `refuse_output`.

    Raises
    ------
    SettingsError
        As `refuse_output`.
    OSError
        If the disk is full or cannot be written; nothing has changed then.

    Notes
    -----
    A folder that is there is moved away first, into the temporary one. A process that is killed between the
    two moves leaves nothing at `path`; the next run to it puts back what was there. Signals, which raise at
    once while `write` runs, wait for the moves.
    """
    refuse = partial(refuse_output, path, overwrite=overwrite, foreign=foreign)
    target = path.resolve()
    with undisturbed(), ExitStack() as stack:
        refuse()
        folder = stack.enter_context(staged(target, Path.mkdir))
        written = folder / AFTER
        with disturbed():
            write(written)
            if target.exists():
                shutil.copymode(target, written)
            _sync(written)
            end_if_asked()
        refuse()
        if target.exists():
            target.replace(folder / BEFORE)
        written.replace(target)
        _sync_folder(target.parent)


def move_whole(whole: Path, path: Path, *, overwrite: bool) -> None:
    """Give a file that is complete and on the disk its name, on the same disk; a mode is kept.

    Raises
    ------
    SettingsError
        As `refuse_output`.
    """
    refuse_output(path, overwrite=overwrite)
    target = path.resolve()
    if target.exists():
        shutil.copymode(target, whole)
    end_if_asked()
    whole.replace(target)
    _sync_folder(target.parent)


@contextmanager
def _written(final: Path, write: Callable[[BinaryIO], object]) -> Iterator[Path]:
    """A temporary file beside `final`, written and on the disk; gone afterwards, unless it was moved."""
    with staged(final, partial(Path.touch, exist_ok=False)) as temporary:
        with temporary.open("r+b") as file:
            if final.exists():
                shutil.copymode(final, temporary)
            with disturbed():
                write(file)
                file.flush()
                os.fsync(file.fileno())
        yield temporary


def _sync(folder: Path) -> None:
    """Have the files of a folder on the disk."""
    for file in [folder, *folder.rglob("*")] if os.name == "posix" else ():
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
