"""Options for commands on a cluster, and the executors that run their tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from .terminal import progress_bar, say

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ..ranges.movie import How

_Function = TypeVar("_Function", bound=Callable[..., object])


def cluster_options(function: _Function) -> _Function:
    """Decorator that adds the options ``--cluster`` and ``--scheduler`` to a command."""
    for option in (
        click.option(
            "--scheduler", metavar="ADDRESS", help="Use this dask cluster, in ranges of frames: tcp://…"
        ),
        click.option(
            "--cluster", type=click.Choice(["local", "slurm"]),
            help="Start a dask cluster of --workers processes or SLURM jobs; work there in ranges of frames.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


@contextmanager
def on_a_cluster(
    cluster: str | None,
    scheduler: str | None,
    workers: int | None,
    *,
    overwrite: bool,
    resume: bool,
    gpus: bool,
) -> Iterator[How]:
    """Context in which a movie is processed on a cluster, with a progress bar."""
    from ..ranges.cluster import Workers, connected
    from ..ranges.movie import How

    with connected(Workers(cluster, scheduler, workers or 2, gpus)) as runner, progress_bar("Ranges") as bar:
        say(f"Dashboard: {runner.dashboard}")
        yield How(runner, overwrite=overwrite, resume=resume, progress=bar)


@contextmanager
def executor_on(
    cluster: str | None, scheduler: str | None, workers: int | None, *, gpus: bool = False
) -> Iterator[Executor]:
    """An executor on the cluster, for movies that are processed independently."""
    from ..ranges.cluster import Workers, connected

    with connected(Workers(cluster, scheduler, workers or 2, gpus)) as runner:
        say(f"Dashboard: {runner.dashboard}")
        with runner.executor() as executor:
            yield executor
