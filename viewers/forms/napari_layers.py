"""Add arrays to napari as layers: position, colours, and replacement of older results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from napari.layers import Layer as NapariLayer
from napari.layers import Points, Tracks
from napari.settings import get_plugin_settings
from napari.utils import Colormap
from numpy.typing import NDArray

from outbid.formats.files.units import TIMES
from outbid.particles.calibration import SYMBOLS, Calibration, recorded_interval

from ..layers import RECORD, Layer
from ..scene import point_size

CONFIDENCE = ("#ff2d2d", "#ffb000", "#f5f871", "#7fe0d0", "#4cc9ff")
CONFIDENCE_MAP = Colormap([*CONFIDENCE], name="confidence")
"""Red to blue, from uncertain to certain links; also distinguishable with red-green colour blindness."""


@dataclass(frozen=True)
class LayerTransform:
    """Transform of a layer (scale, shift, units), for layers derived from it; all axes, time first.

    Its fields are called as napari's layers call them.

    Parameters
    ----------
    scale, translate : tuple of float
    units : tuple of str
    axis_labels : tuple of str
    """

    scale: tuple[float, ...]
    translate: tuple[float, ...]
    units: tuple[str, ...]
    axis_labels: tuple[str, ...]

    @property
    def spacing(self) -> tuple[float, float, float]:
        """Size of a voxel along z, y, x; 1 along z in 2D."""
        z, y, x = (1.0, 1.0, *self.scale[1:])[-3:]
        return float(z), float(y), float(x)

    @property
    def shift(self) -> tuple[float, float, float]:
        """Position of the first voxel of the layer along z, y, x; 0 along z in 2D."""
        z, y, x = (0.0, 0.0, *self.translate[1:])[-3:]
        return float(z), float(y), float(x)

    @property
    def unit(self) -> str:
        """Unit of z, y, x."""
        return self.units[-1]

    @property
    def symbol(self) -> str:
        """The unit as fields show it."""
        return SYMBOLS.get(self.unit, self.unit)

    @property
    def world(self) -> LayerTransform:
        """The transform of a layer with places for voxels."""
        axes = len(self.scale) - 1
        return replace(
            self, scale=(self.scale[0], *[1.0] * axes), translate=(self.translate[0], *[0.0] * axes)
        )

    def frame_shown(self, viewer: Any) -> float:
        """Number of the frame of the layer that a viewer shows."""
        time = viewer.dims.point[viewer.dims.ndim - len(self.scale)]
        return float((time - self.translate[0]) / self.scale[0])


def transform_of(layer: Any) -> LayerTransform:
    """The transform of a napari layer."""
    return LayerTransform(
        tuple(map(float, layer.scale)), tuple(map(float, layer.translate)), tuple(map(str, layer.units)),
        tuple(layer.axis_labels),
    )  # fmt: skip


def calibration_of(layer: Any) -> Calibration:
    """What the voxels and frames of a layer mean, by its transform and its record."""
    transform = transform_of(layer)
    seconds = TIMES.get(transform.units[0], 0.0) * transform.scale[0]
    interval = recorded_interval(record_of(layer)) or seconds or None
    return Calibration(transform.unit, transform.spacing, interval, transform.shift)


def record_of(layer: Any) -> Mapping[str, Any] | None:
    """The run record stored with a layer, if there is one."""
    record = None if layer is None else layer.metadata.get(RECORD)
    return record if isinstance(record, Mapping) else None


def features_of(layer: Any) -> dict[str, NDArray]:
    """The columns of a layer of points or tracks."""
    return {name: values.to_numpy() for name, values in layer.features.items()}


def preferences() -> Any:
    """The user's settings in napari's preferences, by the names in ``napari.yaml``."""
    return get_plugin_settings("outbid")


def show(
    viewer: Any,
    layer: Layer,
    transform: LayerTransform | None = None,
    *,
    record: Mapping[str, object] | None = None,
    instead_of: Any | None = None,
) -> Any:
    """Show arrays as a layer of napari.

    Parameters
    ----------
    viewer : napari.Viewer
    layer : Layer
    transform : LayerTransform, optional
        Where it lies; without z if that has none. Default: as the layer itself says.
    record : mapping, optional
        The run record that the layer carries along.
    instead_of : napari layer, optional
        That is given the data instead, and keeps its name and looks; if it is in the viewer still. Tracks
        whose graph would be emptied are replaced by another layer of their name.

    Returns
    -------
    napari layer
    """
    if transform is not None and len(transform.scale) == 3:
        layer = layer.in_plane()
    data, attributes, kind = layer.as_tuple()
    attributes |= {"metadata": {} if record is None else {RECORD: dict(record)}}
    if transform is not None:
        attributes |= vars(transform)
    if instead_of is None or instead_of not in viewer.layers:
        return viewer.add_layer(NapariLayer.create(data, attributes | looks(layer), kind))
    if kind == "tracks" and instead_of.graph and not attributes["graph"]:
        # Of a graph that is emptied something stays behind, on which vispy with Mesa crashes later.
        at, name = viewer.layers.index(instead_of), instead_of.name
        viewer.layers.remove(instead_of)
        anew = viewer.add_layer(NapariLayer.create(data, attributes | looks(layer) | {"name": name}, kind))
        viewer.layers.move(viewer.layers.index(anew), at)
        return anew
    _replace(instead_of, data, attributes, kind)
    return instead_of


def take_away(viewer: Any, layer: Any) -> bool:
    """Remove a layer; points next to tracks are emptied instead, and stay.

    With Mesa's OpenGL, vispy may crash when it draws lines after a layer of points was removed.

    Parameters
    ----------
    viewer : napari.Viewer
    layer : napari layer
        Perhaps removed already.

    Returns
    -------
    bool
        Whether it stays.
    """
    if layer not in viewer.layers:
        return False
    if isinstance(layer, Points) and any(isinstance(other, Tracks) for other in viewer.layers):
        layer.data = np.empty((0, layer.ndim))
        return True
    viewer.layers.remove(layer)
    return False


def go_to(viewer: Any, point: Sequence[float], transform: LayerTransform, near: float) -> None:
    """Show a point of a layer in the middle of the view, from near by.

    Parameters
    ----------
    viewer : napari.Viewer
    point : (4,) array_like
        t, z, y, x in voxels.
    transform : LayerTransform
        Where the layer lies.
    near : float
        What the view spans at most, in the unit of the scale.
    """
    own = [point[0], *point[-(len(transform.scale) - 1) :]]
    world = [at * size + by for at, size, by in zip(own, transform.scale, transform.translate, strict=True)]
    first = viewer.dims.ndim - len(world)
    cut = [axis for axis in viewer.dims.not_displayed if axis >= first]
    viewer.dims.set_point(cut, [world[axis - first] for axis in cut])
    camera = viewer.scene.camera
    shown = world[-viewer.dims.ndisplay :]
    camera.center = (0.0,) * (3 - len(shown)) + tuple(shown)
    camera.zoom = max(camera.zoom, min(viewer.canvas.size) / near)


def looks(layer: Layer) -> dict[str, Any]:
    """Attributes of a new layer that set how it is drawn: as lines or rings, in front of all other layers."""
    over = {"blending": "translucent_no_depth"}  # a bright voxel in front of them would hide them in 3D
    if layer.kind == "tracks":
        # Colours of features that stay the same from layer to layer, or the one colour of all rows.
        fixed = {"confidence": CONFIDENCE_MAP}
        if layer.colour:
            fixed[layer.color_by] = Colormap([layer.colour] * 2, name=layer.colour)
        return over | {"colormaps_dict": fixed, "tail_width": 4 if layer.colour else 3}
    size = point_size(layer)
    return over | {
        "size": 1.4 * size if layer.colour else size, "symbol": "disc", "face_color": "transparent",
        "border_color": layer.colour or "#ffd24d", "border_width": 0.08,
    }  # fmt: skip


def _replace(shown: Any, data: Any, attributes: Mapping[str, Any], kind: str) -> None:
    """Give a layer other data; on tracks that wipes features, graph and colours, so they come after it."""
    if kind == "tracks":
        asked, shown.color_by = shown.color_by, "track_id"
        if shown.graph:
            shown.graph = {}
        shown.data = data
        shown.features = attributes["features"]
        if attributes["graph"]:
            shown.graph = attributes["graph"]
        shown.color_by = asked if asked in attributes["features"] else attributes["color_by"]
    else:
        shown.data = data
        shown.features = attributes["features"]
    shown.metadata = attributes["metadata"]
    for name, before in vars(transform_of(shown)).items():
        if tuple(attributes.get(name, before)) != before:  # for each draws all layers again
            setattr(shown, name, attributes[name])
