"""Matrices saved by ``numpy.save``: costs of pairs, or points."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ResourceError
from .memory import free_memory
from .npy import header_of

_SHARE = 0.8
"""Share of the free memory that a matrix may take."""


def read_matrix(path: Path) -> NDArray:
    """Read a matrix into memory.

    Parameters
    ----------
    path : Path
        A .npy file.

    Returns
    -------
    (R, C) array

    Raises
    ------
    InputError
        If the file does not contain such an array.
    ResourceError
        If it does not fit into memory.
    """
    try:
        stored = mapped_matrix(path)
        if stored.nbytes > _SHARE * free_memory():
            raise ResourceError(
                f"{path} holds {stored.nbytes / 2**30:.1f} GiB, more than is free. Give two point sets, "
                "whose costs are not stored, or take a larger machine."
            )
        return np.array(stored)
    except OSError as error:
        raise _unreadable(path, error) from None


def mapped_matrix(path: Path) -> NDArray:
    """Open a matrix as a memory map, which is read from the file where it is used.

    Raises
    ------
    InputError
        As `read_matrix`.
    """
    if path.suffix != ".npy":
        raise InputError(f"{path} is no .npy file. Save the matrix with numpy.save, or give two point sets.")
    header_of(path)
    try:
        # Refuse a header that declares more data than the file holds, before memory is allocated.
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, OverflowError) as error:
        raise _unreadable(path, error) from None
    if stored.ndim != 2:
        raise InputError(f"{path} holds an array of shape {stored.shape}; it needs rows and columns.")
    if stored.dtype.kind not in "biuf":
        raise InputError(f"{path} holds values of type {str(stored.dtype)[:40]}; costs are real numbers.")
    return stored


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} cannot be read as an array: {error}. Save it again.")
