"""Frames by their numbers, as they arrive: which comes next, which are missing, which are late."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class InOrder:
    """Frames that are handed out by increasing number.

    A frame whose number is skipped is waited for; after that it counts as missing. If it comes later still,
    it is late, and is not handed out.

    Parameters
    ----------
    wait : float
        Seconds that a skipped frame is waited for.
    hold : int
        Frames that must be there before the first is handed out: the numbering begins with the least of them.
    first, step : int
        The number of frame 0, and by how much numbers increase; step 0: they do not count frames. Both are
        found in the first frames if step is negative.
    last : int or None
        The number that was handed out last.
    frame : int
        The frame that was handed out last, counted from 0; -1 for none.
    missing, late : int
        How many frames were so far.

    Examples
    --------
    >>> order = InOrder(wait=5.0, hold=2)
    >>> _ = order.add([12, 11], now=0.0)
    >>> order.next(now=0.0), order.done(), order.next(now=0.0), order.done()
    (11, 0, 12, 1)
    >>> _ = order.add([14], now=1.0)
    >>> order.next(now=2.0), order.next(now=6.0), order.done(), order.missing
    (None, 14, 3, 1)
    """

    wait: float
    hold: int = 1
    first: int = 0
    step: int = -1
    last: int | None = None
    frame: int = -1
    missing: int = 0
    late: int = 0
    _there: dict[int, float] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of frames that are there and were not handed out."""
        return len(self._there)

    def add(self, numbers: Iterable[int], now: float) -> list[int]:
        """Frames that have arrived; returns those that are late."""
        given = list(numbers)
        late = [number for number in given if self._is_late(number)]
        self._there |= dict.fromkeys((number for number in given if number not in late), now)
        self.late += len(late)
        return late

    def _is_late(self, number: int) -> bool:
        off = self.step > 0 and (number - self.first) % self.step != 0
        return off or (self.last is not None and number <= self.last)

    def first_there(self, count: int) -> list[int]:
        """The least numbers that are there."""
        return sorted(self._there)[:count]

    def state(self) -> list[int]:
        """From which `restore` goes on."""
        return [self.first, self.step, self.last or 0, self.frame, self.missing, self.late]

    def restore(self, state: list[int]) -> list[int]:
        """Go on from a state; returns the numbers that were handed out before, and are not there any more."""
        self.first, self.step, self.last, self.frame, self.missing, self.late = state
        done = [number for number in self._there if number <= self.last]
        for number in done:
            del self._there[number]
        return done

    def next(self, now: float, *, ended: bool = False) -> int | None:
        """The number of the next frame; None as long as it is waited for.

        Parameters
        ----------
        now : float
            Seconds, of the clock of `add`.
        ended : bool
            Whether no more will come.
        """
        if not self._there or (self.last is None and len(self._there) < self.hold and not ended):
            return None
        if self.step < 0:
            self._begin()
        number = min(self._there)
        skips = self.step > 0 and self.last is not None and number > self.last + self.step
        patient = skips and not ended and now < self._there[number] + self.wait
        return None if patient else number

    def done(self) -> int:
        """Hand out the least number, whose frame was read; returns the frame, counted from 0."""
        number = min(self._there)
        self._pass(number)
        return self.frame

    def failed(self, now: float, *, ended: bool = False) -> bool:
        """The least number's frame cannot be read yet; returns whether it counts as missing from now on."""
        number = min(self._there)
        if not ended and now < self._there[number] + self.wait:
            return False
        self._pass(number)
        self.missing += 1
        return True

    def _pass(self, number: int) -> None:
        del self._there[number]
        frame = (number - self.first) // self.step if self.step > 0 else self.frame + 1
        self.missing += max(frame - self.frame - 1, 0) if self.last is not None else 0
        self.last, self.frame = number, frame

    def _begin(self) -> None:
        """Find what the numbers count, as for the frames of a folder."""
        there = sorted(self._there)
        self.first = there[0]
        self.step = math.gcd(*(number - self.first for number in there)) or 1
        if (there[-1] - self.first) // self.step + 1 > 2 * len(there):
            self.step = 0
