"""The page *Check*: how many links are doubtful, a way through them, and proofreading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from qtpy.QtWidgets import QFormLayout, QPushButton

from outbid.particles.reliability import DOUBTFUL, sentence_on
from outbid.particles.tracks import Tracks

from ..forms.fields import LayerBox
from ..forms.laid_out import make_narrow
from ..forms.napari_layers import transform_of
from ..forms.pair import can_be_held, tracks_of
from ..forms.proofread import ProofreadForm
from ..forms.said import sentence
from ..forms.uncertain_links import UncertainLinks
from .page import Page


class CheckPage(Page):
    """Tracks that are looked at and corrected; the answers change the layer itself."""

    title = "Check"

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer)
        self.said = sentence()
        self.layers = LayerBox(viewer, can_be_held)
        self.way = UncertainLinks(viewer)
        self.correct_button = QPushButton("Correct, the most doubtful first")
        self.form: ProofreadForm | None = None
        self.correct_button.clicked.connect(lambda _=False: self.correct())
        self.layers.chosen.connect(self.hold)
        self._fill()

    def able(self) -> bool:
        """Whether there are tracks."""
        return bool(self.layers.count())

    def busy(self) -> bool:
        """Whether links are solved again."""
        return self.form is not None and not self.form.is_idle

    def enter(self, before: Any) -> None:
        """Take the tracks that were made."""
        tracked = before[2].form.shown
        if tracked in self.viewer.layers:
            self.layers.choose(tracked)
        self.hold()

    def leave(self) -> None:
        """Take the corrected tracks, and close proofreading."""
        form = self.form
        if form is None:
            return
        if form.layers.layer() is not None:
            self.layers.choose(form.layers.layer())
        form.hide()
        self.correct_button.show()

    def correct(self) -> None:
        """Open proofreading below, with the least certain link first."""
        if self.form is None:
            self.form = ProofreadForm(self.viewer)
            self.form.finished.connect(self.changed)
            self.form.fields.setRowVisible(self.form.layers, False)
            make_narrow(self.form)
            self.column.insertWidget(self.column.count() - 1, self.form, 1)
        layer = self.layers.layer()
        self.form.layers.choose(layer)
        self.form.file.setText(str(_folder_of(self.viewer) / Path(self.form.file.text()).name))
        self.way.hide()
        self.correct_button.hide()
        self.form.show()
        self.form.run()
        self.changed.emit()

    def hold(self) -> None:
        """Say how far the links of the layer are to be trusted, and lead through the doubtful ones."""
        layer = self.layers.layer()
        if layer is None:
            self.said.setText("There are no tracks yet.")
            self.correct_button.setEnabled(False)
        else:
            tracks = tracks_of(layer)
            self.said.setText(f"{sentence_on(tracks)} {_doubts(tracks)}")
            self.way.hold(tracks, transform_of(layer))
            self.correct_button.setEnabled(tracks.detections.frame_count > 1)
        self.changed.emit()

    def _fill(self) -> None:
        rows = QFormLayout()
        rows.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        rows.addRow("tracks", self.layers)
        self.column.addLayout(rows)
        for widget in (self.said, self.way, self.correct_button):
            self.column.addWidget(widget)
        self.column.addStretch()


def _doubts(tracks: Tracks) -> str:
    """How many links are more likely wrong than right, and how certain the least certain one is."""
    chance = tracks.link_probability
    if not len(tracks.links):
        return "There is no link to check."
    if chance is None or not np.isfinite(chance).any():
        return "Look at the longest steps."
    count, least = int((chance < DOUBTFUL).sum()), float(np.nanmin(chance))
    links = f"{count:,} links are" if count > 1 else "One link is" if count else "No link is"
    return f"{links} more likely wrong than right; the least certain one has a probability of {least:.2g}."


def _folder_of(viewer: Any) -> Path:
    """The folder of the movie, or of another file that was opened; else the current one."""
    paths = [Path(layer.source.path) for layer in viewer.layers if layer.source.path]
    return paths[0].absolute().parent if paths else Path.cwd()
