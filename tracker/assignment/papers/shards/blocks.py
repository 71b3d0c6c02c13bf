"""Readers of shards: blocks of rows or columns of a matrix in memory or on disk, or of point distances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....compute.arrays import array_module, on_device, to_device
from ...matrix import readable
from ...points import matrix_of
from ...problem import DenseCosts, PointCosts
from .communicator import Communicator, ShardError

WORDS = 400
"""Length in bytes of the message about a failed shard."""
_AT_ONCE = 1 << 27
"""Number of bytes of columns that are read, or copied to a GPU, at once."""


class Blocks(Protocol):
    """A matrix of costs that can be read in blocks."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def rows(self, first: int, last: int) -> NDArray:
        """(last - first, C) costs of some rows, C-contiguous."""

    def cols(self, first: int, last: int) -> NDArray:
        """(R, last - first) costs of some columns, C-contiguous."""


@dataclass(frozen=True, eq=False)
class ArrayBlocks:
    """Blocks of a NumPy, memory-mapped, CuPy or Zarr array, or any object with shape, dtype and slices.

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
    """Blocks of a .npy file, which each shard maps into memory separately.

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
    """Blocks of the distances between two point sets, computed on the device of the points.

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
    """Readers of the costs of a problem."""
    return PointBlocks(costs) if isinstance(costs, PointCosts) else ArrayBlocks(costs.values)


def on_gpu_of(block: NDArray, is_on_gpu: bool) -> NDArray:
    """The block in the form that the kernels read, on the current GPU if the shard works there."""
    block = readable(block)
    return to_device(block) if is_on_gpu and not on_device(block) else block


def _plain(block: Any) -> Any:
    """Copy a memory map into memory, so that a read error occurs now."""
    return (
        block if on_device(block) else np.array(block, copy=True) if isinstance(block, np.memmap) else block
    )


def read(way: Communicator, part: Callable[[], NDArray], is_on_gpu: bool) -> NDArray:
    """Read the block of a shard, in the form that the kernels read.

    Raises
    ------
    ShardError
        In all shards, if one of them cannot read its block.
    """
    block, failure = np.empty((0, 0)), ""
    try:
        block = on_gpu_of(part(), is_on_gpu)
    except Exception as error:  # a reader may raise any error
        failure = str(error) or type(error).__name__
    agreed(way, failure)
    return block


def agreed(way: Communicator, failure: str) -> None:
    """Raise an error in all shards if one failed; `failure` is empty in shards without an error.

    Raises
    ------
    ShardError
        With the message of the first shard that failed.
    """
    said = np.frombuffer(failure.encode()[:WORDS].ljust(WORDS, b"\0"), np.uint8)
    for rank, words in enumerate(way.gather(said)):
        text = bytes(words).rstrip(b"\0").decode(errors="replace")
        if text:
            raise ShardError(f"Shard {rank} of {way.size}: {text}")
