"""Chunks of zarr arrays: those that would unpack to more than their array declares, and those not stored."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from .memory import refuse_if_larger_than_memory

_SLACK = 1 << 16
_TEXT = 64
"""Old files declare arrays of texts as 4 bytes each: so many times that is allowed."""
_MOST_ABSENT = 100_000
"""Chunks that may be left out; zarr looks for each of them."""


def refuse_bombs(array: Path, meta: Mapping[str, Any], width: int) -> None:
    """Compare what the chunks hold with what the array's metadata declare.

    Blosc states the size in its head, and zlib and gzip are unpacked so far and no further. Of other codecs
    the packed size is compared: at the 1000 times that deflate reaches, a chunk that is no larger than it
    declares can do little harm.

    Parameters
    ----------
    array : Path
        Folder of the array.
    meta : mapping
        Content of its .zarray or zarr.json.
    width : int
        Bytes of a value.

    Raises
    ------
    InputError
        Naming the chunk.
    ResourceError
        If a single chunk, as declared, does not fit the memory.
    """
    grid = _grid(meta)
    if grid is None:
        return  # zarr says what is wrong
    refuse_if_larger_than_memory(array, float(math.prod(grid)) * width)  # a chunk is whole in memory
    most = _TEXT * math.prod(grid) * width + _SLACK
    names = set(_codecs(meta))
    needed = math.prod(grid) * width if "sharding_indexed" not in names else 0
    stored = 0
    for chunk in array.rglob("*"):
        if chunk.name.startswith(".") or chunk.name == "zarr.json" or not chunk.is_file():
            continue
        stored += 1
        _refuse_cut_blosc(chunk, names, needed)
        if chunk.stat().st_size > most or _unpacked(chunk, names, most) > most:
            raise InputError(
                f"{chunk} holds more than the {math.prod(grid) * width} bytes that its array declares. "
                "It may be an attack; export the graph again."
            )

    declared = math.prod(
        -(-n // max(step, 1)) for n, step in zip(meta.get("shape") or (), grid, strict=False)
    )
    if declared > stored + _MOST_ABSENT:
        raise InputError(
            f"{array} declares {declared} chunks and has {stored}. It may be an attack; export the graph "
            "again."
        )


def absent_chunks(group: Any) -> dict[str, Any]:
    """Arrays of a zarr group of which chunks are not stored, by their names.

    Zarr from 3.2 on can raise at such a chunk instead (``read_missing_chunks``).
    """
    arrays = ((name, found) for name, found in group.members(max_depth=None) if hasattr(found, "nchunks"))
    return {name: array for name, array in arrays if array.nchunks_initialized < array.nchunks}


def declare_no_fill(folder: Path) -> None:
    """State of all arrays of a folder, in zarr v2, that no chunk was left out: one that is absent is lost."""
    for file in folder.rglob(".zarray"):
        stated = json.loads(file.read_bytes())
        file.write_text(json.dumps(stated | {"fill_value": None}, indent=2))


def _grid(meta: Mapping[str, Any]) -> list[int] | None:
    """Lengths of a chunk, in either format of zarr."""
    grid: Any = meta.get("chunks") or meta
    for key in () if grid is not meta else ("chunk_grid", "configuration", "chunk_shape"):
        grid = grid.get(key) if isinstance(grid, Mapping) else None
    if not isinstance(grid, list) or not all(isinstance(n, int) and n >= 0 for n in grid):
        return None
    return grid


def _codecs(meta: Mapping[str, Any]) -> Iterator[str]:
    """Names of what the chunks are packed with, in either format of zarr."""
    packed = meta.get("compressor")
    if isinstance(packed, Mapping):
        yield str(packed.get("id"))
    for codec in meta.get("codecs") or ():
        if isinstance(codec, Mapping):
            yield str(codec.get("name"))


def _refuse_cut_blosc(chunk: Path, codecs: set[str], needed: int) -> None:
    """Complain of a chunk of blosc that is cut short: blosc reads on in the memory behind it."""
    if "blosc" not in codecs:
        return
    with chunk.open("rb") as file:
        head = file.read(16)
    unpacked, packed = (int.from_bytes(head[place : place + 4], "little") for place in (4, 12))
    size = chunk.stat().st_size
    if len(head) < 16 or packed > size or unpacked < needed:
        raise InputError(
            f"{chunk} is cut short: {size} bytes for {packed}, which hold {unpacked} of {needed}. "
            "Copy it again."
        )


def _unpacked(chunk: Path, codecs: set[str], most: int) -> int:
    """Bytes that a chunk unpacks to, as far as that can be found without unpacking more than `most`."""
    with chunk.open("rb") as file:
        if "blosc" in codecs:
            head = file.read(16)
            return int.from_bytes(head[4:8], "little") if len(head) == 16 else 0
        if codecs & {"zlib", "gzip"}:
            unpack = zlib.decompressobj(wbits=47)  # either head
            try:
                return len(unpack.decompress(file.read(), most + 1))
            except zlib.error:
                return 0  # zarr says what is wrong
    return 0
