"""The form *Measure motion*: tables of what was measured, with the plot beside them, and both as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QComboBox, QFileDialog, QHBoxLayout, QPushButton, QSplitter

from outbid.errors import InputError, OutbidError, ResourceError
from outbid.measuring import Measures, measure
from outbid.measuring.scales import without_drift
from outbid.measuring.tables import SUFFIXES, write_table
from outbid.particles.tracks import Tracks
from outbid.work.jobs import run_record

from ..motion import PLOTS, write_plot
from .conditions import ConditionList
from .fields import LayerBox, NumberBox
from .form import Form
from .napari_layers import calibration_of, go_to, record_of, transform_of
from .pair import can_be_held, tracks_of
from .plot import PlotView, picture
from .table import NumbersTable
from .work import Report, Task

_LINKS = "links"
_WIDE = 620  # pixels above which the plot stands beside the table
_LOW = 100  # pixels of each at least: both have scroll bars


class Measured(NamedTuple):
    """What was measured, its plot as PNG or none, and a remark on that."""

    found: Measures
    plot: bytes
    remark: str
    links: Mapping[str, NDArray]


class MeasureForm(Form):
    """Form that shows the tables of `outbid measure`, sorted by a click on a column, and its plot."""

    command = "measure"
    run_text = "Measure"
    room = 3

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.layers = LayerBox(self.viewer, can_be_held)
        self.conditions = ConditionList(self.viewer, can_be_held)
        self.interval = NumberBox(None, automatic="times in frames")
        self.sheet, self.table, self.plot = QComboBox(), NumbersTable(), PlotView()
        self.both = QSplitter(Qt.Orientation.Vertical)
        self.table_button, self.plot_button = QPushButton("Save table …"), QPushButton("Save plot …")
        self.measured: Measured | None = None
        self._fill()
        self._connect()
        self._layer_chosen()

    def missing(self) -> str:
        """What to do without tracks."""
        none = "There is no layer of tracks to measure. Add one, or track particles."
        return none if self.layers.layer() is None else ""

    def task(self) -> Task:
        """Measure the tracks in world coordinates, without the drift that tracking learned."""
        layer, named = self.layers.layer(), self.conditions.conditions()
        if layer is None:
            raise InputError(self.missing())
        taken = {
            name: [(tracks_of(one), record_of(one) or {}) for one in layers]
            for name, layers in (named or {"": [layer]}).items()
        }
        interval, columns, links = self.interval.number(), self.plot.columns, links_of(tracks_of(layer))

        def work(report: Report) -> Measured:
            report(0, 0)
            still = {name: [without_drift(*one)[0] for one in movies] for name, movies in taken.items()}
            found = measure(still if named else still[""][0], interval=interval)
            report(0, 0)
            try:
                return Measured(found, picture(found, columns), "", links)
            except ResourceError as error:
                return Measured(found, b"", str(error), links)

        return work

    def show_result(self, result: Measured) -> None:
        """Show the tables, the motion of all tracks together, and what the errors include."""
        self.measured = result
        self.sheet.clear()
        self.sheet.addItems([*result.found.sheets, _LINKS])
        self._show_sheet()
        self.plot.hold(result.plot)
        self.plot.setVisible(bool(result.plot))
        self.both.show()
        self._enable()
        said = " ".join(f"{result.found}.".splitlines())
        self.show_message("\n".join(filter(None, [said, *result.found.remarks, result.remark])))

    def save(self, path: Path) -> None:
        """Write the table, or the plot if the name says so, and say where."""
        if self.measured is None:
            return
        try:
            if path.suffix.lower() in PLOTS:
                write_plot(path, self.measured.found, overwrite=True)
                self.show_message(f"The plot is in {path.absolute()}.")
            else:
                write_table(path, self.measured.found.sheets, record=self.table_record(), overwrite=True)
                self.show_message(f"The table is in {path.absolute()}.")
        except (OutbidError, OSError) as error:
            self.show_problem(error)

    def table_record(self) -> dict[str, object]:
        """The run record of the tables."""
        layer = self.layers.layer()
        named = {name: [one.name for one in layers] for name, layers in self.conditions.conditions().items()}
        record = run_record("measure", {"name": "" if layer is None else layer.name})
        return {**record, "settings": {"interval": self.interval.number()}, "conditions": named, "seed": 0}

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the plot beside the table where there is room, else below it; called by Qt."""
        super().resizeEvent(event)
        wide = self.width() > _WIDE
        self.both.setOrientation(Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical)

    def _show_sheet(self, _: object = None) -> None:
        if self.measured is None:
            return
        name = self.sheet.currentText()
        if name == _LINKS:
            self.table.hold(self.measured.links)
        elif name:
            sheet = self.measured.found.sheets[name]
            self.table.hold({one: sheet[one].to_numpy(zero_copy_only=False) for one in sheet.column_names})

    def _go(self, row: int) -> None:
        """Show where the track of a row of the table starts, or the link of the row ends."""
        layer, columns = self.layers.layer(), self.table.model().columns
        if layer is None or "track_id" not in columns or self.conditions.conditions():
            return
        rows = np.flatnonzero(layer.data[:, 0] == columns["track_id"][row])
        if self.sheet.currentText() == _LINKS:
            rows = rows[layer.data[rows, 1] == columns["to_frame"][row]]
        if len(rows):
            go_to(self.viewer, layer.data[rows[0], 1:], transform_of(layer), near=np.inf)

    def _layer_chosen(self) -> None:
        """Take the interval that the layer of the tracks states."""
        layer = self.layers.layer()
        if layer is not None:
            self.interval.set_number(calibration_of(layer).interval)
        self.check()

    def _enable(self) -> None:
        for button in (self.table_button, self.plot_button):
            button.setEnabled(self.measured is not None)

    def _ask(self, what: str, kinds: tuple[str, ...]) -> None:
        kinds_shown = " ".join(f"*{kind}" for kind in kinds)
        path, _ = QFileDialog.getSaveFileName(self, f"Save {what}", f"{what}{kinds[0]}", kinds_shown)
        if path:
            self.save(Path(path))

    def _fill(self) -> None:
        self.interval.setSuffix(" s")
        self.interval.setToolTip("Seconds between two frames; those of the movie if it states them.")
        for widget in (self.table, self.plot):
            self.both.addWidget(widget)
            widget.setMinimumHeight(_LOW)
        self.both.setChildrenCollapsible(False)
        self.both.hide()
        buttons = QHBoxLayout()
        for widget in (self.table_button, self.plot_button):
            buttons.addWidget(widget)
        self.fields.addRow("tracks", self.layers)
        self.fields.addRow(self.conditions)
        self.fields.addRow("interval", self.interval)
        self.results.addWidget(self.sheet)
        self.results.addWidget(self.both, 1)
        self.results.addLayout(buttons)
        self._enable()

    def _connect(self) -> None:
        self.table.chosen.connect(self._go)
        self.layers.chosen.connect(self._layer_chosen)
        self.sheet.currentIndexChanged.connect(self._show_sheet)
        self.table_button.clicked.connect(lambda _=False: self._ask("table", SUFFIXES))
        self.plot_button.clicked.connect(lambda _=False: self._ask("plot", PLOTS))


def links_of(tracks: Tracks) -> dict[str, NDArray]:
    """A column for each thing that is known of links.

    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 2], [[0, 0, 0], [0, 0, 3]])
    >>> {name: values.tolist() for name, values in links_of(Tracks(seen, np.array([[0, 1]]))).items()}
    {'track_id': [0], 'from_frame': [0], 'to_frame': [2], 'step': [3.0]}
    """
    seen, (source, target) = tracks.detections, tracks.links.T
    placed = seen.placed().position
    return {
        "track_id": tracks.track_id[target], "from_frame": seen.frame[source],
        "to_frame": seen.frame[target],
        "step": np.linalg.norm(placed[target] - placed[source], axis=1),
        **{name.removeprefix("link_"): values for name, values in tracks.measures.items()},
    }  # fmt: skip
