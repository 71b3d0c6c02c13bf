"""Packages that read files: what is missing, and errors at damaged data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
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
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        if absent == "imagecodecs" or "requires the 'imagecodecs' package" in reason:
            raise missing(f"The compression of {name}", "images") from None
        if absent:
            raise
        raise InputError(f"{name} cannot be read as {what}: {reason}. It may be damaged.") from None
