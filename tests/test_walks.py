"""Walks against theory: exact mean squared displacements, walls, births, deaths, and seeds."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import exp

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from outbid.errors import SettingsError
from outbid.simulate.motions import BrownianWalk, Motion, OrnsteinUhlenbeckWalk, PersistentWalk
from outbid.simulate.streams import Purpose, stream
from outbid.simulate.walks import (
    BOUNDARIES,
    Snapshot,
    WalkSettings,
    next_snapshot,
    snapshots,
    walk,
)

SIGMAS = 4.5
"""Standard errors that a mean may be off: 1 in 150,000 by chance."""


def brownian_msd(sigma: float) -> Callable[[int], float]:
    return lambda n: 3 * n * sigma**2


def fuerth_msd(speed: float, persistence_time: float) -> Callable[[int], float]:
    s, p = speed, persistence_time
    return lambda n: 2 * s**2 * p * (n - p * (1 - exp(-n / p)))


def persistent_msd(step: float, p: float) -> Callable[[int], float]:
    # E[(x + y)/|x + y|] over directions of y is the gradient of E|x + y| with respect to x.
    q = 1 - p
    r, g = (
        (p + q * q / (3 * p), 1 - q * q / (3 * p * p)) if p >= q else (q + p * p / (3 * q), 2 * p / (3 * q))
    )

    def msd(n: int) -> float:
        correlated = sum((n - m) * g ** (m - 1) for m in range(1, n))
        return step**2 * (n * (p * p + q * q) + 2 * p * r * correlated)

    return msd


MOTIONS: list[tuple[Motion, Callable[[int], float]]] = [
    (BrownianWalk(0.7), brownian_msd(0.7)),
    (OrnsteinUhlenbeckWalk(2.0, 0.01), fuerth_msd(2.0, 0.01)),
    (OrnsteinUhlenbeckWalk(2.0, 0.4), fuerth_msd(2.0, 0.4)),
    (OrnsteinUhlenbeckWalk(0.5, 3.0), fuerth_msd(0.5, 3.0)),
    (OrnsteinUhlenbeckWalk(1.0, 200.0), fuerth_msd(1.0, 200.0)),
    *((PersistentWalk(1.5, p), persistent_msd(1.5, p)) for p in (0.0, 0.3, 0.5, 0.8, 0.95, 1.0)),
]
ONE_OF_EACH = [BrownianWalk(0.7), OrnsteinUhlenbeckWalk(1.0, 3.0), PersistentWalk(1.0, 0.8)]


def free_paths(motion: Motion, particles: int, frames: int, seed: int) -> np.ndarray:
    """(frames, particles, 3) positions without walls."""
    free = WalkSettings(motion, particles, frames, (10.0, 10.0, 10.0), "open", seed=seed)
    return np.stack([snapshot.position for snapshot in snapshots(free)])


def assert_mean(samples: np.ndarray, expected: float) -> None:
    error = samples.std() / np.sqrt(len(samples))
    assert abs(samples.mean() - expected) <= SIGMAS * error + 1e-9 * abs(expected)


# ---------------------------------------------------------------- motions


@pytest.mark.smoke
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("motion", "msd"), MOTIONS, ids=[str(motion) for motion, _ in MOTIONS])
def test_the_mean_squared_displacement_is_the_exact_one_from_any_frame_on(
    motion: Motion, msd: Callable[[int], float], seed: int
) -> None:
    path = free_paths(motion, 30_000, 13, seed)
    for start in (0, 4):  # the same from a later frame on: the walk is stationary
        for lag in (1, 2, 3, 8):
            squared = ((path[start + lag] - path[start]) ** 2).sum(axis=1)
            assert_mean(squared, msd(lag))


@pytest.mark.parametrize("motion", ONE_OF_EACH, ids=str)
def test_no_axis_and_no_direction_is_preferred(motion: Motion) -> None:
    path = free_paths(motion, 20_000, 6, seed=4)
    displacement = path[5] - path[0]
    squared = displacement**2
    for axis in range(3):
        assert_mean(displacement[:, axis], 0.0)
        assert_mean(squared[:, axis] - squared.mean(axis=1), 0.0)
        assert_mean(displacement[:, axis] * displacement[:, axis - 1], 0.0)


@pytest.mark.parametrize("persistence_time", [0.3, 4.0])
def test_displacement_and_velocity_of_the_ornstein_uhlenbeck_walk_go_together(
    persistence_time: float,
) -> None:
    motion, rng = OrnsteinUhlenbeckWalk(1.2, persistence_time), np.random.default_rng(5)
    before = motion.start(40_000, rng)
    displacement, after = motion.move(before, rng)
    variance, a = 1.2**2 / 3, exp(-1 / persistence_time)
    for axis in range(3):
        assert_mean(after[:, axis] ** 2, variance)
        assert_mean(before[:, axis] * after[:, axis], variance * a)
        assert_mean(before[:, axis] * displacement[:, axis], variance * persistence_time * (1 - a))
        # The process looks the same backwards in time.
        assert_mean(after[:, axis] * displacement[:, axis], variance * persistence_time * (1 - a))


def test_persistence_leads_from_random_steps_to_straight_flight() -> None:
    lengths = {}
    for persistence in (0.0, 0.4, 1.0):
        moved = np.diff(free_paths(PersistentWalk(2.0, persistence), 500, 8, seed=6), axis=0)
        lengths[persistence] = np.linalg.norm(moved, axis=2)
        if persistence == 1.0:
            np.testing.assert_allclose(moved, np.broadcast_to(moved[0], moved.shape), atol=1e-12)
    np.testing.assert_allclose(lengths[0.0], 2.0)
    np.testing.assert_allclose(lengths[1.0], 2.0)
    assert lengths[0.4].max() <= 2.0
    assert lengths[0.4].min() >= 2.0 * (0.6 - 0.4) - 1e-12


def test_a_step_of_nothing_leaves_all_where_they_are() -> None:
    for motion in (PersistentWalk(0.0, 0.5), BrownianWalk(0.0), OrnsteinUhlenbeckWalk(0.0, 2.0)):
        path = free_paths(motion, 5, 3, seed=0)
        assert (path == path[0]).all()


# ---------------------------------------------------------------- walls


@given(
    st.sampled_from(ONE_OF_EACH),
    st.sampled_from(["reflect", "periodic", "absorb"]),
    st.tuples(*[st.floats(0.05, 50.0)] * 3),
    st.integers(0, 10**6),
)
@settings(max_examples=examples(60))
def test_walls_keep_particles_in_the_box_even_a_narrow_one(
    motion: Motion, boundary: str, box: tuple[float, float, float], seed: int
) -> None:
    for snapshot in snapshots(WalkSettings(motion, 30, 6, box, boundary, 0.1, 0.1, seed)):
        assert (snapshot.position >= 0).all()
        assert (snapshot.position <= box).all()


@pytest.mark.smoke
@pytest.mark.parametrize("boundary", ["reflect", "periodic"])
@pytest.mark.parametrize("motion", ONE_OF_EACH, ids=str)
def test_walls_keep_the_density_uniform(motion: Motion, boundary: str) -> None:
    *_, last = snapshots(WalkSettings(motion, 20_000, 9, (4.0, 6.0, 9.0), boundary, seed=7))
    for axis, length in enumerate((4.0, 6.0, 9.0)):
        counts = np.histogram(last.position[:, axis], bins=20, range=(0.0, length))[0]
        chi_squared = ((counts - 1000) ** 2 / 1000).sum()
        assert chi_squared < 55  # 19 degrees of freedom: 1 in 40,000


def test_reflection_turns_straight_flight_into_a_triangle_wave() -> None:
    box = np.array([3.0, 5.0, 2.0])
    motion = PersistentWalk(1.7, 1.0)
    free = free_paths(motion, 200, 12, seed=8) / 10.0  # places are drawn in a box of 10
    start, moved = free[0], (free - free[0]) * 10.0
    within = WalkSettings(motion, 200, 12, tuple(box.tolist()), "reflect", seed=8)
    for snapshot, shift in zip(snapshots(within), moved, strict=True):
        wave = np.abs((start * box + shift + box) % (2 * box) - box)
        np.testing.assert_allclose(snapshot.position, wave, atol=1e-9)
    assert walk(within).track_count == 200


@pytest.mark.parametrize("motion", ONE_OF_EACH, ids=str)
def test_a_periodic_box_is_free_space_wrapped_and_tracks_break_where_it_wraps(motion: Motion) -> None:
    free = free_paths(motion, 300, 15, seed=9)
    periodic = list(snapshots(WalkSettings(motion, 300, 15, (10.0, 10.0, 10.0), "periodic", seed=9)))
    image = np.floor(free / 10.0)
    for frame in range(15):
        np.testing.assert_allclose(periodic[frame].position, free[frame] - 10 * image[frame], atol=1e-9)
        if frame:
            same = periodic[frame].track == periodic[frame - 1].track
            np.testing.assert_array_equal(same, (image[frame] == image[frame - 1]).all(axis=1))
    wraps = int((image[1:] != image[:-1]).any(axis=2).sum())
    assert wraps > 100
    truth = walk(WalkSettings(motion, 300, 15, (10.0, 10.0, 10.0), "periodic", seed=9))
    assert truth.track_count == 300 + wraps
    # No true link crosses the box.
    assert np.abs(np.diff(truth.detections.position[truth.links], axis=1)).max() < 5.0


def test_open_space_lets_particles_go_and_keeps_their_tracks() -> None:
    truth = walk(WalkSettings(BrownianWalk(1.0), 500, 20, (5.0, 5.0, 5.0), "open", seed=10))
    position = truth.detections.position
    assert ((position < 0) | (position > 5)).any(axis=1).mean() > 0.3
    assert truth.track_count == 500


def test_an_absorbed_particle_is_replaced_anywhere_in_the_box_by_another_track() -> None:
    configuration = WalkSettings(BrownianWalk(1.0), 4000, 6, (20.0, 20.0, 20.0), "absorb", seed=11)
    newborn = []
    for before, after in zip(snapshots(configuration), list(snapshots(configuration))[1:], strict=False):
        assert len(after.track) == 4000
        other = before.track != after.track
        assert after.tracks_so_far == before.tracks_so_far + other.sum()
        step = np.abs(after.position - before.position)[~other]
        assert step.max() < 6.0  # who stays, walks
        newborn.append(after.position[other])
    places = np.concatenate(newborn)
    assert len(places) > 1000
    for axis in range(3):
        assert_mean(places[:, axis], 10.0)
        assert_mean((places[:, axis] - 10.0) ** 2, 20.0**2 / 12)


# ---------------------------------------------------------------- births and deaths


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_equal_rates_of_births_and_deaths_keep_the_density(boundary: str) -> None:
    configuration = WalkSettings(BrownianWalk(0.5), 4000, 30, (20.0, 20.0, 20.0), boundary, 0.08, 0.08, 12)
    count = np.array([len(snapshot.track) for snapshot in snapshots(configuration)])
    # A binomial number of survivors and a Poisson one of newborn: never more variance than 1.25 N.
    assert (np.abs(count - 4000) <= SIGMAS * np.sqrt(1.25 * 4000)).all()
    assert len(set(count.tolist())) > 5


def test_births_and_deaths_come_at_their_rates_and_births_anywhere() -> None:
    configuration = WalkSettings(BrownianWalk(0.1), 3000, 40, (9.0, 9.0, 9.0), "open", 0.05, 0.02, seed=13)
    at_risk, died, births, places = 0, 0, [], []
    movie = list(snapshots(configuration))
    for before, after in zip(movie, movie[1:], strict=False):
        at_risk += len(before.track)
        died += int((~np.isin(before.track, after.track)).sum())
        new = ~np.isin(after.track, before.track)
        births.append(int(new.sum()))
        places.append(after.position[new])
    assert abs(died - 0.02 * at_risk) < SIGMAS * np.sqrt(0.02 * 0.98 * at_risk)
    assert abs(sum(births) - 0.05 * 3000 * 39) < SIGMAS * np.sqrt(0.05 * 3000 * 39)
    assert 0.4 < np.var(births) / (0.05 * 3000) < 2.0  # Poisson: variance like mean
    place = np.concatenate(places)
    assert place.min() >= 0
    assert place.max() <= 9
    for axis in range(3):
        assert_mean(place[:, axis], 4.5)
        assert_mean((place[:, axis] - 4.5) ** 2, 81 / 12)


def test_newborn_particles_move_as_all_others() -> None:
    configuration = WalkSettings(
        OrnsteinUhlenbeckWalk(1.0, 5.0), 20_000, 2, (9.0, 9.0, 9.0), "open", 1.0, 0.0
    )
    newborn = list(snapshots(configuration))[1].velocity[20_000:]
    assert_mean((newborn**2).sum(axis=1), 1.0)


def test_true_links_join_the_same_particle_in_consecutive_frames() -> None:
    configuration = WalkSettings(BrownianWalk(0.5), 200, 10, (9.0, 9.0, 9.0), "periodic", 0.1, 0.1, seed=14)
    truth, label = walk(configuration), np.concatenate([s.track for s in snapshots(configuration)])
    source, target = truth.links.T
    np.testing.assert_array_equal(label[source], label[target])
    assert (truth.detections.frame[target] - truth.detections.frame[source] == 1).all()
    assert truth.track_count == len(np.unique(label)) == label.max() + 1


@pytest.mark.parametrize(("particles", "birth", "death"), [(0, 0.5, 0.0), (1, 0.0, 0.0), (20, 0.0, 1.0)])
def test_empty_frames_and_single_particles(particles: int, birth: float, death: float) -> None:
    truth = walk(WalkSettings(BrownianWalk(0.5), particles, 3, (9.0, 9.0, 9.0), "reflect", birth, death))
    assert len(truth.detections) == {0: 0, 1: 3, 20: 20}[particles]


# ---------------------------------------------------------------- seeds


def same(one: Snapshot, other: Snapshot) -> bool:
    return one.frame == other.frame and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("position", "velocity", "track")
    )


@pytest.mark.smoke
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("motion", ONE_OF_EACH, ids=str)
def test_neither_chunks_nor_workers_nor_later_frames_change_a_movie(motion: Motion, boundary: str) -> None:
    configuration = WalkSettings(motion, 50, 9, (6.0, 6.0, 6.0), boundary, 0.1, 0.1, seed=15)
    whole = list(snapshots(configuration))
    np.testing.assert_array_equal(
        walk(configuration).detections.position, np.concatenate([s.position for s in whole])
    )
    # Longer movies begin alike.
    longer = snapshots(replace(configuration, frames=20))
    assert all(same(one, other) for one, other in zip(whole, longer, strict=False))
    # A snapshot that went through another process is as good as one's own.
    resumed = pickle.loads(pickle.dumps(whole[4]))
    for expected in whole[5:]:
        resumed = next_snapshot(configuration, resumed)
        assert same(resumed, expected)
    # Walks at the same time do not disturb each other.
    with ThreadPoolExecutor(4) as pool:
        seeds = [15, 16, 15, 17]
        movies = list(pool.map(lambda seed: list(snapshots(replace(configuration, seed=seed))), seeds))
    assert all(same(one, other) for one, other in zip(movies[0], whole, strict=True))
    assert all(same(one, other) for one, other in zip(movies[2], whole, strict=True))
    assert not same(movies[1][0], whole[0])


def test_a_stream_depends_on_seed_purpose_and_frame_alone() -> None:
    keys = [
        (seed, purpose, frame) for seed in (0, 1) for purpose in Purpose for frame in (-1, 0, 1, 2**31 - 1)
    ]
    drawn = [stream(*key).random() for key in keys]
    assert len(set(drawn)) == len(keys)
    assert [stream(*key).random() for key in reversed(keys)] == drawn[::-1]


def test_births_and_walls_leave_the_first_frame_as_it_was() -> None:
    plain = WalkSettings(BrownianWalk(0.5), 40, 2, (9.0, 9.0, 9.0))
    other = replace(plain, boundary="periodic", birth_rate=0.3, death_rate=0.3)
    assert same(next(snapshots(plain)), next(snapshots(other)))


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"particles": -1}, "particles is -1"),
        ({"frames": 0}, "frames is 0"),
        ({"box": (1.0, 0.0, 1.0)}, "box along y is 0.0"),
        ({"box": (float("nan"), 1.0, 1.0)}, "box along z is nan"),
        ({"box": (1.0, 1.0)}, "box is .* three numbers"),
        ({"boundary": "reflecting"}, "reflect, periodic, open, absorb"),
        ({"birth_rate": -0.1}, "birth_rate is -0.1"),
        ({"birth_rate": float("inf")}, "birth_rate is inf"),
        ({"death_rate": 1.1}, "death_rate is 1.1; it must be from 0 to 1"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changed: dict, said: str) -> None:
    sound = WalkSettings(BrownianWalk(0.5), 5, 2, (9.0, 9.0, 9.0))
    with pytest.raises(SettingsError, match=said):
        replace(sound, **changed)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (PersistentWalk, (-1.0, 0.5)),
        (PersistentWalk, (1.0, 1.5)),
        (PersistentWalk, (float("nan"), 0.5)),
        (BrownianWalk, (-0.1,)),
        (OrnsteinUhlenbeckWalk, (1.0, 0.0)),
        (OrnsteinUhlenbeckWalk, (1.0, float("inf"))),
    ],
)
def test_motions_that_make_no_sense_are_refused(kind: Callable[..., Motion], values: tuple) -> None:
    with pytest.raises(SettingsError):
        kind(*values)
