"""A solver whose matrix is divided over GPUs, or over shards that run in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ....compute.arrays import cupy_module, on_device, to_device
from ...dense.sparsified import Sparsified
from ...problem import AssignmentProblem, PointCosts, SparseCosts
from ...solver import AbstractAssignmentSolver, Answer
from ...variants import solver_named
from ..hungarian import Hungarian, Matching, answered, processors, to_match_all_rows
from .blocks import ArrayBlocks, Blocks, PointBlocks
from .communicator import Alone, Communicator, Virtual, run_ranks
from .search import Setup, found
from .sparsified import solved

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Divided(AbstractAssignmentSolver):
    """A solver for matrices and points that uses shards.

    Parameters
    ----------
    inner : Hungarian or Sparsified
        The solver, whose matching, duals and counters are reproduced bit by bit.
    devices : tuple of int
        GPUs: one per shard, or a single one on which all shards run in turn. If empty, shards run in turn on
        the device of the problem.
    shards : int
    """

    inner: Hungarian | Sparsified
    devices: tuple[int, ...] = ()
    shards: int = 1

    works_on_points = True

    def works_on_device(self, problem: AssignmentProblem) -> bool:  # noqa: ARG002
        """Whether shards run on the device of the problem; shards on separate GPUs read from the host."""
        return not self.devices

    def compute(self, problem: AssignmentProblem) -> Answer:
        if isinstance(problem.costs, SparseCosts):
            raise ValueError("Shards divide matrices and points. Give a sparse problem without them.")
        if isinstance(self.inner, Hungarian):
            return answered(problem, self._searched)
        inner = self.inner
        answers = self.in_shards(lambda way: solved(problem, inner, way, bool(self.devices)), problem)
        return answers[0]

    def _searched(self, problem: AssignmentProblem) -> Matching:
        assert isinstance(self.inner, Hungarian)
        blocks: Blocks
        if isinstance(problem.costs, PointCosts) and problem.is_perfect:
            blocks = PointBlocks(problem.costs)
        else:
            blocks = ArrayBlocks(to_match_all_rows(problem))
        is_on_gpu = bool(self.devices) or on_device(problem.array)
        work = Setup(self.inner.variant, is_on_gpu, self.threads())
        answer = self.in_shards(partial(found, blocks, work=work), problem)[0]
        if not on_device(problem.array):
            return answer
        return Matching(to_device(answer.col_of_row), to_device(answer.col_dual), answer.stats)

    def threads(self) -> int:
        """Threads per shard on the CPU: all of them, because shards run in turn."""
        wanted = self.inner.workers if isinstance(self.inner, Hungarian) else None
        return wanted or processors()

    def in_shards(
        self, work: Callable[[Communicator], _Made], problem: AssignmentProblem | None = None
    ) -> list[_Made]:
        """Run each shard in a thread, with its own GPU or with that of the problem."""
        ways = _ways(self.devices, self.shards)
        own = None if problem is None or not on_device(problem.array) else int(problem.array.device.id)  # type: ignore[attr-defined]

        def run(way: Communicator) -> _Made:
            number = self.devices[way.rank % len(self.devices)] if self.devices else own
            with _on_gpu(number):
                return work(way)

        return run_ranks(ways, run)


def divided(
    solver: str | AbstractAssignmentSolver | None, devices: Sequence[int] | None, shards: int | None
) -> Divided:
    """The solver, by default ``sparsified``, with a divided matrix.

    Raises
    ------
    ValueError
        If the solver is neither ``sparsified`` nor ``hungarian``, or the numbers are invalid.

    Examples
    --------
    >>> divided("hungarian:classical", None, 3).shards
    3
    """
    chosen = solver_named(solver or "sparsified") if isinstance(solver, str | None) else solver
    if not isinstance(chosen, Hungarian | Sparsified):
        raise ValueError(
            f"{solver} works on one device. Choose one of: sparsified, hungarian:tree, hungarian:classical."
        )
    if shards is not None and shards < 1:
        raise ValueError(f"shards is {shards}; it must be 1 or more.")
    if devices is None:
        return Divided(chosen, (), shards or 1)
    numbers = tuple(devices)
    if not numbers or len(set(numbers)) < len(numbers) or min(numbers) < 0:
        raise ValueError(f"devices are {list(numbers)}; give different numbers of GPUs, such as 0,1.")
    if len(numbers) > 1 and shards not in (None, len(numbers)):
        raise ValueError(f"{shards} shards for {len(numbers)} GPUs: each has one, or one GPU has them all.")
    return Divided(chosen, numbers, shards or len(numbers))


def _ways(devices: tuple[int, ...], shards: int) -> list[Communicator]:
    if not devices or len(devices) < shards:
        return Virtual.all_of(shards)
    if len(devices) == 1:
        return [Alone()]
    from .nccl import Nccl

    return Nccl.of_host(list(devices))


@contextmanager
def _on_gpu(number: int | None) -> Iterator[None]:
    """Context in which a GPU is the current one of this thread."""
    place: AbstractContextManager = nullcontext()
    if number is not None:
        place = cupy_module().cuda.Device(number)
    with place:
        yield
