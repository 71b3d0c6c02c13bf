"""The command `outbid assign`: solve one assignment problem."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError, ResourceError, SettingsError, SolverError
from .terminal import Stopwatch, columns_option, common_options, compilation_reported, say

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..assignment import AbstractAssignmentSolver, Assignment, AssignmentProblem, DenseCosts, PointCosts

_FILE = click.Path(path_type=Path)
_OF_SHARDS = ("shards", "messages", "bytes_sent", "passes")
"""Entries of the summary if a matrix is divided into shards."""


def _numbers(_ctx: click.Context, _param: click.Parameter, given: str | None) -> tuple[int, ...] | None:
    """Parse numbers separated by commas."""
    try:
        return None if given is None else tuple(int(one) for one in given.split(","))
    except ValueError:
        raise click.BadParameter(
            "it must be numbers of GPUs with commas between them, such as 0,1."
        ) from None


def _list(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from ..assignment.variants import described

        click.echo(described())
        ctx.exit()


@click.command(
    no_args_is_help=True,
    help="""Solve one assignment problem, with a certificate of optimality.

    \b
    Examples:
      outbid assign costs.npy
      outbid assign costs.npy --solver auction --unmatched-cost 5
      outbid assign a.csv b.csv --cost squared
      outbid assign costs.npy --solver 'auction:fixed(epsilon=0.1)'

    COSTS is a matrix (.npy), in which +inf forbids a pair. With TARGET both are points: tables with
    columns frame, z, y, x, or .npy with a row for each point; their costs are distances.
    """,
)
@click.argument("source", metavar="COSTS", type=_FILE)
@click.argument("target", metavar="[TARGET]", type=_FILE, required=False)
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list,
    help="List solvers, their variants and settings.",
)  # fmt: skip
@click.option(
    "--solver", default="sparsified", show_default=True, metavar="NAME[:VARIANT][(SETTING=VALUE,…)]",
    help="Solver of the problem: one of --list.",
)  # fmt: skip
@click.option(
    "--cost", "metric", type=click.Choice(["euclidean", "squared"]), default="euclidean", show_default=True,
    help="Cost of a pair of points: distance or squared distance.",
)  # fmt: skip
@click.option(
    "--unmatched-cost", type=float, metavar="U",
    help="Cost of leaving a row or a column unmatched.  "
    "[default: every row or column of the smaller side is matched]",
)  # fmt: skip
@click.option("--device", type=click.Choice(["auto", "cpu", "gpu"]), default="auto", show_default=True)
@click.option(
    "--deadline", type=click.FloatRange(min=0), metavar="SECONDS",
    help="For greedy_switching: stop then, with the best answer so far.",
)  # fmt: skip
@click.option(
    "--devices", callback=_numbers, metavar="0,1,…",
    help="GPUs over which the matrix or the distances are divided, each with its own part.",
)  # fmt: skip
@click.option(
    "--shards", type=click.IntRange(min=1), metavar="P",
    help="Divide into P parts that run in turn on one device, with the messages of P devices.",
)  # fmt: skip
@columns_option("--columns", "both tables")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stdout.")
@common_options
def assign(
    source: Path,
    target: Path | None,
    solver: str,
    metric: str,
    unmatched_cost: float | None,
    device: str,
    deadline: float | None,
    devices: tuple[int, ...] | None,
    shards: int | None,
    columns: dict[str, str],
    as_json: bool,
) -> None:
    """Solve one assignment problem."""
    chosen = _solver(solver, deadline, devices, shards)
    is_divided = devices is not None or shards is not None
    device = "cpu" if is_divided else device
    if unmatched_cost is not None and not math.isfinite(unmatched_cost):
        raise SettingsError(f"unmatched_cost is {unmatched_cost}; give a finite one, or none at all.")
    costs = _costs(source, target, columns, metric, is_mapped=is_divided)
    problem = _problem(source, costs, unmatched_cost)
    clock = Stopwatch()
    with compilation_reported():
        answer, used = _solve(problem, chosen, device)
    summary = {
        "rows": problem.shape[0], "cols": problem.shape[1], "pairs": int((answer.col_of_row >= 0).sum()),
        "cost": answer.primal_cost, "bound": answer.dual_cost, "gap": answer.gap,
        "status": str(answer.status), "solver": solver, "device": used if devices is None else "gpu",
        "seconds": clock.seconds,
    }  # fmt: skip
    summary |= {name: answer.stats[name] for name in _OF_SHARDS if name in answer.stats}
    if as_json:
        click.echo(json.dumps(summary))
        return
    proof = "cost {cost:.15g}, bound {bound:.15g}, gap {gap:g}"
    line = f"{proof}, {{pairs}} pairs, {{solver}}, {{device}}, {{seconds:.2f}} s"
    click.echo(line.format_map(summary))
    say(str(answer.status))


def _costs(
    source: Path, target: Path | None, columns: Mapping[str, str], metric: str, *, is_mapped: bool
) -> DenseCosts | PointCosts:
    """The costs in the files; a memory-mapped matrix is read piece by piece."""
    from ..assignment import DenseCosts, PointCosts
    from ..formats.tables.npy import mapped_matrix, read_matrix

    if target is not None:
        return PointCosts(_points(source, columns), _points(target, columns), metric)
    return DenseCosts(mapped_matrix(source) if is_mapped else read_matrix(source))


def _problem(source: Path, costs: DenseCosts | PointCosts, unmatched_cost: float | None) -> AssignmentProblem:
    """The assignment problem with these costs, validated."""
    import numpy as np

    from ..assignment import AssignmentProblem
    from ..assignment.check import check_problem

    problem = AssignmentProblem(costs)
    if unmatched_cost is not None:
        # A whole number keeps the sums of whole costs exact.
        is_whole = abs(unmatched_cost) < 2**53 and unmatched_cost.is_integer()
        unmatched = int(unmatched_cost) if is_whole else unmatched_cost
        problem = AssignmentProblem(costs, *(np.full(length, unmatched) for length in costs.shape))
    try:
        check_problem(problem)
    except (ValueError, TypeError) as error:
        raise InputError(f"{source}: {error}") from None
    return problem


def _solver(
    text: str, deadline: float | None, devices: tuple[int, ...] | None, shards: int | None
) -> AbstractAssignmentSolver:
    """The solver from a text with its name, variant and settings; for shards if the matrix is divided."""
    from ..assignment import solver_named
    from ..assignment.papers.greedy_switching import GreedySwitching

    try:
        chosen = solver_named(text)
        if deadline is not None:
            if math.isnan(deadline):
                raise SettingsError("The deadline is no number; give seconds.")
            if not isinstance(chosen, GreedySwitching):
                raise SettingsError(
                    f"Solver {text} has no answer before its end. Choose --solver greedy_switching."
                )
            chosen = replace(chosen, deadline=deadline)
        if devices is None and shards is None:
            return chosen
        from ..assignment.papers.shards import divided

        return divided(chosen, devices, shards)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _solve(
    problem: AssignmentProblem, solver: AbstractAssignmentSolver, device: str
) -> tuple[Assignment, str]:
    """Solve the problem; return the answer and the device."""
    from ..assignment import solve_and_certify
    from ..assignment.problem import on_gpu
    from ..compute.arrays import gpu_names, release_device_memory

    used = "cpu"
    if device != "cpu":
        try:
            used = "gpu" if gpu_names() else "cpu"
        except RuntimeError as error:
            if device == "gpu":
                raise ResourceError(str(error)) from None
        if used == "gpu" and not solver.works_on_device(problem):
            used = "cpu"
            if device == "gpu":
                say("The solver has no GPU kernels for this problem; it is solved on the CPU.")
    try:
        if used == "gpu":
            try:
                return solve_and_certify(on_gpu(problem), solver), used
            except MemoryError:
                say("The problem does not fit into the GPU's memory; it is solved on the CPU.")
            # Behind the handler, which holds on to what the GPU holds.
            release_device_memory()
        return solve_and_certify(problem, solver), "cpu"
    except MemoryError as error:
        advice = "" if str(error).endswith(".") else ". Gate the pairs."
        raise ResourceError(f"The problem does not fit into memory: {error}{advice}") from None
    except (ValueError, RuntimeError) as error:
        raise SolverError(str(error)) from None


def _points(path: Path, columns: Mapping[str, str]) -> NDArray:
    """Read a file of positions as an (N, D) float64 array."""
    from .. import formats
    from ..formats.tables.npy import read_matrix

    if path.suffix != ".npy":
        seen = formats.read_detections(path, columns=columns)
        if len(seen) and seen.frame[0] != seen.frame[-1]:
            raise InputError(
                f"{path} holds frames {seen.frame[0]} to {seen.frame[-1]}; a point set is one frame. Write "
                "its rows to a file of their own, or link all frames with outbid track."
            )
        return seen.position
    values = read_matrix(path)
    if values.dtype.kind not in "iuf":
        raise InputError(f"{path} holds {values.dtype}; coordinates must be real numbers.")
    return values.astype(float)
