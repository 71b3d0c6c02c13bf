"""The same numbers at every door: one movie with voxels and an interval goes through all of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import succeed, written
from doors import ALONE, CLUSTER, COMMANDS, FILES, INTERVAL, LABELS, VOXEL, Door

from outbid import (
    Detections,
    SettingsError,
    Tracks,
    measure,
    read_detections,
    read_record,
    read_tracks,
    track,
    write_tracks,
)
from outbid.learned.live import Live
from outbid.particles.calibration import Calibration
from outbid.particles.detections import with_time
from outbid.pins import Pin, append_pin
from outbid.pins.pin import KINDS
from outbid.pins.table import _HEADER

BOX = (8.0, 60.0, 60.0)


@pytest.fixture(scope="module")
def truth() -> Tracks:
    """Thirty Brownian particles that are far apart, in micrometers, 20 s a frame."""
    rng = np.random.default_rng(5)
    begin = np.column_stack([np.full(30, 4.0), *np.divmod(np.arange(30), 6)]) * (1, 10, 10) + (0, 5, 5)
    steps = rng.normal(0, 0.2, (12, 30, 3))
    place = begin + np.cumsum(steps, axis=0)
    frame = np.repeat(np.arange(12), 30)
    seen = Detections.from_table(frame, place.reshape(-1, 3).round(6), unit="micrometer")
    return Tracks.from_track_ids(with_time(seen, INTERVAL), np.tile(np.arange(30), 12))


@pytest.fixture(scope="module")
def file(truth: Tracks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("truth") / "tracks.csv"
    write_tracks(path, truth, record={"command": "simulate"})
    return path


def numbers(tracks: Tracks | Path, **given: Any) -> dict[str, float]:
    """Diffusion coefficient and speed of all tracks, by the names that state their units."""
    groups = measure(tracks, **given).groups
    return {
        name: groups[name][0].as_py()
        for name in groups.column_names
        if name.startswith(("diffusion", "speed_mean", "speed_median")) and "error" not in name
    }


def same(came: Path, truth: Tracks, *, unit: str = "micrometer") -> None:
    """What came out has the same places, D and speeds, in the same units."""
    tracks = read_tracks(came)
    assert tracks.detections.calibration == Calibration(unit, interval=INTERVAL)
    assert np.allclose(tracks.detections.position, truth.detections.position, atol=1e-6)
    found, wanted = numbers(came), numbers(truth)
    if unit == "micrometer":
        assert found.keys() == wanted.keys()
        assert any("um2_per_s" in name for name in found)
    assert np.allclose([*found.values()], [*wanted.values()], rtol=2e-3, equal_nan=True)


@pytest.mark.parametrize("door", [*FILES, *COMMANDS], ids=lambda door: door.name)
def test_places_diffusion_and_speed_come_through_every_door(
    door: Door, file: Path, truth: Tracks, tmp_path: Path
) -> None:
    same(door.go(file, tmp_path), truth)


@pytest.mark.filterwarnings("ignore")  # of dask, about what it ends
@pytest.mark.parametrize("door", CLUSTER, ids=lambda door: door.name)
def test_places_diffusion_and_speed_come_through_a_cluster(
    door: Door, file: Path, truth: Tracks, tmp_path: Path
) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed")
    same(door.go(file, tmp_path), truth)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tracks of nine boxes of 3 x 5 x 5 voxels that move by up to a voxel, beside their masks."""
    tifffile, folder = pytest.importorskip("tifffile"), tmp_path_factory.mktemp("objects")
    begin = np.column_stack([np.full(9, 6), *np.divmod(np.arange(9), 3)]) * (1, 25, 25) + (0, 20, 20)
    steps = np.random.default_rng(5).integers(-1, 2, (6, 9, 3))
    steps[:, :, 0] = np.resize([0, 1, 0, -1], 6)[:, None]
    masks = np.zeros((6, 12, 100, 100), np.uint16)
    for mask, place in zip(masks, begin + np.cumsum(steps, axis=0), strict=True):
        for label, (z, y, x) in enumerate(place, 1):
            mask[z - 1 : z + 2, y - 2 : y + 3, x - 2 : x + 3] = label
    about: dict[str, object] = {"axes": "TZYX", "TimeIncrement": INTERVAL, "TimeIncrementUnit": "s"}
    for axis, size in zip("ZYX", VOXEL, strict=True):
        about |= {f"PhysicalSize{axis}": size, f"PhysicalSize{axis}Unit": "µm"}
    tifffile.imwrite(folder / "masks.ome.tif", masks, metadata=about)
    succeed("detect", folder / "masks.ome.tif", "--labels", "-o", folder / "spots.csv")
    succeed("track", folder / "spots.csv", "-o", folder / "tracks.csv", "--max-distance", 2)
    return folder / "tracks.csv"


@pytest.mark.parametrize("door", LABELS, ids=lambda door: door.name)
def test_masks_of_tracks_give_their_places_diffusion_and_speed(
    door: Door, objects: Path, tmp_path: Path
) -> None:
    came, wanted = door.go(objects, tmp_path), read_tracks(objects)
    without = came.name.endswith("_RES")  # which has no place for units, and says so by its names
    given = {"spacing": VOXEL, "interval": INTERVAL} if without else {}
    found, due = numbers(came, **given), numbers(objects)
    assert found.keys() == due.keys()
    assert np.allclose([*found.values()], [*due.values()])
    seen = read_tracks(came).detections
    assert np.allclose(seen.position * (VOXEL if without else 1), wanted.detections.position)
    assert seen.calibration == (Calibration() if without else wanted.detections.calibration)
    assert not without or not any("um" in name or name.endswith("_s") for name in numbers(came))


def test_a_folder_of_the_challenge_says_how_it_is_measured(objects: Path, tmp_path: Path) -> None:
    done = succeed("convert", objects.with_name("masks.ome.tif"), objects, tmp_path / "01_RES")
    assert "give outbid measure --spacing 1 0.4 0.4 --interval 20." in done.stderr


def test_live_takes_voxels_and_places_alike(truth: Tracks) -> None:
    seen = truth.detections
    learned = track(seen).learned
    assert learned is not None
    ways = Live(learned), Live(learned, calibration=Calibration("micrometer", VOXEL, INTERVAL))
    for frame in range(seen.frame_count):
        place = seen.position[seen.rows_of(frame)]
        one, other = ways[0].add(place), ways[1].add(place / VOXEL)
        assert one.track.tolist() == other.track.tolist()
        assert np.allclose(one.probability, other.probability)
    with pytest.raises(SettingsError, match="in nm, and the model was learned in µm"):
        Live(learned, calibration=Calibration("nanometer"))


@pytest.mark.parametrize("door", ALONE, ids=lambda door: door.name)
def test_files_keep_their_interval_without_their_record(
    door: Door, file: Path, truth: Tracks, tmp_path: Path
) -> None:
    same(door.go(file, tmp_path), truth, unit="pixel" if "csv" in door.name else "micrometer")


_ENDS = [
    door for door in FILES if ".gz" not in door.name and ".tsv" not in door.name and ".pq" not in door.name
]


@pytest.mark.parametrize(("one", "other"), [*product(_ENDS, _ENDS)], ids=lambda door: door.name)
def test_every_pair_of_formats(one: Door, other: Door, file: Path, truth: Tracks, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    came = other.go(one.go(file, tmp_path / "one"), tmp_path / "other")
    found = read_tracks(came)
    assert found.detections.calibration == truth.detections.calibration
    assert np.allclose(found.detections.position, truth.detections.position, atol=1e-6)


@pytest.mark.parametrize("door", COMMANDS, ids=lambda door: door.name)
def test_the_record_states_unit_and_interval_as_numbers(door: Door, file: Path, tmp_path: Path) -> None:
    record = read_record(door.go(file, tmp_path))
    intervals = [entry.get("interval") for entry in (record.get("calibration"), record.get("input")) if entry]
    assert INTERVAL in intervals
    assert not any(isinstance(one, str) for one in intervals)


def test_writing_commands_state_what_they_write(file: Path, tmp_path: Path) -> None:
    said = "positions in µm, times in s"
    assert said in succeed("filter", file, "-o", tmp_path / "f.csv").stderr
    assert said in succeed("convert", file, tmp_path / "c.xml").stderr
    assert said in succeed("track", file, "-o", tmp_path / "t.csv").stderr
    bare = written(tmp_path / "bare.csv", "track_id,frame,y,x\n0,0,1,1\n0,1,1,2\n")
    assert "positions in px, times in frames" in succeed("filter", bare, "-o", tmp_path / "b.csv").stderr


def test_a_report_has_its_interval(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    succeed("report", file, "-o", tmp_path / "page.html")
    assert "20 s a frame" in (tmp_path / "page.html").read_text("utf-8")


def test_plots_of_a_report_are_in_seconds(truth: Tracks) -> None:
    plots = pytest.importorskip("outbid.viewers.plots")
    of = truth.detections.calibration
    drawn = plots.speed_histogram(np.full(5, 40.0), of)
    assert drawn.axes[0].get_xlabel() == "speed (µm/s)"
    assert drawn.axes[0].lines[0].get_xdata()[0] == 2.0


def test_scores_are_the_same_through_doors(file: Path, tmp_path: Path) -> None:
    succeed("convert", file, tmp_path / "tracks.xml")
    done = succeed("score", tmp_path / "tracks.xml", file, "--json")
    assert json.loads(done.stdout)["values"]["link_f1"] == 1


def test_spots_of_trackmate_with_times_in_seconds(tmp_path: Path) -> None:
    head = "LABEL,ID,TRACK_ID,POSITION_X,POSITION_Y,POSITION_Z,POSITION_T,FRAME\n"
    more = (
        "Label,Spot ID,Track ID,X,Y,Z,T,Frame\nLabel,ID,Track,X,Y,Z,T,F\n,,,(micron),(micron),(micron),{},\n"
    )
    rows = "a,1,0,1,1,1,0,0\nb,2,0,2,1,1,{},1\nc,3,0,3,1,1,{},2\n"
    for unit, step in (("(sec)", 20), ("(min)", 1 / 3)):
        text = head + more.format(unit) + rows.format(step, 2 * step)
        seen = read_detections(written(tmp_path / "x.csv", text))
        assert (seen.unit, round(seen.calibration.interval or 0, 6)) == ("micrometer", 20)


def test_a_record_that_contradicts_the_column_of_times_is_said(
    file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    succeed("filter", file, "-o", tmp_path / "f.csv")
    beside = tmp_path / "f.csv.json"
    record = json.loads(beside.read_text("utf-8"))
    record["calibration"]["interval"] = 5.0
    beside.write_text(json.dumps(record), "utf-8")
    assert read_tracks(tmp_path / "f.csv").detections.calibration.interval == 5
    assert "5 s apart by the run record, 20 s by the file" in caplog.text


@pytest.mark.parametrize("uneven", [[0, 1, 3], [0, -1, -2], [0, 0, 0]])
def test_times_that_are_uneven_state_no_interval(uneven: list[int], tmp_path: Path) -> None:
    rows = "".join(f"{frame},1,1,{time}\n" for frame, time in enumerate(uneven))
    seen = read_detections(written(tmp_path / "s.csv", f"frame,y,x,time\n{rows}"))
    assert seen.calibration.interval is None


def test_times_may_begin_later(tmp_path: Path) -> None:
    seen = read_detections(written(tmp_path / "s.csv", "frame,y,x,time\n3,1,1,7\n4,1,1,7.5\n6,1,1,8.5\n"))
    assert seen.calibration.interval == 0.5


def test_gaps_that_are_filled_have_times(truth: Tracks, tmp_path: Path) -> None:
    some = truth.take(truth.detections.frame != 5)
    write_tracks(tmp_path / "gap.csv", some)
    succeed("convert", tmp_path / "gap.csv", tmp_path / "filled.csv", "--fill-gaps")
    seen = read_detections(tmp_path / "filled.csv")
    assert np.array_equal(seen.features["time"], seen.frame * INTERVAL)


def test_a_voxel_size_without_a_unit_is_said(tmp_path: Path) -> None:
    rows = "".join(f"{frame},{2 * frame % 3},5,{frame}\n" for frame in range(9))
    path = written(tmp_path / "s.csv", f"frame,z,y,x\n{rows}")
    succeed("track", path, "-o", tmp_path / "t.csv", "--max-distance", 9, "--spacing", *VOXEL)
    done = succeed("measure", tmp_path / "t.csv", "-o", tmp_path / "m.csv")
    assert "1, 0.4, 0.4, the voxel size of the tracking, whose unit is not known" in done.stderr
    done = succeed("measure", tmp_path / "t.csv", "-o", tmp_path / "n.csv", "--spacing", *VOXEL)
    assert "unit is not known" not in done.stderr


def test_axes_of_geff_have_seconds_without_times_of_nodes(truth: Tracks, tmp_path: Path) -> None:
    pytest.importorskip("geff")
    bare = replace(truth, detections=replace(truth.detections, features={}))
    write_tracks(tmp_path / "t.geff", bare)
    about = json.loads((tmp_path / "t.geff" / ".zattrs").read_text("utf-8"))["geff"]["axes"]
    assert [axis.get("scaled_unit") or axis["unit"] for axis in about] == ["second", *["micrometer"] * 3]
    assert about[0]["scale"] == INTERVAL


def test_pins_are_places_in_the_unit_of_the_detections(file: Path, truth: Tracks, tmp_path: Path) -> None:
    pins, seen = tmp_path / "pins.csv", truth.detections
    append_pin(pins, Pin("end", ((5, tuple(seen.position[seen.rows_of(5)][0].tolist())),)))
    nanometers = replace(seen, position=1000 * seen.position, calibration=Calibration("nanometer"))
    append_pin(pins, Pin("end", ((5, tuple(nanometers.position[nanometers.rows_of(5)][1].tolist())),)))
    done = succeed("track", file, "-o", tmp_path / "t.csv", "--pins", pins)
    assert "Pins: 2; left out: 1" in done.stderr
    tracks = read_tracks(tmp_path / "t.csv")
    assert tracks.successors[tracks.detections.rows_of(5)][0] == 0


def test_the_page_of_pins_has_their_columns_and_kinds() -> None:
    page = (Path(__file__).parent.parent / "docs" / "reference" / "pins.md").read_text("utf-8")
    named = re.findall(r"`([a-z_0-9]+)`", page)
    assert {*_HEADER, *KINDS} <= {*named}
