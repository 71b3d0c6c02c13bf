"""The exact posterior over partitions of detections into tracks, by sampling and by enumeration: an oracle.

It says what the marginals of an approximate inference should be under the same assumptions. Nothing here is
imported from the engine that it judges, and nothing is quick: small movies only.

A track of detections y_1, y_2, …, with lags l_1, l_2, … between them, has the weight

    birth * death * prod_k delay(l_k) / density(y_k+1) * p(y_2, y_3, … | y_1),

with the birth of its first detection and the death of its last. A detection of no particle has the weight
`clutter`, so that a lone one has birth * death + clutter. Steps are those of a stationary first-order
autoregression in one of K classes. With probability 1 - (1 - renewal)^lag a link begins with a new step, of a
class that is drawn by share * renewal, so that the shares stay. Positions are seen with noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LEAST = 1e-9
"""Guard: hypotheses on the classes of a track less likely than this beside the best are left out."""
_MOVES = 8
"""Moves of each kind that a sweep tries a detection."""

Track = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Assumptions:
    """Parameters: variances of steps (K, D), persistence, share and renewal (K,), noise variance (D,), rates.

    `delay` (L,) holds the probabilities that the successor is seen 1, 2, …, L frames later. Death and
    birth are numbers, or arrays (N,).
    """

    step: NDArray[np.float64]
    persistence: NDArray[np.float64]
    share: NDArray[np.float64]
    renewal: NDArray[np.float64]
    noise: NDArray[np.float64]
    delay: NDArray[np.float64]
    death: NDArray[np.float64] | float
    birth: NDArray[np.float64] | float
    clutter: float


@dataclass(frozen=True, eq=False)
class Scene:
    """Detections (N, D) sorted by frame (N,), their shared steps (N, D), and the density about each (N,)."""

    position: NDArray[np.float64]
    frame: NDArray[np.int64]
    density: NDArray[np.float64]
    flow: NDArray[np.float64]

    @classmethod
    def of(cls, position: NDArray[np.float64], frame: NDArray[np.int64], density: float = 1.0) -> Scene:
        """A scene of the same density everywhere, without flow."""
        return cls(position, frame, np.full(len(frame), density), np.zeros_like(position))


@dataclass(frozen=True, eq=False)
class _Hypotheses:
    """What a track's past may be: log weight and class (C,); mean of place and step, covariances (C, D)."""

    weight: NDArray[np.float64]
    kind: NDArray[np.int64]
    place: NDArray[np.float64]
    step: NDArray[np.float64]
    pp: NDArray[np.float64]
    ps: NDArray[np.float64]
    ss: NDArray[np.float64]


class Weights:
    """Log weights of tracks, each computed once."""

    def __init__(self, scene: Scene, given: Assumptions) -> None:
        self.scene, self.given = scene, given
        self.birth, self.death = (
            np.broadcast_to(rate, len(scene.frame)) for rate in (given.birth, given.death)
        )
        self._known: dict[Track, float] = {}

    def of(self, track: Track) -> float:
        """Log weight of a track, or of a detection that is in none."""
        if track not in self._known:
            self._known[track] = self._weight(track)
        return self._known[track]

    def _weight(self, track: Track) -> float:
        alone = self.birth[track[0]] * self.death[track[-1]]
        if len(track) == 1:
            return float(np.log(alone + self.given.clutter))
        total = np.log(alone)
        for one, other in zip(track[:-1], track[1:], strict=True):
            lag = self.scene.frame[other] - self.scene.frame[one]
            if not 1 <= lag <= len(self.given.delay):
                return -np.inf
            with np.errstate(divide="ignore"):
                total += np.log(self.given.delay[lag - 1] / self.scene.density[other])
        return float(total + log_density(self.scene, self.given, track))


def log_density(scene: Scene, given: Assumptions, track: Track) -> float:
    """Log density of all detections of a track but the first, given the first."""
    first = scene.position[track[0]]
    many, axes = given.step.shape
    now = _Hypotheses(
        np.log(given.share), np.arange(many), np.tile(first, (many, 1)), np.zeros((many, axes)),
        np.tile(given.noise, (many, 1)), np.zeros((many, axes)), given.step.copy(),
    )  # fmt: skip
    for number, (one, other) in enumerate(zip(track[:-1], track[1:], strict=True)):
        lag = int(scene.frame[other] - scene.frame[one])
        choices = now if number == 0 else _renewed(now, given, lag)
        moved = _moved(choices, given, lag, scene.flow[one], begins=number == 0)
        now = _seen(moved, scene.position[other], given.noise)
    return float(np.logaddexp.reduce(now.weight))


def _renewed(now: _Hypotheses, given: Assumptions, lag: int) -> _Hypotheses:
    """Each hypothesis goes on as it is, or begins anew in one of the classes."""
    kept = lag * np.log1p(-given.renewal[now.kind])
    with np.errstate(divide="ignore"):
        left = np.log(-np.expm1(kept))
    parts = [_Hypotheses(now.weight + kept, now.kind, now.place, now.step, now.pp, now.ps, now.ss)]
    entry = given.share * given.renewal
    for kind, share in enumerate(entry / max(entry.sum(), 1e-300)):
        fresh = np.full(len(now.kind), kind)
        zero, spread = np.zeros_like(now.step), np.tile(given.step[kind], (len(fresh), 1))
        # A new step is of the stationary law, and moved on by the autoregression it still is.
        parts.append(
            _Hypotheses(
                now.weight + left + np.log(max(share, 1e-300)), fresh, now.place, zero, now.pp, zero, spread
            )
        )
    both = [np.concatenate([getattr(part, name) for part in parts]) for name in _NAMES]
    likely = both[0] > both[0].max() + np.log(_LEAST)
    return _Hypotheses(*(values[likely] for values in both))


_NAMES = ("weight", "kind", "place", "step", "pp", "ps", "ss")


def _moved(now: _Hypotheses, given: Assumptions, lag: int, flow: NDArray, *, begins: bool) -> _Hypotheses:
    """The hypotheses after as many steps as the lag; the first step of a track is that of its first state."""
    kept = given.persistence[now.kind][:, None]
    noise = given.step[now.kind] * (1 - kept**2)
    place, step, pp, ps, ss = now.place, now.step, now.pp, now.ps, now.ss
    for number in range(lag):
        if number > 0 or not begins:
            step, ps, ss = kept * step, kept * ps, kept**2 * ss + noise
        place, pp, ps = place + step + flow, pp + 2 * ps + ss, ps + ss
    return _Hypotheses(now.weight, now.kind, place, step, pp, ps, ss)


def _seen(now: _Hypotheses, position: NDArray, noise: NDArray) -> _Hypotheses:
    """The hypotheses once a detection is seen, with its density in their weights."""
    apart, spread = position - now.place, now.pp + noise
    weight = now.weight - 0.5 * (apart**2 / spread + np.log(2 * np.pi * spread)).sum(axis=1)
    gain, turn = now.pp / spread, now.ps / spread
    return _Hypotheses(
        weight, now.kind, now.place + gain * apart, now.step + turn * apart,
        now.pp - gain * now.pp, now.ps - gain * now.ps, now.ss - turn * now.ps,
    )  # fmt: skip


def partitions(scene: Scene, longest: int) -> Iterator[list[Track]]:
    """All partitions of the detections into tracks without lags above `longest`."""

    def grown(row: int, tracks: list[Track]) -> Iterator[list[Track]]:
        if row == len(scene.frame):
            yield tracks
            return
        yield from grown(row + 1, [*tracks, (row,)])
        for number, track in enumerate(tracks):
            if 1 <= scene.frame[row] - scene.frame[track[-1]] <= longest:
                yield from grown(row + 1, [*tracks[:number], (*track, row), *tracks[number + 1 :]])

    yield from grown(0, [])


def enumerated(scene: Scene, given: Assumptions) -> NDArray[np.float64]:
    """The probability (N, N) of each link, summed over all partitions."""
    weights = Weights(scene, given)
    found, total = np.zeros((len(scene.frame),) * 2), 0.0
    for tracks in partitions(scene, len(given.delay)):
        weight = float(np.exp(sum(map(weights.of, tracks))))
        total += weight
        for track in tracks:
            found[track[:-1], track[1:]] += weight
    return found / total


class Sampler:
    """A Markov chain over partitions whose stationary law is their posterior (Metropolis).

    `candidates` (E, 2) are the links that may be made. Every move is its own reverse, and what it may do is
    chosen from a list that does not change, so that the ratio of the weights alone decides.
    """

    def __init__(
        self, scene: Scene, given: Assumptions, candidates: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        self.weights, self.rng = Weights(scene, given), rng
        self.candidates = [(int(i), int(j)) for i, j in candidates]
        self.allowed = set(self.candidates)
        self.successor: list[int | None] = [None] * len(scene.frame)
        self.predecessor: list[int | None] = [None] * len(scene.frame)
        rivals = {
            (a, b)
            for i, a in self.candidates
            for k, b in self.candidates
            if i == k and a < b and scene.frame[a] == scene.frame[b]
        }
        self.rivals = sorted(rivals)

    def sweep(self) -> None:
        """Try some moves a detection."""
        for _ in range(_MOVES * len(self.successor)):
            i, j = self.candidates[self.rng.integers(len(self.candidates))]
            self._try(self._taken(i, j) if self.rng.random() < 0.6 else self._inserted(i, j))
            if self.rivals:
                self._try(self._exchanged(*self.rivals[self.rng.integers(len(self.rivals))]))

    def marginals(self, sweeps: int, burn_in: int) -> NDArray[np.float64]:
        """The share of the sweeps, after the burn-in, in which each pair (N, N) is linked."""
        found = np.zeros((len(self.successor),) * 2)
        for number in range(burn_in + sweeps):
            self.sweep()
            if number >= burn_in:
                linked = [i for i, j in enumerate(self.successor) if j is not None]
                found[linked, [self.successor[i] for i in linked]] += 1
        return found / sweeps

    def _taken(self, i: int, j: int) -> dict[int, int | None]:
        """Row i takes j; its own successor goes to the predecessor of j. A link that is there is cut."""
        after, before = self.successor[i], self.predecessor[j]
        if after == j:
            return {i: None}
        if before is None:
            return {i: j}
        return {i: j, before: after}

    def _inserted(self, i: int, k: int) -> dict[int, int | None]:
        """A lone k is put between i and its successor; or, if it follows i, is taken out of its track."""
        after = self.successor[i]
        if after == k:
            return {i: self.successor[k], k: None} if self.successor[k] is not None else {}
        alone = self.predecessor[k] is None and self.successor[k] is None
        return {i: k, k: after} if alone and after is not None else {}

    def _exchanged(self, a: int, b: int) -> dict[int, int | None]:
        """Two detections of a frame change their places in the partition."""
        change = {a: self.successor[b], b: self.successor[a]}
        for one, other in ((a, b), (b, a)):
            before = self.predecessor[one]
            if before is not None:
                change[before] = other
        return change

    def _try(self, change: dict[int, int | None]) -> None:
        """Make a change of successors with the probability of Metropolis, if its links may be made."""
        if any(j is not None and (i, j) not in self.allowed for i, j in change.items()):
            return
        touched = set(change) | {self.successor[i] for i in change} | set(change.values())
        rows = [row for row in touched if row is not None]
        old = {i: self.successor[i] for i in change}
        before = self._weight(rows)
        self._set(change)
        gain = self._weight(rows) - before
        if gain < 0 and self.rng.random() >= np.exp(gain):
            self._set(old)

    def _set(self, change: dict[int, int | None]) -> None:
        for i in change:
            j = self.successor[i]
            if j is not None and self.predecessor[j] == i:
                self.predecessor[j] = None
        for i, j in change.items():
            self.successor[i] = j
            if j is not None:
                self.predecessor[j] = i

    def _weight(self, rows: list[int]) -> float:
        """Log weight of all tracks that hold one of the rows."""
        return sum(map(self.weights.of, {self._track(row) for row in rows}))

    def _track(self, row: int) -> Track:
        while (before := self.predecessor[row]) is not None:
            row = before
        track = [row]
        while (after := self.successor[track[-1]]) is not None:
            track.append(after)
        return tuple(track)
