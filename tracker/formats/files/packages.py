"""Packages that read files: what is missing, and errors at damaged data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from ...errors import InputError, OutbidError, ResourceError


def missing(what: str, extra: str) -> ResourceError:
    """The error about a missing package, with the command that installs it."""
    return ResourceError(f"{what} needs a package that is not installed: pip install 'outbid[{extra}]'.")


def package(name: str, what: str, extra: str) -> Any:
    """Import a package that `what` needs; the error about one that is missing names the extra that has it."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise missing(what, extra) from None


@contextmanager
def opened(source: str, kind: str, reader: str) -> Iterator[Any]:
    """A context with the package that reads files of a kind, in which its errors become an InputError."""
    found = package(reader, kind, kind.lower())
    with damage_explained(source, kind):
        yield found


def reason_of(error: Exception) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split())[:200].rstrip(". ") or type(error).__name__


@contextmanager
def refused_if_damaged(
    path: Path, said: str, remedy: str, kinds: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    """Turn errors of what reads a file into an InputError with its reason, by default those of all kinds."""
    try:
        yield
    except (OutbidError, MemoryError):
        raise
    except kinds as error:
        raise InputError(f"{path} {said}: {reason_of(error)}. {remedy}") from None


@contextmanager
def damage_explained(name: str, what: str) -> Iterator[None]:
    """Turn errors of a reader at damaged data into an InputError."""
    try:
        yield
    except OutbidError:
        raise
    except MemoryError:
        raise ResourceError(
            f"{name}: the memory does not suffice for what it declares. Read a region (--region), or copy "
            "the file again if it is damaged."
        ) from None
    except Exception as error:
        reason = reason_of(error)
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        if absent == "imagecodecs" or "requires the 'imagecodecs' package" in reason:
            raise missing(f"The compression of {name}", "images") from None
        if absent:
            raise
        raise InputError(f"{name} cannot be read as {what}: {reason}. It may be damaged.") from None
