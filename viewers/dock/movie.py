"""The page *Movie*: opens a movie or a session, and says what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from napari.layers import Image, Labels
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFileDialog, QFormLayout, QHBoxLayout, QPushButton
from superqt.utils import signals_blocked

from outbid.errors import OutbidError
from outbid.particles.calibration import METRES

from ..forms.fields import NumberBox, choice_box
from ..forms.napari_layers import calibration_of, record_of
from ..forms.said import sentence
from ..forms.source import SourceFields
from ..layers import RECORD
from .page import Page
from .reopened import reopen
from .session import is_session

_NOTHING = "Open a movie, or a session that was saved; or drag a file into the window."


class MoviePage(Page):
    """The movie, with the size of its voxels and the time between its frames."""

    title = "Movie"
    reopened = Signal(object)
    """A `outbid.viewers.dock.session.Session` whose layers are open."""

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer)
        self.said = sentence()
        self.source = SourceFields(viewer, Image, Labels)
        self.interval = NumberBox(None, automatic="times in frames")
        self.interval.setSuffix(" s")
        self.unit = choice_box(["pixel", *METRES])
        self.file_button, self.folder_button = QPushButton("Open file …"), QPushButton("Open folder …")
        self.live_button = QPushButton("Follow a recording …")
        self._fill()
        self.file_button.clicked.connect(lambda _=False: self._ask(QFileDialog.getOpenFileName))
        self.folder_button.clicked.connect(lambda _=False: self._ask(QFileDialog.getExistingDirectory))
        self.live_button.clicked.connect(
            lambda _=False: self.viewer.window.add_plugin_dock_widget("outbid", "Live")
        )
        self.source.chosen.connect(self.renew)
        self.interval.valueChanged.connect(self._interval_edited)
        self.unit.currentTextChanged.connect(self._unit_edited)
        for event in (viewer.layers.events.inserted, viewer.layers.events.removed):
            event.connect(lambda _: self.renew(), position="last")
        self.renew()

    def layer(self) -> Any | None:
        """The layer of the movie."""
        return self.source.layers.layer()

    def able(self) -> bool:
        """Always: a movie can be opened."""
        return True

    def act_text(self) -> str:
        """Open a file, until there is something to work on."""
        return self.file_button.text() if not len(self.viewer.layers) else ""

    def act(self) -> None:
        """Ask for a file."""
        self.file_button.click()

    def open(self, path: str) -> None:
        """Open a movie, detections, tracks or a session."""
        try:
            if is_session(Path(path)):
                session, said = reopen(self.viewer, Path(path))
                self.renew()
                self.said.setText(said)
                self.reopened.emit(session)
                return
            for layer in self.viewer.open(path, plugin="outbid"):
                if self.source.layers.takes(layer):
                    self.source.layers.choose(layer)
        except (OutbidError, OSError) as error:
            self.said.setText(str(error))
            return
        self.renew()

    def renew(self) -> None:
        """Say what the movie is, and how far its units are known."""
        layer = self.layer()
        if layer is not None:
            with signals_blocked(self.interval), signals_blocked(self.unit):
                self.interval.set_number(calibration_of(layer).interval)
                self.unit.setCurrentText(calibration_of(layer).unit)
        self.said.setText(self._nothing() if layer is None else self.source.missing() or _about(layer))
        self.changed.emit()

    def _nothing(self) -> str:
        """What can be done without a movie."""
        others = [layer.name for layer in self.viewer.layers]
        return f"There is no movie beside {', '.join(others)}: you can go on." if others else _NOTHING

    def _ask(self, dialog: Any) -> None:
        given = dialog(self, "Open a movie, detections, tracks or a session")
        path = given if isinstance(given, str) else given[0]
        if path:
            self.open(path)

    def _interval_edited(self) -> None:
        layer = self.layer()
        if layer is None:
            return
        record, voxels = dict(record_of(layer) or {}), calibration_of(layer)
        record["calibration"] = voxels.as_dict() | {"interval": self.interval.number()}
        layer.metadata = {**layer.metadata, RECORD: record}
        self.said.setText(_about(layer))

    def _unit_edited(self, unit: str) -> None:
        layer = self.layer()
        if layer is not None:
            layer.units = (layer.units[0], *[unit] * (layer.ndim - 1))
            self.source.chosen.emit()

    def _fill(self) -> None:
        buttons = QHBoxLayout()
        for button in (self.file_button, self.folder_button):
            buttons.addWidget(button)
        rows = QFormLayout()
        rows.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        rows.addRow("movie", self.source.layers)
        rows.addRow("voxel z, y, x", self.source.voxel)
        rows.addRow("unit", self.unit)
        rows.addRow("a frame every", self.interval)
        self.column.addWidget(self.said)
        self.column.addLayout(buttons)
        self.column.addWidget(self.live_button)
        self.column.addLayout(rows)
        self.column.addStretch()


def _about(layer: Any) -> str:
    """What a movie is: frames, voxels, units; and what of it is not known."""
    data = layer.data[0] if layer.multiscale else layer.data
    frames, *sizes = data.shape
    voxels = calibration_of(layer)
    size = " x ".join(f"{one:.4g}" for one in voxels.spacing[-len(sizes) :])
    every = "" if voxels.interval is None else f", one every {voxels.interval:.4g} s"
    grey = " x ".join(map(str, sizes))
    many = f"{frames} frame{'s' * (frames != 1)}"
    text = f"{layer.name}: {many} of {grey} voxels of {size} {voxels.symbol}{every}."
    missing = ["the size of a voxel"] * (voxels.unit == "pixel")
    missing += ["the time between frames"] * (voxels.interval is None)
    if missing:
        text += f" The file does not state {' and '.join(missing)}: set what you know."
    return text
