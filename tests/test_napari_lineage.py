"""The form *Lineage*, in a real window, driven by clicks."""

from pathlib import Path
from types import SimpleNamespace
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


def test_a_part_that_is_drawn_has_colours_and_filters_wherever_one_looks(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large movie the layer draws some frames: what comes into view is coloured and filtered as well."""
    from outbid.viewers.forms import windowed
    from outbid.viewers.forms.napari_layers import LayerTransform

    frame, x = np.repeat(np.arange(60), 5), np.tile(np.arange(5.0), 60)
    mass = 100 * x + frame
    seen = Detections.from_table(frame, np.column_stack([0 * x, 3 * x, frame + x]), features={"mass": mass})
    tracks = Tracks(seen, np.column_stack([np.arange(295), np.arange(5, 300)]))
    monkeypatch.setattr(windowed, "preferences", lambda: SimpleNamespace(window=SimpleNamespace(vertices=20)))
    monkeypatch.setattr(windowed, "_TAIL", 3)
    transform = LayerTransform((1.0, 1.0, 1.0), (0.0, 0.0, 0.0), ("pixel",) * 3, ("t", "y", "x"))
    window.viewer.dims.set_point(0, 0)
    layer = windowed.show_tracks(window.viewer, tracks, transform, "many")
    assert len(layer.data) < 60
    form = window.form("Lineage")
    form.colour.names.setCurrentText("mass")

    def as_asked(least: float) -> bool:
        values = layer.features["mass"].to_numpy()
        shown = layer.track_colors[:, 3] > 0
        order = np.argsort(values[shown])
        brightness = layer.track_colors[shown, 1][order]
        return np.array_equal(shown, values >= least) and bool((np.diff(brightness) >= 0).all())

    assert as_asked(0.0)
    for k, now in enumerate((30, 50)):
        window.viewer.dims.set_point(0, now)
        window.wait(lambda now=now: {now - 3, now + 1} <= {*layer.data[:, 1]})
        assert len(layer.data) < 60
        assert as_asked(200.0 * k)
        if not k:
            form.filter.columns.setCurrentText("mass")
            window.click(form.filter.add_button)
            slider = form.filter.filters[0].slider
            slider.setValue((200.0, slider.value()[1]))
            window.wait(lambda: as_asked(200.0))
    assert "keeps 180 of 300 spots" in form.message.text()
    window.viewer.window.remove_dock_widget("all")
    assert (layer.track_colors[:, 3] == 1).all()
    window.viewer.dims.set_point(0, 10)
    window.wait(lambda: {7, 11} <= {*layer.data[:, 1]})
    assert (layer.track_colors[:, 3] == 1).all()
    again = window.form("Lineage")
    assert again.filter.where == ["mass >= 200"]
    assert as_asked(200.0) or again.colour.names.currentText() != "mass"
