"""Base class of the forms: fields, live preview, Run and Cancel, progress, and error messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from qtpy.QtCore import QEvent, QTimer, Signal
from qtpy.QtGui import QHideEvent, QShowEvent
from qtpy.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QPushButton,
    QWidget,
)
from superqt.utils import signals_blocked

from outbid.compute.compiling import MESSAGE as COMPILING
from outbid.errors import OutbidError, SettingsError, one_line
from outbid.particles.calibration import UNKNOWN, Calibration
from outbid.work.jobs import run_record

from ..layers import Layer
from .fields import LayerBox
from .laid_out import lay_out, make_narrow, stand_beside
from .napari_layers import LayerTransform, record_of, show, take_away
from .said import MessageBox, ProgressBar
from .work import Slots, Task, Work

_SETTLED = 150  # milliseconds without a change after which a preview starts
_NARROW = 1000  # pixels of a window in which fields lie below their labels
_SLOW = 300  # milliseconds after which a preview shows a bar


class Form(QWidget):
    """Base class of all forms; subclasses add `fields` and define a run.

    A form has at most one `Work` (background thread) for a run, and one for a preview. Results are
    accepted only from the current job of the form, so a cancelled job may end at any time.

    Parameters
    ----------
    napari_viewer : napari.Viewer
        napari gives it to a parameter of this name.
    """

    command = ""
    """The command that does the same; layers that the form makes carry its run record."""
    run_text = "Run"
    counts = ""
    """What the progress of a run counts, such as frames."""
    room = 0
    """How much of the room its results take, relative to the fields: 0 is what they need."""
    finished = Signal()
    """A run has ended, with a result, an error or by Cancel, and the message says which."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.viewer = napari_viewer
        self._work: Work | None = None
        self._preview: Work | None = None
        self._preview_again = False
        self._preview_layer: Any = None
        self.shown: Any = None  # the last result
        self._offered: Callable[[], None] | None = None
        self._settled = QTimer(self, singleShot=True, interval=_SETTLED)
        self.fields = QFormLayout()
        self.result = LayerBox(self.viewer, self._is_result, first="a new layer")
        self.live = QCheckBox("preview of this frame")
        self.run_button = QPushButton(self.run_text)
        self.cancel_button = QPushButton("Cancel")
        self.bar = ProgressBar()
        self.said = MessageBox()
        self.message = self.said.label
        self.offer_button = QPushButton()
        lay_out(self)
        stand_beside(self)
        self._settled.timeout.connect(self._start_preview)
        self.run_button.clicked.connect(self.run)
        self.cancel_button.clicked.connect(self.cancel)
        self.offer_button.clicked.connect(self._take_offer)
        self.result.chosen.connect(self._result_chosen)
        self.live.toggled.connect(self._live_toggled)
        self.viewer.dims.events.current_step.connect(self.changed)
        self.viewer.layers.events.removed.connect(self._layer_removed)
        self._missing, self._checks = "", False
        self.narrow = False  # whether its fields may be wider than it
        self.cancel_button.hide()
        works = self._works = set[Work]()
        self.destroyed.connect(lambda _=None: _cancel(works))

    # ------------------------------------------------------------ what a form says

    def task(self) -> Task:
        """Task of a run, made from the current fields and layers; the task touches no widget and no layer.

        Raises
        ------
        OutbidError
            If there is something to change before.
        """
        raise NotImplementedError

    def missing(self) -> str:
        """What a run lacks, as a sentence that says what to do; empty if it can start."""
        return ""

    def show_result(self, result: Any) -> None:
        """Show what a run returned."""
        raise NotImplementedError

    def preview_task(self) -> Task | None:
        """Task of a preview, made as in `task`; None if no preview can be shown."""
        return None

    def show_preview(self, result: Any) -> None:
        """Show what a preview returned."""

    def set_settings(self, values: Mapping[str, Any]) -> None:
        """Show the settings of a run record in the fields.

        Raises
        ------
        LookupError, TypeError, ValueError
            If they are not settings of this version.
        """

    # ------------------------------------------------------------ what a form does

    def run(self) -> None:
        """Start a run, unless one is on its way."""
        if self._work is not None:
            return
        self.show_message("")
        self._stop_preview()
        slots: Slots = {
            "returned": lambda result: self._finish(self.show_result, result),
            "failed": lambda error: self._finish(self.show_problem, error),
            "progressed": self._show_progress,
            "compiling": lambda: self.show_message(COMPILING),  # why the first run takes long
        }
        self._work = self._start(self.task, slots)
        self._show_running(self._work is not None)
        if self._work is None:
            self.finished.emit()

    def cancel(self) -> None:
        """Cancel the running job; the form can be used at once."""
        if self._work is not None:
            self._work.cancel()
            self._work = None
            self._show_running(False)
            self.show_message("Cancelled. Nothing was changed.")
            self.finished.emit()

    def check(self, _: object = None) -> None:
        """Enable Run where a run can start, and say what is missing where it cannot."""
        before, self._missing = self._missing, self.missing()
        self.run_button.setEnabled(self._work is None and not self._missing)
        if self._missing or self.message.text() == before:
            self.show_message(self._missing)

    @property
    def is_idle(self) -> bool:
        """Whether no run is on its way."""
        return self._work is None

    def changed(self, _: object = None) -> None:
        """Schedule a new preview after a change; it starts when the user pauses."""
        if self.live.isChecked():
            self._settled.start()

    def show_message(
        self, text: str, *, error: bool = False, offer: tuple[str, Callable[[], None]] | None = None
    ) -> None:
        """Show a message under the buttons, and a button that carries out what it offers, if anything."""
        button, self._offered = offer or ("", None)
        self.offer_button.setText(button)
        self.offer_button.setVisible(offer is not None)
        self.said.show_text(text, error=error)

    def show_problem(self, error: Exception) -> None:
        """Show an error; an unexpected one is raised again, so that napari's notifications show it, too.

        Raises
        ------
        Exception
            The error itself, if it is not an `OutbidError`.
        """
        if isinstance(error, OSError) and error.filename:
            said = f"{error.filename}: {error.strerror}. Choose another file or folder."
            self.show_message(said, error=True)
            return
        if isinstance(error, OutbidError):
            self.show_message(str(error), error=True)
            return
        self.show_message(one_line(f"Outbid failed: {type(error).__name__}: {error}"), error=True)
        raise error

    def record(
        self, source: str, settings: Mapping[str, object], device: str, of: Calibration = UNKNOWN
    ) -> dict[str, object]:
        """A run record as that of the command, of a result with this calibration."""
        known = run_record(self.command, {"name": source})
        known |= {} if of.interval is None else {"calibration": of.as_dict()}
        return {**known, "settings": dict(settings), "seed": None, "device": device}

    def show_layer(self, layer: Layer, transform: LayerTransform, record: Mapping[str, object]) -> Any:
        """Show a result: as a new layer, or as that whose settings were edited."""
        return self.show_by(partial(show, self.viewer, layer, transform, record=record))

    def show_by(self, draw: Callable[..., Any]) -> Any:
        """Show a result as `draw` does, which is given `instead_of`: the layer whose settings were edited."""
        self.live.setChecked(False)
        edited = self.result.layer()
        self.shown = draw(instead_of=edited)
        self.result.renew()  # it carries a record now
        if edited is not None and self.result.layer() is not self.shown:
            # Another layer stands for the one that was edited; the fields have its settings already.
            with signals_blocked(self.result):
                self.result.choose(self.shown)
        return self.shown

    def show_preview_layer(self, layer: Layer, transform: LayerTransform) -> Any:
        """Show a layer until the form is hidden, its preview is switched off, or a run ends."""
        # None meanwhile: replacing a layer does not count as deleting it.
        before, self._preview_layer = self._preview_layer, None
        self._preview_layer = show(self.viewer, layer, transform, instead_of=before)
        return self._preview_layer

    # ------------------------------------------------------------ runs

    def _start(self, task_of: Callable[[], Task | None], slots: Slots) -> Work | None:
        """Start a job that calls slots until it is cancelled; None without a task, or with a problem."""
        try:
            task = task_of()
        except OutbidError as error:
            self.show_problem(error)
            return None
        if task is None:
            return None
        work = Work(task)
        self._works.add(work)
        work.call(slots)
        work.ended.connect(lambda: self._ended(work))
        work.start()
        return work

    def _ended(self, work: Work) -> None:
        self._works.discard(work)
        if work is self._preview:
            again, self._preview, self._preview_again = self._preview_again, None, False
            if again:
                self._start_preview()

    def _finish(self, show: Callable[[Any], None], given: Any) -> None:
        warnings = [] if self._work is None else self._work.warnings
        self._work = None
        self._show_running(False)
        if self.message.text() == COMPILING:
            self.show_message("")
        try:
            show(given)
            if warnings:
                self.said.show_text(" ".join(filter(None, (self.message.text(), *warnings))))
        except (OutbidError, OSError) as problem:
            self.show_problem(problem)
        finally:
            self.finished.emit()

    def _show_progress(self, done: int, total: int) -> None:
        self.bar.show_progress(done, total, self.counts)

    def _show_running(self, running: bool) -> None:
        self.run_button.setEnabled(not running and not self.missing())
        self.cancel_button.setVisible(running)
        if running:
            self.bar.begin(self.run_text)
        else:
            self.bar.end()

    # ------------------------------------------------------------ previews

    def _start_preview(self) -> None:
        """Start a preview; if one is still running, the new one waits until it ends."""
        if self._work is not None or not self.live.isChecked() or not self.isVisible():
            return
        if self._preview is not None:
            self._preview.cancel()
            self._preview_again = True
            return
        slots: Slots = {
            "returned": self.show_preview, "failed": self.show_problem, "progressed": self.bar.show_progress,
            "compiling": lambda: self.show_message(COMPILING), "ended": self._preview_ended,
        }  # fmt: skip
        self._preview = self._start(self.preview_task, slots)
        if self._preview is not None:
            self.bar.begin("Preview", _SLOW)

    def _preview_ended(self) -> None:
        if self._work is None:
            self.bar.end()
        if self.message.text() == COMPILING:
            self.show_message("")

    def _stop_preview(self) -> None:
        self._settled.stop()
        self._preview_again = False
        if self._preview is not None:
            self._preview.cancel()
            self._preview_ended()

    def _drop_preview(self) -> None:
        shown, self._preview_layer = self._preview_layer, None
        if shown is not None and take_away(self.viewer, shown):
            self._preview_layer = shown  # for the next preview

    def _live_toggled(self) -> None:
        if self.live.isChecked():
            self.changed()
        else:
            self._stop_preview()
            self._drop_preview()
            self.show_message(self._missing)

    def _layer_removed(self, _: object = None) -> None:
        """Handle that the user deleted the preview layer: no preview is shown any more."""
        if self._preview_layer is not None and self._preview_layer not in self.viewer.layers:
            self._preview_layer = None
            self.live.setChecked(False)

    def hideEvent(self, event: QHideEvent) -> None:
        """Remove the preview when the form is closed; called by Qt."""
        super().hideEvent(event)
        if not event.spontaneous():  # as when the window is minimised
            self._stop_preview()
            self._drop_preview()

    def changeEvent(self, event: QEvent) -> None:
        """Cancel the run when the form is removed from the window, where nobody could cancel it any more.

        Qt calls it. A run keeps its form alive until it ends, so that `destroyed` would come too late.
        """
        super().changeEvent(event)
        if event.type() == QEvent.Type.ParentChange and self.parent() is None:
            self.cancel()

    def showEvent(self, event: QShowEvent) -> None:
        """Show the preview again when the form is reopened; called by Qt."""
        super().showEvent(event)
        if self.window().width() < _NARROW:
            make_narrow(self)
        if not self.narrow:
            self.setMinimumWidth(self.scroll.widget().minimumSizeHint().width() + 20)  # and a scroll bar
        if not self._checks:  # after all boxes of layers, which are renewed before
            self._checks = True
            for event in (self.viewer.layers.events.inserted, self.viewer.layers.events.removed):
                event.connect(self.check, position="last")
        self.check()
        self.changed()

    # ------------------------------------------------------------ results

    def _is_result(self, layer: Any) -> bool:
        record = record_of(layer)
        return record is not None and record.get("command") == self.command

    def _result_chosen(self) -> None:
        """Load the settings of the chosen result into the fields; the next run replaces that result."""
        layer = self.result.layer()
        if layer is None:
            return
        try:
            self.set_settings((record_of(layer) or {})["settings"])
        except (LookupError, TypeError, ValueError) as error:
            self.show_problem(SettingsError(f"The settings of {layer.name} cannot be read: {error}"))
            return
        self.show_message(f"These are the settings of {layer.name}. A run replaces it.")

    # ------------------------------------------------------------ looks

    def _take_offer(self) -> None:
        action = self._offered
        self.show_message("")
        if action is not None:
            action()


def _cancel(works: set[Work]) -> None:
    """Cancel jobs whose results are not needed any more."""
    for work in works:
        work.cancel()
