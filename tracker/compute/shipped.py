"""Compiled kernels that a wheel brings, so that a new user waits for none.

``make wheel`` compiles the kernels for a CPU that most have, and puts Numba's files of them into the folder
``_compiled`` of the package, beside a manifest. Git holds no such folder, nor does an installation from a
clone: there, and wherever the manifest does not fit, kernels are compiled at their first use.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import pickle
import sys
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numba
from numba.core import config
from numba.core.caching import FunctionCache

OWN_CODE = ("CPU_NAME", "CPU_FEATURES", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")
"""Variables of Numba by which a user asks for other machine code."""
PACKAGE = Path(__file__).parents[1]
FOLDER = PACKAGE / "_compiled"
MANIFEST = FOLDER / "manifest.json"


def keep(made: Any) -> Any:
    """Give a compiled function `KernelCache`, as Numba's ``cache=True`` gives it Numba's own."""
    if hasattr(made, "py_func"):  # else NUMBA_DISABLE_JIT is set
        made._cache = KernelCache(made.py_func)
    return made


class KernelCache(FunctionCache):
    """Numba's cache of one function, which looks among the kernels of the wheel first."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Read the machine code of a function for types of arguments; None if there is none."""
        try:
            found = self._shipped(sig, target_context)
        except Exception:  # whatever is wrong with these files, the kernel can be compiled
            found = None
        return super().load_overload(sig, target_context) if found is None else found

    def _shipped(self, sig: Any, target_context: Any) -> Any:
        wheel = wheel_kernels()
        if wheel is None:
            return None
        target_context.refresh()
        codegen = target_context.codegen()
        _, machine, code = self._index_key(sig, codegen)
        triple, _, features = machine
        if not wheel.features <= set(features.split(",")):
            return None
        folder = Path(inspect.getfile(self._py_func)).parent.relative_to(PACKAGE)
        index = BytesIO(wheel.content(folder / f"{self._impl.filename_base}.nbi"))
        pickle.load(index)  # the version of Numba, which the manifest has as well
        _, names = pickle.load(index)
        name = names.get((sig, (triple, wheel.cpu, wheel.feature_list), code))
        return name and self._impl.rebuild(target_context, pickle.loads(wheel.content(folder / name)))


@dataclass(frozen=True)
class WheelKernels:
    """What the manifest says.

    Attributes
    ----------
    cpu : str
        The name that LLVM gives to the CPU for which the kernels were compiled.
    feature_list : str
        The features that it must have, as Numba lists them.
    files : dict of str to str
        SHA-256 of each file, by its path within the folder.
    """

    cpu: str
    feature_list: str
    files: dict[str, str]

    @property
    def features(self) -> set[str]:
        return set(filter(None, self.feature_list.split(",")))

    def content(self, path: Path) -> bytes:
        """Read a file that is listed, or raise KeyError, and whose checksum holds, or raise ValueError."""
        expected, content = self.files[path.as_posix()], (FOLDER / path).read_bytes()
        if checksum(content) != expected:
            raise ValueError(f"{path} is damaged")
        return content


@cache
def wheel_kernels() -> WheelKernels | None:
    """What the wheel brought, or None if there is nothing, or nothing that fits this Python and package."""
    if not MANIFEST.is_file() or any(getattr(config, name) for name in OWN_CODE):
        return None
    manifest = json.loads(MANIFEST.read_bytes())
    if manifest["versions"] != versions():
        return None
    if any(checksum((PACKAGE / name).read_bytes()) != of for name, of in manifest["sources"].items()):
        return None
    return WheelKernels(manifest["cpu"], manifest["features"], manifest["files"])


def versions() -> dict[str, str]:
    """On which the format of the files and the machine code depend."""
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    return {"numba": numba.__version__, "python": python}


def checksum(content: bytes) -> str:
    """SHA-256 as text."""
    return hashlib.sha256(content).hexdigest()
