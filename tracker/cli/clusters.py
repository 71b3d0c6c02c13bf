"""Options for commands on a cluster, and the executors that run their tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..settings.declare import Setting, declare
from .options import options_of
from .terminal import progress_bar, say

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ..work.chunks.movie import How
    from ..work.cluster import Cluster


@dataclass(frozen=True)
class DaskCluster:
    """Where chunks or movies are processed, if not by this process."""

    cluster: str | None = declare(None, Setting(
        "Start a dask cluster of `workers` processes or SLURM jobs; work there in chunks of frames.",
        choices=("local", "slurm"),
    ))  # fmt: skip
    scheduler: str | None = declare(None, Setting(
        "Use this dask cluster, in chunks of frames: tcp://…", metavar="ADDRESS"
    ))  # fmt: skip

    def __bool__(self) -> bool:
        return bool(self.cluster or self.scheduler)

    @contextmanager
    def connected(self, workers: int | None, *, gpus: bool) -> Iterator[Cluster]:
        """Start the cluster, or connect with it; and say where its dashboard is."""
        from ..work.cluster import Workers, connected

        with connected(Workers(self.cluster, self.scheduler, workers or 2, gpus)) as runner:
            say(f"Dashboard: {runner.dashboard}")
            yield runner


cluster_options = options_of(DaskCluster, "cluster")
"""Decorator that adds the options of a cluster to a command."""


@contextmanager
def on_a_cluster(
    where: DaskCluster, workers: int | None, *, overwrite: bool, resume: bool, gpus: bool
) -> Iterator[How]:
    """Context in which a movie is processed on a cluster, with a progress bar."""
    from ..work.chunks.movie import How

    with where.connected(workers, gpus=gpus) as runner, progress_bar("Chunks") as bar:
        yield How(runner, overwrite=overwrite, resume=resume, progress=bar)


@contextmanager
def executor_on(where: DaskCluster, workers: int | None, *, gpus: bool = False) -> Iterator[Executor]:
    """An executor on the cluster, for movies that are processed independently."""
    with where.connected(workers, gpus=gpus) as runner, runner.executor() as executor:
        yield executor
