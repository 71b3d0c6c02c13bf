"""The page *Measure*: the table of the tracks with the plot beside it."""

from __future__ import annotations

from typing import Any

from ..forms.measure import MeasureForm
from .page import FormPage


class MeasurePage(FormPage):
    """What the tracks measure; layers of several conditions are named under settings."""

    title = "Measure"
    does = "Measure states how the tracks move, each and all together."

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, MeasureForm(viewer))
        self.form.layers.chosen.connect(self._forget)

    def enter(self, before: Any) -> None:
        """Take the tracks that were checked."""
        checked = before[3].layers.layer()
        if checked is not None:
            if checked is self.form.layers.layer() and before[3].form is not None:
                self._forget()
            self.form.layers.choose(checked)

    def done(self) -> bool:
        """Whether there is a table."""
        return self.form.measured is not None

    def _forget(self) -> None:
        self.form.measured = None
        self.changed.emit()
