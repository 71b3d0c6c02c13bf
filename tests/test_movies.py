"""Real movies from images to a page, each step with one command, as a user would."""

import importlib.util
from pathlib import Path
from shutil import which

import numpy as np
import pytest
from commands import headless, succeed

from outbid import read_detections, read_tracks

MOVIES = {  # what the file does not state; frames; tracks that live through all of them, at least
    "drosophila_nuclei/tif": (["--spacing", 5, 1, 1], 16, 55),
    "faketracks/FakeTracks.tif": ([], 50, 2),
    "colloids_png": (["--dark"], 30, 300),
    "volumes_3spots": ([], 5, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.nightly) if name == "colloids_png" else name for name in MOVIES],
)
def test_a_command_for_each_step(name: str, real_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pillow is not installed: pip install 'outbid[images]'")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'outbid[report]'")
    given, frames, least = MOVIES[name]
    spots, tracks, page = tmp_path / "spots.csv", tmp_path / "tracks.csv", tmp_path / "page.html"
    for command in (
        ["detect", real_data / name, "-o", spots, *given],
        ["track", spots, "-o", tracks],
        ["report", tracks, "-o", page],
        ["convert", tracks, tmp_path / "tracks.xml"],
    ):
        succeed(*command)
    found = read_tracks(tracks)
    assert len(read_detections(spots)) == len(found.detections)
    assert len(read_tracks(tmp_path / "tracks.xml").links) == len(found.links)
    first, last = (found.track_id[found.detections.frame == frame] for frame in (0, frames - 1))
    assert len(np.intersect1d(first, last)) >= least
    assert page.read_text("utf-8").count("<img") >= 6
    if "nuclei" not in name or which("Xvfb") is None or importlib.util.find_spec("napari") is None:
        return  # one picture is enough: each takes napari seconds to begin
    picture = tmp_path / "picture.png"
    seen = headless(real_data / name, spots, tracks, *given, "--screenshot", picture)
    assert seen.returncode == 0, seen.stderr
    assert seen.stderr.startswith("tif, spots.csv, tracks.csv; ")
    assert picture.stat().st_size > 100_000
