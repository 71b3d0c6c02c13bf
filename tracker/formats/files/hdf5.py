"""HDF5 files: opened, checked, and all their objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..files.packages import opened

_HEAP = re.compile(rb"GCOL\x01\x00\x00\x00(.{8})", re.DOTALL)
"""Signature and length of a collection of strings (a global heap)."""

_LOOKED_AT = 1 << 26
"""Number of bytes searched for such collections; later ones are not checked."""


def file_at(source: str) -> Any:
    """Open an HDF5 file for reading; it is refused if its texts are damaged."""
    with opened(source, "HDF5", "h5py") as h5py:
        _refuse_damaged_heaps(Path(source))
        return h5py.File(source, "r")


def _refuse_damaged_heaps(path: Path) -> None:
    """Refuse strings with invalid sizes, at which HDF5 2.0 loops forever or reads beyond them.

    Strings of attributes are stored in collections. Each object has a number, a reference count, a size and
    data.
    """
    with path.open("rb") as file:
        content = file.read(_LOOKED_AT)
    for found in _HEAP.finditer(content):
        start, end = found.start() + 16, found.start() + int.from_bytes(found[1], "little")
        while start + 16 <= end <= len(content):
            number = int.from_bytes(content[start : start + 2], "little")
            size = int.from_bytes(content[start + 8 : start + 16], "little")
            step = size if number == 0 else 16 + -(-size // 8) * 8  # free space counts its header
            if step < 16 or start + step > end:
                raise InputError(f"{path} is damaged at byte {start}: a text of {size} bytes. Copy it again.")
            start += step


def objects_in(group: Any, seen: set[Any]) -> Iterator[Any]:
    """All objects below a group, each once and ordered by name; links to other files are left out.

    h5py's `visititems` goes round for ever in a group whose header is damaged. `len` raises an error there.
    """
    import h5py

    if not len(group):
        return
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink) or (each := group[name]) in seen:
            continue
        seen.add(each)
        yield each
        if isinstance(each, h5py.Group):
            yield from objects_in(each, seen)
