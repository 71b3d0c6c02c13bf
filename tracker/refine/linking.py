"""Linking: the model for links, and the result of one pass of linking."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError
from ..motion import Motion


@dataclass(frozen=True)
class LinkModel:
    """The parameters that determine the probability of a link; unmatched costs follow from the rates.

    Parameters
    ----------
    motion : Motion
    follow : tuple of float
        Probabilities that the next detection of a particle is 1, 2, … frames later.
    end : float
        Probability of no detection within that time: the particle left, died or was missed.
    start : float
        Probability that a detection has no predecessor: a birth, an arrival, or clutter.
    gate : tuple of float
        Radii of the gate for the next frame along the axes, in the unit of the positions. Over g frames they
        grow by g^(3/4), between diffusion and straight motion.
    freedom : float
        Degrees of freedom of a Student's t that replaces the Gaussian of the filter; 0 keeps the Gaussian.
        Real particles occasionally jump, to which a Gaussian assigns almost no probability.
    scale : float
        Squared width of this t relative to that of the filter.
    two_sided : bool
        Whether the future of a detection is used as well as its past; live data have no future.
    clutter : float
        Probability that a detection is clutter; clutter has no links.

    Raises
    ------
    SettingsError
        If a probability is not between 0 and 1.
    """

    motion: Motion
    follow: tuple[float, ...]
    end: float
    start: float
    gate: tuple[float, ...]
    freedom: float = 0.0
    scale: float = 1.0
    two_sided: bool = True
    clutter: float = 0.0

    def __post_init__(self) -> None:
        if not self.follow or not all(0 <= share <= 1 for share in self.follow):
            raise SettingsError(f"follow is {self.follow}; give probabilities for 1, 2, … frames.")
        if not (0 < self.end < 1 and 0 < self.start < 1):
            raise SettingsError(f"end is {self.end} and start {self.start}; they must be between 0 and 1.")
        if not 0 <= self.clutter < min(self.end, self.start):
            raise SettingsError(
                f"clutter is {self.clutter}; it must be 0 or more, and less than end and start."
            )

    def gain_of_gap(self, longest: int | None = None) -> NDArray[np.float64]:
        """(G + 1,) log odds of the next detection after 0, 1, … frames, against no further detection.

        Parameters
        ----------
        longest : int, optional
            G; by default, and at least, the longest gap of the model.

        Examples
        --------
        >>> model = LinkModel(Motion.static((1.0,)), (0.8, 0.1), 0.1, 0.1, gate=(5.0,))
        >>> model.gain_of_gap().round(2).tolist()
        [-25.33, 2.08, 0.0]
        """
        follow = np.zeros(1 + (len(self.follow) if longest is None else longest))
        follow[1 : len(self.follow) + 1] = self.follow
        return np.asarray(np.log(np.maximum(follow, 1e-12) / self.end))

    def strange(self, new: NDArray[np.float64], unlinked: float) -> NDArray[np.float64]:
        """(N,) probability that each detection is clutter, from the probability of no link on one side.

        Parameters
        ----------
        new : (N,) float64 array
            This probability. Belief propagation overestimates it if many links can be exchanged; hence the
            power.
        unlinked : float
            The same for any detection: the rate of starts or ends.
        """
        return np.asarray(self.clutter / unlinked * new * np.sqrt(new))

    def freedom_to_link(self, alone: NDArray[np.float64], unlinked: float) -> NDArray[np.float64]:
        """(N,) log odds of a link on one side, relative to an average detection: clutter has no links.

        Parameters
        ----------
        alone : (N,) float64 array
            Probability that each is clutter, from the other side.
        unlinked : float
            Probability that a detection has no link on this side: end or start.

        Examples
        --------
        >>> model = LinkModel(Motion.static((1.0,)), (0.9,), 0.1, 0.1, gate=(5.0,), clutter=0.05)
        >>> model.freedom_to_link(np.array([0.0, 0.05, 0.5]), 0.1).round(2).tolist()
        [0.69, 0.0, -2.3]
        """
        real = (unlinked - self.clutter) / (1 - self.clutter)
        known = (1 - alone) / (1 - self.clutter)
        return np.asarray(np.log(known * unlinked / ((1 - alone) * real + alone)))


@dataclass(frozen=True, eq=False)
class Linking:
    """The result of one pass.

    Parameters
    ----------
    follower, before : (N,) int64 arrays
        The detection linked after and before each; -1 for none.
    trust, gain, margin : (N,) float64 arrays
        Probability, log odds and margin (lower bound on the loss of the optimum without it) of the link to
        the follower; 0 for none.
    row, col : (Q,) int32 arrays
        All pairs that were weighed, sorted.
    odds, probability, distance2 : (Q,) float64 arrays
        Log odds of each such pair, its probability, and its squared Mahalanobis distance.
    size : (Q,) int8 array
        Number of dimensions of this distance: those of the position, and also of the velocity if the future
        determines it.
    changed : (N,) bool array
        Whether the link to the follower differs from that of the previous pass.
    gap : float
        Gap between cost and lower bound, in nats; 0 proves the links optimal.
    """

    follower: NDArray[np.int64]
    before: NDArray[np.int64]
    trust: NDArray[np.float64]
    gain: NDArray[np.float64]
    margin: NDArray[np.float64]
    row: NDArray[np.int32]
    col: NDArray[np.int32]
    odds: NDArray[np.float64]
    probability: NDArray[np.float64]
    distance2: NDArray[np.float64]
    size: NDArray[np.int8]
    changed: NDArray[np.bool_]
    gap: float = 0.0

    @property
    def expected(self) -> tuple[int, float]:
        """Number of links, and expected number of wrong ones."""
        links = int((self.follower >= 0).sum())
        return links, links - float(self.trust.sum())

    @classmethod
    def none(cls, count: int) -> Linking:
        """No links between `count` detections."""
        no, zero = np.full(count, -1, dtype=np.int64), np.zeros(count)
        row, odds, size = np.empty(0, np.int32), np.empty(0), np.empty(0, np.int8)
        return cls(no, no, zero, zero, zero, row, row, odds, odds, odds, size, zero > 0)

    @cached_property
    def doubt(self) -> float:
        """Expected share of wrong links; 0 if there are no links."""
        links, wrong = self.expected
        return wrong / max(links, 1)

    def longest(self, frame: NDArray[np.int64]) -> int:
        """Largest number of frames spanned by a pair; 0 if there are no pairs.

        Parameters
        ----------
        frame : (N,) int64 array
            Frame of each detection.
        """
        last = np.append(self.row[1:] != self.row[:-1], True)[: len(self.row)]
        return int((frame[self.col[last]] - frame[self.row[last]]).max(initial=0))

    def backward(self) -> Linking:
        """These links in the time-reversed movie (`Movie.backward`)."""
        row, col = len(self.follower) - 1 - self.col, len(self.follower) - 1 - self.row
        order, reached = np.lexsort((col, row)), self.before >= 0
        trust, gain, margin = (
            np.where(reached, values[self.before], 0.0)[::-1].copy()
            for values in (self.trust, self.gain, self.margin)
        )
        return replace(
            self, follower=turned(self.before), before=turned(self.follower), trust=trust, gain=gain,
            margin=margin, row=row[order], col=col[order], odds=self.odds[order],
            probability=self.probability[order], distance2=self.distance2[order], size=self.size[order],
            changed=(reached & self.changed[self.before])[::-1].copy(),
        )  # fmt: skip


def turned(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N,) partner of each row, or -1, in the time-reversed movie.

    Examples
    --------
    >>> turned(np.array([2, -1, 1])).tolist()
    [1, -1, 0]
    """
    return np.where(rows >= 0, len(rows) - 1 - rows, -1)[::-1].copy()


def shift_backward(before: NDArray[np.int64], shift: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, axes) predicted displacements in the time-reversed movie: the negative ones of the predecessors."""
    came = np.where(before >= 0, before, np.arange(len(before)))
    return -shift[came[::-1]]
