"""The lineage of a cell, or of all, as a plot in which a click goes to a track and a frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCheckBox, QLabel, QVBoxLayout, QWidget

from ..lineage import Spans, tree_of, trees_of

_MOST = 200
"""Guard: lineages that are drawn together."""


class LineagePlot(QWidget):
    """Lineages, time to the right; it needs pyqtgraph."""

    chosen = Signal(int, int)
    """The user clicked at a track, and a frame."""

    def __init__(self) -> None:
        super().__init__()
        self._spans: Spans | None = None
        self._track, self._rows = -1, dict[int, float]()
        self.plot: Any = None
        self.all = QCheckBox("all lineages that divide")
        self.all.toggled.connect(self._draw)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        try:
            from pyqtgraph import PlotWidget
        except ImportError:
            column.addWidget(QLabel("Lineages need pyqtgraph: pip install 'outbid[lineage]'"))
            return
        self.plot = PlotWidget()
        self.plot.hideAxis("left")
        self.plot.setLabel("bottom", "frame")
        self.plot.invertY()
        self.plot.scene().sigMouseClicked.connect(lambda event: self.click(event.scenePos()))
        column.addWidget(self.all)
        column.addWidget(self.plot)

    def hold(self, spans: Spans) -> None:
        """Take other tracks."""
        self._spans = spans
        self._track = min(self._track, len(spans.first) - 1)
        self._draw()

    def show_track(self, track: int) -> None:
        """Show the lineage of this track, which is drawn thicker."""
        self._track = track
        self._draw()

    def click(self, position: Any) -> None:
        """Go to the track at a position of the scene."""
        point = self.plot.plotItem.vb.mapSceneToView(position)
        if self._spans is None or not self._rows:
            return
        first, last = self._spans.first, self._spans.last
        near = {track: abs(y - point.y()) for track, y in self._rows.items()}
        here = [track for track in near if first[track] - 0.5 <= point.x() <= last[track] + 0.5]
        track = min(here or near, key=near.__getitem__)
        self.chosen.emit(track, int(np.clip(round(point.x()), first[track], last[track])))

    def _draw(self, _: object = None) -> None:
        if self.plot is None or self._spans is None or not len(self._spans.first):
            return
        shown = trees_of(self._spans, most=_MOST)[0] if self.all.isChecked() else []
        shown = shown or ([tree_of(self._spans, self._track)] if self._track >= 0 else [])
        self.plot.clear()
        self._rows, below = {}, 0.0
        for tree in shown:
            time, height = tree.ends
            self.plot.plot(time.ravel(), below + height.ravel(), connect="pairs", pen="w")
            self._rows |= {track: below + at for track, at in tree.rows.items()}
            below += tree.height
        if self._track in self._rows:
            span = [self._spans.first[self._track], self._spans.last[self._track]]
            self.plot.plot(span, [self._rows[self._track]] * 2, pen={"color": "#ffd24d", "width": 3})
