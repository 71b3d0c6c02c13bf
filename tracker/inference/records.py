"""Arguments of the kernels, as named tuples.

E links, N detections, K classes, D axes. `f8` are float64, `i4` int32 and `i8` int64 arrays. The number of
axes is that of a tuple, which the compiler knows, so that it unrolls the loops over them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


class Steps(NamedTuple):
    """The motion model: variance (K, D), correlation, share, renewal, entry (K,), step_scale (T,) f8.

    The scale is that of each interval of the movie, of which there are several between frames if some were
    not recorded.
    """

    variance: Floats
    correlation: Floats
    share: Floats
    renewal: Floats
    entry: Floats
    step_scale: Floats
    noise: tuple[float, ...]


class Places(NamedTuple):
    """The movie: when (N,) i8, in intervals; of links away (E, D) and prior (E,) f8, and lag (E,) i4.

    away is the place of the tail, moved by the flow, from the head; lag is in intervals.
    """

    when: Ints
    away: Floats
    prior: Floats
    lag: Ints


class Direction(NamedTuple):
    """One direction of time: incoming and outgoing links of each detection, and their far ends.

    in_start, out_start (N + 1,) i8; in_link, out_link, far (E,) i4; way 1 or -1; alone (N,) f8 the
    probability of no incoming link to the power 1 / omega, power 1 - omega; own, rival (E,) f8 the
    competitors of a link where it comes in, and where it goes out; most, the most incoming links of one.
    """

    in_start: Ints
    in_link: Ints
    out_start: Ints
    out_link: Ints
    far: Ints
    way: int
    alone: Floats
    power: float
    own: Floats
    rival: Floats
    most: int


class Messages(NamedTuple):
    """Messages of a filter.

    likelihood (E, K) f8 of a link by what came before; weight (E, K) of it where it comes in, fresh (N,) of
    no incoming link, total (N,) their sum before it was divided out; state (E, K, D, 5) of position and step
    at its far end: means x, s, covariances xx, xs, ss.
    """

    likelihood: Floats
    weight: Floats
    state: Floats
    fresh: Floats
    total: Floats


class Moments(NamedTuple):
    """Expected sufficient statistics of a link, given that it is true; empty if not requested.

    chance (E, K, 2) f8: `continued` and `renewed`, the probabilities that its step s' goes on from the one
    before, s, or is drawn anew. sums (E, K, D, 4) f8: `square` and `fresh_square`, of s'² of either;
    `product` and `before_square`, of s s' and s². residual (E, D) f8, of (y - x)² at the head.
    """

    chance: Floats
    sums: Floats
    residual: Floats

    @property
    def continued(self) -> Floats:
        return self.chance[..., 0]

    @property
    def renewed(self) -> Floats:
        return self.chance[..., 1]

    @property
    def square(self) -> Floats:
        return self.sums[..., 0]

    @property
    def fresh_square(self) -> Floats:
        return self.sums[..., 1]

    @property
    def product(self) -> Floats:
        return self.sums[..., 2]

    @property
    def before_square(self) -> Floats:
        return self.sums[..., 3]
