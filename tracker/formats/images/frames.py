"""`Images`: the frames of a movie in any image format, read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, SettingsError
from ...particles.calibration import Calibration, uneven
from ..files.packages import package
from .stacks import WHOLE, Box, Chosen, warnings_of

Read = Callable[[Sequence[int], Box], Iterator[NDArray]]
"""Yields these frames, each (z, y, x), of which it reads the region in the box."""


@dataclass(frozen=True, eq=False)
class Images:
    """The frames of a movie, read one by one, with their metadata.

    Parameters
    ----------
    name : str
        Name of the file, for messages.
    axes : str
        Axes of the array in the file, in order, for example ``"TZYX"``; C and S are channels.
    sizes : tuple of int
        Length of each axis.
    frame_count : int
    spacing : tuple of 3 float
        Size of a voxel along z, y, x, in `unit`.
    unit : str
    interval : float or None
        Seconds between frames, if the file states it.
    read : callable
        Function of frame numbers and a box along z, y, x that yields the frames.
    channel : int
        The channel that is read.
    warnings : tuple of str
        Sentences that say which metadata were guessed and how to set them.
    scene : int or None
        Number of the image that is read, if the caller chose one of several.
    scenes, channels : tuple of str
        Descriptions of the images, if there are several and the caller chose none; and names of the channels,
        if any.
    levels : tuple of tuple of int
        Sizes at each level of resolution, if there are several.
    missing : tuple of int
        Numbers of frames that the movie lacks; they are read as zeros.
    origin : tuple of 3 float
        Place of the first voxel along z, y, x, in `unit`.
    white_is_zero : bool
        Whether the file says that its lowest number is white: what is bright has low numbers.
    times : tuple of float
        Seconds of each frame, if the file states them and they are not even.
    """

    name: str
    axes: str
    sizes: tuple[int, ...]
    frame_count: int
    spacing: tuple[float, float, float]
    unit: str
    interval: float | None
    read: Read = field(repr=False)
    channel: int = 0
    warnings: tuple[str, ...] = ()
    scene: int | None = None
    scenes: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    levels: tuple[tuple[int, ...], ...] = ()
    missing: tuple[int, ...] = ()
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    white_is_zero: bool = False
    times: tuple[float, ...] = ()

    @property
    def calibration(self) -> Calibration:
        """What numbers of voxels and frames mean."""
        return Calibration(self.unit, self.spacing, self.interval, self.origin)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a frame along z, y, x; z is 1 in 2D."""
        size = dict(zip(self.axes, self.sizes, strict=True))
        return size.get("Z", 1), size["Y"], size["X"]

    @property
    def doubts(self) -> tuple[str, ...]:
        """The former name of the warnings."""
        return self.warnings

    @property
    def channel_count(self) -> int:
        """How many channels there are."""
        return dict(zip(self.axes, self.sizes, strict=True)).get("C", 1)

    def frames(self, numbers: Sequence[int] | None = None, box: Box = WHOLE) -> Iterator[NDArray]:
        """Yield each frame as a (z, y, x) array with the dtype of the file.

        Parameters
        ----------
        numbers : sequence of int, optional
            Frame numbers, counted from 0; by default all frames.
        box : 3 slices
            The region along z, y, x that is read.

        Raises
        ------
        InputError
            If an image is damaged, or differs from the first one in size or type.
        SettingsError
            If a frame number does not exist.
        """
        chosen = range(self.frame_count) if numbers is None else numbers
        for number in numbers if numbers is not None else ():
            if not 0 <= number < self.frame_count:
                raise SettingsError(f"There is no frame {number}: the movie has {self.frame_count}, from 0.")
        yield from self.read(chosen, box)

    def lazy(self) -> Any:
        """(T, Z, Y, X) dask array with one chunk per frame; a frame is read when its chunk is computed.

        Raises
        ------
        ResourceError
            If dask is not installed.
        """
        arrays = package("dask.array", "A lazy array", "zarr")
        first = next(self.frames([0]))
        shape = (self.frame_count, *self.shape)

        def block(block_id: tuple[int, ...]) -> NDArray:
            return next(self.frames([block_id[0]]))[None]

        chunks = ((1,) * self.frame_count, *((size,) for size in self.shape))
        return arrays.map_blocks(
            block, chunks=chunks, dtype=first.dtype, meta=np.empty((0,) * len(shape), first.dtype)
        )


def movie_of(name: str, header: Any, named: str, chosen: Chosen, read: Read) -> Images:
    """The movie of a `Stack` or `Header`, whose axes are named, as the caller chose it."""
    count = dict(zip(named, header.sizes, strict=True)).get("T", 1)
    spacing = chosen.spacing or header.spacing
    if not (min(spacing) > 0 and np.isfinite([*spacing, *header.origin]).all()):
        raise InputError(
            f"{name} states voxels of {spacing}, from {header.origin} on along z, y, x. Sizes must be above "
            "0: give them by --spacing Z Y X (Python: spacing=)."
        )
    return Images(
        name, named, header.sizes, count, spacing, header.unit, header.interval, read, chosen.channel,
        tuple(warnings_of(header, named, chosen)), chosen.scene, header.scenes, header.channels,
        header.levels, origin=header.origin, white_is_zero=header.white_is_zero,
        times=uneven(header.times) if len(header.times) == count else (),
    )  # fmt: skip
