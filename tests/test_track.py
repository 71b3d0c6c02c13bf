"""Linking, gap closing and track() on scenes whose answer is known, and on real movies."""

from importlib import import_module

import numpy as np
import pytest
from commands import fresh_python
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import points

from outbid import (
    Detections,
    InputError,
    ResourceError,
    SettingsError,
    TrackingSettings,
    Tracks,
    match,
    read_tracks,
    score,
    track,
)
from outbid.assignment import SOLVERS


def movie(*frames) -> Detections:
    """Points along x, one list a frame."""
    frame = [t for t, xs in enumerate(frames) for _ in xs]
    return Detections.from_table(frame, [[0.0, 0.0, x] for xs in frames for x in xs])


def links(detections: Detections, max_distance: float = 3.0, **settings) -> list[list[int]]:
    return track(detections, TrackingSettings(max_distance, **settings)).tracks.links.tolist()


@pytest.mark.smoke
def test_three_frames_two_particles():
    assert links(movie([0, 10], [1, 9], [2, 8])) == [[0, 2], [1, 3], [2, 4], [3, 5]]


@pytest.mark.smoke
def test_births_and_deaths_break_no_other_link():
    assert links(movie([0, 10], [1], [2, 50])) == [[0, 2], [2, 3]]


@pytest.mark.smoke
def test_the_cheaper_whole_beats_the_nearest_pair():
    # Nearest first would take 1 -> 1.4 and lose the other particle.
    assert links(movie([0, 1], [1.4, 2.6]), max_distance=3.0) == [[0, 2], [1, 3]]


@pytest.mark.smoke
def test_gap_closing_bridges_missing_frames_up_to_its_length():
    scene = movie([0], [0.5], [], [1], [], [], [2])
    assert links(scene) == [[0, 1]]
    assert links(scene, max_gap=1) == [[0, 1], [1, 2]]
    assert links(scene, max_gap=2) == [[0, 1], [1, 2], [2, 3]]


def test_gap_closing_has_a_distance_of_its_own():
    scene = movie([0], [0.1], [], [5])
    assert links(scene, max_distance=1.0, max_gap=1) == [[0, 1]]
    assert links(scene, max_distance=1.0, max_gap=1, gap_distance=6.0) == [[0, 1], [1, 2]]


def test_an_empty_frame_between_is_not_linked_across():
    assert links(movie([0], [], [0])) == []


@pytest.mark.timeout(10)
def test_frame_numbers_may_be_times_with_millions_of_empty_frames_between():
    times = Detections.from_table([0, 1, 20_000_000, 20_000_001], np.zeros((4, 3)))
    assert links(times) == [[0, 1], [2, 3]]


def test_frames_may_start_anywhere():
    shifted = Detections.from_table([100, 101], np.zeros((2, 3)))
    assert links(shifted) == [[0, 1]]


@pytest.mark.smoke
def test_spacing_stretches_the_axes():
    scene = Detections.from_table([0, 1], [[0, 0, 0], [2, 0, 0]])
    assert links(scene) == [[0, 1]]
    assert links(scene, spacing=(5.0, 1.0, 1.0)) == []


@pytest.mark.parametrize("frames", [[], [[1.0]], [[1, 2]], [[], []]])
def test_movies_too_short_to_link(frames):
    run = track(movie(*frames), TrackingSettings(1.0, max_gap=2))
    assert len(run.tracks.links) == 0
    assert run.tracks.track_id.tolist() == list(range(len(run.tracks.detections)))


@pytest.mark.smoke
@settings(max_examples=examples(100))
@given(st.lists(points(12), max_size=5), st.sampled_from([0.6, 1.5]))
def test_every_frame_pair_is_matched_as_if_it_stood_alone(frames, gate):
    detections = Detections.from_table(
        np.repeat(np.arange(len(frames)), [len(f) for f in frames]),
        np.concatenate([np.zeros((0, 3)), *frames]),
    )
    run = track(detections, TrackingSettings(gate))
    alone = sum(
        match(a, b, gate).assignment.primal_cost for a, b in zip(frames[:-1], frames[1:], strict=True)
    )
    ends = sum(len(f) for f in frames[:-1]) + sum(len(f) for f in frames[1:]) - 2 * len(run.tracks.links)
    assert run.tracks.link_cost.sum() + gate / 2 * ends == pytest.approx(alone * gate / 2**27, abs=1e-6)
    assert run.stats["worst_gap"] == 0


def random_movie(frames: int = 40, count: int = 200) -> Detections:
    rng = np.random.default_rng(6)
    position = rng.uniform(0, 6, (count, 3)) + np.cumsum(rng.normal(0, 0.1, (frames, count, 3)), axis=0)
    return Detections.from_table(np.repeat(np.arange(frames), count), position.reshape(-1, 3))


@pytest.mark.smoke
def test_neither_workers_nor_the_length_of_a_run_change_a_link(monkeypatch):
    detections = random_movie()
    settings = TrackingSettings(0.6, max_gap=2)
    expected = track(detections, settings, workers=1).tracks
    for run_length, workers in [(100, 1), (1000, 3), (10**9, 8)]:
        monkeypatch.setattr("outbid.gated.linking.RUN", run_length)
        found = track(detections, settings, workers=workers).tracks
        np.testing.assert_array_equal(found.links, expected.links)
        np.testing.assert_array_equal(found.link_cost, expected.link_cost)


def test_shuffled_rows_give_the_same_tracks():
    detections = random_movie()
    order = np.random.default_rng(8).permutation(len(detections))
    shuffled = Detections.from_table(detections.frame[order], detections.position[order])
    pairs = [{(*d.position[i], *d.position[j]) for i, j in links(d, 0.6)} for d in (detections, shuffled)]
    assert pairs[0] == pairs[1]


def test_progress_is_reported_up_to_the_end(monkeypatch):
    monkeypatch.setattr("outbid.gated.linking.RUN", 1000)
    reported = []
    track(random_movie(), TrackingSettings(0.6), progress=lambda done, total: reported.append((done, total)))
    assert len(reported) > 3
    assert reported == sorted(reported)
    assert all(total == 8000 for _, total in reported)


def test_tracking_waits_for_no_library_that_it_does_not_need():
    """Each of these takes .1 s or more to load."""
    code = """
import sys
import numpy as np
import scipy.linalg  # which Numba loads, and which loads sparse matrices itself before SciPy 1.15
before = set(sys.modules)
from outbid import Detections, track
from outbid import cli
place = np.random.default_rng(0).uniform(0, 9, (5, 50, 3))
track(Detections.from_table(np.repeat(np.arange(5), 50), place.reshape(-1, 3)))
slow = {"pandas", "matplotlib", "scipy.spatial", "scipy.sparse", "scipy.optimize", "scipy.stats"}
print(sorted(slow & (set(sys.modules) - before)))
"""
    assert fresh_python(code) == "[]"


@pytest.mark.smoke
def test_every_solver_links_movies_and_the_exact_ones_agree():
    detections = random_movie(frames=4)
    costs = {}
    for solver in SOLVERS:
        run = track(detections, TrackingSettings(0.6, solver=solver))
        costs[solver] = run.tracks.link_cost.sum() - 0.6 * len(run.tracks.links)
    best = costs["bid_and_augment"]
    for solver in set(SOLVERS) - {"greedy", "greedy_switching"}:
        assert costs[solver] == pytest.approx(best, abs=1e-6), solver
    assert costs["greedy"] > best
    assert best <= costs["greedy_switching"] < costs["greedy"]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_distance": -1.0}, "max_distance is -1"),
        ({"max_distance": float("nan")}, "max_distance is nan"),
        ({"cost": "cubic"}, "no cost 'cubic'"),
        ({"unmatched_cost": -2.0}, "unmatched_cost is -2"),
        ({"spacing": (1.0, 0.0, 1.0)}, "spacing is"),
        ({"spacing": (1.0, 1.0)}, "three sizes"),
        ({"max_gap": -1}, "max_gap is -1"),
        ({"gap_distance": -1.0}, "must be 0 or more"),
        ({"solver": "magic"}, "no solver 'magic'"),
        ({"device": "tpu"}, "no device 'tpu'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(change, words):
    with pytest.raises(SettingsError, match=words):
        TrackingSettings(**({"max_distance": 1.0} | change))


def test_a_gap_distance_of_0_closes_no_gap():
    assert links(movie([0], [], [0]), max_gap=1, gap_distance=0.0) == []


def test_fewer_than_one_worker_is_refused():
    with pytest.raises(SettingsError, match="workers is 0"):
        track(movie([0], [0]), TrackingSettings(1.0), workers=0)


def test_without_a_gpu_asking_for_one_says_what_to_install_and_auto_uses_the_cpu(monkeypatch):
    def none() -> list[str]:
        raise RuntimeError("CuPy is not installed. With an NVIDIA GPU: pip install 'outbid[cuda12]'.")

    module = import_module("outbid.tracking")
    monkeypatch.setattr("outbid.settings.device.gpu_names", none)
    monkeypatch.setattr(module, "GPU_FROM_DETECTIONS", 0)
    with pytest.raises(ResourceError, match=r"pip install 'outbid\[cuda12\]'.*--device auto or cpu"):
        track(movie([0], [0]), TrackingSettings(1.0, device="gpu"))
    assert track(movie([0], [0]), TrackingSettings(1.0, device="auto")).settings.device == "cpu"


def test_candidates_beyond_the_memory_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr("outbid.gated.movie.free_memory", lambda: 10_000)
    with pytest.raises(ResourceError, match="Lower the largest distance"):
        track(movie(list(range(100)), list(range(100))), TrackingSettings(1000.0))


def test_detections_refuse_what_is_no_movie():
    with pytest.raises(InputError, match="must be finite"):
        Detections.from_table([0, 1], [[0, 0, 0], [0, np.nan, 0]])
    with pytest.raises(InputError, match=r"Row 1 has frame 0\.5"):
        Detections.from_table([0, 0.5], np.zeros((2, 3)))
    with pytest.raises(InputError, match="whole numbers"):
        Detections.from_table(["a"], np.zeros((1, 3)))
    with pytest.raises(InputError, match=r"position \(N, 3\)"):
        Detections.from_table([0, 1], np.zeros((3, 3)))
    with pytest.raises(InputError, match="Number the frames consecutively"):
        _ = Detections.from_table([0, 2**30], np.zeros((2, 3))).frame_start


def test_every_third_frame():
    kept = movie([0], [1], [2], [3], [4], [5], [6]).every(3)
    assert kept.frame.tolist() == [0, 1, 2]
    assert kept.position[:, 2].tolist() == [0, 3, 6]


def test_tracks_number_themselves_by_their_first_detection_and_know_divisions():
    scene = movie([5, 0], [0.1, 5.1], [5, 0, 0.3])
    divided = Tracks(scene, np.array([[0, 3], [1, 2], [2, 5], [2, 6], [3, 4]]))
    assert divided.track_id.tolist() == [0, 1, 1, 0, 0, 2, 3]
    assert divided.parent.tolist() == [-1, -1, -1, -1, -1, 1, 1]
    again = Tracks.from_track_ids(scene, divided.track_id, divided.parent)
    assert again.links.tolist() == divided.links.tolist()


def test_tracks_refuse_what_is_no_track():
    scene = movie([0, 1], [0, 1])
    with pytest.raises(InputError, match="two detections in frame 0"):
        Tracks.from_track_ids(scene, [4, 4, 5, 6])
    with pytest.raises(InputError, match="names parent 9"):
        Tracks.from_track_ids(scene, [0, 1, 2, 3], [-1, -1, 9, -1])
    with pytest.raises(InputError, match="before its parent"):
        Tracks.from_track_ids(scene, [0, 1, 0, 1], [-1, 0, -1, -1])
    with pytest.raises(InputError, match="does not run forward"):
        Tracks(scene, np.array([[2, 0]]))
    with pytest.raises(InputError, match="outside"):
        Tracks(scene, np.array([[0, 4]]))


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "max_distance"),
    [("celegans/L1.csv", 55.0), ("ascidian/Pm08.csv", 50.0), ("turbulence/tracers_2000.csv", 0.03)],
)
def test_real_movies_at_their_native_rate(real_data, name, max_distance):
    truth = read_tracks(real_data / name)
    run = track(truth.detections, TrackingSettings(max_distance))
    assert score(run.tracks, truth, families=("links",)).values["link_f1"] >= 0.995
    assert run.stats["worst_gap"] == 0


def test_links_in_any_order_make_the_same_tracks() -> None:
    rng = np.random.default_rng(0)
    seen = Detections.from_table(np.repeat(np.arange(9), 5), rng.random((45, 3)))
    links = np.array([[row, row + 5 * rng.integers(1, 3)] for row in range(30) if rng.random() < 0.7])
    links = links[np.unique(links[:, 1], return_index=True)[1]]
    links = links[np.lexsort((links[:, 1], links[:, 0]))]
    first = np.arange(45)  # by hand: follow each detection back to the start of its track
    before = dict(links[:, ::-1].tolist())
    for row in range(45):
        while first[row] in before:
            first[row] = before[first[row]]
    expected = np.unique(first, return_inverse=True)[1]
    np.testing.assert_array_equal(Tracks(seen, links).track_id, expected)
    np.testing.assert_array_equal(Tracks(seen, links[::-1]).track_id, expected)
