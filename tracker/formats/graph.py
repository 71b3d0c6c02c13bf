"""Convert between Tracks and the numbered detections and edges of graph formats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..detections import Detections
from ..errors import InputError
from ..tracks import LINK_MEASURES, Tracks
from .columns import feature_names, roles_of
from .units import unit_of

_OWN = ["track_id", "frame", "z", "y", "x", "parent", *LINK_MEASURES]


def is_feature(name: str) -> bool:
    """Whether a feature may have this name without being read back as another column.

    Examples
    --------
    >>> is_feature("QUALITY"), is_feature("parent_2"), is_feature("tracklet_id")
    (True, False, False)
    """
    if name in _OWN or not name.isprintable() or name != name.strip() or not feature_names([name], {}):
        return False
    try:
        return roles_of([*_OWN, name]) == roles_of(_OWN)
    except InputError:
        return False


def refuse_hidden(features: Mapping[str, NDArray]) -> None:
    """Refuse features that would not be read back under their names, or that are not numeric.

    Raises
    ------
    InputError
        Naming the first of them.
    """
    for name, values in features.items():
        if not is_feature(name):
            raise InputError(f"A feature called {name!r} would be read back as something else. Rename it.")
        if values.dtype.kind not in "biuf" and not is_text(values):
            raise InputError(
                f"Feature {name!r} holds {values.dtype}; numbers and text can be written. Leave it out."
            )


def detections_of(
    path: Path,
    frame: NDArray,
    position: NDArray[np.float64],
    unit: str | None,
    features: Mapping[str, NDArray] | None = None,
) -> Detections:
    """Detections from frames (N,) and positions (N, 3) in any order, with the features that can be kept.

    Raises
    ------
    InputError
        If a frame is negative or fractional, or a position is not finite; the message names the file.
    """
    if len(frame) and np.nanmin(frame) < 0:
        raise InputError(f"{path}: frame {np.nanmin(frame)} is negative. Number the frames from 0 up.")
    kept = {name: values for name, values in (features or {}).items() if is_feature(name)}
    try:
        return Detections.from_table(frame, position, unit=unit_of(unit), features=kept)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def tracks_of(
    path: Path,
    node: NDArray[np.int64],
    frame: NDArray,
    position: NDArray[np.float64],
    edges: NDArray[np.int64],
    unit: str | None,
    features: Mapping[str, NDArray] | None = None,
    measures: Mapping[str, NDArray[np.float64]] | None = None,
) -> Tracks:
    """Tracks from numbered detections and undirected edges between their numbers.

    Parameters
    ----------
    path : Path
        For messages.
    node : (N,) int64 array
        Number of each detection.
    frame, position, unit, features
        As in `detections_of`, in the order of `node`.
    edges : (E, 2) int64 array
        Pairs of detection numbers; duplicate edges count once.
    measures : mapping of str to (E,) array, optional
        Link measures of `LINK_MEASURES`, as far as known.

    Raises
    ------
    InputError
        If a number is missing or occurs twice, or an edge joins detections of the same frame.
    """
    detections = detections_of(path, frame, position, unit, features)
    number = node[np.argsort(frame, kind="stable")]
    order = np.argsort(number, kind="stable")
    twice = number[order][1:] == number[order][:-1]
    if twice.any():
        raise InputError(f"{path}: two detections have the number {number[order][1:][np.argmax(twice)]}.")
    place = np.searchsorted(number, edges, sorter=order)
    known = place < len(number)
    known[known] = number[order[place[known]]] == edges[known]
    if not known.all():
        raise InputError(
            f"{path}: a link names detection {edges[~known][0]}, which is not there. Export the file again."
        )
    links = order[place] if len(number) else np.empty((0, 2), np.int64)
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


def is_text(values: NDArray) -> bool:
    """Whether a feature holds text."""
    return values.dtype.kind in "UT" or (values.dtype.kind == "O" and all(isinstance(v, str) for v in values))


def interval_of(frame: NDArray, features: Mapping[str, NDArray]) -> float | None:
    """Seconds between frames, if a feature ``time`` is the number of the frame times an interval.

    Examples
    --------
    >>> interval_of(np.array([0, 1, 4]), {"time": np.array([0.0, 0.5, 2.0])})
    0.5
    """
    time = features.get("time")
    if time is None or not len(frame) or time.dtype.kind not in "iuf" or frame[-1] == 0:
        return None
    interval = float(time[-1] / frame[-1])
    return interval if interval > 0 and np.allclose(time, frame * interval, rtol=1e-9, atol=0) else None


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
