"""Open movies from any file or array with `open_images`; frames are read on request."""

from __future__ import annotations

import hashlib
import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from numpy.typing import NDArray

from ...errors import InputError, SettingsError
from .. import input_of
from ..declared import FORMATS, TIFF, Format
from ..files.memory import refuse_if_larger_than_memory
from ..files.packages import damage_explained
from . import folders as image_files
from .frames import Images, movie_of
from .stacks import Box, Chosen, ImageFormat, Stack, frames_of, named_axes, refuse_absent

_PARTS = "Read a part (--region Z0:Z1,Y0:Y1,X0:X1) or a coarser level (--level), or use more memory."
Source = str | os.PathLike[str] | Any
"""Types that can be opened: a path, a URL, or an array of NumPy, dask or Zarr."""


def open_images(
    source: Source,
    *,
    axes: str | None = None,
    channel: int = 0,
    scene: int | None = None,
    level: int = 0,
    spacing: tuple[float, float, float] | None = None,
    partial: bool = False,
) -> Images:
    """Open a movie from any file or array; only its metadata are read.

    Parameters
    ----------
    source : path-like, str or array
        A TIFF file, a folder with an image for each frame, OME-Zarr or Zarr (a folder or a URL), HDF5,
        Imaris .ims, ND2, CZI, LIF; or an array of NumPy, dask or Zarr.
    axes : str, optional
        What the axes are, where nothing names them or wrongly: letters of TZCYX, in their order. An axis
        that has no name is time, or z in a folder of stacks.
    channel : int
        Which channel to read where there are several.
    scene : int, optional
        Which image to read where there are several, from 0 up. Without it the first is read, and
        `Images.warnings` lists all; images of a TIFF file that no header names are frames.
    level : int
        Level of resolution: 0 is the finest.
    spacing : tuple of 3 float, optional
        Size of a voxel along z, y, x, instead of what the file states.
    partial : bool
        Whether the frames that are there are wanted, if a TIFF file declares more.

    Returns
    -------
    Images

    Raises
    ------
    InputError
        If there is no image, it is cut short or damaged, or its axes make no sense.
    ResourceError
        If a frame does not fit the memory, or the package is missing that reads it.
    SettingsError
        If `axes`, `channel`, `scene` or `level` do not fit the file.

    Examples
    --------
    >>> import numpy as np
    >>> movie = open_images(np.arange(24).reshape(2, 3, 4), axes="TYX", spacing=(1.0, 0.5, 0.5))
    >>> movie.frame_count, movie.shape, [frame.sum().item() for frame in movie.frames()]
    (2, (1, 3, 4), [66, 210])
    """
    chosen = Chosen(axes, channel, scene, level, spacing, partial)
    if not isinstance(source, str | os.PathLike):
        return _of_array(source, chosen)
    name = os.fspath(source)
    declared = _format_of(name)
    if declared is None:
        if level:
            raise SettingsError(f"{name} has no levels of resolution. Leave --level out.")
        return image_files.open_chosen(Path(name), chosen)
    if "://" not in name and not Path(name).exists():
        raise InputError(f"There is no file {name}. Check the name.")
    try:
        if Path(name).is_file() and Path(name).stat().st_size == 0:
            raise InputError(f"{name} is empty. Check where it was made.")
        if _is_table(name, declared):
            raise InputError(f"{name} holds a table of positions and no images. To link them: outbid track.")
        stack = cast(ImageFormat, declared.load()).open_stack(name, scene, level)
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror or error}. Check the file.") from None
    return _of_stack(name, stack, chosen)


def origin_of(source: str | os.PathLike[str]) -> dict[str, str]:
    """Entry of a run record about images: name and SHA-256; for a URL the SHA-256 of the metadata.

    Raises
    ------
    InputError
        If they cannot be read.
    """
    name = os.fspath(source)
    if "://" not in name:
        return input_of(name)
    seen = open_images(name)
    described = repr(
        (seen.axes, seen.sizes, seen.spacing, seen.unit, seen.interval, seen.scenes, seen.levels)
    )
    return {"name": name, "sha256": hashlib.sha256(described.encode()).hexdigest()}


def is_movie(source: str | os.PathLike[str]) -> bool:
    """Whether a file, folder or URL has an image suffix, or contains images."""
    name = os.fspath(source)
    declared = _format_of(name)
    if declared is None:
        return Path(name).suffix.lower() in image_files.SUFFIXES
    return not _is_table(name, declared)


def _is_table(name: str, declared: Format) -> bool:
    """Whether a file that may hold images holds a table of positions."""
    if declared.module != "images.hdf5":
        return False
    from ..tables import hdf5_tables  # imported here: it loads pyarrow

    return hdf5_tables.recognises(Path(name))


def _format_of(name: str) -> Format | None:
    """The format of a file, folder or URL; None for TIFF and folders of images."""
    lower = name.lower().rstrip("/")
    names = [lower, f"{lower}/"] if "://" not in name and Path(name).is_dir() else [lower]
    for declared in FORMATS:
        named = declared.has_images and declared is not TIFF and any(map(declared.may_be, names))
        if named and cast(ImageFormat, declared.load()).recognises(name):
            return declared
    return None


def _of_array(array: Any, chosen: Chosen) -> Images:
    """Open an array in memory, or one that is read when it is indexed."""
    if not (hasattr(array, "shape") and hasattr(array, "dtype") and hasattr(array, "__getitem__")):
        raise TypeError(f"open_images() takes a path, a URL or an array, not {type(array).__name__}.")
    if chosen.scene or chosen.level:
        raise SettingsError("An array has one scene and one level. Index it before.")
    if not 2 <= len(array.shape) <= 6:
        raise InputError(f"An array of shape {array.shape} is no movie. Give one over T, Z, Y, X.")
    stack = Stack(array, "Q" * (len(array.shape) - 2) + "YX")
    return _of_stack("The array", stack, Chosen(chosen.axes, chosen.channel, spacing=chosen.spacing))


def _of_stack(name: str, stack: Stack, chosen: Chosen) -> Images:
    named = named_axes(name, stack, chosen.axes)
    size = dict(zip(named, stack.sizes, strict=True))
    if min(stack.sizes) < 1:
        raise InputError(f"{name} has sizes {stack.sizes}, so no voxels. Check where it was made.")
    if max(stack.sizes) > sys.maxsize:
        raise InputError(f"{name} declares sizes {stack.sizes}, which no memory holds. Copy it again.")
    if stack.array.dtype.kind not in "biuf":
        raise InputError(f"{name} holds {stack.array.dtype}; real numbers are needed. Convert it.")
    refuse_absent("channel", chosen.channel, name, size.get("C", 1))

    def read(numbers: Sequence[int], box: Box) -> Iterator[NDArray]:
        sides = zip(box, (size.get("Z", 1), size["Y"], size["X"]), strict=True)
        voxels = math.prod(len(range(*side.indices(length))) for side, length in sides)
        needed = float(voxels) * size.get("S", 1) * image_files.COPIES
        refuse_if_larger_than_memory(name, needed, _PARTS)
        with damage_explained(name, "images"):
            yield from frames_of(stack, named, chosen.channel, numbers, box)

    return movie_of(name, stack, named, chosen, read)
