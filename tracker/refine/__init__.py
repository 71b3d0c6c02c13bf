"""Refinement: link a movie in several passes with a given model, using past and future of particles.

The first pass uses all probable links before and after each pair (`weighed_softly`). Later passes use a
Kalman filter along the links of the previous pass, forward and backward in time (`link_pass`).

`linking`                the model, and the result of a pass
`movie`, `candidates`    detections in the form that kernels read; pairs that may be linked
`bridges`                candidates for gap links, at the predicted positions
`sweep`                  beliefs about each particle from all probable links in its past and future
`headings`               the same, separately for each possible predecessor, if many links are wrong
`weigh`, `looks`         one pass: weigh pairs, choose the best links; the two kinds of passes
`windows`                the same in parts of a movie that does not fit into memory
`untangle`               exchange of tails or detections between two tracks, by their joint likelihood
`choose`                 final probabilities; links with the best expected agreement with the truth
`exchanged`              probability that two tracks have exchanged a detection
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
"""Change of the trust of a link that counts as zero."""


def refine(
    detections: Detections,
    model: LinkModel,
    *,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
    passes: int = 10,
    solver: str = "bid_and_augment",
    workers: int = 1,
) -> Links:
    """Link a movie with a known model, in passes, until no link and no trust changes.

    Parameters
    ----------
    detections : Detections
    model : LinkModel
        In units of position x spacing.
    spacing : (float, float, float)
    passes : int
        Largest number of passes.
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
    """The last pass and its pairs; see `refine`.

    Parameters
    ----------
    movie : Movie
    model : LinkModel
        In units of the positions of the movie.
    shift : (N, axes) float64 array
        Displacement to the next frame predicted by neighbours.
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
    """Links between the original detections, sorted by source.

    Parameters
    ----------
    movie : Movie
        The whole movie.
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
