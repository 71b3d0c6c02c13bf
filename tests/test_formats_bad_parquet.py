"""Bad and damaged Parquet files: an error or data, never a crash."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import assert_refused, run, track, written

from outbid import Detections, InputError, Tracks, read_detections, read_tracks, write_tracks


def parquet(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"x": [1.0]}, ["No column for frame", "Rename"]),
        ({"frame": [0, 1], "y": [1.0, 2.0], "x": [1.0, float("nan")]}, ["row 2", "x is nan", "finite"]),
        ({"frame": [0, 1], "y": [1.0, 2.0], "x": [None, 1.0]}, ["row 1", "x is blank"]),
        ({"frame": [0, -1], "y": [1.0, 2.0], "x": [0.0, 1.0]}, ["row 2", "frame is -1"]),
        ({"frame": [0, 0.5], "y": [1.0, 2.0], "x": [0.0, 1.0]}, ["row 2", "frame is 0.5"]),
        ({"frame": [0, 1], "y": ["1", "two"], "x": [0.0, 1.0]}, ["row 2", "y is 'two'"]),
        ({"frame": [0, 1], "y": ["1", "2"], "x": [0.0, 1.0]}, ["'y' holds string", "numbers"]),
        ({"frame": [0, 1], "y": [[1.0], [2.0]], "x": [0.0, 1.0]}, ["No column for y"]),
        ({"frame": [0], "y": [1.0], "x": pa.array([1], pa.timestamp("s"))}, ["'x' holds timestamp"]),
        ({"frame": pa.array([2**64 - 1], pa.uint64()), "y": [1.0], "x": [1.0]}, ["row 1", str(2**64 - 1)]),
    ],
)
def test_bad_columns_of_parquet(columns: dict[str, object], said: list[str], tmp_path: Path) -> None:
    assert_refused(track(parquet(tmp_path / "spots.parquet", **columns)), 3, "spots.parquet", *said)


def test_parquet_with_two_columns_of_one_name(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_arrays([pa.array([1])] * 3, ["frame", "x", "x"]), tmp_path / "spots.parquet")
    assert_refused(track(tmp_path / "spots.parquet"), 3, "spots.parquet", "'x'", "name of its own")


def test_parquet_of_other_types(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = parquet(
        tmp_path / "spots.parquet", frame=pa.array([1, 0], pa.uint8()), y=pa.array([1.5, 2.5], pa.float32()),
        x=pa.array([3, 4], pa.int16()),
        z=pa.array(["1", "2"]).dictionary_encode().cast(pa.string()).cast(pa.float64()),
        name=pa.array(["a", "b"]).dictionary_encode(), inside=pa.array([{"a": 1}, {"a": 2}]),
    )  # fmt: skip
    found = read_detections(path)
    assert found.frame.tolist() == [0, 1]
    assert found.position.tolist() == [[2, 2.5, 4], [1, 1.5, 3]]
    assert {name: values.tolist() for name, values in found.features.items()} == {"name": ["b", "a"]}
    assert "inside" in caplog.text


def test_parts_that_do_not_fit_together(tmp_path: Path) -> None:
    folder = tmp_path / "spots.parquet"
    folder.mkdir()
    parquet(folder / "part-0.parquet", frame=[0], y=[1.0], x=[1.0])
    parquet(folder / "part-1.parquet", frame=[1], y=[1.0], x=[1])
    assert_refused(track(folder), 3, "spots.parquet", "same columns")


@pytest.fixture(scope="module")
def good_parquet(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "tracks.parquet"
    seen = Detections.from_table(np.arange(200) // 40, np.random.default_rng(0).random((200, 3)))
    write_tracks(path, Tracks(seen, np.column_stack([np.arange(160), np.arange(40, 200)])), record={"a": 1})
    return path.read_bytes()


@pytest.mark.smoke
@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_parquet_file(share: float, good_parquet: bytes, tmp_path: Path) -> None:
    path = written(tmp_path / "spots.parquet", good_parquet[: int(share * len(good_parquet))])
    assert_refused(track(path), 3, "spots.parquet", "Parquet", "damaged")


def test_a_flipped_bit_among_the_positions_is_seen(good_parquet: bytes, tmp_path: Path) -> None:
    """Without checksums such a file is read, with another position."""
    path = tmp_path / "spots.parquet"
    column = pq.ParquetFile(pa.BufferReader(good_parquet)).metadata.row_group(0).column(4)
    content = bytearray(good_parquet)
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    path.write_bytes(content)
    assert_refused(track(path), 3, "spots.parquet", "damaged")


def test_a_footer_that_declares_a_row_less_is_seen(good_parquet: bytes, tmp_path: Path) -> None:
    """No row is lost unseen. The count stands there for the file, for its group of rows and for columns.

    The first is read by all versions of pyarrow; of the others, each version reads some.
    """
    path, streamed = tmp_path / "spots.parquet", tmp_path / "t.parquet"
    footer = len(good_parquet) - 8 - int.from_bytes(good_parquet[-8:-4], "little")
    declared, less = b"\x90\x03", b"\x8e\x03"  # 200 and 199, as the footer writes numbers
    refused = []
    for place in range(footer, len(good_parquet) - 8):
        if good_parquet[place : place + 2] != declared:
            continue
        path.write_bytes(good_parquet[:place] + less + good_parquet[place + 2 :])
        done = run("track", path, "-o", streamed, "--max-distance", 1, "--stream", "--overwrite")
        if done.exit_code:
            assert_refused(done, 3, "spots.parquet", "damaged", "199")
            assert not streamed.exists()
            shutil.rmtree(f"{streamed}.parts", ignore_errors=True)
        else:
            assert len(read_tracks(streamed).detections) == 200
            streamed.unlink()
        try:
            assert len(read_tracks(path).detections) == 200
        except InputError as error:
            refused.append(str(error))
            assert "damaged" in refused[-1]
    assert sum("it declares 199 rows, and 200 can be read" in said for said in refused) == 1
