"""Learned linking: prepare, learn, decide, sum up.

`prepare`    detections as arrays, sorted by position
`features`   columns that help to link
`model`      what is assumed of particles: motion, association, movie, gate
`inference`  the posterior over links under a model: joint probabilistic data association
`learn`      the model from the movie, by expectation and maximisation over `inference`
`lineage`    the posterior probability of divisions and merges, beside that of links
`linking`    all of these, for one movie
`periodic`   the same in a periodic box
`summary`    what was learned, in the user's units, as text and as plain values
`live`       links detections frame by frame while a movie is recorded
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..compute.compiling import compilation_shared
from ..compute.signatures import LATE

if TYPE_CHECKING:
    from ..gated.linking import Links
    from ..particles.detections import Detections
    from ..settings.tracking import TrackingSettings
    from .summary import Summary


def learned_links(
    detections: Detections,
    settings: TrackingSettings,
    workers: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Summary, Links]:
    """Link with a model learned from the movie; see `linking.linked`, and `periodic` for a periodic box."""
    from .linking import linked  # kernels are loaded when they are needed
    from .periodic import in_box

    with compilation_shared(LATE):
        if settings.periodic is not None:
            return in_box(detections, settings, workers, progress)
        return linked(detections, settings, workers, progress)
