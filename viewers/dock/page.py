"""What the pages of the dock share: a sentence, something that can be done, and what follows."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QSizePolicy, QToolButton, QVBoxLayout, QWidget

from ..forms.form import Form
from ..forms.laid_out import make_narrow


class Page(QWidget):
    """A step; subclasses say what was found, and what its one button does.

    Parameters
    ----------
    viewer : napari.Viewer
    """

    title = ""
    changed = Signal()
    """What the page says, or what its button does, may have changed."""

    def __init__(self, viewer: Any) -> None:
        super().__init__()
        self.viewer = viewer
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)

    def able(self) -> bool:
        """Whether there is something to do on the page."""
        return True

    def act_text(self) -> str:
        """What the button does before it leads on; empty if that is done."""
        return ""

    def act(self) -> None:
        """Do it."""

    def busy(self) -> bool:
        """Whether it is on its way."""
        return False

    def enter(self, before: Any) -> None:
        """Take what the pages before have made; `before` are the layers of spots and tracks, by page."""

    def announce(self) -> None:
        """Say what the page does, where it says nothing else."""

    def leave(self) -> None:
        """Hand on what was made here."""


class FormPage(Page):
    """A page around a form, that shows what the form says first; its fields are folded away.

    Parameters
    ----------
    viewer : napari.Viewer
    form : Form
    """

    does = ""
    """What a run of the form does."""

    def __init__(self, viewer: Any, form: Form) -> None:
        super().__init__(viewer)
        self.form = form
        fold(form)
        self.column.addWidget(form)
        form.finished.connect(self.changed)
        form.result.chosen.connect(self.changed)

    def announce(self) -> None:
        """Say what a run does, until the form says something."""
        if self.form.is_idle and not self.form.message.text():
            self.form.show_message(self.does)

    def act_text(self) -> str:
        """The run of the form, until it has a result."""
        return "" if self.done() else self.form.run_text

    def act(self) -> None:
        """Run the form."""
        self.form.run()
        self.changed.emit()

    def busy(self) -> bool:
        """Whether the form runs."""
        return not self.form.is_idle

    def done(self) -> bool:
        """Whether the form has a result that is shown."""
        return self.form.shown is not None and self.form.shown in self.viewer.layers

    def able(self) -> bool:
        """Whether the form can run."""
        return not self.form.missing()


def fold(form: Form) -> None:
    """Have a form show its message first, and its fields below a button."""
    for part in (form.scroll, form.foot):
        form.layout().removeWidget(part)
    button = QToolButton()
    button.setText("▸ settings")
    button.setCheckable(True)
    button.setAutoRaise(True)
    button.toggled.connect(form.scroll.setVisible)
    button.toggled.connect(lambda on: button.setText("▾ settings" if on else "▸ settings"))
    for part, stretch in ((form.foot, form.room), (button, 0), (form.scroll, 1)):
        form.layout().addWidget(part, stretch)
    if not form.room:
        form.foot.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        form.layout().addStretch()
    make_narrow(form)
    form.scroll.hide()
    inside = form.scroll.widget().layout()
    inside.insertWidget(1, form.run_button)
    inside.insertWidget(2, form.said.rest)
    form.fold_button = button
