"""Run records: what made a file, as plain JSON beside it or inside it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError

_MARK = {"written_by": "outbid"}
"""Stands in every record that is a file of its own: no other file is ever taken for one, and replaced."""
_LONGEST = 1 << 24
_IN_ALL_COMMANDS = {"command", "version", "input"}
"""What the records of version 0.1 have, which have no mark."""


def record_bytes(record: Mapping[str, object]) -> bytes:
    """The record as JSON, the same bytes for the same record.

    Examples
    --------
    >>> record_bytes({"settings": {"max_distance": float("inf")}, "command": "track"}).decode().split()
    ['{', '"command":', '"track",', '"settings":', '{', '"max_distance":', '"inf"', '}', '}']
    """
    text = json.dumps(_plain(record), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def marked_bytes(record: Mapping[str, object]) -> bytes:
    """The record as a file of its own holds it."""
    return record_bytes(dict(record) | _MARK)


def record_from(content: bytes, path: Path) -> dict[str, Any]:
    """The record that `content`, read from `path`, holds.

    Raises
    ------
    InputError
        If it is no JSON object.
    """
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no run record: {error}. Give a file that Outbid wrote.") from None
    if not isinstance(record, dict):
        raise InputError(
            f"{path} holds a {type(record).__name__} and no run record. Give a file that Outbid wrote."
        )
    marked = record.items() >= _MARK.items()
    return {name: value for name, value in record.items() if name not in _MARK} if marked else record


def record_path(path: Path) -> Path:
    """Where the record of a file stands that cannot hold it."""
    return path.with_name(path.name + ".json")


def to_stand_beside(
    path: Path, record: Mapping[str, object] | None, unit: str = "pixel"
) -> tuple[Path, bytes | None]:
    """Where the record of a file stands, and its content; None if there is nothing to say.

    A unit other than pixel, for which such a file has no place, stands with the record.
    """
    known = dict(record or {}) | ({} if unit == "pixel" else {"unit": unit})
    return record_path(path), record_bytes(known | _MARK) if known else None


def is_record(path: Path) -> bool:
    """Whether a file is a record that Outbid wrote, and so may be replaced."""
    try:
        if not path.is_file() or path.stat().st_size > _LONGEST:
            return False
        record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and (record.items() >= _MARK.items() or record.keys() >= _IN_ALL_COMMANDS)


def record_beside(path: Path) -> dict[str, Any] | None:
    """That record; None if there is none."""
    beside = record_path(path)
    return record_from(beside.read_bytes(), beside) if beside.is_file() else None


def unit_beside(path: Path) -> str | None:
    """The unit in that record; a record that cannot be read is no obstacle to reading the data."""
    try:
        unit = (record_beside(path) or {}).get("unit")
    except (InputError, OSError):
        return None
    return unit if isinstance(unit, str) else None


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal; of a folder, of the names and contents of its files."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        lines = [f"{sha256_of(file)} {file.relative_to(path).as_posix()}\n" for file in files]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _plain(value: object) -> object:
    """The value with infinities as words, for which JSON has no numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
