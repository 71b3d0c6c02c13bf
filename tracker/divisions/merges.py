"""Merges: two tracks that become one because particles fuse; these are divisions in reversed time.

Two particles that appear as one spot for a while merge as often as they separate, so neither is accepted.
Therefore divisions or merges are found in a movie, never both.
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
    """Assign track ends to merged particles, with the odds of a merge against a chance neighbour.

    Parameters
    ----------
    movie, linking, model, log_density, shift
        As in `find_divisions`. Ends are detections without a successor, before the last frame.

    Returns
    -------
    Linking, Branches
        Links differ from the input if a merging particle had been linked to a neighbour.
    """
    behind = shift_backward(linking.before, shift)
    back, found = find_divisions(movie.backward(), linking.backward(), model, log_density[::-1], behind)
    last = len(movie.frame) - 1
    return back.backward(), Branches(last - found.target, last - found.source, found.probability)
