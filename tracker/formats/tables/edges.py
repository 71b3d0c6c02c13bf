"""Convert between Tracks and the numbered detections and edges of graph formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...particles.calibration import Calibration, interval_of
from ...particles.detections import Detections
from ...particles.tracks import LINK_MEASURES, Tracks
from ..contract import PositionFormat
from ..files.units import unit_of
from .columns import feature_names, roles_of

_OWN = ["track_id", "frame", "z", "y", "x", "parent", *LINK_MEASURES]


def is_feature(name: str, beside: Sequence[str] = ()) -> bool:
    """Whether a feature may have this name, beside others, without being read back as another column.

    Examples
    --------
    >>> is_feature("QUALITY"), is_feature("parent_2"), is_feature("tracklet_id")
    (True, False, False)
    """
    if name in _OWN or not name.isprintable() or name != name.strip() or not feature_names([name], {}):
        return False
    try:
        return roles_of([*_OWN, *(beside or [name])]) == roles_of(_OWN)
    except InputError:
        return False


def refuse_unwritable(seen: Detections) -> None:
    """Refuse negative frames, and features that are neither numbers nor text or would get another name."""
    if len(seen) and seen.frame[0] < 0:
        raise InputError(f"Frame {seen.frame[0]} is negative. Number frames from 0 up to write them.")
    for name, values in seen.features.items():
        if not is_feature(name, [*seen.features]):
            raise InputError(f"A feature called {name!r} would be read back as something else. Rename it.")
        if values.dtype.kind not in "biuf" and not is_text(values):
            raise InputError(
                f"Feature {name!r} holds {values.dtype}; numbers and text can be written. Leave it out."
            )


def detections_of(
    path: Path,
    frame: NDArray,
    position: NDArray[np.float64],
    unit: str | Calibration | None,
    features: Mapping[str, NDArray] | None = None,
) -> Detections:
    """Detections from frames (N,) and positions (N, 3) in any order, with the features that can be kept.

    Raises InputError if a frame is negative or fractional, or a position is not finite.
    """
    if len(frame) and np.nanmin(frame) < 0:
        raise InputError(f"{path}: frame {np.nanmin(frame)} is negative. Number the frames from 0 up.")
    kept = {name: values for name, values in (features or {}).items() if is_feature(name)}
    calibration = unit if isinstance(unit, Calibration) else Calibration(unit_of(unit))
    seen = Detections.from_table(frame, position, features=kept, calibration=calibration)
    if isinstance(unit, Calibration):
        return seen
    return replace(seen, calibration=replace(calibration, interval=interval_of(seen.frame, seen.features)))


def tracks_of(
    path: Path,
    node: NDArray[np.int64],
    frame: NDArray,
    position: NDArray[np.float64],
    edges: NDArray[np.int64],
    unit: str | Calibration | None,
    features: Mapping[str, NDArray] | None = None,
    measures: Mapping[str, NDArray[np.float64]] | None = None,
) -> Tracks:
    """Tracks from numbered detections and undirected edges between their numbers.

    `node` has the number of each detection, in the order of `frame` and `position`, see `detections_of`;
    `edges`, (E, 2), are pairs of these numbers, of which duplicates count once; `measures` are those of
    `LINK_MEASURES` that are known, (E,). Raises InputError if a number is missing or occurs twice, or an edge
    joins detections of the same frame.
    """
    detections = detections_of(path, frame, position, unit, features)
    links = rows_of(node[np.argsort(frame, kind="stable")], edges)
    if (links < 0).any():
        lost = edges[links < 0][0]
        raise InputError(f"{path}: a link names detection {lost}, which is not there. Export the file again.")
    at = detections.frame[links]
    if (at[:, 0] == at[:, 1]).any():
        source, target = edges[np.argmax(at[:, 0] == at[:, 1])]
        raise InputError(
            f"{path}: the link from detection {source} to {target} stays in frame "
            f"{at[np.argmax(at[:, 0] == at[:, 1]), 0]}. A link leads to another frame: remove it."
        )
    links = np.where((at[:, 0] < at[:, 1])[:, None], links, links[:, ::-1])
    links, first = np.unique(links, axis=0, return_index=True)
    known_measures = {name: values[first] for name, values in (measures or {}).items()}
    return Tracks(detections, links.astype(np.int64), *(known_measures.get(name) for name in LINK_MEASURES))


def rows_of(number: NDArray[np.int64], named: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each named detection, -1 for none, where each row has a number; none may occur twice.

    Examples
    --------
    >>> rows_of(np.array([7, 5]), np.array([5, 6])).tolist()
    [1, -1]
    """
    order = np.argsort(number, kind="stable")
    ordered = number[order]
    twice = ordered[1:] == ordered[:-1]
    if twice.any():
        raise InputError(f"two detections have the number {ordered[1:][np.argmax(twice)]}. Number them anew.")
    index = np.searchsorted(ordered, named)
    known = np.append(ordered, 0)[index] == named
    return np.where(known & (index < len(ordered)), np.append(order, 0)[index], -1)


def labelled(
    path: Path, label: NDArray, frame: NDArray, position: NDArray[np.float64], unit: str | None
) -> Tracks:
    """Tracks from detections with track numbers, in any order; see `detections_of`."""
    if not (np.isfinite(label) & (label == np.rint(label)) & (np.abs(label) < 2**53)).all():
        raise InputError(f"{path}: a track number is not whole. Let the first column hold whole numbers.")
    detections = detections_of(path, frame, position, unit)
    return Tracks.from_track_ids(detections, label[np.argsort(frame, kind="stable")].astype(np.int64))


Labelled = tuple[NDArray | None, NDArray, NDArray[np.float64], str | None]
"""Track number of each detection, None if the file has none; frames; positions z, y, x; and their unit."""


def format_of_labelled(read: Callable[[Path], Labelled]) -> PositionFormat:
    """A format of detections with track numbers, by what reads these."""

    def read_tracks(path: Path, *_: object) -> Tracks:
        label, frame, position, unit = read(path)
        if label is None:
            raise InputError(f"{path} holds particles without track numbers. Track them first.")
        return labelled(path, label, frame, position, unit)

    return PositionFormat(
        read_detections=lambda path, _: detections_of(path, *read(path)[1:]), read_tracks=read_tracks
    )


def is_text(values: NDArray) -> bool:
    """Whether a feature holds text."""
    return values.dtype.kind in "UT" or (values.dtype.kind == "O" and all(isinstance(v, str) for v in values))


def families(tracks: Tracks) -> NDArray[np.int64]:
    """(N,) int64 number of the connected component of each detection, across divisions and merges.

    Examples
    --------
    >>> seen = Detections.from_table([0, 1, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 9, 9]])
    >>> families(Tracks(seen, np.array([[0, 1], [0, 2]]))).tolist()
    [0, 0, 0, 1]
    """
    from scipy import sparse  # imported here: it takes a tenth of a second, which most commands do not need

    count = len(tracks.detections)
    source, target = tracks.links.T
    joined = sparse.coo_array((np.ones(len(source), dtype=np.int8), (source, target)), shape=(count, count))
    label = sparse.csgraph.connected_components(joined, directed=False)[1]
    _, first, of = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[of].astype(np.int64)
