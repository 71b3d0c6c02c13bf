"""Movies in pieces: the same tracks as from the whole movie, also after an interruption."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import run, succeed

from outbid import Detections, InputError, SettingsError, TrackingSettings, track
from outbid.formats import read_record, read_tracks, write_detections
from outbid.formats.tables import parquet_write
from outbid.formats.tables.parquet import detections_in_parts
from outbid.formats.tables.parquet_write import Packer
from outbid.formats.tables.parts import Parts
from outbid.gated.movie import gated_links
from outbid.work import stream as streaming
from outbid.work.stream import track_stream

SETTINGS = TrackingSettings(0.6, device="cpu")
RECORD = {"command": "track", "settings": SETTINGS.as_dict()}


@pytest.fixture
def movie(tmp_path):
    """Births, deaths, an empty frame, a feature; 23 frames of about 50."""
    rng = np.random.default_rng(3)
    position = rng.uniform(0, 6, (1, 50, 3)) + np.cumsum(rng.normal(0, 0.1, (23, 50, 3)), axis=0)
    seen = rng.random((23, 50)) > 0.1
    seen[11] = False
    frame = np.repeat(np.arange(4, 27), 50)[seen.ravel()]
    detections = Detections.from_table(
        frame, position[seen], unit="micrometer", features={"mass": np.arange(len(frame)) / 7}
    )
    path = tmp_path / "movie.parquet"
    write_detections(path, detections)
    return path, detections


@pytest.mark.smoke
@pytest.mark.parametrize("rows", [1, 60, 333, 10_000])
def test_pieces_give_the_tracks_of_the_whole(movie, tmp_path, rows):
    path, detections = movie
    whole = track(detections, SETTINGS)
    stats = track_stream(path, tmp_path / "out.parquet", SETTINGS, record=RECORD, rows=rows)
    found = read_tracks(tmp_path / "out.parquet")
    np.testing.assert_array_equal(found.links, whole.tracks.links)
    np.testing.assert_array_equal(found.track_id, whole.tracks.track_id)
    np.testing.assert_array_equal(found.link_cost, whole.tracks.link_cost)
    assert found.link_margin is not None
    assert (found.link_margin >= 0).all()
    np.testing.assert_array_equal(found.detections.position, detections.position)
    np.testing.assert_array_equal(found.detections.features["mass"], detections.features["mass"])
    assert found.detections.unit == "micrometer"
    written = pa.parquet.read_table(tmp_path / "out.parquet")["track_id"].to_numpy()
    np.testing.assert_array_equal(written, whole.tracks.track_id)
    assert stats == whole.stats
    assert not (tmp_path / "out.parquet.parts").exists()


@pytest.mark.smoke
def test_an_interrupted_run_goes_on_and_ends_with_the_same_bytes(movie, tmp_path, monkeypatch):
    path, _ = movie
    track_stream(path, tmp_path / "whole.parquet", SETTINGS, record=RECORD, rows=100)
    done, solved = [], []

    def linked(*given):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(given)
        return gated_links(*given)

    monkeypatch.setattr(streaming, "gated_links", linked)
    out = tmp_path / "out.parquet"
    with pytest.raises(KeyboardInterrupt):
        track_stream(path, out, SETTINGS, record=RECORD, rows=100)
    assert not out.exists()
    with pytest.raises(SettingsError, match="--resume"):
        track_stream(path, out, SETTINGS, record=RECORD, rows=100)
    with pytest.raises(SettingsError, match="other settings"):
        track_stream(path, out, SETTINGS, record=RECORD | {"command": "other"}, rows=100, resume=True)

    def counted(*given):
        solved.append(given)
        return gated_links(*given)

    monkeypatch.setattr(streaming, "gated_links", counted)
    track_stream(path, out, SETTINGS, record=RECORD, rows=100, resume=True)
    assert len(solved) > 0
    parts_in_all = len(solved) + 4
    assert parts_in_all <= 14  # nothing is done again but, at most, the part that is being written
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_a_killed_run_leaves_all_in_its_folder_and_is_resumed(movie, tmp_path):
    """What was half written when the process died is gone in the end; nothing stands beside the output."""
    path, _ = movie
    whole, out = tmp_path / "whole.parquet", tmp_path / "out.parquet"
    track_stream(path, whole, SETTINGS, record=RECORD, rows=100)
    program = (
        "import os, sys; from pathlib import Path; from outbid import TrackingSettings;"
        "from outbid.work.stream import track_stream;"
        f"track_stream(Path({str(path)!r}), Path({str(out)!r}), TrackingSettings(0.6, device='cpu'),"
        f"record={RECORD!r}, rows=100, progress=lambda done, total: done > 500 and os._exit(9))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    folder = tmp_path / "out.parquet.parts"
    assert sorted(tmp_path.iterdir()) == sorted([folder, path, whole])
    assert len(list(folder.glob("*.arrow"))) >= 3
    folder.with_name(f"{folder.name}.0123abcd.tmp").mkdir()  # killed as the folder had got its name
    track_stream(path, out, SETTINGS, record=RECORD, rows=100, resume=True)
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(tmp_path.iterdir()) == sorted([out, path, whole])


def test_an_output_that_cannot_be_written_stops_the_run_and_keeps_the_parts(movie, tmp_path, monkeypatch):
    path, _ = movie
    parquet_writer = pa.parquet.ParquetWriter

    def full(*_given, **_named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pa.parquet, "ParquetWriter", full)
    with pytest.raises(OSError, match="No space"):
        track_stream(path, tmp_path / "out.parquet", SETTINGS, record=RECORD, rows=100)
    monkeypatch.setattr(pa.parquet, "ParquetWriter", parquet_writer)
    stats = track_stream(path, tmp_path / "out.parquet", SETTINGS, record=RECORD, rows=100, resume=True)
    assert stats["links"] == len(read_tracks(tmp_path / "out.parquet").links)


def test_a_part_of_other_length_is_refused(movie, tmp_path):
    path, detections = movie
    out = tmp_path / "out.parquet"
    run_of_two = track(detections.take(detections.frame < 6), SETTINGS)
    with Parts(out, RECORD, overwrite=False, resume=False) as parts:
        parts.add(0, run_of_two.tracks, run_of_two.tracks.track_id, run_of_two.stats)
    with pytest.raises(InputError, match=r"rows, not"):
        track_stream(path, out, SETTINGS, record=RECORD, rows=300, resume=True)


@pytest.mark.parametrize("settings", [TrackingSettings(), TrackingSettings(1.0, max_gap=2)])
def test_what_needs_the_whole_movie_is_refused(movie, tmp_path, settings):
    with pytest.raises(SettingsError, match="max_distance"):
        track_stream(movie[0], tmp_path / "out.parquet", settings, record=RECORD)
    assert not (tmp_path / "out.parquet.parts").exists()


def test_a_table_that_is_refused_at_the_first_look_leaves_nothing(tmp_path):
    path, out = tmp_path / "movie.parquet", tmp_path / "out.parquet"
    for columns in ({"frame": [0, 1], "y": [0.0, 1.0]}, {"frame": [1, 0], "y": [0.0] * 2, "x": [0.0] * 2}):
        pa.parquet.write_table(pa.table(columns), path)
        for _ in range(2):
            with pytest.raises(InputError, match=r"No column for x|must not decrease"):
                track_stream(path, out, SETTINGS, record=RECORD)
            assert list(tmp_path.iterdir()) == [path]


def test_frames_that_decrease_are_refused_with_the_row(tmp_path):
    path = tmp_path / "movie.parquet"
    pa.parquet.write_table(pa.table({"frame": [0, 1, 1, 3, 2], "y": [0.0] * 5, "x": [0.0] * 5}), path)
    with pytest.raises(InputError, match=r"row 5: frame is 2; .* Sort the rows"):
        track_stream(path, tmp_path / "out.parquet", SETTINGS, record=RECORD, rows=2)


def test_no_rows_make_an_output_without_rows(tmp_path):
    path = tmp_path / "movie.parquet"
    write_detections(path, Detections.from_table([], []))
    stats = track_stream(path, tmp_path / "out.parquet", SETTINGS, record=RECORD)
    assert stats["tracks"] == 0
    assert len(read_tracks(tmp_path / "out.parquet").detections) == 0


@pytest.mark.smoke
def test_the_command_streams_and_repeats_to_the_byte(movie, tmp_path):
    path, detections = movie
    out = tmp_path / "out.parquet"
    succeed("track", path, "-o", out, "--max-distance", "0.6", "--stream")
    np.testing.assert_array_equal(read_tracks(out).links, track(detections, SETTINGS).tracks.links)
    first = out.read_bytes()
    assert run("track", path, "-o", out, "--max-distance", "0.6", "--stream").exit_code == 2
    record = read_record(out)
    assert record["fallbacks"] == 0
    assert record["settings"] == SETTINGS.as_dict() | {"max_gap": 0}
    succeed("track", path, "-o", out, "--config", out, "--stream", "--overwrite")
    assert out.read_bytes() == first
    assert run("track", path, "-o", out, "--max-distance", "0.6", "--resume", "--overwrite").exit_code == 2
    other = run("track", path, "-o", tmp_path / "out.csv", "--max-distance", "0.6", "--stream")
    assert other.exit_code == 2
    assert "parquet" in other.output.lower()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full, a disk that is always full")
@pytest.mark.parametrize("rows", [10, 3 << 20])
def test_a_disk_that_is_full_is_reported_by_the_thread_that_packs(rows):
    """Few rows reach the disk at the end only; of many, the first pages fail while others are packed."""
    table = pa.table({"x": np.random.default_rng(0).random(rows)})
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(OSError, match="No space"),
        Packer(full, table.schema) as output,
    ):
        output.add(table)


def test_groups_that_threads_pack_are_one_file_as_arrow_writes_it(tmp_path, monkeypatch):
    """Values, types, statistics and places of the groups are those of a file that is packed one by one."""
    monkeypatch.setattr("outbid.formats.tables.parquet_write.GROUP", 1000)
    rng = np.random.default_rng(0)
    values = {
        "track_id": np.arange(20_500), "frame": np.arange(20_500, dtype=np.int32), "z": rng.random(20_500),
        "kept": rng.random(20_500) < 0.5, "kind": rng.choice(["a", "b"], 20_500),
    }  # fmt: skip
    rows = pa.table(values).append_column("cost", pa.array([None, 0.5] * 10_250))
    rows = rows.replace_schema_metadata({b"outbid": b"{}"})
    with (tmp_path / "a.parquet").open("wb") as file, Packer(file, rows.schema) as output:
        output.add(rows[:12_345])
        output.add(rows[12_345:12_345])
        output.add(rows[12_345:])
        output.note({b"more": b"said"})
    with pa.parquet.ParquetFile(tmp_path / "a.parquet", page_checksum_verification=True) as found:
        assert found.read().equals(rows)
        assert found.schema_arrow.equals(rows.schema)
        about = found.metadata
    assert [about.row_group(k).num_rows for k in range(22)] == [1000] * 12 + [345] + [1000] * 8 + [155]
    assert (about.num_rows, about.num_row_groups) == (20_500, 22)
    assert about.metadata[b"outbid"] == b"{}"
    assert about.metadata[b"more"] == b"said"
    assert about.row_group(3).column(0).statistics.min == 3000
    with pa.parquet.ParquetWriter(tmp_path / "b.parquet", rows.schema) as writer:
        writer.write_table(rows, row_group_size=1000)
    usual = pa.parquet.read_metadata(tmp_path / "b.parquet")
    assert about.schema.equals(usual.schema)
    last = about.row_group(21).column(5)
    assert 0 < last.data_page_offset < (tmp_path / "a.parquet").stat().st_size
    assert last.data_page_offset > about.row_group(20).column(5).data_page_offset
    again = pa.parquet.ParquetFile(tmp_path / "a.parquet").read_row_group(13, ["z"])
    assert again["z"].to_pylist() == values["z"][12_345:13_345].tolist()
    for name in ("none.parquet", "twice.parquet"):
        with (tmp_path / name).open("wb") as file, Packer(file, rows.schema) as output:
            output.add(rows[:0])
        assert pa.parquet.read_table(tmp_path / name).equals(rows[:0])


def test_reading_begins_while_the_record_is_made(movie, tmp_path, monkeypatch):
    """A record waits for the hash of the whole input: reading must not."""
    path, _ = movie
    reads = threading.Event()

    def watched(*given):
        reads.set()
        return detections_in_parts(*given)

    def record(_used):
        assert reads.wait(20)
        return RECORD

    monkeypatch.setattr(streaming, "detections_in_parts", watched)
    track_stream(path, tmp_path / "late.parquet", SETTINGS, record=record, rows=100)
    track_stream(path, tmp_path / "given.parquet", SETTINGS, record=RECORD, rows=100)
    assert (tmp_path / "late.parquet").read_bytes() == (tmp_path / "given.parquet").read_bytes()
    assert not list(tmp_path.glob("*.parts"))


def test_a_folder_in_the_way_ends_what_was_begun(movie, tmp_path):
    (tmp_path / "out.parquet.parts").mkdir()
    before = threading.active_count()
    with pytest.raises(SettingsError, match="is in the way"):
        track_stream(movie[0], tmp_path / "out.parquet", SETTINGS, record=RECORD, rows=100)
    assert threading.active_count() == before


def test_flushing_changes_no_byte_and_a_full_disk_is_said(tmp_path, monkeypatch):
    rows = pa.table({"frame": np.arange(2000, dtype=np.int32), "x": np.random.default_rng(0).random(2000)})
    monkeypatch.setattr(parquet_write, "GROUP", 100)

    def write(name):
        with (tmp_path / name).open("wb") as file, Packer(file, rows.schema) as output:
            output.add(rows)

    write("at once")
    flushed = []
    monkeypatch.setattr(parquet_write, "_FLUSH", 1000)
    monkeypatch.setattr(parquet_write.os, "fsync", flushed.append)
    write("flushed")
    assert len(flushed) > 5
    assert (tmp_path / "flushed").read_bytes() == (tmp_path / "at once").read_bytes()

    def full(_file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet_write.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write("full")


def test_a_kill_while_the_parts_are_removed_does_not_stop_the_next_run(movie, tmp_path, monkeypatch):
    path, out = movie[0], tmp_path / "out.parquet"
    remove = shutil.rmtree

    def killed(folder, **named):
        if not (run := Path(folder) / "run.json").exists():
            return remove(folder, **named)
        run.unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        track_stream(path, out, SETTINGS, record=RECORD, rows=100)
    monkeypatch.setattr(shutil, "rmtree", remove)
    whole = out.read_bytes()
    track_stream(path, out, SETTINGS, record=RECORD, rows=100, overwrite=True)
    assert out.read_bytes() == whole
    assert sorted(tmp_path.iterdir()) == sorted([out, path])
