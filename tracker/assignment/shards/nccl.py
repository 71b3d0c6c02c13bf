"""Shards on separate GPUs that communicate through NCCL, as threads of one host or as processes."""

# mypy: ignore-errors
# Only _arrays.py imports CuPy, so its arrays and NCCL have no type here.
from __future__ import annotations

from numpy.typing import NDArray

from ..._arrays import array_module, cupy_module, nccl_module, on_device, to_device, to_host
from .communicator import Communicator, EndedElsewhere, ShardError

_TYPES = {"i4": "NCCL_INT32", "i8": "NCCL_INT64", "f4": "NCCL_FLOAT32", "f8": "NCCL_FLOAT64"}


class Nccl(Communicator):
    """The shard of one GPU.

    Arrays on the host are sent through the GPU. Sums depend on NCCL's order, so only integers are added.

    Parameters
    ----------
    rank, size : int
    device : int
        Number of its GPU on this host.
    link : cupy.cuda.nccl.NcclCommunicator
    """

    def __init__(self, rank: int, size: int, device: int, link: object) -> None:
        super().__init__(rank, size)
        self.device, self._link, self._reason = device, link, ""
        self._others: list[Nccl] = [self]

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
        all_of = [
            cls(k, len(devices), d, link) for k, (d, link) in enumerate(zip(devices, links, strict=True))
        ]
        for one in all_of:
            one._others = all_of
        return all_of

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
                return cls(rank, size, device, nccl.NcclCommunicator(size, identity, rank))
        except nccl.NcclError as error:
            raise ShardError(
                f"NCCL cannot join shard {rank} of {size}: {error}. Give every shard a GPU of its own."
            ) from None

    def _gather(self, array: NDArray) -> NDArray:
        mine = self._here(array)
        found = array_module(mine).empty((self.size, *mine.shape), mine.dtype)
        given = (mine.data.ptr, found.data.ptr, mine.nbytes, _nccl().NCCL_UINT8)
        self._call(self._link.allGather, *given)
        return self._back(found, array)

    def _least(self, array: NDArray) -> NDArray:
        return self._reduced(array, "NCCL_MIN")

    def _total(self, array: NDArray) -> NDArray:
        return self._reduced(array, "NCCL_SUM")

    def _reduced(self, array: NDArray, kind: str) -> NDArray:
        mine, nccl = self._here(array), _nccl()
        found = array_module(mine).empty_like(mine)
        types = getattr(nccl, _TYPES[mine.dtype.str[1:]]), getattr(nccl, kind)
        self._call(self._link.allReduce, mine.data.ptr, found.data.ptr, mine.size, *types)
        return self._back(found, array)

    def _call(self, function, *given) -> None:
        if self._reason:
            raise EndedElsewhere(self._reason)
        try:
            function(*given, cupy_module().cuda.get_current_stream().ptr)
        except _nccl().NcclError as error:
            raise EndedElsewhere(self._reason or f"NCCL failed: {error}. Start all shards again.") from None

    def _here(self, array: NDArray):
        return array_module(array).ascontiguousarray(array) if on_device(array) else to_device(array)

    def _back(self, found, array: NDArray):
        found = found if on_device(array) else to_host(found)
        if self._reason:  # the result of an aborted call is invalid
            raise EndedElsewhere(self._reason)
        return found

    def abort(self, reason: str) -> None:
        """Abort the calls of all shards of this process; other processes see the connection close."""
        for other in self._others:
            if not other._reason:
                other._reason = reason
                other._link.abort()


def new_identity() -> tuple:
    """The identity of a new group, created by one process and passed to all others."""
    return _nccl().get_unique_id()


def _nccl():
    nccl = nccl_module()
    if nccl is None:
        raise ShardError("CuPy has no NCCL here. pip install nvidia-nccl-cu12 (or -cu13), or use shards.")
    return nccl
