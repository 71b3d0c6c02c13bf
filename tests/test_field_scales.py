"""No unit is preferred: positions in meters or nanometers, grey values of any scale, give the same answer."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tifffile
from commands import succeed
from hypothesis import given, settings
from hypothesis import strategies as st

import outbid
from outbid import Detections, Tracks, match, read_detections, read_tracks, score
from outbid.data import sample
from outbid.formats.images.labels import detect_labels

EXPONENTS = st.integers(-30, 30)
"""Of 2: from 1e-9 to 1e9, exactly, so that every comparison is the same."""


def done(*words: object) -> str:
    """What a command that succeeds writes to stdout."""
    return succeed(*words).stdout


def walks(scale: float, frames: int = 12) -> Tracks:
    """The first frames of the sample, in another unit."""
    found = read_tracks(sample("walks"))
    found = found.take(found.detections.frame < frames)
    seen = found.detections
    return Tracks(Detections(seen.frame, seen.position * scale, seen.unit, seen.features), found.links)


@pytest.mark.smoke
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
    assert found[0] == pytest.approx(found[1], nan_ok=True, rel=1e-3)  # the automatic gate has four digits


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.sampled_from([1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9]))
def test_tables_keep_positions_of_any_unit(tmp_path_factory: pytest.TempPathFactory, scale: float) -> None:
    folder = tmp_path_factory.mktemp("scales")
    seen = walks(scale, 3).detections
    outbid.write_detections(folder / "a.csv", seen)
    for suffix in (".csv", ".parquet", ".xml", ".geff"):
        done("convert", folder / "a.csv", folder / f"b{suffix}")
        np.testing.assert_array_equal(read_detections(folder / f"b{suffix}").position, seen.position)


# ---------------------------------------------------------------- every command on tables


def files(folder: Path, exponent: int) -> list[tuple[float, Path]]:
    """The same tracks in two units."""
    for by in (1.0, 2.0**exponent):
        outbid.write_tracks(folder / f"in_{by}.parquet", walks(by), overwrite=True)
    return [(by, folder / f"in_{by}.parquet") for by in (1.0, 2.0**exponent)]


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(EXPONENTS)
def test_measures_have_the_unit_of_positions(tmp_path_factory: pytest.TempPathFactory, exponent: int) -> None:
    tables = []
    for by, path in files(tmp_path_factory.mktemp("measure"), exponent):
        output = path.with_suffix(".csv")
        done("measure", path, "-o", output, "--groups", path.with_suffix(".tsv"), "--overwrite")
        table = pd.concat([pd.read_csv(output), pd.read_table(path.with_suffix(".tsv"))])
        powers = {name: 2 if "px2" in name else int("px" in name) for name in table}
        numbers = table.select_dtypes("number")
        tables.append(numbers / [by ** powers[name] for name in numbers])
    pd.testing.assert_frame_equal(tables[0], tables[1], rtol=1e-4)


@settings(max_examples=5, deadline=None)
@given(EXPONENTS)
def test_advice_has_the_unit_of_positions(tmp_path_factory: pytest.TempPathFactory, exponent: int) -> None:
    said = []
    for by, path in files(tmp_path_factory.mktemp("advise"), exponent):
        found = json.loads(done("advise", path, "--json"))
        gates = [{**gate, "max_distance": gate["max_distance"] / by} for gate in found["gates"]]
        said.append((found["kappa"], found["best"], [list(gate.values()) for gate in gates]))
    assert said[0][:2] == pytest.approx(said[1][:2], rel=1e-2)
    for one, other in zip(said[0][2], said[1][2], strict=True):
        assert one == pytest.approx(other, rel=0.05, abs=0.02)  # gates are rounded for the eye


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(EXPONENTS)
def test_conditions_and_pages_of_any_unit(tmp_path_factory: pytest.TempPathFactory, exponent: int) -> None:
    kept, pages = [], []
    for by, path in files(tmp_path_factory.mktemp("filter"), exponent):
        output, page = path.with_suffix(".csv"), path.with_suffix(".html")
        done("filter", path, "-o", output, "--overwrite", "--where", f"mean(x) > {30 * by!r}")
        kept.append(len(read_tracks(output).detections))
        done("report", path, "-o", page, "--overwrite")
        pages.append(len(re.findall(r"<path", page.read_text())))
    assert 0 < kept[0] == kept[1] < len(walks(1.0).detections)
    assert pages[0] == pages[1]


@pytest.mark.smoke
@settings(max_examples=3, deadline=None)
@given(EXPONENTS)
def test_gated_links_of_any_unit(tmp_path_factory: pytest.TempPathFactory, exponent: int) -> None:
    """Gates, costs, regions and boxes are in the unit of the positions, for a table and in a stream."""
    kept = []
    for by, path in files(tmp_path_factory.mktemp("track"), exponent):
        output, side = path.with_name(f"out_{by}.parquet"), f"0:{40 * by!r}"
        for options in (
            ["--max-gap", 1],
            ["--stream", "--unmatched-cost", repr(by)],
            ["--region", f"{side},{side},{side}", "--max-gap", 1, "--gap-distance", repr(4 * by)],
            ["--spacing", 1, 1, 1, "--cost", "squared", "--periodic", *[repr(64 * by)] * 3],
        ):
            done("track", path, "-o", output, "--max-distance", repr(3 * by), *options, "--overwrite")
            kept.append(read_tracks(output).links.tolist())
    assert kept[:4] == kept[4:]
    assert min(map(len, kept)) > 100


@settings(max_examples=5, deadline=None)
@given(EXPONENTS)
def test_simulations_of_any_unit(tmp_path_factory: pytest.TempPathFactory, exponent: int) -> None:
    found = []
    for by in (1.0, 2.0**exponent):
        path = tmp_path_factory.mktemp("simulate") / "truth.parquet"
        words = ["--box", *[repr(20 * by)] * 3, "--step", repr(by), "--noise", *[repr(by / 8)] * 3]
        done("simulate", "-o", path, "--particles", 30, "--frames", 5, *words)
        found.append(read_tracks(path))
    assert found[0].links.tolist() == found[1].links.tolist()
    np.testing.assert_allclose(found[1].detections.position / 2.0**exponent, found[0].detections.position)


@settings(max_examples=8, deadline=None)
@given(EXPONENTS, st.sampled_from(["jonker_volgenant", "sparsified", "auction", "hungarian"]))
def test_assignments_have_the_unit_of_costs(
    tmp_path_factory: pytest.TempPathFactory, exponent: int, solver: str
) -> None:
    path, costs = tmp_path_factory.mktemp("assign") / "a.npy", np.random.default_rng(0).random((20, 20))
    found = []
    for by in (1.0, 2.0**exponent):
        np.save(path, costs * by)
        found.append(json.loads(done("assign", path, "--solver", solver, "--json"))["cost"] / by)
    assert found[0] == pytest.approx(found[1], rel=1e-9)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_what_is_learned_has_the_unit_of_positions(scale: float, tmp_path: Path) -> None:
    models = []
    for by in (1.0, scale):
        outbid.write_detections(tmp_path / "a.csv", walks(by).detections, overwrite=True)
        done("learn", tmp_path / "a.csv", "-o", tmp_path / "m.json", "--overwrite")
        model = json.loads((tmp_path / "m.json").read_text())["known"]
        models.append({name: np.array(values) for name, values in model.items()})
    for name, values in models[0].items():
        by = scale if name in ("step", "noise", "gate") else 1.0
        np.testing.assert_allclose(models[1][name] / by, values, rtol=0.05, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_centroids_of_labels_have_the_unit_of_voxels(scale: float) -> None:
    labels = np.random.default_rng(0).integers(0, 5, (3, 1, 9, 9))
    one, other = (detect_labels(labels, spacing=(by, by, by)).position / by for by in (1.0, scale))
    np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("exponent", [-5, -6, -9, 6, 12])
def test_spots_depend_neither_on_the_unit_of_grey_values_nor_on_that_of_voxels(
    exponent: int, tmp_path: Path
) -> None:
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
        done("detect", tmp_path / "a.tif", "-o", tmp_path / "o.csv", "--overwrite", "--spacing", *[by] * 3)
        found.append(read_detections(tmp_path / "o.csv"))
    # In single precision: one dim spot or another is found with the one unit alone, or moves.
    frame = found[0].frame[:, None] * 100.0, found[1].frame[:, None] * 100.0  # farther than any spot
    pixels = found[1].position / 10.0**exponent
    pairs = match(found[0].position + frame[0], pixels + frame[1], 0.05)
    assert len(pairs.source) >= 0.95 * max(map(len, found)) > 60
