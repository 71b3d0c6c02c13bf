"""Compile the kernels of a new user's first steps; write how many, and for which versions and package.

``build_wheel.py`` runs this in a process of its own, for Numba reads the name of the CPU at its import.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from numba.core import config
from numba.core.annotations.type_annotations import TypeAnnotation
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache

import outbid
from outbid._compiling import kernels_counted
from outbid._shipped import KernelCache, versions
from outbid.data import sample

_read = FunctionIdentity.from_function.__func__
_save = FunctionCache.save_overload


def _without_folder(cls: type[FunctionIdentity], function: object) -> FunctionIdentity:
    """Numba's account of a function, whose file Numba writes into the errors that machine code raises."""
    read = _read(cls, function)
    roots = [folder for folder in sys.path if folder and read.filename.startswith(folder + os.sep)]
    read.filename = os.path.relpath(read.filename, max(roots, key=len)) if roots else ""
    return read


def _saved(cache: FunctionCache, signature: object, made: object) -> None:
    """Save a kernel that Python calls; the code of the others stands within it."""
    if isinstance(cache, KernelCache):
        _save(cache, signature, made)


def first_steps() -> int:
    """Warm up, track the sample, write, read and score the tracks; how many kernels were compiled."""
    counts: list[int] = []
    with kernels_counted(counts.append), tempfile.TemporaryDirectory() as folder:
        outbid.warm_up(processes=1)  # what is replaced here is so in this process alone
        truth, output = outbid.read_tracks(sample("walks")), Path(folder) / "tracks.csv"
        outbid.write_tracks(output, outbid.track(truth.detections).tracks)
        outbid.score(outbid.read_tracks(output), truth)
    return len(counts)


if __name__ == "__main__":
    if config.USING_SVML:
        sys.exit("Intel's SVML is installed: the kernels would need it wherever they run.")
    FunctionIdentity.from_function = classmethod(_without_folder)
    TypeAnnotation.__str__ = lambda _: ""  # a third of the size, which `inspect_types` alone shows
    FunctionCache.save_overload = _saved
    facts = {"compiled": first_steps(), "package": outbid.__file__, "versions": versions()}
    sys.stdout.write(json.dumps(facts))
