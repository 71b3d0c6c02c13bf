"""Check the folder of a GEFF before zarr opens it: its metadata, its chunks, and that reading it is safe.

A folder is safe if no symbolic link leads out of it, no codec could execute code, all arrays fit into memory,
and no chunk is larger than declared. The package geff checks none of these; what it checks (the structure of
groups, properties and types) is left to it, and its errors become an InputError.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ..files.memory import refuse_if_larger_than_memory
from ..files.packages import refused_if_damaged

_HARMLESS = {
    "blosc", "zstd", "lz4", "zlib", "gzip", "bz2", "lzma", "shuffle", "delta", "vlen-utf8", "bytes", "crc32c",
    "transpose", "sharding_indexed", "default", "v2",
}  # fmt: skip
"""Codecs that cannot execute code."""
_FILES = (".zattrs", "zarr.json")
_PART = re.compile(
    r"((nodes|edges)/(ids/|(props|attrs)/([^/]+/((values|missing|data)/)?)?)?)?"
    r"(\.z[a-z]+|zarr\.json|(c/)?\d+([./]\d+)*|c)"
)
"""Patterns of file names in a GEFF: metadata and chunks."""
_SLACK = 1 << 16
_TEXT = 64
"""Old files declare strings as 4 bytes each; chunks of strings may be larger by this factor."""
_MOST_ABSENT = 100_000
"""Largest number of missing chunks that is accepted; zarr searches for each of them."""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn any error about a damaged folder into an InputError that names the folder and the reason."""
    try:
        with refused_if_damaged(path, "cannot be read as GEFF", "Export it again."):
            yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}. Export the graph again.") from None


def inside(path: Path) -> Iterator[Path]:
    """The folder and its subfolders: a GEFF may be inside a container."""
    yield path
    yield from (child for child in sorted(path.iterdir()) if child.is_dir())


def checked(path: Path) -> tuple[Path, dict[str, Any]]:
    """The folder of the graph, `path` or one inside it, and its metadata, after all safety checks.

    Raises
    ------
    InputError
        If there is not exactly one graph, or if a symbolic link or array is unsafe.
    ResourceError
        If the arrays do not fit into memory.
    """
    found = {folder: metadata for folder in inside(path) if (metadata := metadata_of(folder)) is not None}
    if len(found) != 1:
        names = ", ".join(folder.name for folder in found)
        raise InputError(
            f"{path} holds {f'several graphs ({names}): name one' if found else 'no GEFF'}. Give its folder."
        )
    ((where, metadata),) = found.items()
    needed = 0.0
    root = where.resolve()
    for file in where.rglob("*"):
        if not file.exists():
            raise InputError(f"{path}: {file.relative_to(path)} is a link that leads nowhere. Remove it.")
        if not file.resolve().is_relative_to(root):
            raise InputError(f"{path}: {file.relative_to(path)} leads out of the folder: refused.")
        if file.name in (".zarray", ".zmetadata", "zarr.json"):
            needed += sum(_size_if_harmless(array, stated) for array, stated in _arrays(file))
    refuse_if_larger_than_memory(path, 2 * needed)
    return where, metadata


def metadata_of(folder: Path) -> dict[str, Any] | None:
    """The metadata of the graph in the folder; None if there is none."""
    for name in _FILES:
        if (folder / name).is_file():
            attributes = _json(folder / name)
            if name == "zarr.json":
                attributes = _mapping(attributes.get("attributes"))
            metadata = attributes if "geff_version" in attributes else _mapping(attributes.get("geff"))
            if "geff_version" in metadata:
                return metadata
    return None


def foreign(path: Path) -> str | None:
    """Why a folder must not be replaced: it is no GEFF or holds other files; None if it may be."""
    try:
        metadata = metadata_of(path)
    except (InputError, OSError):
        metadata = None
    if metadata is None:
        return "it is no GEFF"
    files = (file.relative_to(path).as_posix() for file in sorted(path.rglob("*")) if not file.is_dir())
    other = next((name for name in files if not _PART.fullmatch(name)), None)
    return None if other is None else f"{other} is no part of a GEFF"


def row_count(array: Path) -> int:
    """Number of rows that an array declares.

    Raises InputError if the array is missing or declares none.
    """
    file = array / ".zarray" if (array / ".zarray").is_file() else array / "zarr.json"
    shape = _json(file).get("shape") if file.is_file() else None
    if not isinstance(shape, list) or not shape:
        raise InputError(f"{array} is missing or has no rows. Export the graph again.")
    return int(shape[0])


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(file: Path) -> dict[str, Any]:
    try:
        metadata = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is damaged: {error}. Export the graph again.") from None
    if not isinstance(metadata, dict):
        raise InputError(f"{file} is damaged: it holds no object. Export the graph again.")
    return metadata


def _arrays(file: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Folders and metadata of the arrays that a metadata file describes (many if consolidated)."""
    stated = _json(file)
    many = stated if file.name == ".zmetadata" else _mapping(stated.get("consolidated_metadata"))
    for name, one in _mapping(many.get("metadata")).items():
        if isinstance(one, dict) and not name.endswith((".zattrs", ".zgroup")):
            yield file.parent / name.removesuffix("/.zarray"), one
    if file.name != ".zmetadata":
        yield file.parent, stated


def _size_if_harmless(array: Path, metadata: Mapping[str, Any]) -> float:
    """Size of an array in bytes, after a check of its codecs."""
    if metadata.get("node_type") == "group":
        return 0.0
    codecs = [metadata.get("compressor"), *_listed(array, metadata, "filters")]
    codecs += _listed(array, metadata, "codecs")
    stated = [codec.get("id", codec.get("name")) if isinstance(codec, dict) else codec for codec in codecs]
    names = {str(name) for name in stated if name is not None}
    strange = sorted(names - _HARMLESS)
    dtype = metadata.get("dtype", metadata.get("data_type"))
    if strange or "O" in str(dtype):
        raise InputError(
            f"{array} is of type {str(dtype)[:40]}, coded by {', '.join(strange) or 'objects'}, "
            "which could run any program: refused. Export numbers."
        )
    shape = metadata.get("shape")
    if not isinstance(shape, list) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise InputError(f"{array} has no shape. Export the graph again.")
    try:
        width = np.dtype(dtype).itemsize
    except (TypeError, ValueError):
        width = 8
    _refuse_bombs(array, metadata, width, names)
    return float(math.prod(shape)) * width


def _listed(array: Path, metadata: Mapping[str, Any], key: str) -> list[Any]:
    value = metadata.get(key)
    if value is not None and not isinstance(value, list):
        raise InputError(f"{array}: its {key} are {str(value)[:40]!r}, no list. Export the graph again.")
    return value or []


def _refuse_bombs(array: Path, meta: Mapping[str, Any], width: int, codecs: set[str]) -> None:
    """Compare the size of each chunk with the size that the metadata of its array declare.

    Blosc states the unpacked size in its header. Data of zlib and gzip are unpacked up to the declared size
    and no further. For other codecs the packed size is compared: deflate compresses at most about 1000 times,
    so a chunk whose packed size does not exceed the declared size can do little harm.

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
    needed = math.prod(grid) * width if "sharding_indexed" not in codecs else 0
    stored = 0
    for chunk in array.rglob("*"):
        if chunk.name.startswith(".") or chunk.name == "zarr.json" or not chunk.is_file():
            continue
        stored += 1
        _refuse_cut_blosc(chunk, codecs, needed)
        if chunk.stat().st_size > most or _unpacked(chunk, codecs, most) > most:
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


def _refuse_cut_blosc(chunk: Path, codecs: set[str], needed: int) -> None:
    """Refuse a truncated blosc chunk: blosc would read memory beyond its end."""
    if "blosc" not in codecs:
        return
    with chunk.open("rb") as file:
        head = file.read(16)
    unpacked, packed = (int.from_bytes(head[offset : offset + 4], "little") for offset in (4, 12))
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
