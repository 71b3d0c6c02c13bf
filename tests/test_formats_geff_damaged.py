"""GEFF folders that lost a part, or whose metadata make no sense: refused by name, in all that read them."""

import json
import logging
import os
import shutil
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import assert_refused, refused, run

from outbid import (
    Detections,
    InputError,
    Tracks,
    read_detections,
    read_record,
    read_tracks,
    write_detections,
    write_tracks,
)  # fmt: skip
from outbid.formats import holds_tracks
from outbid.viewers.plugin import layers_of_positions, read_positions

geff = pytest.importorskip("geff", reason="GEFF is not installed: pip install 'outbid[geff]'")

FLAT = Tracks(
    Detections.from_table(
        [0, 1, 2, 2], [[0, 5, 7], [0, 5, 8], [0, 6, 9], [0, 4, 9]], unit="micrometer",
        features={"quality": [0.5, 1.0, 3.0, 2.0], "nothing": [0.0] * 4},
    ),
    np.array([[0, 1], [1, 2], [1, 3]]), np.array([1.0, 2.0, 3.0]),
)  # fmt: skip
VITAL = ["nodes/ids", "edges/ids", "nodes/props/t/values", "nodes/props/x/values"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph as Outbid writes it, and as the package geff does in both formats of zarr."""
    from geff.core_io import read_to_memory, write_arrays

    made = tmp_path_factory.mktemp("geff")
    write_tracks(made / "ours.geff", FLAT, record={"command": "track"})
    found = read_to_memory(made / "ours.geff")
    for zarr_format in (2, 3):
        write_arrays(
            made / str(zarr_format), found["node_ids"], found["node_props"], found["edge_ids"],
            found["edge_props"], found["metadata"], zarr_format=zarr_format,
        )  # fmt: skip
    for file in (made / "2").rglob(".zarray"):  # as zarr does from 3.1 on
        stated = json.loads(file.read_text())
        file.write_text(json.dumps(stated | {"fill_value": stated["fill_value"] or 0}))
    return made


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written / "ours.geff", tmp_path / "a.geff"))


@pytest.fixture(params=["2", "3"])
def other(request: pytest.FixtureRequest, written: Path, tmp_path: Path) -> Path:
    """Of another writer, who leaves out chunks of nothing but zeros."""
    return Path(shutil.copytree(written / request.param, tmp_path / "b.geff"))


def chunks(array: Path) -> list[Path]:
    names = (".zarray", ".zattrs", "zarr.json")
    return [file for file in array.rglob("*") if file.is_file() and file.name not in names]


def lose(array: Path) -> None:
    for chunk in chunks(array):
        chunk.unlink()


# ---------------------------------------------------------------- chunks that are missing


@pytest.mark.smoke
@pytest.mark.parametrize(
    "name", [*VITAL, "nodes/props/z/values", "nodes/props/nothing/values", "edges/props/link_cost/values"]
)
def test_a_chunk_that_our_file_lost_is_missed(folder: Path, name: str) -> None:
    assert len(chunks(folder / name)) == 1, "chunks of zeros are written as well"
    lose(folder / name)
    geff.validate_structure(folder)  # the package geff sees nothing there, nor in what is below
    refused(f"1 of 1 chunks of {name} are missing", read_tracks, folder)
    assert_refused(run("convert", folder, folder.parent / "b.csv"), 3, str(folder), name)


def test_chunks_that_another_writer_leaves_out_are_its_fill_value(
    other: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("z", "nothing"):
        assert chunks(other / f"nodes/props/{name}/values") == []
    back = read_tracks(other)
    np.testing.assert_array_equal(back.detections.position, FLAT.detections.position)
    assert back.detections.features["nothing"].tolist() == [0, 0, 0, 0]
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 1, "the range of z says that it is 0"
    assert "nodes/props/nothing/values are not stored: read as 0.0" in said[0]


@pytest.mark.parametrize("name", VITAL)
def test_a_chunk_that_another_file_lost_is_missed(other: Path, name: str) -> None:
    lose(other / name)
    refused(f"chunks of {name} are missing", read_tracks, other)


@pytest.mark.parametrize("name", VITAL)
def test_a_chunk_that_is_cut_short_is_refused(folder: Path, name: str) -> None:
    """Blosc reads on in memory behind it: places were others every time."""
    (chunk,) = chunks(folder / name)
    content = chunk.read_bytes()
    for length in (0, 10, 20, len(content) - 1):
        chunk.write_bytes(content[:length])
        geff.validate_structure(folder)
        refused("is cut short|Zstd", read_tracks, folder)  # zarr packs by the one or the other


def test_numbers_that_are_not_whole_are_refused_by_the_name_of_the_folder(folder: Path) -> None:
    import zarr

    shutil.rmtree(folder / "nodes" / "ids")
    array = zarr.open_group(folder, mode="a")["nodes"].create_array("ids", shape=4, dtype="f8")
    array[:] = [0, 1.5, 2, 3]
    stated = json.loads((folder / ".zattrs").read_text())
    del stated["geff"]["node_props_metadata"]  # as before 1.0, which the package geff does not read
    (folder / ".zattrs").write_text(json.dumps(stated))
    refused(r"a\.geff: node numbers are not whole", read_tracks, folder)


def test_one_chunk_of_many(folder: Path) -> None:
    import zarr

    array = (
        zarr.open_group(folder, mode="a")["nodes/props"]
        .create_group("t2")
        .create_array("values", shape=4, chunks=1, dtype="f8")
    )
    array[:] = [1, 2, 3, 4]
    stated = json.loads((folder / ".zattrs").read_text())
    stated["geff"]["node_props_metadata"]["t2"] = stated["geff"]["node_props_metadata"]["x"] | {
        "identifier": "t2"
    }
    stated["geff"]["axes"][0]["name"] = "t2"
    (folder / ".zattrs").write_text(json.dumps(stated))
    assert read_tracks(folder).detections.frame.tolist() == [1, 2, 3, 4]
    (folder / "nodes/props/t2/values/2").unlink()
    refused("1 of 4 chunks of nodes/props/t2/values are missing", read_tracks, folder)


def test_a_single_node_may_be_number_0(tmp_path: Path) -> None:
    first = FLAT.detections.take(np.arange(4) < 1)
    write_detections(tmp_path / "a.geff", first)
    for file in tmp_path.rglob(".zarray"):  # as other writers declare it
        file.write_text(json.dumps(json.loads(file.read_text()) | {"fill_value": 0}))
    lose(tmp_path / "a.geff/nodes/ids")
    assert read_detections(tmp_path / "a.geff").position.tolist() == [[0, 5, 7]]


def test_more_chunks_than_anybody_left_out(folder: Path) -> None:
    """Each would be looked for: hours."""
    file = folder / "nodes/props/quality/values/.zarray"
    stated = json.loads(file.read_text())
    file.write_text(json.dumps(stated | {"shape": [10**7], "chunks": [1], "fill_value": 0}))
    start = time.perf_counter()
    refused("declares 10000000 chunks", read_tracks, folder)
    assert time.perf_counter() - start < 2


# ---------------------------------------------------------------- metadata that make no sense

X = "nodes/props/x/values"
ODD: list[tuple[int, str, dict[str, Any]]] = [
    (2, X, {"filters": 5}), (2, X, {"filters": [["x"]]}), (2, X, {"compressor": {"id": ["x"]}}),
    (2, X, {"chunks": "x"}), (2, X, {"dtype": "<U9999999999"}), (2, X, {"zarr_format": 7}),
    *((2, X, {"shape": shape}) for shape in ([-1], ["many"], None, [1.5])),
    (2, "edges/ids", {"shape": []}), (3, "", {"attributes": None}), (3, "", {"attributes": 5}),
    (3, "", {"attributes": ["geff_version"]}), (3, X, {"codecs": "x"}), (3, X, {"codecs": [[]]}),
    (3, X, {"chunk_grid": None}), (3, X, {"chunk_grid": "regular"}), (3, X, {"data_type": {"name": ["x"]}}),
    (3, X, {"chunk_grid": {"name": "regular", "configuration": None}}),
    (3, X, {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": 5}}}),
]  # fmt: skip
READERS: list[Callable[[Path], object]] = [read_tracks, holds_tracks, read_record]


def refused_or_read(folder: Path) -> set[str]:
    """What the readers say, and napari's: nothing but errors of ours, which name the folder in one line."""
    said = set()
    for read in READERS:
        try:
            read(folder)
        except InputError as error:
            said.add(str(error))
    if find_spec("napari") and (reader := read_positions(str(folder))) is not None:
        assert reader is layers_of_positions
        with pytest.raises(InputError):
            reader(str(folder))
    for one in said:
        assert folder.name in one
        assert "\n" not in one
    return said


@pytest.mark.smoke
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("zarr_format", "array", "values"), ODD, ids=str)
def test_odd_metadata(
    written: Path, tmp_path: Path, zarr_format: int, array: str, values: dict[str, Any]
) -> None:
    folder = Path(shutil.copytree(written / str(zarr_format), tmp_path / "b.geff"))
    file = folder / array / (".zarray" if zarr_format == 2 else "zarr.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
    assert refused_or_read(folder)


@pytest.mark.parametrize("values", [{"extra": [1]}, {"extra": 5}, {"extra": {"outbid": 5}}])
def test_a_record_that_is_none(folder: Path, values: dict[str, Any]) -> None:
    stated = json.loads((folder / ".zattrs").read_text())
    (folder / ".zattrs").write_text(json.dumps({"geff": stated["geff"] | values}))
    refused(r"a\.geff has no run record", read_record, folder)


@pytest.mark.parametrize(
    "values", [{"axes": 5}, {"axes": [5]}, {"axes": None, "axis_names": [["x"]]}, {"display_hints": [1]}]
)
def test_odd_metadata_of_old_versions(folder: Path, values: dict[str, Any]) -> None:
    """The package geff does not read, and so does not check, what is older than 1.0."""
    stated = json.loads((folder / ".zattrs").read_text())
    old = {name: value for name, value in stated["geff"].items() if name != "node_props_metadata"}
    (folder / ".zattrs").write_text(json.dumps({"geff": old}))
    assert len(read_tracks(folder).links) == 3
    (folder / ".zattrs").write_text(json.dumps({"geff": old | values}))
    assert refused_or_read(folder)


@pytest.mark.skipif(os.name != "posix", reason="links")
@pytest.mark.parametrize("name", ["nodes/props/x/values/0", "nodes/loop", ".zattrs"])
def test_a_link_to_itself(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to((folder / name).name)
    assert any(name in one or "no GEFF" in one for one in refused_or_read(folder))
    assert_refused(run("convert", folder, folder.parent / "b.csv"), 3, str(folder))
    assert_refused(run("track", folder, "-o", folder.parent / "b.csv"), 3, str(folder))


def test_consolidated_metadata_are_looked_at_as_well(folder: Path) -> None:
    import zarr

    zarr.consolidate_metadata(folder, zarr_format=2)
    assert len(read_tracks(folder).links) == 3
    stated = json.loads((folder / ".zmetadata").read_text())
    stated["metadata"]["nodes/props/x/values/.zarray"]["compressor"] = {"id": "pickle"}
    (folder / ".zmetadata").write_text(json.dumps(stated))
    refused("could run any program", read_tracks, folder)
