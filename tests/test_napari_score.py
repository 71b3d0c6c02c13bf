"""The forms *Score against truth* and *Compare two results*, in a real window."""

import gc
import re
import weakref
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from napari_scenes import UNITS, Window, endless, named, no_thread_is_left

from outbid import Detections, Tracks, score
from outbid.viewers.headline import meaning
from outbid.viewers.layers import tracks_layer

FRAMES, ROWS = 12, (20.0, 50.0)
SCALE = (1.0, 2.0, 0.5, 0.5)


def true_tracks() -> Tracks:
    """Two particles that move along x, 30 voxels apart."""
    frame, particle = np.divmod(np.arange(2 * FRAMES), 2)
    place = np.column_stack([np.full(len(frame), 3.0), np.take(ROWS, particle), 10.0 + 5 * frame])
    return Tracks.from_track_ids(Detections.from_table(frame, place, unit="micrometer"), particle)


def found_tracks() -> Tracks:
    """They exchange in frame 4 and again in frame 8."""
    truth = true_tracks()
    frame = truth.detections.frame
    label = np.where((frame >= 4) & (frame < 8), 1 - truth.track_id, truth.track_id)
    return Tracks.from_track_ids(truth.detections, label)


def add(window: Window, tracks: Tracks, name: str, *, scale: tuple[float, ...] = SCALE, **more: Any) -> Any:
    return window.viewer.add_tracks(tracks_layer(tracks).data, name=name, scale=scale, units=UNITS, **more)


def table(form: Any) -> dict[str, str]:
    rows = range(form.table.rowCount())
    return {form.table.item(row, 0).text(): form.table.item(row, 1).text() for row in rows}


def opened(window: Window) -> Any:
    """The form with the two layers."""
    add(window, true_tracks(), "truth")
    add(window, found_tracks(), "found")
    form = window.form("Score against truth")
    assert (form.first.currentText(), form.second.currentText()) == ("found", "truth")
    assert form.gate.suffix() == " µm"
    return form


def run(window: Window, form: Any, gate: str = "") -> Any:
    """The form after a run, with a gate if one is given."""
    if gate:
        window.write(form.gate, gate)
    window.click(form.run_button)
    window.wait(form.table.rowCount)
    return form


def test_the_gate_comes_from_the_spacing_unless_it_is_set(window: Window) -> None:
    form = opened(window)
    assert form.gate.text() == "half of the spacing"
    run(window, form)
    # Rows 30 voxels apart, of half a micrometer each.
    assert "Gate: 7.5 micrometer, half of the median distance" in form.message.text()


def test_a_run_that_is_cancelled_ends_before_the_next_family_of_scores(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbid.viewers.forms.pair.score", endless)
    form = opened(window)
    window.click(form.run_button)
    window.wait(lambda: form.bar.maximum() > 0 and form.bar.value() == form.bar.maximum() // 3)
    window.click(form.cancel_button)
    window.wait(no_thread_is_left, 1)
    assert not form.bar.isVisible()
    assert form.table.rowCount() == 0


@pytest.mark.smoke
def test_links_are_shown_by_what_they_are_with_the_scores(window: Window) -> None:
    form = run(window, opened(window), "2")
    in_units = [
        replace(of, detections=replace(of.detections, position=of.detections.position * SCALE[1:]))
        for of in (found_tracks(), true_tracks())
    ]
    expected = score(*in_units, gate=2)
    assert table(form) == dict(line.split() for line in str(expected).splitlines())
    assert expected.values["n_correct_links"] == 18
    tips = [form.table.item(row, 0).toolTip() for row in range(form.table.rowCount())]
    assert tips == [meaning(name) for name in table(form)]
    assert "division_f1" not in table(form)
    assert expected.remark in form.message.text()
    for name, links in (("True links", 18), ("False links", 4), ("Missed links", 4)):
        shown = named(window, name)
        assert tuple(shown.scale) == SCALE
        assert tuple(map(str, shown.units)) == UNITS
        count = len(shown.data) - len(np.unique(shown.data[:, 0]))
        assert count == links, name
        assert shown.metadata["outbid"]["command"] == "score"
    assert len(named(window, "Errors").data) == 8
    assert not named(window, "found").visible
    assert not named(window, "truth").visible
    window.viewer.dims.set_point(0, FRAMES - 1)
    window.viewer.reset_view()
    red, green, blue = np.moveaxis(window.shot("score", canvas_only=True)[..., :3].astype(int), -1, 0)
    assert ((green > 120) & (red < 100) & (blue < 100)).sum() > 200
    assert ((red > 120) & (green < 60) & (blue < 60)).sum() > 200
    assert ((blue > 120) & (red < 60)).sum() > 100
    window.shot("score_form")


def test_next_jumps_from_error_to_error_and_around_or_through_those_of_a_kind(window: Window) -> None:
    form = run(window, opened(window), "2")
    window.viewer.dims.set_point(0, 6)
    seen = []
    for _ in range(9):
        window.click(form.way.next_button)
        camera = window.viewer.scene.camera.center
        seen.append((round(window.viewer.dims.point[0]), round(camera[1], 3), round(camera[2], 3)))
    frames = [frame for frame, _, _ in seen]
    assert frames == [8, 8, 8, 8, 4, 4, 4, 4, 8]
    assert {(y, x) for frame, y, x in seen if frame == 8} == {(10, 25), (25, 25)}  # in micrometres
    assert form.way.where.text().startswith("error 5 of 8: ")
    window.click(form.way.previous_button)
    assert round(window.viewer.dims.point[0]) == 4
    assert round(window.viewer.dims.point[1], 3) == 6.0  # z, too
    window.shot("score_error")
    assert [form.kind.itemText(row) for row in range(form.kind.count())] == ["all", "false", "missed"]
    form.kind.setCurrentText("missed")
    assert form.way.where.text() == "4 errors"
    window.viewer.dims.set_point(0, 0)
    window.click(form.way.next_button)
    assert form.way.where.text() == "error 1 of 4: missed, frame 4"


def test_a_second_run_replaces_the_layers_of_the_first_and_may_find_no_error(window: Window) -> None:
    form = run(window, opened(window), "2")
    count = len(window.viewer.layers)
    named(window, "found").data = named(window, "truth").data
    form.table.setRowCount(0)
    run(window, form)
    assert table(form)["link_f1"] == "1.0000"
    assert len(window.viewer.layers) == count - 2  # no false and no missed links
    assert len(named(window, "Errors").data) == 0
    assert len(named(window, "True links").data) == 2 * FRAMES
    assert named(window, "False links") is None
    assert form.way.where.text() == "0 errors"
    assert not form.way.next_button.isEnabled()


def test_layers_that_lie_elsewhere_are_scored_where_they_lie(window: Window) -> None:
    truth = true_tracks()
    far = replace(truth, detections=replace(truth.detections, position=truth.detections.position * 0.5 - 4))
    add(window, far, "truth", scale=(1.0, 4.0, 1.0, 1.0), translate=(0, 16, 4, 4))
    add(window, found_tracks(), "found")
    form = run(window, window.form("Score against truth"), "1")
    assert table(form)["n_correct_links"] == "18"
    np.testing.assert_allclose(named(window, "Missed links").data[:, 2], 3.0)


@pytest.mark.smoke
def test_a_movie_in_the_plane_can_be_scored(window: Window) -> None:
    data = tracks_layer(true_tracks()).in_plane().data
    window.viewer.add_tracks(data, name="truth", scale=SCALE[:1] + SCALE[2:])
    cut = data[(data[:, 0] == 0) | (data[:, 1] != 5)]
    window.viewer.add_tracks(cut, name="found", scale=SCALE[:1] + SCALE[2:])
    form = run(window, window.form("Score against truth"))
    assert named(window, "Missed links").data.shape == (2, 4)  # of the two true links, one is closed
    window.click(form.way.next_button)
    assert window.viewer.dims.point[0] in (5, 6)


@pytest.mark.parametrize("other", [None, "nanometer"])
def test_what_cannot_be_scored_is_said(other: str | None, window: Window) -> None:
    add(window, found_tracks(), "found")
    if other:
        add(window, true_tracks(), "truth").units = ("pixel", *[other] * 3)
    form = window.form("Score against truth")
    window.click(form.run_button)
    said = form.message.text()
    assert ("nanometer" in said) if other else ("Two layers of tracks are needed" in said)
    assert form.run_button.isEnabled() == bool(other)


def test_a_layer_deleted_while_it_is_scored_does_no_harm(window: Window) -> None:
    form = opened(window)
    window.click(form.run_button)
    window.viewer.layers.remove(named(window, "found"))
    window.wait(form.table.rowCount)
    assert named(window, "True links") is not None


def test_too_many_links_are_shown_around_the_frame(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    few = SimpleNamespace(window=SimpleNamespace(vertices=20))
    monkeypatch.setattr("outbid.viewers.forms.pair.preferences", lambda: few)
    form = run(window, opened(window), "2")
    shown = re.match(r"Links of frames (\d+) to (\d+) are shown", form.message.text())
    assert shown is not None
    first, last = map(int, shown.groups())
    assert last < 8  # the window opens in frame 5, between the errors
    assert {first, last} == {named(window, "True links").data[:, 1].min(), last}
    assert len(named(window, "Errors").data) == 8
    form.kind.setCurrentText("missed")
    window.click(form.way.next_button)
    assert form.way.where.text() == "error 3 of 4: missed, frame 8"
    assert named(window, "Missed links").data[:, 1].max() == 8


def test_two_results_are_compared(window: Window) -> None:
    add(window, true_tracks(), "with gaps")
    add(window, found_tracks(), "without")
    form = run(window, window.form("Compare two results"))
    assert table(form)["links in both"] == "18"
    assert table(form)["links only in one"] == table(form)["links only in other"] == "4"
    assert table(form)["shared (Jaccard index)"] == f"{18 / 26:.4f}"
    assert all(named(window, name) for name in ("Links in both", "Only in one", "Only in other"))
    window.viewer.dims.set_point(0, 0)
    window.click(form.way.next_button)
    assert form.way.where.text().startswith("difference 1 of 8: only in ")
    window.viewer.reset_view()
    window.viewer.dims.set_point(0, FRAMES - 1)
    window.shot("compare_form")


def test_a_closed_form_is_gone(window: Window) -> None:
    names = ("Score against truth", "Compare two results", "Track particles")
    gone = [weakref.ref(window.form(name)) for name in names]
    window.clear()
    gc.collect()
    assert [form() for form in gone] == [None] * 3


def test_the_motion_of_each_track_is_a_table(window: Window) -> None:
    add(window, true_tracks(), "walkers")
    form = window.form("Measure motion")
    window.write(form.interval, "30")
    window.click(form.run_button)
    model = form.table.model()
    window.wait(model.rowCount)
    speed = model.index(1, list(model.columns).index("speed_mean_um_per_s"))
    assert model.rowCount() == 2
    # Voxels a frame, micrometers, seconds.
    assert float(speed.data()) == pytest.approx(5 * SCALE[3] / 30, rel=1e-3)
    assert "errors exclude those of linking" in form.message.text()
    window.shot("measure_form")
    form.table.setCurrentIndex(model.index(1, 0))
    assert window.viewer.scene.camera.center[1] == pytest.approx(ROWS[1] * SCALE[2])


def test_without_tracks_there_is_nothing_to_measure(window: Window) -> None:
    form = window.form("Measure motion")
    assert not form.run_button.isEnabled()
    assert "no layer of tracks" in form.message.text()
