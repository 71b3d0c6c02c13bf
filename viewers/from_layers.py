"""Convert napari layers to detections and tracks, from plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outbid.errors import InputError
from outbid.particles.calibration import UNKNOWN, Calibration
from outbid.particles.detections import Detections
from outbid.particles.tracks import LINK_MEASURES, Tracks

from .layers import OF_TRACKS, graph_links

_ROUNDING = 1e-12
"""Guard: difference of two places, in their unit and in their size, that is rounding and no edit."""


def detections_from(
    data: NDArray,
    *,
    calibration: Calibration = UNKNOWN,
    features: Mapping[str, ArrayLike] | None = None,
) -> Detections:
    """Detections of a points layer.

    Parameters
    ----------
    data : (N, 4) or (N, 3) array
        Rows t, z, y, x, or t, y, x, in any order.
    calibration : Calibration
        Of the layer's voxels and frames.
    features : mapping of str to (N,) array_like, optional

    Raises
    ------
    InputError
        If there is no point or no time, or t is not the number of a frame.

    Examples
    --------
    >>> detections_from(np.array([[1.0, 5, 6], [0, 7, 8]])).position.tolist()
    [[0.0, 7.0, 8.0], [0.0, 5.0, 6.0]]
    """
    if data.ndim != 2 or data.shape[1] not in (3, 4):
        axes = data.shape[-1] if data.ndim == 2 else 0
        raise InputError(
            f"The points have {axes} axes; needed are t, y, x or t, z, y, x. Add a first column: the frame."
        )
    if len(data) == 0:
        raise InputError("The layer has no points. Add some, or choose another layer.")
    return Detections.from_table(data[:, 0], data[:, 1:], features=features, calibration=calibration)


def tracks_from(
    data: NDArray,
    *,
    calibration: Calibration = UNKNOWN,
    features: Mapping[str, ArrayLike] | None = None,
    graph: Mapping[int, Sequence[int]] | None = None,
) -> Tracks:
    """Tracks of a tracks layer.

    Parameters
    ----------
    data : (N, 5) or (N, 4) array
        Rows track_id, t, z, y, x, or track_id, t, y, x, sorted by track, then time, as napari keeps them.
    calibration : Calibration
        Of the layer's voxels and frames.
    features : mapping of str to (N,) array_like, optional
        Those that `outbid.viewers.layers.tracks_layer` makes of links become what is known of links again,
        others are of the detections.
    graph : mapping of int to list of int, optional
        Parents of tracks.

    Raises
    ------
    InputError
        If t is not the number of a frame, or a track starts before its parent ends.

    Examples
    --------
    >>> from .layers import tracks_layer
    >>> seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 3], [0, 4, 0]])
    >>> layer = tracks_layer(Tracks(seen, np.array([[0, 1], [0, 2]])))
    >>> tracks_from(layer.data, graph=layer.graph).links.tolist()
    [[0, 1], [0, 2]]
    """
    rows = np.arange(len(data))
    seen = Detections.from_table(data[:, 1], data[:, 2:], features={"row": rows})
    index = np.empty(len(rows), np.int64)  # of the layer's rows among the detections
    index[seen.features["row"]] = rows
    number = data[:, 0].astype(np.int64)
    follows = number[1:] == number[:-1]
    pairs = [np.column_stack([rows[:-1][follows], rows[1:][follows]]), graph_links(number, graph or {})]
    links = index[np.concatenate(pairs)].reshape(-1, 2).astype(np.int64)
    links = links[np.lexsort((links[:, 1], links[:, 0]))]
    rows = seen.features["row"]
    target = rows[links[:, 1]]
    known = {name: np.asarray(values) for name, values in (features or {}).items()}
    measures = {
        name: known[name][target].astype(np.float64) if name in known else None for name in LINK_MEASURES
    }
    own = {name: values[rows] for name, values in known.items() if name not in OF_TRACKS}
    return Tracks(Detections(seen.frame, seen.position, calibration, own), links, **measures)


def exact(seen: Detections, places: NDArray | None, order: NDArray[np.int64]) -> Detections:
    """Detections in places: those that the layer keeps, unless it was edited.

    Places from voxels are rounded twice, so they are not always those that were detected, to the bit.

    Parameters
    ----------
    seen : Detections
        In voxels.
    places : (N, 3) array or None
        Kept with the layer.
    order : (N,) int64 array
        Rows of the layer for the detections.

    Examples
    --------
    >>> seen = Detections.from_table([0], [[0, 1, 3]], calibration=Calibration(spacing=(1, 0.1, 0.1)))
    >>> kept = np.array([[0, 0.1, 0.3]])
    >>> [exact(seen, each, np.array([0])).position.tolist() for each in (None, kept, 2 * kept)]
    [[[0.0, 0.1, 0.30000000000000004]], [[0.0, 0.1, 0.3]], [[0.0, 0.1, 0.30000000000000004]]]
    """
    placed = seen.placed()
    if places is None or len(places) != len(placed):
        return placed
    kept = places[order]
    same = np.allclose(kept, placed.position, rtol=_ROUNDING, atol=_ROUNDING)
    return replace(placed, position=kept) if same else placed


def in_order_of(tracks: Tracks, spots: Detections) -> Tracks:
    """The tracks with their detections in the order of the same ones; as they are if those are others.

    Examples
    --------
    >>> seen = Detections.from_table([0, 0, 1], [[0, 0, 0], [0, 0, 5], [0, 0, 6]])
    >>> spots = Detections.from_table([0, 0, 1], [[0, 0, 5], [0, 0, 0], [0, 0, 6]])
    >>> in_order_of(Tracks(seen, np.array([[1, 2]])), spots).links.tolist()
    [[0, 2]]
    """
    own, other = (np.column_stack([one.frame, one.position]) for one in (tracks.detections, spots))
    ours, theirs = (np.lexsort(one.T[::-1]) for one in (own, other))
    if len(own) != len(other) or not np.array_equal(own[ours], other[theirs]):
        return tracks
    number = np.empty(len(ours), np.int64)
    number[ours] = theirs
    links = number[tracks.links]
    order = np.lexsort((links[:, 1], links[:, 0]))
    measures = {name: values[order] for name, values in tracks.measures.items()}
    return Tracks(tracks.detections.take(np.argsort(number)), links[order], **measures)


def moved(tracks: Tracks, scale: Sequence[float], shift: Sequence[float] = (0, 0, 0)) -> Tracks:
    """Copy of the tracks with positions multiplied by `scale` and shifted by `shift`, along z, y, x.

    Examples
    --------
    >>> seen = Detections.from_table([0], [[1, 2, 3]])
    >>> moved(Tracks(seen, np.empty((0, 2), np.int64)), (2, 1, 1), (0, 0, 1)).detections.position.tolist()
    [[2.0, 2.0, 4.0]]
    """
    seen = tracks.detections
    position = seen.position * np.asarray(scale, dtype=np.float64) + np.asarray(shift, dtype=np.float64)
    placed = replace(seen, position=position, calibration=seen.calibration.of_places)
    return replace(tracks, detections=placed)
