"""Families: mothers, daughters, generations, cycle times, starts and ends; and how safe the links are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..particles.tracks import Tracks
from .groups import SAMPLES
from .likelihood import Floats
from .survival import half_life


def families(tracks: Tracks, time: Floats) -> dict[str, Floats]:
    """Generation, mother, number of daughters and cycle time of each track; NaN if it has no value.

    The cycle of a track that a division began lasts from its first detection to that of its first daughter.

    Parameters
    ----------
    tracks : Tracks
    time : (N,) float64 array
        Of each detection.
    """
    count, label = tracks.track_count, tracks.track_id
    source, target = tracks.links.T
    between = tracks.successors[source] > 1
    mother_of, daughter = label[source[between]], label[target[between]]
    mother = np.full(count, -1)
    mother[daughter] = mother_of
    generation = np.zeros(count)
    born, begin = np.unique(daughter), first_and_last(tracks, time)[0]
    for track in born[np.argsort(begin[born], kind="stable")]:
        generation[track] = generation[mother[track]] + 1  # mothers start earlier
    division = np.full(count, np.inf)
    np.minimum.at(division, mother_of, time[target[between]])
    whole = (mother >= 0) & np.isin(np.arange(count), mother_of)
    cycle = np.where(whole, division - begin, np.nan)
    return {
        "generation": generation,
        "mother": np.where(mother >= 0, mother, np.nan),
        "daughters": np.bincount(mother_of, minlength=count).astype(np.float64),
        "cycle_time": cycle,
    }


def first_and_last(tracks: Tracks, time: Floats) -> tuple[Floats, Floats]:
    """(T,) times of the first and of the last detection of each track."""
    first, last = np.full(tracks.track_count, np.inf), np.full(tracks.track_count, -np.inf)
    np.minimum.at(first, tracks.track_id, time)
    np.maximum.at(last, tracks.track_id, time)
    return first, last


def cycles_so_far(tracks: Tracks, family: dict[str, Floats], time: Floats) -> Floats:
    """(T,) how long the cycle of each track that a division began was seen, to its end or not; else NaN."""
    first, last = first_and_last(tracks, time)
    seen = np.where(np.isfinite(family["mother"]), last - first, np.nan)
    return np.where(np.isfinite(family["cycle_time"]), family["cycle_time"], seen)


def median_cycle(
    lasting: Floats, complete: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[float, float]:
    """Median cycle time of Kaplan and Meier (1958), its standard error by a bootstrap; NaN if not reached.

    The median of complete cycles alone is too short, for long ones do not end in the movie.

    Parameters
    ----------
    lasting : (T,) float64 array
        As `cycles_so_far`.
    complete : (T,) bool array
        Whether each ended by a division; the others are censored.
    """
    known = np.isfinite(lasting)
    lasting, complete = lasting[known], complete[known]
    if not complete.any():
        return np.nan, np.nan
    some = rng.integers(0, len(lasting), (SAMPLES, len(lasting)))
    often = [np.bincount(one, minlength=len(lasting)).astype(np.float64) for one in some]
    again = np.array([half_life(lasting, complete, weight) for weight in often])
    again = again[np.isfinite(again)]
    return half_life(lasting, complete, np.ones(len(lasting))), float(again.std(ddof=1)) if len(
        again
    ) > 1 else np.nan


def safety(tracks: Tracks) -> Floats:
    """Probability that all links of each track are right, as if they were independent; NaN if unknown."""
    if tracks.link_probability is None:
        return np.full(tracks.track_count, np.nan)
    source, target = tracks.links.T
    inside = tracks.track_id[source] == tracks.track_id[target]
    with np.errstate(divide="ignore"):
        chance = np.log(np.nan_to_num(tracks.link_probability[inside], nan=1.0))
    return np.exp(np.bincount(tracks.track_id[source[inside]], chance, tracks.track_count))


def starts_and_ends(tracks: Tracks) -> tuple[np.ndarray, np.ndarray]:
    """(T,) bool each: tracks that appear after the first frame, and that disappear before the last.

    Tracks that start or end by a division or merge do neither.
    """
    source, target = tracks.track_id[tracks.links.T]
    joined, every, (first, last) = source != target, np.arange(tracks.track_count), tracks.span
    born = (first > first.min(initial=0)) & ~np.isin(every, target[joined])
    lost = (last < last.max(initial=0)) & ~np.isin(every, source[joined])
    return born, lost
