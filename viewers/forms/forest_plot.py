"""All lineages as a plot: time down, tracks across; a click selects a detection, and its link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, Qt, QTimer, Signal
from qtpy.QtWidgets import QLabel, QSizePolicy, QVBoxLayout, QWidget

from ..forest import Forest, Lines

_BINS = 32
"""Guard: pens of a picture."""
_UNKNOWN, _SELECTED, _DOUBTFUL, _FRAME = "#8a8a8a", "#ffffff", "#ff4d4d", "#5aa0ff"
_REACH = 12
"""Prior: pixels from a track at which a click still selects it."""
_MOST_SPOTS = 2_000
"""Guard: detections that are drawn as discs."""
_FEW, _WIDE = 800, 2
"""Guard: lines below which each is so many pixels wide; wide ones take longer."""
_LEAST_HIGH = 260
"""Pixels of the plot."""
_AMID = 30
"""Prior: columns, and frames, around a detection that is gone to."""


class ForestPlot(QWidget):
    """Lineages of a `Forest`, of which as much is drawn as the view shows; it needs pyqtgraph."""

    chosen = Signal(int, bool)
    """The user clicked at the detection of this row, and whether with Shift, to select it besides others."""

    def __init__(self) -> None:
        super().__init__()
        self.forest: Forest | None = None
        self.shown: Lines | None = None  # what the view shows
        self.plot: Any = None
        self._value = np.empty(0)
        self.fitted = True  # the view shows all, until the user or a selection moves it
        self._colours: list[Any] = [_UNKNOWN] * _BINS
        self._selected = np.empty(0, np.int64)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        try:
            import pyqtgraph as pg
        except ImportError:
            column.addWidget(QLabel("The lineage needs pyqtgraph: pip install 'outbid[lineage]'"))
            return
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self.draw)
        self._numbers = np.empty(0, np.int64)
        self.plot = self._make(pg)
        self.plot.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.setMinimumHeight(_LEAST_HIGH)
        column.addWidget(self.plot)

    def hold(self, forest: Forest, number: NDArray[np.int64], value: NDArray[np.float64]) -> None:
        """Show other lineages; a view that does not show all stays where it is.

        Parameters
        ----------
        forest : Forest
        number : (T,) int64 array
            By which tracks are called.
        value : (N,) float64 array
            By which detections are coloured, from 0 to 1; NaN is grey.
        """
        if self.plot is None:
            return
        before = self.forest
        self.forest, self._numbers, self._value = forest, number, value
        self._selected = self._selected[self._selected < len(value)]
        if self.fitted and (before is None or before.width != forest.width):
            self.fit()
        self.draw()

    def colour(self, value: NDArray[np.float64], table: NDArray[np.float64]) -> None:
        """Colour by other values, from 0 to 1, by a table (K, 3) or (K, 4) of colours."""
        self._value = value
        if self.plot is None:
            return
        at = np.linspace(0, len(table) - 1, _BINS).round().astype(int)
        self._colours = [tuple(map(int, rgb)) for rgb in table[at, :3] * 255]
        self.draw()

    def select(self, rows: Sequence[int], *, go: bool = True) -> None:
        """Mark these detections, and bring the last into view."""
        self._selected = np.asarray(rows, np.int64)
        if self.plot is None or self.forest is None:
            return
        if go and len(rows):
            x, y = self.forest.place_of(self._selected[-1:])[0]
            (left, right), (top, bottom) = self.plot.viewRange()
            if np.isfinite(x) and not (left <= x <= right and top <= y <= bottom):
                wide, high = min(right - left, 2 * _AMID), min(bottom - top, 2 * _AMID)
                self._look(x - wide / 2, x + wide / 2, y - high / 2, y + high / 2)
                self.fitted = False
        self.draw()

    def fit(self, rows: Sequence[int] = ()) -> None:
        """Bring the lineages of these detections into view; all if none are given."""
        forest = self.forest
        if forest is None or self.plot is None or not forest.width:
            return
        tracks = forest.across
        if len(rows):
            family = forest.family_of(forest.tracks.track_id[np.asarray(rows, np.int64)])
            tracks = family[np.isfinite(forest.column[family])]
        if len(tracks):
            x, first, last = forest.column[tracks], forest.spans.first[tracks], forest.spans.last[tracks]
            self._look(x.min() - 1, x.max() + 1, first.min() - 1, last.max() + 1)
            self.fitted = not len(rows)

    def show_frame(self, frame: float) -> None:
        """Draw the frame that the viewer shows as a line."""
        if self.plot is not None:
            self._now.setValue(frame)

    def click(self, position: QPointF, *, more: bool = False) -> None:
        """Select what is nearest to a position of the scene."""
        if self.forest is None:
            return
        box = self.plot.plotItem.vb
        at, size = box.mapSceneToView(position), box.viewPixelSize()
        row = self.forest.nearest(at.x(), at.y(), (_REACH * size[0], _REACH * size[1]))
        if row >= 0:
            self.chosen.emit(row, more)

    def draw(self) -> None:
        """Draw what the view shows."""
        forest = self.forest
        if forest is None or self.plot is None:
            return
        x, y = self.plot.viewRange()
        self.shown = lines = forest.lines(x, y, max(self.plot.width(), 1), self._value)
        known = np.isfinite(lines.value)
        at = np.where(known, np.clip(np.where(known, lines.value, 0) * _BINS, 0, _BINS - 1), _BINS)
        order = np.argsort(at.astype(np.int64), kind="stable")
        parts = np.searchsorted(at.astype(np.int64)[order], np.arange(_BINS + 2))
        width = _WIDE if len(at) < _FEW else 1
        bins = zip(self._curves, [*self._colours, _UNKNOWN], parts[:-1], parts[1:], strict=True)
        for curve, colour, start, stop in bins:
            some = order[start:stop]
            curve.setVisible(len(some) > 0)
            if len(some):
                curve.setPen(colour, width=width)
                curve.setData(lines.x[some].ravel(), lines.y[some].ravel())
        doubtful = forest.place_of(forest.tracks.links[lines.doubtful].ravel())
        self._doubtful.setData(*doubtful.T)
        spots = lines.spots if len(lines.spots) <= _MOST_SPOTS else lines.spots[:0]
        self._spots.setData(*forest.place_of(spots).T)
        chosen = forest.place_of(self._selected)
        self._marks.setData(*chosen[np.isfinite(chosen[:, 0])].T)
        tracks = np.unique(forest.tracks.track_id[self._selected])
        ends = [forest.place_of(forest.rows_of(int(track))[[0, -1]]) for track in tracks]
        self._path.setData(*np.concatenate([np.empty((0, 2)), *ends]).T)

    def _make(self, pg: Any) -> Any:
        named = self.name_at

        class Numbers(pg.AxisItem):
            """Numbers of tracks under their columns."""

            def tickStrings(self, values: list[float], *_: float) -> list[str]:
                return [named(value) for value in values]

        plot = pg.PlotWidget(axisItems={"bottom": Numbers("bottom")})
        plot.setLabel("left", "frame")
        plot.setLabel("bottom", "track")
        plot.invertY()
        plot.hideButtons()
        plot.setMenuEnabled(False)
        plain = {"connect": "pairs", "skipFiniteCheck": True, "antialias": False}
        self._curves = [pg.PlotCurveItem(**plain) for _ in range(_BINS + 1)]
        self._doubtful = pg.PlotCurveItem(pen=pg.mkPen(_DOUBTFUL, width=3), **plain)
        self._path = pg.PlotCurveItem(pen=pg.mkPen(_SELECTED, width=2), **plain)
        self._spots = pg.ScatterPlotItem(size=4, pen=None, brush="#c8c8c8")
        self._marks = pg.ScatterPlotItem(size=13, pen=pg.mkPen(_SELECTED, width=2), brush=None)
        self._now = pg.InfiniteLine(angle=0, pen=pg.mkPen(_FRAME, style=Qt.PenStyle.DashLine))
        for item in (*self._curves, self._spots, self._doubtful, self._path, self._marks, self._now):
            plot.addItem(item, ignoreBounds=True)
        plot.sigRangeChanged.connect(lambda *_: self._soon.start())
        plot.plotItem.vb.sigRangeChangedManually.connect(self._moved)
        plot.scene().sigMouseClicked.connect(self._clicked)
        return plot

    def name_at(self, column: float) -> str:
        """Number of the track in a column; empty between columns."""
        forest = self.forest
        if forest is None or column != round(column) or not 0 <= column < forest.width:
            return ""
        columns = forest.column[forest.across]
        near = forest.across[slice(*np.searchsorted(columns, [column - 0.1, column + 0.1]))]
        return str(self._numbers[near[forest.spans.last[near].argmax()]]) if len(near) else ""

    def _moved(self, *_: object) -> None:
        self.fitted = False

    def _clicked(self, event: Any) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.click(event.scenePos(), more=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))

    def _look(self, left: float, right: float, top: float, bottom: float) -> None:
        self.plot.setRange(xRange=(left, right), yRange=(top, bottom), padding=0)
