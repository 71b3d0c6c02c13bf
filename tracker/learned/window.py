"""The latest frames of a movie that is linked while it is recorded: arrays, flow and candidate links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import LINK, LINK_BY_SIDE, ROW, Arrays
from ..geometry.neighbours import nearest
from .inference.candidates import candidates_of
from .inference.posterior import LinkPosterior
from .learn.field import Fields
from .learn.m_steps import raw_steps
from .learn.options import LearnOptions
from .learn.registration import frame_shifts
from .learn.starts import first_candidates, first_order
from .model.features import Features
from .model.movie import OUTER, Movie, movie_of


@dataclass(frozen=True, eq=False)
class Window(Arrays):
    """The latest frames, with the tracks of their detections and the candidate links between them.

    Parameters
    ----------
    movie : Movie
        In the coordinates of the inference.
    track : (N,) int64 array
        -1 in the last frame, until it is linked.
    ended : (N,) bool array
        Whether no link leads on from it.
    flow : (N, D) float64 array
        Step to the next frame that a detection shares with its neighbours.
    near : (N, 24) int32 array
        Nearest detections of the same frame, counted from its first; -1 for none.
    tail, head, probability : (E,) arrays
        Candidate links, and their probabilities in the last sweep.
    competing : (2, E) float64 array
        As in `LinkPosterior`.
    """

    movie: Movie
    track: NDArray[np.int64] = field(metadata=ROW)
    ended: NDArray[np.bool_] = field(metadata=ROW)
    flow: NDArray[np.float64] = field(metadata=ROW)
    near: NDArray[np.int32] = field(metadata=ROW)
    tail: NDArray[np.int32] = field(metadata=LINK)
    head: NDArray[np.int32] = field(metadata=LINK)
    probability: NDArray[np.float64] = field(metadata=LINK)
    competing: NDArray[np.float64] = field(metadata=LINK_BY_SIDE)

    @classmethod
    def empty(cls, basis: NDArray[np.float64], features: Features | None) -> Window:
        """State before the first frame."""
        place, row, link = np.empty((0, basis.shape[1])), np.empty(0, np.int64), np.empty(0, np.int32)
        movie = Movie(
            position=place, frame=row, frame_start=np.zeros(1, np.int64), density=np.empty(0), basis=basis,
            time=row, features=features,
        )  # fmt: skip
        return cls(
            movie=movie, track=row, ended=row > 0, flow=place, near=np.empty((0, OUTER), np.int32),
            tail=link, head=link, probability=np.empty(0), competing=np.empty((2, 0)),
        )  # fmt: skip

    def arrays(self) -> dict[str, NDArray]:
        """All arrays by name; those of the movie begin with a dot."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        movie = own.pop("movie")
        within = {f".{one.name}": getattr(movie, one.name) for one in fields(movie)}
        if (columns := within.pop(".features")) is not None:
            within |= {f"..{one.name}": getattr(columns, one.name) for one in fields(columns)}
        return {name: values for name, values in (own | within).items() if values is not None}

    def of_arrays(self, arrays: Mapping[str, NDArray]) -> Window:
        """The window of `arrays`."""
        inside: dict[str, Any] = {
            name[1:]: values for name, values in arrays.items() if name.startswith(".") and name[1] != "."
        }
        if self.movie.features is not None:
            inside["features"] = Features(*(arrays[f"..{one.name}"] for one in fields(Features)))
        own = {one.name: arrays[one.name] for one in fields(self) if one.name != "movie"}
        return replace(self, movie=replace(self.movie, **inside), **own)

    @property
    def new(self) -> slice:
        """Rows of the last frame."""
        return slice(*self.movie.frame_start[-2:].tolist())

    @property
    def known(self) -> LinkPosterior:
        """The candidates between earlier frames."""
        key = self.tail * np.int64(len(self.movie)) + self.head
        return LinkPosterior.begun(candidates_of(key, self.movie.frame), self.probability, self.competing)

    def latest(self, frames: int) -> Window:
        """The latest frames, at most this many."""
        first = max(self.movie.frames - frames, 0)
        row = int(self.movie.frame_start[first])
        part = self.take("row", slice(row, None)).take("link", self.tail >= row)
        movie = part.movie.during(slice(first, self.movie.frames))
        return replace(part, movie=movie, tail=part.tail - row, head=part.head - row)

    def with_frame(self, place: NDArray[np.float64], after: int, features: Features | None) -> Window:
        """The window with one more frame, `after` intervals later."""
        movie, count = self.movie, len(place)
        assert movie.time is not None
        # A lone detection shows no density: it has that of the frames before.
        density = np.full(count, np.median(movie.density)) if len(movie) else np.ones(count)
        near = np.full((count, OUTER), -1, np.int32)
        if count > 1:
            shown = movie_of(place, np.array([0, count]), spacing=1.0)
            density, near = shown.density, shown.near if shown.near is not None else near
        last = int(movie.time[-1]) if movie.frames else 0
        alone = replace(
            movie, position=place, frame=np.full(count, movie.frames), density=density, features=features
        )  # fmt: skip
        new = replace(
            self, movie=alone, track=np.full(count, -1), ended=np.ones(count, np.bool_),
            flow=np.zeros_like(place), near=near,
        )  # fmt: skip
        grown = self.join(new, "row")
        start = np.append(movie.frame_start, movie.frame_start[-1] + count)
        time = np.append(movie.time, last + after)
        return replace(grown, movie=replace(grown.movie, frame_start=start, time=time))

    def _pair(self) -> tuple[Movie, slice]:
        """The last frame and the one before, and the rows of the latter."""
        pair = self.latest(2)
        near, many = pair.near.copy(), int(pair.movie.frame_start[1])
        near[many:][near[many:] >= 0] += many
        begin = len(self.movie) - len(pair.movie)
        return replace(pair.movie, near=near), slice(begin, begin + many)

    def with_flow(self, options: LearnOptions) -> Window:
        """The window with the flow to the last frame, estimated from displacements."""
        pair, before = self._pair()
        if before.start == before.stop:
            return self
        steady = np.zeros_like(pair.position)
        steady[: before.stop - before.start] = self._steady(before)
        flow = min((0 * steady, steady), key=partial(_distance, pair))
        flow += frame_shifts(pair.position + flow, pair.frame_start)[pair.frame]
        candidates = first_candidates(pair, flow, max(options.nearest // 2, 1))
        found = first_order(pair, candidates, flow, Fields.of(pair))
        return self._with_flow(before, found.flow)

    def _steady(self, before: slice) -> NDArray[np.float64]:
        """(M, D) flow of the frame before as it was around each of its detections one frame earlier."""
        start = self.movie.frame_start[-4:]
        if len(start) < 4 or start[0] == start[1] or before.start != start[1]:
            return np.zeros_like(self.movie.position[before])
        rows = slice(int(start[0]), int(start[2]))
        place = self.movie.position[rows].copy()
        earlier = slice(0, int(start[1] - start[0]))
        place[earlier] += self.flow[rows][earlier]
        asking = np.arange(earlier.stop, len(place))
        near, _ = nearest(place, start[:3] - start[0], asking, 1, offset=-1)
        lasts = np.diff(self.movie.time[-3:])  # type: ignore[index]
        return self.flow[rows][near[:, 0]] * (lasts[1] / lasts[0])

    def with_flow_of(self, posterior: LinkPosterior) -> Window:
        """The window with the flow to the last frame, estimated from probable links."""
        pair, before = self._pair()
        if before.start == before.stop:
            return self
        step, weight = (each[before.start :] for each in raw_steps(self.movie, posterior))
        return self._with_flow(before, Fields.of(pair).flow(step, weight))

    def _with_flow(self, before: slice, flow: NDArray[np.float64]) -> Window:
        """The window with the flow (M, D) of the frame before the last."""
        changed = self.flow.copy()
        changed[before] = flow[: before.stop - before.start]
        return replace(self, flow=changed)

    def open_links(self, posterior: LinkPosterior) -> tuple:
        """The candidates that join the end of a track to a detection of the last frame; probabilities."""
        candidates = posterior.candidates
        may = self.ended[candidates.tail] & (candidates.head >= self.new.start)
        return candidates.kept(may), posterior.probability[may]

    def joined(self, track: NDArray[np.int64], source: NDArray[np.int64]) -> Window:
        """The window whose last frame is linked: each detection gets a track, some a predecessor (rows)."""
        tracks, ended = self.track.copy(), self.ended.copy()
        tracks[self.new], ended[source] = track, False
        return replace(self, track=tracks, ended=ended)


def _distance(pair: Movie, flow: NDArray[np.float64]) -> float:
    """Median squared distance from predicted positions to the nearest detections of the next frame."""
    rows = np.arange(pair.frame_start[1])
    _, square = nearest(pair.position + flow, pair.frame_start, rows, 1, offset=1)
    return float(np.median(square))
