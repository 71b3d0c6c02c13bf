"""A plot of what was measured, as wide as there is room, and how it is kept as a file."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtGui import QPixmap, QResizeEvent
from qtpy.QtWidgets import QFrame, QLabel, QScrollArea

from outbid.measuring import Measures

_PANEL = 330
"""Pixels of a panel at which its labels can be read."""


class PlotView(QScrollArea):
    """The plot of measures; panels stand beside each other where there is room for them."""

    def __init__(self) -> None:
        super().__init__()
        self.label, self._whole = QLabel(), QPixmap()
        self.label.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.label.setStyleSheet("background: white")
        self.setWidget(self.label)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMinimumSize(120, 150)

    @property
    def columns(self) -> int:
        """Panels for which there is room beside each other."""
        return max(self.viewport().width() // _PANEL, 1)

    def hold(self, content: bytes) -> None:
        """Show the picture in a PNG file."""
        self._whole.loadFromData(content)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the plot to another width; called by Qt."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        if not self._whole.isNull():
            smooth = Qt.TransformationMode.SmoothTransformation
            self.label.setPixmap(self._whole.scaledToWidth(max(self.viewport().width(), 1), smooth))


def picture(found: Measures, columns: int) -> bytes:
    """The plot as PNG, with so many panels beside each other."""
    from ..motion import plot
    from ..plots import saved

    return saved(plot(found, columns))
