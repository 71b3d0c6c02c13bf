"""NumPy .npy: the array of a napari tracks layer, with rows of track number, frame, (z,) y, x."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..detections import Detections
from ..errors import InputError
from ..tracks import Tracks
from .graph import detections_of
from .memory import refuse_if_larger_than_memory


def recognises(path: Path) -> bool:
    """Whether the file begins with NumPy's signature."""
    with path.open("rb") as file:
        return file.read(6) == b"\x93NUMPY"


def read_detections(path: Path) -> Detections:
    """See `outbid.formats.read_detections`."""
    rows = _rows(path)
    return detections_of(path, rows[:, 1], rows[:, 2:], None)


def read_tracks(path: Path) -> Tracks:
    """See `outbid.formats.read_tracks`."""
    rows = _rows(path)
    label = rows[:, 0]
    if not (np.isfinite(label) & (label == np.rint(label)) & (np.abs(label) < 2**53)).all():
        raise InputError(f"{path}: a track number is not whole. Let column 0 hold the track numbers.")
    detections = detections_of(path, rows[:, 1], rows[:, 2:], None)
    try:
        return Tracks.from_track_ids(
            detections, label[np.argsort(rows[:, 1], kind="stable")].astype(np.int64)
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def header_of(path: Path) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype of an array, from the header of its file.

    Raises
    ------
    InputError
        If the header is damaged, or the array holds Python objects.
    """
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            head = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            shape, _, dtype = head[version](file)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist. Check the name.") from None
    except Exception as error:  # a Python literal; parsing may raise anything
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise InputError(f"{path} is damaged: {reason}. Save the array again.") from None
    if dtype.hasobject:
        raise InputError(
            f"{path} holds Python objects, whose loading could run any program: refused. "
            "Save an array of numbers."
        )
    return shape, dtype


def _rows(path: Path) -> NDArray[np.float64]:
    shape, dtype = header_of(path)
    if len(shape) != 2 or shape[1] not in (4, 5) or dtype.kind not in "iuf":
        raise InputError(
            f"{path} holds {dtype} of shape {shape}; rows of track number, frame, (z,) y, x are needed."
        )
    refuse_if_larger_than_memory(path, math.prod(shape) * (dtype.itemsize + 8))
    try:
        return np.load(path, allow_pickle=False).astype(np.float64)
    except (ValueError, EOFError, OverflowError) as error:
        raise InputError(f"{path} is cut short: {error}. Save the array again.") from None
