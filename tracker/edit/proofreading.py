"""Proofreading: a model that is held while pins come and go, and the links that are worth a look.

Tracks are a function of detections, model and pins: `resolve` gives what `outbid.track` gives with the same
settings and pins, in the time of a few sweeps.

    held = hold(detections, settings)          # learns once; of a gate there is nothing to learn
    now = resolve(held, pins)                  # as often as pins change
    for link in uncertain_links(now): ...               # the least probable first
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError
from ..particles.detections import Detections
from ..particles.remarks import has_two_frames
from ..particles.tracks import Tracks
from ..pins import Found, Pin, PinnedRows
from ..tracking import TrackingRun, TrackingSettings, run_of, tracked

if TYPE_CHECKING:
    from ..gated.linking import Links
    from ..learned.linking import FittedMovie

_LEAST = 1e-3
"""Error level: probability of a link below which it is no alternative."""
_SHOWN = 4
"""Guard: alternatives of an uncertain link."""


@dataclass(frozen=True, eq=False)
class FrozenModel:
    """Detections, settings and what was learned from them."""

    detections: Detections
    settings: TrackingSettings  # without pins
    workers: int
    learned: FittedMovie | None = None  # the model and the posterior without pins; None with a gate
    known: dict[tuple[int, int], Links] = field(default_factory=dict)
    """With a gate, links of runs of frames in which no pin acts, as they are found."""


class Resolved(NamedTuple):
    """Tracks under pins, and all candidate links.

    Parameters
    ----------
    run : TrackingRun
        Its settings have the pins.
    candidates : (E, 2) int64 array
        Rows of source and target of each candidate link, sorted; with pins obeyed.
    probability : (E,) float64 array
        Probability of each; NaN with a gate, which gives no probabilities.
    end, start, clutter : (N,) float64 arrays
        Probabilities that a detection is the last of its particle, is the first, and is clutter. NaN with a
        gate.
    found : Found
        The pins with the rows of their detections, and the pins without detections.
    """

    run: TrackingRun
    candidates: NDArray[np.int64]
    probability: NDArray[np.float64]
    end: NDArray[np.float64]
    start: NDArray[np.float64]
    clutter: NDArray[np.float64]
    found: Found

    @property
    def expected_wrong(self) -> float:
        """Expected number of wrong links; NaN with a gate."""
        chance = self.run.tracks.link_probability
        return float("nan") if chance is None else float((1 - chance).sum())


class UncertainLink(NamedTuple):
    """A detection with an uncertain successor.

    Parameters
    ----------
    row : int
    successors : tuple of int
        Rows of its present successors: empty if its track ends, two if it divides.
    value : float
        Probability of the present state; with a gate the margin of the link. The lowest come first.
    alternatives : tuple of (int, float)
        Row and probability of each possible successor, the most probable first, at most four and the present
        ones; row -1 is the end of the track, row -2 clutter. With a gate the present one alone, and NaN.
    """

    row: int
    successors: tuple[int, ...]
    value: float
    alternatives: tuple[tuple[int, float], ...]


def hold(
    detections: Detections,
    settings: TrackingSettings,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> FrozenModel:
    """Learn a model from the movie, or take the gate of the settings.

    Parameters
    ----------
    detections : Detections
    settings : TrackingSettings
        Their pins are ignored.
    workers : int, optional
        Threads. Default: one a core.
    progress : callable, optional
        Called with (detections done, detections in all).

    Examples
    --------
    >>> seen = Detections.from_table([0, 0, 1, 1], [[0, 0, 0], [0, 9, 9], [0, 9, 8], [0, 0, 1]])
    >>> held = hold(seen, TrackingSettings(max_distance=3.0))
    >>> resolve(held, [Pin("end", ((0, (0, 0, 0)),))]).run.tracks.links.tolist()
    [[1, 2]]
    """
    settings, workers = replace(settings, pins=()), workers or os.cpu_count() or 1
    if settings.max_distance is not None or not has_two_frames(detections):
        return FrozenModel(detections, settings, workers)
    if settings.periodic is not None:
        raise SettingsError("In a periodic box pins need a max_distance: set one.")
    from ..learned.linking import fit_movie

    used = replace(settings, device="cpu")
    return FrozenModel(detections, used, workers, fit_movie(detections, used, workers, progress))


def hold_again(frozen: FrozenModel, pins: Sequence[Pin]) -> FrozenModel:
    """The model learned once more, with these pins held; with a gate there is nothing to learn.

    Tracks under it are no longer what `outbid.track` gives with the pins, which learns without them.
    """
    if frozen.learned is None or not pins:
        return frozen
    from ..learned.linking import fit_again

    used = replace(frozen.settings, pins=tuple(pins))
    edits = used.edited(frozen.detections)
    found = used.pins_in(edits.detections)
    return replace(frozen, learned=fit_again(frozen.learned, frozen.detections, edits, found))


def resolve(frozen: FrozenModel, pins: Sequence[Pin] = ()) -> Resolved:
    """Tracks under a model that is held, and pins: what `outbid.track` gives with these.

    Detections that pins add, move or remove change the tracks near them; the model stays.

    Parameters
    ----------
    frozen : FrozenModel
    pins : sequence of Pin
        All that hold, not only new ones.

    Raises
    ------
    SettingsError
        If pins contradict each other.
    """
    used = replace(frozen.settings, pins=tuple(pins))
    edits = used.edited(frozen.detections)
    seen, found = edits.detections, used.pins_in(edits.detections)
    found = found._replace(unmatched=edits.unmatched + found.unmatched)
    if frozen.learned is None:
        cache = frozen.known if seen is frozen.detections else None  # of runs of frames as they were
        run, none = tracked(frozen.detections, used, frozen.workers, None, cache), np.full(len(seen), np.nan)
        links = run.tracks.links
        return Resolved(run, links, np.full(len(links), np.nan), none, none, none, found)
    from ..learned.linking import in_given_order, under_pins, with_edits

    movie = with_edits(frozen.learned, frozen.detections, edits)
    decided, order = under_pins(movie, found), movie.reading.order
    run = run_of(frozen.detections, in_given_order(decided.links, order), used, movie.summary)
    posterior, count = decided.tracks.posterior, len(seen)
    some = posterior.probability > _LEAST
    pairs = order[np.column_stack([posterior.candidates.tail[some], posterior.candidates.head[some]])]
    first = np.lexsort((pairs[:, 1], pairs[:, 0]))
    ends = np.full((3, count), np.nan)  # NaN for detections that learning ignored
    there = order >= 0
    ends[:, order[there]] = np.stack([posterior.death, posterior.birth, posterior.clutter])[:, there]
    end, start, clutter = ends
    pairs, probability = pairs[first], posterior.probability[some][first]
    _state_links(run.tracks, pairs @ np.array([count, 1]), probability)
    return Resolved(run, pairs, probability, end, start, clutter, found)


def _state_links(tracks: Tracks, key: NDArray[np.int64], probability: NDArray[np.float64]) -> None:
    """Write what the tracks state of links that are candidates, by increasing keys; of divisions it stays."""
    links, count = tracks.links, len(tracks.detections)
    alone = np.bincount(links[:, 0], minlength=count)[links[:, 0]] == 1
    wanted = links[alone] @ np.array([count, 1])
    place = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    known = key[place] == wanted if len(key) else np.zeros(len(wanted), np.bool_)
    if tracks.link_probability is not None:
        probability[place[known]] = tracks.link_probability[alone][known]


def write_candidates(path: str | os.PathLike[str], resolved: Resolved, *, overwrite: bool = False) -> None:
    """Write all candidate links, not only those of the tracks.

    Each has `probability`, `solution` (whether it is in the tracks) and `pin`: 1 if pins state it, -1 if they
    forbid it, else 0.

    Parameters
    ----------
    path : path-like
        ``.geff``: detections are nodes, candidates edges; `read_tracks` takes those of the solution. Another
        suffix: Parquet, a row a candidate, with rows and frames of its detections, `source` and `target`.
    resolved : Resolved
    overwrite : bool
        Whether an existing file may be replaced.
    """
    import pyarrow as pa

    from ..formats.graphs import geff_write
    from ..formats.tables import parquet

    path, seen = Path(path), resolved.run.tracks.detections
    record = {"command": "track", "settings": resolved.run.settings.as_dict()}
    count, rows = np.int64(max(len(seen), 1)), PinnedRows.of(resolved.found, len(seen))
    known = (resolved.candidates, resolved.run.tracks.links, rows.pairs, rows.forbidden)
    candidates, links, stated, forbidden = (each @ np.array([count, 1]) for each in known)
    key = np.unique(np.concatenate([candidates, links, stated, forbidden]))
    probability = np.isin(key, stated).astype(np.float64)
    probability[np.searchsorted(key, candidates)] = resolved.probability
    pin = np.isin(key, stated).astype(np.int8) - np.isin(key, forbidden)
    measures = {"probability": probability, "solution": np.isin(key, links), "pin": pin}
    pairs = np.column_stack(np.divmod(key, count))
    if path.suffix == ".geff":
        geff_write.write_graph(path, seen, (pairs, measures), record, overwrite)
        return
    ends = {name: pairs[:, k] for k, name in enumerate(("source", "target"))}
    frames = {f"{name}_frame": seen.frame[of] for name, of in ends.items()}
    parquet.write_table(path, pa.table(ends | frames | measures), seen.unit, record, overwrite)


def uncertain_links(resolved: Resolved, count: int | None = None) -> list[UncertainLink]:
    """Detections with an uncertain successor, the least certain first, without those that pins decide.

    The present successor, or end, has the lowest probability; with a gate the link has the least margin.

    Parameters
    ----------
    resolved : Resolved
    count : int, optional
        How many at most. Default: all.

    Examples
    --------
    >>> seen = Detections.from_table([0, 0, 1, 1], [[0, 0, 0], [0, 9, 9], [0, 9, 8], [0, 0, 1]])
    >>> [link.row for link in uncertain_links(resolve(hold(seen, TrackingSettings(max_distance=3.0))))]
    [0, 1]
    """
    tracks, many = resolved.run.tracks, len(resolved.end)
    source, chance = tracks.links[:, 0], tracks.link_probability
    if chance is None:
        value, of = np.full(many, np.nan), tracks.link_margin
    else:
        value, of = resolved.end + resolved.clutter, chance
        value[tracks.detections.frame == tracks.detections.frame[-1]] = np.nan
    assert of is not None
    value[source] = np.inf
    np.minimum.at(value, source, of)
    value[PinnedRows.of(resolved.found, many).row_closed] = np.nan
    rows = np.argsort(value, kind="stable")[: int(np.isfinite(value).sum())][:count]
    return [uncertain_link_at(resolved, int(row), float(value[row])) for row in rows]


def uncertain_link_at(resolved: Resolved, row: int, value: float = math.nan) -> UncertainLink:
    """The alternatives for the successor of a detection."""
    links = resolved.run.tracks.links
    present = links[slice(*np.searchsorted(links[:, 0], [row, row + 1])), 1]
    here = slice(*np.searchsorted(resolved.candidates[:, 0], [row, row + 1]))
    ways = list(zip(resolved.candidates[here, 1].tolist(), resolved.probability[here].tolist(), strict=True))
    if np.isfinite(resolved.end[row]):
        ways += [(-1, float(resolved.end[row])), (-2, float(resolved.clutter[row]))]
    ways.sort(key=lambda way: -way[1])
    now = set(present.tolist()) or {-1}
    shown = [way for k, way in enumerate(ways) if k < _SHOWN or way[0] in now]
    return UncertainLink(row, tuple(present.tolist()), value, tuple(shown))


Doubt, doubts = UncertainLink, uncertain_links
"""The former names, for one release."""
