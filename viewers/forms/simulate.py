"""The form *Simulate*: particles whose tracks are known, what a microscope sees of them, and a movie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtWidgets import QCheckBox, QFormLayout, QWidget
from superqt import QCollapsible

from outbid.errors import ResourceError
from outbid.simulate.camera import Camera, render
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import BrownianWalk, Motion, OrnsteinUhlenbeckWalk, PersistentWalk
from outbid.simulate.walks import BOUNDARIES, UNITS, WalkSettings, walk
from outbid.tracks import Tracks

from ..layers import points_layer, tracks_layer
from .fields import AxesBox, CountBox, NumberBox, choice_box, explain
from .form import Form
from .shown import Place, show
from .work import Report, Task

_MOST_VOXELS = 1_000_000_000
_MOTIONS = ("persistent", "brownian", "ornstein-uhlenbeck")


@dataclass(frozen=True, eq=False)
class _Simulated:
    """Simulated detections with their true tracks, in voxels, and the image stack, if one was made."""

    seen: Tracks
    movie: NDArray[np.uint16] | None
    settings: Mapping[str, Any]


class SimulateForm(Form):
    """Form that simulates particles and their images."""

    command = "simulate"
    run_text = "Simulate"

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.particles = CountBox(200)
        self.frames = CountBox(30, 1)
        self.box = AxesBox((20, 100, 100))
        self.unit = choice_box(UNITS)
        self.motion = choice_box(_MOTIONS)
        self.step = NumberBox(1.0)
        self.persistence = NumberBox(0.8, maximum=1.0)
        self.persistence_time = NumberBox(5.0)
        self.boundary = choice_box(BOUNDARIES)
        self.birth_rate = NumberBox(0.02, first=0.01)
        self.death_rate = NumberBox(0.02, maximum=1.0, first=0.01)
        self.noise = AxesBox((0.2, 0.1, 0.1))
        self.miss = NumberBox(0.03, maximum=1.0, first=0.01)
        self.clutter = NumberBox(0.02, first=0.01)
        self.movie = QCheckBox("render one")
        self.snr = NumberBox(4.0)
        self.psf = AxesBox((1.0, 1.5, 1.5))
        self.voxel = AxesBox((1.0, 1.0, 1.0))
        self.seed = CountBox(0)
        self._fill()
        self.motion.currentIndexChanged.connect(self._enable)
        self.movie.toggled.connect(self._enable)
        self._enable()

    # ------------------------------------------------------------ what a run is

    def settings(self) -> dict[str, Any]:
        """The fields, by the names of the options of `outbid simulate`."""
        named: dict[str, NumberBox | CountBox] = {
            "particles": self.particles, "frames": self.frames, "step": self.step, "seed": self.seed,
            "persistence": self.persistence, "persistence_time": self.persistence_time,
            "birth_rate": self.birth_rate, "death_rate": self.death_rate, "miss": self.miss,
            "clutter": self.clutter, "snr": self.snr,
        }  # fmt: skip
        axes = {"box": self.box, "noise": self.noise, "psf": self.psf, "voxel": self.voxel}
        chosen = {"motion": self.motion, "boundary": self.boundary, "unit": self.unit}
        return (
            {name: box.value() for name, box in named.items()}
            | {name: box.values() for name, box in axes.items()}
            | {name: box.currentText() for name, box in chosen.items()}
        )

    def set_settings(self, values: Mapping[str, Any]) -> None:
        """Show the settings of a run; a movie is rendered if it is asked for again."""
        for name in ("particles", "frames", "seed"):
            getattr(self, name).set_number(int(values[name]))
        for name in (
            "step",
            "persistence",
            "persistence_time",
            "birth_rate",
            "death_rate",
            "miss",
            "clutter",
        ):
            getattr(self, name).set_number(float(values[name]))
        self.snr.set_number(float(values["snr"]))
        for name in ("box", "noise", "psf", "voxel"):
            getattr(self, name).set_values(tuple(values[name]))
        self.motion.setCurrentText(values["motion"])
        self.boundary.setCurrentText(values["boundary"])
        self.unit.setCurrentText(values.get("unit", UNITS[0]))

    def task(self) -> Task:
        """Simulate, and render if it is asked for."""
        given, movie = self.settings(), self.movie.isChecked()
        box, voxel, seed = given["box"], given["voxel"], given["seed"]
        walks = WalkSettings(
            self._motion(), given["particles"], given["frames"], box, given["boundary"], given["birth_rate"],
            given["death_rate"], seed, given["unit"],
        )  # fmt: skip
        microscope = Microscope(given["noise"], given["miss"], given["clutter"])
        camera = Camera.looking_at(box, psf=given["psf"], snr=given["snr"], spacing=voxel)
        size = math.prod(camera.shape) * walks.frames
        if movie and size > _MOST_VOXELS:
            raise ResourceError(
                f"The movie would have {size:.3g} voxels. Take a smaller box, larger voxels or fewer frames, "
                "or let `outbid simulate --movie` write it into a file."
            )

        def work(report: Report) -> _Simulated:
            truth = walk(walks)
            report(0, walks.frames)
            seen = observe(truth, microscope, box=box, seed=seed)
            images = None
            if movie:
                images = np.zeros((walks.frames, *camera.shape), np.uint16)
                for frame, image in enumerate(render(truth.detections, camera, seed=seed)):
                    images[frame] = image
                    report(frame + 1, walks.frames)
            position = seen.detections.position / voxel
            return _Simulated(
                replace(seen, detections=replace(seen.detections, position=position)), images, given
            )

        return work

    def _motion(self) -> Motion:
        step = self.step.value()
        if self.motion.currentText() == "persistent":
            return PersistentWalk(step, self.persistence.value())
        if self.motion.currentText() == "brownian":
            return BrownianWalk(step)
        return OrnsteinUhlenbeckWalk(step, self.persistence_time.value())

    # ------------------------------------------------------------ what is shown

    def show_result(self, result: _Simulated) -> None:
        """Add the movie, what is seen, and the truth about it."""
        voxel = result.settings["voxel"]
        units = ("pixel", *[result.settings["unit"]] * 3)
        place = Place((1.0, *voxel), (0.0,) * 4, units, ("t", "z", "y", "x"))
        record = self.record("", result.settings, "cpu") | {"seed": result.settings["seed"], "input": None}
        if result.movie is not None:
            self.viewer.add_image(
                result.movie, name="Simulated movie", scale=place.scale, units=place.units,
                axis_labels=place.axis_labels, metadata={},
            )  # fmt: skip
        seen = points_layer(result.seen.detections, name="Simulated detections")
        show(self.viewer, seen, place, record=record | {"command": "simulate --detections"})
        truth = tracks_layer(result.seen, spacing=voxel, name="Simulated truth")
        self.show_layer(truth, place, record)
        self.show_message(
            f"{len(result.seen.detections)} detections of {result.settings['particles']} particles at first, "
            f"{len(result.seen.links)} true links."
        )

    def _enable(self) -> None:
        motion = self.motion.currentText()
        self.persistence.setEnabled(motion == "persistent")
        self.persistence_time.setEnabled(motion == "ornstein-uhlenbeck")
        for field in (self.snr, self.psf):
            field.setEnabled(self.movie.isChecked())

    def _fill(self) -> None:
        form = self.fields
        form.addRow("particles", self.particles)
        form.addRow("frames", self.frames)
        form.addRow("box z, y, x", self.box)
        form.addRow("motion", self.motion)
        form.addRow("step a frame", self.step)
        form.addRow("missed", self.miss)
        form.addRow("false spots", self.clutter)
        form.addRow("movie", self.movie)
        inside = QWidget()
        rows = QFormLayout(inside)
        rows.addRow("persistence", self.persistence)
        rows.addRow("kept for", self.persistence_time)
        rows.addRow("walls", self.boundary)
        rows.addRow("births", self.birth_rate)
        rows.addRow("deaths", self.death_rate)
        rows.addRow("unit", self.unit)
        rows.addRow("noise z, y, x", self.noise)
        rows.addRow("voxel z, y, x", self.voxel)
        rows.addRow("signal to noise", self.snr)
        rows.addRow("spot z, y, x", self.psf)
        explain(form, {"particles": self.particles, "frames": self.frames, "box": self.box}, WalkSettings)
        explain(form, {"miss": self.miss, "clutter": self.clutter}, Microscope)
        walls = {"boundary": self.boundary, "birth_rate": self.birth_rate, "death_rate": self.death_rate}
        explain(rows, walls | {"unit": self.unit}, WalkSettings)
        explain(rows, {"noise": self.noise}, Microscope)
        explain(rows, {"spacing": self.voxel, "snr": self.snr, "psf": self.psf}, Camera)
        more = QCollapsible("more")
        more.addWidget(inside)
        more.layout().setContentsMargins(0, 0, 0, 0)
        form.addRow(more)
        form.addRow("seed", self.seed)
        form.addRow("result", self.result)
