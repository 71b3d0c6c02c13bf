"""Check the folder of a GEFF before zarr opens it: its metadata, and that reading it is safe.

A folder is safe if no symbolic link leads out of it, no codec could execute code, and all arrays fit into
memory. Errors that zarr, numcodecs and geff still raise about invalid metadata become an InputError.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, OutbidError
from .chunks import refuse_bombs
from .memory import refuse_if_larger_than_memory

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


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn any error about a damaged folder into an InputError that names the folder and the reason."""
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}. Export the graph again.") from None
    except (OutbidError, MemoryError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{path} cannot be read as GEFF: {reason}. Export it again.") from error


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

    Raises
    ------
    InputError
        If the array is missing or declares none.
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
    names = [codec.get("id", codec.get("name")) if isinstance(codec, dict) else codec for codec in codecs]
    strange = sorted(str(name) for name in names if name is not None and str(name) not in _HARMLESS)
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
    refuse_bombs(array, metadata, width)
    return float(math.prod(shape)) * width


def _listed(array: Path, metadata: Mapping[str, Any], key: str) -> list[Any]:
    value = metadata.get(key)
    if value is not None and not isinstance(value, list):
        raise InputError(f"{array}: its {key} are {str(value)[:40]!r}, no list. Export the graph again.")
    return value or []
