"""Linkers that experiments compare: methods that link detections. A new linker is a new file in this folder.

A file holds `LINKER`, an instance of `Linker`, which has the name of the file. There are Outbid's own
(`outbid`, and `plain`, which is given a gate), baselines (`nearest`, `velocity`), the paper's matching
(`whole`, and `auction` by its own algorithm) and other packages
(`laptrack`, `trackpy`, `trackpy_velocity`, `btrack`, `byotrack`), which may not be installed.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from outbid.errors import SettingsError

from .linker import Linker

LINKERS = tuple(sorted({module.name for module in pkgutil.iter_modules(__path__)} - {"linker"}))
"""Names that `linker_named` accepts."""


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
