"""The form *Lineage*, in a real window, driven by clicks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari_scenes import Window

from outbid import Calibration, Detections, Tracks, read_tracks
from outbid.edit.filter import filter as filtered
from outbid.viewers.layers import tracks_layer

_WHY = "Qt is not installed, or does not start: pip install 'outbid[napari]' PyQt6"
QtCore = pytest.importorskip("qtpy.QtCore", reason=_WHY, exc_type=ImportError)
pytest.importorskip("pyqtgraph", reason="pyqtgraph is not installed: pip install 'outbid[lineage]'")
QPoint, Qt = QtCore.QPoint, QtCore.Qt
QTest = pytest.importorskip("qtpy.QtTest", reason=_WHY, exc_type=ImportError).QTest


def dividing() -> Tracks:
    """A cell that divides in frame 2, one of whose daughters divides in frame 4; and one that does not."""
    frame = np.array([0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 5])
    x = np.array([10, 40, 10, 40, 10, 40, 6, 14, 40, 6, 14, 40, 6, 11, 17, 40])
    links = [[0, 2], [1, 3], [2, 4], [3, 5], [4, 6], [4, 7], [5, 8], [6, 9], [7, 10], [8, 11], [9, 12],
             [10, 13], [10, 14], [11, 15]]  # fmt: skip
    seen = Detections.from_table(frame, np.column_stack([0 * x, x, x]), features={"mass": x + 0.5 * frame})
    links = np.array(links)
    chance = np.where(links[:, 1] == 7, 0.6, 0.99)
    return Tracks(seen, links, link_probability=chance)


def shown(window: Window, tracks: Tracks, scale: float = 2.0) -> Any:
    layer = tracks_layer(
        tracks, calibration=Calibration(spacing=(1.0, scale, scale)), name="cells"
    ).in_plane()
    data, more, _ = layer.as_tuple()
    return window.viewer.add_tracks(data, **more)


def click_at(form: Any, row: int, *, shift: bool = False) -> None:
    """Click at a detection in the lineage."""
    plot = form.lineage.plot
    x, y = form.lineage.forest.place_of([row])[0]
    at = plot.mapFromScene(plot.plotItem.vb.mapViewToScene(QtCore.QPointF(x, y)))
    key = Qt.KeyboardModifier.ShiftModifier if shift else Qt.KeyboardModifier.NoModifier
    QTest.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, key, QPoint(at.x(), at.y()))


def row_at(form: Any, frame: int, x: float) -> int:
    """The detection of a frame at this x, in voxels."""
    seen = form.tracks.detections
    return int(np.flatnonzero((seen.frame == frame) & (seen.position[:, 2] == 2 * x))[0])


@pytest.mark.smoke
def test_a_click_selects_in_the_image_and_back(window: Window) -> None:
    layer, tracks = shown(window, dividing()), dividing()
    form = window.form("Lineage")
    assert form.lineage.forest.width == 4
    window.wait(lambda: form.lineage.shown is not None and len(form.lineage.shown.spots) == 16)
    doubtful = [form.tracks.links[k].tolist() for k in form.lineage.shown.doubtful]
    assert doubtful == [[row_at(form, 2, 10), row_at(form, 3, 14)]]
    last, other = row_at(form, 5, 6), row_at(form, 2, 40)
    click_at(form, last)
    window.wait(lambda: form.selected == [last])
    assert window.viewer.dims.point[0] == 5
    marks = window.viewer.layers["Selected"]
    assert (marks.data * marks.scale).tolist() == [[12.0, 12.0]]
    number = form.number[form.tracks.track_id]
    assert form.where.text() == f"Selected: track {number[last]} in frame 5. Its track ends."
    click_at(form, 0, shift=True)
    window.wait(lambda: form.selected == [last, 0])
    assert len(marks.data) == 2
    window.viewer.dims.set_point(0, 2)
    assert form.lineage._now.value() == 2
    window.click_in_image(2 * tracks.detections.position[5])
    window.wait(lambda: form.selected == [other])
    window.shot("lineage_selected")
    assert window.viewer.layers.selection.active is not marks
    branch = row_at(form, 5, 11)
    form.find.setText(str(number[branch]))
    QTest.keyClick(form.find, Qt.Key.Key_Return)
    assert form.selected == [branch]
    form.find.setText("77")
    QTest.keyClick(form.find, Qt.Key.Key_Return)
    assert "no track '77'" in form.message.text()
    form.scope.setCurrentText("lineage of the selection")
    assert form.lineage.forest.width == 3
    window.viewer.window.remove_dock_widget("all")
    assert "Selected" not in window.viewer.layers or not len(window.viewer.layers["Selected"].data)
    assert layer in window.viewer.layers


def test_what_the_image_shows_filters_the_lineage(window: Window) -> None:
    shown(window, dividing())
    form = window.form("Lineage")
    form.scope.setCurrentText("what the image shows")
    window.viewer.scene.camera.center = (0, 80, 80)
    window.viewer.scene.camera.zoom = min(window.viewer.canvas.size) / 10
    window.wait(lambda: form.lineage.forest.width == 1)
    window.viewer.reset_view()
    window.wait(lambda: form.lineage.forest.width == 4)


def test_colours_are_those_of_a_column_or_measure_in_the_layer_and_in_the_lineage(window: Window) -> None:
    layer, tracks = shown(window, dividing()), dividing()
    form = window.form("Lineage")
    assert form.colour.names.currentText() == "link_probability"
    form.colour.names.setCurrentText("mass")
    mass = layer.features["mass"].to_numpy()
    brightness = layer.track_colors[:, 1]
    assert np.array_equal(np.argsort(mass, kind="stable"), np.argsort(brightness, kind="stable"))
    low, high = np.percentile(tracks.detections.features["mass"], [1, 99])
    assert form.colour.low.text() == f"{low:.3g}"
    assert form.colour.high.text() == f"{high:.3g}"
    form.colour.names.setCurrentText("measures of motion …")
    window.wait(lambda: form.colour.names.findText("straightness") >= 0)
    form.colour.names.setCurrentText("generation")
    colours = {tuple(each) for each in layer.track_colors.tolist()}
    assert len(colours) == 3
    window.shot("lineage_generation")


def test_a_filter_acts_at_once_and_is_that_of_the_command(window: Window, tmp_path: Path) -> None:
    layer, tracks = shown(window, dividing()), dividing()
    form = window.form("Lineage")
    box = form.filter
    box.columns.setCurrentText("mass")
    box.of.setCurrentText("mean of track")
    window.click(box.add_button)
    slider = box.filters[0].slider
    low, _high = slider.value()
    slider.setValue((low, 20.0))
    window.wait(lambda: form.lineage.forest.width == 3)
    assert box.where == ["mean(mass) <= 20"]
    assert box.text.text() == '--where "mean(mass) <= 20"'
    kept = filtered(tracks, where=box.where)
    assert len(kept.detections) == int((layer.track_colors[:, 3] > 0).sum()) == 10
    assert "keeps 10 of 16 spots" in form.message.text()
    window.shot("lineage_filter")
    window.click(box.copy_button)
    QtWidgets = pytest.importorskip("qtpy.QtWidgets")
    assert QtWidgets.QApplication.clipboard().text() == box.text.text()
    window.click(box.keep_button)
    rest = window.viewer.layers["cells filtered"]
    assert rest.metadata["outbid"]["settings"]["conditions"] == box.where
    path = tmp_path / "rest.csv"
    rest.save(str(path), plugin="outbid")
    assert len(read_tracks(path).links) == len(kept.links)
    form.layers.choose(layer)
    window.click(box.filters[0].drop_button)
    window.wait(lambda: form.lineage.forest.width == 4)
    assert box.text.text() == ""


def test_spots_are_filtered_and_seen_again_without_the_form(window: Window) -> None:
    rows = np.column_stack([np.arange(6) // 2, np.arange(6.0), np.arange(6.0)])
    spots = window.viewer.add_points(rows, features={"mass": np.arange(6)}, name="spots")
    layer = shown(window, dividing())
    form = window.form("Lineage")
    form.layers.choose(spots)
    form.filter.columns.setCurrentText("mass")
    window.click(form.filter.add_button)
    form.filter.filters[0].slider.setValue((3.0, 5.0))
    window.wait(lambda: spots.shown.tolist() == [False] * 3 + [True] * 3)
    window.click(form.filter.keep_button)
    assert window.viewer.layers["spots filtered"].data[:, 1].tolist() == [3, 4, 5]
    form.layers.choose(layer)
    assert spots.shown.all()
    assert form.filter.filters == []
    form.filter.columns.setCurrentText("mass")
    window.click(form.filter.add_button)
    form.filter.filters[0].slider.setValue((20.0, form.filter.filters[0].slider.value()[1]))
    window.wait(lambda: np.any(layer.track_colors[:, 3] == 0))
    window.viewer.window.remove_dock_widget("all")
    assert (layer.track_colors[:, 3] == 1).all()
