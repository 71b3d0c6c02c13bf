"""Keep out of Numba's cache what a wheel needs not: paths of this machine, texts, kernels within others.

``build_wheel.py`` has each Python that compiles import this at its start, as ``sitecustomize``.
"""

from __future__ import annotations

import os
import sys

from numba.core.annotations.type_annotations import TypeAnnotation
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache

_read = FunctionIdentity.from_function.__func__
_save = FunctionCache.save_overload


def _without_folder(cls: type[FunctionIdentity], function: object) -> FunctionIdentity:
    """Numba's account of a function, whose file Numba writes into the errors that machine code raises."""
    read = _read(cls, function)
    roots = [folder for folder in sys.path if folder and read.filename.startswith(folder + os.sep)]
    read.filename = os.path.relpath(read.filename, max(roots, key=len)) if roots else ""
    return read


def _saved(cache: FunctionCache, signature: object, made: object) -> None:
    """Save a kernel that Python calls, whose cache is Outbid's; the code of the others stands within it."""
    if type(cache) is not FunctionCache:
        _save(cache, signature, made)


FunctionIdentity.from_function = classmethod(_without_folder)
FunctionCache.save_overload = _saved
TypeAnnotation.__str__ = lambda _: ""  # a third of the size, which `inspect_types` alone shows
