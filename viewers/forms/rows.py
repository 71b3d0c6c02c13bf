"""Rows of a form, made of declared settings: for each a label, a box, a tooltip and a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any, NamedTuple

from qtpy.QtWidgets import QCheckBox, QComboBox, QFormLayout, QLineEdit, QWidget
from superqt import QCollapsible

from outbid.settings.declare import AXES, Declared, declared_in, in_words

from .fields import AxesBox, CountBox, NumberBox, choice_box


class _Access(NamedTuple):
    """Names of what a kind of box has: the function that gets its value, the one that sets it, its signal."""

    get: str
    put: str
    edited: str


_ACCESS: dict[type[QWidget], _Access] = {
    NumberBox: _Access("number", "set_number", "valueChanged"),
    CountBox: _Access("number", "set_number", "valueChanged"),
    QCheckBox: _Access("isChecked", "setChecked", "toggled"),
    QComboBox: _Access("currentText", "setCurrentText", "currentIndexChanged"),
    AxesBox: _Access("values", "set_values", "edited"),
    QLineEdit: _Access("text", "setText", "editingFinished"),
}


class SettingRows:
    """Boxes of the settings that declare a row, by name.

    Parameters
    ----------
    settings : object
        Of a class with declared settings; its values are shown at first.
    made : mapping of str to QWidget
        Boxes that are made already.
    fixed : tuple of str
        Settings whose boxes belong to the layer: they are neither filled nor watched.
    """

    def __init__(
        self, settings: Any, made: Mapping[str, QWidget] | None = None, fixed: tuple[str, ...] = ()
    ) -> None:
        self._declared = {name: one for name, one in declared_in(type(settings)).items() if one.setting.row}
        self._fixed = fixed
        self.boxes = {
            name: (made or {}).get(name) or _box_of(one, getattr(settings, name))
            for name, one in self._declared.items()
        }

    def __getitem__(self, name: str) -> Any:
        return self.boxes[name]

    def values(self) -> dict[str, Any]:
        """The values of all boxes, by name."""
        return {name: getattr(box, _ACCESS[type(box)].get)() for name, box in self.boxes.items()}

    def show(self, values: Mapping[str, Any]) -> None:
        """Show values, of those settings that there are among them."""
        for name, box in self.boxes.items():
            if name in values and name not in self._fixed:
                _put(box, values[name])

    def connect(self, slot: Callable[..., object], *only: str) -> None:
        """Call a slot when a value changes, of these settings or of all."""
        for name, box in self.boxes.items():
            if name in (only or self.boxes) and name not in self._fixed:
                getattr(box, _ACCESS[type(box)].edited).connect(slot)
                if isinstance(box, QComboBox) and box.isEditable():
                    box.lineEdit().editingFinished.connect(slot)

    def set_unit(self, symbol: str, first: float) -> None:
        """State the unit of lengths, and where their first step leads."""
        for name, one in self._declared.items():
            box = self.boxes[name]
            if one.setting.unit == "length" and isinstance(box, NumberBox):
                box.setSuffix(f" {symbol}" if symbol else "")
                box.first = first

    def enable(self, names: tuple[str, ...], enabled: bool) -> None:
        """Enable some of the boxes, or disable them."""
        for name in names:
            self.boxes[name].setEnabled(enabled)

    def fill(self, form: QFormLayout) -> None:
        """Add the rows to a form, the further ones under *more*."""
        inside = QWidget()
        below = QFormLayout(inside)
        for name, one in self._declared.items():
            said, box = one.setting, self.boxes[name]
            rows = below if said.further else form
            rows.addRow(said.row.split("|")[0], box)
            said_all = " ".join(filter(None, [in_words(said.text), in_words(said.rule), said.more]))
            tip = f"<qt>{escape(in_words(said_all))}</qt>"  # which Qt breaks into lines
            box.setToolTip(tip)
            rows.labelForField(box).setToolTip(tip)
        more = QCollapsible("more")
        more.addWidget(inside)
        more.layout().setContentsMargins(0, 0, 0, 0)
        form.addRow(more)


def _box_of(one: Declared, value: Any) -> QWidget:
    """The box of a setting."""
    said = one.setting
    beside = said.row.partition("|")[2]
    automatic = in_words(said.automatic)
    if said.choices:
        box: QWidget = choice_box(said.choices)
    elif one.kind == "bool":
        box = QCheckBox(beside)
    elif one.kind == AXES:
        return AxesBox(value, max(said.least, 0))
    elif one.kind == "float":
        number = NumberBox(None, max(said.least, 0.0), automatic=automatic, first=said.first)
        number.setMaximum(min(said.most, number.maximum()))
        box = number
    elif one.kind == "int":
        least = max(int(max(said.least, 0)) - one.optional, -1)
        return CountBox(value, least, automatic=automatic)
    else:
        box = QLineEdit()
        box.setPlaceholderText(beside)
        return box
    _put(box, value)
    return box


def _put(box: QWidget, value: Any) -> None:
    getattr(box, _ACCESS[type(box)].put)(bool(value) if isinstance(box, QCheckBox) else value)
