"""Functions that napari's plugin manifest names: readers, writers and samples, as plain layer data.

Nothing heavy is loaded before it is used, for napari asks every plugin about every file. ``napari.yaml``
names these functions, and the forms in `forms`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from outbid.formats.images.frames import Images
    from outbid.particles.calibration import Calibration

LayerData = tuple[Any, dict[str, Any], str]
"""Data, attributes and kind of a layer, as napari's readers give them."""

COLOURS = ("green", "magenta", "cyan", "yellow", "red", "blue")
"""Colours of channels that are shown together."""
_LOOKED_AT = 20_000_000
"""Guard: voxels of a frame by which its contrast is chosen: of larger frames some planes are read."""
_XML = ("TrackMate", "root", "Tracks")


def read_positions(path: str | list[str]) -> Callable[[str], list[LayerData]] | None:
    """A reader, if the file's head is of detections or tracks in a format that Outbid knows."""
    from outbid import formats
    from outbid.errors import OutbidError
    from outbid.formats.files.xml_stream import root_of

    if isinstance(path, list):
        return None  # files of one stack
    try:
        if path.lower().endswith(".xml"):  # much else is XML
            return layers_of_positions if root_of(Path(path)) in _XML else None
        formats.holds_tracks(path)
    except OutbidError as error:
        return _refusing(Path(path), error)
    return layers_of_positions


def _refusing(path: Path, error: Exception) -> Callable[[str], list[LayerData]] | None:
    """A reader that says why a table of positions is refused; None for other files, which others may read."""
    from outbid.formats.tables.columns import ALIASES, plain
    from outbid.formats.tables.csv_layout import fields_of

    if path.suffix.lower() not in (".csv", ".tsv") or not path.is_file():
        return None
    with path.open(encoding="utf-8", errors="replace") as file:
        line = file.readline(10_000)
    names = {plain(name) for mark in ",;\t" for name in fields_of(line, mark)}
    if not any(names & {*ALIASES[role]} for role in "yx") or "index" in names:  # napari's own tables
        return None

    def refuse(_: str) -> list[LayerData]:
        raise error

    return refuse


def layers_of_positions(path: str) -> list[LayerData]:
    """Points or tracks in a file, with its run record, so that the settings can be edited.

    Positions are those of the file. If positions are in voxels and the record states the voxel size, the
    scale of the layer is this size. Data of one plane have no z, like images of one plane.

    Raises
    ------
    OutbidError
        If the file cannot be read.
    """
    from outbid import formats
    from outbid.errors import InputError

    from .forms.napari_layers import looks
    from .layers import RECORD, points_layer, tracks_layer
    from .report import spacing_of

    try:
        record: Mapping[str, Any] = formats.read_record(path)
    except InputError:
        record = {}
    size = spacing_of(record) if record.get("command") == "track" else (1.0, 1.0, 1.0)
    name = Path(path).name
    if formats.holds_tracks(path):
        tracks = formats.read_tracks(path)
        seen = tracks.detections
        layer = tracks_layer(tracks, calibration=replace(seen.calibration, spacing=size), name=name)
    else:
        seen = formats.read_detections(path)
        layer = points_layer(seen, calibration=replace(seen.calibration, spacing=size), name=name)
    if seen.calibration.interval is not None:
        record = {**record, "calibration": seen.calibration.as_dict()}
    if not layer.data[:, -3].any():
        layer = layer.in_plane()
    data, attributes, kind = layer.as_tuple()
    return [(data, attributes | looks(layer) | {"metadata": {RECORD: dict(record)} if record else {}}, kind)]


def read_movie(path: str | list[str]) -> Callable[[str], list[LayerData]] | None:
    """Return a reader if the file or folder contains frames of a movie; only metadata are read here."""
    from outbid.errors import OutbidError
    from outbid.formats.images.opening import open_images

    if isinstance(path, list):
        return None
    try:
        movie = open_images(Path(path))
    except OutbidError:
        return None
    return layers_of_movie if movie.frame_count > 1 else None


def layers_of_movie(path: str) -> list[LayerData]:
    """A movie whose frames are read when they are looked at, with the size of its voxels.

    Where the file has several images or channels, each of them is a layer.

    Raises
    ------
    OutbidError
        If the file cannot be read.
    """
    from outbid.formats.images.opening import open_images

    movie = open_images(Path(path))
    scenes = range(len(movie.scenes)) if movie.scenes else [None]
    several, layers = movie.channel_count > 1, []
    for scene, channel in product(scenes, range(movie.channel_count)):
        called = movie.channels[channel] if channel < len(movie.channels) else ""
        parts = [f"scene {scene}"] * (scene is not None)
        parts += [called or f"channel {channel}"] * several
        name = ": ".join(filter(None, [Path(path).name, ", ".join(parts)]))
        colour = COLOURS[channel % len(COLOURS)] if several else None
        layers.append(_layer_of(open_images(Path(path), scene=scene, channel=channel), name, colour))
    return layers


def _layer_of(movie: Images, name: str, colour: str | None = None) -> LayerData:
    from .layers import RECORD, image_attributes
    from .scene import contrast_of

    frames = movie.lazy()
    frames = frames[:, 0] if movie.shape[0] == 1 else frames
    attributes = image_attributes(name, movie.calibration, flat=frames.ndim == 3)
    if movie.white_is_zero:
        attributes.setdefault("metadata", {}).setdefault(RECORD, {})["white_is_zero"] = True
    look = {} if colour is None else {"colormap": colour, "blending": "additive"}
    middle = frames[len(frames) // 2]
    limits = contrast_of(middle[:: -(-middle.size // _LOOKED_AT)].compute())
    return frames, attributes | look | {"contrast_limits": limits}, "image"


def write_points(path: str, data: NDArray, attributes: Mapping[str, Any]) -> list[str]:
    """Write a layer of points: positions in its unit, and the features that are numbers.

    Raises
    ------
    OutbidError
        If the points have no frames, or as `outbid.write_detections`.
    """
    from outbid import formats

    from .from_layers import detections_from, exact
    from .layers import PLACES

    features = {name: np.asarray(values) for name, values in attributes.get("features", {}).items()}
    numbers = {name: values for name, values in features.items() if values.dtype.kind in "iufbOU"}
    detections = detections_from(data, calibration=_calibration(attributes), features=numbers)
    kept = attributes.get("metadata", {}).get(PLACES)
    detections = exact(detections, kept, np.argsort(data[:, 0], kind="stable"))
    formats.write_detections(path, detections, record=_record(attributes), overwrite=True)
    return [path]


def write_tracks(path: str, data: NDArray, attributes: Mapping[str, Any]) -> list[str]:
    """Write a layer of tracks: positions in its unit, divisions, and what is known of the links.

    Raises
    ------
    OutbidError
        As `outbid.write_tracks`.
    """
    from outbid import formats

    from .from_layers import exact, tracks_from
    from .layers import PLACES, WHOLE

    metadata = attributes.get("metadata", {})
    if WHOLE in metadata:  # the layer draws a part
        tracks = metadata[WHOLE].placed()
    else:
        tracks = tracks_from(
            data, calibration=_calibration(attributes), features=dict(attributes.get("features", {})),
            graph=attributes.get("graph"),
        )  # fmt: skip
        seen = exact(tracks.detections, metadata.get(PLACES), np.argsort(data[:, 1], kind="stable"))
        tracks = replace(tracks, detections=seen)
    formats.write_tracks(path, tracks, record=_record(attributes), overwrite=True)
    return [path]


def sample_walks() -> list[LayerData]:
    """The sample of the package: detections, and the tracks that are true."""
    from outbid import read_tracks
    from outbid.data import sample

    from .forms.napari_layers import looks
    from .layers import points_layer, tracks_layer

    truth = read_tracks(sample("walks"))
    layers = [points_layer(truth.detections, name="walks"), tracks_layer(truth, name="walks: truth")]
    return [(data, more | looks(layer), kind) for layer in layers for data, more, kind in [layer.as_tuple()]]


def sample_movie() -> list[LayerData]:
    """A movie of 40 simulated particles, 20 frames, at a signal to noise of 5."""
    from outbid.particles.calibration import Calibration
    from outbid.simulate.camera import Camera, render
    from outbid.simulate.motions import PersistentWalk
    from outbid.simulate.walks import WalkSettings, walk

    from .layers import image_attributes

    box, spacing = (12.0, 80.0, 80.0), (2.0, 1.0, 1.0)
    truth = walk(WalkSettings(PersistentWalk(2.0, 0.8), 40, 20, box))
    camera = Camera.looking_at(box, psf=(2, 1.5, 1.5), snr=5, spacing=spacing)
    frames = np.stack(list(render(truth.detections, camera)))
    return [(frames, image_attributes("Simulated movie", Calibration(spacing=spacing)), "image")]


def _calibration(attributes: Mapping[str, Any]) -> Calibration:
    """What the voxels and frames of a layer mean, by its attributes."""
    from outbid.formats.files.units import TIMES
    from outbid.particles.calibration import Calibration, recorded_interval

    from .layers import RECORD

    scale, shift = (tuple(map(float, attributes.get(name, ()))) for name in ("scale", "translate"))
    units = attributes.get("units") or ("pixel",)
    z, y, x = (1.0, 1.0, 1.0, *scale[1:])[-3:]
    seconds = TIMES.get(str(units[0]), 0.0) * scale[0] if scale else 0.0
    interval = recorded_interval(attributes.get("metadata", {}).get(RECORD)) or seconds or None
    of = (0.0, 0.0, 0.0, *shift[1:])[-3:]
    return Calibration(str(units[-1]), (z, y, x), interval, (of[0], of[1], of[2]))


def _record(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    """The run record, changed to state that positions are no longer in voxels."""
    from .layers import RECORD

    record = attributes.get("metadata", {}).get(RECORD)
    if not isinstance(record, Mapping):
        return None
    settings = record.get("settings", {})
    scaled = record.get("command") == "track" and "spacing" in settings
    return {**record, "settings": {**settings, "spacing": [1.0, 1.0, 1.0]} if scaled else settings}
