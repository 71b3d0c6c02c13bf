"""Roverso et al.'s Figure 1: one difference evaluation, on the CPU and in two forms on the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from outbid.assignment import AssignmentProblem
from outbid.assignment.papers.greedy_switching import Evaluation
from outbid.assignment.problem import on_gpu
from outbid.compute.arrays import to_host

from ...experiment import Row, Size
from ...matrices import geom
from ...paper import Claim, Paper, compared, extent, timed

FORMS = ("shared", "global")


class Figure1(Paper):
    """On the GPU with the transfer of the matrix and of the result, as in the paper, and without."""

    shows = "Roverso et al.'s Figure 1: seconds of one difference evaluation, GEOM."
    takes = "seconds"
    quick = extent((60, 120))
    cpu = extent((256, 512, 1024, 2048, 4096))
    gpu = extent((256, 512, 1024, 2048, 4096, 8192), instances=5, device="gpu")

    def rows(self, problems: Size) -> Iterator[Row]:
        for size, instance in problems.runs():
            problem = geom(size, instance)
            row: Row = {"n": size, "instance": instance}
            work = Evaluation(problem, "shared")
            yield {**row, "case": "CPU", "seconds": timed(work.evaluated)[0]}
            for form in FORMS if problems.device == "gpu" else ():
                there = Evaluation(on_gpu(problem), form)
                yield {**row, "case": form, "seconds": timed(partial(_to_the_end, there))[0]}
                taken = timed(partial(_with_transfers, problem, form))[0]
                yield {**row, "case": f"{form} with transfers", "seconds": taken}

    def claims(self, summary: list[Row]) -> list[Claim]:
        return [
            compared(
                summary, "The GPU's evaluation is dramatically faster, transfers included",
                "section 5, Figure 1", "{:.1f} times at n = {n}", "CPU", "shared with transfers",
            ),
            compared(
                summary, "Shared memory is consistently better than global memory", "section 5, Figure 1",
                "global over shared: {:.2f} at n = {n}", "global", "shared",
            ),
        ]  # fmt: skip


def _to_the_end(work: Evaluation) -> np.ndarray:
    return to_host(work.evaluated())


def _with_transfers(problem: AssignmentProblem, form: str) -> np.ndarray:
    return to_host(Evaluation(on_gpu(problem), form).evaluated())


PAPERS = {"roverso-figure1": Figure1()}
