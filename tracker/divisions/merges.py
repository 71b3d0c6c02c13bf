"""Merges: two tracks that become one, where particles fuse, are divisions in the movie run backward.

Two particles that are seen as one spot for a while merge as often as they part, and neither is believed; so a
movie shows divisions or merges, not both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..refine.linking import Linking, LinkModel, shift_backward
from ..refine.movie import Movie
from . import Branches, find_divisions


def find_merges(
    movie: Movie,
    linking: Linking,
    model: LinkModel,
    log_density: NDArray[np.float64],
    shift: NDArray[np.float64],
) -> tuple[Linking, Branches]:
    """Assign ends to what they may have become, by the odds of a merge against a neighbour by chance.

    Parameters
    ----------
    movie, linking, model, log_density, shift
        As in `find_divisions`. Ends are detections without one after, before the last frame.

    Returns
    -------
    Linking, Branches
        Links are other ones where what fused had been linked to a neighbour.
    """
    behind = shift_backward(linking.before, shift)
    back, found = find_divisions(movie.backward(), linking.backward(), model, log_density[::-1], behind)
    last = len(movie.frame) - 1
    return back.backward(), Branches(last - found.target, last - found.source, found.probability)
