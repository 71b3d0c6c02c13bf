"""Behaviour of all forms, tested with *Track particles*: errors, cancelling, removed layers and forms."""

import gc
import threading
import weakref
from importlib import import_module
from time import monotonic
from typing import Any

import numpy as np
import pytest
from napari_scenes import (
    Window,
    endless,
    gated,
    is_settled,
    link_count,
    many,
    named,
    no_thread_is_left,
    preferences,
    run,
    walks,
)  # fmt: skip

_WHY = "Qt is not installed, or does not start: pip install 'outbid[napari]' PyQt6"
Qt = pytest.importorskip("qtpy.QtCore", reason=_WHY, exc_type=ImportError).Qt


def test_a_large_movie_leaves_the_window_usable_and_a_run_is_cancelled_at_once(window: Window) -> None:
    many(window, 200_000, 50)
    form = window.form("Track particles")
    with window.longest_stall() as stall:
        window.tick(form.live)
        assert window.wait(lambda: named(window, "Preview")) < 10
        assert len(named(window, "Preview").data) == 5000
        window.tick(form.live, False)
        assert named(window, "Preview") is None
        window.click(form.run_button)
        window.click(form.run_button)  # which does not start it twice
        window.wait(lambda: form.bar.maximum() > 0 and form.bar.value() > 0)
        window.shot("track_running")
        assert not form.run_button.isEnabled()
        start = monotonic()
        window.click(form.cancel_button)
        assert form.run_button.isEnabled()
        assert monotonic() - start < 1
        window.wait(no_thread_is_left, 5)
    assert stall.seconds < 2
    assert named(window, "Tracks") is None
    assert "Cancelled" in form.message.text()


def test_layers_may_go_while_a_run_is_on_its_way(window: Window) -> None:
    form = gated(window)
    run(window, form)
    edited = named(window, "Tracks of walks")
    form.result.choose(edited)
    window.click(form.run_button)
    window.viewer.layers.clear()
    window.wait(lambda: form._work is None)
    assert form.source.layers.layer() is None
    (tracks,) = window.viewer.layers
    assert tracks is not edited
    assert link_count(tracks) > 2000
    assert not form.run_button.isEnabled()


def test_a_preview_that_is_deleted_is_not_made_again(window: Window) -> None:
    form = gated(window)
    window.tick(form.live)
    window.wait(lambda: named(window, "Preview"))
    window.viewer.layers.remove(named(window, "Preview"))
    assert not form.live.isChecked()
    window.write(form.rows["max_distance"], "3")
    window.wait(lambda: is_settled(form))
    assert named(window, "Preview") is None


@pytest.mark.smoke
def test_layers_that_cannot_be_tracked_say_what_to_change(window: Window) -> None:
    form = window.form("Track particles")
    assert not form.run_button.isEnabled()
    assert "Open a movie as an image, or add points" in form.message.text()
    for kind, data, settings, message in [
        ("points", np.zeros((5, 2)), {}, "Add a first column: the frame"),
        ("points", np.zeros((0, 4)), {}, "The layer has no points"),
        ("points", np.full((5, 4), 0.5), {}, "frames must be whole numbers"),
        ("image", np.zeros((8, 8)), {}, "Open it as a movie"),
        ("image", np.zeros((3, 8, 8, 3), np.uint8), {"rgb": True}, "Split its channels"),
        ("image", np.full((3, 8, 8), np.nan), {"contrast_limits": (0, 1)}, "has no spots"),
    ]:
        layer = getattr(window.viewer, f"add_{kind}")(data, **settings)
        assert form.source.layers.layer() == layer
        run(window, form)
        assert message in form.message.text()
        assert [*window.viewer.layers] == [layer]
        window.viewer.layers.remove(layer)


def test_numbers_are_read_alike_wherever_the_user_lives(window: Window) -> None:
    locale = import_module("qtpy.QtCore").QLocale
    locale.setDefault(locale("de_DE"))
    try:
        form = window.form("Track particles")
        for text, number in [("1.5", 1.5), ("2,5", 2.5), ("5e-7", 5e-7), ("1234567", 1234567.0), ("", None)]:
            window.write(form.rows["max_distance"], text)
            assert form.rows["max_distance"].number() == number
        window.write(form.rows["max_distance"], "x7y")  # letters are not taken
        assert form.rows["max_distance"].number() == 7
        window.write(form.rows["max_distance"], "7.12345678")
        form.rows["max_distance"].selectAll()
        window.press(form.rows["max_distance"], "Return")  # which shows fewer digits, and loses none
        assert form.rows["max_distance"].number() == 7.12345678
        form.rows["max_distance"].setValue(7)
        form.rows["max_distance"].stepBy(1)
        assert form.rows["max_distance"].text() == "7.1"
        form.rows["max_distance"].set_number(None)
        assert form.rows["max_distance"].text() == "learned from the movie"
        form.rows["max_distance"].stepBy(1)
        assert form.rows["max_distance"].number() == 1
    finally:
        locale.setDefault(locale("C"))


def test_what_a_cancelled_run_returns_is_dropped(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run hears nothing of its cancelling and returns while the second one is on its way."""
    module = import_module("outbid.viewers.forms.track")
    doors = [threading.Event(), threading.Event()]
    real, calls = module.track, iter(doors)

    def slow(*arguments: Any, **_: Any) -> Any:
        assert next(calls).wait(20)
        return real(*arguments)

    monkeypatch.setattr(module, "track", slow)
    form = gated(window)
    window.click(form.run_button)
    window.click(form.cancel_button)
    window.write(form.rows["max_distance"], "1")
    window.click(form.run_button)
    doors[0].set()
    window.wait(lambda: len(form._works) == 1)
    assert named(window, "Tracks") is None
    assert not form.run_button.isEnabled()
    doors[1].set()
    window.wait(form.run_button.isEnabled)
    (tracks,) = [layer for layer in window.viewer.layers if layer.name.startswith("Tracks")]
    assert tracks.metadata["outbid"]["settings"]["max_distance"] == 1


def test_a_form_may_go_while_its_run_is_on_its_way(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbid.viewers.forms.track.track", endless)
    walks(window)
    form = window.form("Track particles")
    form.run()
    window.viewer.window.remove_dock_widget("all")
    gone = weakref.ref(form)
    del form
    window.wait(no_thread_is_left, 1)
    window.wait(lambda: gc.collect() >= 0 and gone() is None, 5)
    assert named(window, "Tracks") is None


def test_settings_that_make_no_sense_say_what_to_change(window: Window) -> None:
    form = gated(window)
    window.write(form.rows["unmatched_cost"], "1000000")
    run(window, form)
    assert "unmatched_cost" in form.message.text()
    assert named(window, "Tracks") is None


def test_more_vertices_than_preferred_are_shown_when_the_user_says_so(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preferences().window, "vertices", 3000)
    form = gated(window)
    run(window, form)
    assert "draws what the view shows" in form.message.text()
    assert len(named(window, "Tracks of walks").data) < 3000
    pair = import_module("outbid.viewers.forms.pair")
    assert len(pair.tracks_of(named(window, "Tracks of walks")).links) > 2000
    window.click(form.offer_button)
    window.wait(lambda: len(named(window, "Tracks of walks").data) > 3000)
    assert not form.offer_button.isVisible()


def test_a_fault_of_the_program_is_reported_and_the_form_goes_on(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("out of luck")

    module = import_module("outbid.viewers.forms.track")
    form = gated(window)
    with monkeypatch.context() as patch:
        patch.setattr(module, "track", fails)
        run(window, form)
    assert "Outbid failed: RuntimeError: out of luck" in form.message.text()
    assert [str(error) for error in window.errors] == ["out of luck"]
    window.errors.clear()
    run(window, form)
    assert named(window, "Tracks of walks") is not None


@pytest.mark.usefixtures("window")
def test_a_column_of_numbers_among_words_is_sorted_too() -> None:
    from outbid.viewers.forms.table import NumbersTable

    table = NumbersTable()
    table.hold({"n": np.array([2.0, np.nan, 1.0]), "mixed": np.array(["b", 1, None], object)})
    assert table.model().order.tolist() == [2, 0, 1]
    table.sortByColumn(1, Qt.SortOrder.AscendingOrder)
    assert table.model().order[0] == 1
