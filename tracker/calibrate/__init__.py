"""Calibration: learn from the detections how particles move and how often they are missed, start and end.

The method is expectation-maximisation over links. The first step length is estimated from nearest neighbours,
whose distances are a mixture of true steps and distances to other particles. Then a part of the movie is
linked, motion and rates are estimated from all links weighted by their probability, and the part is linked
again until the links converge. Finally the whole movie is linked with the learned model (`passes`), divisions
are added, and the best of all probable links are chosen.

`calibration`, `known`   the learned values; values fixed by the user
`learning`               iterations on a part of the movie: link, learn, link again
`restarts`               further iterations if the first ones started with steps that were too short
`passes`                 linking of the whole movie with the model of the part
`maximise`               estimates of motion from probable links, with errors
`estimates`, `tails`     motion and noise from steps; heaviness of the tails
`rates`                  misses, starts, ends and clutter
`flow`, `registration`   displacements predicted by neighbours; registration of frames without links
`drift`                  motion of whole frames, by a vote of displacements
`pace`                   relative step length of all particles in each frame
`rehearsal`              bias of estimates from links, measured on a movie simulated with the model
`surfaces`               surfaces and fibres to which simulated particles are confined
`overlooked`             detection of particles whose motion is so different that no link follows them
`surveyor`               estimates without links: steps and rates (`survey`), share detected again (`census`)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ..detections import Detections
from ..divisions import Branches, find_divisions
from ..divisions.merges import find_merges
from ..linking import Links
from ..margins import with_exact_margins
from ..motion import Motion
from ..refine import links_of
from ..refine.choose import chosen
from ..refine.exchanged import doubted
from ..refine.linking import Linking, LinkModel
from ..refine.movie import Movie, movie_of
from .calibration import Calibration
from .drift import drift_of
from .estimates import first_step, neighbour_distances
from .known import Known
from .learning import PASSES, learnt_from
from .maximise import gate_of, uncertainty
from .passes import LAST_PASSES, Found, Means, settled, told
from .restarts import fuller
from .surveyor import Surveyor

_LOST, _CLUTTER = 0.1, 0.03
"""Initial probabilities of an end and of a start, and initial share of clutter among detections."""
_ROOM = 1.5
"""For sparse particles, the gate as a multiple of the distance to the nearest neighbour."""
_SLICE = 0.6
"""Least initial step, relative to the distance between the slices of a stack."""
_MISSING, _MOST_MISSING = 2, 10
"""Initial and largest number of frames in which a particle may be missing, if the user sets none."""
_UNLIKE = 0.1
"""Largest accepted difference between the part used for learning and the rest of a movie."""


def calibrate(
    detections: Detections,
    *,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
    max_gap: int | None = None,
    two_sided: bool = True,
    divisions: bool = True,
    merges: bool = False,
    known: Mapping[str, float | tuple[float, ...]] | None = None,
    solver: str = "bid_and_augment",
    exact_margins: bool = False,
    workers: int = 1,
    most_bytes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Calibration, Links]:
    """Learn a linking model from a movie, and link the movie with it.

    Parameters
    ----------
    detections : Detections
    spacing : (float, float, float)
        Size of a voxel along z, y, x.
    max_gap : int, optional
        Largest number of consecutive frames in which a particle may be missing. Default: learned, at most
        ten.
    two_sided : bool
        Whether links may use the future.
    divisions : bool
        Whether track starts are joined to mothers if there is evidence of divisions.
    merges : bool
        Whether track ends are joined to the merged particle if there is evidence of fusion.
    known : mapping, optional
        Values that are fixed instead of learned; keys are names in `known.NAMES`.
    solver : str
    exact_margins : bool
        Whether margins are exact instead of lower bounds.
    workers : int
        Threads.
    most_bytes : int, optional
        Memory limit for the candidate pairs.
    progress : callable, optional
        Called after each pass with the number of processed detections and the total for all possible passes.

    Returns
    -------
    Calibration, Links
        The cost is minus the log odds of a link, relative to the threshold at which a link is chosen. Cost,
        margin and gap are in nats. If tracks pass close to each other, a link may be less probable than its
        cost suggests.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> place = rng.uniform(0, 9, (200, 3)) + np.cumsum(rng.normal(0, 0.1, (12, 200, 3)), axis=0)
    >>> movie = Detections.from_table(np.repeat(np.arange(12), 200), place.reshape(-1, 3))
    >>> learned, links = calibrate(movie)
    >>> learned.step.round(2).tolist(), len(links.pairs)
    ([0.1, 0.1, 0.1], 2200)
    """
    movie = movie_of(detections, spacing, holes=max_gap is None)
    slices = movie.slices
    around = neighbour_distances(movie.position, movie.frame_start, workers=workers)
    drift = drift_of(movie, around, workers=workers)
    if drift is not None:
        movie = movie.moved(-drift)
        around = neighbour_distances(movie.position, movie.frame_start, workers=workers)
    # Where nothing moves, or nothing can be linked, any small step will do.
    sigma, _ = first_step(around, movie.axes)
    sigma = sigma or 1e-6 * movie.far
    room = _ROOM * around.spacing
    given = Known.of(known or {}, movie.names)
    # Who goes from slice to slice is nearest to strangers: by links within slices none ever would.
    step = given.step(np.maximum(sigma, _SLICE * slices))
    static = Motion.static(tuple(step.tolist()))
    model = given.held(
        LinkModel(static, (0.9,), _LOST, _LOST, gate_of(step, room), two_sided=two_sided, clutter=_CLUTTER)
    )
    means = Means(
        room, len(movie.frame_start) - 1, *_gaps(max_gap), given, solver, workers, most_bytes,
        Surveyor(movie, workers, sure="clutter" in given.told),
    )  # fmt: skip
    first, last = movie.middle()
    part = movie.part(first, last) if around.unlike(first, last) < _UNLIKE else movie
    work, linked = PASSES * len(part.frame) + (LAST_PASSES + 2) * len(movie.frame), [0]

    def tell(more: int) -> None:
        linked[0] += more
        if progress is not None and work:
            progress(len(movie.frame) * linked[0] // work, len(movie.frame))

    found = learnt_from(part, model, means, tell)
    found, means = fuller(part, found, model, means)
    if part is not movie:
        found = told(movie, found, means, tell)
    movie = movie.paced(found.pace)
    found = settled(movie, found, means, tell)
    linking, branches = _branched(movie, found, divisions=divisions, merges=merges)
    # Links and divisions are chosen together, by their likelihood.
    linking = linking if len(branches) else chosen(linking, found.model.clutter, solver)
    if two_sided and found.model.motion.persistence > 0 and found.bias.sobriety == (1.0, 0.0):
        linking = doubted(movie, found.model, linking, found.shift, workers=workers)
    linking = with_exact_margins(linking, branches, solver) if exact_margins else linking
    links = _with_branches(links_of(movie, linking), movie, branches)
    errors = uncertainty(found.learnt, found.bias, len(movie.frame))
    errors = {name: error for name, error in errors.items() if name not in given.told}
    if found.crowd == 0:
        drift = (0.0 if drift is None else drift) + _drift_of_flow(movie, found.shift)
    learnt = Calibration(
        found.model, found.crowd, found.learnt.step, errors, found.passes, movie.names,
        movie.interval, drift, tuple(given.told), movie.pace, movie.time,
    )  # fmt: skip
    return learnt, links


def _gaps(told: int | None) -> tuple[int, int]:
    """Initial and largest number of frames in which a particle may be missing."""
    return (_MISSING, _MOST_MISSING) if told is None else (told, told)


def _drift_of_flow(movie: Movie, shift: NDArray[np.float64]) -> NDArray[np.float64]:
    """(F, axes) offset of each frame: the sum of the mean flows of all previous frames."""
    sums = np.stack(
        [np.bincount(movie.frame, column, len(movie.frame_start) - 1) for column in shift.T], axis=1
    )
    ahead = sums / np.maximum(np.diff(movie.frame_start), 1)[:, None]
    return np.concatenate([np.zeros_like(ahead[:1]), np.cumsum(ahead, axis=0)[:-1]])


def _branched(movie: Movie, found: Found, *, divisions: bool, merges: bool) -> tuple[Linking, Branches]:
    """Add the links of divisions, or of merges if nothing divides."""
    linking, branches = found.linking, Branches.none()
    for asked, find in ((divisions, find_divisions), (merges, find_merges)):
        if asked and not len(branches):
            linking, branches = find(movie, found.linking, found.model, found.pairs.log_density, found.shift)
    return linking, branches


def _with_branches(links: Links, movie: Movie, found: Branches) -> Links:
    """Merge links and branch links, sorted by source and target; margins of branch links are unknown."""
    if not len(found):
        return links
    pairs = np.concatenate(
        [links.pairs, np.column_stack([movie.order[found.source], movie.order[found.target]])]
    )
    sure = np.minimum(found.probability, np.nextafter(1, 0))  # costs are finite
    cost = np.concatenate([links.cost, np.log1p(-sure) - np.log(sure)])
    margin = np.concatenate([links.margin, np.zeros(len(found))])
    known = np.empty(0) if links.probability is None else links.probability
    trust = np.concatenate([known, found.probability])
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return Links(pairs[order], cost[order], margin[order], links.gap, probability=trust[order])
