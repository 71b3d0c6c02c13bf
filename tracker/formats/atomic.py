"""Files appear whole or not at all, also when the process is killed or the disk is full."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from ..errors import SettingsError


def refuse_output(path: Path, *, overwrite: bool, folder: bool = False) -> None:
    """Complain if nothing may be written at `path`.

    Raises
    ------
    SettingsError
        If the folder is missing, or something is there that may not be replaced, or that is no file
        (no folder, where the format makes one).
    """
    if not path.parent.is_dir():
        raise SettingsError(f"There is no folder {path.parent} for the output. Make it first.")
    if path.exists() and not (path.is_dir() if folder else path.is_file()):
        kind = "folder" if folder else "file"
        raise SettingsError(f"{path} is there and is no {kind}. Choose another name for the output.")
    if path.exists() and not overwrite:
        raise SettingsError(f"{path} exists. Choose another name, or allow it to be replaced (--overwrite).")


def write_whole(
    path: Path,
    write: Callable[[BinaryIO], object],
    *,
    overwrite: bool,
    beside: tuple[Path, bytes | None] | None = None,
) -> None:
    """Write a file, and perhaps a small one that belongs to it, so that neither is ever seen in part.

    Parameters
    ----------
    path : Path
    write : callable
        Given the open file, writes the content.
    overwrite : bool
        Whether a file may be there already.
    beside : (Path, bytes or None), optional
        The second file and its content; None removes one that is left of an earlier output.

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
    with the record of another run.
    """
    refuse_output(path, overwrite=overwrite)
    target = path.resolve()  # a symbolic link stays one
    with ExitStack() as stack:
        staged = stack.enter_context(_staged(target, write))
        moves = [(staged, target)]
        if beside is not None:
            second, content = beside[0].resolve(), beside[1]
            replaced = target.exists()
            if content is not None:
                note = stack.enter_context(_staged(second, lambda file: file.write(content)))
                moves.insert(1 if replaced else 0, (note, second))
            if replaced or content is None:
                second.unlink(missing_ok=True)
                _sync_folder(second.parent)
        refuse_output(path, overwrite=overwrite)  # another run may have been faster
        for temporary, final in moves:
            temporary.replace(final)
            _sync_folder(final.parent)


def move_whole(staged: Path, path: Path, *, overwrite: bool) -> None:
    """Give a file that is complete and on the disk its name, on the same disk.

    Raises
    ------
    SettingsError
        As `refuse_output`.
    """
    refuse_output(path, overwrite=overwrite)
    target = path.resolve()
    staged.replace(target)
    _sync_folder(target.parent)


@contextmanager
def _staged(final: Path, write: Callable[[BinaryIO], object]) -> Iterator[Path]:
    """Write and sync a temporary file beside `final`; it is gone afterwards, unless it was moved."""
    temporary = final.with_name(f"{final.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
