"""Shards as processes of one machine that communicate through sockets, so that tests can kill one."""

from __future__ import annotations

import time
from multiprocessing.connection import Client, Connection, Listener, wait
from multiprocessing.context import AuthenticationError
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..._arrays import array_module, to_host
from .communicator import Communicator, ShardError

_PATIENCE = 60.0
"""Seconds to wait until all processes have connected."""
_AGAIN = 0.02
"""Seconds between attempts to reach rank 0."""
_BYTES, _END = b"b", b"e"
"""First byte of a message, which is followed by an array or by the reason why a shard ended."""


class Sockets(Communicator):
    """A process that sends its bytes to rank 0, which sends the bytes of all processes to all of them.

    When a process ends for any reason, its socket closes. Rank 0 then informs the other processes, and each
    of them raises `ShardError` in its current or next call.

    Parameters
    ----------
    rank, size : int
    address : Path
        Path of the socket, which rank 0 creates.

    Raises
    ------
    ShardError
        If the other processes do not connect within a minute.
    """

    def __init__(self, rank: int, size: int, address: Path) -> None:
        super().__init__(rank, size)
        self._others: list[Connection] = []
        if rank == 0:
            self._others = _all_come(size, address)
        else:
            self._others = [_root(rank, address)]

    def _gather(self, array: NDArray) -> NDArray:
        mine = np.ascontiguousarray(to_host(array))
        if self.rank == 0:
            parts = [mine.tobytes(), *self._received()]
            whole = b"".join(parts)
            for number, other in enumerate(self._others, 1):
                self._send(other, _BYTES + whole, number)
        else:
            self._send(self._others[0], _BYTES + mine.tobytes(), 0)
            whole = self._receive(self._others[0], 0)
        found = np.frombuffer(whole, mine.dtype).reshape(self.size, *mine.shape)
        return array_module(array).asarray(found)

    def abort(self, reason: str) -> None:
        for other in self._others:
            try:
                other.send_bytes(_END + reason.encode())
                other.close()
            except OSError:
                pass

    def _received(self) -> list[bytes]:
        """Receive the bytes of all other processes, in any order."""
        found: dict[int, bytes] = {}
        left = {other: number for number, other in enumerate(self._others, 1)}
        while left:
            for other in wait(list(left)):
                assert isinstance(other, Connection)
                number = left.pop(other)
                found[number] = self._receive(other, number)
        return [found[number] for number in sorted(found)]

    def _receive(self, other: Connection, number: int) -> bytes:
        try:
            message = other.recv_bytes()
        except (EOFError, OSError):
            self._give_up(f"Shard {number} of {self.size} has ended without a word. Start all of them again.")
        if message[:1] == _END:
            self._give_up(message[1:].decode())
        return message[1:]

    def _send(self, other: Connection, message: bytes, number: int) -> None:
        try:
            other.send_bytes(message)
        except OSError:
            # Its last message may contain the reason.
            self._receive(other, number)
            self._give_up(f"Shard {number} of {self.size} has ended without a word. Start all of them again.")

    def _give_up(self, reason: str) -> None:
        if self.rank == 0:
            self.abort(reason)
        raise ShardError(reason)


def _all_come(size: int, address: Path) -> list[Connection]:
    """The connections of ranks 1 to size - 1, in order of rank."""
    came: dict[int, Connection] = {}
    with Listener(str(address), "AF_UNIX") as listener:
        listener._listener._socket.settimeout(_PATIENCE)  # type: ignore[attr-defined]
        while len(came) < size - 1:
            try:
                other = listener.accept()
                came[int(other.recv())] = other
            except (TimeoutError, AuthenticationError, EOFError, OSError):
                missing = sorted({*range(1, size)} - {*came})
                raise ShardError(f"Shards {missing} of {size} did not come. Start all of them.") from None
    return [came[rank] for rank in sorted(came)]


def _root(rank: int, address: Path) -> Connection:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            root = Client(str(address), "AF_UNIX")
            root.send(rank)
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > end:
                raise ShardError("Shard 0 did not come. Start all of them.") from None
            time.sleep(_AGAIN)
        else:
            return root
