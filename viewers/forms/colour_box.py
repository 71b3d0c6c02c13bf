"""A box to choose by what tracks are coloured, with a bar that shows which colour means which value."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from napari.utils.colormaps import ensure_colormap
from numpy.typing import NDArray
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QLabel, QWidget
from superqt.utils import signals_blocked

from outbid.particles.tracks import Tracks

from ..coloured import PROBABILITY, TRACK, Coloured, coloured, names_of
from .fields import choice_box, paint_bar
from .napari_layers import CONFIDENCE_MAP

_COLOURS = 256
"""Guard: colours of a bar."""
_STOPS = 12
"""Guard: colours at which the bar is drawn."""
_UNKNOWN = (0.55, 0.55, 0.55, 1.0)
MEASURES = "measures of motion …"
"""Entry that measures all tracks, and offers what `outbid measure` states of them."""


class ColourBox(QWidget):
    """The names of `outbid.viewers.coloured.names_of`, and a bar of colours.

    The form that holds it measures the tracks when `asked` is emitted, and gives what it found to `measured`.
    """

    changed = Signal()
    asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._tracks: Tracks | None = None
        self._measured: Mapping[str, NDArray] = {}
        self.names = choice_box(letters=10)
        self.low, self.bar, self.high = QLabel(), QLabel(), QLabel()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for widget, stretch in ((self.names, 2), (self.low, 0), (self.bar, 2), (self.high, 0)):
            row.addWidget(widget, stretch)
        self.names.currentTextChanged.connect(self._chosen)

    def hold(self, tracks: Tracks) -> None:
        """Take other tracks; the name stays if they have it."""
        self._tracks, self._measured = tracks, {}
        self._offer(self.names.currentText())

    def measured(self, values: Mapping[str, NDArray]) -> None:
        """Offer further values of the detections, and colour by the first."""
        self._measured = values
        self._offer(next(iter(values), ""))
        self.changed.emit()

    @property
    def coloured(self) -> Coloured:
        """The values of the name that is chosen."""
        assert self._tracks is not None
        return coloured(self._tracks, self.names.currentText(), self._measured)

    @property
    def table(self) -> NDArray[np.float64]:
        """(K, 4) The colours, from the lowest value to the highest."""
        by = self.names.currentText()
        chosen = CONFIDENCE_MAP if by == PROBABILITY else ensure_colormap("hsv" if by == TRACK else "viridis")
        return np.asarray(chosen.map(np.linspace(0, 1, _COLOURS)), np.float64)

    def colours(self, values: Coloured) -> NDArray[np.float64]:
        """(N, 4) The colour of each detection; grey where the value is not known."""
        share, table = values.share, self.table
        known = np.isfinite(share)
        at = np.where(known, share, 0.0) * (len(table) - 1)
        return np.where(known[:, None], table[at.round().astype(np.int64)], _UNKNOWN)

    def show_range(self, values: Coloured) -> None:
        """Draw the bar."""
        self.low.setText(f"{values.low:.3g}")
        self.high.setText(f"{values.high:.3g}")
        rows = self.table[np.linspace(0, _COLOURS - 1, _STOPS).astype(int), :3] * 255
        paint_bar(self.bar, [f"rgb({red:.0f},{green:.0f},{blue:.0f})" for red, green, blue in rows], 12)
        by_track = self.names.currentText() == TRACK
        for widget in (self.low, self.bar, self.high):
            widget.setVisible(not by_track)

    def _offer(self, name: str) -> None:
        assert self._tracks is not None
        names = names_of(self._tracks, self._measured)
        with signals_blocked(self.names):
            self.names.clear()
            self.names.addItems([*names, MEASURES] if not self._measured else names)
            self.names.setCurrentText(name if name in names else names[0])

    def _chosen(self, name: str) -> None:
        if name == MEASURES:
            self._offer("")
            self.asked.emit()
        elif name:
            self.changed.emit()
