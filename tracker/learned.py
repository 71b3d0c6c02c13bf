"""Learned linking: the function that `track` calls if no gate is given.

Two engines return results in the same form: `by_passes` links, learns and links again; `by_posterior`
finds the posterior over links. The function `learned_links` chooses between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from .calibrate import calibrate
from .calibrate.calibration import Calibration
from .detections import Detections
from .linking import Links


@dataclass(frozen=True)
class Asked:
    """Options of learned linking, with the meaning that they have in `TrackingSettings` and `track`.

    Parameters
    ----------
    spacing : (float, float, float)
        Size of a voxel along z, y, x.
    max_gap : int, optional
        Frames in which a particle may be missing. Default: learned.
    forward_only : bool
        Whether links use the past alone.
    divisions, merges : bool
        Whether they are looked for.
    known : mapping
        Values that are given, not learned.
    solver : str
    exact_margins : bool
        Whether margins are exact instead of lower bounds.
    workers : int
        Threads; they do not change the result.
    most_bytes : int, optional
        Memory that candidate pairs may take.
    progress : callable, optional
        Called with (detections done, detections in all).
    """

    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    max_gap: int | None = None
    forward_only: bool = False
    divisions: bool = True
    merges: bool = False
    known: Mapping[str, float | tuple[float, ...]] | None = None
    solver: str = "bid_and_augment"
    exact_margins: bool = False
    workers: int = 1
    most_bytes: int | None = None
    progress: Callable[[int, int], None] | None = None


_CROWDED = 0.7
"""Error level: expected share of right links below which the passes answer: in crowds EM learns too short
steps. Of particles that diffuse at kappa .4 link F1 is .51 by the passes, .47 by the posterior; level
at .3."""
Engine = Callable[[Detections, Asked], tuple[Calibration, Links]]


def learned_links(detections: Detections, asked: Asked | None = None) -> tuple[Calibration, Links]:
    """Learn the motion model from the detections of a movie, and link them by this model.

    The posterior knows no merges, needs the future, and finds fewer divisions: so the passes answer where one
    of these is asked for, and in crowds.

    Parameters
    ----------
    detections : Detections
    asked : Asked, optional

    Returns
    -------
    Calibration, Links

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> place = rng.uniform(0, 9, (200, 3)) + np.cumsum(rng.normal(0, 0.1, (12, 200, 3)), axis=0)
    >>> movie = Detections.from_table(np.repeat(np.arange(12), 200), place.reshape(-1, 3))
    >>> shown, links = learned_links(movie)
    >>> shown.step.round(2).tolist(), len(links.pairs)
    ([0.1, 0.1, 0.1], 2200)
    """
    asked = asked or Asked()
    if asked.divisions or asked.merges or asked.forward_only:
        return by_passes(detections, asked)
    found = by_posterior(detections, asked)
    if _right(found[1]) > _CROWDED:
        return found
    return by_passes(detections, replace(asked, progress=None))


def _right(links: Links) -> float:
    """Expected share of the links that are right; 0 of none."""
    assert links.probability is not None
    return float(links.probability.sum()) / max(len(links.pairs), 1)


def by_passes(detections: Detections, asked: Asked) -> tuple[Calibration, Links]:
    """Link, learn, and link again: `calibrate`."""
    return calibrate(
        detections, spacing=asked.spacing, max_gap=asked.max_gap, two_sided=not asked.forward_only,
        divisions=asked.divisions, merges=asked.merges, known=asked.known, solver=asked.solver,
        exact_margins=asked.exact_margins, workers=asked.workers, most_bytes=asked.most_bytes,
        progress=asked.progress,
    )  # fmt: skip


def by_posterior(detections: Detections, asked: Asked) -> tuple[Calibration, Links]:
    """Find the posterior over links, and decide: `posterior_links`."""
    from .posterior_links import linked

    return linked(detections, asked)
