"""Open a session again: its layers as they were."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from outbid import formats
from outbid.particles.calibration import Calibration

from ..forms.napari_layers import LayerTransform, show
from ..forms.places import keep_places, keep_places_of_tracks
from ..forms.windowed import show_tracks
from ..layers import FILTERED, points_layer
from .session import SavedLayer, Session, read_session

_OF_TRANSFORM = ("scale", "translate", "units", "axis_labels")


def reopen(viewer: Any, path: Path) -> tuple[Session, str]:
    """Add the layers of a session; returns it, and a sentence on what was opened.

    Raises
    ------
    OutbidError
        If a file of it cannot be read.
    """
    session, missing, filtered = read_session(path), [], []
    for saved in session.layers:
        file = path.parent / saved.file
        if not file.exists():
            missing.append(saved.file)
            continue
        layer = _image(viewer, saved, file) if saved.kind == "image" else _positions(viewer, saved, file)
        for name, value in saved.looks.items():
            if name not in _OF_TRANSFORM and hasattr(layer, name):
                with suppress(ValueError, KeyError):  # as a colour that another version has not
                    setattr(layer, name, value)
        if FILTERED in saved.looks:
            layer.metadata = {**layer.metadata, FILTERED: saved.looks[FILTERED]}
            filtered.append(layer.name)
    point = session.shown.get("point", [])
    if len(point) == viewer.dims.ndim:
        viewer.dims.set_point(range(len(point)), point)
    acts = f" In Lineage the filters of {' and '.join(filtered)} act again." if filtered else ""
    lost = f" Not found: {', '.join(missing)}." if missing else ""
    count = len(session.layers) - len(missing)
    return session, f"{count} layers of {path.name} are open again, with their settings.{acts}{lost}"


def _image(viewer: Any, saved: SavedLayer, file: Path) -> Any:
    """Open a movie; of several channels the one of this name, beside those that are open already."""
    before = {layer.name for layer in viewer.layers}
    if saved.name not in before:
        viewer.open(str(file), plugin="outbid")
    layer = viewer.layers[saved.name] if saved.name in viewer.layers else viewer.layers[-1]
    for name in ("scale", "translate"):
        setattr(layer, name, saved.looks[name])
    layer.units = saved.looks["units"]
    layer.metadata = {**layer.metadata, **({"outbid": dict(saved.record)} if saved.record else {})}
    return layer


def _positions(viewer: Any, saved: SavedLayer, file: Path) -> Any:
    """Points or tracks in the voxels that they had."""
    transform = LayerTransform(*(tuple(saved.looks[name]) for name in _OF_TRANSFORM))
    grid = Calibration(transform.unit, transform.spacing, origin=transform.shift)
    if saved.kind == "points":
        placed = formats.read_detections(file)
        shown = points_layer(placed.on_grid(grid), name=saved.name)
        layer = show(viewer, shown, transform, record=saved.record)
        keep_places(layer, placed.position)
        return layer
    tracks = formats.read_tracks(file)
    voxels = replace(tracks, detections=tracks.detections.on_grid(grid))
    layer = show_tracks(viewer, voxels, transform, saved.name, record=saved.record)
    keep_places_of_tracks(layer, tracks, tracks.detections.position)
    return layer
