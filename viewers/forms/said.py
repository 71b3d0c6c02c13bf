"""What a form says while it works and afterwards: a bar with what is done and left, and a message."""

from __future__ import annotations

from time import monotonic

from qtpy.QtCore import QSize, Qt, QTimer
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QFrame, QLabel, QProgressBar, QScrollArea

_STEPS = 1000
_LINES = 9  # of a message that are shown at once; the others are scrolled to
_SOON = 2.0  # seconds of work before which the time left is not stated


class ProgressBar(QProgressBar):
    """A bar that states how much is done of what, and about how long the rest takes."""

    def __init__(self) -> None:
        super().__init__()
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._wait = QTimer(self, singleShot=True)
        self._wait.timeout.connect(self.show)
        self._start = monotonic()
        self.hide()

    def begin(self, what: str, after: int = 0) -> None:
        """Show that something has begun, of which no progress is known yet; after some milliseconds."""
        self._start = monotonic()
        self.setRange(0, 0)
        self.setFormat(f"{what} …")
        if after:
            self._wait.start(after)
        else:
            self.show()

    def end(self) -> None:
        """Hide the bar."""
        self._wait.stop()
        self.hide()

    def show_progress(self, done: int, total: int, counted: str = "") -> None:
        """Show how much of a total is done; 0 in all: that the work goes on."""
        self.setRange(0, _STEPS if total else 0)
        if not total:
            return
        self.setValue(_STEPS * done // total)
        so_far = f"{done:,} of {total:,} {counted}".strip() if counted else f"{100 * done // total} %"
        self.setFormat(" · ".join(filter(None, [so_far, self._left(done, total)])))

    def _left(self, done: int, total: int) -> str:
        spent = monotonic() - self._start
        return lasting(spent * (total - done) / done) + " left" if done and spent > _SOON else ""


class MessageBox(QScrollArea):
    """A message of any length, that takes some lines at most and is scrolled then; hidden if empty."""

    def __init__(self) -> None:
        super().__init__()
        self.label = sentence()
        self.label.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setWidget(self.label)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.rest = sentence()  # for all but the first line, where a form lays it out elsewhere
        self.hide()

    def show_text(self, text: str, *, error: bool = False) -> None:
        """Show a message; its further lines in `rest`, if that lies in a form."""
        if self.rest.parent() is not None:
            text, _, further = text.partition("\n")
            self.rest.setText(further)
        self.label.setText(text)
        self.label.setStyleSheet("color: #ff8a80" if error else "")
        self.setVisible(bool(text))
        self._fit()

    def sizeHint(self) -> QSize:
        """As many lines as the text has; called by Qt."""
        return QSize(100, self._height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit to another width; called by Qt."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        self.setFixedHeight(self._height())

    def _height(self) -> int:
        width = max(self.viewport().width(), 100)
        return min(self.label.heightForWidth(width), _LINES * self.fontMetrics().lineSpacing()) + 2


def sentence() -> QLabel:
    """A label for a sentence of any length."""
    label = QLabel()
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def lasting(seconds: float) -> str:
    """A time in words.

    >>> lasting(0.3), lasting(42.4), lasting(150), lasting(9000)
    ('1 s', '42 s', '2.5 min', '2.5 h')
    """
    if seconds < 100:
        return f"{max(round(seconds), 1)} s"
    return f"{seconds / 60:.2g} min" if seconds < 6000 else f"{seconds / 3600:.2g} h"
