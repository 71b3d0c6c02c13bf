"""The form *Proofread*: the least certain links first, an answer by a key, and tracks solved again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray
from qtpy.QtCore import Qt, QTimer
from qtpy.QtGui import QHideEvent, QKeySequence, QShortcut
from qtpy.QtWidgets import (
    QGridLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QTabWidget,
)

from outbid import formats
from outbid.errors import InputError
from outbid.particles.tracks import Tracks
from outbid.pins import read_pins
from outbid.tracking import TrackingSettings

from .. import proofreading
from ..coloured import coloured, names_of
from ..explained import why
from ..forest import forest_of
from ..proofreading import Edit, Question, Session
from .answers import pins_of, ray, ready, solved
from .fields import LayerBox
from .forest_plot import ForestPlot
from .form import Form
from .napari_layers import LayerTransform, record_of, transform_of
from .pair import can_be_held
from .places import as_detected, points_in
from .question_layers import QuestionLayers, texts_of
from .source import settings_of
from .table import NumbersTable
from .work import Report, Task

KEYS = {
    "N": "next", "1": "pin 1", "2": "pin 2", "3": "pin 3", "4": "pin 4", "0": "ends here", "F": "forbid",
    "J": "same cell …", "V": "division …", "C": "no particle", "Space": "skip", "Z": "undo", "R": "redo",
    "A": "add …", "M": "move …", "D": "remove",
}  # fmt: skip
_CLICKS = {"J": 1, "V": 2, "A": 1, "M": 1}
"""Places that are clicked after a key."""
_BLINKS, _BLINK = 6, 200  # times, and milliseconds
_SUFFIXES = (".csv", ".tsv", ".parquet", ".geff", ".xml")
_MOST_LISTED = 200
_ENDING = "_proofread"


class ProofreadForm(Form):
    """Form that asks about links, the least certain first, and solves again under the answers."""

    command = "track"
    run_text = "Open"

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.session: Session | None = None
        self.asked: Question | None = None
        self._job: Task | None = None
        self._layers: Any = None  # QuestionLayers, while a session is open
        self._taken: Any = None  # the layer that is proofread, hidden meanwhile
        self._transform = LayerTransform((), (), (), ())
        self._record: dict[str, object] | None = None
        self._key, self._clicked = "", list[int]()
        self._blinks = 0
        self._blink = QTimer(self, interval=_BLINK)
        self._drawn: Iterator[None] = iter(())
        self.drawing = QTimer(self, interval=0)
        self.layers = LayerBox(self.viewer, lambda layer: can_be_held(layer) or isinstance(layer, Points))
        self.file, self.headline, self.where = QLineEdit(), QLabel(), QLabel()
        self.changes, self.tabs = QListWidget(), QTabWidget()
        self.table, self.lineage = NumbersTable(), ForestPlot()
        self.learn_button, self.save_button = QPushButton("Learn again with pins held"), QPushButton("Save")
        self.keys = QGridLayout()
        self.buttons = {key: QPushButton(f"{text} ({key})") for key, text in KEYS.items()}
        self._fill()
        self._connect()
        self._layer_chosen()
        self._enable()

    # ------------------------------------------------------------ what runs in the background

    def missing(self) -> str:
        """What to do without a layer."""
        none = "There is no layer to proofread. Open tracks or detections."
        return none if self.layers.layer() is None else ""

    def task(self) -> Task:
        """The step that was asked for; or to open the layer, and to go on with the pins of its file."""
        if self._job is not None:
            job, self._job = self._job, None
            return job
        layer = self.layers.layer()
        if layer is None:
            raise InputError(self.missing())
        transform, record, path = transform_of(layer), dict(record_of(layer) or {}), self.pins_path
        settings, foreign = TrackingSettings(), not isinstance(layer, Points)
        # All is in places, as in files: so pins fit detections of the commands, and what is saved is right.
        if isinstance(layer, Points):
            taken = Tracks(points_in(layer)[1], np.empty((0, 2), np.int64))
        else:
            taken = as_detected(self.viewer, layer)
            if record.get("command") == "track":
                settings, foreign = settings_of(record["settings"], (1.0, 1.0, 1.0)), False
        self._transform, self._record = transform.world, record
        self._taken, layer.visible = layer, False

        def work(report: Report) -> object:
            pins = read_pins(path) if path.exists() else ()
            return ready(proofreading.opened(taken, settings, pins, foreign=foreign, progress=report))

        self.session = self.asked = None
        return work

    def show_result(self, result: tuple[Session, dict[str, NDArray], str]) -> None:
        """Show the session after a step; the first question of one that was opened."""
        session, columns, said = result
        before, session = self.session, proofreading.stored(session, self.pins_path)
        edited = before is None or session.frozen.detections is not before.frozen.detections
        self.session = session
        self.headline.setText(proofreading.headline(session))
        self.table.hold(columns)
        values = coloured(session.tracks, names_of(session.tracks)[0])
        self.lineage.hold(forest_of(session.tracks), columns["track"], values.share)
        self._list_changes(session)
        unmatched = session.now.found.unmatched
        missing = f" {len(unmatched)} pins name no detection: {unmatched[0]}, …" if unmatched else ""
        said = said or solved(session, edited=edited, first=before is None)
        self.show_message(said + missing)
        if before is None:
            self._layers = self._layers or QuestionLayers(self.viewer, self._transform, session)
            self.viewer.mouse_drag_callbacks[:] = [*self.viewer.mouse_drag_callbacks, self._mouse]
        if edited:
            self.next()
        elif self.asked is not None:
            self.ask(self.asked.link.row)
        self._enable()
        self._blinks = _BLINKS
        self._blink.start()

    def do(self, step: Callable[..., Session], *given: Any, said: str = "") -> None:
        """Take a step of the session in the background, unless another one is on its way."""
        session = self.session
        if session is not None and self._work is None:
            self._job = lambda report: ready(step(session, *given, progress=report), said)
            self.run()

    # ------------------------------------------------------------ questions and answers

    def next(self) -> None:
        """Ask the next question."""
        if self.session is not None:
            self.session, asked = proofreading.next_question(self.session)
            if asked is not None:
                self._show(asked)
            else:
                self.show_message("No link is uncertain any more. Save the tracks.")

    def ask(self, row: int) -> None:
        """Ask about a detection."""
        if self.session is not None:
            self._show(proofreading.question(self.session, row))

    def press(self, key: str) -> None:
        """Do what a key stands for."""
        session, asked = self.session, self.asked
        self._key, self._clicked = "", []
        if self._work is not None:
            return
        if session is None:
            self.show_message("No tracks are open yet. Open does that.")
        elif key == "N":
            self.next()
        elif key in "ZR":
            steps, what = (session.past, "undo") if key == "Z" else (session.future, "redo")
            if steps:
                self.do(proofreading.undo if key == "Z" else proofreading.redo)
            else:
                self.show_message(f"There is nothing to {what}.")
        elif key in _CLICKS:
            self._key = key
            deep = " It gets the depth of the detection in question." * (
                key in "AM" and self.viewer.dims.ndisplay == 3
            )
            times = "once" if _CLICKS[key] == 1 else "twice"
            self.show_message(f"{KEYS[key]}: click {times} in the view.{deep}")
        elif asked is not None:
            self._answer(session, asked, key)

    def _answer(self, session: Session, asked: Question, key: str) -> None:
        pins = pins_of(asked)
        if key == "Space":
            self.session = proofreading.skip(session, asked)
            self.next()
        elif key == "D":
            self.do(proofreading.edit, Edit(session.spot(asked.link.row), None))
        elif key in pins:
            self.do(proofreading.answer, asked, *pins[key])
        elif key == "F":
            self.show_message("There is no link to forbid: its track ends here.")
        else:
            self.show_message(f"There is no alternative {key} here.")

    def _enable(self) -> None:
        """Enable the buttons that can act now."""
        session, asked = self.session, self.asked
        able = {} if session is None else {"N": True, "A": True, "Z": session.past, "R": session.future}
        if asked is not None:
            able |= dict.fromkeys([*pins_of(asked), "J", "V", "M", "D", "Space"], True)
        for key, button in self.buttons.items():
            button.setEnabled(bool(able.get(key)))
        for button in (self.save_button, self.learn_button):
            button.setEnabled(session is not None)

    def _click(self, world: Sequence[float], direction: Sequence[float] | None) -> None:
        """A click into the view: for the key before it, else the question about what is clicked."""
        session, asked, key = self.session, self.asked, self._key
        if session is None or self._work is not None:
            return
        spacing = np.asarray(self._transform.spacing)
        frame, at, along = ray(world, direction, self._transform)
        seen = None if asked is None else session.spot(asked.link.row)

        def across(position: NDArray[np.float64]) -> NDArray[np.float64]:
            """(N, 3) ways from the ray to positions (N, 3)."""
            way = position * spacing - at
            return way - np.outer(way @ along, along)

        if key in ("A", "M"):
            if key == "M" or direction is not None:
                if seen is None:
                    self.show_message("Click on a detection first: the new one gets its depth.", error=True)
                    return
                at = seen[1] * spacing - across(np.array([seen[1]]))[0]
            z, y, x = (at / spacing).tolist()
            before, when = (None, frame) if key == "A" or seen is None else (seen, seen[0])
            self.do(proofreading.edit, Edit(before, (when, (z, y, x))))
        else:
            # The green points are those of the next frame.
            later = key in ("J", "V") and seen is not None and frame == seen[0]
            rows = session.tracks.detections.rows_of(frame + later)
            if rows.start == rows.stop:
                return
            apart = np.linalg.norm(across(session.tracks.detections.position[rows]), axis=1)
            row = rows.start + int(apart.argmin())
            if key not in ("J", "V") or asked is None:
                self.ask(row)
                return
            self._clicked.append(row)
            if len(self._clicked) < _CLICKS[key]:
                return
            self.do(proofreading.answer, asked, "division" if key == "V" else "same_cell", *self._clicked)
        self._key, self._clicked = "", []

    def _mouse(self, _: Any, event: Any) -> Iterator[None]:
        """Take a click, and no drag."""
        yield
        if event.type == "mouse_release" and self.isVisible():
            self._click(event.position, event.view_direction if self.viewer.dims.ndisplay == 3 else None)

    def save(self) -> None:
        """Write the tracks; the pins are already in the table next to them."""
        session, path = self.session, Path(self.file.text()).absolute()
        if session is None:
            return
        settings, calibration = session.now.run.settings.as_dict(), session.tracks.detections.calibration
        own = {"settings": settings} if session.given is None else {}
        record = self.record(str(path), settings, "cpu") | (self._record or {}) | own

        def write(session: Session, progress: Report) -> Session:  # noqa: ARG001 - a step takes both
            formats.write_tracks(path, session.tracks, record=record, overwrite=True)
            return session

        self.do(write, said=f"{path} is written, {calibration}; its pins are in {self.pins_path.name}.")

    # ------------------------------------------------------------ what is shown

    @property
    def pins_path(self) -> Path:
        """The table of pins next to the tracks."""
        path = Path(self.file.text())
        return path.with_name(f"{path.stem.removesuffix(_ENDING)}.pins.csv")

    def _show(self, asked: Question) -> None:
        session, self.asked = self.session, asked
        assert session is not None
        self._enable()
        tracks, row = session.tracks, asked.link.row
        self._drawn = self._layers.draw(session, asked)
        self.drawing.start()
        links = np.flatnonzero(tracks.links[:, 0] == row)
        track, frame = int(tracks.track_id[row]), session.spot(row)[0]
        of = session.frozen.settings.calibration_of(tracks.detections)
        reason = why(tracks, int(links[0]), of) if len(links) else "Its track ends."
        audit = "Audit, a random link: " if asked.audit else ""
        self.where.setText(f"{audit}track {track} after frame {frame}: {texts_of(asked)}. {reason}")
        self.table.select(track)
        self.lineage.select([row])

    def _list_changes(self, session: Session) -> None:
        tracks = session.tracks
        self.changes.clear()
        for row in session.changed[:_MOST_LISTED].tolist():
            here = slice(*np.searchsorted(tracks.links[:, 0], [row, row + 1]))
            ends = tracks.detections.position[tracks.links[here, 1]]
            after = " and ".join(f"at {', '.join(f'{x:.4g}' for x in end)}" for end in ends) or "nowhere"
            text = f"track {tracks.track_id[row]}, frame {tracks.detections.frame[row]}: goes on {after}"
            item = QListWidgetItem(text)
            item.setData(Qt.ItemDataRole.UserRole, row)
            self.changes.addItem(item)

    def _go_to_track(self, track: int, frame: int | None = None) -> None:
        """Ask about the detection of a track in a frame, or its first."""
        assert self.session is not None
        rows = np.flatnonzero(self.session.tracks.track_id == track)
        frames = self.session.tracks.detections.frame[rows]
        self.ask(int(rows[0 if frame is None else np.abs(frames - frame).argmin()]))

    def _draw_on(self) -> None:
        """Draw the next part of a question."""
        for _ in self._drawn:
            return
        self.drawing.stop()

    def _blinked(self) -> None:
        self._blinks -= 1
        self._layers.blink()
        if self._blinks <= 0:
            self._blink.stop()

    def hideEvent(self, event: QHideEvent) -> None:
        """Take the layers of the question away when the form is closed; called by Qt."""
        super().hideEvent(event)
        if not event.spontaneous() and self._layers is not None:
            self._blink.stop()
            self.drawing.stop()
            self._layers.clear()
            self.viewer.mouse_drag_callbacks[:] = [
                one for one in self.viewer.mouse_drag_callbacks if one != self._mouse
            ]
            self.session = self.asked = self._layers = None
            if self._taken in self.viewer.layers:
                self._taken.visible = True
            self.headline.setText("")
            self.where.setText("")
            self.show_message("")
            self._enable()

    def _layer_chosen(self) -> None:
        """Propose a file next to that of the layer."""
        layer = self.layers.layer()
        if layer is None:
            return
        source = Path(layer.source.path or f"{layer.name}.csv")
        suffix = source.suffix if source.suffix in _SUFFIXES else ".csv"
        stem = source.name.removesuffix(source.suffix).removesuffix(_ENDING)
        self.file.setText(str(source.with_name(f"{stem}{_ENDING}{suffix}")))

    def _fill(self) -> None:
        for label in (self.headline, self.where):
            label.setWordWrap(True)
        self.file.setToolTip(
            "File in which Save writes the tracks. Each answer is written at once to a table next to it."
        )
        self.lay_keys(4)
        self.changes.setMaximumHeight(90)
        self.tabs.addTab(self.table, "Tracks")
        self.tabs.addTab(self.lineage, "Lineage")
        self.fields.addRow("layer", self.layers)
        self.fields.addRow("save as", self.file)
        for row in (self.headline, self.where, self.keys):
            self.fields.addRow(row)
        self.fields.addRow("changed", self.changes)
        for row in (self.learn_button, self.save_button, self.tabs):
            self.fields.addRow(row)

    def lay_keys(self, columns: int) -> None:
        """Put so many buttons beside each other."""
        for k, button in enumerate(self.buttons.values()):
            self.keys.addWidget(button, *divmod(k, columns))

    def _connect(self) -> None:
        for key, button in self.buttons.items():
            button.clicked.connect(lambda _=False, key=key: self.press(key))
            QShortcut(QKeySequence(key), self, activated=partial(self.press, key))
        self.learn_button.clicked.connect(lambda _=False: self.do(proofreading.learned_again))
        self.save_button.clicked.connect(lambda _=False: self.save())
        self.layers.chosen.connect(self._layer_chosen)
        self.table.chosen.connect(self._go_to_track)
        self.lineage.chosen.connect(lambda row, _more: self.ask(row))
        self.changes.itemClicked.connect(lambda item: self.ask(item.data(Qt.ItemDataRole.UserRole)))
        self._blink.timeout.connect(self._blinked)
        self.drawing.timeout.connect(self._draw_on)
