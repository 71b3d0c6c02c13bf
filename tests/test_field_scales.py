"""No unit is preferred: positions in meters or nanometers, grey values of any scale, give the same answer."""

from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import run
from hypothesis import given, settings
from hypothesis import strategies as st

import outbid
from outbid import Detections, Tracks, read_detections, read_tracks, score
from outbid.data import sample

EXPONENTS = st.integers(-30, 30)
"""Of 2: from 1e-9 to 1e9, exactly, so that every comparison is the same."""


def walks(scale: float, frames: int = 12) -> Tracks:
    """The first frames of the sample, in another unit."""
    found = read_tracks(sample("walks"))
    found = found.take(found.detections.frame < frames)
    seen = found.detections
    return Tracks(Detections(seen.frame, seen.position * scale, seen.unit, seen.features), found.links)


@settings(max_examples=15, deadline=None)
@given(EXPONENTS)
def test_gated_links_do_not_depend_on_the_unit(exponent: int) -> None:
    scale = 2.0**exponent
    links = [
        outbid.track(walks(by).detections, max_distance=3.0 * by, max_gap=1).tracks.links.tolist()
        for by in (1.0, scale)
    ]
    assert links[0] == links[1]
    assert len(links[0]) > 500


@settings(max_examples=8, deadline=None)
@given(EXPONENTS)
def test_scores_do_not_depend_on_the_unit(exponent: int) -> None:
    scale = 2.0**exponent
    found = []
    for by in (1.0, scale):
        truth = walks(by)
        seen = truth.detections
        moved = Detections(seen.frame, seen.position + 0.01 * by, seen.unit)
        values = dict(score(Tracks(moved, truth.links[::2]), truth).values)
        assert values.pop("rmse") == pytest.approx(0.01 * by * 3**0.5, rel=1e-6)
        found.append(values)
    # The automatic gate is rounded to four decimal digits.
    assert found[0] == pytest.approx(found[1], nan_ok=True, rel=1e-3)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.sampled_from([1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9]))
def test_tables_keep_positions_of_any_unit(tmp_path_factory: pytest.TempPathFactory, scale: float) -> None:
    folder = tmp_path_factory.mktemp("scales")
    seen = walks(scale, 3).detections
    outbid.write_detections(folder / "a.csv", seen)
    for suffix in (".csv", ".parquet", ".xml", ".geff"):
        assert run("convert", folder / "a.csv", folder / f"b{suffix}").exit_code == 0
        np.testing.assert_array_equal(read_detections(folder / f"b{suffix}").position, seen.position)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_learned_links_do_not_depend_on_the_unit(scale: float) -> None:
    links = [{tuple(link) for link in outbid.track(walks(by).detections).tracks.links} for by in (1, scale)]
    assert len(links[0] & links[1]) >= 0.999 * len(links[0] | links[1])


@pytest.mark.parametrize("exponent", [-5, -6, -9, 6, 12])
def test_spots_do_not_depend_on_the_unit_of_grey_values(exponent: int, tmp_path: Path) -> None:
    """Case 07."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:64, :64]
    place = rng.random((12, 2)) * 50 + 7
    frames = []
    for _ in range(6):
        light = 20 + sum(200 * np.exp(-((y - a) ** 2 + (x - b) ** 2) / (2 * 1.3**2)) for a, b in place)
        frames.append(rng.poisson(light))
        place = place + rng.normal(0, 0.3, place.shape)
    movie = np.array(frames) / np.max(frames)
    found = []
    for by in (1.0, 10.0**exponent):
        image = (movie * by).astype(np.float32)
        tifffile.imwrite(tmp_path / "a.tif", image, photometric="minisblack", metadata={"axes": "TYX"})
        done = run("detect", tmp_path / "a.tif", "-o", tmp_path / "o.csv", "--overwrite")
        assert done.exit_code == 0, done.stderr
        found.append(read_detections(tmp_path / "o.csv"))
    assert len(found[0]) == len(found[1]) > 60
    np.testing.assert_allclose(found[0].position, found[1].position, atol=0.05)  # pixels; single precision
