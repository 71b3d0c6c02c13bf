"""Probabilities of links where two tracks meet, beside exact sums."""

import numpy as np
import pytest
from numpy.typing import NDArray

from outbid import Detections, TrackingSettings, track
from outbid.learned.inference.encounters import odds_of_exchange
from outbid.learned.model import AssociationModel, LocalFields, Model, MotionModel
from outbid.learned.model.movie import movie_of

STEP = 0.5
WHITE = {"persistence_frames": 0.0, "noise": 1e-3}
"""Steps are independent, so the frame pairs are: each has two alternatives."""


def meeting(others: int, frames: int, seed: int = 0) -> NDArray[np.float64]:
    """(F, N, 3) places of particles that diffuse; the first two alone meet, in the middle."""
    path = np.random.default_rng(seed).normal(0, STEP, (frames, 2 + others, 3)).cumsum(axis=0)
    path -= path[frames // 2]
    cells = np.arange(others)
    path[:, 2:] += 60.0 * np.stack([cells % 7 + 2, cells // 7 % 7, cells // 49], axis=1)
    path[:, 1] += 0.7, 0, 0
    return path


def probabilities(path: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(F - 1,) probability that the first particle goes on as itself: stated, and by the exact sum."""
    frames, count, _ = path.shape
    detections = Detections.from_table(np.repeat(np.arange(frames), count), path.reshape(-1, 3))
    done = track(detections, TrackingSettings(divisions=False, fixed=WHITE))
    links, p = done.tracks.links, done.tracks.link_probability
    assert p is not None
    assert done.learned is not None
    first = {(a, b): value for (a, b), value in zip(links.tolist(), p, strict=True) if a % count == 0}
    tails = range(0, (frames - 1) * count, count)
    stated = np.array([first.get((k, k + count), 1 - first.get((k, k + count + 1), np.nan)) for k in tails])
    motion, step = done.learned.motion, np.diff(path[:, :2], axis=0)
    across = path[1:, 1::-1] - path[:-1, :2]
    straight, exchanged = (
        _density(each @ done.learned.basis, motion).prod(axis=1) for each in (step, across)
    )
    return stated, straight / (straight + exchanged)


def _density(step: NDArray[np.float64], motion: MotionModel) -> NDArray[np.float64]:
    """(F - 1, 2) of steps (F - 1, 2, D) of any class, in the coordinates of the inference."""
    square = np.square(step)[..., None, :] / motion.variance
    peak = motion.share / np.sqrt(motion.variance.prod(axis=1))
    return np.asarray((peak * np.exp(-0.5 * square.sum(axis=-1))).sum(axis=-1))


@pytest.mark.parametrize(("others", "frames"), [(100, 40), (100, 250), (300, 20), (700, 20)])
def test_two_that_meet_have_the_probabilities_of_the_exact_sum(others: int, frames: int) -> None:
    """Nothing is certain because the rest of the movie is."""
    doubtful = 0
    for seed in range(3):
        stated, exact = probabilities(meeting(others, frames, seed))
        doubtful += int(((exact > 0.1) & (exact < 0.9)).sum())
        assert np.abs(stated - exact).max() < 0.02
    assert doubtful >= 2


def test_the_whole_of_a_movie_has_the_probabilities_of_its_halves() -> None:
    """Up to what they learn of steps, which the exact sums contain as well."""
    path = meeting(700, 21)
    whole, *halves = (np.subtract(*probabilities(part)) for part in (path, path[:11], path[10:]))
    assert np.abs(whole - np.concatenate(halves)).max() < 0.02


def test_an_exchange_of_persistent_tracks_is_counted_once() -> None:
    """A swap of one detection has the odds of two Kalman filters; belief propagation alone is sure."""
    frames, apart = 21, 0.12
    path = np.zeros((frames, 2, 3))
    path[:, :, 2] = np.arange(frames)[:, None]
    path[:, 0, 1] = np.abs(np.arange(frames) - 10) + apart / 2
    path[:, 1, 1] = -path[:, 0, 1]
    movie = movie_of(path.reshape(-1, 3), np.arange(frames + 1) * 2, spacing=1.0)
    one, noise = np.ones(1), 0.1
    motion = MotionModel(
        one[:, None] * [1.0, 1, 1], 0.99 * one, one, 0.0 * one + 1e-9, noise**2 * np.ones(3), np.ones(20)
    )
    model = Model(motion, AssociationModel(one, one, 0.0), LocalFields.uniform(np.zeros((frames * 2, 3))))
    tail = np.arange(2 * frames - 2)
    odds = odds_of_exchange(movie, model, np.column_stack([tail, tail + 2]))
    into = odds.reshape(-1, 2)[:, 0]
    assert into[9] == pytest.approx(into[10], rel=0.3)  # into and out of the nearest
    assert 0.02 < into[9] < 5
    assert into[:5].max() < 1e-3


@pytest.mark.parametrize(("clutter", "least", "most"), [(0.0, 0.05, 0.3), (0.05, 0.0, 0.01)])
def test_a_track_is_not_cut_beside_clutter(clutter: float, least: float, most: float) -> None:
    """What is left alone may be clutter; a track that ends there and another that starts cost more."""
    frames, first = 20, 9
    path = np.zeros((frames + 1, 3))
    path[:frames, 2] = 0.05 * np.arange(frames)
    path[-1, 2] = 0.05 * first - 0.25  # a detection alone, behind the particle
    frame = np.append(np.arange(frames), first)
    order = np.lexsort((np.arange(frames + 1), frame))
    start = np.searchsorted(frame[order], np.arange(frames + 1))
    movie, one = movie_of(path[order], start, spacing=1.0), np.ones(1)
    motion = MotionModel(
        0.01 * one[:, None] * [1.0, 1, 1],
        0 * one,
        one,
        0 * one + 1e-9,
        1e-6 * np.ones(3),
        np.ones(frames - 1),
    )
    rates = AssociationModel(0.98 * one, 0.98 * one, clutter)
    model = Model(motion, rates, LocalFields.uniform(np.zeros((frames + 1, 3))))
    row = np.argsort(order)[:frames]
    odds = odds_of_exchange(movie, model, np.column_stack([row[:-1], row[1:]]))
    assert least <= odds[first - 1] <= most  # into the frame with the other
    assert odds[: first - 2].max() == 0
