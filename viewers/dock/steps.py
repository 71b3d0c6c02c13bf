"""The dock *Outbid*: a row of steps, the page of one of them, and one button that leads on."""

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import (
    QButtonGroup,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from ..forms.laid_out import stand_beside
from ..forms.napari_layers import record_of
from .check import CheckPage
from .export import ExportPage
from .linked import DetectPage, TrackPage
from .measured import MeasurePage
from .movie import MoviePage
from .page import Page
from .session import Session

_LOOKS = "QToolButton { padding: 2px 0px; } QToolButton:checked { background: #3f6fb5; font-weight: bold; }"
_IN_A_ROW = 3
"""Steps beside each other: six would make the dock wider than a window of 800 pixels has room for."""


class Dock(QWidget):
    """From a movie to corrected, measured tracks: Movie, Detect, Track, Check, Measure, Export.

    Parameters
    ----------
    napari_viewer : napari.Viewer
        napari gives it to a parameter of this name.
    """

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.viewer = napari_viewer
        kinds: tuple[type[Page], ...] = (
            MoviePage, DetectPage, TrackPage, CheckPage, MeasurePage, ExportPage
        )  # fmt: skip
        self.pages: list[Any] = [kind(self.viewer) for kind in kinds]
        self.stack, self.steps = QStackedWidget(), QButtonGroup(self)
        self.back_button, self.next_button = QPushButton("◀"), QPushButton()
        self._lay_out()
        for page in self.pages:
            page.changed.connect(self.renew)
        for event in ("inserted", "removed"):
            getattr(self.viewer.layers.events, event).connect(self.renew, position="last")
        self.steps.idClicked.connect(self.go)
        self.back_button.clicked.connect(lambda _=False: self.go(self.at - 1))
        self.next_button.clicked.connect(lambda _=False: self.next())
        self.pages[0].reopened.connect(self._reopened)
        self.pages[-1].form.session = self.settings
        self.renew()
        stand_beside(self)

    @property
    def at(self) -> int:
        """Number of the page that is shown."""
        return int(self.stack.currentIndex())

    @property
    def page(self) -> Any:
        """The page that is shown."""
        return self.pages[self.at]

    def next(self) -> None:
        """Do what the page is for; once that is done, go on to the next one."""
        if self.page.act_text():
            self.page.act()
        else:
            self.go(self._following())
        self.renew()

    def _following(self) -> int:
        """Number of the next page that can act; of the next one if none can."""
        after = range(self.at + 1, len(self.pages))
        return next((number for number in after if self.pages[number].able()), self.at + 1)

    def go(self, number: int) -> None:
        """Go to a page, with what the pages before it have made."""
        self.page.leave()
        self.pages[number].enter(self.pages[:number])
        self.pages[number].announce()
        self.stack.setCurrentIndex(number)
        self.renew()

    def renew(self, _: object = None) -> None:
        """Enable what can act now, and name what the button does."""
        act, busy = self.page.act_text(), self.page.busy()
        last = self.at + 1 == len(self.pages)
        then = None if last else self.pages[self._following()]
        able = act != "" or then is None or then.able()
        following = "" if then is None else f"Next: {then.title} ▶"
        self.next_button.setText(act or following or "Done")
        self.next_button.setEnabled(able and not busy and (not act or self.page.able()))
        self.next_button.setDefault(True)
        self.back_button.setEnabled(self.at > 0 and not busy)
        for number, page in enumerate(self.pages):
            step = self.steps.button(number)
            step.setEnabled(number == self.at or (page.able() and not busy))
            step.setChecked(number == self.at)

    def settings(self) -> dict[str, Any]:
        """The settings of the forms, by their commands, as plain values."""
        detect, track = self.pages[1].form, self.pages[2].form
        return {"detect": detect.rows.values(), "track": track.rows.values()}

    def _reopened(self, session: Session) -> None:
        """Show the settings of a session, and its results as those of the pages."""
        for page in self.pages[1:3]:
            page.form.rows.show(session.settings.get(page.form.command, {}))
            page.form.shown = None
        for layer in self.viewer.layers:
            command = (record_of(layer) or {}).get("command")
            for page in self.pages[1:3]:
                if command == page.form.command:
                    page.form.shown = layer
        self.renew()

    def _lay_out(self) -> None:
        row = QGridLayout()
        row.setSpacing(1)
        for number, page in enumerate(self.pages):
            step = QToolButton()
            step.setText(f"{number + 1} {page.title}")
            step.setCheckable(True)
            step.setStyleSheet(_LOOKS)
            step.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            self.steps.addButton(step, number)
            row.addWidget(step, *divmod(number, _IN_A_ROW))
            scroll = QScrollArea()  # so a narrow or low window has room for every page
            scroll.setWidget(page)
            scroll.setWidgetResizable(True)
            scroll.setFrameShape(QFrame.Shape.NoFrame)
            self.stack.addWidget(scroll)
        foot = QHBoxLayout()
        foot.addWidget(self.back_button)
        foot.addWidget(self.next_button, 1)
        self.back_button.setFixedWidth(26)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 0, 2)
        column.addLayout(row)
        column.addWidget(self.stack, 1)
        column.addLayout(foot)
