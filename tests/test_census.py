"""Census: how many particles are seen again, found by counting detections."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from outbid import Detections, TrackingSettings, Tracks, score, track
from outbid.calibrate.census import Census, counted
from outbid.motion import Motion
from outbid.refine.linking import LinkModel
from outbid.refine.movie import Movie, movie_of

Points = NDArray[np.float64]
MODEL = LinkModel(Motion.static((0.3,) * 3), (0.6, 0.1, 0.02), 0.28, 0.25, gate=(1.4,) * 3, clutter=0.1)


def seen_as(frames: list[Points]) -> Movie:
    frame = np.repeat(np.arange(len(frames)), [len(place) for place in frames])
    return movie_of(Detections.from_table(frame, np.concatenate(frames)), (1, 1, 1))


def uniform(rng: np.random.Generator, count: int) -> Points:
    return rng.uniform(0, 10, (count, 3))


def clustered(rng: np.random.Generator, count: int) -> Points:
    """Around every tenth of them, ten times as dense as between."""
    middle = rng.uniform(0, 12, (count // 10, 3))
    return np.repeat(middle, 10, axis=0) + rng.normal(0, 0.6, (count // 10 * 10, 3))


def on_a_line(rng: np.random.Generator, count: int) -> Points:
    return rng.uniform(0, count / 3, (count, 1)) * [1.0, 0.5, 0.2]


def by_normal(rng: np.random.Generator, place: Points) -> Points:
    return rng.normal(0, 0.3, place.shape)


def by_one_length(rng: np.random.Generator, place: Points) -> Points:
    way = rng.normal(size=place.shape)
    return 0.3 * np.sqrt(3) * way / np.sqrt(np.square(way).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("lying", [uniform, clustered, on_a_line])
@pytest.mark.parametrize("going", [by_normal, by_one_length])
@pytest.mark.parametrize(("miss", "clutter"), [(0.0, 0.0), (0.3, 0.0), (0.1, 0.5)])
def test_as_many_are_seen_again_as_there_are(lying, going, miss, clutter):
    rng = np.random.default_rng(0)
    place, frames = lying(rng, 800), []
    for _ in range(20):
        low, high = place.min(axis=0), place.max(axis=0)
        strays = rng.uniform(low, high, (rng.poisson(clutter * (1 - miss) * len(place)), 3))
        frames.append(np.concatenate([place[rng.random(len(place)) >= miss], strays]))
        place = place + going(rng, place)
    found = counted(seen_as(frames), np.full(3, 0.3))
    truth = (1 - miss) / (1 + clutter)
    assert found is not None
    assert truth - 0.045 - 4 * found.error < found.seen < truth + 0.01 + 4 * found.error
    assert found.error < 0.04


def test_frames_that_show_less_are_no_others():
    rng = np.random.default_rng(1)
    place = rng.uniform(0, 10, (1000, 3))
    shown = [place[rng.random(1000) < (0.4 if frame % 2 else 1.0)] for frame in range(12)]
    found = counted(seen_as(shown), np.full(3, 0.3))
    # In the mean of the detections: those of whole frames are seen again less often than those of others.
    assert found is not None
    assert found.seen == pytest.approx((0.4 * 1 + 1 * 0.4) / 1.4, abs=4 * found.error)


@pytest.mark.parametrize("burst", [(0,), (11,), (0, 11)])
def test_a_frame_full_of_strays_is_no_crowd_seen_again(burst):
    rng = np.random.default_rng(2)
    place, frames = rng.uniform(0, 8, (300, 3)), []
    for frame in range(12):
        strays = rng.uniform(0, 8, (900 + 4000 * (frame in burst), 3))
        frames.append(np.concatenate([place, strays]))
        place = place + by_normal(rng, place) / 2
    found = counted(seen_as(frames), np.full(3, 0.15))
    assert found is not None
    assert found.seen == pytest.approx(0.25, abs=0.04)


def test_frames_beside_an_empty_one_are_not_counted():
    rng = np.random.default_rng(3)
    place, frames = rng.uniform(0, 8, (700, 3)), []
    for frame in range(16):
        frames.append(place if frame not in (4, 5, 11) else place[:0])
        place = place + by_normal(rng, place)
    found = counted(seen_as(frames), np.full(3, 0.3))
    assert found is not None
    assert found.seen > 0.94


def test_more_than_all_are_not_seen_again():
    """Of two that are near each other one is shown: in the next frame others are where none was beside it."""
    rng = np.random.default_rng(4)
    place, frames = rng.uniform(0, 8, (1500, 3)), []
    for _ in range(15):
        place = rng.permutation(8 - np.abs(8 - np.abs(place + rng.normal(0, 0.25, place.shape))))
        shown = np.ones(len(place), dtype=bool)
        for one, other in sorted(cKDTree(place).query_pairs(0.8)):
            shown[other] &= not shown[one]
        frames.append(place[shown])
    assert counted(seen_as(frames), np.full(3, 0.25)) is None


def test_too_few_and_too_many_are_not_counted():
    rng = np.random.default_rng(2)
    assert counted(seen_as([rng.uniform(0, 9, (300, 3)) for _ in range(8)]), np.full(3, 0.3)) is None
    assert counted(seen_as([rng.uniform(0, 2, (900, 3)) for _ in range(8)]), np.full(3, 0.3)) is None
    for frames in (0, 1, 2):
        assert counted(seen_as([np.empty((0, 3)), *[place_of(frames)] * frames]), np.full(3, 0.3)) is None


def place_of(seed: int) -> Points:
    return np.random.default_rng(seed).uniform(0, 20, (3000, 3))


def test_threads_change_nothing():
    rng = np.random.default_rng(3)
    movie, step = seen_as([rng.uniform(0, 9, (900, 3)) for _ in range(8)]), np.full(3, 0.3)
    assert counted(movie, step, workers=1) == counted(movie, step, workers=3)


@given(st.floats(0, 1.2), st.floats(1e-4, 0.3), st.floats(0.1, 0.9999), st.floats(0.1, 2.0))
def test_rates_only_fall_and_stay_rates(seen, error, often, ratio):
    end = 0.7 * (1 - often)
    start = min(ratio * end, 0.9)
    model = replace(MODEL, follow=(often, 1 - often - end), end=end, start=start, clutter=min(end, start) / 2)
    new, known = Census(seen, error).revised(model), often * (1 + (1 - model.start) / (1 - end)) / 2
    if new is model:
        assert seen <= known + 2.5 * error
        return
    less = new.end / model.end
    assert less == pytest.approx((1 - min(seen, 0.999)) / max(1 - known, 0.001))
    assert 0 < less <= 1
    assert sum(new.follow) + new.end == pytest.approx(1)
    assert new.follow[0] >= often
    assert (new.follow[1], new.start, new.clutter) == pytest.approx(
        (less * model.follow[1], less * model.start, less * model.clutter)
    )


def test_a_model_without_gaps_has_none_afterwards():
    new = Census(0.9, 0.01).revised(replace(MODEL, follow=(0.72,), start=0.28))
    assert new.follow == pytest.approx((0.9,))


def tumbling(*, speed: float, seed: int, particles: int = 800, frames: int = 30) -> Tracks:
    """Bacteria that swim straight on, each at the same speed, and tumble every tenth frame."""
    rng, box = np.random.default_rng(seed), 10.0

    def ways() -> Points:
        way = rng.normal(size=(particles, 3))
        return way / np.sqrt(np.square(way).sum(axis=1, keepdims=True))

    place, way, places = rng.uniform(0, box, (particles, 3)), ways(), []
    for _ in range(frames):
        places.append(place)
        way = np.where(rng.random((particles, 1)) < 0.1, ways(), way)
        place = place + speed * way + rng.normal(0, 0.03, place.shape)
        place = box - np.abs(box - np.abs(place))
    seen = Detections.from_table(np.repeat(np.arange(frames), particles), np.concatenate(places))
    return Tracks.from_track_ids(seen, np.tile(np.arange(particles), frames))


@pytest.mark.parametrize("known", [{}, {"clutter": 0.0}, {"end": 0.02}])
def test_bacteria_that_run_and_tumble_past_each_other(known):
    """They go as far as they are apart, and none is missed."""
    truth = tumbling(speed=0.6, seed=1)
    run = track(truth.detections, TrackingSettings(known=known))
    assert score(run.tracks, truth, gate=1e-300, families=("links",)).values["link_f1"] > 0.8
    assert run.learned is not None
    assert run.learned.model.follow[0] > 0.9


def test_who_bleaches_does_not_end_half_as_often():
    """As many end as disappear, also where none starts."""
    rng = np.random.default_rng(6)
    place, frames, alive = rng.uniform(0, 14, (3000, 3)), [], np.arange(3000)
    ids = []
    for _ in range(14):
        frames.append(place[alive])
        ids.append(alive)
        alive, place = alive[rng.random(len(alive)) > 0.1], place + rng.normal(0, 0.35, place.shape)
    seen = Detections.from_table(np.repeat(np.arange(14), [len(one) for one in ids]), np.concatenate(frames))
    run = track(seen)
    assert run.learned is not None
    assert run.learned.model.end > 0.08
