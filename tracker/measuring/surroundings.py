"""Surroundings of tracks: their stays in regions, their contacts, and the velocities of neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import SettingsError
from .groups import SAMPLES, Estimate, Samples, ratio
from .likelihood import Floats
from .neighbours import (
    Rows,
    contact_time,
    contacts,
    nearest_distances,
    pairs_within,
    velocities,
    velocity_correlation,
)
from .recording import Recording
from .regions import Inside, Region, first_passages, named_regions, visits
from .survival import median_time

_REACH = 5
"""Contact distances up to which velocities are correlated; a bin is one of them wide."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What tracks are measured against.

    Parameters
    ----------
    regions : tuple of Region
    contact : float or None
        Distance below which two particles are in contact, in the unit of the tables.
    """

    regions: tuple[Region, ...] = ()
    contact: float | None = None

    @classmethod
    def of(cls, regions: Mapping[str, str], contact: float | None = None) -> Surroundings:
        """From regions by name, as `Region.of`.

        Raises
        ------
        SettingsError
            If a value makes no sense.

        Examples
        --------
        >>> Surroundings.of({"nucleus": "20,30,5"}, contact=2.0).regions[0].centre.tolist()
        [nan, 20.0, 30.0]
        """
        if contact is not None and not 0 < contact < np.inf:
            raise SettingsError(f"contact is {contact!r}; it must be a distance above 0.")
        return cls(named_regions(regions), contact)

    def inside(self, movie: Recording) -> dict[str, Inside]:
        """Whether each detection (N,) is in each region."""
        place, frame = movie.tracks.detections.position, movie.labels.frame
        found: dict[str, Inside] = {}
        for region in self.regions:
            found |= region.inside(place, frame)
        return found


def stays(movie: Recording, weights: Samples, inside: Mapping[str, Inside]) -> list[dict[str, Any]]:
    """A row for each region: share of the time inside, tracks that come in, dwell and first-passage times."""
    rows, count = movie.variants.rows, len(movie.group)
    whole = np.bincount(movie.owner, minlength=count).astype(np.float64)
    found = []
    for name, where in inside.items():
        within = where[rows]
        dwell, passage = (of(within, movie.time, movie.owner) for of in (visits, first_passages))
        estimates = {
            "share_inside": ratio(weights, np.bincount(movie.owner, within, count), whole),
            "dwell_time_median": median_time(weights, dwell.owner, dwell.lasting, dwell.complete),
            "first_passage_median": median_time(weights, passage.owner, passage.lasting, passage.complete),
        }
        row: dict[str, Any] = {"region": name}
        for many, of in (("visits", dwell), ("first_passages", passage)):
            row[many] = float(np.rint((weights.drawn[:, of.owner] @ of.complete).mean()))
        for quantity, one in estimates.items():
            row |= {quantity: one.value, f"{quantity}_error": one.error}
        found.append(row)
    return found


def _draws(movie: Recording) -> Iterator[tuple[Floats, Rows]]:
    """Velocity of each detection (N, A), and the variant that it is in, in each draw of the links."""
    moving = velocities(movie.position, movie.time, movie.owner)
    for drawn in movie.variants.drawn:
        some = drawn[movie.owner] > 0
        velocity, label = (
            np.empty((len(movie.detected), moving.shape[1])),
            np.zeros(len(movie.detected), np.int64),
        )
        velocity[movie.variants.rows[some]] = moving[some]
        label[movie.variants.rows[some]] = movie.owner[some]
        yield velocity, label


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Pairs of detections near each other, and the nearest one of each.

    Parameters
    ----------
    movie : Recording
    contact : float
    pair, distance : (P, 2) and (P,) arrays
    nearest : (N,) float64 array
    """

    movie: Recording
    contact: float
    pair: Rows
    distance: Floats
    nearest: Floats

    @classmethod
    def of(cls, movie: Recording, contact: float) -> Neighbourhood:
        """Search the pairs."""
        place = movie.tracks.detections.position[:, ["zyx".index(axis) for axis in movie.axes]]
        frame = movie.tracks.detections.frame.astype(np.int64)
        moment = movie.labels.movie * (int(frame.max(initial=0)) + 1) + frame
        pair, distance = pairs_within(place, moment, _REACH * contact)
        return cls(movie, contact, pair, distance, nearest_distances(place, moment))

    @property
    def columns(self) -> dict[str, Floats]:
        """Of detections."""
        return {"neighbour_distance": self.nearest}

    def estimates(self, weights: Samples) -> dict[str, Estimate]:
        """Mean distance to the nearest neighbour; number of contacts in a group, and their median time."""
        movie, near = self.movie, self.pair[self.distance < self.contact]
        frame = movie.tracks.detections.frame.astype(np.int64)
        found = []
        for (_, label), drawn in zip(_draws(movie), weights.drawn, strict=True):
            own = drawn[label[near]].all(axis=1)
            found.append(contacts(near[own], label, frame, movie.detected, movie.lag, movie.interval))
        nearest, count = self.nearest[movie.variants.rows], len(movie.group)
        known = np.isfinite(nearest)
        sums = [np.bincount(movie.owner, one, count) for one in (np.nan_to_num(nearest), known)]
        counts = np.array([len(one.lasting) for one in found], np.float64)
        return {
            "neighbour_distance": ratio(weights, sums[0], sums[1]),
            "contacts": Estimate.of(counts, np.full(SAMPLES, np.nan)),
            "contact_time_median": contact_time(found, SAMPLES, movie.rng),
        }

    def correlation(self, weights: Samples) -> Iterator[tuple[float, Estimate, float]]:
        """Velocity correlation over distance: at 0 of each with itself, then in bins of contact distances."""
        movie = self.movie
        moving = velocities(movie.position, movie.time, movie.owner)
        square = np.square(moving).sum(axis=1)
        known = np.isfinite(square)
        sums = [np.bincount(movie.owner[known], one, len(movie.group)) for one in (square[known], None)]
        yield (
            0.0,
            ratio(weights, sums[0], sums[1].astype(np.float64)),
            float((weights.drawn @ sums[1]).mean()),
        )
        bins = np.minimum(self.distance / self.contact, _REACH - 1).astype(np.int64)
        found, pairs = velocity_correlation(weights, _draws(movie), self.pair, bins, _REACH)
        for number, (one, many) in enumerate(zip(found, pairs, strict=True)):
            yield (number + 0.5) * self.contact, one, float(many)
