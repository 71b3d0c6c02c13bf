"""Functions that tests run in other processes; in a separate module, which these processes can import."""

import os
import signal

from outbid.work.jobs import TrackJob


class KillsItself(TrackJob):
    """A job that ends its process at one movie, as the system does that has no memory left."""

    def origin(self, source: str) -> dict[str, str]:
        if source.endswith("c.csv"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().origin(source)


def limited(most: int) -> None:
    """Let this process write no larger files, as on a disk that is full."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def shard_of_gpu(rank: int, size: int, identity: tuple, costs: object, pipe: object) -> None:
    """Find the matching of a matrix as the shard of one of several GPUs, each of a process."""
    from outbid.assignment.papers.shards.blocks import ArrayBlocks
    from outbid.assignment.papers.shards.nccl import Nccl
    from outbid.assignment.papers.shards.search import Setup, found
    from outbid.compute.arrays import cupy_module

    with cupy_module().cuda.Device(rank):
        way = Nccl.of_process(rank, size, identity, rank)
        answers = [found(ArrayBlocks(costs), way, Setup(v, is_on_gpu=True)) for v in ("tree", "classical")]
    pipe.send(answers)  # type: ignore[attr-defined]
