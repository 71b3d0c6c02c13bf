"""HDF5 images, read by h5py: each numeric data set with at least two axes is a scene."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .stacks import Stack, chosen, damage_explained, opened, refuse_level

SUFFIXES = (".h5", ".hdf5", ".he5")
_MOST_AXES = 6
_HEAP = re.compile(rb"GCOL\x01\x00\x00\x00(.{8})", re.DOTALL)
"""Signature and length of a collection of strings (a global heap)."""
_LOOKED_AT = 1 << 26
"""Number of bytes searched for such collections; later ones are not checked."""


def open_stack(source: str, scene: int | None, level: int) -> Stack:
    """See `stacks.Opener`."""
    refuse_level(source, level, ": choose a data set with --scene")
    file = file_at(source)
    with damage_explained(source, "HDF5"):
        found = [each for each in objects_in(file, {file}) if _is_image(each)]
        if not found:
            raise InputError(f"{source} holds no data set of numbers over y and x. Check where it was made.")
        number, listed = chosen(source, scene, [f"{each.name} {each.shape}" for each in found])
        data = found[number]
        spacing, depth = _spacing(data)
        unit = "micrometer" if spacing != (1.0, 1.0, 1.0) else "pixel"
        return Stack(data, _axes(data), spacing, unit, None, depth, scenes=listed)


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
        place, end = found.start() + 16, found.start() + int.from_bytes(found[1], "little")
        while place + 16 <= end <= len(content):
            number = int.from_bytes(content[place : place + 2], "little")
            size = int.from_bytes(content[place + 8 : place + 16], "little")
            step = size if number == 0 else 16 + -(-size // 8) * 8  # free space counts its header
            if step < 16 or place + step > end:
                raise InputError(f"{path} is damaged at byte {place}: a text of {size} bytes. Copy it again.")
            place += step


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


def _is_image(each: Any) -> bool:
    shape = getattr(each, "shape", None) or ()
    return 2 <= len(shape) <= _MOST_AXES and each.dtype.kind in "biuf" and min(shape) > 0


def _axes(data: Any) -> str:
    """Axis letters from dimension labels or an attribute; Q for unnamed axes."""
    # Not by data.dims: HDF5's own function for them crashes on a damaged attribute.
    named = data.attrs.get("DIMENSION_LABELS")
    labels = [""] * len(data.shape) if named is None else [_text(each) for each in np.ravel(named)]
    stated = data.attrs.get("axes", data.attrs.get("axistags"))
    if isinstance(stated, bytes | str):
        text = stated.decode("utf-8", "replace") if isinstance(stated, bytes) else stated
        labels = [each["key"] for each in json.loads(text)["axes"]] if text.startswith("{") else list(text)
    elif stated is not None:
        labels = [str(each) for each in np.asarray(stated).tolist()]
    return letters(labels, len(data.shape))


def _text(label: object) -> str:
    return label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label or "")


def letters(labels: list[Any], count: int) -> str:
    """Axis letters from dimension names: their first letters if among TZCYX; the last two are Y and X.

    Examples
    --------
    >>> letters(["time", "z", "y", "x"], 4), letters(["", "", ""], 3)
    ('TZYX', 'QYX')
    """
    named = [str(label)[:1].upper() or "Q" for label in labels]
    if len(named) != count or len({*named} - {"Q"}) + named.count("Q") != count:
        named = ["Q"] * count
    if not {"Y", "X"} & {*named}:
        named[-2:] = ["Y", "X"]
    return "".join(axis if axis in "TZCYXS" else "Q" for axis in named)


def _spacing(data: Any) -> tuple[tuple[float, float, float], bool]:
    """Voxel size from the attribute that ImageJ writes."""
    sizes = np.asarray(data.attrs.get("element_size_um", ()), dtype=np.float64).ravel()
    if len(sizes) != 3 or not (sizes > 0).all():
        return (1.0, 1.0, 1.0), False
    z, y, x = sizes.tolist()
    return (z, y, x), True
