"""The function `track`: from detections to tracks, for the command line, the napari plugin and Python."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from ._arrays import free_device_memory, free_memory, to_device
from ._compiling import compilation_reported
from ._timing import lap
from .assignment import SOLVERS, solver_named
from .batches import account
from .columns import check_columns, recorded
from .detections import Detections
from .device import device_for, refuse_unknown
from .errors import SettingsError
from .formats.columns import AS_NAMED
from .gaps import close_gaps
from .given import DetectionsLike, detections_of
from .known import check_known
from .linking import LinkCosts, Links, link_frames, no_links
from .matching import COSTS, check_box, check_costs
from .reliability import sentence_on, warning_on
from .remarks import at_first_sight, doubled, has_two_frames
from .setting_values import TrackingValues, with_values
from .tracks import Tracks

if TYPE_CHECKING:
    from .summary import Summary

_LOG = logging.getLogger("outbid")

WORTH_A_GPU = 3_000_000
"""Number of detections below which `auto` uses the CPU.

Loading CuPy takes 0.7 s. From the shell, Parquet in and out, an H200 and 16 cores took 2.9 s and 2.0 s for a
million detections with 15 candidates each, 3.0 s and 2.8 s for three million; with few cores it pays sooner.
"""


@dataclass(frozen=True)
class TrackingSettings:
    """All settings that determine the result of `track`; values are validated.

    Parameters
    ----------
    max_distance : float, optional
        Gate: the farthest a particle may move from a frame to the next, in the unit of position x spacing.
        Without one motion and detection are learned from the detections, and links follow from the
        posterior over all links of the movie, by the past and the future of every particle.
    cost : {"euclidean", "squared"}
        Cost of a link: its length or its length squared. This and `unmatched_cost` need a `max_distance`.
    unmatched_cost : float, optional
        Cost of leaving a detection unlinked, for each of the two sides. Default: half of the cost at
        the gate. The cost at the gate itself is the usual choice elsewhere: more links, more wrong ones.
    spacing : (float, float, float)
        Size of a voxel along z, y, x: positions are multiplied by it before distances are taken.
    max_gap : int, optional
        For how many frames a particle may be missing and its track still be joined; 0 joins none. Default:
        0 with a `max_distance`, else learned, as how often particles are missed; frames that were not
        recorded, in which none of many particles is seen, then do not count.
    gap_distance : float, optional
        Gate of gap closing. Default: `max_distance`.
    divisions : bool
        Whether tracks that start beside another may be its daughters, where the movie gives evidence of
        divisions; only without a `max_distance`.
    merges : bool
        Whether tracks that end beside another may have fused with it, where the movie gives evidence of that;
        only without a `max_distance`. If both are about as frequent, spots cross, and none is accepted.
    known : mapping of str to float or (float, float, float)
        Values that are given, not learned: step, noise and gate (one, or one for each of z, y, x, in the
        unit of position x spacing), persistence (frames), end, start, miss and clutter (probabilities, of
        a detection). Step is the standard deviation of the displacement seen along an axis in one frame.
    exact_margins : bool
        Whether the margin of every link is exact, by solving without the link, instead of a lower bound;
        needs an exact solver.
    solver : str
        A name in `outbid.assignment.SOLVERS`, or that of a variant with settings, such as
        ``auction:fixed(epsilon=1)``. Costs of links are whole numbers then, of which 2^26 make the smaller of
        the unmatched cost and the cost at the gate.
    device : {"auto", "cpu", "gpu"}
        Where to compute.
    periodic : tuple of 3 float, optional
        Size of a periodic box (z, y, x), in the unit of position times spacing; 0: not periodic. On the CPU.
    column : mapping of str to str, "auto" or None
        Features that help to link, beside those that `outbid.detect` wrote ("auto": these alone), and their
        kinds: number, angle=180 (the period), label, vector (of a pattern, or lists), none; "" by the values.

    Raises
    ------
    SettingsError
        If a value makes no sense; the message says which values do.

    Examples
    --------
    >>> TrackingSettings(max_distance=5.0).cost
    'euclidean'
    >>> TrackingSettings(max_distance=-1)
    Traceback (most recent call last):
    outbid.errors.SettingsError: max_distance is -1; it must be 0 or more.
    """

    max_distance: float | None = None
    cost: str = "euclidean"
    unmatched_cost: float | None = None
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    max_gap: int | None = None
    gap_distance: float | None = None
    divisions: bool = True
    merges: bool = False
    known: Mapping[str, float | tuple[float, ...]] = field(default_factory=dict, hash=False)
    exact_margins: bool = False
    solver: str = "bid_and_augment"
    device: str = "auto"
    periodic: tuple[float, float, float] | None = None
    column: Mapping[str, str] | Literal["auto"] | None = field(default="auto", hash=False)

    def __post_init__(self) -> None:
        if self.max_distance is not None:
            check_costs(self.max_distance, self.cost, self.unmatched_cost)
            if self.known:
                raise SettingsError("known values fix what is otherwise learned: leave max_distance out.")
        elif (self.cost, self.unmatched_cost, self.gap_distance) != ("euclidean", None, None):
            raise SettingsError(
                "cost, unmatched_cost and gap_distance need a max_distance: without one all is learned."
            )
        check_known(self.known)
        check_columns(self.column, self.max_distance)
        if self.gap_distance is not None:
            check_costs(self.gap_distance, self.cost, None)
        if self.periodic is not None:
            check_box(self.periodic, self.device)
        if [0 < size < math.inf for size in self.spacing] != [True] * 3:
            raise SettingsError(f"spacing is {self.spacing}; it must be three sizes above 0: z, y, x.")
        if self.max_gap is not None and not (self.max_gap >= 0 and self.max_gap == int(self.max_gap)):
            raise SettingsError(f"max_gap is {self.max_gap}; it must be 0 or more frames, a whole number.")
        # Others are asked their settings, for which their modules are loaded.
        if self.solver not in SOLVERS:
            try:
                solver_named(self.solver)
            except ValueError as error:
                raise SettingsError(str(error)) from None
        if self.exact_margins and not solver_named(self.solver).is_exact:
            raise SettingsError(f"Exact margins are those of an optimum, which {self.solver} need not find.")
        refuse_unknown(self.device)

    def as_dict(self) -> dict[str, object]:
        """Plain values, for run records."""
        known = asdict(self) | {"spacing": list(self.spacing), "known": dict(self.known)}
        box, _ = known.pop("periodic"), known.pop("column")
        return known | ({} if box is None else {"periodic": list(box)}) | recorded(self.column)


def cost_at_gate(max_distance: float | None, cost: str) -> float:
    """The cost of a link as long as the gate, the usual `unmatched_cost` elsewhere.

    The cost is infinite, which `TrackingSettings` refuses, if there is no gate, or if the cost at the
    gate is no finite number.

    Examples
    --------
    >>> cost_at_gate(3.0, "squared"), cost_at_gate(1e200, "squared")
    (9.0, inf)
    """
    try:
        return math.inf if max_distance is None else math.pow(max_distance, COSTS[cost])
    except OverflowError:
        return math.inf


@dataclass(frozen=True, eq=False, repr=False)
class TrackingRun:
    """Result of `track`: the tracks, the settings used, and statistics of the run.

    Parameters
    ----------
    tracks : Tracks
    settings : TrackingSettings
        As they were used: `device` is the one to which the points were brought.
    stats : mapping
        links, gap_links, divisions, merges, tracks: counts; worst_gap: the largest gap between cost and
        lower bound among the assignments, 0 if all are optimal; solver; device: where the
        assignments were solved, cpu, gpu, or gpu and cpu; fallbacks: how often a problem did not fit the
        GPU's memory and was halved or solved on the host, or was solved there because the solver has no
        GPU kernels for it. On a GPU also what `Batches` counts, and where each stage ran:
        candidates_on, solved_on, margins_on; swept_on, where a model was learned.
    learned : Summary or None
        What was learned from the movie, if no `max_distance` was set and two frames hold detections.
    """

    tracks: Tracks
    settings: TrackingSettings
    stats: Mapping[str, int | float | str]
    learned: Summary | None = None

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on what was linked: frames or rows that are missing, or there twice.

        Examples
        --------
        >>> track(Detections.from_table([], [])).remarks
        ('There are no detections, so nothing is linked. Is this the right file?',)
        """
        seen, used = self.tracks.detections, self.settings
        said = at_first_sight(seen, max_distance=used.max_distance, max_gap=used.max_gap)
        return (*said, *doubled(seen).said())

    @property
    def summary(self) -> str:
        """Sentence with the number of tracks and the expected number of wrong links."""
        return sentence_on(self.tracks)

    @property
    def warning(self) -> str:
        """A warning if many links are expected to be wrong, or columns say where detections are; or empty."""
        return " ".join(filter(None, [warning_on(self.tracks), self.learned.warning if self.learned else ""]))

    def __repr__(self) -> str:
        return f"<TrackingRun: {self.summary}>"

    def _repr_html_(self) -> str:
        """The summary, a warning if there is one, and the tracks, for notebooks."""
        warning = f"<p><strong>{escape(self.warning)}</strong></p>" if self.warning else ""
        return f"<div>{warning}{self.tracks._repr_html_()}</div>"

    def to_dataframe(self) -> Any:
        """The tracks as a pandas DataFrame, as `Tracks.to_dataframe`."""
        return self.tracks.to_dataframe()


def track(
    detections: DetectionsLike,
    settings: TrackingSettings | None = None,
    *,
    columns: Mapping[str, str] = AS_NAMED,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **values: Unpack[TrackingValues],
) -> TrackingRun:
    """Link detections to tracks: frame to frame by optimal assignment, then over gaps.

    Parameters
    ----------
    detections : Detections, path, data frame, mapping or array
        See `outbid.given.detections_of` for what holds detections.
    settings : TrackingSettings, optional
        Default: all is learned.
    columns : mapping of str to str
        As for `outbid.read_detections`, where there are columns.
    workers : int, optional
        Threads; they do not change the result. Default: one a core.
    progress : callable, optional
        Called with (detections done, detections in all) as frames are linked.
    **values
        Fields of `TrackingSettings`, which replace those of `settings`: ``max_distance=5.0``.

    Returns
    -------
    TrackingRun

    Raises
    ------
    TypeError
        If there are no detections, no `TrackingSettings` or no setting of that name.
    SettingsError
        If `workers` is less than 1.
    ResourceError
        If the GPU was asked for and there is none, or the candidate pairs do not fit the memory.

    Examples
    --------
    >>> seen = Detections.from_table([0, 0, 1, 1], [[0, 0, 0], [0, 9, 9], [0, 9, 8], [0, 0, 1]])
    >>> run = track(seen, max_distance=3.0)
    >>> run.tracks.track_id.tolist(), run.stats["worst_gap"]
    ([0, 1, 1, 0], 0.0)
    >>> track(seen).tracks.track_id.tolist()  # no settings at all
    [0, 1, 1, 0]
    >>> track({"frame": [0, 1], "y": [5, 5], "x": [1, 2]}, max_distance=3.0)
    <TrackingRun: 1 track from 2 detections; 1 link, without probabilities.>
    """
    detections = detections_of(detections, columns=columns)
    if settings is not None and not isinstance(settings, TrackingSettings):
        raise TypeError(
            f"settings are TrackingSettings, not {type(settings).__name__}. For a gate of 3: "
            "TrackingSettings(max_distance=3.0)."
        )
    if workers is None:
        workers = os.cpu_count() or 1
    elif workers < 1:
        raise SettingsError(f"workers is {workers}; it must be 1 or more.")
    settings = with_values(settings or TrackingSettings(), values, "track")
    with compilation_reported(bar=progress is None):
        run = tracked(detections, settings, workers, progress)
    _LOG.info("%s", run.summary)
    if run.warning:
        _LOG.warning("%s", run.warning)
    return run


def tracked(
    detections: Detections,
    settings: TrackingSettings,
    workers: int,
    progress: Callable[[int, int], None] | None,
) -> TrackingRun:
    """Link with the gate that is set, or with a learned model; without logging."""
    if settings.max_distance is None:
        return _learned(detections, settings, workers, progress)
    asked = settings.device if settings.periodic is None else "cpu"
    device = device_for(asked, len(detections), WORTH_A_GPU)
    used = replace(settings, device=device, max_gap=settings.max_gap or 0)
    lap("device")
    if not has_two_frames(detections):
        return run_of(detections, no_links(), 0, used)
    return run_of(detections, *gated_links(detections, used, workers, progress), used)


def gated_links(
    detections: Detections,
    used: TrackingSettings,
    workers: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Links, int]:
    """Links with a given `max_distance`, the device used, and the number of links over gaps."""
    assert used.max_distance is not None
    costs = LinkCosts(
        used.max_distance, used.cost, used.unmatched_cost, used.solver, used.exact_margins, used.periodic
    )
    position = detections.position if used.spacing == (1, 1, 1) else detections.position * used.spacing
    place = to_device if used.device == "gpu" else np.asarray
    memory = int(0.8 * (free_device_memory() if used.device == "gpu" else free_memory()))
    links = link_frames(
        detections, position, costs, place=place, workers=workers, progress=progress, memory=memory
    )
    lap("linking")
    frame_links, gap = len(links.pairs), used.max_gap or 0
    # A gap has a gate of its own, and so an unmatched cost of its own unless one was set.
    gap_distance = used.max_distance if used.gap_distance is None else used.gap_distance
    gap_costs = replace(costs, max_distance=gap_distance)
    links = close_gaps(
        detections, position, links, gap, gap_costs, place=place, workers=workers, memory=memory
    )
    if gap:
        lap("gaps")
    return links, len(links.pairs) - frame_links


def _learned(
    detections: Detections,
    settings: TrackingSettings,
    workers: int,
    progress: Callable[[int, int], None] | None,
) -> TrackingRun:
    """Link with a model learned from the movie."""
    from .linked import WORTH_A_GPU_LEARNED, linked  # its kernels are loaded when they are needed
    from .periodic import in_box

    asked = settings.device if settings.periodic is None else "cpu"
    used = replace(settings, device=device_for(asked, len(detections), WORTH_A_GPU_LEARNED))
    if not has_two_frames(detections):
        return run_of(detections, no_links(), 0, used)
    learned, links = (linked if used.periodic is None else in_box)(detections, used, workers, progress)
    when, usual = detections.frame.astype("int64"), 1.5 * learned.interval
    if learned.time is not None:  # what was not recorded is no gap
        when, usual = np.unique(when, return_inverse=True)[1], 1.5
    source, target = when[links.pairs].T
    return run_of(detections, links, int((target - source > usual).sum()), used, learned)


def run_of(
    detections: Detections,
    links: Links,
    gap_links: int,
    used: TrackingSettings,
    learned: Summary | None = None,
) -> TrackingRun:
    """Make the `TrackingRun` from tracks and counts."""
    tracks = Tracks(detections, links.pairs, links.cost, links.margin, links.probability)
    stats: dict[str, int | float | str] = {
        "links": len(links.pairs),
        "gap_links": gap_links,
        "divisions": int((tracks.successors > 1).sum()) if tracks.branches else 0,
        "merges": int((tracks.predecessors > 1).sum()) if tracks.branches else 0,
        "tracks": tracks.track_count,
        "worst_gap": links.gap,
        "solver": used.solver,
        **account(links.batches, used.device, exact_margins=used.exact_margins, learned=learned is not None),
    }
    lap("tracks")
    return TrackingRun(tracks, used, stats, learned)
