"""The function `track`: from detections to tracks, for the command line, the napari plugin and Python."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from .compute.compiling import compilation_reported
from .compute.timing import lap
from .errors import SettingsError
from .formats.coerce import DetectionsLike, detections_of
from .formats.tables.columns import AS_NAMED
from .gated.batches import account
from .gated.linking import Links, no_links
from .gated.movie import gated_links
from .learned import learned_links
from .particles.detections import Detections
from .particles.reliability import sentence_on, warning_on
from .particles.remarks import at_first_sight, doubled, has_two_frames
from .particles.tracks import Tracks
from .settings.declare import is_number
from .settings.device import GPU_FROM_DETECTIONS, GPU_FROM_DETECTIONS_LEARNED, device_for
from .settings.keywords import TrackingValues, with_values
from .settings.tracking import TrackingSettings

if TYPE_CHECKING:
    from .learned.summary import Summary
    from .pins import Pin

__all__ = ["TrackingRun", "TrackingSettings", "run_of", "track", "tracked"]
_LOG = logging.getLogger("outbid")

_NAMED = 5
"""Guard: unmatched pins that a warning names."""


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
        candidates_on, solved_on, margins_on; swept_on, where a model was learned. With pins: pins and
        unmatched_pins, their numbers.
    learned : Summary or None
        What was learned from the movie, if no `max_distance` was set and two frames hold detections.
    unmatched : tuple of Pin
        Pins whose detections are not there, which are left out.
    """

    tracks: Tracks
    settings: TrackingSettings
    stats: Mapping[str, int | float | str]
    learned: Summary | None = None
    unmatched: tuple[Pin, ...] = ()

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on what was linked: frames or rows that are missing, or there twice.

        Examples
        --------
        >>> track(Detections.from_table([], [])).remarks
        ('There are no detections, so nothing is linked. Is this the right file?',)
        """
        seen, used = self.tracks.detections, self.settings
        messages = at_first_sight(seen, max_distance=used.max_distance, max_gap=used.max_gap)
        return (*messages, *doubled(seen).messages())

    @property
    def summary(self) -> str:
        """Sentence with the number of tracks and the expected number of wrong links."""
        return sentence_on(self.tracks)

    @property
    def warning(self) -> str:
        """A warning if many links may be wrong, columns give away places or pins are not found; or empty."""
        messages = self.learned.warning if self.learned else "", unmatched_said(self.unmatched)
        return " ".join(filter(None, [warning_on(self.tracks), *messages]))

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
    columns: Mapping[str, str] | None = AS_NAMED,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **values: Unpack[TrackingValues],
) -> TrackingRun:
    """Link detections to tracks: frame to frame by optimal assignment, then over gaps.

    Parameters
    ----------
    detections : Detections, path, data frame, mapping or array
        See `outbid.formats.coerce.detections_of` for what holds detections.
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
    settings = _checked(settings, values)
    with compilation_reported(bar=progress is None):
        run = tracked(detections, settings, _threads(workers), progress)
    _LOG.info("%s", run.summary)
    if run.warning:
        _LOG.warning("%s", run.warning)
    return run


def _checked(settings: TrackingSettings | None, values: TrackingValues) -> TrackingSettings:
    """The settings with the values that replace some of them."""
    if settings is not None and not isinstance(settings, TrackingSettings):
        raise TypeError(
            f"settings are TrackingSettings, not {type(settings).__name__}. For a gate of 3: "
            "TrackingSettings(max_distance=3.0)."
        )
    return with_values(settings or TrackingSettings(), values, "track")


def _threads(workers: int | None) -> int:
    if workers is not None and not (is_number(workers) and workers >= 1):
        raise SettingsError(f"workers is {workers!r}; it must be 1 or more.")
    return workers or os.cpu_count() or 1


def tracked(
    detections: Detections,
    settings: TrackingSettings,
    workers: int,
    progress: Callable[[int, int], None] | None,
    cache: dict[tuple[int, int], Links] | None = None,
) -> TrackingRun:
    """Link with a learned model, or with a gate; without logging. `cache`: see `link_frames`."""
    used = _with_device(settings, len(detections))
    lap("device")
    seen = used.edited(detections).detections
    if not has_two_frames(detections if used.max_distance is None else seen):
        return run_of(detections, no_links(), used)
    if used.max_distance is None:
        learned, links = learned_links(detections, used, workers, progress)
        if tuple(used.spacing) == (1, 1, 1):
            learned = replace(learned, unit=detections.calibration.symbol)
        return run_of(detections, links, used, learned)
    return run_of(detections, gated_links(seen, used, workers, progress, cache), used)


def _with_device(settings: TrackingSettings, count: int) -> TrackingSettings:
    """The settings that are used for so many detections: the device, and no gaps where a gate has none."""
    asked = settings.device if settings.periodic is None else "cpu"
    if settings.max_distance is None:
        return replace(settings, device=device_for(asked, count, GPU_FROM_DETECTIONS_LEARNED))
    device = device_for(asked, count, GPU_FROM_DETECTIONS)
    return replace(settings, device=device, max_gap=settings.max_gap or 0)


def run_of(
    detections: Detections, links: Links, used: TrackingSettings, learned: Summary | None = None
) -> TrackingRun:
    """Sum up: the tracks of these links between the edited detections, and statistics of the run."""
    edits = used.edited(detections)
    seen = edits.detections
    tracks = Tracks(seen, links.pairs, links.cost, links.margin, links.probability)
    decided = None if learned is None else "cpu" if links.solved_elsewhere else used.device
    stats: dict[str, int | float | str] = {
        "links": len(links.pairs), "gap_links": _gap_links(seen, links, learned),
        "divisions": int((tracks.successors > 1).sum()) if tracks.branches else 0,
        "merges": int((tracks.predecessors > 1).sum()) if tracks.branches else 0,
        "tracks": tracks.track_count, "worst_gap": links.gap, "solver": used.solver,
        **account(links.batches, used.device, exact_margins=used.exact_margins, decided=decided),
    }  # fmt: skip
    lap("tracks")
    unmatched = edits.unmatched + used.pins_in(seen).unmatched if used.stated else ()
    stats |= {"pins": len(used.stated), "unmatched_pins": len(unmatched)} if used.stated else {}
    return TrackingRun(tracks, used, stats, learned, unmatched)


def _gap_links(detections: Detections, links: Links, learned: Summary | None) -> int:
    """How many links join frames that are not consecutive."""
    if not len(links.pairs):
        return 0
    when: NDArray[np.integer] = detections.frame
    usual = 1.5
    if learned is not None and learned.time is not None:  # what was not recorded is no gap
        when = np.unique(when, return_inverse=True)[1]
    elif learned is not None:
        usual *= learned.interval
    source, target = links.pairs.T
    return int(np.count_nonzero(np.subtract(when[target], when[source], dtype=np.int64) > usual))


def unmatched_said(pins: tuple[Pin, ...]) -> str:
    """A sentence on pins whose detections are not there; empty if there are none."""
    if not pins:
        return ""
    named = "; ".join(map(str, pins[:_NAMED])) + (" …" if len(pins) > _NAMED else "")
    return f"Pins left out, for a detection that they name is not there: {named}."
