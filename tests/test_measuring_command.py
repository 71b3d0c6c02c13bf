"""The command `outbid measure`, and what runs before it: the interval in run records, drift out of tracks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from commands import assert_refused, run, succeed, written
from PIL import Image

import outbid
from outbid import Detections, Tracks
from outbid.viewers.motion import plot


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Tracks in pixels, of two kinds."""
    rng = np.random.default_rng(0)
    place = np.cumsum(rng.normal(0, 1, (12, 15, 2)), axis=1) + 50 * np.arange(12)[:, None, None]
    frame = np.tile(np.arange(15), 12)
    features = {"label": np.repeat(np.arange(12), 15), "kind": np.repeat(np.arange(12) % 2, 15)}
    seen = Detections.from_table(frame, place.reshape(-1, 2), features=features)
    outbid.write_tracks(tmp_path / "tracks.csv", Tracks.from_track_ids(seen, seen.features["label"]))
    return tmp_path / "tracks.csv"


@pytest.mark.smoke
def test_a_table_has_a_row_a_track_and_units(table: Path) -> None:
    output = table.with_name("table.csv")
    done = succeed("measure", table, "-o", output, "--spacing", 2, 0.5, 0.5, "--interval", 2)
    assert "12 tracks, diffusion" in done.stderr
    assert "µm²/s" in done.stderr
    found = pd.read_csv(output)
    assert len(found) == 12
    assert found.diffusion_um2_per_s.mean() == pytest.approx(0.0625, rel=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".xlsx"])
def test_every_kind_of_table_holds_the_same(table: Path, suffix: str) -> None:
    output = table.with_name("table" + suffix)
    succeed("measure", table, "-o", output)
    read = {".csv": pd.read_csv, ".tsv": pd.read_table, ".parquet": pd.read_parquet, ".xlsx": pd.read_excel}
    due = outbid.measure(table).to_dataframe()
    pd.testing.assert_frame_equal(read[suffix](output), due, check_dtype=False, rtol=1e-12)


def test_parquet_states_the_unit_of_each_column(table: Path) -> None:
    output = table.with_name("table.parquet")
    succeed("measure", table, "-o", output, "--interval", 0.1)
    field = parquet.read_schema(output).field("speed_mean_px_per_s")
    assert field.metadata[b"unit"] == b"px/s"


def test_groups_curves_comparison_and_a_plot(table: Path) -> None:
    names = {"groups": "g.csv", "curves": "c.csv", "comparison": "d.csv", "plot": "p.png"}
    options = [word for name, file in names.items() for word in (f"--{name}", table.with_name(file))]
    succeed("measure", table, "-o", table.with_name("t.xlsx"), "--group", "kind", *options)
    assert pd.read_csv(table.with_name("g.csv"))["group"].tolist() == ["kind 0", "kind 1"]
    assert {"msd", "velocity_autocorrelation"} < set(pd.read_csv(table.with_name("c.csv")).curve)
    assert "diffusion" in pd.read_csv(table.with_name("d.csv")).quantity.tolist()
    with Image.open(table.with_name("p.png")) as picture:
        assert np.ptp(np.asarray(picture.convert("L"))) > 200
    sheets = pd.read_excel(table.with_name("t.xlsx"), sheet_name=None)
    assert list(sheets) == ["tracks", "groups", "movies", "curves", "comparison"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_run_record_of_a_table_repeats_the_run(table: Path, suffix: str) -> None:
    one, two = (table.with_name(name + suffix) for name in ("one", "two"))
    succeed("measure", table, "-o", one, "--interval", 3, "--axes", "x", "--seed", 7)
    record = outbid.read_record(one)
    assert (record["command"], record["settings"]["interval"], record["seed"]) == ("measure", 3, 7)
    succeed("measure", table, "-o", two, "--config", one)
    assert two.read_bytes() == one.read_bytes()


def test_two_files_are_two_conditions(table: Path) -> None:
    other = written(table.with_name("treated.csv"), table.read_bytes())
    output, difference = table.with_name("t.csv"), table.with_name("d.csv")
    succeed("measure", table, other, "-o", output, "--comparison", difference)
    assert pd.read_csv(output).groupby("group").size().to_dict() == {"tracks": 12, "treated": 12}
    assert (pd.read_csv(difference).difference == 0).any()


def test_outputs_are_refused_before_anything_is_read(table: Path) -> None:
    assert_refused(run("measure", table, "-o", table.with_name("t.txt")), 2, "end in .csv")
    assert_refused(run("measure", table, "-o", table), 2, "belongs to the input")
    assert_refused(run("measure", table, "-o", table.with_name("no") / "t.csv"), 2, "no folder")
    assert_refused(run("measure", table, "-o", table.with_name("t.csv"), "--group", "size"), 3, "no column")
    succeed("measure", table, "-o", table.with_name("t.csv"))
    assert_refused(run("measure", table, "-o", table.with_name("t.csv")), 2, "exists")


# ---------------------------------------------------------------- what comes before


def test_the_interval_of_a_movie_reaches_the_table(tmp_path: Path) -> None:
    import tifffile

    rng = np.random.default_rng(1)
    frames = rng.poisson(100, (6, 64, 64)).astype(np.uint16)
    rows, columns = np.mgrid[:64, :64]
    for k in range(6):
        for y, x in ((15, 20 + k), (45, 30 - k), (30, 50)):
            spot = np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / 4.5)
            frames[k] += (400 * spot).astype(np.uint16)
    movie, spots, tracks = (tmp_path / name for name in ("movie.tif", "spots.csv", "tracks.csv"))
    known = {"axes": "TYX", "unit": "um", "finterval": 0.25}
    tifffile.imwrite(movie, frames, imagej=True, resolution=(4, 4), metadata=known)
    succeed("detect", movie, "-o", spots)
    succeed("track", spots, "-o", tracks, "--max-distance", 1)
    assert outbid.read_record(tracks)["input"]["interval"] == 0.25
    succeed("measure", tracks, "-o", tmp_path / "table.csv")
    found = pd.read_csv(tmp_path / "table.csv")
    assert (found.speed_mean_um_per_s > 0.8).sum() == 2


def drifting(path: Path) -> None:
    rng = np.random.default_rng(2)
    shift = np.array([[0.0, 0.0], [0.0, 3.0], [0.0, 5.0]])
    place = rng.uniform(0, 90, (5, 1, 2)) + shift
    seen = Detections.from_table(np.tile(np.arange(3), 5), place.reshape(-1, 2))
    links = np.array([[k, k + 5] for k in range(10)])
    learned = {"drift": shift.tolist(), "axes": "yx", "interval": 1, "time": None}
    record = {"command": "track", "version": "0", "input": {}, "learned": learned, "settings": {}}
    outbid.write_tracks(path, Tracks(seen, links), record=record)


def test_a_learned_drift_is_written_out_of_tracks(tmp_path: Path) -> None:
    source, output = tmp_path / "tracks.csv", tmp_path / "still.csv"
    drifting(source)
    succeed("convert", source, output, "--subtract-drift")
    still = outbid.read_tracks(output).to_dataframe().groupby("track_id")[["y", "x"]].agg(np.ptp)
    assert still.to_numpy() == pytest.approx(0, abs=1e-9)
    assert outbid.read_record(output)["learned"]["drift"] is None
    assert_refused(run("convert", output, tmp_path / "b.csv", "--subtract-drift"), 2, "states no drift")


def test_measuring_subtracts_it_too_and_says_so(tmp_path: Path) -> None:
    drifting(tmp_path / "tracks.csv")
    done = run("measure", tmp_path / "tracks.csv", "-o", tmp_path / "table.csv")
    assert "Drift is subtracted: up to 5 pixel" in done.stderr
    assert pd.read_csv(tmp_path / "table.csv").path_px.to_numpy() == pytest.approx(0, abs=1e-9)


def test_a_plot_shows_the_largest_lineage() -> None:
    """A mother divides after frame 2 into two, of which one divides again."""
    place = [[0, 0, x] for x in range(10)]
    seen = Detections.from_table([0, 1, 2, 3, 3, 4, 5, 6, 6, 6], place)
    links = np.array([[0, 1], [1, 2], [2, 3], [2, 4], [3, 5], [5, 6], [6, 7], [6, 8]])
    found = outbid.measure(Tracks(seen, links), interval=10.0)
    figure = plot(found)
    tree = figure.axes[-1]
    assert len(figure.axes) == 4
    assert (tree.get_title(), tree.get_xlabel()) == ("Lineage of 5 tracks", "time (s)")
    times = {float(time) for line in tree.lines for time in line.get_xdata()}
    assert sorted(times) == pytest.approx([0, 20, 30, 50, 60])
    assert len(plot(outbid.measure(Tracks(seen, links[:3]))).axes) == 3


def test_a_plot_leaves_out_points_without_a_value() -> None:
    """Uncertain links leave a lag without a mean and with an error."""
    seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 3]])
    found = outbid.measure(Tracks(seen, np.array([[0, 1], [1, 2]])))
    rows = found.curves.to_pylist()
    lag = next(row for row in rows if row["curve"] == "msd")
    lag |= {"value": None, "error": 1.0}
    figure = plot(replace(found, curves=pa.Table.from_pylist(rows, found.curves.schema)))
    assert [len(line.get_xdata()) for line in figure.axes[0].lines if line.get_marker() == "o"] == [
        sum(row["curve"] == "msd" for row in rows)
    ]
