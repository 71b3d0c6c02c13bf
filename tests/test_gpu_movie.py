"""Whole movies on the GPU: the same bytes at every run, in memory or streamed, and when it has no room."""

import json
from importlib import import_module
from threading import Barrier

import numpy as np
import pytest
from commands import succeed
from scenes import blinking

from outbid import Detections, TrackingSettings, track
from outbid.compute.arrays import cupy_module, to_device, to_host
from outbid.compute.streams import in_lanes
from outbid.compute.timing import stages_timed
from outbid.formats import read_record, read_tracks, write_detections
from outbid.gated import batches
from outbid.gated.linking import LinkCosts, link_frames
from outbid.work.stream import track_stream

pytestmark = pytest.mark.gpu
SETTINGS = TrackingSettings(0.6, device="gpu")
door = import_module("outbid.gated.movie")


@pytest.fixture(scope="module")
def movie() -> Detections:
    return blinking(0.05, 0.1, count=300, frames=6, side=7, seed=8).detections


def test_pieces_of_a_file_get_the_tracks_of_the_whole(movie, tmp_path):
    expected = track(movie, TrackingSettings(0.6, device="cpu")).tracks
    write_detections(tmp_path / "movie.parquet", movie)
    out = tmp_path / "out.parquet"
    stats = track_stream(tmp_path / "movie.parquet", out, SETTINGS, record={}, rows=700)
    assert stats["device"] == "gpu"
    assert stats["worst_gap"] == 0
    np.testing.assert_array_equal(read_tracks(out).links, expected.links)
    np.testing.assert_array_equal(read_tracks(out).track_id, expected.track_id)


@pytest.mark.parametrize(("limit", "halvings", "on_host"), [(60_000_000, 4, 0), (8_000_000, 4, 5)])
def test_memory_that_runs_out_in_earnest_halves_the_batch(movie, limit, halvings, on_host):
    """Searches for paths take 40 MB for a single pair of frames, 67 for two."""
    expected = link_frames(movie, movie.position, LinkCosts(0.6))
    pool = cupy_module().get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=limit)
    try:
        found = link_frames(movie, movie.position, LinkCosts(0.6), place=to_device)
    finally:
        pool.set_limit(size=0)
    np.testing.assert_array_equal(found.pairs, expected.pairs)
    assert (found.batches.halvings, found.batches.on_host) == (halvings, on_host)
    assert found.batches.count == 5 - on_host


def test_lanes_have_streams_of_their_own():
    both = Barrier(2, timeout=60)

    def stream(_: int) -> int:
        both.wait()
        return cupy_module().cuda.get_current_stream().ptr

    first, second = in_lanes(stream, range(2), 2)
    assert 0 not in (first, second)
    assert first != second


@pytest.mark.parametrize("room", [0, 1000])
def test_a_movie_for_which_the_gpu_has_no_room_is_halved_and_ends_on_the_host(movie, room, monkeypatch):
    def place(points):
        if len(points) > room:
            raise MemoryError
        return to_device(points)

    settings = {"max_gap": 2, "device": "cpu"}
    expected = track(movie, TrackingSettings(0.6, **settings))
    monkeypatch.setattr(door, "to_device", place)
    run = track(movie, TrackingSettings(0.6, **settings | {"device": "gpu"}))
    np.testing.assert_array_equal(run.tracks.links, expected.tracks.links)
    assert run.stats["device"] == ("cpu" if room == 0 else "gpu and cpu" if run.stats["on_host"] else "gpu")
    # Five frame pairs: four halvings part them; each alone, and the gaps, fit nowhere but the host.
    assert (run.stats["fallbacks"] == 10) if room == 0 else (0 < run.stats["fallbacks"] < 5)


@pytest.mark.parametrize("size", [1, 1 << 20, (1 << 23) + 8, 5 << 22])
def test_arrays_of_any_size_cross_unharmed_in_every_lane(size):
    def there_and_back(k: int):
        return to_host(to_device(np.arange(k, k + size // 8)) * 3)

    for k, back in enumerate(in_lanes(there_and_back, range(7), 3)):
        np.testing.assert_array_equal(back, 3 * np.arange(k, k + size // 8))
    columns = np.arange(600_000.0).reshape(-1, 3)[::2]  # not contiguous
    [back] = in_lanes(lambda array: to_host(to_device(array).T), [columns], 1)
    np.testing.assert_array_equal(back, columns.T)


@pytest.mark.parametrize("full", [1, 500, 10**6])
@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_neither_size_nor_number_of_batches_changes_a_link(movie, full, lanes, monkeypatch):
    costs = LinkCosts(0.6)
    expected = link_frames(movie, movie.position, costs)
    monkeypatch.setattr(batches, "FULL", full)
    monkeypatch.setattr(batches, "LANES", lanes)
    found = link_frames(movie, movie.position, costs, place=to_device)
    assert found.batches.count == {1: 5, 500: 5, 10**6: 1}[full]
    assert found.batches.planned_bytes > 0
    assert found.batches.fallbacks == 0
    for name in ("pairs", "cost"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()


def test_the_record_states_what_became_of_the_memory(movie, tmp_path):
    write_detections(tmp_path / "movie.parquet", movie)
    words = ["--max-distance", "0.6", "--device", "gpu", "--json", "-v"]
    records, names = [], set(batches.RECORDED) - {"swept_on", "unmatched_pins"}  # of learned linking, of pins
    for mode in ([], ["--stream"]):
        out = tmp_path / f"out{len(records)}.parquet"
        done = succeed("track", tmp_path / "movie.parquet", "-o", out, *words, *mode)
        record, summary = read_record(out), json.loads(done.stdout)
        records.append({name: record[name] for name in names})
        assert records[-1] == {name: summary[name] for name in names}
        assert record["device"] == "gpu"
        assert f"The GPU linked {record['batches']} batches" in done.stderr
    assert [of["batches"] for of in records] == [1, 2]  # the last frame of a file comes by itself
    assert records[0]["planned_bytes"] > batches.BATCH_BYTES


def test_stages_are_timed_apart(movie):
    with stages_timed() as (seconds, beside):
        track(movie, SETTINGS)
    assert {"device", "planning", "linking", "tracks"} <= set(seconds)
    assert {"copy", "candidates", "bids", "paths", "certificate"} <= {*seconds, *beside}
