"""Check that the declared content of a file fits into memory before it is read."""

from __future__ import annotations

from pathlib import Path

from ...compute.arrays import free_memory
from ...errors import ResourceError

_SHARE = 0.8
_REMEDY = "Split it by frames, or take a machine with more memory."


def fits_memory(needed: float) -> bool:
    """Whether bytes take at most 0.8 of the free memory."""
    return needed <= _SHARE * free_memory()


def refuse_if_larger_than_memory(path: Path | str, needed: float, remedy: str = _REMEDY) -> None:
    """Refuse what needs more memory than there is: a ResourceError that states how much, and a remedy."""
    if not fits_memory(needed):
        free = free_memory()
        raise ResourceError(
            f"{path}: reading it would take {needed / 1e9:.3g} GB of memory; {free / 1e9:.3g} GB are free. "
            f"{remedy}"
        )


def larger_than_memory(path: Path) -> ResourceError:
    """The error for a file that exhausted the memory while it was read."""
    files = path.rglob("*") if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files if file.is_file())
    return ResourceError(
        f"{path}: the memory does not suffice to read its {size / 1e9:.3g} GB; "
        f"{free_memory() / 1e9:.3g} GB are free. {_REMEDY}"
    )
