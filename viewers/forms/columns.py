"""The columns of a layer in a form: a tick for each that helps to link, its kind, its bits after a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from napari.layers import Labels, Points
from numpy.typing import NDArray
from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import QLineEdit, QTreeWidget, QTreeWidgetItem
from superqt.utils import signals_blocked

from outbid.errors import SettingsError
from outbid.learned.features import DETECTED, kinds_of
from outbid.settings.columns import REFUSED, columns_of, texts_of

from .napari_layers import features_of
from .table import LINES

_OF_LABELS = {"size": "", "elongation": "", "angle": "angle=180"}
"""Columns of objects of label images, and the kinds that they are ticked with."""


class ColumnList(QTreeWidget):
    """A tick for each column; ticks and the text of the setting follow each other.

    Parameters
    ----------
    text : QLineEdit
        ``area; theta:angle=180``, or ``-`` for none at all; empty for those of `outbid detect`.
    """

    def __init__(self, text: QLineEdit) -> None:
        super().__init__()
        self._text = text
        self._features: Mapping[str, NDArray] = {}
        self._bits: Mapping[str, float] = {}
        self.setHeaderLabels(["column", "kind", "bits a link"])
        self.setRootIsDecorated(False)
        self.setMinimumHeight((LINES + 1) * self.fontMetrics().lineSpacing())
        # Not at once: Qt still works on the item that has changed.
        self._ticked = QTimer(self, singleShot=True, interval=0)
        self._ticked.timeout.connect(self._write)
        self.itemChanged.connect(lambda *_: self._ticked.start())
        text.textChanged.connect(self.renew)

    def hold(self, layer: Any) -> None:
        """List the columns of a layer, or those that detection in it will write."""
        self._bits = {}
        match layer:
            case Points():
                self._features = features_of(layer)
            case Labels():
                self._features = dict.fromkeys(_OF_LABELS, np.empty(0))
            case _:
                self._features = {} if layer is None else dict.fromkeys(DETECTED, np.empty(0))
        self.renew()

    def show_bits(self, bits: Mapping[str, float]) -> None:
        """Show what columns said about links in a run."""
        self._bits = bits
        self.renew()

    def renew(self) -> None:
        """List the columns as the text has them."""
        try:
            kinds = kinds_of(self._features, column_in(self._text.text()))
        except SettingsError:  # which a run shows
            kinds = {}
        inside = {member for _, members in kinds.values() for member in members} - set(kinds)
        names = [name for name in self._features if name.lower() not in REFUSED and name not in inside]
        current = self.indexOfTopLevelItem(self.currentItem())
        with signals_blocked(self):
            self.clear()
            for name in dict.fromkeys([*names, *kinds]):
                said = f"{self._bits[name]:.2g}" if self._bits.get(name) else "says nothing"
                item = QTreeWidgetItem([
                    name, kinds[name][0] if name in kinds else "", said if name in self._bits else "",
                ])  # fmt: skip
                item.setCheckState(0, Qt.CheckState.Checked if name in kinds else Qt.CheckState.Unchecked)
                self.addTopLevelItem(item)
            self.setCurrentItem(self.topLevelItem(current))
        self.setVisible(self.topLevelItemCount() > 0)

    def _write(self) -> None:
        """Put what is ticked into the text."""
        items = [self.topLevelItem(row) for row in range(self.topLevelItemCount())]
        ticked = [item.text(0) for item in items if item.checkState(0) == Qt.CheckState.Checked]
        given = column_in(self._text.text())
        kinds = dict.fromkeys(self._features, "")
        kinds |= _OF_LABELS if kinds.keys() >= _OF_LABELS.keys() else {}
        kinds |= given if isinstance(given, Mapping) else {}
        usual = kinds_of(self._features, "auto")
        kinds |= {name: "" for name in ticked if kinds[name] == "none"}
        column = {name: kinds[name] for name in ticked if kinds[name] or name not in usual}
        column |= {name: "none" for name in usual if name not in ticked}
        self._text.setText(text_of(column or "auto") if ticked else "-")
        self._text.editingFinished.emit()


def column_in(text: str) -> Mapping[str, str] | Literal["auto"] | None:
    """The setting `TrackingSettings.column` that a text states."""
    named = columns_of(parts(text))
    return None if "-" in named else named or "auto"


def text_of(column: Mapping[str, str] | str | None) -> str:
    """The text that states a setting `TrackingSettings.column`."""
    return "-" if column is None else "; ".join(texts_of(column)) if isinstance(column, Mapping) else ""


def parts(text: str) -> list[str]:
    """What stands between semicolons."""
    return [part.strip() for part in text.split(";") if part.strip()]
