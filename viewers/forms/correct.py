"""The form *Lineage*: corrections by hand, by clicks in the image or in the lineage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray
from qtpy.QtCore import Qt
from qtpy.QtGui import QHideEvent, QKeySequence, QShortcut
from qtpy.QtWidgets import (
    QApplication,
    QGridLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QWidget,
)

from outbid import formats
from outbid.errors import InputError, OutbidError
from outbid.particles.tracks import Tracks
from outbid.pins import read_pins
from outbid.tracking import TrackingSettings

from .. import correcting, proofreading
from ..correcting import Corrected
from ..layers import CORRECTED
from ..proofreading import Session
from .lineage import LineageForm, ray
from .napari_layers import calibration_of, record_of, transform_of
from .places import as_detected, keep_places_of_tracks
from .source import settings_of
from .windowed import show_tracks
from .work import Report

ACTS = {
    "L": "link", "F": "cut", "J": "join tracks", "V": "divide", "A": "add …", "M": "move …", "D": "remove",
    "Z": "undo", "R": "redo",
}  # fmt: skip
_OF = {
    "L": correcting.link, "F": correcting.cut, "J": correcting.join, "V": correcting.divide,
    "D": correcting.remove,
}  # fmt: skip
_AT_ONCE = {"L": 2, "F": 1, "J": 2, "V": 2, "D": 1}
"""Detections selected with which an act is done at once; with fewer it waits for clicks."""
_CLICKED = {"L": 2, "F": 1, "J": 2, "V": 3, "D": 1}
"""Detections at which an act that waited is done."""
_SUFFIXES = (".csv", ".tsv", ".parquet", ".geff", ".xml")
_USED = count()
"""When a form had the focus: several may have a key."""
_MOST_LISTED = 200
_NEAR = 4.0
"""Pixels of the screen within which a click is at a spot."""
_ENDING = "_proofread"


class CorrectForm(LineageForm):
    """The lineage, with acts on what is selected; the first act opens a session."""

    command = "track"
    acts = ACTS

    def __init__(self, napari_viewer: Any) -> None:
        self.session: Session | None = None
        self._record: dict[str, object] = {}
        self._key = ""  # of an act that waits for clicks
        self.used = 0
        self._showing = False  # the layer is changed by this form
        self.file, self.changes, self.save_button = QLineEdit(), QListWidget(), QPushButton("Save")
        self.keys = QGridLayout()
        self.buttons = {key: QPushButton(f"{text} ({key})") for key, text in self.acts.items()}
        super().__init__(napari_viewer)
        self._fill_acts()
        self._connect_acts()
        self.enable()

    # ------------------------------------------------------------ the session

    def opening(self) -> Callable[[Report], Session]:
        """What opens a session of the tracks that are shown, with the pins of its file."""
        layer, taken, path = self.layers.layer(), self.tracks, self.pins_path
        if layer is None or taken is None:
            raise InputError("There is no layer of tracks. Open one, or track particles.")
        foreign, record = not isinstance(layer, Points), dict(record_of(layer) or {})
        taken = as_detected(self.viewer, layer, before_pins=True) if foreign else taken
        settings = TrackingSettings()
        if foreign and record.get("command") == "track":
            settings, foreign = settings_of(record["settings"], (1.0, 1.0, 1.0)), False
        self._record = record

        def opened(report: Report) -> Session:
            pins = read_pins(path) if path.exists() else ()
            return proofreading.opened(taken, settings, pins, foreign=foreign, progress=report)

        return opened

    def do(self, step: Callable[..., Session | Corrected], *given: Any, said: str = "") -> None:
        """Take a step of the session in the background, unless another one is on its way."""
        if self._work is not None:
            return
        session, opened = self.session, None
        try:
            opened = None if session is not None else self.opening()
        except OutbidError as problem:
            self.show_problem(problem)
            return

        def work(report: Report) -> object:
            now = session if opened is None else opened(report)
            made = step(now, *given)
            return made if isinstance(made, Corrected) else Corrected(made, said, ())

        self._job = work
        self.run()

    def show_result(self, result: Any) -> None:
        """Show the session after a step, in the lineage and in the layer."""
        if not isinstance(result, Corrected):
            super().show_result(result)
            return
        first = self.session is None
        self.session = session = proofreading.stored(result.session, self.pins_path)
        self.selected = [*result.rows] or self.selected
        if self.tracks is not session.tracks:
            self._show_session(session)
        self._list_changes(session)
        unmatched = session.now.found.unmatched
        missing = f"{len(unmatched)} pins name no detection: {unmatched[0]}, …" if unmatched else ""
        where = f"Pins are in {self.pins_path.resolve()}." if first and session.pins else ""
        self.show_message(" ".join(filter(None, [result.said, missing, where])))
        self.enable()

    def _show_session(self, session: Session) -> None:
        """Give the layer the tracks of the session, and show them."""
        tracks, layer = session.tracks, self.layers.layer()
        corrected = {CORRECTED: str(self.pins_path)} if session.pins else {}
        record = {name: value for name, value in self._record.items() if name != CORRECTED} | corrected
        order = np.lexsort((tracks.detections.frame, tracks.track_id))
        rows = np.empty(len(order), np.int64)
        rows[order] = np.arange(len(order))
        self._showing = True
        if layer is not None and not isinstance(layer, Points):
            on_grid = replace(tracks, detections=tracks.detections.on_grid(calibration_of(layer)))
            shown = show_tracks(
                self.viewer, on_grid, transform_of(layer), layer.name, record=record, instead_of=layer
            )
            keep_places_of_tracks(shown, tracks, tracks.detections.position)
            self.layers.renew()
            self.layers.choose(shown)
        self._showing = False
        self.hold_tracks(tracks, rows, tracks.track_id[order])
        if self.selected:
            self.select(self.selected[-1], more=True, go=False)

    def _hold_layer(self) -> None:
        """Show another layer, of which no session is open yet."""
        if self._showing:
            return
        self.session, self._key, self.selected = None, "", []
        self.changes.clear()
        self._propose_file()
        super()._hold_layer()
        self.enable()

    # ------------------------------------------------------------ acts

    def press(self, key: str) -> None:
        """Do what a key stands for."""
        self._key = ""
        if self._work is not None or self.tracks is None:
            return
        if key in "ZR":
            self._undo(key)
        elif key in _OF and len(self.selected) >= _AT_ONCE[key]:
            self.do(_OF[key], tuple(self.selected))
        elif key == "M" and len(self.selected) != 1:
            self.show_message("Select the detection to move: click on it.", error=True)
        elif key in self.acts:
            self._wait(key)

    def _wait(self, key: str) -> None:
        self._key = key
        if key in "AM":
            deep = " It gets the depth of what is selected." * (self.viewer.dims.ndisplay == 3)
            self.show_message(f"{self.acts[key]}: click where the spot is, in the image.{deep}")
            return
        left = _CLICKED[key] - len(self.selected)
        which = "the detection" if left == 1 else f"{left} detections"
        self.show_message(f"{self.acts[key]}: click on {which}, in the image or in the lineage.")

    def _undo(self, key: str) -> None:
        session = self.session
        if session is None or not (session.past if key == "Z" else session.future):
            self.show_message(f"There is nothing to {self.acts[key]}.")
            return
        step = proofreading.undo if key == "Z" else proofreading.redo
        self.do(step, said="Undone." if key == "Z" else "Redone.")

    def select(self, row: int, more: bool = False, go: bool = True) -> None:
        """Select a detection; one that an act waits for joins those that are selected."""
        waits = self._key in _OF
        super().select(row, more or waits, go)
        self.enable()
        if waits and len(self.selected) >= _CLICKED[self._key]:
            key, self._key = self._key, ""
            self.do(_OF[key], tuple(self.selected))

    def clicked(self, world: Sequence[float], direction: Sequence[float] | None, more: bool) -> None:
        """Take a click for the act that waits for a place, or select what is there."""
        key = self._key
        if self.tracks is None or self._work is not None or key not in ("A", "M"):
            super().clicked(world, direction, more)
            return
        if direction is not None and not self.selected:
            self.show_message("Click on a detection first: the new one gets its depth.", error=True)
            return
        frame, at, along = ray(world, direction, self._transform)
        seen = self.tracks.detections
        if self.selected and (direction is not None or key == "M"):
            depth = seen.position[self.selected[-1]]
            at = at + along * ((depth - at) @ along)
        row = self.selected[-1] if key == "M" else -1
        frame = frame if key == "A" else int(seen.frame[row])
        there = self._spots_at(frame, at, along) - {row}
        if there:
            self.show_message(
                f"{self.name(min(there)).capitalize()} is there already. Click farther away from it; zoom in "
                "to put a spot close to it.", error=True,
            )  # fmt: skip
            return
        self._key = ""
        z, y, x = at.tolist()
        if key == "A":
            self.do(correcting.add, (frame, (z, y, x)))
        else:
            self.do(correcting.move, row, (frame, (z, y, x)))

    def _spots_at(self, frame: int, at: NDArray[np.float64], along: NDArray[np.float64]) -> set[int]:
        """Rows of the detections of a frame that are where the user clicked, also those that are filtered."""
        assert self.tracks is not None
        rows, near = self.tracks.detections.rows_of(frame), _NEAR / self.viewer.scene.camera.zoom
        way = self.tracks.detections.position[rows] - at
        deep = way @ along
        here = np.linalg.norm(way - np.outer(deep, along), axis=1) < near
        here &= np.abs(deep) < max(near, calibration_of(self.layers.layer()).spacing[0] / 2)
        return set((rows.start + np.flatnonzero(here)).tolist())

    def enable(self) -> None:
        """Enable what can act."""
        here = self.tracks is not None
        for key, button in self.buttons.items():
            button.setEnabled(self.can(key) and here)
        self.save_button.setEnabled(self.session is not None)

    def can(self, key: str) -> bool:
        """Whether a key can act now, or wait for clicks."""
        session = self.session
        if key in "ZR":
            return session is not None and bool(session.past if key == "Z" else session.future)
        return bool(self.selected) or key not in ("M", "D", "F")

    # ------------------------------------------------------------ the file

    @property
    def pins_path(self) -> Path:
        """The table of pins next to the tracks."""
        path = Path(self.file.text())
        return path.with_name(f"{path.stem.removesuffix(_ENDING)}.pins.csv")

    def save(self) -> None:
        """Write the tracks; the pins are already in the table next to them."""
        session, path = self.session, Path(self.file.text()).absolute()
        if session is None:
            self.show_message("There is nothing to save: nothing was corrected.")
            return
        settings, calibration = session.now.run.settings.as_dict(), session.tracks.detections.calibration
        own = {"settings": settings} if session.given is None else {}
        record = self.record(str(path), settings, "cpu") | self._record | own

        def write(session: Session) -> Session:
            formats.write_tracks(path, session.tracks, record=record, overwrite=True)
            return session

        said = f"{path} is written, {calibration}; its pins are in {self.pins_path.name}."
        self.do(write, said=said)

    def _propose_file(self) -> None:
        """Propose a file next to that of the layer."""
        layer = self.layers.layer()
        if layer is None:
            return
        source = Path(layer.source.path or f"{layer.name}.csv")
        suffix = source.suffix if source.suffix in _SUFFIXES else ".csv"
        stem = source.name.removesuffix(source.suffix).removesuffix(_ENDING)
        self.file.setText(str(source.with_name(f"{stem}{_ENDING}{suffix}")))

    # ------------------------------------------------------------ looks

    def _list_changes(self, session: Session) -> None:
        tracks = session.tracks
        self.changes.clear()
        for row in session.changed[:_MOST_LISTED].tolist():
            self.changes.addItem(_change(tracks, row))
        self.changes.setVisible(self.changes.count() > 0)

    def _fill_acts(self) -> None:
        self.file.setToolTip(
            "File in which Save writes the tracks. Each correction is written at once to a table next to it."
        )
        self.keys.setSpacing(3)
        self.lay_keys(4)
        at = self.fields.getWidgetPosition(self.where)[0] + 1
        self.changes.setMaximumHeight(70)
        self.changes.hide()
        for row in (self.changes, self.keys):
            self.fields.insertRow(at, row)
        self.fields.insertRow(1, "save as", self.file)

    def lay_keys(self, columns: int) -> None:
        """Put so many buttons beside each other."""
        for k, button in enumerate([*self.buttons.values(), self.save_button]):
            self.keys.addWidget(button, *divmod(k, columns))

    def _connect_acts(self) -> None:
        for key, button in self.buttons.items():
            button.clicked.connect(lambda _=False, key=key: self.press(key))
            pressed = partial(self._pressed, key)
            QShortcut(QKeySequence(key), self, activated=pressed, activatedAmbiguously=pressed)
        QApplication.instance().focusChanged.connect(self._focus_moved)
        self.save_button.clicked.connect(lambda _=False: self.save())
        self.changes.itemClicked.connect(lambda item: self.select(item.data(Qt.ItemDataRole.UserRole)))

    def _pressed(self, key: str) -> None:
        """Of the forms that are seen and have the key, the one acts in which the focus is, or was last."""
        forms = [form for form in self.window().findChildren(CorrectForm) if form.isVisible()]
        max((form for form in forms if key in form.acts), key=lambda form: form.used).press(key)

    def _focus_moved(self, _: object, now: QWidget | None) -> None:
        if now is not None and (now is self or self.isAncestorOf(now)):
            self.used = next(_USED)

    def showEvent(self, event: Any) -> None:
        """Have the keys from now on; called by Qt."""
        super().showEvent(event)
        self.used = next(_USED)
        self.lay_keys(2 if self.narrow else 4)

    def hideEvent(self, event: QHideEvent) -> None:
        """Wait for no click any more; called by Qt."""
        super().hideEvent(event)
        if not event.spontaneous():
            self._key = ""


def _change(tracks: Tracks, row: int) -> QListWidgetItem:
    """Where a detection goes on, as an item of a list."""
    here = slice(*np.searchsorted(tracks.links[:, 0], [row, row + 1]))
    ends: NDArray[np.float64] = tracks.detections.position[tracks.links[here, 1]]
    after = " and ".join(f"at {', '.join(f'{x:.4g}' for x in end)}" for end in ends) or "nowhere"
    frame = tracks.detections.frame[row]
    item = QListWidgetItem(f"track {tracks.track_id[row]}, frame {frame}: goes on {after}")
    item.setData(Qt.ItemDataRole.UserRole, row)
    return item
