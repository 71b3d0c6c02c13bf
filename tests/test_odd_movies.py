"""Movies of odd kinds, none of them rare: nothing about them is given, and they are linked as others are."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from scenes import Points, always_seen, diffusing, film

from outbid import Detections, InputError, Tracks, score, track
from outbid.learned.prepare import read_movie


def shifted(truth: Tracks, change: Callable[[Points], Points]) -> Tracks:
    seen = truth.detections
    return Tracks.from_track_ids(Detections.from_table(seen.frame, change(seen.position)), truth.track_id)


def f1_of(truth: Tracks) -> float:
    found = track(truth.detections).tracks
    return score(found, truth, gate=1e-300, families=("links",)).values["link_f1"]


# ---------------------------------------------------------------- flat, few, far, large and small


def crowd_in_a_box(sigma: float, *, particles: int = 500, frames: int = 40, box: float = 8.0) -> Tracks:
    """Particles that diffuse between walls."""
    rng = np.random.default_rng(0)
    place, places = rng.uniform(0, box, (particles, 3)), []
    for _ in range(frames):
        places.append(place)
        place = box - np.abs(box - np.abs(place + sigma * rng.normal(size=place.shape)))
    return always_seen(np.array(places))


def in_slices(apart: float, astray: float) -> Callable[[Points], Points]:
    """The nearest slice of the stack; or one beside it, so far astray z is measured."""
    rng = np.random.default_rng(5)

    def sliced(place: Points) -> Points:
        place = place.copy()
        place[:, 0] = apart * np.round((place[:, 0] + astray * rng.normal(size=len(place))) / apart)
        return place

    return sliced


@pytest.mark.parametrize(
    "apart", [pytest.param(0.5, marks=pytest.mark.slow), 1.0, pytest.param(1.5, marks=pytest.mark.slow)]
)
def test_detections_of_a_stack_go_from_slice_to_slice(apart):
    """Also where slices are as far apart as a gate is wide."""
    truth = shifted(crowd_in_a_box(0.08), in_slices(apart, 0.3))
    assert f1_of(truth) > 0.95


def test_slices_are_axes_on_which_all_lie_in_few():
    rng, frame = np.random.default_rng(0), np.repeat([0, 1], 1000)
    place = rng.uniform(0, 100, (2000, 3))
    place[:, 0] = 2.5 * np.round(place[:, 0] / 2.5)
    place[0, 0] += 0.1  # a stray
    np.testing.assert_allclose(read_movie(Detections.from_table(frame, place)).slices, [2.5, 0, 0])
    np.testing.assert_allclose(read_movie(Detections.from_table(frame, place), (3, 1, 1)).slices, [7.5, 0, 0])
    place += 1e-12 * rng.normal(size=place.shape)  # such as a rotation and back
    np.testing.assert_allclose(read_movie(Detections.from_table(frame, place)).slices, [2.5, 0, 0])
    place[1] = 1e7  # far astray
    np.testing.assert_allclose(read_movie(Detections.from_table(frame, place)).slices, [2.5, 0, 0])
    place[:, 0] = 7.0
    flat = read_movie(Detections.from_table(frame, place))
    assert flat.slices.tolist() == [0, 0]
    assert read_movie(Detections.from_table([], np.empty((0, 3)))).slices.tolist() == [0]


@pytest.mark.slow
@pytest.mark.parametrize("thick", [0.0, 1e-12, 1e-6, 1e-4, 1e-2])
def test_a_plane_that_is_not_quite_one(thick):
    """Rounding, a conversion or a rotation leaves a little along z."""
    rng = np.random.default_rng(0)
    truth = film(diffusing(0.4))

    def flattened(place):
        return np.column_stack([thick * rng.normal(size=len(place)), place[:, 1:]])

    assert f1_of(shifted(truth, flattened)) > 0.9


def test_axes_that_only_round_are_flat_and_a_stray_makes_none():
    place = np.random.default_rng(0).uniform(0, 50, (200, 3)) * [1e-7, 1, 1]
    seen = Detections.from_table(np.repeat([0, 1], 100), place)
    assert read_movie(seen).axes == "yx"
    assert read_movie(seen, (1e7, 1, 1)).axes == "zyx"
    place[5, 2] = 1e9
    assert read_movie(Detections.from_table(seen.frame, place)).axes == "yx"


@pytest.mark.smoke
@pytest.mark.parametrize("frames", [2, 3, 4, 5])
def test_a_single_particle_in_few_frames(frames):
    assert f1_of(film(diffusing(0.4), particles=1, frames=frames)) == 1


@pytest.mark.parametrize("scale", [1e-15, 1e-9, 1e9])
def test_any_unit_of_length_will_do(scale):
    truth = film(diffusing(0.4), particles=60, frames=10)
    usual, other = (track(one.detections) for one in (truth, shifted(truth, lambda place: place * scale)))
    assert (usual.tracks.links != other.tracks.links).sum() <= 4
    assert other.learned.step == pytest.approx(scale * usual.learned.step, rel=0.02)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_lengths_without_squares_are_refused(scale):
    with pytest.raises(InputError, match="choose another unit"):
        track(shifted(film(diffusing(0.4), particles=60, frames=3), lambda place: place * scale).detections)


def test_a_stray_that_has_no_square_is_refused():
    truth = film(diffusing(0.4), particles=60, frames=3)
    truth.detections.position[7] = 1e300
    with pytest.raises(InputError, match="drop outliers"):
        track(truth.detections)


def test_a_particle_that_is_still_but_for_rounding():
    """In metres it varies by less than the least distance that counts."""
    place = np.full((6, 3), 3e-5)
    place[::2, 0] = np.nextafter(3e-5, 1)
    run = track(Detections.from_table(np.arange(6), place))
    assert run.stats["links"] == 5


@pytest.mark.parametrize("far", [1e5, 1e10, 1e30])
def test_a_stray_detection_changes_nothing(far):
    truth = film(diffusing(0.4), particles=50, frames=10)
    truth.detections.position[207] = far
    assert f1_of(truth) > 0.98


@pytest.mark.slow
def test_a_stray_detection_costs_nothing():
    truth = film(diffusing(0.05), particles=20_000, frames=3)
    track(truth.detections)
    seconds: dict[float, list[float]] = {30.0: [], 1e6: []}
    for far in (30.0, 1e6) * 3:
        truth.detections.position[7] = far
        start = time.process_time()
        track(truth.detections)
        seconds[far].append(time.process_time() - start)
    assert min(seconds[1e6]) < 3 * min(seconds[30.0])


# ---------------------------------------------------------------- two kinds, whole frames, holes, heaps


@pytest.mark.slow
@pytest.mark.parametrize(("still", "least"), [(0.2, 0.7), (0.5, 0.85), (0.8, 0.96)])
def test_some_are_stuck_and_the_others_diffuse(still, least):
    """Those that diffuse are not taken for clutter."""
    sigma = np.where(np.arange(300) < still * 300, 0.1, 4.0)[:, None]
    assert f1_of(film(diffusing(sigma))) > least


@pytest.mark.slow
def test_a_tissue_that_beats_and_rests():
    """Links lead to the frames of the beat, not over them."""
    size = np.tile([1.0, 0.8, 1.0, 1.0], 6)
    jitter = diffusing(0.15)

    def beaten(place, frame):
        return jitter(30 + (place - 30) * size[frame + 1] / size[frame], frame)

    assert f1_of(film(beaten, frames=20)) > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("drift", [3.0, 12.0])
def test_a_sample_that_drifts_while_frames_are_dropped(drift):
    jitter = diffusing(0.5)
    truth = film(
        lambda place, frame: jitter(place, frame) + np.array([0, 0, drift]),
        particles=200, frames=30, drop=(5, 9, 13, 14, 21, 25),
    )  # fmt: skip
    assert f1_of(truth) > 0.98


@pytest.mark.nightly
def test_a_heap_of_detections_is_no_crowd_of_daughters():
    """Of the pairs of starts near each of 2,000, few are looked at."""
    place = np.zeros((4500, 3))
    place[::3] = np.random.default_rng(0).uniform(0, 50, (1500, 3))
    run = track(Detections.from_table(np.repeat(np.arange(3), 1500), place))
    assert run.stats["divisions"] == 0
