"""How a form is laid out: its fields are scrolled to, what it does and says is always in view."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import QDockWidget, QFormLayout, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

_OURS = "(outbid)"
"""How napari ends the titles of our docks."""
_LEAST = 240
"""Pixels across that are left to the image."""


def lay_out(form: Any) -> None:
    """Lay out the parts of a form that it has made, in `scroll` and, below it, `foot`."""
    form.fields.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    form.offer_button.hide()
    buttons = QHBoxLayout()
    buttons.addWidget(form.run_button)
    buttons.addWidget(form.cancel_button)
    inside = QWidget()
    column = QVBoxLayout(inside)
    column.addLayout(form.fields)
    column.addStretch()
    form.scroll = QScrollArea()  # with the fields: a form must not make the window taller than the screen
    form.scroll.setWidget(inside)
    form.scroll.setWidgetResizable(True)
    form.scroll.setFrameShape(QFrame.Shape.NoFrame)
    form.scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    form.foot = QWidget()  # in view however long the fields are
    foot = QVBoxLayout(form.foot)
    foot.setContentsMargins(9, 0, 9, 4)
    foot.addLayout(buttons)
    for widget in (form.bar, form.said, form.offer_button):
        foot.addWidget(widget)
    form.results = QVBoxLayout()  # of results that are no layers
    foot.addLayout(form.results)
    outside = QVBoxLayout(form)
    outside.setContentsMargins(0, 0, 0, 0)
    outside.addWidget(form.scroll, 1)
    outside.addWidget(form.foot, form.room)


def make_narrow(form: Any) -> None:
    """Have a form fit into a narrow dock: labels above their fields, and a scroll bar below if need be."""
    form.narrow = True
    form.setMinimumWidth(0)
    form.fields.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapAllRows)
    form.scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)


def stand_beside(widget: QWidget) -> None:
    """Once a widget has its dock, put that beside another of ours, or as a tab with it."""
    soon = QTimer(widget, singleShot=True, interval=0)
    soon.timeout.connect(lambda: _stand_beside(widget))
    soon.start()


def _stand_beside(widget: QWidget) -> None:
    dock, main = widget.parent(), widget.window()
    if not isinstance(dock, QDockWidget):  # a page of another dock
        return
    area = main.dockWidgetArea(dock)
    others = [
        other for other in main.findChildren(QDockWidget)
        if other is not dock and other.windowTitle().endswith(_OURS) and other.isVisible()
        and main.dockWidgetArea(other) == area and not main.tabifiedDockWidgets(other)
    ]  # fmt: skip
    if not others:
        return
    least = sum(one.minimumSizeHint().width() for one in (dock, others[-1]))
    if main.centralWidget().width() + dock.width() - least >= _LEAST:
        main.splitDockWidget(others[-1], dock, Qt.Orientation.Horizontal)
    else:
        main.tabifyDockWidget(others[-1], dock)
        dock.raise_()
