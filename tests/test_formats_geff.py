"""GEFF: all layouts that are beside the checkout, round trips, hostile folders."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import refused
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_tracks
from test_formats_xml import assert_same_tracks

from outbid import (
    Detections,
    InputError,
    ResourceError,
    SettingsError,
    Tracks,
    read_detections,
    read_record,
    read_tracks,
    write_detections,
    write_tracks,
)
from outbid.formats import holds_tracks, input_of

geff = pytest.importorskip("geff", reason="GEFF is not installed: pip install 'outbid[geff]'")

REAL = {  # detections, links, tracks, frames
    "hela_geff/Fluo-N2DL-HeLa-01.zarr": (8639, 8562, 265, 92),
    "mouse_geff/mouse-20250719.zarr": (37009, 36916, 389, 532),
    "mouse_geff/mouse-20250719.zarr/tracks": (37009, 36916, 389, 532),
    "formats/intracktive/ctc_hela_example.geff": (8639, 8562, 265, 92),
    "formats/pycellin/Ecoli_growth_on_agar_pad.geff": (526, 523, 145, 23),
}
TWO = Tracks(
    Detections.from_table(
        [0, 1, 2, 2], [[0, 5, 7], [1, 5, 8], [0, 6, 9], [0, 4, 9]], unit="micrometer",
        features={"quality": [0.5, 1.0, np.nan, 2.0], "area": np.array([1, 2, 3, 4], dtype=np.uint8)},
    ),
    np.array([[0, 1], [1, 2], [1, 3]]), np.array([1.0, 2.0, 3.0]),
)  # fmt: skip


def ordered(detections: Detections) -> np.ndarray:
    rows = np.column_stack([detections.frame, detections.position.round(2)])
    return rows[np.lexsort(rows.T)]


def test_without_geff_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tracks(tmp_path / "a.geff", TWO)
    monkeypatch.setitem(sys.modules, "geff", None)
    for work in (lambda: read_tracks(tmp_path / "a.geff"), lambda: write_tracks(tmp_path / "b.geff", TWO)):
        with pytest.raises(ResourceError, match=r"pip install 'outbid\[geff\]'"):
            work()
    assert not (tmp_path / "b.geff").exists()


@pytest.mark.smoke
@pytest.mark.parametrize("name", REAL)
def test_real_layouts(name: str, real_data: Path) -> None:
    tracks = read_tracks(real_data / name)
    seen = tracks.detections
    assert (len(seen), len(tracks.links), tracks.track_count, seen.frame_count) == REAL[name]
    assert holds_tracks(real_data / name)


def test_positions_of_the_mouse_are_those_of_its_table(real_data: Path) -> None:
    tracks = read_tracks(real_data / "mouse_geff/mouse-20250719.zarr")
    table = read_tracks(real_data / "mouse_geff/tidy.csv")
    np.testing.assert_allclose(ordered(tracks.detections), ordered(table.detections), atol=0.011)
    assert (tracks.track_count, len(tracks.links)) == (table.track_count, len(table.links))


def test_the_oldest_layout_agrees_with_the_newest(real_data: Path) -> None:
    """Both are sequence 01 of the HeLa cells; the old one declares texts as integers."""
    old = read_tracks(real_data / "hela_geff/Fluo-N2DL-HeLa-01.zarr")
    new = read_tracks(real_data / "formats/intracktive/ctc_hela_example.geff")
    np.testing.assert_array_equal(ordered(old.detections), ordered(new.detections))
    assert (old.successors > 1).sum() == (new.successors > 1).sum()


def test_axes_by_their_hints(real_data: Path) -> None:
    """Its time is in minutes, its axes are cell_x, cell_y, cell_z; the XML of the same run agrees."""
    seen = read_detections(real_data / "formats/pycellin/Ecoli_growth_on_agar_pad.geff")
    xml = read_detections(real_data / "formats/pycellin/Ecoli_growth_on_agar_pad_with_fusions.xml")
    np.testing.assert_allclose(ordered(seen), ordered(xml), atol=0.011)
    assert seen.unit == "micrometer"


@pytest.mark.smoke
@settings(max_examples=examples(6))
@given(any_tracks(6, {"Area (µm²)": (np.int64, st.integers(-(2**63), 2**63 - 1))}, ["pixel", "micrometer"]))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, tracks: Tracks) -> None:
    folder = tmp_path_factory.mktemp("geff") / "a.geff"
    write_tracks(folder, tracks, record={"command": "track", "limit": float("inf")})
    back = read_tracks(folder)
    assert_same_tracks(tracks, back)
    assert set(back.detections.features) == set(tracks.detections.features)
    assert read_record(folder) == {"command": "track", "limit": "inf"}
    assert holds_tracks(folder) == (len(tracks.links) > 0)


def test_features_and_costs_come_back(tmp_path: Path) -> None:
    write_tracks(tmp_path / "a.geff", TWO)
    back = read_tracks(tmp_path / "a.geff")
    assert list(back.detections.features) == ["quality", "area"]
    assert back.detections.features["area"].dtype == np.uint8
    np.testing.assert_array_equal(back.detections.features["quality"], [0.5, 1, np.nan, 2])
    assert back.link_cost.tolist() == [1, 2, 3]
    write_detections(tmp_path / "b.geff", TWO.detections)
    assert not holds_tracks(tmp_path / "b.geff")


def test_the_package_itself_reads_it_in_both_zarr_formats(tmp_path: Path) -> None:
    from geff.core_io import read_to_memory, write_arrays

    write_tracks(tmp_path / "a.geff", TWO, record={"command": "track"})
    found = read_to_memory(tmp_path / "a.geff")
    assert [axis.name for axis in found["metadata"].axes] == ["t", "z", "y", "x"]
    assert [axis.unit for axis in found["metadata"].axes] == ["frame", *["micrometer"] * 3]
    write_arrays(
        tmp_path / "b.geff", found["node_ids"], found["node_props"], found["edge_ids"], found["edge_props"],
        found["metadata"], zarr_format=3,
    )  # fmt: skip
    assert (tmp_path / "b.geff/zarr.json").is_file()
    np.testing.assert_array_equal(read_tracks(tmp_path / "b.geff").links, TWO.links)
    assert read_record(tmp_path / "b.geff") == {"command": "track"}


@pytest.mark.smoke
def test_an_output_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    write_tracks(tmp_path / "a.geff", TWO)
    before = input_of(tmp_path / "a.geff")
    refused("exists", write_tracks, tmp_path / "a.geff", TWO, error=SettingsError)
    odd = Detections.from_table([0], [[0, 0, 0]], features={"kind": np.array([1j])})
    refused("kind", write_detections, tmp_path / "a.geff", odd, overwrite=True)
    assert input_of(tmp_path / "a.geff") == before
    write_tracks(tmp_path / "a.geff", TWO, overwrite=True)
    assert input_of(tmp_path / "a.geff") == before, "the same bytes again"
    assert [file.name for file in tmp_path.iterdir()] == ["a.geff"]


# ---------------------------------------------------------------- hostile folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tracks(tmp_path / "a.geff", TWO)
    return tmp_path / "a.geff"


def change(file: Path, **values: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def test_a_link_out_of_the_folder(folder: Path) -> None:
    secret = folder.parent / "secret"
    secret.write_bytes(b"12345678")
    chunk = next(file for file in (folder / "nodes/props/x/values").iterdir() if file.name[0] != ".")
    chunk.unlink()
    chunk.symlink_to("../../../../../secret")
    geff.validate_structure(folder)  # the package geff sees nothing there
    refused("leads out of the folder", read_tracks, folder)


def test_a_pickle_in_an_array(folder: Path) -> None:
    change(folder / "nodes/props/area/values/.zarray", filters=[{"id": "pickle"}], dtype="|O")
    refused("could run any program", read_tracks, folder)


@pytest.mark.parametrize("lost", ["nodes/ids", "edges/ids", "nodes/props/x", ".zattrs"])
def test_a_part_that_is_missing(folder: Path, lost: str) -> None:
    part = folder / lost
    shutil.rmtree(part) if part.is_dir() else part.unlink()
    with pytest.raises(InputError):
        read_tracks(folder)


def test_damaged_json(folder: Path) -> None:
    (folder / ".zattrs").write_text('{"geff": ')
    refused("damaged", read_tracks, folder)


def test_an_axis_named_by_a_path(folder: Path) -> None:
    values = json.loads((folder / ".zattrs").read_text())
    values["geff"]["axes"][1]["name"] = "../../../z"
    (folder / ".zattrs").write_text(json.dumps(values))
    with pytest.raises(InputError):
        read_tracks(folder)


def test_several_graphs_or_none(folder: Path, tmp_path: Path) -> None:
    container = tmp_path / "many.zarr"
    for name in ("first", "second"):
        shutil.copytree(folder, container / name)
    refused("several graphs", read_tracks, container)
    (tmp_path / "none.zarr").mkdir()
    (tmp_path / "none.zarr/.zgroup").write_text('{"zarr_format": 2}')
    refused("no GEFF", read_tracks, tmp_path / "none.zarr")
    (tmp_path / "empty").mkdir()
    refused("folder", read_tracks, tmp_path / "empty")
