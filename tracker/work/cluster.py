"""Run tasks on many machines by dask.distributed; only this module imports it.

Workers read their own chunks and write their own files, so only file names are sent to them. If a worker
is lost, its task runs again elsewhere and writes the same file. All machines of the cluster must see the
same folders.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from ..errors import ResourceError, SettingsError
from .chunks.tasks import Task

_LOG = logging.getLogger("outbid")
KINDS = ("local", "slurm")
_AGAIN = 20
"""How often a task is given out again whose worker was lost, at most."""
_ENVIRON = "distributed.nanny.pre-spawn-environ"
_LOST = 10.0
"""Seconds without a sign of life after which the scheduler counts as lost."""
_LOOK = 0.5
"""Seconds between checks of the scheduler."""


@dataclass(frozen=True)
class Workers:
    """The cluster to start or to join.

    Parameters
    ----------
    kind : {"local", "slurm"} or None
        A cluster that is started for this run, and ended with it: processes of this machine, or jobs of SLURM
        as dask-jobqueue is configured (``~/.config/dask/jobqueue.yaml``).
    scheduler : str or None
        Address of a cluster that is there: ``tcp://…``.
    count : int
        Workers to start.
    gpus : bool
        Whether each local worker gets a GPU of its own.

    Raises
    ------
    SettingsError
        If it is neither or both.
    """

    kind: str | None = None
    scheduler: str | None = None
    count: int = 2
    gpus: bool = False

    def __post_init__(self) -> None:
        if (self.kind is None) == (self.scheduler is None):
            raise SettingsError("A cluster is started (--cluster) or joined (--scheduler): give one of them.")
        if self.kind not in (None, *KINDS):
            raise SettingsError(f"cluster is {self.kind!r}; it must be one of: {', '.join(KINDS)}.")


class Cluster:
    """Run tasks on a cluster; see `outbid.work.chunks.tasks.Runner`."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @property
    def dashboard(self) -> str:
        """URL of the dashboard of dask."""
        return str(self.client.dashboard_link)

    def executor(self) -> Executor:
        """The cluster as an executor, for jobs on many movies."""
        executor: Executor = self.client.get_executor()
        return executor

    def __call__(self, tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
        """Run the tasks, in any order; yield the account of each when it is done.

        Raises
        ------
        ResourceError
            If the scheduler is lost, a task has lost its worker too often, or no worker can write its file.
        OutbidError
            What a task raises.
        """
        from distributed import KilledWorker, wait

        left: dict[Any, Task] = {}
        submitted = 0
        often: dict[str, int] = {}
        full: dict[str, list[str]] = {}
        heard = time.monotonic()
        try:
            while left or submitted < len(tasks):
                left |= {self._submit(task): task for task in tasks[submitted:]}
                submitted = len(tasks)
                try:
                    done = wait(list(left), timeout=_LOOK, return_when="FIRST_COMPLETED").done
                except TimeoutError:
                    done = set()
                except (CancelledError, asyncio.CancelledError):  # nobody but a scheduler that ends does that
                    raise _lost() from None
                heard = self._heard(heard)
                for future in done:
                    task = left.pop(future)
                    name = task.output.name
                    if future.status == "finished":
                        found = future.result()
                        if isinstance(found, _Unwritten):
                            left[self._elsewhere(task, found, full.setdefault(name, []))] = task
                        else:
                            yield found
                        continue
                    error = _lost() if future.status == "cancelled" else future.exception()
                    often[name] = often.get(name, 0) + 1
                    if not isinstance(error, KilledWorker | ConnectionError) or often[name] > _AGAIN:
                        raise error
                    left[self._submit(task)] = task
        finally:
            if left and self.client.status == "running":
                self.client.cancel(list(left))

    def _submit(self, task: Task, workers: Sequence[str] | None = None) -> Any:
        # Workers that are named may be lost; then any other does it.
        where = {} if workers is None else {"workers": list(workers), "allow_other_workers": True}
        return self.client.submit(_do, task, pure=False, **where)

    def _elsewhere(self, task: Task, found: _Unwritten, full: list[str]) -> Any:
        """Submit a task to a worker that is not in `full`, the workers that failed to write its file.

        Raises
        ------
        ResourceError
            If there is none, or that was done too often.
        """
        full.append(found.worker)
        others = set(self.client.scheduler_info(n_workers=-1)["workers"]) - {*full}
        if not others or len(full) > _AGAIN:
            raise ResourceError(
                f"{task.output} cannot be written on worker {found.worker}: {found.why}. Make room there, "
                "and repeat the command with --resume: what is done is kept."
            )
        _LOG.warning("Worker %s cannot write %s: %s. Another does it.", found.worker, task.output, found.why)
        return self._submit(task, sorted(others))

    def _heard(self, before: float) -> float:
        """The time of the last answer from the scheduler.

        Raises
        ------
        ResourceError
            If that was too long ago.
        """
        if self.client.status == "running":
            return time.monotonic()
        if time.monotonic() - before > _LOST:
            raise _lost()
        return before


def _lost() -> ResourceError:
    return ResourceError(
        "The scheduler of the cluster is lost. What is done is kept: repeat the command with --resume."
    )


@contextmanager
def connected(workers: Workers) -> Iterator[Cluster]:
    """Start or join a cluster; one that was started is closed at the end of the block.

    Raises
    ------
    ResourceError
        If the packages are missing, or no scheduler answers.
    """
    try:
        import distributed
    except ModuleNotFoundError:
        raise ResourceError(
            "A cluster needs a package that is not installed: pip install 'outbid[cluster]'."
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # lost workers are reported here
    with ExitStack() as opened:
        address: Any = workers.scheduler
        try:
            if workers.kind is not None:
                address = opened.enter_context(_started(workers))
            client = opened.enter_context(distributed.Client(address, timeout=_LOST))
        except (OSError, TimeoutError, ValueError) as error:
            raise ResourceError(
                f"No scheduler answers at {workers.scheduler or workers.kind}: {error}. Is it running?"
            ) from None
        _LOG.info("Dashboard: %s", client.dashboard_link)
        yield Cluster(client)


def _started(workers: Workers) -> Any:
    """Start a new cluster; a context manager."""
    if workers.kind == "slurm":
        try:
            from dask_jobqueue.slurm import SLURMCluster
        except ModuleNotFoundError:
            raise ResourceError(
                "SLURM needs a package that is not installed: pip install 'outbid[cluster]'."
            ) from None
        cluster = SLURMCluster()
        cluster.scale(jobs=workers.count)
        return cluster
    import dask
    from distributed import LocalCluster, Nanny, Scheduler, SpecCluster

    quiet = {"silence_logs": logging.CRITICAL}
    options = {"nthreads": 1, "host": "127.0.0.1"}
    specs = {
        k: {"cls": Nanny, "options": {**options, "env": {"CUDA_VISIBLE_DEVICES": str(k)}}}
        for k in range(workers.count)
    }
    scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}}
    # A task whose worker is killed is done again. Dask has workers give back memory at every turn, and arrays
    # are then mapped anew each time: a sixth of the time of a task.
    environ = {name: of for name, of in dask.config.get(_ENVIRON).items() if not name.startswith("MALLOC_")}
    with dask.config.set({"distributed.scheduler.allowed-failures": _AGAIN, _ENVIRON: environ}):
        if workers.gpus:
            return SpecCluster(workers=specs, scheduler=scheduler, **quiet)
        return LocalCluster(
            n_workers=workers.count, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", **quiet,
        )  # fmt: skip


@dataclass(frozen=True)
class _Unwritten:
    """A worker could not read or write a file, for example because its disk is full."""

    worker: str
    why: str


def _do(task: Task) -> dict[str, Any] | _Unwritten:
    """Run a task on a worker; its account includes the worker's name."""
    from distributed import get_worker

    worker = str(get_worker().address)
    try:
        return {**task(), "worker": worker}
    except OSError as error:
        return _Unwritten(worker, str(error.strerror or error))
