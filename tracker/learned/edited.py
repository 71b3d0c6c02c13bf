"""A movie whose model is held, with detections that a person added, moved or removed since it was learned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..particles.detections import Detections
from ..pins.edits import Edited
from .inference.candidates import candidates_of
from .inference.posterior import LinkPosterior
from .lineage.hypotheses import Dividing, Hypothesis, Merging, Plain
from .model.movie import Movie
from .prepare import Reading

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Grown:
    """M detections that were learned from, and K that were added or moved, each the last of its frame.

    What was removed, and what was moved as it was before, stays among the M, as clutter.

    Parameters
    ----------
    reading : Reading
        Of M + K; its order is -1 for clutter.
    row : (M,) int64 array
        Of each among the M + K.
    fresh : (K,) int64 array
        Rows of the further ones.
    source : (M + K,) int64 array
        The one among the M whose surroundings each has: its own, or the nearest of its frame.
    blank : (B,) int64 array
        Rows of those without features, which were added.
    """

    reading: Reading
    row: Rows
    fresh: Rows
    source: Rows
    blank: Rows

    @classmethod
    def of(cls, reading: Reading, before: Detections, edits: Edited, spacing: tuple[float, ...]) -> Grown:
        """From the reading of the detections as they were before."""
        axes, number, now = ["zyx".index(axis) for axis in reading.axes], edits.new, edits.row[reading.order]
        frame = _frames_in(reading, before.frame[reading.order], edits.detections.frame[number])
        number, frame = number[frame >= 0], frame[frame >= 0]
        place = (edits.detections.position[number] * spacing)[:, axes]
        moved = dict(zip(now.tolist(), range(len(now)), strict=True))
        source = np.array([moved.get(one, -1) for one in number.tolist()], np.int64)
        blank = source < 0
        for k in np.flatnonzero(blank).tolist():
            source[k] = _nearest(reading, int(frame[k]), place[k])
        to = reading.frame_start[frame + 1]  # before which row each is put

        def put(values: NDArray, further: NDArray) -> NDArray:
            return np.insert(values, to, further, axis=0)

        is_fresh = put(np.zeros(len(now), np.bool_), np.full(len(to), True))
        fresh = np.flatnonzero(is_fresh)
        grown = replace(
            reading, frame=put(reading.frame, frame), position=put(reading.position, place),
            order=put(np.where(np.isin(now, number), -1, now), number),
            frame_start=reading.frame_start + np.searchsorted(frame, np.arange(len(reading.frame_start))),
        )  # fmt: skip
        return cls(grown, np.flatnonzero(~is_fresh), fresh, put(np.arange(len(now)), source), fresh[blank])

    def movie(self, movie: Movie) -> Movie:
        """The movie of the M + K, from that of the M."""
        reading, source = self.reading, self.source[self.fresh]
        grown = replace(movie, near=None).take("row", self.source)
        away = reading.position[self.fresh] - reading.position[self.row[source]]
        grown.position[self.fresh] += away @ movie.basis
        if grown.features is not None:
            for values, nothing in zip(vars(grown.features).values(), (0.0, False, 0.0, -1), strict=True):
                values[self.blank] = nothing
        return replace(grown, frame=reading.frame, frame_start=reading.frame_start)

    def posterior(self, posterior: LinkPosterior) -> LinkPosterior:
        """The posterior of the M + K, of whose further ones no link is a candidate yet."""
        links, count = posterior.candidates, np.int64(len(self.source))
        key = self.row[links.tail] * count + self.row[links.head]
        grown = replace(posterior, displaced=None, moments=None).take("row", self.source)
        return replace(grown, candidates=candidates_of(key, self.reading.frame))

    def hypothesis(self, before: Hypothesis) -> Hypothesis:
        """What the tracks of the M + K do, before links of the further ones are sought."""
        if isinstance(before, Merging):  # its lineage is found anew under pins
            return replace(before, plain=self._plain(before.plain))
        if isinstance(before, Plain):
            return self._plain(before)
        movie = self.movie(before.movie)
        of = before.lineage
        mother, first, second = self.row[of.divisions.slots]
        return Dividing(movie, replace(
            of, divisions=replace(of.divisions, mother=mother, first=first, second=second),
            posterior=self.posterior(of.posterior), rates=of.rates.take("row", self.source),
            unlinked=of.unlinked[:, self.source],
        ))  # fmt: skip

    def _plain(self, before: Plain) -> Plain:
        model = before.model.take("row", self.source)
        return Plain(self.movie(before.movie), model, self.posterior(before.posterior))


def _frames_in(reading: Reading, seen: NDArray[np.int32], wanted: NDArray[np.int32]) -> Rows:
    """(K,) frames of the reading with these numbers; -1 before the first, after the last and in holes.

    seen (M,) are the numbers of its detections.
    """
    last = np.clip(np.searchsorted(seen, wanted, "right") - 1, 0, None)
    following = np.minimum(np.searchsorted(seen, wanted), len(seen) - 1)
    ahead = np.rint((wanted - seen[last]) / reading.interval).astype(np.int64)
    frame = reading.frame[last] + ahead
    inside = (ahead > 0) & (wanted <= seen[following]) & (frame < reading.frame[following])
    return np.where((seen[last] == wanted) | inside, frame, -1)


def _nearest(reading: Reading, frame: int, place: NDArray[np.float64]) -> int:
    """The row that is nearest to a place in a frame, or in the nearest frame that has any."""
    away = np.abs(reading.frame - frame)
    rows = np.flatnonzero(away == away.min())
    return int(rows[np.linalg.norm(reading.position[rows] - place, axis=1).argmin()])
