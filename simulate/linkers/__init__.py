"""Linkers that experiments compare: methods that link detections. A new linker is a new file in this folder.

A file holds `LINKERS`, instances of `Linker` by name: Outbid's own (`outbid`, and `plain`, which is given a
gate), baselines (`nearest`, `velocity`), the paper's `auction`, and other packages (`laptrack`, `trackpy`,
`trackpy_velocity`, `btrack`, `byotrack`), if installed.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from outbid.errors import SettingsError

from .linker import Linker

LINKERS: dict[str, Linker] = {}
"""Linkers by name."""
for _module in pkgutil.iter_modules(__path__):
    if _module.name != "linker":
        LINKERS |= import_module(f".{_module.name}", __name__).LINKERS
LINKERS = dict(sorted(LINKERS.items()))


def linker_named(name: str) -> Linker:
    """The linker of this name.

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
    return LINKERS[name]
