"""Run records: how a file was made, as plain JSON beside it or inside it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import InputError

_MARK = {"written_by": "outbid"}
"""A mark in every record that is a separate file, so that no other file is taken for one and replaced."""
_LONGEST = 1 << 24
_HASHED = 1 << 24
"""Bytes that are hashed at a time. Many: before each step a thread may wait for the interpreter's lock."""
_IN_ALL_COMMANDS = {"command", "version", "input"}
"""Keys of the records of the first version, which have no mark."""


def record_bytes(record: Mapping[str, object]) -> bytes:
    """The record as JSON, the same bytes for the same record.

    Examples
    --------
    >>> record_bytes({"settings": {"max_distance": float("inf")}, "command": "track"}).decode().split()
    ['{', '"command":', '"track",', '"settings":', '{', '"max_distance":', '"inf"', '}', '}']
    """
    text = json.dumps(_plain(record), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"  # names of files need not be UTF-8


def marked_bytes(record: Mapping[str, object]) -> bytes:
    """The content of a record that is a separate file."""
    return record_bytes(dict(record) | _MARK)


def record_from(content: bytes, path: Path) -> dict[str, Any]:
    """Parse the record in `content`, which was read from `path`; anything but a JSON object is refused."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no run record: {error}. Give a file that Outbid wrote.") from None
    if not isinstance(record, dict):
        raise InputError(
            f"{path} holds a {type(record).__name__} and no run record. Give a file that Outbid wrote."
        )
    marked = record.items() >= _MARK.items()
    return {name: value for name, value in record.items() if not marked or name not in _MARK}


def record_path(path: Path) -> Path:
    """The path of the record for a file that cannot contain it."""
    return path.with_name(path.name + ".json")


def to_stand_beside(
    path: Path, record: Mapping[str, object] | None, unit: str = "pixel"
) -> tuple[Path, bytes | None]:
    """Path and content of the record beside a file; the content is None if there is nothing to record.

    A unit other than pixel, which such a file cannot store, is added to the record.
    """
    known = dict(record or {}) | ({} if unit == "pixel" else {"unit": unit})
    return record_path(path), record_bytes(known | _MARK) if known else None


def is_record(path: Path) -> bool:
    """Whether Outbid wrote this file as a record, so that it may be replaced."""
    try:
        if not path.is_file() or path.stat().st_size > _LONGEST:
            return False
        record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and (record.items() >= _MARK.items() or record.keys() >= _IN_ALL_COMMANDS)


def record_beside(path: Path) -> dict[str, Any] | None:
    """The record beside a file; None if there is none."""
    beside = record_path(path)
    return record_from(beside.read_bytes(), beside) if beside.is_file() else None


def unit_beside(path: Path) -> str | None:
    """The unit in the record beside a file; an unreadable record is ignored."""
    try:
        unit = (record_beside(path) or {}).get("unit")
    except (InputError, OSError):
        return None
    return unit if isinstance(unit, str) else None


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of the content of a file, or of the names and contents of the files in a folder."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        lines = [f"{sha256_of(file)} {file.relative_to(path).as_posix()}\n" for file in files]
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    if path.exists() and not path.is_file():  # to open a pipe would wait for its writer
        raise InputError(f"{path} is a device. Give a file.")
    digest, piece = hashlib.sha256(), memoryview(bytearray(_HASHED))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(piece):
            digest.update(piece[:count])
    return digest.hexdigest()


def _plain(value: object) -> object:
    """Replace infinities by words, since JSON has no numbers for them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
