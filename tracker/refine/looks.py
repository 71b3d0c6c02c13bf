"""Looks: how a movie is linked before any of its links is known.

By what is believed of every detection (`sweep`), or of every probable pair (`headings`).
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
"""Probability below which a pair is not looked at again."""


@dataclass(frozen=True)
class Look:
    """How a movie is looked at.

    Parameters
    ----------
    sweep : callable
        Tells what the past expects, before gaps are closed, as `swept` does.
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
            Such as `with_gaps` finds.
        known : Linking
            Of the pass before, only to tell what changed.
        movie, model, shift, solver, workers
            As in `link_pass`.

        Returns
        -------
        Linking, Pairs
            And the pairs that are worth another look.
        """
        return linked(self.weigh(movie, pairs, model, shift, workers=workers), known, solver, workers)


BY_DETECTIONS = Look(swept, weighed_softly)
BY_HEADINGS = Look(headed, weighed_by_headings)


def look_of(model: LinkModel, *, closely: bool) -> Look:
    """By headings if asked for and particles keep their way; by what is believed of detections otherwise.

    Parameters
    ----------
    model : LinkModel
    closely : bool
        Whether headings are asked for.
    """
    return BY_HEADINGS if closely and model.motion.persistence > 0 else BY_DETECTIONS


def linked(found: Weighed, known: Linking, solver: str, workers: int) -> tuple[Linking, Pairs]:
    """The best links of pairs that were weighed, and the pairs that are worth another look.

    Parameters
    ----------
    found : Weighed
    known, solver, workers
        As in `Look.link`.
    """
    linking, pairs = solved(found, known, solver, workers=workers), found.pairs
    return linking, pairs.where(linking.probability > _IMPROBABLE)
