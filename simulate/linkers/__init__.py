"""Linkers: ways from detections to links that an experiment compares; one more is one more file here.

A file holds `LINKER`, an instance of `Linker`, and is called by its own name:
ours (`outbid`, and `plain`, told a gate), baselines (`nearest`, `velocity`) and other packages
(`laptrack`, `trackpy`, `trackpy_velocity`, `btrack`, `byotrack`), which may be missing.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from outbid.errors import SettingsError

from .linker import Linker

LINKERS = tuple(sorted({module.name for module in pkgutil.iter_modules(__path__)} - {"linker"}))
"""Names that `linker_named` takes."""


def linker_named(name: str) -> Linker:
    """The linker in the file of this name.

    Raises
    ------
    SettingsError
        If there is none.

    Examples
    --------
    >>> linker_named("outbid").grid(gaps=True)
    []
    """
    if name not in LINKERS:
        raise SettingsError(f"There is no linker {name!r}. Choose from: {', '.join(LINKERS)}.")
    found = import_module(f".{name}", __package__).LINKER
    if not isinstance(found, Linker):
        raise SettingsError(f"LINKER of {name} is no Linker; let its class inherit from Linker.")
    return found
