"""Arguments of the kernels, as named tuples.

E links, N detections, K classes, D axes. `f8` are float64, `f4` float32, `i4` int32 and `i8` int64 arrays.
The number of axes is that of arrays: in a type, it would have movies in 2D compile all kernels again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.integer]


class Steps(NamedTuple):
    """The motion model: variance (K, D), correlation, share, renewal, entry (K,), step_scale (T,), all f8.

    noise (D,) f8 is the variance of positions. The scale is that of each interval of the movie, of which
    there are several between frames if some were not recorded.
    """

    variance: Floats
    correlation: Floats
    share: Floats
    renewal: Floats
    entry: Floats
    step_scale: Floats
    noise: Floats


class Places(NamedTuple):
    """The movie: when (N,) i8, in intervals; of links away (E, D), prior, exclusion (E,) f4, lag (E,) i4.

    away is the place of the tail, moved by the flow, from the head; lag is in intervals; exclusion is
    (R C)^-omega: times the likelihood ratio, it gives the odds.
    """

    when: Ints
    away: Singles
    prior: Singles
    exclusion: Singles
    lag: Ints


class Direction(NamedTuple):
    """One direction of time: incoming and outgoing links of each detection, and their ends.

    in_start, out_start (N + 1,) i8; in_link, out_link, far, near (E,) i4; way 1 or -1; n (N,) f8 the
    probability of no incoming link to the power 1 / omega; competing (E,) f4 the weight of a link where it
    comes in, over its likelihood: C^(1 - omega) R^-omega forward; most, the most incoming links of one.
    """

    in_start: Ints
    in_link: Ints
    out_start: Ints
    out_link: Ints
    far: Ints
    near: Ints
    way: int
    n: Floats
    competing: Singles
    most: int


class Messages(NamedTuple):
    """Messages of a filter.

    likelihood (E, K) f8 of a link by what came before; weight (E, K) f4 of it where it comes in; fresh (N,)
    f8 of no incoming link, total (N,) f8 their sum before it was divided out; state (E, K, D, 5) f4 of
    position and step at its far end: means x, s, covariances xx, xs, ss.
    """

    likelihood: Floats
    weight: Singles
    state: Singles
    fresh: Floats
    total: Floats


class Moments(NamedTuple):
    """Expected sufficient statistics of a link, given that it is true; empty if not requested.

    shares (E, K, 2) f4: the probabilities that its step s' goes on from the one before, s, or is drawn anew.
    sums (E, K, D, 4) f4: of s'² if it goes on, of s'² if it is drawn anew, of s s' and of s². residual
    (E, D) f4, of (y - x)² at the head.
    """

    shares: Singles
    sums: Singles
    residual: Singles


class Hypotheses(NamedTuple):
    """Ways in which two tracks may have taken their detections: H before a frame, and H after it.

    log_weight (2, H) f8; row (2, H, 2) i8 the last detection of either track, or -1; way (2, H, 2) i8 that by
    which the last detection of either path was taken; alone (2, H, 2) i8 whether either track has only one
    detection; wrong (2, H, L, 2) f8 the probability that the link into it in each frame is wrong; weight
    (4 H + 2, K) and state (4 H + 2, K, D, 5) f4 the filters of both tracks, and room for the two of a frame.
    """

    log_weight: Floats
    row: Ints
    way: Ints
    alone: Ints
    wrong: Floats
    weight: Singles
    state: Singles
