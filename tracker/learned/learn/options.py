"""Options of learning: all numbers that are neither priors nor guards nor computed from error levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...compute.tolerances import ROUNDS
from .fixed import NOTHING_FIXED, Fixed


@dataclass(frozen=True)
class LearnOptions:
    """Settings of learning; the sensitivity table shows the effect of halving and doubling each.

    Parameters
    ----------
    longest_lag : int, optional
        Largest lag of a link in frames. Default: learned, from 6 on.
    nearest : int
        Number of candidates per detection and lag, in each direction of time.
    dropped : float
        Link probability below which a candidate is dropped.
    trial : int
        Detections over which starts are compared.
    sample : int
        Number of detections from which the model of a movie is learned that has more than twice as many;
        sweeps over the whole movie follow.
    least_step : tuple of float, optional
        Least standard deviation of a step along each given axis when learning begins. In a stack of slices
        all near candidates lie in the same slice, and none would lead to another one.
    fixed : Fixed
        Parameters that are given instead of learned.
    workers : int
        Threads; they do not change the result.
    on_sweep : callable
        Called after each sweep with the number of detections that it covered.
    device : {"cpu", "gpu"}
        Where sweeps and searches over a movie larger than the sample run; EM runs on the host.
    """

    longest_lag: int | None = None
    nearest: int = 10
    dropped: float = 1e-4
    trial: int = 4_000
    sample: int = 10_000
    least_step: tuple[float, ...] | None = None
    fixed: Fixed = NOTHING_FIXED
    workers: int = 1
    on_sweep: Callable[[int], None] = lambda _: None
    device: str = "cpu"

    @property
    def gaps(self) -> bool:
        """Whether to search links over missed frames."""
        return self.longest_lag != 1

    def whole(self, detections: int) -> bool:
        """Whether the model is learned from all detections of a movie."""
        return detections <= 2 * self.sample

    def work(self, detections: int) -> int:
        """Detections that the sweeps over a movie cover."""
        learned, last = (detections, 0) if self.whole(detections) else (self.sample, 2)
        return 4 * ROUNDS * min(learned, self.trial) + 2 * ROUNDS * learned + last * detections
