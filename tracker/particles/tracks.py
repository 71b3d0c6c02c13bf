"""Tracks: detections and the links between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compute.arrays import kernels
from ..errors import InputError
from .detections import Detections
from .html import html_table, svg_of
from .reliability import sentence_on

if TYPE_CHECKING:
    import pyarrow as pa

LINK_MEASURES = ("link_cost", "link_margin", "link_probability")
"""Measures that links may have; files use these names for their columns."""


@dataclass(frozen=True, eq=False, repr=False)
class Tracks:
    """Detections and the links between them: a graph whose edges run forward in time.

    A *track* is a maximal chain of links without a division or merge; where a detection has two
    successors (a division) or two predecessors (a merge), new tracks begin.

    Parameters
    ----------
    detections : Detections
        The nodes, N of them.
    links : (E, 2) int64 array
        Rows of source and target, sorted by source, then target; the source's frame is the earlier one.
    link_cost : (E,) float64 array or None
        What each link cost, in the units of the cost function; None if unknown (a file, ground truth).
    link_margin : (E,) float64 array or None
        Lower bound on how much the optimum of its assignment would worsen without the link, in the
        units of the cost function.
    link_probability : (E,) float64 array or None
        How likely each link is, if the model of a calibration gives it.

    Raises
    ------
    InputError
        If a link points outside the detections or does not run forward in time.

    Examples
    --------
    >>> seen = Detections.from_table([0, 0, 1, 1], [[0, 0, 0], [0, 9, 9], [0, 0, 1], [0, 9, 8]])
    >>> tracks = Tracks(seen, np.array([[0, 2], [1, 3]]))
    >>> tracks.track_id.tolist(), tracks.track_count
    ([0, 1, 0, 1], 2)
    """

    detections: Detections
    links: NDArray[np.int64]
    link_cost: NDArray[np.float64] | None = None
    link_margin: NDArray[np.float64] | None = None
    link_probability: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        count, frame = len(self.detections), self.detections.frame
        if self.links.ndim != 2 or self.links.shape[1] != 2:
            raise InputError(f"Links are pairs of rows, shape (E, 2); got {self.links.shape}.")
        for name in LINK_MEASURES:
            values = getattr(self, name)
            if values is not None and values.shape != (len(self.links),):
                raise InputError(f"{name} has shape {values.shape}; there are {len(self.links)} links.")
        if len(self.links) == 0:
            return
        wrong = self._kernels.first_wrong(_plain(self.links), _plain(frame))
        if wrong < 0:
            return
        source, target = self.links[wrong]
        if not (0 <= source < count and 0 <= target < count):
            raise InputError(f"A link points outside the {count} detections.")
        raise InputError(
            f"The link from detection {source} (frame {frame[source]}) to {target} (frame "
            f"{frame[target]}) does not run forward in time."
        )

    @classmethod
    def from_track_ids(
        cls, detections: Detections, track_id: ArrayLike, parent: ArrayLike | None = None
    ) -> Tracks:
        """Tracks from one label per detection, as most files give them.

        Parameters
        ----------
        detections : Detections
            N detections.
        track_id : (N,) array_like of int
            Detections of one track carry the same number, at most one a frame; -1 is no track.
        parent : (N,) array_like of int, optional
            Number of the track from which this detection's track divided; -1 for none. One value a
            track is enough: the first detection's counts.

        Raises
        ------
        InputError
            If a track has two detections in a frame, or a parent is missing or ends too late.
        """
        label = _plain(np.asarray(track_id, dtype=np.int64))
        frame = detections.frame
        number, dense = _dense(label)
        first, last = np.full((2, len(number)), -1)
        follower = np.full(len(detections), -1)
        twice = kernels("outbid.particles.tracks", label).follow_labels(dense, frame, first, last, follower)
        if twice >= 0:
            raise InputError(
                f"Track {label[twice]} has two detections in frame {frame[twice]}; a track holds one a "
                "frame. Are rows of several movies or channels in one table? Divided particles need track "
                "numbers of their own."
            )
        source = np.nonzero(follower >= 0)[0]
        links = np.column_stack([source, follower[source]])
        if parent is not None and len(number):
            used = first >= 0
            mothers = _links_to_parents(
                np.asarray(parent), number[used], label, frame, first[used], last[used]
            )
            links = np.concatenate([links, mothers])
            links = links[np.lexsort((links[:, 1], links[:, 0]))]
        return cls(detections, links)

    def take(self, rows: NDArray | slice) -> Tracks:
        """The tracks among some of the detections: a chain over omitted detections becomes one link.

        The new tracks have no `measures` of their links.

        Parameters
        ----------
        rows : slice, (N,) bool array or increasing indices
            The detections, as in `Detections.take`.

        Examples
        --------
        >>> seen = Detections.from_table([0, 1, 2, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 1, 1]])
        >>> divided = Tracks(seen, np.array([[0, 1], [1, 2], [1, 3]]))
        >>> divided.take(np.array([True, False, True, True])).links.tolist()
        [[0, 1], [0, 2]]
        """
        kept = np.zeros(len(self.detections), dtype=np.bool_)
        kept[rows] = True
        number, (source, target) = np.cumsum(kept) - 1, self.links.T
        first_link = np.searchsorted(source, np.arange(len(kept) + 1))
        chains, found = self.links[kept[source]], []
        while len(chains):
            done = kept[chains[:, 1]]
            found.append(chains[done])
            chains = chains[~done]
            # Each chain with every link that leaves its end: where that divides, so does the chain.
            ways = np.diff(first_link)[chains[:, 1]]
            nth = np.arange(ways.sum()) - np.repeat(np.cumsum(ways) - ways, ways)
            ends = target[np.repeat(first_link[chains[:, 1]], ways) + nth]
            chains = np.column_stack([np.repeat(chains[:, 0], ways), ends])
        # Two ways that part and meet again are one.
        one = np.unique(np.concatenate([np.empty((0, 2), np.int64), *found]) @ [len(kept), 1])
        links = number[np.column_stack(np.divmod(one, max(len(kept), 1)))]
        return Tracks(self.detections.take(rows), links)

    def every(self, stride: int) -> Tracks:
        """The tracks in every `stride`-th frame from the first one on, renumbered 0, 1, 2, …"""
        kept = (self.detections.frame.astype(np.int64) - self.detections.first_frame) % stride == 0
        return Tracks(self.detections.every(stride), self.take(kept).links)

    @property
    def measures(self) -> dict[str, NDArray[np.float64]]:
        """The measures of the links by name: those of `LINK_MEASURES` that are known, (E,) float64 each."""
        known = {name: getattr(self, name) for name in LINK_MEASURES}
        return {name: values for name, values in known.items() if values is not None}

    @cached_property
    def successors(self) -> NDArray[np.int64]:
        """(N,) int64: how many links leave each detection; 2 or more is a division."""
        return np.bincount(self.links[:, 0], minlength=len(self.detections))

    @cached_property
    def predecessors(self) -> NDArray[np.int64]:
        """(N,) int64: how many links reach each detection; 2 or more is a merge."""
        return np.bincount(self.links[:, 1], minlength=len(self.detections))

    @property
    def branches(self) -> bool:
        """Whether any track divides or merges."""
        return self._of_chains is None and not self._inside_track.all()

    @cached_property
    def track_id(self) -> NDArray[np.int64]:
        """(N,) int64: 0, 1, 2, … in the order of each track's first detection."""
        if self._of_chains is not None:
            return self._of_chains
        links = self.links if self._inside_track.all() else self.links[self._inside_track]
        if (links[1:, 0] < links[:-1, 0]).any():
            links = links[np.argsort(links[:, 0])]
        track_id = np.full(len(self.detections), -1, dtype=np.int64)
        self._kernels.number_tracks(*_plain(links.T), track_id)
        return track_id

    @cached_property
    def track_count(self) -> int:
        """Number of tracks; a detection without links counts as a track."""
        if not self.branches:
            return len(self.detections) - len(self.links)
        return len(self.detections) - int(self._inside_track.sum())

    @cached_property
    def span(self) -> NDArray[np.int64]:
        """(2, track_count) int64: first and last frame of each track."""
        span = np.zeros((2, self.track_count), dtype=np.int64)
        # Frames never decrease, so the value that is written last is the latest, or backwards the first.
        span[0, self.track_id[::-1]] = self.detections.frame[::-1]
        span[1, self.track_id] = self.detections.frame
        return span

    @cached_property
    def parent(self) -> NDArray[np.int64]:
        """(N,) int64: the track from which each detection's track divided, -1 for none."""
        return self._parents_by(self.links[~self._inside_track])

    def _parents_by(self, links: NDArray[np.int64]) -> NDArray[np.int64]:
        """(N,) int64: the track from which a link between tracks leads to that of each detection, or -1."""
        parent_of_track = np.full(self.track_count, -1, dtype=np.int64)
        source, target = links.T
        parent_of_track[self.track_id[target]] = self.track_id[source]
        return parent_of_track[self.track_id]

    def __repr__(self) -> str:
        return f"<Tracks: {sentence_on(self)}>"

    def _repr_html_(self) -> str:
        """A short table and a picture of the tracks, for notebooks."""
        seen = self.detections
        table = html_table("Tracks", {
            "detections": len(seen), "frames": seen.frame_range, "tracks": self.track_count,
            "links": len(self.links), "divisions": int((self.successors >= 2).sum()), "unit": seen.unit,
        })  # fmt: skip
        return f"<div>{table}<p>{sentence_on(self)}</p>{svg_of(self)}</div>"

    def to_arrow(self) -> pa.Table:
        """An Arrow table, one row a detection, as `outbid.write_tracks` writes it.

        Columns track_id, frame, z, y, x, parent (if tracks divide), features, and cost, margin and
        probability of the link that ends at the detection, null without a link.
        """
        from .tables import table_of_tracks

        return table_of_tracks(self)

    def to_dataframe(self) -> Any:
        """A pandas DataFrame with the columns of `to_arrow`.

        Raises
        ------
        ResourceError
            If pandas is not installed; for polars, ``polars.DataFrame(tracks)``.
        """
        from .tables import pandas_of

        return pandas_of(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the table to libraries that read Arrow data, such as polars (PyCapsule interface)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @cached_property
    def _of_chains(self) -> NDArray[np.int64] | None:
        """`track_id` by a faster method that applies if no track divides or merges; else None."""
        track_id = np.empty(len(self.detections), dtype=np.int64)
        return track_id if self._kernels.number_chains(_plain(self.links), track_id) else None

    @property
    def _kernels(self) -> ModuleType:
        return kernels("outbid.particles.tracks", self.links)

    @cached_property
    def _inside_track(self) -> NDArray[np.bool_]:
        """(E,) bool: the links that continue a track, in contrast to divisions and merges."""
        return (self.successors[self.links[:, 0]] == 1) & (self.predecessors[self.links[:, 1]] == 1)


def _plain(array: NDArray) -> NDArray:
    """The array in one piece, for which kernels are compiled; a slice may have strides."""
    return np.ascontiguousarray(array)


def _dense(label: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct labels in ascending order, perhaps with unused ones, and the index of each label."""
    most = int(label.max(initial=-1))
    if most < 2 * len(label) + 1000:  # they count the tracks already, as is usual
        return np.arange(most + 1), label
    number, dense = np.unique(label, return_inverse=True)
    none = int(np.searchsorted(number, 0))
    return number[none:], dense - none


def _links_to_parents(
    parent: NDArray, number: NDArray, label: NDArray, frame: NDArray, first: NDArray, last: NDArray
) -> NDArray[np.int64]:
    """Links from the last detection of each parent to the first of its child.

    The arguments are the ascending track numbers, and the first and last detection of each track.
    """
    child = first[parent[first] >= 0]
    where = np.searchsorted(number, parent[child])
    known = (where < len(number)) & (number[np.minimum(where, len(number) - 1)] == parent[child])
    if not known.all():
        row = child[np.argmin(known)]
        raise InputError(
            f"Track {label[row]} names parent {parent[row]}, which has no detections. "
            "Remove the parent or add its rows."
        )
    mother = last[where]
    late = frame[mother] >= frame[child]
    if late.any():
        row = child[np.argmax(late)]
        raise InputError(
            f"Track {label[row]} starts in frame {frame[row]}, before its parent {parent[row]} ends "
            f"in frame {frame[mother[np.argmax(late)]]}. Let the parent end where the division is."
        )
    return np.column_stack([mother, child])
