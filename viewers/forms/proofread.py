"""The form *Proofread*: the least certain links first, an answer by a key, and tracks solved again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from qtpy.QtCore import QTimer
from qtpy.QtGui import QHideEvent
from qtpy.QtWidgets import QLabel, QPushButton, QTabWidget

from .. import correcting, proofreading
from ..correcting import Corrected
from ..explained import why_chosen
from ..lineage import columns_of
from ..proofreading import Question
from .correct import ACTS, CorrectForm
from .question_layers import QuestionLayers, texts_of
from .table import NumbersTable
from .work import Report, Task

QUESTIONS = {
    "N": "next", "1": "pin 1", "2": "pin 2", "3": "pin 3", "4": "pin 4", "0": "ends here",
    "C": "no particle", "Space": "skip",
}  # fmt: skip
_LATER = ("L", "J", "V")
"""Acts whose further detections are those of the next frame, which are shown, too."""
_BLINKS, _BLINK = 6, 200  # times, and milliseconds


class ProofreadForm(CorrectForm):
    """Form that asks about links, the least certain first, and solves again under the answers."""

    run_text = "Open"
    acts = QUESTIONS | ACTS

    def __init__(self, napari_viewer: Any) -> None:
        self.asked: Question | None = None
        self._layers: QuestionLayers | None = None  # while a session is open
        self._hidden: Any = None  # the layer that is proofread
        self._drawn: Iterator[None] = iter(())
        self.headline, self.tabs, self.table = QLabel(), QTabWidget(), NumbersTable()
        self.learn_button = QPushButton("Learn again with pins held")
        self._blinks = 0
        super().__init__(napari_viewer)
        self._blink = QTimer(self, interval=_BLINK)
        self.drawing = QTimer(self, interval=0)
        self._fill_questions()
        self._connect_questions()

    # ------------------------------------------------------------ what runs in the background

    def missing(self) -> str:
        """What to do without a layer."""
        none = "There is no layer to proofread. Open tracks or detections."
        return none if self.layers.layer() is None else ""

    def task(self) -> Task:
        """The step that was asked for; or to open the layer, and to go on with the pins of its file."""
        if self._job is not None:
            return super().task()
        opened, self._hidden = self.opening(), self.layers.layer()
        if self._hidden is not None:
            self._hidden.visible = False
        self.session = self.asked = None
        return lambda report: _opened(opened, report)

    def show_result(self, result: Any) -> None:
        """Show the session after a step; the first question of one that was opened."""
        before = self.session
        super().show_result(result)
        session = self.session
        if not isinstance(result, Corrected) or session is None:
            return
        edited = before is None or session.edits != before.edits
        self.headline.setText(proofreading.headline(session))
        self.table.hold(columns_of(session.tracks))
        if self._layers is None:
            self._layers = QuestionLayers(self.viewer, self._transform, session)
        if edited and not result.rows:
            self.next()
        elif self.selected:
            self.ask(self.selected[0])
        self._blinks = _BLINKS
        self._blink.start()

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

    def select(self, row: int, more: bool = False, go: bool = True) -> None:
        """Ask about a detection; with others, or while an act waits for clicks, select it."""
        if self.session is None or self._work is not None or more or self._key:
            super().select(row, more, go)
        else:
            self.ask(row)

    def press(self, key: str) -> None:
        """Do what a key stands for."""
        session, asked = self.session, self.asked
        if key not in QUESTIONS:
            super().press(key)
        elif session is None:
            self.show_message("No tracks are open yet. Open does that.")
        elif self._work is None and key == "N":
            self.next()
        elif self._work is None and asked is not None:
            self._answer(asked, key)

    def _answer(self, asked: Question, key: str) -> None:
        assert self.session is not None
        ways = [row for row, _ in asked.link.alternatives if row >= 0]
        pins: dict[str, tuple[Any, ...]] = {"0": ("end",), "C": ("no_particle",)}
        pins |= {str(k): ("link", row) for k, row in enumerate(ways[:4], 1)}
        if key == "Space":
            self.session = proofreading.skip(self.session, asked)
            self.next()
        elif key in pins:
            self.selected = [asked.link.row]
            self.do(correcting.answered, asked, *pins[key])
        else:
            self.show_message(f"There is no alternative {key}: {texts_of(asked)}.", error=True)

    def can(self, key: str) -> bool:
        """Whether a key can act now."""
        if key in QUESTIONS:
            asked = None if self.session is None else self.asked
            ways = [] if asked is None else [row for row, _ in asked.link.alternatives if row >= 0]
            if asked is None:
                return key == "N" and self.session is not None
            return not key.isdecimal() or int(key) <= len(ways)
        return super().can(key)

    def nearest(self, world: Sequence[float], direction: Sequence[float] | None, *, later: int = 0) -> int:
        """As for the lineage; the second end of an act in the next frame, which is shown as well."""
        if self._layers is not None and self._key in _LATER and self.selected and self.tracks is not None:
            frame = int(self.tracks.detections.frame[self.selected[0]])
            later = int(round(self._transform.frame_shown(self.viewer)) == frame)
        return super().nearest(world, direction, later=later)

    # ------------------------------------------------------------ what is shown

    def _show(self, asked: Question) -> None:
        session, self.asked = self.session, asked
        assert session is not None
        assert self._layers is not None
        tracks, row = session.tracks, asked.link.row
        self._drawn = self._layers.draw(session, asked)
        self.drawing.start()
        track, frame = int(tracks.track_id[row]), session.spot(row)[0]
        audit = "Audit, a random link: " if asked.audit else ""
        reason = why_chosen(asked, session)
        self.selected = [row]
        self.lineage.select(self.selected)
        self.where.setText(f"{audit}track {track} after frame {frame}: {texts_of(asked)}. {reason}")
        self.table.select(track)
        self.enable()

    def _go_to_track(self, track: int) -> None:
        """Ask about the first detection of a track."""
        if self.session is not None:
            self.ask(int(np.flatnonzero(self.session.tracks.track_id == track)[0]))

    def _draw_on(self) -> None:
        """Draw the next part of a question."""
        for _ in self._drawn:
            return
        self.drawing.stop()

    def _blinked(self) -> None:
        self._blinks -= 1
        if self._layers is not None:
            self._layers.blink()
        if self._blinks <= 0:
            self._blink.stop()

    def _hold_layer(self) -> None:
        """Ask nothing about a layer that is not open yet."""
        if not self._showing:
            self._close_questions()
        super()._hold_layer()

    def _close_questions(self) -> None:
        """Take the layers of the question away, and show the tracks again."""
        if self._layers is not None:
            self._blink.stop()
            self.drawing.stop()
            self._layers.clear()
        if self._hidden in self.viewer.layers:
            self._hidden.visible = True
        self.asked = self._layers = self._hidden = None

    def hideEvent(self, event: QHideEvent) -> None:
        """Take the layers of the question away when the form is closed; called by Qt."""
        super().hideEvent(event)
        if not event.spontaneous():
            self._close_questions()
            self.session = None
            self.headline.setText("")
            self.show_message("")
            self.enable()

    def _fill_questions(self) -> None:
        self.run_button.show()
        self.headline.setWordWrap(True)
        at = self.fields.getWidgetPosition(self.lineage)[0]
        self.fields.takeRow(self.lineage)
        self.tabs.addTab(self.lineage, "Lineage")
        self.tabs.addTab(self.table, "Tracks")
        self.fields.insertRow(at, self.tabs)
        self.fields.insertRow(2, self.run_button)
        self.fields.insertRow(3, self.headline)
        self.fields.addRow(self.learn_button)

    def _connect_questions(self) -> None:
        self.learn_button.clicked.connect(lambda _=False: self.do(proofreading.learned_again))
        self.table.chosen.connect(self._go_to_track)
        self._blink.timeout.connect(self._blinked)
        self.drawing.timeout.connect(self._draw_on)


def _opened(opened: Any, report: Report) -> Corrected:
    said = "Opened. The question is about the least certain link; each answer is kept at once."
    return Corrected(opened(report), said, ())
