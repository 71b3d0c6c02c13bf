"""Neighbours: velocities, nearest distances, contacts, and how velocities agree over distance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .groups import Estimate, Samples
from .likelihood import Floats
from .survival import half_life

Rows = NDArray[np.int64]


def velocities(position: Floats, time: Floats, owner: Rows) -> Floats:
    """(M, A) velocity of each row: between the rows before and after it in its track, one-sided at its ends.

    NaN for a track of one row.

    Parameters
    ----------
    position : (M, A) float64 array
    time : (M,) float64 array
    owner : (M,) int64 array
        Track of each row, ascending, by time in each track.

    Examples
    --------
    >>> place, owner = np.array([[0.0], [2.0], [6.0]]), np.zeros(3, np.int64)
    >>> velocities(place, np.arange(3.0), owner).ravel().tolist()
    [2.0, 3.0, 4.0]
    """
    row = np.arange(len(owner))
    same = owner[1:] == owner[:-1]
    before = row - np.concatenate([[False], same])[: len(row)]
    after = row + np.concatenate([same, [False]])[: len(row)]
    with np.errstate(invalid="ignore", divide="ignore"):
        return (position[after] - position[before]) / (time[after] - time[before])[:, None]


def nearest_distances(position: Floats, moment: NDArray) -> Floats:
    """(N,) distance of each position to the nearest one of the same moment; NaN if it is alone."""
    found = np.full(len(position), np.nan)
    for some in _moments(moment):
        if len(some) > 1:
            found[some] = cKDTree(position[some]).query(position[some], k=2)[0][:, 1]
    return found


def pairs_within(position: Floats, moment: NDArray, radius: float) -> tuple[Rows, Floats]:
    """Pairs (P, 2) of positions of one moment that are nearer than a radius, and their distances."""
    near = ((some, cKDTree(position[some])) for some in _moments(moment) if len(some))
    pairs = [some[tree.query_pairs(radius, output_type="ndarray")] for some, tree in near]
    pair = np.concatenate([np.empty((0, 2), np.int64), *pairs])
    return pair, np.linalg.norm(position[pair[:, 0]] - position[pair[:, 1]], axis=1)


def _moments(moment: NDArray) -> list[Rows]:
    """Rows of each moment."""
    order = np.argsort(moment, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(moment[order])) + 1)


class Contacts(NamedTuple):
    """Times that two tracks stay in contact; as `regions.Visits`, of pairs."""

    lasting: Floats
    complete: NDArray[np.bool_]


def contacts(pair: Rows, label: Rows, frame: Rows, time: Floats, lag: int, interval: float) -> Contacts:
    """Contact times of tracks, from pairs (P, 2) of detections that are in contact.

    Begin and end lie half an interval before the first and after the last detection in contact. A contact
    that the begin or end of one of the tracks cuts off is censored.

    Parameters
    ----------
    pair : (P, 2) int64 array
    label, frame, time : (N,) arrays
        Track, frame number and time of each detection.
    lag : int
        Frame numbers of an interval.
    interval : float
        Its time.

    Examples
    --------
    >>> pair = np.array([[2, 3], [4, 5]])
    >>> frame = np.repeat(np.arange(4), 2)
    >>> contacts(pair, np.tile([0, 1], 4), frame, frame * 10.0, 1, 10.0)
    Contacts(lasting=array([20.]), complete=array([ True]))
    """
    both = np.sort(label[pair], axis=1)
    order = np.lexsort((frame[pair[:, 0]], both[:, 1], both[:, 0]))
    both, row = both[order], pair[order, 0]
    new = np.ones(len(row), np.bool_)
    new[1:] = (both[1:] != both[:-1]).any(axis=1) | (np.diff(frame[row]) != lag)
    first, last = row[new], row[np.append(new[1:], True)[: len(row)]]
    count = int(label.max(initial=-1)) + 1
    begin, end = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(begin, label, frame)
    np.maximum.at(end, label, frame)
    of = both[new]
    whole = (frame[first, None] > begin[of]).all(axis=1) & (frame[last, None] < end[of]).all(axis=1)
    return Contacts(time[last] - time[first] + interval, np.asarray(whole, np.bool_))


def contact_time(found: list[Contacts], samples: int, rng: np.random.Generator) -> Estimate:
    """Median contact time over draws of the links; its error by a bootstrap over contacts."""

    def median(one: Contacts) -> float:
        weight = rng.multinomial(len(one.lasting), np.full(len(one.lasting), 1 / len(one.lasting)))
        return half_life(one.lasting, one.complete, weight.astype(np.float64))

    some = [one for one in found if len(one.lasting)]
    if not some:
        return Estimate.unknown()
    drawn = np.array([half_life(one.lasting, one.complete, np.ones(len(one.lasting))) for one in some])
    drawn = drawn[np.isfinite(drawn)]
    resampled = np.array([median(some[k % len(some)]) for k in range(samples)])
    return Estimate.of(drawn if len(drawn) else np.array([np.nan]), resampled)


def velocity_correlation(
    weights: Samples, draws: Iterable[tuple[Floats, Rows]], pair: Rows, bins: Rows, count: int
) -> tuple[list[Estimate], Floats]:
    """Mean product of the velocities of two tracks, in `count` bins of their distance; number of pairs.

    Parameters
    ----------
    weights : Samples
    draws : iterable
        Velocity (N, A) of each detection, and its track among those of the weights, in each draw.
    pair, bins : (P, 2) and (P,) int64 arrays
        Pairs of detections, and the bin of their distance.
    """
    drawn, samples = np.empty((len(weights.drawn), count)), np.empty((len(weights.resampled), count))
    pairs = np.zeros(count)
    for k, (velocity, label) in enumerate(draws):
        product, ends = (velocity[pair[:, 0]] * velocity[pair[:, 1]]).sum(axis=1), label[pair]
        known = np.isfinite(product)

        def both(weight: Floats, ends: Rows = ends, known: NDArray = known) -> Floats:
            return weight[ends[:, 0]] * weight[ends[:, 1]] * known

        def mean(weight: Floats, product: Floats = product) -> Floats:
            with np.errstate(invalid="ignore", divide="ignore"):
                above = np.bincount(bins, both(weight) * np.nan_to_num(product), count)
                return above / np.bincount(bins, both(weight), count)

        drawn[k] = mean(weights.drawn[k])
        pairs += np.bincount(bins, both(weights.drawn[k]), count) / len(weights.drawn)
        for sample in range(k, len(samples), len(drawn)):
            samples[sample] = mean(weights.resampled[sample])
    return [Estimate.of(drawn[:, k], samples[:, k]) for k in range(count)], pairs
