"""Which source fits a path."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import InputError, SettingsError
from ..work.jobs import Opening
from .folder import GrowingFolder
from .rows import GrowingTable, Stdin
from .sources import Source
from .tiff import GrowingTiff
from .zarr import GrowingZarr


def source_of(path: str, opening: Opening, columns: dict[str, str], spool: Path) -> Source:
    """The source that fits a path; ``-`` is stdin, whose rows are kept in the file `spool`.

    Raises
    ------
    InputError
        If there is nothing, or it does not grow.
    SettingsError
        If it is a URL.
    """
    if path == "-":
        return Stdin(spool, columns)
    if "://" in path:
        raise SettingsError(f"{path} is a URL; watching follows files. Copy them to a disk as they come.")
    file, lower = Path(path), path.lower().rstrip(os.sep)
    if lower.endswith(".zarr") or any((file / mark).exists() for mark in ("zarr.json", ".zgroup", ".zarray")):
        return GrowingZarr(path, opening)
    if lower.endswith((".tif", ".tiff", ".btf", ".tf8")):
        return GrowingTiff(path, opening)
    if lower.endswith((".csv", ".tsv", ".txt")):
        return GrowingTable(file, columns)
    if file.is_dir():
        return GrowingFolder(file, opening)
    if not file.exists():
        raise InputError(
            f"{path} is not there. Make the folder, or begin to record; then give the same command."
        )
    raise InputError(
        f"{path} does not grow frame by frame. Watch a folder of TIFF or PNG files, OME-Zarr, TIFF, a table "
        "(.csv), or stdin (-)."
    )
