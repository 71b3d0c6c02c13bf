"""How a form is laid out: its fields are scrolled to, what it does and says is always in view."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFormLayout, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget


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
