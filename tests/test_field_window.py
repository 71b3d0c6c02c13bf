"""What a new user met in the window: boxes without numbers, the wrong truth, no way to doubtful links."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari_scenes import Window, named, run, walks

from outbid import read_tracks
from outbid.data import sample
from outbid.viewers import layers


def tracks_layer(window: Window, name: str) -> Any:
    return window.viewer.add_tracks(layers.tracks_layer(read_tracks(sample("walks"))).data[:500], name=name)


@pytest.mark.parametrize("form", ["Detect spots", "Track particles"])
def test_the_size_of_a_voxel_can_be_read(form: str, window: Window) -> None:
    """With NoButtons, PySide6 6.12 leaves the line of a box one pixel wide."""
    window.viewer.add_image(np.zeros((3, 4, 32, 32), np.uint8), scale=(1, 2, 0.25, 0.25), name="movie")
    boxes = window.form(form).source.voxel.boxes
    for box, text in zip(boxes, ("2", "0.25", "0.25"), strict=True):
        line = box.lineEdit()
        assert (box.text(), line.isVisible()) == (text, True)
        assert line.width() > line.fontMetrics().horizontalAdvance(text)
    window.shot(f"voxel_{form.split()[0].lower()}")


def test_links_are_stepped_through_without_a_truth(window: Window) -> None:
    walks(window)
    form = window.form("Track particles")
    assert form.colours.isVisible()
    assert not form.uncertain.isVisible()
    window.write(form.rows["max_distance"], "2")
    run(window, form)
    assert form.uncertain.isVisible()
    window.click(form.uncertain.next_button)
    first = form.uncertain.where.text()
    assert first.startswith("link 1 of "), first
    assert "track " in first, first
    frame = int(first.split(" to ")[1].split(",")[0])
    assert round(window.viewer.dims.point[0]) == frame
    window.click(form.uncertain.next_button)
    assert form.uncertain.where.text().startswith("link 2 of ")
    window.click(form.uncertain.previous_button)
    assert form.uncertain.where.text() == first
    window.shot("track_doubts")


def test_the_truth_is_what_was_opened_last(window: Window) -> None:
    walks(window)
    tracks_layer(window, "older")
    form = window.form("Track particles")
    window.write(form.rows["max_distance"], "2")
    run(window, form)
    scoring = window.form("Score against truth")
    assert (scoring.first.currentText(), scoring.second.currentText()) == ("Tracks of walks", "older")
    assert scoring.message.text() == ""
    tracks_layer(window, "truth")
    assert (scoring.first.currentText(), scoring.second.currentText()) == ("Tracks of walks", "truth")
    assert "Is truth, which was opened last, the truth? There are 2" in scoring.message.text()
    assert named(window, "Tracks of walks") is scoring.first.layer()


def test_a_refused_table_gives_its_reason(tmp_path: Path) -> None:
    from outbid import InputError
    from outbid.viewers.plugin import read_positions

    (tmp_path / "a.csv").write_text("Slice,X,Y\n1,2,3\n")
    reader = read_positions(str(tmp_path / "a.csv"))
    assert reader is not None
    with pytest.raises(InputError, match="No column for frame"):
        reader(str(tmp_path / "a.csv"))
    (tmp_path / "b.csv").write_text("name,score\na,1\n")
    assert read_positions(str(tmp_path / "b.csv")) is None
