"""Looks: the two ways to link a movie before any link is known.

One uses a belief for each detection (`sweep`), the other one for each probable pair (`headings`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .candidates import Pairs
from .headings import headed, weighed_by_headings
from .linking import Linking, LinkModel
from .movie import Movie
from .sweep import Swept, swept
from .weigh import Weighed, solved, weighed_softly

_IMPROBABLE = 6e-4
"""Probability below which a pair is dropped for later passes."""


@dataclass(frozen=True)
class Look:
    """The functions with which a movie is linked.

    Parameters
    ----------
    sweep : callable
        Returns beliefs from the past, for the search of gap links, as `swept` does.
    weigh : callable
        Weighs pairs, as `weighed_softly` does.
    """

    sweep: Callable[..., Swept]
    weigh: Callable[..., Weighed]

    def link(
        self,
        movie: Movie,
        pairs: Pairs,
        model: LinkModel,
        known: Linking,
        shift: NDArray[np.float64],
        *,
        solver: str = "bid_and_augment",
        workers: int = 1,
    ) -> tuple[Linking, Pairs]:
        """Link the movie once; no earlier links are needed.

        Parameters
        ----------
        pairs : Pairs
            Pairs as returned by `with_gaps`.
        known : Linking
            Links of the previous pass, used only to mark changes.
        movie, model, shift, solver, workers
            As in `link_pass`.

        Returns
        -------
        Linking, Pairs
            The result, and the pairs for later passes.
        """
        return linked(self.weigh(movie, pairs, model, shift, workers=workers), known, solver, workers)


BY_DETECTIONS = Look(swept, weighed_softly)
BY_HEADINGS = Look(headed, weighed_by_headings)


def look_of(model: LinkModel, *, closely: bool) -> Look:
    """Headings, if they are requested and particles have persistence; otherwise beliefs per detection.

    Parameters
    ----------
    model : LinkModel
    closely : bool
        Whether headings are requested.
    """
    return BY_HEADINGS if closely and model.motion.persistence > 0 else BY_DETECTIONS


def linked(found: Weighed, known: Linking, solver: str, workers: int) -> tuple[Linking, Pairs]:
    """The best links among weighed pairs, and the pairs for later passes.

    Parameters
    ----------
    found : Weighed
    known, solver, workers
        As in `Look.link`.
    """
    linking, pairs = solved(found, known, solver, workers=workers), found.pairs
    return linking, pairs.where(linking.probability > _IMPROBABLE)
