"""NumPy .npy: matrices (costs of pairs, or points), and the array of a napari tracks layer.

The rows of the latter are: track number, frame, (z,) y, x.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, ResourceError
from ..files.memory import fits_memory, refuse_if_larger_than_memory
from ..files.packages import refused_if_damaged
from .edges import Labelled, format_of_labelled

_CUT = (ValueError, EOFError, OverflowError)
"""Errors of NumPy at a file that holds fewer values than it declares."""


def recognises(path: Path, *_: object) -> bool:
    """Whether the file begins with NumPy's signature."""
    with path.open("rb") as file:
        return file.read(6) == b"\x93NUMPY"


def header_of(path: Path) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype of an array, from the header of its file.

    Raises InputError if the header is damaged, or the array holds Python objects.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist. Check the name.")
    with refused_if_damaged(path, "is damaged", "Save the array again."), path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        head = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = head[version](file)
    if dtype.hasobject:
        raise InputError(
            f"{path} holds Python objects, whose loading could run any program: refused. "
            "Save an array of numbers."
        )
    return shape, dtype


def _read(path: Path) -> Labelled:
    """See `edges.Labelled`."""
    shape, dtype = header_of(path)
    if len(shape) != 2 or shape[1] not in (4, 5) or dtype.kind not in "iuf":
        raise InputError(
            f"{path} holds {dtype} of shape {shape}; rows of track number, frame, (z,) y, x are needed."
        )
    refuse_if_larger_than_memory(path, math.prod(shape) * (dtype.itemsize + 8))
    with refused_if_damaged(path, "is cut short", "Save the array again.", _CUT):
        rows = np.load(path, allow_pickle=False).astype(np.float64)
    return rows[:, 0], rows[:, 1], rows[:, 2:], None


def read_matrix(path: Path) -> NDArray:
    """Read an (R, C) matrix into memory.

    Raises
    ------
    InputError
        If the file does not contain such an array.
    ResourceError
        If it does not fit into memory.
    """
    stored = mapped_matrix(path)
    if not fits_memory(stored.nbytes):
        raise ResourceError(
            f"{path} holds {stored.nbytes / 2**30:.1f} GiB, more than is free. Give two point sets, "
            "whose costs are not stored, or take a larger machine."
        )
    return np.array(stored)


def mapped_matrix(path: Path) -> NDArray:
    """Open a matrix as a memory map, which is read from the file where it is used; see `read_matrix`."""
    if path.suffix != ".npy":
        raise InputError(f"{path} is no .npy file. Save the matrix with numpy.save, or give two point sets.")
    header_of(path)
    with refused_if_damaged(path, "cannot be read as an array", "Save it again.", (*_CUT, OSError)):
        # Refuse a header that declares more data than the file holds, before memory is allocated.
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    if stored.ndim != 2:
        raise InputError(f"{path} holds an array of shape {stored.shape}; it needs rows and columns.")
    if stored.dtype.kind not in "biuf":
        raise InputError(f"{path} holds values of type {str(stored.dtype)[:40]}; costs are real numbers.")
    return stored


FORMAT = replace(format_of_labelled(_read), recognises=recognises)
