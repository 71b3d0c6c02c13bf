"""A table of numbers of any length, that selects and is selected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from qtpy.QtCore import QAbstractTableModel, QModelIndex, Qt, Signal
from qtpy.QtWidgets import QAbstractItemView, QTableView
from superqt.utils import signals_blocked

LINES = 8  # that are shown at least
_SECTION = 72  # pixels of a column


class NumbersTable(QTableView):
    """Columns of numbers or texts, sorted by a click on a header; only what is visible is drawn."""

    chosen = Signal(int)
    """The user selected this row of the columns."""

    def __init__(self) -> None:
        super().__init__()
        self.setModel(_Columns())
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setSortingEnabled(True)
        self.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        self.verticalHeader().hide()
        self.horizontalHeader().setDefaultSectionSize(_SECTION)
        self.setMinimumHeight((LINES + 1) * self.verticalHeader().defaultSectionSize())

    def hold(self, columns: Mapping[str, NDArray]) -> None:
        """Show other columns, in the order of before."""
        with signals_blocked(self):
            self.model().hold(columns)

    def select(self, row: int) -> None:
        """Select a row of the columns, without `chosen`."""
        with signals_blocked(self):
            for at in np.flatnonzero(self.model().order == row).tolist():
                self.setCurrentIndex(self.model().index(at, 0))

    def currentChanged(self, current: QModelIndex, previous: QModelIndex) -> None:
        """Pass on which row the user chose; called by Qt."""
        super().currentChanged(current, previous)
        if current.isValid():
            self.chosen.emit(int(self.model().order[current.row()]))


class _Columns(QAbstractTableModel):
    """Arrays of one length, in an order of their rows."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: dict[str, NDArray] = {}
        self.order = np.empty(0, np.int64)
        self._by = (0, Qt.SortOrder.AscendingOrder)

    def hold(self, columns: Mapping[str, NDArray]) -> None:
        self.beginResetModel()
        self.columns = dict(columns)
        self.order = np.arange(len(next(iter(columns.values()), ())))
        self.endResetModel()
        self.sort(*self._by)

    def rowCount(self, _: Any = None) -> int:
        return len(self.order)

    def columnCount(self, _: Any = None) -> int:
        return len(self.columns)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        value = [*self.columns.values()][index.column()][self.order[index.row()]]
        if value is None or value != value:  # not known
            return ""
        return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)

    def headerData(self, section: int, way: Any, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        shown = role == Qt.ItemDataRole.DisplayRole and way == Qt.Orientation.Horizontal
        return [*self.columns][section] if shown else None

    def sort(self, column: int, order: Any = Qt.SortOrder.AscendingOrder) -> None:
        """Values that are not known come last in both orders."""
        self._by = column, order
        if not 0 <= column < len(self.columns):
            return
        self.layoutAboutToBeChanged.emit()
        values, up = pd.Series([*self.columns.values()][column]), order == Qt.SortOrder.AscendingOrder
        if values.dtype == object:  # numbers among words
            values = values.astype(str)
        self.order = values.sort_values(ascending=up, kind="stable").index.to_numpy()
        self.layoutChanged.emit()
