"""The exact posterior over partitions of detections into tracks, by enumeration: an oracle.

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
