"""The page *Export*: tracks and spots in any format, table, plot, report, and the session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from napari.layers import Image, Labels, Points
from qtpy.QtWidgets import QCheckBox, QFileDialog, QGridLayout, QHBoxLayout, QLineEdit, QPushButton

from outbid.formats import WRITTEN
from outbid.measuring import Measures, measure
from outbid.measuring.scales import without_drift
from outbid.work.jobs import stem_of

from ..forms.fields import LayerBox, choice_box
from ..forms.form import Form
from ..forms.napari_layers import record_of, transform_of
from ..forms.pair import can_be_held
from ..forms.places import as_detected, placed_tracks, points_in
from ..forms.source import SourceFields
from ..forms.work import Report, Task
from ..layers import FILTERED
from ..motion import PLOTS
from .files import KINDS, Kept, Record, Wanted, write_all
from .page import FormPage
from .session import SavedLayer

_LOOKS = ("visible", "opacity", "blending", "color_by", "tail_length", "contrast_limits", "projection_mode")
_PREVIEW = "Preview of"


class ExportForm(Form):
    """Form that writes what was found into a folder."""

    command = "export"
    run_text = "Export"
    counts = "files"

    def __init__(self, napari_viewer: Any, measured: Callable[[], tuple[Measures, Record] | None]) -> None:
        super().__init__(napari_viewer)
        self.measured = measured
        self.session: Callable[[], dict[str, Any]] = dict  # settings of the forms, by command
        self.layers = LayerBox(self.viewer, can_be_held)
        self.spots = LayerBox(self.viewer, lambda layer: isinstance(layer, Points), first="none")
        self.movies = SourceFields(self.viewer, Image, Labels)
        self.folder, self.stem, self.folder_button = QLineEdit(), QLineEdit(), QPushButton("…")
        self.suffix, self.plot = choice_box(WRITTEN), choice_box(PLOTS)
        self.boxes = {kind: QCheckBox(kind) for kind in KINDS}
        self._fill()
        self.folder_button.clicked.connect(lambda _=False: self._ask())
        self.layers.chosen.connect(self.propose)

    def missing(self) -> str:
        """What to do without tracks or spots."""
        none = self.layers.layer() is None and self.spots.layer() is None
        return "There is nothing to export. Detect spots, or track particles." if none else ""

    def propose(self) -> None:
        """Propose the folder and the name of the movie."""
        paths = [Path(layer.source.path) for layer in self.viewer.layers if layer.source.path]
        if not self.folder.text():
            self.folder.setText(str(paths[0].absolute().parent if paths else Path.cwd()))
        if not self.stem.text():
            self.stem.setText(stem_of(str(paths[0])) if paths else "outbid")
        self.check()

    def task(self) -> Task:
        """Write the files that are ticked."""
        wanted = self._wanted()

        def work(report: Report) -> list[Path]:
            return write_all(wanted, report)

        return work

    def show_result(self, result: list[Path]) -> None:
        """Say where the files are."""
        if not result:
            self.show_message("Nothing was written: tick what to export.")
            return
        names = ", ".join(path.name for path in result)
        self.shown = result
        self.show_message(f"{len(result)} files are in {result[0].absolute().parent}: {names}.")

    def _wanted(self) -> Wanted:
        layers = [layer for layer in self.viewer.layers if not layer.name.startswith(_PREVIEW)]
        kept = {id(layer): one for layer in layers if (one := _kept(self.viewer, layer)) is not None}
        numbers = {key: number for number, key in enumerate(kept)}
        movie = self.movies.layers.layer()
        kinds = frozenset(kind for kind, box in self.boxes.items() if box.isChecked())
        return Wanted(
            Path(self.folder.text()), self.stem.text() or "outbid", self.suffix.currentText(), kinds,
            [*kept.values()], numbers.get(id(self.spots.layer())), numbers.get(id(self.layers.layer())),
            None if movie is None else self.movies.taken().movie, self._measures(),
            self.plot.currentText(), self.session(), {"point": list(map(float, self.viewer.dims.point))},
        )  # fmt: skip

    def _measures(self) -> Callable[[], tuple[Measures, Record]]:
        """What was measured, or what gives it."""
        known, layer = self.measured(), self.layers.layer()
        if known is not None or layer is None:
            return lambda: known  # type: ignore[return-value]
        tracks, record = placed_tracks(layer), record_of(layer) or {}
        return lambda: (measure(without_drift(tracks, record)[0]), {"command": "measure", "settings": {}})

    def _ask(self) -> None:
        path = QFileDialog.getExistingDirectory(self, "Folder of the files", self.folder.text())
        if path:
            self.folder.setText(path)

    def _fill(self) -> None:
        row, ticks = QHBoxLayout(), QGridLayout()
        row.addWidget(self.folder)
        row.addWidget(self.folder_button)
        self.folder_button.setFixedWidth(30)
        for number, (kind, box) in enumerate(self.boxes.items()):
            box.setChecked(kind != "report")
            ticks.addWidget(box, *divmod(number, 2))
        self.results.addLayout(ticks)
        self.fields.addRow("folder", row)
        self.fields.addRow("name", self.stem)
        self.fields.addRow("tracks", self.layers)
        self.fields.addRow("spots", self.spots)
        self.fields.addRow("movie", self.movies.layers)
        self.fields.addRow("format", self.suffix)
        self.fields.addRow("plot", self.plot)


class ExportPage(FormPage):
    """Files of all that was found."""

    title = "Export"

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, ExportForm(viewer, self._measured))
        self._measure: Any = None

    def enter(self, before: Any) -> None:
        """Take the layers of the pages before."""
        self._measure = before[4].form
        for box, layer in (
            (self.form.layers, before[3].layers.layer()),
            (self.form.spots, before[1].form.shown),
        ):
            if layer is not None and layer in self.viewer.layers:
                box.choose(layer)
        if self.form.spots.layer() is None and self.form.spots.count() > 1:
            self.form.spots.setCurrentIndex(1)
        self.form.propose()
        where = f"Files go to {self.form.folder.text()}, with names that begin with {self.form.stem.text()}_."
        self.form.show_message(where)

    def done(self) -> bool:
        """Never: what is ticked can always be written again."""
        return False

    def _measured(self) -> tuple[Measures, Record] | None:
        form = self._measure
        return None if form is None or form.measured is None else (form.measured.found, form.table_record())


def _kept(viewer: Any, layer: Any) -> Kept | None:
    """A layer as it is written; None if it cannot be."""
    looks = {name: _plain(getattr(layer, name)) for name in _LOOKS if hasattr(layer, name)}
    looks |= (
        {name: _plain(value) for name, value in vars(transform_of(layer)).items()} if layer.ndim > 2 else {}
    )
    looks |= {FILTERED: layer.metadata[FILTERED]} if layer.metadata.get(FILTERED) else {}
    record = dict(record_of(layer) or {})
    if isinstance(layer, Image | Labels):
        path = str(layer.source.path or "")
        return Kept(SavedLayer(layer.name, "image", path, looks, record)) if path else None
    if isinstance(layer, Points) and layer.ndim in (3, 4) and len(layer.data):
        return Kept(SavedLayer(layer.name, "points", "", looks, record), points_in(layer)[1])
    if can_be_held(layer):
        return Kept(SavedLayer(layer.name, "tracks", "", looks, record), as_detected(viewer, layer))
    return None


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, np.ndarray | tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    return str(value)
