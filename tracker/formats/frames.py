"""`Images`: the frames of a movie of any file, read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError
from .stacks import WHOLE, Box


@dataclass(frozen=True, eq=False)
class Images:
    """The frames of a movie, read one by one, and what is known of them.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    axes : str
        Axes of what a file holds, in its order, for example ``"TZYX"``; C and S are channels.
    sizes : tuple of int
        Length of each of the axes.
    frame_count : int
    spacing : tuple of 3 float
        Size of a voxel along z, y, x, in `unit`.
    unit : str
    interval : float or None
        Seconds from frame to frame, where the file states it.
    read : callable
        Given the numbers of frames and the part of each along z, y, x: the frames.
    channel : int
        The channel that is read.
    doubts : tuple of str
        Sentences about what had to be guessed, and how to set it.
    scene : int or None
        Which of several images is read, where that was chosen.
    scenes, channels : tuple of str
        What each of several images is, where none was chosen; and the names of channels, if any.
    levels : tuple of tuple of int
        Sizes at each level of resolution, where there are several.
    """

    name: str
    axes: str
    sizes: tuple[int, ...]
    frame_count: int
    spacing: tuple[float, float, float]
    unit: str
    interval: float | None
    read: Callable[[Sequence[int], Box], Iterator[NDArray]] = field(repr=False)
    channel: int = 0
    doubts: tuple[str, ...] = ()
    scene: int | None = None
    scenes: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    levels: tuple[tuple[int, ...], ...] = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        """Voxels of a frame along z, y, x; z is 1 in 2D."""
        size = dict(zip(self.axes, self.sizes, strict=True))
        return size.get("Z", 1), size["Y"], size["X"]

    def frames(self, numbers: Sequence[int] | None = None, box: Box = WHOLE) -> Iterator[NDArray]:
        """Each frame as (z, y, x) array, of the type that the file has.

        Parameters
        ----------
        numbers : sequence of int, optional
            Of the frames, from 0 up; all by default.
        box : 3 slices
            The part along z, y, x that is read.

        Raises
        ------
        InputError
            If an image is damaged, or not like the first one.
        SettingsError
            If there is no frame of a number.
        """
        chosen = range(self.frame_count) if numbers is None else numbers
        for number in numbers if numbers is not None else ():
            if not 0 <= number < self.frame_count:
                raise SettingsError(f"There is no frame {number}: the movie has {self.frame_count}, from 0.")
        yield from self.read(chosen, box)

    def lazy(self) -> Any:
        """(T, Z, Y, X) dask array, a chunk a frame, which is read when it is computed.

        Raises
        ------
        ResourceError
            If dask is not installed.
        """
        from .stacks import missing

        try:
            import dask.array as lazily
        except ModuleNotFoundError:
            raise missing("A lazy array", "zarr") from None
        first = next(self.frames([0]))
        shape = (self.frame_count, *self.shape)

        def block(block_id: tuple[int, ...]) -> NDArray:
            return next(self.frames([block_id[0]]))[None]

        chunks = ((1,) * self.frame_count, *((size,) for size in self.shape))
        arrays: Any = lazily  # its functions have no types
        return arrays.map_blocks(
            block, chunks=chunks, dtype=first.dtype, meta=np.empty((0,) * len(shape), first.dtype)
        )
