"""The base of the forms: fields, live preview, Run and Cancel, progress, and errors as what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import (
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from outbid.tracker.errors import OutbidError

from .work import Task, Work

_SETTLED = 150  # milliseconds without a change after which a preview starts


class Form(QWidget):
    """What all forms share; one of them fills `fields` and says what a run is.

    A run and a preview each have a `Work` at most, beside the window. What comes from another work than
    the form's own of that moment is dropped; so a cancelled one may end when it likes.

    Parameters
    ----------
    napari_viewer : napari.Viewer
        napari gives it to a parameter of this name.
    """

    run_text = "Run"

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.viewer = napari_viewer
        self._work: Work | None = None
        self._preview: Work | None = None
        self._preview_again = False
        self._settled = QTimer(self, singleShot=True, interval=_SETTLED)
        self._settled.timeout.connect(self._start_preview)
        self.fields = QFormLayout()
        self.fields.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self.run_button = QPushButton(self.run_text)
        self.cancel_button = QPushButton("Cancel")
        self.bar = QProgressBar()
        self.message = QLabel()
        self.show_button = QPushButton()
        self._offered: Callable[[], None] | None = None
        self._lay_out()
        self.run_button.clicked.connect(self.run)
        self.cancel_button.clicked.connect(self.cancel)
        self.show_button.clicked.connect(self._take_offer)
        self._show_running(False)
        works = self._works = set[Work]()
        self.destroyed.connect(lambda _=None: _cancel(works))

    # ------------------------------------------------------------ what a form says

    def task(self) -> Task:
        """What a run does, from the fields and layers as they are now; it touches neither widget nor layer.

        Raises
        ------
        OutbidError
            If there is something to change before.
        """
        raise NotImplementedError

    def show_result(self, result: Any) -> None:
        """Show what a run returned."""
        raise NotImplementedError

    def preview_task(self) -> Task | None:
        """As `task`, of a preview; None if there is none to be seen."""
        return None

    def show_preview(self, result: Any) -> None:
        """Show what a preview returned."""

    # ------------------------------------------------------------ what a form does

    def run(self) -> None:
        """Start a run, unless one is on its way."""
        if self._work is not None:
            return
        self.tell("")
        self._stop_preview()
        try:
            task = self.task()
        except OutbidError as error:
            self.tell_error(error)
            return
        self._work = work = self._start(task)
        work.returned.connect(lambda result: self._finish(work, result=result))
        work.failed.connect(lambda error: self._finish(work, error=error))
        work.told.connect(lambda done, total: self._show_progress(work, done, total))
        self._show_running(True)

    def cancel(self) -> None:
        """Drop the run that is on its way; the form is free at once."""
        if self._work is not None:
            self._work.cancel()
            self._work = None
            self._show_running(False)
            self.tell("Cancelled. Nothing was changed.")

    def changed(self, _: object = None) -> None:
        """Whatever decides on the preview has changed: it is made anew when the user pauses."""
        self._settled.start()

    def tell(self, text: str, *, error: bool = False) -> None:
        """Show a message under the buttons, and take back what was offered."""
        self._offer("", None)
        self.message.setText(text)
        self.message.setStyleSheet("color: #e57373" if error else "")
        self.message.setVisible(bool(text))

    def tell_error(self, error: Exception) -> None:
        """Show what to change; a fault of the program goes to napari's notifications, too.

        Raises
        ------
        Exception
            The error itself, if it is none that the user can mend.
        """
        if isinstance(error, OutbidError):
            self.tell(str(error), error=True)
            return
        self.tell(f"Outbid failed: {type(error).__name__}: {error}", error=True)
        raise error

    def offer(self, text: str, button: str, action: Callable[[], None]) -> None:
        """Show a message with a button that does something about it."""
        self.tell(text)
        self._offer(button, action)

    # ------------------------------------------------------------ runs

    def _start(self, task: Task) -> Work:
        work = Work(task)
        self._works.add(work)
        work.ended.connect(lambda: self._works.discard(work))
        work.start()
        return work

    def _finish(self, work: Work, *, result: Any = None, error: Exception | None = None) -> None:
        if work is not self._work:
            return
        self._work = None
        self._show_running(False)
        if error is not None:
            self.tell_error(error)
            return
        try:
            self.show_result(result)
        except OutbidError as problem:
            self.tell_error(problem)

    def _show_progress(self, work: Work, done: int, total: int) -> None:
        if work is self._work:
            self.bar.setRange(0, 1000 if total else 0)
            self.bar.setValue(1000 * done // total if total else 0)

    def _show_running(self, running: bool) -> None:
        self.run_button.setEnabled(not running)
        self.cancel_button.setEnabled(running)
        self.bar.setVisible(running)
        self.bar.setRange(0, 0)

    # ------------------------------------------------------------ previews

    def _start_preview(self) -> None:
        """One preview at a time: while the one before still ends, the next one waits for it."""
        if self._work is not None:
            return
        if self._preview is not None:
            self._preview.cancel()
            self._preview_again = True
            return
        try:
            task = self.preview_task()
        except OutbidError as error:
            self.tell_error(error)
            return
        if task is None:
            return
        self._preview = work = self._start(task)
        work.returned.connect(lambda result: self._show_preview(work, result))
        work.failed.connect(lambda error: None if work.cancelled else self.tell_error(error))
        work.ended.connect(self._preview_ended)

    def _show_preview(self, work: Work, result: Any) -> None:
        if not work.cancelled:
            self.show_preview(result)

    def _preview_ended(self) -> None:
        again, self._preview, self._preview_again = self._preview_again, None, False
        if again:
            self._start_preview()

    def _stop_preview(self) -> None:
        self._settled.stop()
        self._preview_again = False
        if self._preview is not None:
            self._preview.cancel()

    # ------------------------------------------------------------ looks

    def _lay_out(self) -> None:
        self.message.setWordWrap(True)
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.message.hide()
        self.show_button.hide()
        buttons = QHBoxLayout()
        buttons.addWidget(self.run_button)
        buttons.addWidget(self.cancel_button)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.addLayout(self.fields)
        column.addLayout(buttons)
        column.addWidget(self.bar)
        column.addWidget(self.message)
        column.addWidget(self.show_button)
        column.addStretch()
        scroll = QScrollArea()  # a form must not make the window taller than the screen
        scroll.setWidget(inside)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        outside = QVBoxLayout(self)
        outside.setContentsMargins(0, 0, 0, 0)
        outside.addWidget(scroll)
        self.setMinimumWidth(340)

    def _offer(self, button: str, action: Callable[[], None] | None) -> None:
        self._offered = action
        self.show_button.setText(button)
        self.show_button.setVisible(action is not None)

    def _take_offer(self) -> None:
        action = self._offered
        self.tell("")
        if action is not None:
            action()


def _cancel(works: set[Work]) -> None:
    """Nobody waits for them any more."""
    for work in works:
        work.cancel()
