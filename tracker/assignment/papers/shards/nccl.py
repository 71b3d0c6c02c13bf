"""Shards on separate GPUs that communicate through NCCL, as threads of one host or as processes."""

# mypy: ignore-errors
# Only compute/arrays.py imports CuPy, so its arrays and NCCL have no type here.
from __future__ import annotations

from threading import Barrier, BrokenBarrierError, Lock
from typing import NamedTuple

from numpy.typing import NDArray

from ....compute.arrays import array_module, cupy_module, nccl_module, on_device, to_device, to_host
from .communicator import Communicator, EndedElsewhere, ShardError

_TYPES = {"i4": "NCCL_INT32", "i8": "NCCL_INT64", "f4": "NCCL_FLOAT32", "f8": "NCCL_FLOAT64"}


class _Call(NamedTuple):
    """An NCCL call of one shard: addresses of its input and output, count and types, and the stream."""

    name: str
    source: int
    target: int
    kind: tuple[int, ...]
    stream: int


class _Process:
    """The shards of one process, whose threads wait for each other; the last one makes the calls of all.

    If each thread called NCCL by itself, the kernel on one GPU would wait for the kernel on another one,
    whose thread may still allocate memory, for which CUDA may wait for the first GPU.
    """

    def __init__(self, devices: list[int], links: list) -> None:
        self.devices, self.links, self.reason = devices, links, ""
        self._calls: list[_Call | None] = [None] * len(links)
        self._barrier, self._lock, self._is_over = Barrier(len(links), self._made), Lock(), False

    def meet(self, place: int, call: _Call | None) -> None:
        """Wait for the other shards, until the calls of all are made. None at the end of the work."""
        self._calls[place] = call
        try:
            self._barrier.wait()
        except BrokenBarrierError:
            raise EndedElsewhere(self.reason) from None

    def _made(self) -> None:
        """Called by the last thread while the others wait."""
        kinds = [None if call is None else (call.name, *call.kind) for call in self._calls]
        if len(set(kinds)) > 1:
            said = ", ".join("an end" if kind is None else " ".join(map(str, kind)) for kind in kinds)
            self.reason = f"The shards do not go on alike: {said}. Report this as a fault."
            raise ShardError(self.reason)
        if kinds[0] is None:
            return
        nccl = _nccl()
        try:
            nccl.groupStart()
            try:
                for device, link, call in zip(self.devices, self.links, self._calls, strict=True):
                    with cupy_module().cuda.Device(device):
                        getattr(link, call.name)(call.source, call.target, *call.kind, call.stream)
            finally:
                nccl.groupEnd()
        except nccl.NcclError as error:
            self.reason = self.reason or f"NCCL failed: {error}. Start all shards again."
            raise EndedElsewhere(self.reason) from None

    def end(self, reason: str) -> None:
        """Abort all calls, waiting or running."""
        with self._lock:
            is_first, self._is_over = not self._is_over, True
            self.reason = self.reason or reason
        self._barrier.abort()
        for link in self.links if is_first else ():
            link.abort()


class Nccl(Communicator):
    """The shard of one GPU.

    Arrays on the host are sent through the GPU. Sums depend on NCCL's order, so only integers are added.

    Parameters
    ----------
    rank, size : int
    process : _Process
        It and the other shards of this process.
    place : int
        Its number among them.
    """

    def __init__(self, rank: int, size: int, process: _Process, place: int) -> None:
        super().__init__(rank, size)
        self._process, self._place = process, place

    @classmethod
    def of_host(cls, devices: list[int]) -> list[Communicator]:
        """Shards for the GPUs of this host with these numbers, for threads of one process.

        Raises
        ------
        ShardError
            If CuPy has no NCCL, or there is no such GPU.
        """
        nccl = _nccl()
        try:
            links = nccl.NcclCommunicator.initAll(list(devices))
        except nccl.NcclError as error:
            raise ShardError(
                f"NCCL cannot join GPUs {devices}: {error}. Name those that nvidia-smi lists."
            ) from None
        process = _Process(list(devices), links)
        return [cls(k, len(devices), process, k) for k in range(len(devices))]

    @classmethod
    def of_process(cls, rank: int, size: int, identity: tuple, device: int = 0) -> Nccl:
        """The shard of this process among those of several hosts, which share a result of `new_identity`.

        Raises
        ------
        ShardError
            If NCCL cannot connect them, for example because two processes name the same GPU.
        """
        nccl = _nccl()
        try:
            with cupy_module().cuda.Device(device):
                link = nccl.NcclCommunicator(size, identity, rank)
        except nccl.NcclError as error:
            raise ShardError(
                f"NCCL cannot join shard {rank} of {size}: {error}. Give every shard a GPU of its own."
            ) from None
        return cls(rank, size, _Process([device], [link]), 0)

    def _gather(self, array: NDArray) -> NDArray:
        mine = self._here(array)
        found = array_module(mine).empty((self.size, *mine.shape), mine.dtype)
        return self._called("allGather", mine, found, (mine.nbytes, _nccl().NCCL_UINT8), array)

    def _least(self, array: NDArray) -> NDArray:
        return self._reduced(array, "NCCL_MIN")

    def _total(self, array: NDArray) -> NDArray:
        return self._reduced(array, "NCCL_SUM")

    def _reduced(self, array: NDArray, way: str) -> NDArray:
        mine, nccl = self._here(array), _nccl()
        kind = mine.size, getattr(nccl, _TYPES[mine.dtype.str[1:]]), getattr(nccl, way)
        return self._called("allReduce", mine, array_module(mine).empty_like(mine), kind, array)

    def _here(self, array: NDArray):
        return array_module(array).ascontiguousarray(array) if on_device(array) else to_device(array)

    def _called(self, name: str, mine, found, kind: tuple, array: NDArray) -> NDArray:
        """The result, where the array is. All memory is allocated before the shards meet."""
        stream = cupy_module().cuda.get_current_stream().ptr
        self._process.meet(self._place, _Call(name, mine.data.ptr, found.data.ptr, kind, stream))
        found = found if on_device(array) else to_host(found)
        if self._process.reason:  # the result of an aborted call is invalid
            raise EndedElsewhere(self._process.reason)
        return found

    def end(self) -> None:
        self._process.meet(self._place, None)

    def abort(self, reason: str) -> None:
        """Abort the calls of all shards of this process; other processes see the connection close."""
        self._process.end(reason)


def new_identity() -> tuple:
    """The identity of a new group, created by one process and passed to all others."""
    return _nccl().get_unique_id()


def _nccl():
    nccl = nccl_module()
    if nccl is None:
        raise ShardError("CuPy has no NCCL here. pip install nvidia-nccl-cu12 (or -cu13), or use shards.")
    return nccl
