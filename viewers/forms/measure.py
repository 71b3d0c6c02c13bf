"""The form *Measure motion*: a table of numbers of each track of a layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from outbid.errors import InputError
from outbid.measuring import Measures, measure
from outbid.measuring.scales import without_drift

from .fields import LayerBox, NumberBox
from .form import Form
from .napari_layers import calibration_of, go_to, record_of, transform_of
from .pair import can_be_held, tracks_of
from .table import NumbersTable
from .work import Report, Task


class MeasureForm(Form):
    """Form that shows the table of `outbid measure` for a layer of tracks, sorted by a click on a column."""

    command = "measure"
    run_text = "Measure"

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.layers = LayerBox(self.viewer, can_be_held)
        self.interval = NumberBox(None, automatic="times in frames")
        self.table = NumbersTable()
        self.interval.setSuffix(" s")
        self.interval.setToolTip("Seconds between two frames; those of the movie if it states them.")
        self.table.hide()
        self.fields.addRow("tracks", self.layers)
        self.fields.addRow("interval", self.interval)
        self.fields.addRow(self.table)
        self.table.chosen.connect(self._go)
        self.layers.chosen.connect(self._layer_chosen)
        self._layer_chosen()

    def task(self) -> Task:
        """Measure the tracks of the layer in world coordinates, without the drift that tracking learned."""
        layer = self.layers.layer()
        if layer is None:
            raise InputError("There is no layer of tracks to measure. Add one, or track particles.")
        taken, record = tracks_of(layer), record_of(layer) or {}
        interval = self.interval.number()

        def work(report: Report) -> Measures:
            report(0, 0)
            still, _ = without_drift(taken, record)
            return measure(still, interval=interval)

        return work

    def show_result(self, result: Measures) -> None:
        """Show the table, the motion of all tracks together, and what the errors include."""
        table = result.tracks
        self.table.hold({name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names})
        self.table.show()
        self.show_message(" ".join([f"{result}.", *result.remarks]))

    def _go(self, row: int) -> None:
        """Show where the track of a row of the table starts."""
        layer = self.layers.layer()
        if layer is None:
            return
        rows = np.flatnonzero(layer.data[:, 0] == self.table.model().columns["track_id"][row])
        if len(rows):
            go_to(self.viewer, layer.data[rows[0], 1:], transform_of(layer), near=np.inf)

    def _layer_chosen(self) -> None:
        """Take the interval that the layer of the tracks states."""
        layer = self.layers.layer()
        if layer is not None:
            self.interval.set_number(calibration_of(layer).interval)
