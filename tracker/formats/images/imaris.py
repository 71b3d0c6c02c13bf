"""Imaris images (.ims, based on HDF5), read by h5py: resolution levels, time points and channels."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ..files.hdf5 import file_at
from ..files.packages import damage_explained
from ..files.units import unit_of
from .stacks import ImageFormat, Stack, refuse_absent


def open_stack(source: str, scene: int | None, level: int) -> Stack:
    """See `stacks.ImageFormat`."""
    refuse_absent("scene", scene or 0, source, 1)
    file = file_at(source)
    with damage_explained(source, "Imaris"):
        if "DataSet" not in file or "DataSetInfo" not in file:
            raise InputError(f"{source} has no DataSet as Imaris writes it. Save it anew from Imaris.")
        count = sum(name.startswith("ResolutionLevel") for name in file["DataSet"])
        refuse_absent("level", level, source, count)
        sizes = tuple(_Pixels(file, source, each).shape for each in range(count))
        pixels = _Pixels(file, source, level)
        image = file["DataSetInfo/Image"].attrs
        extent = [
            float(_text(image, f"ExtMax{axis}", "0")) - float(_text(image, f"ExtMin{axis}", "0"))
            for axis in (2, 1, 0)
        ]
        voxels = [length / size for length, size in zip(extent, pixels.shape[2:], strict=True)]
        times = file["DataSetInfo/TimeInfo"].attrs if "TimeInfo" in file["DataSetInfo"] else {}
        names = [f"DataSetInfo/Channel {channel}" for channel in range(pixels.shape[1])]
        channels = tuple(_text(file[name].attrs, "Name", "") if name in file else "" for name in names)
        unit, interval = unit_of(_text(image, "Unit", "um")), _interval(times)
    known = all(length > 0 for length in voxels)
    spacing = (voxels[0], voxels[1], voxels[2]) if known else (1.0, 1.0, 1.0)
    return Stack(pixels, "TCZYX", spacing, unit if known else "pixel", interval, known, channels, (), sizes)


class _Pixels:
    """Array (T, C, Z, Y, X) of a level; each frame is a separate data set, padded to whole chunks."""

    def __init__(self, file: Any, source: str, level: int) -> None:
        self._source, self._level = source, file[f"DataSet/ResolutionLevel {level}"]
        first = self._level["TimePoint 0/Channel 0"]
        size = [int(_text(first.attrs, f"ImageSize{axis}", "0")) for axis in "ZYX"]
        stored = first["Data"].shape
        frame = [min(each, most) or most for each, most in zip(size, stored, strict=True)]
        self.shape = (len(self._level), len(self._level["TimePoint 0"]), *frame)
        self.dtype = first["Data"].dtype

    def __getitem__(self, where: tuple[int, int, slice, slice, slice]) -> NDArray:
        t, c, *inside = where
        bounds = zip(inside, self.shape[2:], strict=True)
        box = tuple(slice(*part.indices(size)) for part, size in bounds)
        with damage_explained(self._source, "Imaris"):
            found = np.asarray(self._level[f"TimePoint {t}/Channel {c}/Data"][box])
            if found.shape != tuple(part.stop - part.start for part in box):
                raise InputError(
                    f"{self._source}: TimePoint {t}, Channel {c} holds less than the first one. "
                    "The file may be damaged; save it anew from Imaris."
                )
            return found


def _text(attributes: Any, name: str, missing: str) -> str:
    """Read an attribute; Imaris writes strings as arrays of single characters."""
    if name not in attributes:
        return missing
    return (
        b"".join(np.atleast_1d(attributes[name]).astype("S").tolist()).decode("utf-8", "replace") or missing
    )


def _interval(attributes: Any) -> float | None:
    """Mean time in seconds between the stated time points."""
    try:
        stated = (f"TimePoint{number}" for number in range(1, len(attributes) + 1))
        times = [datetime.fromisoformat(_text(attributes, name, "")) for name in stated if name in attributes]
    except ValueError:
        return None
    steps = [(after - before).total_seconds() for before, after in pairwise(times)]
    mean = sum(steps) / len(steps) if steps else 0.0
    return mean if mean > 0 else None


FORMAT = ImageFormat(open_stack)
