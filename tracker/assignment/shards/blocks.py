"""What shards read: their own rows or columns of a matrix, wherever it lies, or of distances of points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._arrays import array_module, on_device, to_device
from ..dense import readable
from ..points import matrix_of
from ..problem import DenseCosts, PointCosts
from .communicator import Communicator, ShardError

WORDS = 400
"""Bytes of what a shard says of its failure."""
_AT_ONCE = 1 << 27
"""Bytes of columns that are read at once, or brought to a GPU."""


class Blocks(Protocol):
    """A matrix of costs of which parts can be read."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def rows(self, first: int, last: int) -> NDArray:
        """(last - first, C) costs, row after row."""

    def cols(self, first: int, last: int) -> NDArray:
        """(R, last - first) costs, row after row."""


@dataclass(frozen=True, eq=False)
class ArrayBlocks:
    """Of an array: NumPy's, a memory-mapped one, CuPy's or Zarr's, whatever has shape, dtype and slices.

    Examples
    --------
    >>> ArrayBlocks(np.arange(6).reshape(2, 3)).cols(1, 3).tolist()
    [[1, 2], [4, 5]]
    """

    array: Any

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape

    def rows(self, first: int, last: int) -> NDArray:
        return _plain(self.array[first:last])

    def cols(self, first: int, last: int) -> NDArray:
        if on_device(self.array):
            return array_module(self.array).ascontiguousarray(self.array[:, first:last])
        rows, width = self.array.shape[0], last - first
        found = np.empty((rows, width), self.array.dtype)
        step = max(1, _AT_ONCE // max(1, width * found.itemsize))
        for begin in range(0, rows, step):
            found[begin : begin + step] = self.array[begin : begin + step, first:last]
        return _plain(found)


@dataclass(frozen=True)
class NpyBlocks:
    """Of a .npy file, which every shard maps for itself.

    Raises
    ------
    ShardError
        If the file cannot be read as a matrix.
    """

    path: Path

    @property
    def shape(self) -> tuple[int, int]:
        return self._mapped().shape

    def rows(self, first: int, last: int) -> NDArray:
        return ArrayBlocks(self._mapped()).rows(first, last)

    def cols(self, first: int, last: int) -> NDArray:
        return ArrayBlocks(self._mapped()).cols(first, last)

    def _mapped(self) -> Any:
        try:
            mapped = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ShardError(f"{self.path} cannot be read: {error}. Check the path on every host.") from None
        if mapped.ndim != 2 or mapped.dtype.kind not in "iubf":
            raise ShardError(
                f"{self.path} holds {mapped.dtype} of shape {mapped.shape}; it needs rows and columns."
            )
        return mapped


@dataclass(frozen=True, eq=False)
class PointBlocks:
    """Of the distances of two point sets, which are evaluated where the points live.

    Examples
    --------
    >>> PointBlocks(PointCosts(np.zeros((2, 1)), np.array([[1.0], [3.0]]))).cols(1, 2).tolist()
    [[3.0], [3.0]]
    """

    costs: PointCosts

    @property
    def shape(self) -> tuple[int, int]:
        return self.costs.shape

    def rows(self, first: int, last: int) -> NDArray:
        points = self.costs
        return matrix_of(PointCosts(points.source[first:last], points.target, points.metric)).matrix()

    def cols(self, first: int, last: int) -> NDArray:
        points = self.costs
        return matrix_of(PointCosts(points.source, points.target[first:last], points.metric)).matrix()


def blocks_of(costs: DenseCosts | PointCosts) -> Blocks:
    """Blocks of the costs of a problem."""
    return PointBlocks(costs) if isinstance(costs, PointCosts) else ArrayBlocks(costs.values)


def on_gpu_of(block: NDArray, is_on_gpu: bool) -> NDArray:
    """The block as the kernels read it, on the current GPU if that is where the shard works."""
    block = readable(block)
    return to_device(block) if is_on_gpu and not on_device(block) else block


def _plain(block: Any) -> Any:
    """An array that is no memory map, so that a fault in reading comes now."""
    return (
        block if on_device(block) else np.array(block, copy=True) if isinstance(block, np.memmap) else block
    )


def read(way: Communicator, part: Callable[[], NDArray], is_on_gpu: bool) -> NDArray:
    """A shard's own block, as the kernels read it.

    Raises
    ------
    ShardError
        In all shards alike, if one of them cannot read its own.
    """
    block, failure = np.empty((0, 0)), ""
    try:
        block = on_gpu_of(part(), is_on_gpu)
    except Exception as error:  # whatever a reader raises
        failure = str(error) or type(error).__name__
    agreed(way, failure)
    return block


def agreed(way: Communicator, failure: str) -> None:
    """Raise in all shards what went wrong in one; `failure` is empty where nothing did.

    Raises
    ------
    ShardError
        With the words of the first shard that has some.
    """
    said = np.frombuffer(failure.encode()[:WORDS].ljust(WORDS, b"\0"), np.uint8)
    for rank, words in enumerate(way.gather(said)):
        text = bytes(words).rstrip(b"\0").decode(errors="replace")
        if text:
            raise ShardError(f"Shard {rank} of {way.size}: {text}")
