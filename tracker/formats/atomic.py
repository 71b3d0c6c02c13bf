"""Atomic writes: an output is complete or absent, even if the process is killed or the disk is full."""

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
    """Write a file and, optionally, its run record, so that other programs never see an incomplete file.

    A file that is replaced keeps its permissions.

    Parameters
    ----------
    path : Path
    write : callable
        Writes the content to the open file that it is given.
    overwrite : bool
        Whether an existing file may be replaced.
    beside : (Path, bytes or None), optional
        Path and content of the record; with None, the record of an earlier output is removed.

    Raises
    ------
    SettingsError
        As `refuse_output`.
    OSError
        If the disk is full or cannot be written; nothing has changed then.

    Notes
    -----
    Both files are first written completely under temporary names and then renamed. A crash may occur between
    the two renames, so their order matters. For a new output the record is renamed first: an output that
    exists has its record. For an old output the old record is removed first: an output never stands beside
    the record of another run. While `write` runs, a signal raises at once; during the renames it is held
    back.
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
        refuse()  # another run may have written it meanwhile
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
    """Write a folder atomically, as `write_whole` writes a file.

    Parameters
    ----------
    path : Path
    write : callable
        Creates the folder whose path it is given, and fills it.
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
    An existing folder is first moved into the temporary one. If the process is killed between the two moves,
    nothing is left at `path`, and the next run that writes there restores the old folder. While `write` runs,
    a signal raises at once; during the moves it is held back.
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
    """Rename a file that is completely on the disk to its final name; permissions are kept.

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
    """A temporary file beside `final`, flushed to the disk; removed afterwards unless it was renamed."""
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
    """Flush the files of a folder to the disk."""
    for file in [folder, *folder.rglob("*")] if os.name == "posix" else ():
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk, so that they survive a power cut."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
