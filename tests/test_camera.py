"""The camera: photons where theory puts them, streams of their own, and spots that are found again."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import succeed
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from outbid import Detections, DetectionSettings, SettingsError, detect, match, read_record, read_tracks
from outbid.formats.images.folders import open_movie
from outbid.simulate.camera import Camera, expected_photons, render, write_movie
from outbid.simulate.motions import PersistentWalk
from outbid.simulate.walks import WalkSettings, walk

TRUTH = Detections.from_table([0, 1, 3], [[2, 10, 10], [2, 12, 10], [3, 5, 6]], unit="micrometer")
SMALL = Camera(shape=(5, 20, 22), spacing=(2.0, 0.5, 0.5), psf=(1.5, 0.6, 0.6))


@pytest.mark.smoke
@given(st.floats(3, 6), st.floats(8, 12), st.floats(8, 12))
@settings(max_examples=examples(20))
def test_photons_are_those_of_the_integrated_gaussian(z: float, y: float, x: float) -> None:
    camera = Camera(shape=(10, 21, 21), psf=(1.0, 1.5, 1.2), background=3.0)
    photons = expected_photons(np.array([[z, y, x]]), camera) - camera.background
    share = [
        np.diff(norm.cdf(np.arange(n + 1) - 0.5, centre, width))
        for n, centre, width in zip(camera.shape, (z, y, x), camera.psf, strict=True)
    ]
    peak = np.prod([2 * norm.cdf(0.5 / width) - 1 for width in camera.psf])
    wanted = camera.amplitude / peak * np.einsum("i,j,k", *share)
    np.testing.assert_allclose(photons, wanted, atol=camera.amplitude * 1e-5)


def test_signal_to_noise_is_what_was_asked_for() -> None:
    camera = Camera(snr=4, background=10)
    assert camera.amplitude / np.sqrt(camera.amplitude + 10) == pytest.approx(4)


def test_noise_is_that_of_photons() -> None:
    camera = Camera(shape=(4, 100, 100), background=25.0, gain=2.0, offset=100.0)
    empty = Detections.from_table([0, 1], [[0, -500, 0]] * 2)  # out of sight
    image = next(render(empty, camera, seed=3)).astype(float)
    assert image.mean() == pytest.approx(100 + 2 * 25, rel=0.002)
    assert image.var() == pytest.approx(4 * 25, rel=0.03)


def test_a_part_of_the_frames_is_that_part_of_the_movie() -> None:
    whole = list(render(TRUTH, SMALL, seed=5))
    assert len(whole) == 4, "a frame without particles is a frame"
    for frame in (1, 3):
        (alone,) = render(TRUTH, SMALL, frames=range(frame, frame + 1), seed=5)
        np.testing.assert_array_equal(alone, whole[frame])
    assert (next(render(TRUTH, SMALL, seed=6)) != whole[0]).any()


@pytest.mark.smoke
def test_the_movie_is_read_back_with_its_voxel(tmp_path: Path) -> None:
    assert write_movie(tmp_path / "a.ome.tif", TRUTH, SMALL, seed=5) == 0
    movie = open_movie(tmp_path / "a.ome.tif")
    assert (movie.axes, movie.spacing, movie.unit) == ("TZYX", (2.0, 0.5, 0.5), "micrometer")
    np.testing.assert_array_equal(list(movie.frames()), list(render(TRUTH, SMALL, seed=5)))
    with pytest.raises(SettingsError, match="exists"):
        write_movie(tmp_path / "a.ome.tif", TRUTH, SMALL)
    bright = Camera(shape=(1, 9, 9), snr=400.0)
    assert write_movie(tmp_path / "b.ome.tif", TRUTH.take(slice(0, 1)), bright) == 0
    over = Detections.from_table([0], [[0, 4, 4]])
    assert write_movie(tmp_path / "c.ome.tif", over, bright) > 0
    small = ("--particles", 1, "--frames", 1, "--box", 1, 9, 9, "--movie", tmp_path / "d.ome.tif")
    for snr, said in ((4, False), (400, True)):
        done = succeed("simulate", "-o", tmp_path / "truth.csv", *small, "--snr", snr, "--overwrite")
        assert ("saturated" in done.stderr) is said


@pytest.mark.parametrize("name", ["snr", "background", "gain", "offset"])
def test_a_camera_checks_itself(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        Camera(**{name: -1.0})  # type: ignore[arg-type]
    with pytest.raises(SettingsError):
        Camera(psf=(0, 1, 1))


@pytest.mark.slow
@pytest.mark.parametrize("particles", [100, 500])
@pytest.mark.parametrize("given_radius", [True, False])
def test_spots_at_signal_to_noise_4(particles: int, given_radius: bool) -> None:
    """512 x 512 x 10: JSC .95 and more, within .3 pixels of the truth in the plane."""
    box = (9.0, 511.0, 511.0)
    truth = walk(WalkSettings(PersistentWalk(2.0, 0.8), particles, 2, box, seed=1)).detections
    chosen = DetectionSettings(radius=2.5, radius_z=1.7) if given_radius else DetectionSettings()
    seen, _ = detect(render(truth, Camera(), seed=1), chosen)
    paired = match(
        seen.position, truth.position, 5.0, source_block=seen.frame, target_block=truth.frame
    )  # fmt: skip
    hits = len(paired.source)
    assert hits / (len(seen) + len(truth) - hits) >= 0.95
    error = (seen.position[paired.source] - truth.position[paired.target])[:, 1:]
    assert np.sqrt((error**2).sum(axis=1).mean()) <= 0.3


def test_a_movie_by_command_is_tracked_by_command(tmp_path: Path) -> None:
    """Simulate, detect, track and convert, as a user would, through TIFF, GEFF or CSV, and XML."""
    pytest.importorskip("geff", reason="GEFF is not installed: pip install 'outbid[geff]'")

    def run(*words: object) -> None:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("outbid")), *map(str, words)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    run("simulate", "-o", tmp_path / "truth.csv", "--particles", 30, "--frames", 3, "--box", 9, 90, 90,
        "--movie", tmp_path / "movie.ome.tif", "--snr", 8)  # fmt: skip
    run("detect", tmp_path / "movie.ome.tif", "-o", tmp_path / "seen.geff")
    run("track", tmp_path / "seen.geff", "-o", tmp_path / "tracks.xml", "--max-distance", 4)
    run("convert", tmp_path / "tracks.xml", tmp_path / "tracks.isbi.xml")
    tracks, truth = read_tracks(tmp_path / "tracks.xml"), read_tracks(tmp_path / "truth.csv")
    assert len(tracks.links) > 0.8 * len(truth.links)
    assert len(read_tracks(tmp_path / "tracks.isbi.xml").links) == len(tracks.links)
    assert read_record(tmp_path / "tracks.isbi.xml")["command"] == "track"
