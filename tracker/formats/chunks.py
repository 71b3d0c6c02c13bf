"""Check the chunks of zarr arrays: chunks larger than declared, and chunks that are missing."""

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
"""Old files declare strings as 4 bytes each; chunks of strings may be larger by this factor."""
_MOST_ABSENT = 100_000
"""Largest number of missing chunks that is accepted; zarr searches for each of them."""


def refuse_bombs(array: Path, meta: Mapping[str, Any], width: int) -> None:
    """Compare the size of each chunk with the size that the metadata of its array declare.

    Blosc states the unpacked size in its header. Data of zlib and gzip are unpacked up to the declared size
    and no further. For other codecs the packed size is compared: deflate compresses at most about 1000 times,
    so a chunk whose packed size does not exceed the declared size can do little harm.

    Parameters
    ----------
    array : Path
        Folder of the array.
    meta : mapping
        Content of its .zarray or zarr.json.
    width : int
        Bytes of one value.

    Raises
    ------
    InputError
        Naming the chunk.
    ResourceError
        If one chunk of the declared size does not fit into memory.
    """
    grid = _grid(meta)
    if grid is None:
        return  # zarr reports the error
    refuse_if_larger_than_memory(array, float(math.prod(grid)) * width)  # zarr holds a whole chunk in memory
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
    """Names of the arrays in a zarr group that lack stored chunks.

    Zarr 3.2 and later can raise an error at such a chunk instead (``read_missing_chunks``).
    """
    arrays = ((name, found) for name, found in group.members(max_depth=None) if hasattr(found, "nchunks"))
    return {name: array for name, array in arrays if array.nchunks_initialized < array.nchunks}


def declare_no_fill(folder: Path) -> None:
    """Mark all arrays of a zarr v2 folder as complete, so that readers take an absent chunk for lost."""
    for file in folder.rglob(".zarray"):
        stated = json.loads(file.read_bytes())
        file.write_text(json.dumps(stated | {"fill_value": None}, indent=2))


def _grid(meta: Mapping[str, Any]) -> list[int] | None:
    """Shape of a chunk, for zarr v2 and v3."""
    grid: Any = meta.get("chunks") or meta
    for key in () if grid is not meta else ("chunk_grid", "configuration", "chunk_shape"):
        grid = grid.get(key) if isinstance(grid, Mapping) else None
    if not isinstance(grid, list) or not all(isinstance(n, int) and n >= 0 for n in grid):
        return None
    return grid


def _codecs(meta: Mapping[str, Any]) -> Iterator[str]:
    """Names of the codecs of the chunks, for zarr v2 and v3."""
    packed = meta.get("compressor")
    if isinstance(packed, Mapping):
        yield str(packed.get("id"))
    for codec in meta.get("codecs") or ():
        if isinstance(codec, Mapping):
            yield str(codec.get("name"))


def _refuse_cut_blosc(chunk: Path, codecs: set[str], needed: int) -> None:
    """Refuse a truncated blosc chunk: blosc would read memory beyond its end."""
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
    """Unpacked size of a chunk in bytes, determined without unpacking more than `most` bytes."""
    with chunk.open("rb") as file:
        if "blosc" in codecs:
            head = file.read(16)
            return int.from_bytes(head[4:8], "little") if len(head) == 16 else 0
        if codecs & {"zlib", "gzip"}:
            unpack = zlib.decompressobj(wbits=47)  # either head
            try:
                return len(unpack.decompress(file.read(), most + 1))
            except zlib.error:
                return 0  # zarr reports the error
    return 0
