"""The form *Proofread*, in a real window, driven by keys and clicks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari_scenes import Window, run
from numpy.typing import NDArray
from test_proofreading_session import crowd

from outbid import Detections, TrackingSettings, Tracks, track, write_tracks
from outbid.pins import read_pins

_WHY = "Qt is not installed, or does not start: pip install 'outbid[napari]' PyQt6"
QtCore = pytest.importorskip("qtpy.QtCore", reason=_WHY, exc_type=ImportError)
QPoint, Qt = QtCore.QPoint, QtCore.Qt
QTest = pytest.importorskip("qtpy.QtTest", reason=_WHY, exc_type=ImportError).QTest
QApplication = pytest.importorskip("qtpy.QtWidgets", reason=_WHY, exc_type=ImportError).QApplication


def is_active(window: Window) -> bool:
    """Whether keys reach the window; each time it asks again, for a bare screen may lose a request."""
    window.viewer.window._qt_window.activateWindow()
    return QApplication.activeWindow() is not None


def press(window: Window, form: Any, *keys: str) -> None:
    """Press keys in the window, each when the answer before it is solved."""
    for key in keys:
        window.wait(lambda: is_active(window))
        window.press(window.viewer.window._qt_window, key)
        window.wait(lambda: form.run_button.isEnabled() and not form.drawing.isActive())


def ends_of(tracks: Tracks) -> set[tuple[float, ...]]:
    """Where links start and end, whatever the order of detections."""
    return set(map(tuple, tracks.detections.position[tracks.links].reshape(-1, 6).tolist()))


def opened(window: Window, path: Path) -> Any:
    window.viewer.open(str(path), plugin="outbid")
    form = window.form("Proofread")
    run(window, form, 60)
    return form


@pytest.mark.smoke
def test_open_answer_undo_save_close_open_and_go_on(window: Window, tmp_path: Path) -> None:
    path = tmp_path / "crowd.csv"
    made = track(crowd().detections, TrackingSettings())
    write_tracks(path, made.tracks, record={"command": "track", "settings": made.settings.as_dict()})
    form = opened(window, path)
    assert "wrong links expected of" in form.headline.text()
    assert len(form.session.tracks.links) == len(made.tracks.links)
    window.shot("proofread_first")
    links = []
    for k in range(10):
        links.append(form.session.tracks.links)
        asked = form.asked
        press(window, form, "2" if k == 3 else "1")
        assert len(form.session.pins) == k + 1
        assert form.session.pins[-1].detections[0] == form.session.spot(asked.link.row)
        if k == 3:
            assert form.changes.count() > 0
            window.shot("proofread_changed")
        press(window, form, "N")
        assert form.asked.audit == (k in (3, 8))
    window.shot("proofread_ten")
    pins = form.session.pins
    press(window, form, "Z", "Z", "Z")
    assert np.array_equal(form.session.tracks.links, links[7])
    press(window, form, "R", "Z")
    assert [pin[:2] for pin in read_pins(form.pins_path)] == [pin[:2] for pin in pins[:7]]
    window.click(form.save_button)
    window.wait(form.run_button.isEnabled)
    saved = Path(form.file.text())
    before = ends_of(form.session.tracks)
    window.clear()
    form = opened(window, saved)
    assert form.file.text() == str(saved)
    assert [pin[:2] for pin in form.session.pins] == [pin[:2] for pin in pins[:7]]
    assert ends_of(form.session.tracks) == before
    press(window, form, "1")
    assert len(read_pins(form.pins_path)) == 8
    press(window, form, *"Z" * 8)
    assert ends_of(form.session.tracks) == ends_of(made.tracks)
    assert not window.errors
    form.hide()
    assert {layer.name for layer in window.viewer.layers if len(layer.data)} <= {saved.name}


def test_clicks_join_divide_add_move_and_remove_in_tracks_of_any_program(
    window: Window, tmp_path: Path
) -> None:
    """Two particles, of which one is not seen in frame 2; the links are given, without probabilities."""
    frame = np.array([0, 0, 1, 1, 1, 2, 3, 3])
    y, x = np.array([10, 30, 10, 30, 34, 10, 10, 30]), 10 + 2 * frame
    seen = Detections.from_table(frame, np.column_stack([0 * y, y, x]))
    given = Tracks(seen, np.array([[0, 2], [1, 3], [2, 5], [5, 6]]))
    write_tracks(tmp_path / "given.csv", given)
    form = opened(window, tmp_path / "given.csv")
    window.shot("proofread_given")
    assert "4 links, without probabilities" in form.headline.text()
    form.ask(1)
    press(window, form, "V")
    window.click_in_image(seen.position[3])
    window.click_in_image(seen.position[4])
    window.wait(lambda: len(form.session.pins) == 1)
    assert form.session.pins[0].kind == "division"
    assert form.session.tracks.links.tolist() == [[0, 2], [1, 3], [1, 4], [2, 5], [5, 6]]
    assert form.table.model().rowCount() == 5
    window.shot("proofread_division")
    form.ask(3)
    press(window, form, "J")
    window.viewer.dims.set_point(0, 3)
    window.click_in_image(seen.position[7])
    window.wait(lambda: len(form.session.pins) == 2)
    assert [3, 7] in form.session.tracks.links.tolist()
    window.viewer.dims.set_point(0, 2)
    press(window, form, "A")
    window.click_in_image(np.array([30, 14.0]))
    window.wait(lambda: len(form.session.tracks.detections) == 9)
    now = form.session.tracks.detections
    added = int(np.flatnonzero((now.position[:, 1] > 20) & (now.frame == 2))[0])
    form.ask(added)
    press(window, form, "M")
    window.click_in_image(np.array([31, 14.0]))
    window.wait(lambda: abs(form.session.tracks.detections.position[added, 1] - 31) < 0.1)
    press(window, form, "D")
    window.wait(lambda: len(form.session.tracks.detections) == 8)
    press(window, form, "Z", "Z", "Z", "Z", "Z")
    assert np.array_equal(form.session.tracks.links, given.links)
    assert np.array_equal(form.session.tracks.detections.position, seen.position)
    press(window, form, "R")
    form.tabs.setCurrentIndex(1)
    form.ask(4)
    window.shot("proofread_lineage")
    form.lineage.chosen.emit(1, False)
    assert form.asked.link.row == 1
    form.table.setCurrentIndex(form.table.model().index(0, 0))
    assert form.asked.link.row == 0


def test_both_frames_lie_on_each_other_and_labels_apart(window: Window, tmp_path: Path) -> None:
    """Steps over one frame and over two; each frame has grey values of its own."""
    frame, x = np.array([0, 1, 2, 4, 0, 1]), np.array([10, 12, 14, 18, 40, 40])
    seen = Detections.from_table(frame, np.column_stack([0 * x, 0 * x + 20, x]))
    write_tracks(tmp_path / "gap.csv", Tracks(seen, np.array([[0, 2], [2, 4], [4, 5]])))
    movie = np.arange(5)[:, None, None] + np.zeros((5, 50, 60))
    image = window.viewer.add_image(movie, name="movie")
    form = opened(window, tmp_path / "gap.csv")
    for row, frames in ((0, [0, 1]), (4, [2, 4])):
        form.ask(row)
        window.wait(lambda: not form.drawing.isActive())
        crops = [window.viewer.layers[f"{name} frame"] for name in ("Earlier", "Later")]
        assert [np.unique(crop.data).tolist() for crop in crops] == [[frames[0]], [frames[1]]]
        assert [form.buttons[key].isEnabled() for key in "12"] == [True, row == 0]
        assert [crop.colormap.name for crop in crops] == ["magenta", "green"]
        assert not image.visible
    window.shot("proofread_frames")
    assert "It spans 2 frames" in form.where.text()
    window.viewer.window.remove_dock_widget("all")
    assert image.visible
    assert "Earlier frame" not in window.viewer.layers


def test_labels_are_spread() -> None:
    from outbid.viewers.forms.question_layers import _LABEL, spread

    places = np.random.default_rng(0).uniform(0, 60, (4, 2))
    placed = spread(places)
    away = np.abs(placed[:, None] - placed) + 1e-9
    apart = (away >= _LABEL[::-1]).any(axis=2) | np.eye(4, dtype=bool)
    assert apart.all()


def test_in_3d_a_click_has_the_depth_of_the_detection_in_question(window: Window, tmp_path: Path) -> None:
    track_id, frame = np.repeat([0, 1], 4), np.tile(np.arange(4), 2)
    place = np.column_stack([np.repeat([5.0, 9], 4), 10.0 + 2 * frame, np.repeat([12.0, 30], 4)])
    rows = np.column_stack([track_id, frame, place])
    window.viewer.add_tracks(rows, name="given", scale=(1, 3, 1, 1))
    window.viewer.dims.ndisplay = 3
    form = window.form("Proofread")
    form.file.setText(str(tmp_path / "given.csv"))
    run(window, form)
    camera, canvas = window.viewer.scene.camera, window.viewer.window._qt_viewer.canvas
    camera.angles = (15, 40, 70)
    form.ask(1)
    window.wait(lambda: not form.drawing.isActive())
    (_, asked), depth = form.session.spot(1), np.array(camera.view_direction)
    across = np.cross(depth, camera.up_direction)

    def click_at(world: NDArray[np.float64]) -> None:
        scene = canvas.view.scene.node_transform(canvas._scene_canvas.scene)
        x, y, _, w = scene.map([*world[::-1], 1])
        at = QPoint(round(float(x / w)), round(float(y / w)))
        QTest.mouseClick(canvas.native, Qt.MouseButton.LeftButton, pos=at)

    wanted = np.array(asked) + 4 * across
    press(window, form, "A")
    assert "depth of what is selected" in form.message.text()
    click_at(wanted)
    window.wait(lambda: len(form.session.tracks.detections) == 9)
    seen = form.session.tracks.detections
    world = (place * (3, 1, 1)).tolist()
    added = next(row for row in range(9) if seen.position[row].tolist() not in world)
    pixel = 1 / camera.zoom
    assert seen.frame[added] == form.session.spot(form.asked.link.row)[0]
    assert seen.position[added] == pytest.approx(wanted, abs=2 * pixel)
    window.shot("proofread_3d")
    form.ask(added)
    window.wait(lambda: not form.drawing.isActive())
    wanted = wanted - 2 * across
    press(window, form, "M")
    click_at(wanted)
    window.wait(
        lambda: form.session.tracks.detections.position[added].tolist() != seen.position[added].tolist()
    )
    moved = form.session.tracks.detections.position[added]
    assert moved == pytest.approx(wanted, abs=4 * pixel)
