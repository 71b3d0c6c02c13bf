"""Filters of spots and tracks: a histogram of a column, a slider on it, and the condition that they state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Qt, QTimer, Signal
from qtpy.QtGui import QGuiApplication
from qtpy.QtWidgets import QComboBox, QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget
from superqt import QLabeledDoubleRangeSlider
from superqt.utils import signals_blocked

from outbid.edit.filter import LENGTH, Condition, column_of, columns_in, condition_from
from outbid.particles.tracks import Tracks

from .fields import choice_box

OF = {"each spot": "", "mean of track": "mean", "min of track": "min", "max of track": "max"}
"""What a condition is on, and the function of `outbid filter` that says so."""
_BINS = 60
"""Guard: bars of a histogram."""
_HIGH = 64
"""Pixels of a histogram."""
_PAUSE = 60
"""Milliseconds without a change after which the filter acts."""
_MARKS = "<>=!"
_NO_STEP = 1e-6
"""Guard: rounding of a slider, as a share of its range."""


class FilterBox(QWidget):
    """Filters that all must hold, one after the other, as `outbid filter` applies them."""

    changed = Signal()
    """The conditions of `where` are others."""
    kept = Signal()
    """The user wants the rest as a layer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.tracks: Tracks | None = None
        self.filters: list[ColumnFilter] = []
        self.columns, self.of = choice_box(), QComboBox()
        self.of.addItems([*OF])
        self.add_button, self.text = QPushButton("Add filter"), QLineEdit()
        self.text.setReadOnly(True)
        self.text.setPlaceholderText("no filter")
        self.text.setToolTip("The same filter for the command line, for example: outbid filter tracks.csv …")
        self.copy_button, self.keep_button = QPushButton("Copy"), QPushButton("Keep as layer")
        self._rows = QVBoxLayout()
        self._lay_out()
        self._soon = QTimer(self, singleShot=True, interval=_PAUSE)
        self._soon.timeout.connect(self.changed)
        self.add_button.clicked.connect(lambda _=False: self.add())
        self.copy_button.clicked.connect(lambda _=False: self._copy())
        self.keep_button.clicked.connect(lambda _=False: self.kept.emit())
        self._state()

    @property
    def where(self) -> list[str]:
        """The conditions, as `outbid filter --where` takes them."""
        return [condition for one in self.filters for condition in one.where]

    def hold(self, tracks: Tracks, where: Sequence[str] = ()) -> None:
        """Filter other tracks, also by these conditions; filters on columns that they lack are dropped."""
        self.tracks, names = tracks, columns_in(tracks)
        before = self.columns.currentText()
        self.columns.clear()
        self.columns.addItems(names)
        self.columns.setCurrentText(before if before in names else names[0])
        for one in [one for one in self.filters if one.column not in names]:
            self._drop(one)
        for one in self.filters:
            one.hold(self._values(one))
        for condition in map(condition_from, where):
            if condition.column in names and condition.number is not None:
                self._limit(condition, condition.number)

    def clear(self) -> None:
        """Drop all filters."""
        for one in [*self.filters]:
            self._drop(one)

    def add(self) -> ColumnFilter | None:
        """Add a filter on the column that is chosen."""
        if self.tracks is None:
            return None
        return self._added(self.columns.currentText(), OF[self.of.currentText()])

    def _limit(self, condition: Condition, number: float) -> None:
        """Move an end of the last filter, if it is on this column, else of another one."""
        last, of = self.filters[-1] if self.filters else None, (condition.column, condition.of_track)
        same = last is not None and (last.column, last.of_track) == of
        slider = (last if last is not None and same else self._added(*of)).slider
        low, high = slider.value()
        slider.setValue((low, number) if condition.sign == "<=" else (number, high))

    def _added(self, column: str, of_track: str) -> ColumnFilter:
        one = ColumnFilter(column, of_track)
        one.hold(self._values(one))
        one.changed.connect(self._changed)
        one.dropped.connect(lambda: self._drop(one))
        self.filters.append(one)
        self._rows.addWidget(one)
        self._state()
        return one

    def _values(self, one: ColumnFilter) -> NDArray[np.float64]:
        """A value of each spot, or of each track."""
        assert self.tracks is not None
        values = column_of(self.tracks, one.column, one.of_track)
        if one.of_track or one.column == LENGTH:
            return values[np.unique(self.tracks.track_id, return_index=True)[1]]
        return values

    def _drop(self, one: ColumnFilter) -> None:
        self.filters.remove(one)
        self._rows.removeWidget(one)
        one.deleteLater()
        self._changed()

    def _changed(self) -> None:
        self._state()
        self._soon.start()

    def _state(self) -> None:
        """State the filter as text."""
        self.text.setText(" ".join(f'--where "{condition}"' for condition in self.where))
        for button in (self.copy_button, self.keep_button):
            button.setEnabled(bool(self.where))

    def _copy(self) -> None:
        clipboard = QGuiApplication.clipboard()
        if clipboard is not None:
            clipboard.setText(self.text.text())

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        for widgets in (
            (self.columns, self.of, self.add_button), (self.text, self.copy_button, self.keep_button),
        ):  # fmt: skip
            row = QHBoxLayout()
            for widget in widgets:
                row.addWidget(widget, int(widget in (self.columns, self.text)))
            column.addLayout(row)
        column.insertLayout(1, self._rows)


class ColumnFilter(QWidget):
    """The range of a column that is kept."""

    changed, dropped = Signal(), Signal()

    def __init__(self, column: str, of_track: str) -> None:
        super().__init__()
        self.column, self.of_track = column, of_track
        self.name, self.drop_button = QLabel(self.quantity), QPushButton("✕")
        self.drop_button.setFixedWidth(24)
        self.slider = QLabeledDoubleRangeSlider(Qt.Orientation.Horizontal)
        self._low, self._high = self.slider.value()  # nothing is left out yet
        self.slider.setEdgeLabelMode(self.slider.EdgeLabelMode.NoLabel)
        self.plot: Any = None
        rows = QVBoxLayout(self)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(0)
        head = QHBoxLayout()
        head.addWidget(self.name, 1)
        head.addWidget(self.drop_button)
        rows.addLayout(head)
        try:
            import pyqtgraph as pg
        except ImportError:
            self.name.setText(f"{self.quantity} (for a histogram: pip install 'outbid[lineage]')")
        else:
            self._histogram(pg)
            rows.addWidget(self.plot)
        rows.addWidget(self.slider)
        self.slider.valueChanged.connect(self._moved)
        self.drop_button.clicked.connect(lambda _=False: self.dropped.emit())

    @property
    def quantity(self) -> str:
        """What is filtered, as a condition states it."""
        name = f"'{self.column}'" if any(mark in self.column for mark in _MARKS) else self.column
        return f"{self.of_track}({name})" if self.of_track else name

    @property
    def where(self) -> list[str]:
        """No, one or two conditions."""
        low, high = self.slider.value()
        of_low, of_high = self._moved_ends
        return [f"{self.quantity} >= {low:.4g}"] * of_low + [f"{self.quantity} <= {high:.4g}"] * of_high

    @property
    def _moved_ends(self) -> tuple[bool, bool]:
        """Whether each end of the range leaves something out."""
        (low, high), step = self.slider.value(), (self._high - self._low) * _NO_STEP
        return low > self._low + step, high < self._high - step

    def hold(self, values: NDArray[np.float64]) -> None:
        """Show the histogram of other values; an end that was not moved follows them."""
        known = values[np.isfinite(values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        high = high if high > low else low + 1.0
        now, kept = self.slider.value(), self._moved_ends
        self._low, self._high = low, high
        with signals_blocked(self.slider):
            self.slider.setRange(low, high)
            self.slider.setDecimals(max(0, min(6, 3 - int(np.floor(np.log10(high - low))))))
            self.slider.setValue((now[0] if kept[0] else low, now[1] if kept[1] else high))
        if self.plot is not None:
            count, edges = np.histogram(known, _BINS, (low, high))
            self._bars.setData(edges, np.sqrt(count))
            self.plot.setRange(
                xRange=(low, high), yRange=(0, max(1.0, float(np.sqrt(count.max())))), padding=0
            )
            self._range.setRegion(self.slider.value())

    def _histogram(self, pg: Any) -> None:
        self.plot = pg.PlotWidget()
        self.plot.setFixedHeight(_HIGH)
        self.plot.setToolTip(
            "How many spots, or tracks, have each value; heights are square roots, so that few are seen."
        )
        self.plot.setMenuEnabled(False)
        self.plot.setMouseEnabled(False, False)
        self.plot.hideButtons()
        self.plot.hideAxis("left")
        self.plot.hideAxis("bottom")
        self._bars = pg.PlotCurveItem([0, 1], [0], stepMode="center", fillLevel=0, brush="#6f7f94", pen=None)
        self._range = pg.LinearRegionItem(brush=(90, 160, 255, 60), movable=False)
        for item in (self._bars, self._range):
            self.plot.addItem(item)

    def _moved(self) -> None:
        if self.plot is not None:
            self._range.setRegion(self.slider.value())
        self.changed.emit()
