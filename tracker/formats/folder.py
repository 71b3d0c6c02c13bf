"""Folders appear whole or not at all, as `atomic` does for files."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from ..errors import SettingsError
from .atomic import refuse_output


def write_whole_folder(
    path: Path, write: Callable[[Path], object], *, overwrite: bool, is_ours: Callable[[Path], bool]
) -> None:
    """Write a folder under a temporary name, then rename it.

    Parameters
    ----------
    path : Path
    write : callable
        Given a folder that is not there yet, makes and fills it.
    overwrite : bool
        Whether a folder may be there already.
    is_ours : callable
        Whether what is there may be replaced by its kind: no other folder is ever removed.

    Raises
    ------
    SettingsError
        If the output is there and may not be replaced.
    OSError
        If the disk is full or cannot be written; nothing has changed then.
    """
    refuse_output(path, overwrite=overwrite, folder=True)
    if path.exists() and not is_ours(path):
        raise SettingsError(
            f"{path} is a folder of another kind, which is not replaced. Choose another name."
        )
    mark = secrets.token_hex(4)
    temporary, before = (path.with_name(f"{path.name}.{mark}.{end}") for end in ("tmp", "old"))
    try:
        write(temporary)
        _sync(temporary)
        if path.exists():
            path.replace(before)
        try:
            temporary.replace(path)
        except OSError:
            if before.exists():
                before.replace(path)
            raise
    finally:
        for left in (temporary, before):
            if left.exists():
                shutil.rmtree(left)


def _sync(folder: Path) -> None:
    """Have the files of a folder on the disk."""
    for file in [folder, *folder.rglob("*")] if os.name == "posix" else ():
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
