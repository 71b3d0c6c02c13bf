"""Detections and tracks are read back as they were written, bit for bit, in every format."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from commands import fresh_python, refused
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import any_tracks

from outbid import (
    Detections,
    InputError,
    SettingsError,
    Tracks,
    read_detections,
    read_record,
    read_tracks,
    write_detections,
    write_tracks,
)
from outbid.formats import WRITTEN, check_output, holds_tracks
from outbid.particles.tracks import LINK_MEASURES

SUFFIXES = [end for end, of in WRITTEN.items() if of.module.startswith("tables.") and end != ".pq"]
"""Of tables; the formats for exchange have tests of their own."""
NAMES = st.sampled_from(
    ["mass", "ID", "time", "signal to noise", 'a "quoted" name', "a,comma", "a;b", "größe"]
)
FEATURES = st.sampled_from(
    [
        (np.float64, st.floats(allow_nan=True, width=64)),
        (np.float32, st.floats(allow_nan=True, width=32)),
        (np.dtype(">f8"), st.floats(allow_nan=True, width=64)),
        (np.int64, st.integers(-(2**63), 2**63 - 1)),
        (np.uint8, st.integers(0, 255)),
        (np.bool_, st.booleans()),
    ]
)


ANY_TRACKS = st.dictionaries(NAMES, FEATURES, max_size=2).flatmap(
    lambda features: any_tracks(8, features, ["pixel", "micrometer", "kiloparsec"], 2**31 - 1)
)


def bits(values: NDArray) -> list[object]:
    """The values bit by bit: they differ also where they compare equal."""
    return np.ascontiguousarray(values, dtype=np.float64).view(np.uint64).tolist()


def assert_same_detections(found: Detections, given: Detections, suffix: str) -> None:
    np.testing.assert_array_equal(found.frame, given.frame)
    assert bits(found.position) == bits(given.position)
    assert found.unit == given.unit
    assert list(found.features) == list(given.features)
    for name, values in given.features.items():
        if suffix != ".parquet":  # text keeps the kind of a number, not its width
            widest = {"f": np.float64, "i": np.int64, "u": np.int64, "b": np.bool_}[values.dtype.kind]
            assert found.features[name].dtype == (widest if len(values) else np.float64)
            np.testing.assert_array_equal(found.features[name].astype(values.dtype), values)
            if values.dtype.kind == "f":
                number = ~np.isnan(values)
                assert bits(found.features[name].astype(values.dtype)[number]) == bits(values[number])
        else:
            native = values.astype(values.dtype.newbyteorder("="))
            assert found.features[name].dtype == native.dtype
            assert found.features[name].tobytes() == native.tobytes()


def same_or_none(found: NDArray | None, given: NDArray | None) -> bool:
    return found is given if found is None or given is None else bits(found) == bits(given)


@pytest.mark.smoke
@pytest.mark.parametrize("suffix", SUFFIXES)
@given(seen=ANY_TRACKS.map(lambda made: made.detections))
@example(seen=Detections.from_table([0], [[-0.0, 5e-324, 1.7976931348623157e308]]))
def test_detections_round_trip(
    suffix: str, seen: Detections, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("trip") / f"spots{suffix}"
    write_detections(path, seen)
    assert_same_detections(read_detections(path), seen, suffix)
    assert not holds_tracks(path)
    refused("holds no tracks", read_tracks, path)


@pytest.mark.smoke
@pytest.mark.parametrize("suffix", SUFFIXES)
@given(made=ANY_TRACKS)
@example(made=Tracks(Detections.from_table([0], np.zeros((1, 3))), np.empty((0, 2), int), *np.empty((3, 0))))
@example(
    made=Tracks(Detections.from_table([0, 1], np.zeros((2, 3))), np.array([[0, 1]]), *np.full((3, 1), -0.0))
)
def test_tracks_round_trip(suffix: str, made: Tracks, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("trip") / f"tracks{suffix}"
    write_tracks(path, made, record={"command": "track", "settings": {"max_distance": 1.5}})
    found = read_tracks(path)
    np.testing.assert_array_equal(found.links, made.links)
    np.testing.assert_array_equal(found.track_id, made.track_id)
    assert_same_detections(found.detections, made.detections, suffix)
    for name in LINK_MEASURES:
        assert same_or_none(getattr(found, name), getattr(made, name))
    # Identities do not leak into what the linker gets.
    assert_same_detections(read_detections(path), made.detections, suffix)
    assert read_record(path)["settings"] == {"max_distance": 1.5}
    again = path.with_name(f"again{suffix}")
    write_tracks(again, found, record={"command": "track", "settings": {"max_distance": 1.5}})
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.smoke
@pytest.mark.parametrize("suffix", [*SUFFIXES, ".xml"])
@settings(max_examples=examples(50))
@given(
    name=st.text(max_size=8)
    | st.sampled_from(["particle", "Track ID", "x", "link_cost", "parent_2", "Position X"])
)
def test_a_feature_is_read_back_or_refused(
    suffix: str, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("trip") / f"spots{suffix}"
    seen = Detections.from_table([0, 1], [[1, 2, 3], [4, 5, 6]], features={name: [0.25, 0.5]})
    try:
        write_detections(path, seen)
    except InputError:
        assert not path.exists()
        return
    found = read_detections(path).features
    assert {key: values.tolist() for key, values in found.items()} == {name: [0.25, 0.5]}


@settings(max_examples=examples(50))
@given(value=st.text(max_size=8))
def test_text_features_pass_through_files_without_harm(
    value: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """They are written for other programs, and neither shift columns nor break rows when read."""
    if not value.isprintable():
        return
    path = tmp_path_factory.mktemp("trip") / "spots.csv"
    features = {"name": np.array([value, "plain"]), "mass": np.array([0.5, 1.5])}
    write_detections(path, Detections.from_table([0, 1], [[1, 2, 3], [4, 5, 6]], features=features))
    found = read_detections(path)
    assert found.position.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert found.features["mass"].tolist() == [0.5, 1.5]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_half_precision_is_written_and_what_is_no_number_is_not(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    half = np.array([0.1, 65504], np.float16)
    write_detections(path, Detections.from_table([0, 1], np.zeros((2, 3)), features={"half": half}))
    assert read_detections(path).features["half"].astype(np.float16).tolist() == half.tolist()
    for wrong in (
        np.array([1j, 2j]),
        np.array([[1], [2, 3]], dtype=object),
        np.array([object(), None]),
        np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"),
    ):
        seen = Detections.from_table([0, 1], np.zeros((2, 3)), features={"wrong": wrong})
        refused("'wrong' holds", write_detections, path, seen, overwrite=True)
    assert read_detections(path).features["half"].astype(np.float16).tolist() == half.tolist()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_load_no_pandas_and_no_sparse_matrices(suffix: str, tmp_path: Path) -> None:
    """Either takes a command .1 s or more; pyarrow loads pandas, if there is one, at the slightest touch."""
    code = f"""
import sys
import numpy as np
import scipy.linalg  # which Numba loads, and which loads sparse matrices itself before SciPy 1.15
from outbid import Detections, Tracks, read_tracks, write_tracks
before = set(sys.modules)
seen = Detections.from_table([0, 1, 1], np.zeros((3, 3)), features={{"mass": np.ones(3)}})
write_tracks({str(tmp_path / "a") + suffix!r}, Tracks(seen, np.array([[0, 1], [0, 2]]), np.ones(2)))
read_tracks({str(tmp_path / "a") + suffix!r})
print(sorted({{"pandas", "scipy.sparse"}} & (set(sys.modules) - before)))
"""
    assert fresh_python(code) == "[]"


def test_columns_stand_in_the_promised_order(tmp_path: Path) -> None:
    seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 1, 0]], features={"mass": [1, 2, 3]})
    write_tracks(tmp_path / "a.csv", Tracks(seen, np.array([[0, 1], [0, 2]]), np.array([1.0, 0.5])))
    assert (tmp_path / "a.csv").read_text() == (
        "track_id,frame,z,y,x,parent,mass,link_cost\n0,0,0,0,0,,1,\n1,1,0,0,1,0,2,1\n2,1,0,1,0,0,3,0.5\n"
    )


def test_a_merge_needs_further_columns(tmp_path: Path) -> None:
    seen = Detections.from_table([0, 0, 1], [[0, 0, 0], [0, 0, 1], [0, 1, 0]])
    write_tracks(tmp_path / "a.csv", Tracks(seen, np.array([[0, 2], [1, 2]]), np.array([1.0, 0.5])))
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == (
        "track_id,frame,z,y,x,parent,parent_2,link_cost,link_cost_2"
    )


def test_rows_in_any_order_are_sorted_by_frame(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("track_id,frame,x,y,link_cost,q\n1,2,5,6,0.5,30\n0,0,1,2,,10\n1,0,3,4,,20\n")
    found = read_tracks(path)
    assert found.detections.frame.tolist() == [0, 0, 2]
    assert found.detections.position[:, 2].tolist() == [1, 3, 5]
    assert found.detections.features["q"].tolist() == [10, 20, 30]
    assert found.links.tolist() == [[1, 2]]
    assert found.link_cost.tolist() == [0.5]


# ---------------------------------------------------------------- parents


@pytest.mark.parametrize(
    ("table", "links"),
    [
        ("1,0,\n1,1,\n2,2,1\n3,2,1\n", [[0, 1], [1, 2], [1, 3]]),  # blank is none
        ("1,0,-1\n1,1,-1\n2,2,1\n3,2,1\n", [[0, 1], [1, 2], [1, 3]]),  # negative is none
        ("1,0,0\n1,1,0\n2,2,1\n3,2,1\n", [[0, 1], [1, 2], [1, 3]]),  # 0 is none where no track is 0
        ("1,0,1\n1,1,1\n2,2,1\n3,2,1\n", [[0, 1], [1, 2], [1, 3]]),  # the track itself is none
        ("0,0,0\n0,1,0\n2,2,0\n3,2,0\n", [[0, 1], [1, 2], [1, 3]]),  # 0 is a parent where it can be
        ("0,0,0\n0,1,0\n2,0,0\n2,1,0\n3,2,0\n", [[0, 2], [1, 3]]),  # 0 cannot be 2's parent: it means none
        ("0,0,\n0,1,\n2,2,0.0\n3,2,0.0\n", [[0, 1], [1, 2], [1, 3]]),  # as pandas writes it
    ],
)
def test_parents_that_mean_none(table: str, links: list[list[int]], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [line.split(",") for line in table.splitlines()]
    text = "".join(f"{track},{frame},{k},0,{parent}\n" for k, (track, frame, parent) in enumerate(rows))
    path.write_text("track_id,frame,x,y,parent\n" + text)
    assert read_tracks(path).links.tolist() == links


# ---------------------------------------------------------------- records


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_records(suffix: str, tmp_path: Path) -> None:
    seen = Detections.from_table([0], [[1, 2, 3]])
    path = tmp_path / f"a{suffix}"
    write_detections(path, seen, record={"command": "simulate", "settings": {"max_distance": np.inf}})
    assert read_record(path) == {"command": "simulate", "settings": {"max_distance": "inf"}}
    refused("exists", write_detections, path, seen, error=SettingsError)
    assert read_record(path)["command"] == "simulate"
    # A file without a record must not keep the record of the file it replaces.
    write_detections(path, seen, overwrite=True)
    refused("no run record", read_record, path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.smoke
def test_the_record_of_a_csv_stands_beside_it(tmp_path: Path) -> None:
    write_detections(tmp_path / "a.csv", Detections.from_table([0], [[1, 2, 3]]), record={"b": 1, "a": "µ"})
    assert (tmp_path / "a.csv.json").read_text("utf-8") == (
        '{\n  "a": "µ",\n  "b": 1,\n  "written_by": "outbid"\n}\n'
    )
    assert read_record(tmp_path / "a.csv.json") == read_record(tmp_path / "a.csv") == {"a": "µ", "b": 1}


def test_the_record_of_a_parquet_file_is_where_others_find_it(tmp_path: Path) -> None:
    write_detections(tmp_path / "a.parquet", Detections.from_table([0], [[1, 2, 3]]), record={"b": 1})
    schema = pyarrow.parquet.read_schema(tmp_path / "a.parquet")
    assert json.loads(schema.metadata[b"outbid"]) == {"b": 1}
    assert schema.field("x").metadata[b"unit"] == b"pixel"


@pytest.mark.parametrize("content", ["", "[1]", "{", "null", '{"a": ' * 100_000])
def test_what_is_no_record(content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv.json"
    path.write_text(content)
    refused(r"a\.csv\.json", read_record, path)
    # It is no obstacle to reading the data beside it.
    (tmp_path / "a.csv").write_text("frame,y,x\n0,1,2\n")
    assert len(read_detections(tmp_path / "a.csv")) == 1


# ---------------------------------------------------------------- outputs


def test_outputs_are_checked(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name, complaint in [
        ("a.xyz", "unknown format"),
        ("none/a.csv", "no folder"),
        ("folder.csv", "no file"),
    ]:
        refused(complaint, check_output, tmp_path / name, overwrite=True, error=SettingsError)
    check_output(tmp_path / "a.csv")


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "real.csv").write_text("old")
    (tmp_path / "a.csv").symlink_to(tmp_path / "there" / "real.csv")
    write_detections(tmp_path / "a.csv", Detections.from_table([0], [[1, 2, 3]]), overwrite=True)
    assert (tmp_path / "a.csv").is_symlink()
    assert (tmp_path / "there" / "real.csv").read_text() == "frame,z,y,x\n0,1,2,3\n"


def test_negative_frames_are_not_written(tmp_path: Path) -> None:
    refused("negative", write_detections, tmp_path / "a.csv", Detections.from_table([-1], [[1, 2, 3]]))
    assert list(tmp_path.iterdir()) == []


def test_parquet_is_packed_for_what_it_holds(tmp_path: Path) -> None:
    """Positions of single precision, slowly growing numbers: half of what plain values take."""
    rng = np.random.default_rng(0)
    steps = rng.normal(0, 0.1, (40, 500, 3)).cumsum(axis=0).astype(np.float32)
    seen = Detections.from_table(np.repeat(np.arange(40), 500), steps.reshape(-1, 3))
    links = np.column_stack([np.arange(39 * 500), np.arange(500, 40 * 500)])
    path = tmp_path / "tracks.parquet"
    write_tracks(path, Tracks(seen, links, np.full(len(links), 0.5)))
    group = pyarrow.parquet.ParquetFile(path).metadata.row_group(0)
    packing = {group.column(k).path_in_schema: group.column(k).encodings for k in range(group.num_columns)}
    assert all("BYTE_STREAM_SPLIT" in packing[name] for name in ("z", "y", "x", "link_cost"))
    assert all("DELTA_BINARY_PACKED" in packing[name] for name in ("track_id", "frame"))
    assert path.stat().st_size < 0.5 * len(seen) * (8 + 4 + 3 * 8 + 8)
    np.testing.assert_array_equal(read_tracks(path).links, links)
