"""Write a movie as OME-TIFF, plane by plane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from numpy.typing import DTypeLike, NDArray

from ..files.outputs import write_whole

if TYPE_CHECKING:
    from .frames import Images

_BIG = 2e9
"""Number of voxels above which the file needs 64-bit offsets."""


def write_like(
    path: Path, frames: Iterable[NDArray], movie: Images, dtype: DTypeLike, overwrite: bool
) -> None:
    """Write images with the shape, frame count and calibration of a movie, holding one frame in memory.

    Raises SettingsError if the output exists, or its folder does not.
    """
    import tifffile

    def planes() -> Iterator[NDArray]:
        for image in frames:
            yield from image

    metadata: dict[str, object] = {"axes": "TZYX"}
    unit = {"micrometer": "µm", "nanometer": "nm", "millimeter": "mm"}.get(movie.unit, movie.unit)
    for axis, size in zip("ZYX", movie.spacing, strict=True):
        metadata |= {f"PhysicalSize{axis}": size, f"PhysicalSize{axis}Unit": unit}
    if movie.interval is not None:
        metadata |= {"TimeIncrement": movie.interval, "TimeIncrementUnit": "s"}
    shape = (movie.frame_count, *movie.shape)

    def write(file: BinaryIO) -> None:
        with tifffile.TiffWriter(file, ome=True, bigtiff=prod(shape) > _BIG) as tiff:
            tiff.write(planes(), shape=shape, dtype=dtype, photometric="minisblack", metadata=metadata)

    write_whole(path, write, overwrite=overwrite)
