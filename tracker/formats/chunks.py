"""Chunks of zarr arrays that would unpack to more than their array declares: refused before they are read."""

from __future__ import annotations

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
    grid = meta.get("chunks") or meta.get("chunk_grid", {}).get("configuration", {}).get("chunk_shape")
    if not isinstance(grid, list) or not all(isinstance(n, int) and n >= 0 for n in grid):
        return  # zarr says what is wrong
    refuse_if_larger_than_memory(array, float(math.prod(grid)) * width)  # a chunk is whole in memory
    most = _TEXT * math.prod(grid) * width + _SLACK
    names = set(_codecs(meta))
    for chunk in array.rglob("*"):
        if chunk.name.startswith(".") or chunk.name == "zarr.json" or not chunk.is_file():
            continue
        if chunk.stat().st_size > most or _unpacked(chunk, names, most) > most:
            raise InputError(
                f"{chunk} holds more than the {math.prod(grid) * width} bytes that its array declares. "
                "It may be an attack; export the graph again."
            )


def _codecs(meta: Mapping[str, Any]) -> Iterator[str]:
    """Names of what the chunks are packed with, in either format of zarr."""
    packed = meta.get("compressor")
    if isinstance(packed, Mapping):
        yield str(packed.get("id"))
    for codec in meta.get("codecs") or ():
        if isinstance(codec, Mapping):
            yield str(codec.get("name"))


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
