"""The dock *Outbid* in a real window: from a file to corrected, measured tracks, and the session again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import succeed
from napari_scenes import Window, is_settled, named, run

from outbid import formats, read_tracks
from outbid.pins import read_pins
from outbid.simulate.motions import PersistentWalk
from outbid.simulate.walks import WalkSettings, walk
from outbid.viewers.dock.session import (
    SUFFIX,
    SavedLayer,
    command_lines,
    is_session,
    options_of,
    read_session,
)
from outbid.viewers.layers import tracks_layer

SIZE = (800, 600)


@pytest.fixture(scope="module")
def movie(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("movie")
    succeed(
        "simulate", "-o", folder / "truth.csv", "--movie", folder / "movie.ome.tif", "--box", 6, 24, 24,
        "--voxel", 1, 0.4, 0.4, "--psf", 1, 0.6, 0.6, "--particles", 14, "--frames", 6, "--frame-interval",
        20, "--step", 2.5, "--snr", 8, "--seed", 3,
    )  # fmt: skip
    return folder / "movie.ome.tif"


class Mouse:
    """Clicks in the dock, and counts them."""

    def __init__(self, window: Window, dock: Any) -> None:
        self.window, self.dock, self.clicks = window, dock, 0

    def next(self) -> str:
        """Click the one button, and wait for what it does; what the page says then."""
        assert self.dock.next_button.isEnabled()
        self.click(self.dock.next_button)
        page = self.dock.page
        self.window.wait(lambda: not page.busy(), 120)
        if page.title == "Detect":
            self.window.wait(lambda: is_settled(page.form), 120)
        said = page.said if hasattr(page, "said") else page.form.message
        return str(said.text())

    def click(self, button: Any) -> None:
        self.clicks += 1
        self.window.click(button)


def opened(window: Window, path: Path) -> Mouse:
    dock = window.form("Outbid")
    dock.pages[0].open(str(path))
    return Mouse(window, dock)


def tracked(window: Window, path: Path) -> Mouse:
    mouse = opened(window, path)
    for _ in range(4):
        mouse.next()
    assert mouse.dock.page.title == "Track"
    return mouse


@pytest.mark.smoke
def test_a_click_a_step_leads_from_a_file_to_measured_tracks(
    movie: Path, window: Window, tmp_path: Path
) -> None:
    """Each page says what was found and how far to trust it, and the window stays as small as it is."""
    window.viewer.window.resize(*SIZE)
    mouse = opened(window, movie)
    dock = mouse.dock
    steps = [dock.steps.button(number) for number in range(6)]
    assert [step.isEnabled() for step in steps] == [True] * 3 + [False] * 3
    said = dock.page.said.text()
    assert said == "movie.ome.tif: 6 frames of 7 x 61 x 61 voxels of 1 x 0.4 x 0.4 µm, one every 20 s."
    look = [*window.viewer.dims.margin_left], [*window.viewer.dims.margin_right]
    assert "noise" in mouse.next()
    assert len(named(window, "Preview").data) > 0
    assert (dock.next_button.text(), window.viewer.dims.thickness[1]) == ("Detect", 0)
    assert "about 0 of them noise" in mouse.next()
    assert ([*window.viewer.dims.margin_left], [*window.viewer.dims.margin_right]) == look
    assert named(window, "Preview") is None
    mouse.next()
    assert "expected to be wrong" in mouse.next()
    assert "more likely wrong than right" in mouse.next()
    window.shot("dock_check")
    mouse.next()
    assert "µm²/s" in mouse.next()
    form = dock.page.form
    assert form.table.model().rowCount() == read_tracks_of(window).track_count
    assert form.plot.label.pixmap().width() > 100
    assert mouse.clicks == 7
    window.shot("dock_measure")
    for name in ("table.csv", "plot.png", "plot.svg", "plot.pdf"):
        form.save(tmp_path / name)
        assert str(tmp_path / name) in form.message.text()
        assert (tmp_path / name).stat().st_size > 1000
    form.sheet.setCurrentText("links")
    assert form.table.model().rowCount() == len(read_tracks_of(window).links)
    form.table.setCurrentIndex(form.table.model().index(0, 0))
    size = window.viewer.window._qt_window.size()
    assert (size.width(), size.height()) == SIZE
    window.viewer.window.resize(1400, 850)


def read_tracks_of(window: Window) -> Any:
    from outbid.viewers.forms.pair import tracks_of

    return tracks_of(named(window, "Tracks"))


def repeat(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command lines of a session in its folder."""
    monkeypatch.chdir(session.parent)
    for line in read_session(session).commands:
        name, *words = shlex.split(line)
        assert name == "outbid"
        succeed(*words)


def by_hand(window: Window, form: Any) -> None:
    """Remove a spot, add one, and move it, in the image."""

    def done(pins: int) -> str:
        window.wait(lambda: form.is_idle and len(form.session.pins) == pins, 60)
        return str(form.message.text())

    count = len(form.session.tracks.detections)
    form.ask(0)
    form.press("D")
    assert "The model stays as it was learned: Learn again" in done(2)
    window.viewer.reset_view()
    form.press("A")
    window.click_in_image([8.0, 9.0])
    assert done(3).startswith("Added track")
    form.press("M")
    window.click_in_image([9.0, 8.0])
    assert done(4).startswith("Moved track")
    assert len(form.session.tracks.detections) == count


def test_the_session_opens_again_and_its_lines_give_the_same_bytes(
    movie: Path, window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mouse = tracked(window, movie)
    dock = mouse.dock
    mouse.next()  # to Check
    mouse.click(dock.page.correct_button)
    form = dock.page.form
    window.wait(lambda: form.asked is not None and form.is_idle, 120)
    window.shot("dock_correct")
    form.press("2")
    window.wait(lambda: form.is_idle and len(form.session.pins) == 1, 60)
    assert " changed." in form.message.text()
    by_hand(window, form)
    links = len(form.session.tracks.links)
    mouse.next()  # to Measure
    assert len(read_tracks_of(window).links) == links
    mouse.next()
    mouse.next()  # to Export
    export = dock.page.form
    export.folder.setText(str(tmp_path))
    said = mouse.next()
    assert f"5 files are in {tmp_path}" in said
    session = tmp_path / f"movie{SUFFIX}"
    kept = {path.name: path.read_bytes() for path in tmp_path.glob("*.csv")}
    kinds = [pin.kind for pin in read_pins(Path(read_session(session).pins))]
    assert kinds == ["link", "remove", "add", "move"]
    repeat(session, monkeypatch)
    for name in ("movie_spots.csv", "movie_tracks.csv"):
        assert (tmp_path / name).read_bytes() == kept[name]
    layers = [saved.name for saved in read_session(session).layers]
    assert layers == ["movie.ome.tif", "Spots of movie.ome.tif", "Tracks of Spots of movie.ome.tif"]
    looks = window.viewer.layers["Spots of movie.ome.tif"].scale
    window.clear()

    mouse = opened(window, session)
    assert [layer.name for layer in window.viewer.layers] == layers
    assert np.array_equal(window.viewer.layers["Spots of movie.ome.tif"].scale, looks)
    dock = mouse.dock
    assert "open again" in dock.page.said.text()
    assert dock.pages[1].done()
    assert dock.pages[2].done()
    dock.go(3)
    mouse.click(dock.page.correct_button)
    form = dock.page.form
    window.wait(lambda: form.asked is not None and form.is_idle, 120)
    assert [pin.kind for pin in form.session.pins] == kinds
    assert len(form.session.tracks.links) == links
    assert "name no detection" not in form.message.text()
    form.press("D")
    window.wait(lambda: form.is_idle and len(form.session.pins) == 5, 60)
    form.press("Z")
    window.wait(lambda: form.is_idle and len(form.session.pins) == 4, 60)
    dock.go(5)
    again = tmp_path / "again"
    again.mkdir()
    dock.page.form.folder.setText(str(again))
    dock.page.form.stem.setText("movie")
    mouse.next()
    for name in ("movie_spots.csv", "movie_tracks.csv"):
        assert (again / name).read_bytes() == kept[name]
    window.shot("dock_reopened")


def test_filters_are_in_the_session_act_again_and_their_lines_give_the_same_bytes(
    movie: Path, window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.viewer.open(str(movie.with_name("truth.csv")), plugin="outbid")
    dock, form = window.form("Outbid"), window.form("Lineage")
    layer = named(window, "truth")
    column = form.filter
    column.columns.setCurrentText("x")
    column.of.setCurrentText("mean of track")
    window.click(column.add_button)
    low, high = column.filters[0].slider.value()
    column.filters[0].slider.setValue((low + (high - low) / 4, high - (high - low) / 4))
    window.wait(lambda: 0 < int((layer.track_colors[:, 3] == 0).sum()) < len(layer.data))
    hidden, where = layer.track_colors[:, 3] == 0, column.where
    window.click(column.keep_button)
    dock.go(5)
    export = dock.page.form
    export.folder.setText(str(tmp_path))
    export.layers.choose(layer)
    assert "files are in" in Mouse(window, dock).next()
    session = next(tmp_path.glob(f"*{SUFFIX}"))
    assert [line.split()[1] for line in read_session(session).commands] == ["filter"]
    table = shlex.split(read_session(session).commands[0])[4]
    kept = (tmp_path / table).read_bytes()
    repeat(session, monkeypatch)
    assert (tmp_path / table).read_bytes() == kept
    window.clear()

    dock = opened(window, session).dock
    assert "In Lineage the filters of truth.csv act again" in dock.page.said.text()
    layer = window.viewer.layers["truth.csv"]
    assert (layer.track_colors[:, 3] == 1).all()
    form = window.form("Lineage")
    form.layers.choose(layer)
    assert form.filter.where == where
    assert np.array_equal(layer.track_colors[:, 3] == 0, hidden)
    form.layers.choose(window.viewer.layers["truth.csv filtered"])
    assert form.filter.where == []
    form.layers.choose(layer)
    assert form.filter.where == where


def test_conditions_by_layer_are_measured_beside_each_other(window: Window, tmp_path: Path) -> None:
    for seed, (name, step) in enumerate({"slow": 0.4, "slower": 0.3, "fast": 2.0, "faster": 1.8}.items()):
        movie = walk(WalkSettings(PersistentWalk(step, 0.0), 12, 8, (1, 40, 40), seed=seed))
        data, more, _ = tracks_layer(movie, name=name).in_plane().as_tuple()
        window.viewer.add_tracks(data, **more)
    dock = window.form("Outbid")
    dock.go(4)
    form = dock.page.form
    listed = {item.text(0): item for item in map(form.conditions.topLevelItem, range(4))}
    for name, item in listed.items():
        item.setText(1, "control" if name.startswith("slow") else "treated")
    named(window, "faster").name = "fastest"  # a line of another name is of the same layer
    assert [len(layers) for layers in form.conditions.conditions().values()] == [2, 2]
    window.click(form.fold_button)
    assert form.conditions.isVisible()
    said = Mouse(window, dock).next()
    assert "control" in said
    sheet = form.measured.found.sheets["movies"]
    assert sorted(sheet["group"].to_pylist()) == ["control"] * 2 + ["treated"] * 2
    window.shot("dock_conditions")
    form.save(tmp_path / "table.csv")
    assert formats.read_record(tmp_path / "table.csv")["conditions"] == form.table_record()["conditions"]
    assert {*form.table_record()["conditions"]["treated"]} == {"fast", "fastest"}
    for item in map(form.conditions.topLevelItem, range(4)):
        item.setText(1, "")
    run(window, form)
    assert "control" not in form.message.text()
    assert "group" not in form.measured.found.sheets["tracks"].column_names


@pytest.mark.parametrize("suffix", [*formats.WRITTEN])
def test_tracks_are_exported_in_every_format(
    suffix: str, movie: Path, window: Window, tmp_path: Path
) -> None:
    window.viewer.open(str(movie.with_name("truth.csv")), plugin="outbid")
    dock = window.form("Outbid")
    dock.go(5)
    form = dock.page.form
    form.folder.setText(str(tmp_path))
    for kind, box in form.boxes.items():
        window.tick(box, kind in ("tracks", "report"))
    form.suffix.setCurrentText(suffix)
    said = Mouse(window, dock).next()
    truth = read_tracks(movie.with_name("truth.csv"))
    found = read_tracks(tmp_path / f"truth_tracks{suffix}")
    assert len(found.links) == len(truth.links)
    assert np.allclose(np.sort(found.detections.position, axis=0), np.sort(truth.detections.position, axis=0))
    assert f"truth_tracks{suffix}, truth_report.html" in said


def test_nothing_is_enabled_that_cannot_act_and_every_act_says_what_it_did(window: Window) -> None:
    dock = window.form("Outbid")
    assert dock.next_button.text() == "Open file …"
    assert [dock.steps.button(number).isEnabled() for number in range(6)] == [True] + [False] * 5
    dock.pages[0].open("nothing.tif")
    assert "nothing.tif" in dock.page.said.text()
    form = window.form("Proofread")
    assert not any(
        button.isEnabled() for button in [*form.buttons.values(), form.save_button, form.run_button]
    )
    assert "no layer to proofread" in form.message.text()
    form.press("1")
    assert "No tracks are open" in form.message.text()
    rows = [[k, t, 10.0 * k, 2.0 * t] for k in range(3) for t in range(4)]
    window.viewer.add_tracks(np.array(rows), name="three")
    window.click(form.run_button)
    window.wait(lambda: form.asked is not None and form.is_idle)
    assert "Opened" in form.message.text()
    assert not form.buttons["Z"].isEnabled()
    for key, text in [("Z", "nothing to undo"), ("R", "nothing to redo"), ("4", "no alternative 4")]:
        form.press(key)
        window.wait(lambda: form.is_idle)
        assert text in form.message.text(), key
    form.press("0")
    window.wait(lambda: form.is_idle and len(form.session.pins) == 1)
    assert form.message.text() == "Track 0 in frame 0 is the last of its track; 1 other link changed."
    form.hide()
    assert named(window, "three").visible
    form.pins_path.unlink()


def test_a_bar_says_how_much_is_done_and_how_long_the_rest_takes(window: Window) -> None:
    from outbid.viewers.forms.said import ProgressBar

    bar = ProgressBar()
    bar.begin("Detect")
    bar._start -= 10.0
    bar.show_progress(5, 20, "frames")
    assert bar.text() == "5 of 20 frames · 30 s left"
    assert window.errors == []


def test_lines_have_the_settings_that_are_not_usual() -> None:
    given = {"max_distance": 2.0, "divisions": False, "spacing": [1, 1, 1], "periodic": [1, 2, 3]}
    assert options_of("track", given | {"fixed": {"noise": (1, 2, 3)}, "no_features": True}) == [
        "--max-distance", "2.0", "--no-divisions", "--fixed", "noise=1,2,3", "--periodic", "1", "2", "3",
        "--no-features",
    ]  # fmt: skip
    record = {"command": "track", "settings": {}, "input": {"name": "not there"}}
    assert command_lines([SavedLayer("tracks", "tracks", "t.csv", {}, record)]) == []


def test_what_is_no_session_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"command": "track"}))
    (tmp_path / "b.json").write_text("[1]")
    assert not is_session(tmp_path / "a.json")
    assert not is_session(tmp_path / "b.json")
    assert not is_session(tmp_path / "c.tif")


def test_two_docks_stand_side_by_side_or_as_tabs_and_the_window_keeps_its_size(window: Window) -> None:
    rows = [[k, t, 10.0 * k, 2.0 * t] for k in range(3) for t in range(4)]
    main = window.viewer.window._qt_window
    for size in ((1400, 850), SIZE):
        window.viewer.window.resize(*size)
        window.viewer.add_tracks(np.array(rows), name="three")
        first, second = (window.form(name).parent() for name in ("Outbid", "Lineage"))
        if size == SIZE:
            window.wait(lambda first=first, second=second: main.tabifiedDockWidgets(second) == [first])
            window.wait(lambda second=second: second.visibleRegion().boundingRect().height() > 400)
        else:
            window.wait(lambda first=first, second=second: second.x() > first.x() + first.width())
            assert min(first.height(), second.height()) > 500
        assert (main.width(), main.height()) == size
        window.shot(f"docks_{size[0]}")
        window.clear()
    window.viewer.window.resize(1400, 850)
