"""Whole movies on the GPU: the same bytes at every run, in memory or streamed, and when it has no room."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from outbid.tracker import Detections, TrackingSettings, match, track
from outbid.tracker._arrays import stages_timed, to_device, to_host
from outbid.tracker.formats import read_tracks, write_detections
from outbid.tracker.stream import track_stream

pytestmark = pytest.mark.gpu
SETTINGS = TrackingSettings(0.6, device="gpu")
door = import_module("outbid.tracker.track")


@pytest.fixture(scope="module")
def movie() -> Detections:
    rng = np.random.default_rng(8)
    position = rng.uniform(0, 7, (1, 300, 3)) + np.cumsum(rng.normal(0, 0.1, (6, 300, 3)), axis=0)
    seen = rng.random((6, 300)) > 0.05
    return Detections.from_table(np.repeat(np.arange(6), 300)[seen.ravel()], position[seen])


def test_ten_runs_end_with_the_same_bytes(movie):
    first, second = movie.rows_of(0), movie.rows_of(1)
    points = to_device(movie.position[first]), to_device(movie.position[second])
    answers = set()
    for _ in range(10):
        found = match(*points, 0.6)
        arrays = (found.source, found.target, found.cost, found.margin, found.assignment.col_dual)
        answers.add(b"".join(to_host(array).tobytes() for array in arrays))
    assert len(answers) == 1


def test_pieces_of_a_file_get_the_tracks_of_the_whole(movie, tmp_path):
    expected = track(movie, TrackingSettings(0.6, device="cpu")).tracks
    write_detections(tmp_path / "movie.parquet", movie)
    out = tmp_path / "out.parquet"
    stats = track_stream(tmp_path / "movie.parquet", out, SETTINGS, record={}, rows=700)
    assert stats["device"] == "gpu"
    assert stats["worst_gap"] == 0
    np.testing.assert_array_equal(read_tracks(out).links, expected.links)
    np.testing.assert_array_equal(read_tracks(out).track_id, expected.track_id)


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
    assert run.stats["device"] == "gpu"
    # Five frame pairs: four halvings part them; each alone, and the gaps, fit nowhere but the host.
    assert (run.stats["fallbacks"] == 10) if room == 0 else (0 < run.stats["fallbacks"] < 5)


def test_stages_are_told_apart(movie):
    with stages_timed() as seconds:
        track(movie, SETTINGS)
    assert {"copy", "candidates", "bids", "paths", "certificate", "linking", "tracks"} <= set(seconds)
