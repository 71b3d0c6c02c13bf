"""Places of what a layer shows: as they were detected, to the bit, where the layer still has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray

from outbid.edit.filter import filter as filtered
from outbid.particles.detections import Detections
from outbid.particles.tracks import Tracks
from outbid.pins import edited, read_pins

from ..from_layers import detections_from, exact, in_order_of
from ..layers import CORRECTED, PLACES, WHOLE
from .napari_layers import calibration_of, features_of, record_of
from .pair import can_be_held, tracks_of

ONES = (1.0, 1.0, 1.0)
"""Spacing of places."""


def keep_places(layer: Any, places: NDArray[np.float64]) -> None:
    """Keep the places of the rows of a layer, so that what is made of them is that of the commands."""
    layer.metadata = {**layer.metadata, PLACES: places}


def keep_places_of_tracks(layer: Any, tracks: Tracks, places: NDArray[np.float64]) -> None:
    """Keep the places of the detections of tracks, in the order of `outbid.viewers.layers.tracks_layer`."""
    if WHOLE in layer.metadata:
        layer.metadata[WHOLE].places = places
    else:
        keep_places(layer, places[np.lexsort((tracks.detections.frame, tracks.track_id))])


def points_in(layer: Any) -> tuple[Detections, Detections]:
    """The detections of a layer of points: in voxels, and in places."""
    seen = detections_from(layer.data, calibration=calibration_of(layer), features=features_of(layer))
    order = np.argsort(layer.data[:, 0], kind="stable")
    return seen, exact(seen, layer.metadata.get(PLACES), order)


def placed_tracks(layer: Any) -> Tracks:
    """The tracks of a layer, in places."""
    if WHOLE in layer.metadata:
        whole: Tracks = layer.metadata[WHOLE].placed()
        return whole
    tracks = tracks_of(layer)
    order = np.argsort(layer.data[:, 1], kind="stable")
    return replace(tracks, detections=exact(tracks.detections, layer.metadata.get(PLACES), order))


def as_detected(viewer: Any, layer: Any, *, before_pins: bool = False) -> Tracks:
    """The tracks of a layer in places, with the detections in the order of the spots that they are made of.

    So tracks that are solved again are those of the command, to the bit: sums depend on the order. If pins
    have changed the spots, these are as they were `before_pins` on request, without links.
    """
    tracks, record = placed_tracks(layer), record_of(layer) or {}
    path, name = Path(record.get(CORRECTED) or ""), (record.get("input") or {}).get("name", "")
    pins = read_pins(path) if path.is_file() else ()
    if record.get("command") == "filter" and name in viewer.layers and can_be_held(viewer.layers[name]):
        where = record["settings"]["conditions"]
        return in_order_of(tracks, filtered(as_detected(viewer, viewer.layers[name]), where=where).detections)
    for one in (name, f"Spots of {name}"):
        if one in viewer.layers and isinstance(viewer.layers[one], Points):
            spots = points_in(viewer.layers[one])[1]
            now = edited(spots, pins).detections
            found = in_order_of(tracks, now)
            as_before = before_pins and found is not tracks and now is not spots
            return Tracks(spots, tracks.links[:0]) if as_before else found
    return tracks


def tracks_and_rows(layer: Any) -> tuple[Tracks, NDArray[np.int64], NDArray[np.int64]]:
    """The tracks of a layer in places, as in files; points are tracks without links.

    Returns
    -------
    tracks : Tracks
    rows : (N,) int64 array
        The row of the layer that each detection is.
    number : (N,) int64 array
        What each row of the layer calls its track.
    """
    if isinstance(layer, Points):
        rows = np.argsort(layer.data[:, 0], kind="stable")
        return Tracks(points_in(layer)[1], np.empty((0, 2), np.int64)), rows, np.argsort(rows)
    tracks = placed_tracks(layer)
    if WHOLE in layer.metadata:  # of which the layer draws a part
        return tracks, np.arange(len(tracks.detections)), tracks.track_id
    rows = np.argsort(layer.data[:, 1], kind="stable")
    return tracks, rows, layer.data[:, 0].astype(np.int64)
