"""A movie as an array whose frames are read when they are looked at."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from outbid.formats.images import Movie

_MOST_BYTES = 256_000_000


class LazyMovie:
    """A movie as a (T, Z, Y, X) array, of which only the frames last looked at are in memory.

    Parameters
    ----------
    movie : Movie
    most_bytes : int
        Memory for frames; one frame is held in any case.
    flat : bool
        Whether the array is (T, Y, X): of movies of one plane.

    Examples
    --------
    >>> import tifffile
    >>> from pathlib import Path
    >>> from outbid.formats.images import open_movie
    >>> values = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    >>> tifffile.imwrite("movie.tif", values, metadata={"axes": "TYX"})
    >>> frames = LazyMovie(open_movie(Path("movie.tif")))
    >>> frames.shape, frames.dtype, frames[1, 0, 2].tolist()
    ((2, 1, 3, 4), dtype('uint8'), [20, 21, 22, 23])
    """

    def __init__(self, movie: Movie, most_bytes: int = _MOST_BYTES, *, flat: bool = False) -> None:
        self._movie = movie
        self._held: OrderedDict[int, NDArray] = OrderedDict()
        self._one_at_a_time = threading.Lock()  # napari may slice in threads
        self._flat = flat
        self.shape: tuple[int, ...] = (movie.frame_count, *movie.shape[int(flat) :])
        self.ndim = len(self.shape)
        self.size = int(np.prod(self.shape, dtype=np.int64))
        first = next(movie.frames([0]))
        self.dtype = first.dtype
        self._most = max(most_bytes // max(first.nbytes, 1), 1)
        self._held[0] = first

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray:
        where = key if isinstance(key, tuple) else (key,)
        if Ellipsis in [part for part in where if not isinstance(part, np.ndarray)]:
            place = where.index(Ellipsis)
            missing = self.ndim - len(where) + 1
            where = (*where[:place], *[slice(None)] * missing, *where[place + 1 :])
        number, *inside = where or (slice(None),)
        chosen = np.arange(len(self))[number]
        if chosen.ndim == 0:
            return self._frame(int(chosen))[tuple(inside)]
        frames = [self._frame(int(t))[tuple(inside)] for t in chosen]
        return np.stack(frames) if frames else np.empty(self.shape, self.dtype)[(slice(0), *inside)]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        """All frames in one array, for saving or computing; they must fit into memory."""
        if copy is False:
            raise ValueError("Frames are read from their file: an array of them is always a copy.")
        return self[:].astype(dtype or self.dtype, copy=False)

    def _frame(self, number: int) -> NDArray:
        with self._one_at_a_time:
            if number not in self._held:
                while len(self._held) >= self._most:
                    self._held.popitem(last=False)
                self._held[number] = next(self._movie.frames([number]))
            self._held.move_to_end(number)
            return self._held[number][0] if self._flat else self._held[number]


def contrast_of(frame: NDArray) -> tuple[float, float]:
    """Grey values to be drawn black and white: the usual background, and what few voxels exceed.

    Examples
    --------
    >>> contrast_of(np.array([[[0, 0, 9, 0]]]))
    (0.0, 9.0)
    """
    values = frame[np.isfinite(frame)] if frame.dtype.kind == "f" else frame.ravel()
    if values.size == 0:
        return 0.0, 1.0
    thinned = values[:: max(values.size // 2_000_000, 1)]
    low, high = np.quantile(thinned, [0.01, 0.999], method="nearest")
    least, most = float(values.min()), float(values.max())
    if low == high:
        low, high = least, most
    return (float(low), float(high)) if low < high else (float(low), float(low) + 1.0)
