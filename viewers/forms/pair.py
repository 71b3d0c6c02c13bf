"""The forms *Score against truth* and *Compare*: a table, links by what they are, a way through errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from napari.layers import Tracks as TracksLayer
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QAbstractItemView, QComboBox, QHeaderView, QTableWidget, QTableWidgetItem
from superqt.utils import signals_blocked

from outbid.errors import InputError
from outbid.particles.tracks import Tracks
from outbid.scoring import score
from outbid.scoring.gate import gate_for

from ..from_layers import moved, tracks_from
from ..headline import meaning
from ..judged import JudgedLinks, judge_links
from ..layers import WHOLE, Layer, error_layers
from ..scene import frames_that_fit, in_frames
from .fields import LayerBox, NumberBox, WayBox
from .form import Form
from .napari_layers import (
    LayerTransform,
    calibration_of,
    features_of,
    go_to,
    preferences,
    record_of,
    show,
    transform_of,
)
from .work import Report, Task

_MOST_OF_MANY = 200_000
"""Vertices that are shown where all would be too many: napari takes a second or two to change them."""


@dataclass(frozen=True, eq=False)
class PairResult:
    """Result of comparing two layers.

    Parameters
    ----------
    values : mapping of str to str
        The table.
    record : mapping
        How it was made, for the layers to carry along.
    remark : str
        A remark that is not in the table, or an empty text.
    layers : list of Layer
        In voxels of the first result; the last one has a point for each error, with a feature kind.
    transform : LayerTransform
        Where they lie.
    gate : float
        By which the two were compared.
    """

    values: Mapping[str, str]
    record: Mapping[str, object]
    remark: str
    layers: list[Layer]
    transform: LayerTransform
    gate: float
    taken: tuple[Any, Any] = field(repr=False)

    @property
    def errors(self) -> Layer:
        """Points at all errors, ordered by time."""
        return self.layers[-1]


class PairForm(Form):
    """A form with two layers of tracks, a gate, a result table and buttons to step through errors.

    Subclasses (`ScoreForm`, `CompareForm`) compute the rows of the result table in their method `hold`.
    """

    first_text, second_text = "tracks", "truth"
    error_text = "error"
    names: tuple[str, str] | None = None
    """Of the results in layers, where neither is the truth."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.first = LayerBox(self.viewer, can_be_held)
        self.second = LayerBox(self.viewer, can_be_held)
        self.gate = NumberBox(None, automatic="half of the spacing")
        self.kind = QComboBox()
        self.way = WayBox(self._first)
        self.table = QTableWidget(0, 2)
        self._result: PairResult | None = None
        self._added: dict[int, Any] = {}
        self._frames: tuple[int, int] | None = None
        self._rows = np.empty(0, np.int64)  # of the errors that are gone through
        self._fill()
        self._connect()
        self._first_chosen()
        self._guess()

    # ------------------------------------------------------------ what a form of this kind says

    def hold(
        self, judged: JudgedLinks, gate: float, report: Report
    ) -> tuple[Mapping[str, str], Mapping[str, object], str]:
        """Compute the table, the record and a remark, from tracks in world units; runs in its own thread."""
        raise NotImplementedError

    # ------------------------------------------------------------ what a run is

    def missing(self) -> str:
        """What to do without two layers."""
        first, second = self.first.layer(), self.second.layer()
        if first is None or second is None or first is second:
            return f"Two layers of tracks are needed: {self.first_text} and {self.second_text}. Add them."
        return ""

    def task(self) -> Task:
        """Judge one layer by the other, in world coordinates."""
        first, second = self.first.layer(), self.second.layer()
        if first is None or second is None or first is second:
            raise InputError(self.missing())
        transform, other = transform_of(first), transform_of(second)
        if transform.unit != other.unit:
            raise InputError(
                f"{first.name} is in {transform.unit}, {second.name} in {other.unit}. Give both one unit "
                "(layer.units)."
            )
        given = self.gate.number()
        taken, known = tracks_of(first), tracks_of(second)

        def work(report: Report) -> PairResult:
            report(0, 0)
            world = moved(taken, transform.spacing, transform.shift), moved(known, other.spacing, other.shift)
            gate = gate_for(given, world[1])
            judged = judge_links(*world, gate=gate.distance)
            report(0, 0)
            values, record, remark = self.hold(judged, gate.distance, report)
            report(0, 0)
            back = tuple(1 / size for size in transform.spacing)
            shift = tuple(-by / size for by, size in zip(transform.shift, transform.spacing, strict=True))
            in_voxels = replace(judged, tracks=taken, truth=moved(world[1], back, shift))
            layers = error_layers(in_voxels, self.names)
            remark = remark if given is not None else f"{gate} {remark}".strip()
            return PairResult(values, record, remark, layers, transform, gate.distance, (first, second))

        return work

    def show_result(self, result: PairResult) -> None:
        """Show the table and the layers, and hide the two compared layers."""
        self._result = result
        self._show_table(result.values)
        self._show_layers(self._now())
        for layer in result.taken:
            layer.visible = False
        kinds = [str(kind) for kind in np.unique(result.errors.features["kind"])]
        with signals_blocked(self.kind):
            self.kind.clear()
            self.kind.addItems(["all", *kinds])
        self._list_errors()
        hidden = " and ".join(layer.name for layer in result.taken)
        remark = f" {result.remark}" if result.remark else ""
        note = self._frames_note()
        self.show_message(f"{note}{hidden} are hidden: the coloured links lie on them.{remark}")

    # ------------------------------------------------------------ from error to error

    def _list_errors(self, _: object = None) -> None:
        """Lead through the errors of the kind that is chosen."""
        if self._result is None:
            return
        kinds, chosen = self._result.errors.features["kind"], self.kind.currentText()
        self._rows = np.flatnonzero((kinds == chosen) | (chosen == "all"))
        count = len(self._rows)
        self.way.lead(count, f"{count:,} {self.error_text}{'s' * (count != 1)}")

    def _first(self) -> int:
        """Of these errors, the first from the frame that is shown on."""
        assert self._result is not None
        return int(np.searchsorted(self._result.errors.data[self._rows, 0], self._now() - 0.5))

    def _go(self, at: int) -> None:
        """Show an error."""
        assert self._result is not None
        row = self._rows[at]
        point, kind = self._result.errors.data[row], self._result.errors.features["kind"][row]
        if self._frames is not None and not self._frames[0] <= point[0] <= self._frames[1]:
            self._show_layers(point[0])
            self.show_message(self._frames_note())
        go_to(self.viewer, point, self._result.transform, near=20 * self._result.gate)
        count = f"{at + 1:,} of {len(self._rows):,}"
        self.way.where.setText(f"{self.error_text} {count}: {kind}, frame {point[0]:.0f}")

    # ------------------------------------------------------------ looks

    def _show_table(self, values: Mapping[str, str]) -> None:
        self.table.setRowCount(len(values))
        for row, (name, value) in enumerate(values.items()):
            title = QTableWidgetItem(name)
            title.setToolTip(meaning(name))
            self.table.setItem(row, 0, title)
            number = QTableWidgetItem(value)
            number.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self.table.setItem(row, 1, number)
        height = self.table.verticalHeader().defaultSectionSize()
        self.table.setMinimumHeight(min(len(values), 12) * height + 4)
        self.table.show()

    def _show_layers(self, around: float) -> None:
        """Add the layers instead of those of the run before; cut to the frames around one if need be."""
        if self._result is None:
            return
        layers = self._result.layers
        most = preferences().window.vertices
        self._frames = frames_that_fit(layers, around, most=most)
        if self._frames is not None:
            self._frames = frames_that_fit(layers, around, most=min(most, _MOST_OF_MANY))
        if self._frames is not None:
            layers = [*(in_frames(layer, *self._frames) for layer in layers[:-1]), layers[-1]]
        for row, layer in enumerate(layers):
            before = self._added.pop(row, None)
            # Points stay, even if there are none: with Mesa, vispy may crash drawing lines after it let go of
            # points. Tracks cannot be empty.
            if len(layer.data) or layer.kind == "points":
                self._added[row] = show(
                    self.viewer, layer, self._result.transform, record=self._result.record, instead_of=before
                )
            elif before is not None and before in self.viewer.layers:
                self.viewer.layers.remove(before)

    def _frames_note(self) -> str:
        if self._frames is None:
            return ""
        first, last = self._frames
        return f"Links of frames {first} to {last} are shown: more would make napari slow. "

    def _now(self) -> float:
        """Number of the frame that is shown."""
        return 0.0 if self._result is None else self._result.transform.frame_shown(self.viewer)

    def _guess(self, _: object = None) -> None:
        """Choose the newest result, and the layer that was opened last besides it."""

    def _keep_apart(self, _: object = None) -> None:
        """Offer two different layers where there are two."""
        if self.first.layer() is self.second.layer() and self.second.count() > 1:
            self.second.setCurrentIndex(1 if self.first.currentIndex() == 0 else 0)

    def _fill(self) -> None:
        self.fields.addRow(self.first_text, self.first)
        self.fields.addRow(self.second_text, self.second)
        self.fields.addRow("gate", self.gate)
        self.gate.setToolTip(
            "Largest distance at which detections are paired. By default half of the median distance "
            f"to the nearest neighbour, among detections of the {self.second_text}."
        )
        self.fields.addRow("show", self.kind)
        self.fields.addRow(self.way)
        self.table.horizontalHeader().hide()
        self.table.verticalHeader().hide()
        self.table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.table.horizontalHeader().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.hide()
        self.fields.addRow(self.table)

    def _connect(self) -> None:
        self.way.gone.connect(self._go)
        self.kind.currentIndexChanged.connect(self._list_errors)
        self.first.chosen.connect(self._first_chosen)
        for box in (self.first, self.second):
            box.chosen.connect(self.check)
        self.viewer.layers.events.inserted.connect(self._keep_apart, position="last")
        self.viewer.layers.events.inserted.connect(self._guess, position="last")

    def _first_chosen(self) -> None:
        layer = self.first.layer()
        if layer is not None:
            self.gate.setSuffix(f" {transform_of(layer).symbol}")
        self._keep_apart()


class ScoreForm(PairForm):
    """Form that scores tracks against the true tracks."""

    run_text = "Score"

    def hold(
        self, judged: JudgedLinks, gate: float, report: Report
    ) -> tuple[Mapping[str, str], Mapping[str, object], str]:
        """Compute all scores of the tracks against the true tracks."""
        scores = score(judged.tracks, judged.truth, gate=gate, progress=report)
        table = dict(line.split() for line in str(scores).splitlines())
        record = {"command": "score", "values": scores.values, "provenance": scores.provenance}
        return table, record, scores.remark

    def _guess(self, _: object = None) -> None:
        """Take the newest result of tracking, and as truth the tracks that were opened last besides it."""
        layers = [layer for layer in self.viewer.layers if self.first.takes(layer)]
        results = [layer for layer in layers if (record_of(layer) or {}).get("command") == "track"]
        others = [layer for layer in layers if layer not in results]
        if not results or not others:
            return
        self.first.choose(results[-1])
        self.second.choose(others[-1])
        if len(others) > 1:
            self.show_message(
                f"Is {others[-1].name}, which was opened last, the truth? There are {len(others)} layers "
                "that may be."
            )


class CompareForm(PairForm):
    """Form that compares two tracking results link by link."""

    run_text = "Compare"
    first_text, second_text = "one", "other"
    error_text = "difference"
    names = ("one", "other")

    def hold(
        self,
        judged: JudgedLinks,
        gate: float,
        report: Report,  # noqa: ARG002 - it is done at once
    ) -> tuple[Mapping[str, str], Mapping[str, object], str]:
        """Count the links that the two tracking results share."""
        both, of_one, of_other = int(judged.right.sum()), len(judged.right), len(judged.found_again)
        either = of_one + of_other - both
        values = {
            "links in both": both, "links only in one": of_one - both, "links only in other": of_other - both,
            "shared (Jaccard index)": both / either if either else float("nan"),
            "tracks of one": judged.tracks.track_count, "tracks of other": judged.truth.track_count,
            "detections of one": len(judged.tracks.detections),
            "detections of other": len(judged.truth.detections),
        }  # fmt: skip
        table = {
            name: f"{value:,}" if isinstance(value, int) else f"{value:.4f}" for name, value in values.items()
        }
        record = {"command": "compare", "version": version("outbid"), "gate": gate, "values": values}
        return table, record, ""


def tracks_of(layer: Any) -> Tracks:
    """The tracks of a layer, in its voxels: all of them, also where it draws a part."""
    if WHOLE in layer.metadata:
        whole: Tracks = layer.metadata[WHOLE].tracks
        return whole
    return tracks_from(
        layer.data, calibration=calibration_of(layer), features=features_of(layer), graph=layer.graph
    )


def can_be_held(layer: Any) -> bool:
    """Whether a layer holds tracks, other than those that a form for scores or comparison has added."""
    if not isinstance(layer, TracksLayer):
        return False
    record = record_of(layer) or {}
    return record.get("command") not in ("score", "compare")
