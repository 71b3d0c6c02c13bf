"""The form *Simulate*: particles whose tracks are known, what a microscope sees of them, and a movie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtWidgets import QCheckBox

from outbid.errors import ResourceError
from outbid.particles.calibration import Calibration
from outbid.particles.tracks import Tracks
from outbid.simulate.camera import render
from outbid.simulate.microscope import observe
from outbid.simulate.settings import SimulationSettings
from outbid.simulate.walks import walk

from ..layers import RECORD, points_layer, tracks_layer
from .form import Form
from .napari_layers import LayerTransform, show
from .rows import SettingRows
from .work import Report, Task

_MOST_VOXELS = 1_000_000_000


@dataclass(frozen=True, eq=False)
class _Simulated:
    """Simulated detections with their true tracks, in voxels, and the image stack, if one was made."""

    seen: Tracks
    movie: NDArray[np.uint16] | None
    settings: SimulationSettings


class SimulateForm(Form):
    """Form that simulates particles and their images."""

    command = "simulate"
    run_text = "Simulate"

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.rows = SettingRows(
            SimulationSettings(
                particles=200, frames=30, box=(20.0, 100.0, 100.0), unit="pixel", birth_rate=0.02,
                death_rate=0.02, noise=(0.2, 0.1, 0.1), miss=0.03, clutter=0.02,
            )
        )  # fmt: skip
        self.movie = QCheckBox("render one")
        self.fields.addRow("movie", self.movie)
        self.rows.fill(self.fields)
        self.fields.addRow("result", self.result)
        self.rows["motion"].currentIndexChanged.connect(self._enable)
        self.movie.toggled.connect(self._enable)
        self._enable()

    # ------------------------------------------------------------ what a run is

    def settings(self) -> SimulationSettings:
        """The fields, by the names of the options of `outbid simulate`."""
        return SimulationSettings(**self.rows.values())

    def set_settings(self, values: Mapping[str, Any]) -> None:
        """Show the settings of a run; a movie is rendered if it is asked for again."""
        self.rows.show(values)

    def task(self) -> Task:
        """Simulate, and render if it is asked for."""
        given, movie = self.settings(), self.movie.isChecked()
        walks, microscope, camera = given.walks(), given.microscope(), given.camera()
        size = math.prod(camera.shape) * walks.frames
        if movie and size > _MOST_VOXELS:
            raise ResourceError(
                f"The movie would have {size:.3g} voxels. Take a smaller box, larger voxels or fewer frames, "
                "or let `outbid simulate --movie` write it into a file."
            )

        def work(report: Report) -> _Simulated:
            truth = walk(walks)
            report(0, walks.frames)
            seen = observe(truth, microscope, box=given.box, seed=given.seed)
            images = None
            if movie:
                images = np.zeros((walks.frames, *camera.shape), np.uint16)
                for frame, image in enumerate(render(truth.detections, camera, seed=given.seed)):
                    images[frame] = image
                    report(frame + 1, walks.frames)
            position = seen.detections.position / given.voxel
            return _Simulated(
                replace(seen, detections=replace(seen.detections, position=position)), images, given
            )

        return work

    # ------------------------------------------------------------ what is shown

    def show_result(self, result: _Simulated) -> None:
        """Add the movie, what is seen, and the truth about it."""
        used = result.settings
        voxel, units = used.voxel, ("pixel", *[used.unit] * 3)
        transform = LayerTransform((1.0, *voxel), (0.0,) * 4, units, ("t", "z", "y", "x"))
        voxels = Calibration(used.unit, voxel, used.frame_interval)
        record = self.record("", used.as_dict(), "cpu", voxels) | {"seed": used.seed, "input": None}
        of_image = {RECORD: {"calibration": voxels.as_dict()}}
        if result.movie is not None:
            self.viewer.add_image(result.movie, name="Simulated movie", **vars(transform), metadata=of_image)
        seen = points_layer(result.seen.detections, name="Simulated detections")
        show(self.viewer, seen, transform, record=record | {"command": "simulate --detections"})
        truth = tracks_layer(result.seen, calibration=voxels, name="Simulated truth")
        self.show_layer(truth, transform, record)
        self.show_message(
            f"{len(result.seen.detections)} detections of {used.particles} particles at first, "
            f"{len(result.seen.links)} true links."
        )

    def _enable(self) -> None:
        motion = self.rows["motion"].currentText()
        self.rows.enable(("directionality",), motion == "persistent")
        self.rows.enable(("persistence_time",), motion == "ornstein-uhlenbeck")
        self.rows.enable(("snr", "psf"), self.movie.isChecked())
