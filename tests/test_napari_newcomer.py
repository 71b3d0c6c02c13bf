"""A newcomer clicks through the pages of the dock, whatever is open: each act ends in a sentence."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from commands import assert_refused, run, succeed
from napari_scenes import Window, is_settled

from outbid import Detections, read_detections, write_detections

PROC = Path("/proc/1")
"""A folder in which nobody can write, not even root."""


def spots(frames: int = 6) -> Detections:
    """Eight particles in a plane, with an interval between them."""
    frame, number = np.repeat(np.arange(frames), 8), np.tile(np.arange(8.0), frames)
    y, x = 5 + 4 * number, 4 + 4.5 * number + 0.3 * np.sin(7.0 * frame + number)
    return Detections.from_table(frame, np.column_stack([0 * y, y, x]))


def movie(frames: int = 6) -> Any:
    """Their image."""
    image = np.random.default_rng(0).poisson(20, (frames, 42, 42)).astype(np.uint16)
    for frame, (_, y, x) in zip(spots(frames).frame, spots(frames).position.round().astype(int), strict=True):
        image[frame, y - 1 : y + 2, x - 1 : x + 2] += 150
    return image


def settled(window: Window, dock: Any) -> None:
    page = dock.page
    window.wait(lambda: not page.busy() and (page.title != "Detect" or is_settled(page.form)), 100)


def said_on(dock: Any) -> str:
    page = dock.page
    return str((page.said if hasattr(page, "said") else page.form.message).text())


def click_through(window: Window, dock: Any) -> dict[str, str]:
    """Go to each page that can be opened, and act there; what each says in the end."""
    said = {}
    for number, page in enumerate(dock.pages):
        step = dock.steps.button(number)
        if step.isEnabled():
            window.click(step)
            settled(window, dock)
            assert said_on(dock), page.title
            if number and dock.page.act_text():
                assert dock.next_button.isEnabled()
                window.click(dock.next_button)
                settled(window, dock)
            said[page.title] = said_on(dock)
            assert said[page.title]
    return said


def test_an_empty_window_and_what_is_no_movie_lead_nowhere_and_say_why(window: Window) -> None:
    dock = window.form("Outbid")
    assert click_through(window, dock).keys() == {"Movie"}
    assert dock.next_button.text() == "Open file …"
    for image, rgb, said in (
        (np.zeros((20, 20), np.uint16), False, "2 axes; needed are t, y, x"),
        (np.zeros((20, 20, 3), np.uint8), True, "has colours"),
    ):
        layer = window.viewer.add_image(image, rgb=rgb)
        found = click_through(window, dock)
        assert found.keys() == {"Movie"}
        assert said in found["Movie"]
        assert not dock.next_button.isEnabled()
        window.viewer.layers.remove(layer)


def test_a_table_without_images_leads_past_detection(window: Window, tmp_path: Path) -> None:
    write_detections(tmp_path / "spots.csv", spots())
    dock = window.form("Outbid")
    dock.pages[0].open(str(tmp_path / "spots.csv"))
    assert said_on(dock) == "There is no movie beside spots.csv: you can go on."
    assert dock.next_button.text() == "Next: Track ▶"
    window.click(dock.next_button)
    assert dock.page.title == "Track"
    assert "links them to tracks" in said_on(dock)
    dock.go(0)
    said = click_through(window, dock)
    assert said.keys() == {"Movie", "Track", "Check", "Measure", "Export"}
    assert f"files are in {tmp_path}" in said["Export"]


def test_a_movie_of_one_frame_has_spots_and_no_link_to_check(
    window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    window.viewer.add_image(movie(1), name="one")
    dock = window.form("Outbid")
    said = click_through(window, dock)
    assert said["Movie"].startswith("one: 1 frame of 42 x 42 voxels")
    assert "8 spots" in said["Detect"]
    assert "in 1 frame," in said["Detect"]
    assert said["Check"].endswith("0 links. There is no link to check.")
    assert not dock.pages[3].correct_button.isEnabled()
    assert "files are in" in said["Export"]


@pytest.mark.skipif(not PROC.is_dir(), reason="there is no folder in which root cannot write")
def test_a_folder_that_cannot_be_written_is_said_and_nothing_is_lost(
    window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_detections(tmp_path / "spots.csv", spots())
    dock = window.form("Outbid")
    dock.pages[0].open(str(tmp_path / "spots.csv"))
    click_through(window, dock)
    dock.go(3)
    window.click(dock.page.correct_button)
    form = dock.page.form
    window.wait(lambda: form.asked is not None and form.is_idle)
    links = len(form.session.tracks.links)
    form.file.setText(str(PROC / "spots_proofread.csv"))
    form.press("0")
    window.wait(lambda: form.is_idle and "cannot be written" in form.message.text())
    assert "Nothing was changed" in form.message.text()
    assert len(form.session.tracks.links) == links
    window.click(form.save_button)
    window.wait(lambda: form.is_idle and "Choose another file or folder" in form.message.text())
    form.file.setText(str(tmp_path / "spots_proofread.csv"))
    form.press("0")
    window.wait(lambda: form.is_idle and len(form.session.pins) == 1)
    measure = dock.pages[4].form
    measure.save(PROC / "table.csv")
    assert str(PROC / "table.csv") in measure.message.text()
    dock.go(5)
    dock.page.form.folder.setText(str(PROC))
    window.click(dock.next_button)
    settled(window, dock)
    assert "Choose another file or folder" in said_on(dock)
    assert dock.next_button.isEnabled()


def test_frames_larger_than_the_memory_are_refused_with_what_to_do(
    window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence names parts that fit; such a part is searched."""
    path = tmp_path / "movie.tif"
    tifffile.imwrite(path, movie(), imagej=True, metadata={"axes": "TYX"})
    monkeypatch.setattr("outbid.work.jobs.free_memory", lambda: 27_000)
    monkeypatch.setattr("outbid.work.jobs._WHOLE_FRAMES", 0)
    dock = window.form("Outbid")
    window.viewer.add_image(movie(), name="large")
    dock.go(1)
    settled(window, dock)
    assert "more than the 0.0 GB of memory that are free" in said_on(dock)
    window.click(dock.next_button)
    settled(window, dock)
    assert "outbid detect MOVIE -o part1.csv --region :,0:16,:" in said_on(dock)
    assert_refused(run("detect", path, "-o", tmp_path / "whole.csv"), 4, "Search it in parts")
    succeed("detect", path, "-o", tmp_path / "part1.csv", "--region", ":,0:16,:")
    assert {*read_detections(tmp_path / "part1.csv").frame} == {*range(6)}


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None never ends")
@pytest.mark.parametrize("used", ["PySide6", "PyQt6"])
def test_python_does_not_run_out_of_references_with_pyside(used: str) -> None:
    """PySide6 6.12 takes one of None at each call without a result."""
    script = (
        f"import sys; sys.modules['{used}'] = sys; import outbid.viewers.forms; print(sys.getrefcount(None))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (int(done.stdout) > 1 << 39) == (used == "PySide6")
