"""The form *Live*: a movie is followed while it is recorded, in image, tracks and lineage.

A process of its own watches; the form reads what that writes, so that drawing delays nothing.
"""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from click import ClickException
from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import (
    QFileDialog,
    QFormLayout,
    QGridLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from outbid.cli.watch import watch as watch_command
from outbid.errors import OutbidError
from outbid.watching.apart import Apart
from outbid.watching.ending import sentence_of
from outbid.watching.reading import Reading, stop
from outbid.watching.showing import live_tracks
from outbid.work.jobs import Opening

from ..forest import forest_of
from .forest_plot import ForestPlot
from .laid_out import stand_beside
from .live_layers import LiveLayers
from .napari_layers import CONFIDENCE_MAP
from .said import MessageBox

_OPENED = ("axes", "channel", "scene", "level", "spacing")
"""Options that say how images are opened."""
_LEAST, _MOST = 30, 90
"""Milliseconds from look to look: as long as the last look took, so that the window answers."""
_LINEAGE = 1.0, 9.0
"""Seconds from lineage to lineage, at least; and at least so many times those that the last one took."""
_WIDE = 230
"""Pixels, at least: as many as a window of 800 has room for."""
_MOST_EVENTS = 200
"""Guard: events that are listed, the latest first."""


class LiveForm(QWidget):
    """Form that starts to follow a movie, shows what comes, and stops.

    Parameters
    ----------
    napari_viewer : napari.Viewer
    """

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.viewer = napari_viewer
        self.source, self.output, self.options = QLineEdit(), QLineEdit(), QLineEdit()
        self.button, self.said, self.events = QPushButton("Follow"), MessageBox(), QListWidget()
        self.lineage = ForestPlot()
        self.layers: LiveLayers | None = None
        self._own: list[Path] = []  # outputs of processes that the form has started
        self._process: Apart | None = None
        self._tracks: Any = None  # which the lineage shows
        self._lineage_due = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._fill()
        self._timer.timeout.connect(self.look)
        self.button.clicked.connect(lambda _=False: self.start() if self.layers is None else self.stop())
        self.lineage.chosen.connect(self._chosen)
        self.events.itemClicked.connect(lambda item: self._go(item.data(Qt.ItemDataRole.UserRole)))
        self.source.textEdited.connect(self._propose)
        stand_beside(self)
        own = self._own
        self.destroyed.connect(lambda _=None: [stop(output) for output in own])

    def start(self) -> None:
        """Start a process that watches, and follow it."""
        source, output = self.source.text().strip(), Path(self.output.text()).absolute()
        try:
            words = [source, "-o", str(output), *shlex.split(self.options.text())]
        except ValueError as error:
            self.said.show_text(f"The options are not as in a shell: {error}.", error=True)
            return
        if not source:
            self.said.show_text("Choose the folder or file to which the microscope writes.", error=True)
            return
        try:
            given = watch_command.make_context("watch", list(words)).params
            self.follow(source, output, Opening(**{name: given[name] for name in _OPENED}))
        except (OutbidError, ClickException) as error:
            self.said.show_text(str(error), error=True)
            return
        self._process = Apart(["watch", *words])
        self._own.append(output)

    def follow(self, source: str, output: Path, opening: Opening | None = None) -> None:
        """Follow what a watch of a source writes; of images unless the source is empty."""
        self.source.setText(source)
        self.output.setText(str(output))
        self.layers = LiveLayers(self, Reading(output), source, opening or Opening())
        self.events.clear()
        self.button.setText("Stop following")
        self.said.show_text(f"Waiting for the first frames of {source or output}.")
        self._timer.start(_LEAST)

    def stop(self) -> None:
        """End the recording, at the next look; the process links the whole movie again."""
        self.button.setEnabled(False)

    def look(self) -> None:
        """Show what has come since the last look."""
        begin, layers = monotonic(), self.layers
        if layers is None:
            return
        reading = layers.reading
        if not self.button.isEnabled():
            stop(reading.output)
        try:
            layers.look()
            for event in reading.events():
                self._list(event)
        except (OutbidError, OSError, ValueError) as error:
            self._end(layers, f"What is followed cannot be read any more: {error}")
            return
        if monotonic() >= self._lineage_due and self.isVisible():
            self._draw_lineage(layers)
        record, problem = reading.record(), "" if self._process is None else self._process.problem()
        if record is not None or problem:
            self._end(layers, problem if record is None else sentence_of(record, reading.output))
            return
        self.said.show_text(self._sentence(layers))
        self._timer.start(min(max(_LEAST, round(1000 * (monotonic() - begin))), _MOST))

    def _sentence(self, layers: LiveLayers) -> str:
        """What is followed, how far it is, what happened last."""
        tail, reading = layers.reading.tail, layers.reading
        if reading.has_ended:
            return f"The recording has ended after frame {tail.taken}. The whole movie is linked again."
        if tail.taken < 0:
            return self.said.label.text()
        if reading.last < 0:
            return f"Learning from the first frames: {tail.taken + 1} have come, {tail.behind} are behind."
        spots = len(layers.recent[-1].track)
        last = self.events.item(0)
        event = f"Last event: {last.text()}." if last else ""
        away = "" if layers.follows else "The view stays where it is; move the time to its end to follow."
        return f"Frame {reading.last}: {spots} spots, {tail.behind} frames behind. {event} {away}".strip()

    def _list(self, event: Any) -> None:
        value = f" = {event['value']:.4g}" if "value" in event else ""
        item = QListWidgetItem(f"{event['when']}{value}: track {event['track']}, frame {event['frame']}")
        item.setData(Qt.ItemDataRole.UserRole, event["frame"])
        self.events.insertItem(0, item)
        self.events.takeItem(_MOST_EVENTS)
        self.events.show()

    def _draw_lineage(self, layers: LiveLayers) -> None:
        begin = monotonic()
        if layers.recent and self.lineage.plot is not None:
            self._tracks, number, chance = live_tracks(layers.recent)
            self.lineage.hold(forest_of(self._tracks), number, chance)
            self.lineage.show_frame(layers.reading.last)
            if self.lineage.fitted:
                self.lineage.fit()
        now = monotonic()
        self._lineage_due = now + max(_LINEAGE[0], _LINEAGE[1] * (now - begin))

    def _end(self, layers: LiveLayers, said: str) -> None:
        """Say what was written, and show the tracks of the last pass."""
        failed, self.layers, self._process = layers.reading.record() is None, None, None
        self.button.setText("Follow")
        self.button.setEnabled(True)
        self.said.show_text(said, error=failed)
        layers.close()
        if not failed:
            layers.end()

    def _chosen(self, row: int, _: bool) -> None:
        self._go(int(self._tracks.detections.frame[row]))

    def _go(self, frame: int) -> None:
        if self.layers is not None:
            self.layers.go(frame)

    def _propose(self, text: str) -> None:
        """Propose tracks beside the source."""
        path = Path(text)
        self.output.setText(str(path.with_name(f"{path.name.split('.')[0]}_tracks.parquet")) if text else "")

    def _ask(self, dialog: Any) -> None:
        given = dialog(self, "What the microscope writes to")
        self.source.setText(given if isinstance(given, str) else given[0])
        self._propose(self.source.text())

    def _fill(self) -> None:
        buttons = QGridLayout()
        for k, (text, dialog) in enumerate(
            [("Folder …", QFileDialog.getExistingDirectory), ("File …", QFileDialog.getOpenFileName)]
        ):
            button = QPushButton(text)
            button.clicked.connect(partial(self._ask, dialog))
            buttons.addWidget(button, 0, k)
        rows = QFormLayout()
        rows.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        rows.addRow("recorded to", self.source)
        rows.addRow(buttons)
        rows.addRow("tracks to", self.output)
        rows.addRow("options", self.options)
        self.options.setPlaceholderText('--when "speed > 2"')
        self.options.setToolTip("Options of outbid watch, as in a shell.")
        self.events.setMaximumHeight(90)
        self.events.hide()
        self.lineage.colour(np.empty(0), CONFIDENCE_MAP.colors)
        self.setMinimumWidth(_WIDE)
        column = QVBoxLayout(self)
        column.addLayout(rows)
        for widget in (self.button, self.said, self.events):
            column.addWidget(widget)
        column.addWidget(self.lineage, 1)
