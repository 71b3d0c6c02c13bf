"""Tracks that hold each other's tails, or a detection of each other: whole tracks show which was right."""

from __future__ import annotations

from dataclasses import replace
from math import gamma
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from outbid import Detections, Tracks, score
from outbid.calibrate import calibrate, passes
from outbid.motion import Motion, State, first_state, negative_log_likelihood, predict, update
from outbid.refine import untangle_cpu
from outbid.refine.linking import Linking, LinkModel
from outbid.refine.movie import Movie, movie_of
from outbid.refine.untangle import _tail, untangled
from outbid.refine.untangle_cpu import _tailed
from outbid.simulate.scenes import Scene

MODEL = LinkModel(
    Motion.constant_velocity((0.5,) * 3, noise=(0.05,) * 3), (0.9, 0.05), 0.05, 0.05, gate=(2.0,) * 3
)
TAILED = replace(MODEL, freedom=5.0, scale=1.0)


def tracks_of(*tracks: list[tuple[int, float, float]]) -> tuple[Movie, Linking]:
    """Tracks of detections (frame, y, x), and all pairs of later detections within two frames as probable."""
    table = np.array([(*seen, which) for which, track in enumerate(tracks) for seen in track])
    table = table[np.argsort(table[:, 0], kind="stable")]
    place = np.column_stack([0.1 * table[:, 0], table[:, 1], table[:, 2]])
    movie = movie_of(Detections.from_table(table[:, 0].astype(int), place), (1, 1, 1), interval=1)
    follower, before = np.full((2, len(table)), -1)
    which = table[movie.order, 3]
    for number in range(len(tracks)):
        rows = np.nonzero(which == number)[0]
        follower[rows[:-1]], before[rows[1:]] = rows[1:], rows[:-1]
    return movie, linking_of(movie, follower, before)


def linking_of(movie: Movie, follower: NDArray[np.int64], before: NDArray[np.int64]) -> Linking:
    """These links, and all pairs within two frames, as probable as any."""
    gap = movie.frame[None, :] - movie.frame[:, None]
    row, col = np.array(np.nonzero((gap > 0) & (gap <= 2)), dtype=np.int32)
    trust = np.where(follower >= 0, 0.6, 0.0)
    return replace(
        Linking.none(len(follower)), follower=follower, before=before, trust=trust, row=row, col=col,
        probability=np.full(len(row), 0.5),
    )  # fmt: skip


def untangle(
    movie: Movie, linking: Linking, model: LinkModel = MODEL, log_density: float | NDArray[np.float64] = 0.0
) -> Linking:
    density = np.zeros(len(movie.frame)) + log_density
    return untangled(movie, model, linking, density, np.zeros_like(movie.position))


def found(movie: Movie, linking: Linking) -> set[tuple[tuple[float, ...], ...]]:
    """Links as (frame, y) of both ends, by which the tracks of the scenes are distinguished."""
    row = np.nonzero(linking.follower >= 0)[0]
    ends = np.stack([row, linking.follower[row]], axis=1)
    return {
        tuple((int(movie.frame[i]), round(float(movie.position[i, 1]), 6)) for i in pair) for pair in ends
    }


def crossing(frames: range, one: float, other: float, *, swapped: tuple[int, ...] = ()) -> list:
    """Two tracks that pass each other by, and those frames in which each has the other's detection."""
    a = [(t, one * (t - 3.5) + 0.1, 0.3 * t) for t in frames]
    b = [(t, other * (t - 3.5) - 0.1, 0.3 * t) for t in frames]
    for t in swapped:
        a[t], b[t] = b[t], a[t]
    return [a, b]


@pytest.mark.parametrize("model", [MODEL, TAILED], ids=["gaussian", "tailed"])
@pytest.mark.parametrize("swapped", [(3,), (4, 5, 6, 7)], ids=["detection", "tails"])
def test_tracks_get_back_what_they_exchanged(model: LinkModel, swapped: tuple[int, ...]) -> None:
    right, truth = tracks_of(*crossing(range(8), 0.4, -0.4))
    movie, wrong = tracks_of(*crossing(range(8), 0.4, -0.4, swapped=swapped))
    assert found(movie, wrong) != found(right, truth)
    assert found(movie, untangle(movie, wrong, model)) == found(right, truth)
    assert found(right, untangle(right, truth, model)) == found(right, truth)


def test_a_track_takes_the_detection_that_is_its_own_instead_of_clutter() -> None:
    way = [(t, 0.2 * t, 0.3 * t) for t in range(8)]
    taken = [*way[:4], (4, 0.2 * 4 + 0.25, 0.3 * 4), *way[5:]]
    movie, wrong = tracks_of(taken, [way[4]])
    right, truth = tracks_of(way, [taken[4]])
    assert found(movie, untangle(movie, wrong)) == found(right, truth)


def test_tails_are_exchanged_over_gaps_and_with_starts() -> None:
    one, other = crossing(range(8), 0.4, -0.4)
    missed = [seen for seen in one if seen[0] != 4]
    right, truth = tracks_of(missed, other)
    movie, wrong = tracks_of([*missed[:4], *other[5:]], [*other[:5], *missed[4:]])
    assert found(movie, untangle(movie, wrong)) == found(right, truth)
    # Of the two detections of frame 4 only one was seen, and the wrong track has it.
    movie, wrong = tracks_of([*missed[:4], other[4], *missed[4:]], [*other[:4], *other[5:]])
    assert found(movie, untangle(movie, wrong)) == found(right, truth)
    # One was lost at frame 4; a third that starts nearby is not it.
    third = [(t, 2.2, 0.3 * t) for t in range(4, 8)]
    right, truth = tracks_of(one, third)
    movie, wrong = tracks_of([*one[:4], *third], one[4:])
    assert found(movie, untangle(movie, wrong)) == found(right, truth)


def test_a_flow_that_is_known_changes_nothing() -> None:
    """All exchanges are found in a movie that flows ten times as fast as particles move, and no others."""
    one, other = crossing(range(8), 0.4, -0.4)
    missed = [seen for seen in one if seen[0] != 4]
    movie, wrong = tracks_of(
        [*missed[:3], *other[3:4], other[4], *missed[4:]], [*other[:3], one[3], *other[5:]]
    )
    flow = np.array([0.0, 5.0, -3.0])
    flowing = replace(movie, position=movie.position + movie.frame[:, None] * flow)
    still = untangle(movie, wrong)
    found = untangled(
        flowing, MODEL, wrong, np.zeros(len(movie.frame)), np.broadcast_to(flow, movie.position.shape).copy()
    )
    assert (still.follower != wrong.follower).any()
    assert (found.follower == still.follower).all()


def test_what_has_no_future_is_left() -> None:
    movie, wrong = tracks_of(*crossing(range(8), 0.4, -0.4, swapped=(3,)))
    assert untangle(movie, wrong, replace(MODEL, two_sided=False)) is wrong


def test_pairs_over_longer_gaps_than_are_expected_stay_within_the_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Gaps may be given up after the pass that looked over them; compiled code checks no bound."""
    one, other = crossing(range(8), 0.4, -0.4)
    movie, truth = tracks_of(one[:4], other)  # what ends at frame 3 might go on at frame 5
    kernel, longest = untangle_cpu.untangle, []

    def watched(*arguments: Any) -> None:
        longest.append((arguments[11].shape[1] - 1, len(arguments[16]) - 1))  # table, of_gap
        kernel(*arguments)

    monkeypatch.setattr(untangle_cpu, "untangle", watched)
    found = untangle(movie, truth, replace(MODEL, follow=(0.9,)))
    assert longest == [(2, 2)]
    assert (found.follower == truth.follower).all()


def test_links_that_stay_are_trusted_more_and_none_fully() -> None:
    movie, truth = tracks_of(*crossing(range(8), 0.4, -0.4))
    trust = untangle(movie, truth).trust
    assert trust[truth.follower >= 0] == pytest.approx(np.full(14, 0.8))
    assert (trust[truth.follower < 0] == 0).all()


def log_likelihood(movie: Movie, linking: Linking, model: LinkModel) -> float:
    """Of all tracks, by the filter that follows each; against ends and starts at density 1."""
    motion, total = model.motion.floored(), 0.0
    state: dict[int, State] = {}
    for i in range(len(movie.frame)):
        before = int(linking.before[i])
        here = movie.position[i : i + 1]
        if before < 0:
            state[i] = first_state(motion, here)
            continue
        gap = int(movie.frame[i] - movie.frame[before])
        ahead = predict(motion, state[before], gap)
        total += np.log(model.follow[gap - 1] / (model.end * model.start))
        total -= float(negative_log_likelihood(motion, ahead, here)[0])
        state[i] = update(motion, ahead, here)
    return total


@pytest.mark.parametrize("denser", [0.0, 0.7, -0.7])
def test_what_begins_is_taken_only_as_far_as_that_is_likelier(denser: float) -> None:
    """One is missed in a frame; there another begins at a distance, and flies away."""
    way = [(t, 0.2 * t, 0.3 * t) for t in range(9) if t != 4]
    takes = []
    for away in np.linspace(0.0, 0.4, 41):
        begins = [(t, 0.8 + away + 0.6 * (t - 4), 1.2) for t in range(4, 9)]
        movie, apart = tracks_of(way, begins)
        taken, other = tracks_of([*way[:4], begins[0], *way[4:]], begins[1:])
        density = denser * (movie.frame > 4)
        gains = log_likelihood(taken, other, MODEL) - log_likelihood(movie, apart, MODEL)
        gains += density[apart.before >= 0].sum() - density[other.before >= 0].sum()
        takes.append(gains > 0)
        better = untangle(movie, apart, MODEL, density)
        assert found(movie, better) == found(movie, other if gains > 0 else apart), away
    assert 5 < sum(takes) < 35


@settings(max_examples=examples(100), deadline=None)
@given(
    seed=st.integers(0, 10_000),
    particles=st.integers(2, 6),
    frames=st.integers(2, 8),
    persistence=st.sampled_from([0.5, 3.0, 30.0, np.inf]),
    spread=st.sampled_from([0.05, 0.2, 1.0, 4.0]),
)
def test_the_likelihood_of_all_tracks_never_falls(
    seed: int, particles: int, frames: int, persistence: float, spread: float
) -> None:
    """Whatever was linked before; there are as many links, one to one, forward in time."""
    rng = np.random.default_rng(seed)
    frame = np.repeat(np.arange(frames), particles)[rng.random(frames * particles) < 0.8]
    if not len(frame):
        return
    seen = Detections.from_table(frame, rng.normal(0, spread, (len(frame), 3)))
    movie = movie_of(seen, (1, 1, 1), interval=1)
    follower, before = np.full((2, len(frame)), -1)
    for i in range(len(frame)):
        free = np.nonzero(
            (before < 0) & (movie.frame > movie.frame[i]) & (movie.frame <= movie.frame[i] + 2)
        )[0]
        if len(free) and rng.random() < 0.8:
            follower[i] = rng.choice(free)
            before[follower[i]] = i
    linking = linking_of(movie, follower, before)
    model = replace(MODEL, motion=Motion((0.1,) * 3, (0.5,) * 3, persistence, (0.05,) * 3))
    better = untangle(movie, linking, model)
    linked = np.nonzero(better.follower >= 0)[0]
    assert len(linked) == (follower >= 0).sum() == (better.before >= 0).sum()
    assert (better.before[better.follower[linked]] == linked).all()
    assert (movie.frame[better.follower[linked]] > movie.frame[linked]).all()
    gained = log_likelihood(movie, better, model) - log_likelihood(movie, linking, model)
    if (better.follower == follower).all():
        assert gained == 0
    else:
        assert gained > 0.005


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("velocities", [False, True])
@pytest.mark.parametrize("freedom", [0.0, 3.0, 8.0])
def test_tails_are_densities(axes: int, velocities: bool, freedom: float) -> None:
    """Of positions, or of positions and velocities; but for the constant of the Gaussian."""
    size, volume = axes * (1 + velocities), 3.0
    radius = np.geomspace(1e-4, 1e6, 4000)
    tail = _tail(replace(MODEL, freedom=freedom, scale=0.7), axes)
    log = np.array(
        [_tailed(r * r / volume ** (1 / size), volume, 1 + velocities, axes, tail) for r in radius]
    )
    shell = 2 * np.pi ** (size / 2) / gamma(size / 2) * radius**size  # times d log radius
    whole = np.trapezoid(np.exp(log - size / 2 * np.log(2 * np.pi)) * shell, np.log(radius))
    assert whole == pytest.approx(1, rel=1e-3)


def followed(films: list[Any]) -> NDArray[np.float64]:
    """Mean link F1 and IDF1; all links are proved to be optimal."""
    found = []
    for film in films:
        _, links = calibrate(film.detections, divisions=False)
        assert links.gap == 0
        values = score(Tracks(film.detections, links.pairs), film, families=["links", "identity"]).values
        found.append([values["link_f1"], values["idf1"]])
    return np.mean(found, axis=0)


@pytest.mark.nightly
def test_crowded_movies_are_followed_better_and_the_answer_is_certified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    films = [Scene(0.4, 3.0, particles=600, frames=15).film(seed) for seed in (5, 6, 7)]
    better = followed(films)
    monkeypatch.setattr(passes, "untangled", lambda *given, **_: given[2])
    assert (better - followed(films) > (0.004, 0.01)).all()
