"""Linking: the model by which detections are linked, and what one pass of linking found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError
from ..motion import Motion


@dataclass(frozen=True)
class LinkModel:
    """All that decides how likely a link is; the unmatched costs follow from the rates.

    Parameters
    ----------
    motion : Motion
    follow : tuple of float
        Probabilities that a particle is seen next after 1, 2, … frames.
    end : float
        Probability that it is never seen again within that time: it left, died or was missed.
    start : float
        Probability that a detection has none before it: a birth, an arrival, or clutter.
    gate : tuple of float
        Radii along the axes, in the unit of the positions, outside of which no particle is looked for
        in the next frame; over g frames they grow by g^(3/4), between diffusion and straight flight.
    freedom : float
        Degrees of freedom of Student's t that replaces the Gaussian of the filter; 0 keeps it. Real
        particles jump now and then; a Gaussian would not forgive them.
    scale : float
        Square of the width of that t against the filter's own.
    two_sided : bool
        Whether the future of a detection counts as its past does; live data have none.
    clutter : float
        Probability that a detection is no particle: then it both starts and ends.

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
        """(G + 1,) log odds that a particle is seen next after 0, 1, … frames, against never again.

        Parameters
        ----------
        longest : int, optional
            G, at least the longest that the model expects, which is the default.

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
        """(N,) probability that each is clutter, by how likely it is that it has no link on one side.

        Parameters
        ----------
        new : (N,) float64 array
            That probability. Belief propagation sees too many where many could swap: hence the power.
        unlinked : float
            The same of any detection: start or end.
        """
        return np.asarray(self.clutter / unlinked * new * np.sqrt(new))

    def freedom_to_link(self, alone: NDArray[np.float64], unlinked: float) -> NDArray[np.float64]:
        """(N,) log odds of a link on one side, against those of any detection: clutter has none.

        Parameters
        ----------
        alone : (N,) float64 array
            Probability that it is clutter, by the other side.
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
    """What one pass found.

    Parameters
    ----------
    follower, before : (N,) int64 arrays
        The detection linked after and before each; -1 for none.
    trust, gain, margin : (N,) float64 arrays
        Of the link to the follower: its probability, its log odds, and how much the optimum would lose
        without it, at least; 0 for none.
    row, col : (Q,) int32 arrays
        All pairs that were weighed, sorted.
    odds, probability, distance2 : (Q,) float64 arrays
        Log odds of each such pair, its probability, and its squared Mahalanobis distance.
    size : (Q,) int8 array
        In how many dimensions that was measured: those of the position, or of the velocity, too, where
        the future tells it.
    changed : (N,) bool array
        Whether the link to the follower is another than in the pass before.
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
        """How many links there are, and how many of them are expected to be wrong."""
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
        """Share of the links that must be expected to be wrong; 0 if there are none."""
        links, wrong = self.expected
        return wrong / max(links, 1)

    def longest(self, frame: NDArray[np.int64]) -> int:
        """Frames that its pairs span at most; 0 if there are none.

        Parameters
        ----------
        frame : (N,) int64 array
            Of each detection.
        """
        last = np.append(self.row[1:] != self.row[:-1], True)[: len(self.row)]
        return int((frame[self.col[last]] - frame[self.row[last]]).max(initial=0))

    def backward(self) -> Linking:
        """The same links in the movie run backward (`Movie.backward`)."""
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
    """(N,) rows that belong to each row, or -1, in the movie run backward.

    Examples
    --------
    >>> turned(np.array([2, -1, 1])).tolist()
    [1, -1, 0]
    """
    return np.where(rows >= 0, len(rows) - 1 - rows, -1)[::-1].copy()


def shift_backward(before: NDArray[np.int64], shift: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, axes) displacement foretold of each in the movie run backward: that of the one before, turned."""
    came = np.where(before >= 0, before, np.arange(len(before)))
    return -shift[came[::-1]]
