"""Refinement: a whole movie is linked again and again by a model, with what is known of every particle.

First by what all probable links tell of both ends of every pair (`weighed_softly`), then by the Kalman filter
along the links of the pass before, forward and backward in time (`link_pass`).

`linking`                the model, and what a pass found
`movie`, `candidates`    detections as the kernels want them; which may be linked at all
`bridges`                links over gaps, where the past expects the particle
`sweep`                  what all probable links tell of every particle, from the past and from the future
`headings`               the same, apart for each that may be the one before: where many links are wrong
`weigh`, `looks`         one pass: pairs weighed by what is known of both ends, the best linked; the two kinds
`windows`                the same in parts of a movie, where a whole one would not fit the memory
`untangle`               tracks that hold each other's tails or detections, by the likelihood of both
`choose`                 how probable links are at last; those expected to agree best with the truth
`exchanged`              how probable it is that two tracks have each other's detection
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..detections import Detections
from ..linking import Links
from .bridges import with_gaps
from .candidates import pairs_of
from .linking import Linking, LinkModel
from .looks import BY_DETECTIONS
from .movie import Movie, movie_of
from .weigh import link_pass

_STILL = 0.01
"""Change of a link's trust that is none."""


def refine(
    detections: Detections,
    model: LinkModel,
    *,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
    passes: int = 10,
    solver: str = "bid_and_augment",
    workers: int = 1,
) -> Links:
    """Link a movie by a model that is known, pass after pass until no link and no trust changes.

    Parameters
    ----------
    detections : Detections
    model : LinkModel
        In units of position x spacing.
    spacing : (float, float, float)
    passes : int
        At most this many.
    solver : str
    workers : int
        Threads.

    Returns
    -------
    Links
        Cost is minus the log odds of a link; cost, margin and gap in nats.

    Examples
    --------
    >>> from ..motion import Motion
    >>> seen = Detections.from_table([0, 0, 1, 1, 2, 2], [[0, 0, x] for x in (0, 9, 2, 7, 4, 5.2)])
    >>> motion = Motion.constant_velocity((2.0,), noise=(0.1,))
    >>> model = LinkModel(motion, follow=(0.9,), end=0.1, start=0.1, gate=(9.0,))
    >>> refine(seen, model).pairs.tolist()
    [[0, 2], [1, 3], [2, 4], [3, 5]]
    """
    movie = movie_of(detections, spacing, interval=1)
    shift = np.zeros_like(movie.position)
    return links_of(
        movie, settled_linking(movie, model, shift, passes=passes, solver=solver, workers=workers)
    )


def settled_linking(
    movie: Movie,
    model: LinkModel,
    shift: NDArray[np.float64],
    *,
    passes: int = 10,
    solver: str = "bid_and_augment",
    workers: int = 1,
) -> Linking:
    """The last pass, and all pairs that it weighed; as in `refine`.

    Parameters
    ----------
    movie : Movie
    model : LinkModel
        In units of its positions.
    shift : (N, axes) float64 array
        Displacement to the next frame that neighbours predict.
    passes, solver, workers
        As in `refine`.
    """
    near = pairs_of(movie, model.gate, workers=workers)
    none = Linking.none(len(movie.frame))
    pairs = with_gaps(movie, near, model, shift, workers=workers)
    linking, pairs = BY_DETECTIONS.link(movie, pairs, model, none, shift, solver=solver, workers=workers)
    for _ in range(passes - 1):
        known = linking
        linking = link_pass(movie, pairs, model, known, shift, solver=solver, workers=workers)
        if np.abs(known.trust - linking.trust).max(initial=0.0) < _STILL and not linking.changed.any():
            break
    return linking


def links_of(movie: Movie, linking: Linking) -> Links:
    """Links between the detections as they were given, sorted by source.

    Parameters
    ----------
    movie : Movie
        All of it.
    linking : Linking

    Returns
    -------
    Links
        Cost is minus the log odds of a link; cost, margin and gap in nats.
    """
    place = np.empty(len(movie.order), dtype=np.int64)
    place[movie.order] = np.arange(len(movie.order))
    source = place[linking.follower[place] >= 0]
    return Links(
        np.column_stack([movie.order[source], movie.order[linking.follower[source]]]),
        -linking.gain[source],
        linking.margin[source],
        linking.gap,
        probability=linking.trust[source],
    )
