"""Corrections by hand in the form *Lineage*, in a real window, by clicks in the image and in the lineage."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari_scenes import Window
from test_napari_lineage import click_at, dividing, row_at, shown

from outbid import TrackingSettings, read_tracks, track
from outbid.pins import read_pins
from outbid.simulate.motions import PersistentWalk
from outbid.simulate.walks import WalkSettings, walk
from outbid.viewers.layers import tracks_layer

pytest.importorskip("qtpy.QtCore", reason="Qt does not start", exc_type=ImportError)


def press(window: Window, form: Any, key: str) -> None:
    """Click on the button of an act, and wait until all is solved."""
    before = form.session
    form.show_message("")
    window.click(form.buttons[key])
    window.wait(lambda: form._work is None and form.message.text())
    assert form.session is not before, form.message.text()


def links_of(layer: Any) -> set[tuple[float, ...]]:
    """Where the links of a layer start and end: frame and x in voxels."""
    from outbid.viewers.from_layers import tracks_from

    tracks = tracks_from(layer.data, graph=layer.graph)
    place = np.column_stack([tracks.detections.frame, tracks.detections.position[:, 2].round(3)])
    return set(map(tuple, place[tracks.links].reshape(-1, 4).tolist()))


@pytest.fixture
def opened(window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The layer and the form, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    return shown(window, dividing()), window.form("Lineage")


@pytest.mark.smoke
def test_links_are_cut_made_joined_and_divided_by_clicks_and_undone(window: Window, opened: Any) -> None:
    layer, form = opened
    first = links_of(layer)
    assert not form.buttons["Z"].isEnabled()
    click_at(form, row_at(form, 3, 40))
    press(window, form, "F")
    said = form.message.text()
    assert said.startswith("Cut track 1 between frames 3 and 4; no other link changed.")
    assert links_of(layer) == first - {(3, 40, 4, 40)}
    assert form.lineage.forest.width == 5
    assert Path(form.pins_path).resolve().as_posix() in said
    click_at(form, row_at(form, 4, 40))
    window.click(form.buttons["L"])
    assert "click on the detection" in form.message.text()
    window.viewer.dims.set_point(0, 3)
    window.viewer.reset_view()
    before = form.session
    window.click_in_image([28.0, 28.0])
    window.wait(lambda: form.session is not before and form._work is None)
    assert links_of(layer) == first - {(3, 40, 4, 40), (3, 14, 4, 14)} | {(3, 14, 4, 40)}
    assert form.message.text().startswith("Linked track 3 in frame 3 to track")
    window.shot("correct_linked")
    press(window, form, "Z")
    assert form.message.text() == "Undone."
    click_at(form, row_at(form, 3, 40))
    click_at(form, row_at(form, 5, 40), shift=True)
    press(window, form, "J")
    assert links_of(layer) == first
    assert "Joined track 1 in frame 3 and track" in form.message.text()
    click_at(form, row_at(form, 3, 40))
    click_at(form, row_at(form, 4, 6), shift=True)
    press(window, form, "V")
    assert {(3, 40, 4, 40), (3, 40, 4, 6)} <= links_of(layer)
    assert "divides into" in form.message.text()
    window.shot("correct_divided")
    kinds = [pin.kind for pin in read_pins(form.pins_path)]
    assert kinds == ["division"]  # in place of the link, which took the place of the cut
    for _ in range(3):
        press(window, form, "Z")
    assert links_of(layer) == first
    assert not form.buttons["Z"].isEnabled()
    press(window, form, "R")
    assert links_of(layer) == first - {(3, 40, 4, 40)}
    assert not window.errors


def test_spots_are_added_moved_and_removed_and_saved(window: Window, opened: Any) -> None:
    layer, form = opened
    first = layer.data.copy()
    window.viewer.reset_view()
    window.viewer.dims.set_point(0, 2)
    window.click(form.buttons["A"])
    before = form.session
    window.click_in_image([60.0, 30.0])
    window.wait(lambda: form.session is not before and form._work is None)
    assert len(layer.data) == 17
    new = form.selected[0]
    assert form.tracks.detections.position[new, 1:] == pytest.approx([60, 30], abs=0.5)
    said = f"Added track {form.tracks.track_id[new]} in frame 2; no other link changed. Pins are in "
    assert form.message.text() == f"{said}{form.pins_path.resolve()}."
    window.click(form.buttons["M"])
    before = form.session
    window.click_in_image([50.0, 40.0])
    window.wait(lambda: form.session is not before and form._work is None)
    assert form.tracks.detections.position[form.selected[0], 1:] == pytest.approx([50, 40], abs=0.5)
    assert "Moved" in form.message.text()
    window.click(form.save_button)
    window.wait(lambda: "is written" in form.message.text())
    saved = read_tracks(form.file.text())
    assert len(saved.detections) == 17
    assert saved.detections.position[:, 2].max() == pytest.approx(80)
    press(window, form, "D")
    assert len(layer.data) == 16
    for _ in range(3):
        press(window, form, "Z")
    assert np.array_equal(layer.data, first)


def places_of(form: Any) -> list[list[float]]:
    """Frame and place of all detections of the form."""
    seen = form.tracks.detections
    return sorted(np.column_stack([seen.frame, seen.position]).tolist())


def test_what_was_saved_and_opened_again_is_undone_and_redone(window: Window, opened: Any) -> None:
    """Also detections that the saved file has, or has no more, because of the pins next to it."""
    _, form = opened
    steps = [places_of(form)]
    window.viewer.reset_view()
    window.viewer.dims.set_point(0, 2)
    for key, at in (("A", [60.0, 30.0]), ("M", [50.0, 40.0])):
        before = form.session
        window.click(form.buttons[key])
        window.click_in_image(at)
        window.wait(lambda before=before: form.session is not before and form._work is None)
        steps.append(places_of(form))
    click_at(form, row_at(form, 3, 40))
    press(window, form, "D")
    steps.append(places_of(form))
    window.click(form.save_button)
    window.wait(lambda: "is written" in form.message.text())
    path, table = Path(form.file.text()).absolute(), form.pins_path.absolute()
    (layer,) = window.viewer.open(str(path), plugin="outbid")
    form.layers.choose(layer)
    assert form.session is None
    assert form.pins_path.absolute() == table
    assert places_of(form) == steps[-1]
    click_at(form, row_at(form, 0, 40))
    press(window, form, "F")
    assert [pin.kind for pin in read_pins(table)] == ["add", "move", "remove", "forbid"]
    for back in (steps[-1], steps[2], steps[1], steps[0]):
        press(window, form, "Z")
        assert places_of(form) == back
    assert len(form.layers.layer().data) == len(steps[0])
    assert not form.buttons["Z"].isEnabled()
    assert read_pins(table) == ()
    for ahead in (steps[1], steps[2], steps[-1], steps[-1]):
        press(window, form, "R")
        assert places_of(form) == ahead
    assert [pin.kind for pin in read_pins(table)] == ["add", "move", "remove", "forbid"]
    assert not window.errors


@pytest.mark.parametrize("key", ["A", "M"])
def test_no_spot_is_put_onto_another_one(window: Window, opened: Any, key: str) -> None:
    """The act goes on to wait: a click beside the spot is taken, also a close one when the image is near."""
    layer, form = opened
    first = layer.data.copy()
    click_at(form, row_at(form, 3, 14))
    window.viewer.reset_view()
    window.click(form.buttons[key])
    at = np.array([80.2, 80.0])
    window.click_in_image(at)
    window.wait(lambda: "there already" in form.message.text(), 20)
    assert form.message.text() == (
        f"{form.name(row_at(form, 3, 40)).capitalize()} is there already. Click farther away from it; zoom "
        "in to put a spot close to it."
    )
    assert form.session is None
    assert np.array_equal(layer.data, first)
    window.viewer.scene.camera.center = (0, *at)
    window.viewer.scene.camera.zoom = 60
    window.click_in_image(at)
    window.wait(lambda: form.session is not None and form._work is None)
    there = form.tracks.detections.position[form.selected[0], 1:]
    assert there == pytest.approx(at, abs=0.1)
    assert len(layer.data) == len(first) + (key == "A")
    assert not window.errors


def test_what_cannot_be_done_is_said(window: Window, opened: Any) -> None:
    _, form = opened
    assert not form.buttons["D"].isEnabled()
    click_at(form, row_at(form, 5, 40))
    window.click(form.buttons["F"])
    window.wait(lambda: "ends here" in form.message.text())
    click_at(form, row_at(form, 5, 6), shift=True)
    window.click(form.buttons["L"])
    window.wait(lambda: "Two of these are in frame 5" in form.message.text())
    form.press("Z")
    window.wait(lambda: "nothing to undo" in form.message.text())
    assert not window.errors


def test_tracks_of_outbid_are_solved_again_and_keep_their_settings(
    window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    truth = walk(WalkSettings(PersistentWalk(1.5, 0.5), 60, 12, (1, 40, 40), seed=3))
    run = track(truth.detections, TrackingSettings())
    data, more, _ = tracks_layer(run.tracks, name="found").in_plane().as_tuple()
    record = {"command": "track", "settings": run.settings.as_dict()}
    layer = window.viewer.add_tracks(data, **more, metadata={"outbid": record})
    form = window.form("Lineage")
    source, target = (int(row) for row in form.tracks.links[form.tracks.link_probability.argmin()])
    form.select(source)
    form.select(target, more=True)
    press(window, form, "F")
    assert "other link" in form.message.text()
    assert form.session.given is None
    assert form.changes.count() > 0
    now = form.session.tracks
    assert not (now.links == [source, target]).all(axis=1).any()
    assert len(layer.data) == len(now.detections)
    assert "link_probability" in layer.features
    assert form.pins_path.exists()


def test_a_key_acts_in_the_form_that_was_used_last(window: Window, opened: Any) -> None:
    """Lineage and Proofread are open together and have the same keys; one of them acts, and not the other."""
    _, lineage = opened
    proofread = window.form("Proofread")
    main = window.viewer.window._qt_window
    main.activateWindow()  # else no key is a shortcut
    window.click(proofread.run_button)
    window.wait(lambda: proofread.asked is not None and proofread.is_idle)
    lineage.show_message("")
    order = [(lineage, proofread), (proofread, lineage), (lineage, proofread)]
    for form, other in order:
        form.file.setFocus()
        window.viewer.window._qt_viewer.canvas.native.setFocus()
        for one in (lineage, proofread):
            one.show_message("")
        window.press(main, "A")
        window.wait(lambda form=form: form.message.text())
        assert "click where the spot is" in form.message.text()
        assert not other.message.text()
    window.press(main, "N")  # that the lineage has not
    assert proofread.asked is not None
    proofread.hide()
    lineage.show_message("")
    window.press(main, "A")
    window.wait(lineage.message.text)
    assert window.errors == []
