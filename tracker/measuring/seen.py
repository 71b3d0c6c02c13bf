"""The table of detections: velocity, drift, neighbours and regions of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .neighbours import velocities
from .recording import Recording
from .regions import Inside


def columns_of_detections(
    movie: Recording, more: Mapping[str, Any], inside: Mapping[str, Inside]
) -> dict[str, Any]:
    """Columns of all detections: where and when, velocity with its error by linking, drift, regions.

    Velocities are those of the tracks as they were given; `velocity_error` is the root mean square deviation
    over draws of the links. Positions are without drift; `drift_…` is what was subtracted.

    Parameters
    ----------
    movie : Recording
    more : mapping
        Further columns (N,).
    inside : mapping
        Regions, and whether each detection is in it.
    """
    rows, count = movie.variants.rows, len(movie.detected)
    each = velocities(movie.position, movie.time, movie.owner)
    own = np.isin(movie.owner, movie.variants.own)
    velocity = np.full((count, each.shape[1]), np.nan)
    velocity[rows[own]] = each[own]
    often = movie.variants.drawn.sum(axis=0)[movie.owner] * np.isfinite(each).all(axis=1)
    apart = np.square(np.nan_to_num(each - velocity[rows])).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(np.bincount(rows, often * apart, count) / np.bincount(rows, often, count))
    labels, tracks = movie.labels, movie.tracks
    columns: dict[str, Any] = {}
    if len(labels.movies) > 1:
        columns["movie"] = [labels.movies[number] for number in labels.movie]
    columns |= {
        "track_id": movie.own[tracks.track_id].astype(np.float64), "frame": labels.frame.astype(np.float64),
    }  # fmt: skip
    if movie.scale.interval is not None:
        columns["time"] = movie.detected
    for k, axis in enumerate("zyx"):
        columns[axis] = tracks.detections.position[:, k]
    if labels.shift.any():
        columns |= {f"drift_{axis}": labels.shift[:, k] for k, axis in enumerate("zyx")}
    columns |= {f"velocity_{axis}": velocity[:, k] for k, axis in enumerate(movie.axes)}
    columns["speed"] = np.linalg.norm(velocity, axis=1)
    columns["velocity_error"] = error if movie.tracks.link_probability is not None else np.full(count, np.nan)
    return columns | dict(more) | {f"in_{name}": where.astype(np.float64) for name, where in inside.items()}
