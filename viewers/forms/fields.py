"""Input widgets of the forms: numbers that may be estimated automatically, voxel sizes, choices of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtGui import QValidator
from qtpy.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSpinBox,
    QWidget,
)
from superqt.utils import signals_blocked


class _Automatic:
    """What boxes for numbers share: the minimum can stand for an automatic value."""

    def number(self: Any) -> Any:
        """The value; None if it is automatic."""
        return None if self.specialValueText() and self.value() == self.minimum() else self.value()

    def set_number(self: Any, value: float | None) -> None:
        """Show a value, or the automatic one."""
        self.setValue(self.minimum() if value is None else value)


class NumberBox(_Automatic, QDoubleSpinBox):
    """A number box; its minimum can mean that the value is estimated automatically.

    Numbers are read as in Python, in every locale: 0.5, 5e-7, and also 0,5.

    Parameters
    ----------
    value : float or None
        None is what `automatic` says.
    minimum, maximum : float
    automatic : str
        What stands at the minimum instead of it, for example ``"learned"``; empty if the minimum is a number.
    first : float
        Where the first step up from 0 leads.
    """

    def __init__(
        self,
        value: float | None,
        minimum: float = 0.0,
        maximum: float = 1e9,
        automatic: str = "",
        first: float = 1.0,
    ) -> None:
        super().__init__()
        self.first = first
        self.setMinimumWidth(60)
        self.setDecimals(15)
        self.setStepType(QAbstractSpinBox.StepType.AdaptiveDecimalStepType)
        self.setRange(minimum, maximum)
        self.setSpecialValueText(automatic)
        self.set_number(value)

    def textFromValue(self, value: float) -> str:
        """Text that Qt shows for a value."""
        return f"{value:.6g}"

    def valueFromText(self, text: str | None) -> float:
        """Value that Qt reads from a text."""
        bare = self._bare(text)
        if bare == self.textFromValue(self.value()):
            return self.value()  # which may have more digits than are shown
        try:
            return float(bare)
        except ValueError:
            return self.minimum()

    def fixup(self, text: str | None) -> str:
        """Replace empty text by the automatic value, if the box allows one."""
        return self.specialValueText() if not self._bare(text) else super().fixup(text)

    def validate(self, text: str | None, cursor: int) -> tuple[QValidator.State, str, int]:
        """Whether a text is a number, or may become one."""
        given, bare = text or "", self._bare(text)
        if given and given == self.specialValueText():
            return QValidator.State.Acceptable, given, cursor
        try:
            allowed = self.minimum() <= float(bare) <= self.maximum()
        except ValueError:
            begun = not bare.strip("0123456789.eE+-")
            return QValidator.State.Intermediate if begun else QValidator.State.Invalid, given, cursor
        return QValidator.State.Acceptable if allowed else QValidator.State.Intermediate, given, cursor

    def stepBy(self, steps: int) -> None:
        """Step by a tenth of the value's order of magnitude, from 0 to `first`."""
        if self.value() == 0:
            self.setValue(self.first * steps)
        else:
            super().stepBy(steps)

    def _bare(self, text: str | None) -> str:
        return (text or "").strip().removesuffix(self.suffix().strip()).strip().replace(",", ".")


class CountBox(_Automatic, QSpinBox):
    """A box for whole numbers; its minimum can mean an automatic value, as in `NumberBox`."""

    def __init__(
        self, value: int | None, minimum: int = 0, maximum: int = 1_000_000_000, automatic: str = ""
    ) -> None:
        super().__init__()
        self.setMinimumWidth(60)
        self.setRange(minimum, maximum)
        self.setSpecialValueText(automatic)
        self.set_number(value)


_NARROW = (
    "QDoubleSpinBox { min-width: 34px; padding: 0px 2px; }"
    "QDoubleSpinBox::up-button, QDoubleSpinBox::down-button { width: 0px; border: none; }"
    "QDoubleSpinBox::up-arrow, QDoubleSpinBox::down-arrow { image: none; width: 0px; height: 0px; }"
)
"""Boxes without buttons, of which three stand in a row: napari's are too wide."""


class AxesBox(QWidget):
    """Widget with three number fields, along z, y and x, and their unit.

    Parameters
    ----------
    values : tuple of 3 float
    minimum : float
    """

    edited = Signal()

    def __init__(self, values: tuple[float, float, float], minimum: float = 0.0) -> None:
        super().__init__()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(3)
        self.boxes = [NumberBox(value, minimum) for value in values]
        for axis, box in zip("zyx", self.boxes, strict=True):
            box.setToolTip(f"along {axis}")
            # By style: with NoButtons Qt 6.12 leaves no room for the number where napari's style holds.
            box.setStyleSheet(_NARROW)
            box.setKeyboardTracking(False)
            box.valueChanged.connect(self.edited)
            row.addWidget(box, 1)
        self.unit = QLabel()
        row.addWidget(self.unit)

    def values(self) -> tuple[float, float, float]:
        """The three numbers along z, y, x."""
        z, y, x = (box.value() for box in self.boxes)
        return z, y, x

    def set_values(self, values: tuple[float, float, float], unit: str = "") -> None:
        """Show sizes without emitting `edited`."""
        for box, value in zip(self.boxes, values, strict=True):
            with signals_blocked(box):
                box.setValue(value)
        self.unit.setText(unit)


class LayerBox(QComboBox):
    """The layers of a viewer that a form can take.

    Parameters
    ----------
    viewer : napari.Viewer
    takes : callable
        Whether a layer is among them.
    first : str
        Text of an entry before the layers that selects no layer; empty for no entry.
    """

    chosen = Signal()
    """Another layer is chosen, or none any more."""

    def __init__(self, viewer: Any, takes: Callable[[Any], bool], first: str = "") -> None:
        super().__init__()
        self._viewer, self.takes, self._first = viewer, takes, first
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(8)
        for event in ("inserted", "removed", "reordered", "renamed"):
            getattr(viewer.layers.events, event).connect(self.renew)  # which does not keep the box alive
        self.renew()
        self.currentIndexChanged.connect(self.chosen)

    def renew(self, _: object = None) -> None:
        """Offer the layers that there are now; the choice stays while its layer is there."""
        before = self.layer()
        layers = [layer for layer in reversed(self._viewer.layers) if self.takes(layer)]
        with signals_blocked(self):
            self.clear()
            if self._first:
                self.addItem(self._first, None)
            for layer in layers:
                self.addItem(layer.name, layer)
            kept = self._row_of(before)
            self.setCurrentIndex(kept if kept >= 0 else 0 if self.count() else -1)
        if self.layer() != before:
            self.chosen.emit()

    def layer(self) -> Any | None:
        """The layer that is chosen."""
        return self.currentData(Qt.ItemDataRole.UserRole)

    def choose(self, layer: Any | None) -> None:
        """Choose a layer, or the entry that stands for none."""
        self.setCurrentIndex(self._row_of(layer))

    def _row_of(self, layer: Any | None) -> int:
        rows = range(self.count())
        return next((row for row in rows if self.itemData(row) == layer), -1)


class WayBox(QWidget):
    """Buttons that lead through some rows and around again, above a line that says where one is.

    Parameters
    ----------
    start : callable
        To which row the first step leads, or before which one backwards.
    """

    gone = Signal(int)
    """The number of the row to which a step led."""

    def __init__(self, start: Callable[[], int] = lambda: 0) -> None:
        super().__init__()
        self._start = start
        self.previous_button, self.next_button = QPushButton("◀ Previous"), QPushButton("Next ▶")
        self.where = QLabel()
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        for column, button in enumerate((self.previous_button, self.next_button)):
            button.clicked.connect(lambda _=False, step=2 * column - 1: self._go(step))
            grid.addWidget(button, 0, column)
        grid.addWidget(self.where, 1, 0, 1, 2)
        self.lead(0, "")

    def lead(self, count: int, said: str) -> None:
        """Lead through so many other rows, and say so."""
        self._count, self._at = count, -1
        self.where.setText(said)
        for button in (self.previous_button, self.next_button):
            button.setEnabled(count > 0)

    def _go(self, step: int) -> None:
        self._at = (self._at + step if self._at >= 0 else self._start() - (step < 0)) % self._count
        self.gone.emit(self._at)


def choice_box(names: Iterable[str] = (), letters: int = 8) -> QComboBox:
    """A box to choose one of several names."""
    box = QComboBox()
    box.addItems(list(names))
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(letters)
    return box


def paint_bar(bar: QLabel, colours: Sequence[str], high: int) -> None:
    """Give a bar so many pixels high these colours, from left to right."""
    stops = ", ".join(f"stop:{k / (len(colours) - 1):.3f} {colour}" for k, colour in enumerate(colours))
    bar.setMinimumWidth(60)
    bar.setFixedHeight(high)
    bar.setStyleSheet(f"background: qlineargradient(x1:0, y1:0, x2:1, y2:0, {stops});")
