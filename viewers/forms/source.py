"""The input of a form: a layer, copied as plain arrays before a run, and the fields that select it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from napari.layers import Labels, Points
from qtpy.QtCore import QObject, Signal

from outbid.edit.crop import Crop
from outbid.errors import InputError
from outbid.formats.images.frames import Images
from outbid.formats.images.opening import open_images
from outbid.particles.calibration import Calibration
from outbid.particles.detections import Detections
from outbid.settings.detection import DetectionSettings
from outbid.tracking import TrackingSettings
from outbid.work.jobs import DetectJob

from .fields import AxesBox, LayerBox
from .napari_layers import LayerTransform, calibration_of, record_of, transform_of
from .places import points_in
from .work import Report

_LOG = logging.getLogger("outbid")


@dataclass(frozen=True, eq=False)
class Source:
    """Content of a layer: detections, or an image in which to detect them.

    Parameters
    ----------
    name : str
    transform : LayerTransform
    calibration : Calibration
        Of its voxels and frames.
    points, placed : Detections or None
        In voxels, and in places.
    image : array-like or None
        With axes t, z, y, x or t, y, x.
    labels : bool
        Whether the image is of labels.
    white_is_zero : bool
        Whether the file of the image says so.
    """

    name: str
    transform: LayerTransform
    calibration: Calibration
    points: Detections | None
    image: Any = None
    labels: bool = False
    white_is_zero: bool = False
    placed: Detections | None = None

    @cached_property
    def movie(self) -> Images:
        """The image as a movie, with the voxels of the layer."""
        axes = "TZYX" if len(self.image.shape) == 4 else "TYX"
        movie = open_images(self.image, axes=axes, spacing=self.transform.spacing)
        voxels = self.calibration
        return replace(
            movie, name=self.name, unit=voxels.unit, interval=voxels.interval, warnings=(),
            white_is_zero=self.white_is_zero,
        )  # fmt: skip

    def detect(
        self, settings: DetectionSettings, report: Report, frames: range | None = None
    ) -> tuple[Detections, DetectionSettings]:
        """Spots of the image, or centroids of its labels, in places; and the settings that were used.

        Parameters
        ----------
        settings : DetectionSettings
        report : callable
            Called with (frames done, frames in all).
        frames : range, optional
            All by default.
        """
        crop = Crop(frames=None if frames is None else f"{frames.start}:{frames.stop}")
        job = DetectJob(settings, labels=self.labels, crop=crop, workers=2)
        for remark in job.remarks(self.movie):
            _LOG.warning("%s", remark)
        return job.detect(self.movie, report)

    def in_voxels(self, placed: Detections) -> Detections:
        """Detections in voxels of the layer, of those in places of its image."""
        position = placed.position / self.transform.spacing
        return replace(placed, position=position, calibration=self.calibration)


class SourceFields(QObject):
    """The boxes for a layer and the size of its voxels.

    Parameters
    ----------
    viewer : napari.Viewer
    *kinds : type
        Classes of the layers that can be taken.
    """

    chosen = Signal()
    """Another layer, or another size of its voxels."""

    def __init__(self, viewer: Any, *kinds: type) -> None:
        super().__init__()
        self._viewer, self._kinds = viewer, kinds
        self.layers = LayerBox(viewer, lambda layer: isinstance(layer, kinds))
        self.voxel = AxesBox((1, 1, 1), 1e-12)
        self.layers.chosen.connect(self._layer_chosen)
        self.voxel.edited.connect(self._voxel_edited)
        self._layer_chosen()

    def taken(self) -> Source:
        """The current content of the layer.

        Raises
        ------
        InputError
            If there is no layer, or its content cannot be taken.
        """
        layer = self.layers.layer()
        if layer is None:
            raise InputError(self.missing())
        transform, voxels = transform_of(layer), calibration_of(layer)
        if isinstance(layer, Points):
            found, placed = points_in(layer)
            return Source(layer.name, transform, voxels, found, placed=placed)
        if problem := self.missing():
            raise InputError(problem)
        data = layer.data[0] if layer.multiscale else layer.data
        white = bool((record_of(layer) or {}).get("white_is_zero"))
        return Source(layer.name, transform, voxels, None, data, isinstance(layer, Labels), white)

    def missing(self) -> str:
        """What to do where there is no layer, or none that can be taken; else empty."""
        layer = self.layers.layer()
        if layer is None:
            what = "Open a movie as an image" + ", or add points" * (Points in self._kinds)
            return f"There is no layer to work on. {what}."
        if getattr(layer, "rgb", False):
            return "The image has colours. Split its channels and choose the one with the spots."
        if layer.ndim not in (3, 4):
            name, remedy = "image", "Open it as a movie, or split its channels (right click on the layer)."
            if isinstance(layer, Points):
                name, remedy = "layer of points", "Add a first column: the frame."
            return f"The {name} has {layer.ndim} axes; needed are t, y, x or t, z, y, x. {remedy}"
        return ""

    def looked_at(self, transform: LayerTransform) -> tuple[int, tuple[float, float]]:
        """Number of the frame that is shown, and y, x of the middle of the view in voxels."""
        centre = np.array(self._viewer.scene.camera.center[-2:])
        y, x = ((centre - transform.translate[-2:]) / transform.scale[-2:]).tolist()
        return round(transform.frame_shown(self._viewer)), (y, x)

    @property
    def symbol(self) -> str:
        """Unit of lengths in the layer."""
        return self.voxel.unit.text()

    def _layer_chosen(self) -> None:
        layer = self.layers.layer()
        if layer is not None and layer.ndim >= 3:
            transform = transform_of(layer)
            self.voxel.set_values(transform.spacing, transform.symbol)
            self.voxel.boxes[0].setEnabled(layer.ndim > 3)
        self.chosen.emit()

    def _voxel_edited(self) -> None:
        """Apply an edited voxel size to the layer, so that all derived layers stay aligned with it."""
        layer = self.layers.layer()
        if layer is not None and layer.ndim >= 3:
            sizes = self.voxel.values()[-min(layer.ndim - 1, 3) :]
            layer.scale = (*layer.scale[: -len(sizes)], *sizes)
        self.chosen.emit()


def settings_of(values: Mapping[str, Any], spacing: tuple[float, float, float]) -> TrackingSettings:
    """Settings of a run record, without its pins, for voxels of this size."""
    rest = {
        name: value for name, value in values.items() if name not in ("no_columns", "no_features", "pins")
    }
    box = {"periodic": tuple(values["periodic"])} if values.get("periodic") else {}
    none = {"features": None} if values.get("no_features", values.get("no_columns")) else {}
    return TrackingSettings(**(rest | box | none | {"spacing": spacing}))
