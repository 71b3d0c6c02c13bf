"""Registration: frames whose neighbourhoods move together, found with no link known."""

from __future__ import annotations

import numpy as np
import pytest

from outbid import Detections, Tracks, score
from outbid.calibrate import calibrate, learning, passes, registration
from outbid.calibrate.flow import Flow
from outbid.calibrate.registration import NEIGHBOURS, registered
from outbid.neighbours import nearest


def turned(place, angle):
    """The points, turned about the last axis but for points on a line, which stretch."""
    if place.shape[1] == 1:
        return place * (1 + angle)
    turn = np.eye(place.shape[1])
    turn[-2:, -2:] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    return place @ turn


def carried(*frames, guess=None, workers=1):
    """Displacements of the detections of such frames."""
    start, place = np.cumsum([0, *map(len, frames)]), np.concatenate(frames)
    guess = np.zeros_like(place) if guess is None else guess
    near, distance2 = nearest(place, start, np.arange(len(place)), NEIGHBOURS)
    return registered(start, place, near, distance2, guess, workers=workers)


@pytest.mark.parametrize(("axes", "angle", "far"), [(1, 0.002, 0.3), (2, 0.05, 0.4), (3, 0.2, 0.5)])
def test_what_turns_is_found_where_other_particles_are_nearer(axes, angle, far):
    rng = np.random.default_rng(axes)
    place = rng.uniform(-5, 5, (500, axes))
    later = rng.permutation(turned(place, angle)[rng.random(500) < 0.9])  # some are lost,
    later = np.concatenate([later, rng.uniform(-5, 5, (50, axes))])  # and others come
    true = turned(place, angle) - place
    wrong, gone = (np.linalg.norm(off, axis=1) for off in (carried(place, later)[:500] - true, true))
    spacing = np.sqrt(nearest(place, np.array([0, 500]), np.arange(500), 1)[1][:, 0])
    assert np.mean(gone > spacing) > far
    assert np.quantile(wrong, 0.9) < 0.2 * np.median(spacing)


def test_what_goes_far_is_found_from_a_rough_guess():
    """Farther than any detection that it would be matched with."""
    place = np.random.default_rng(0).uniform(-5, 5, (500, 2))
    away = np.array([3.0, -2.0])
    later = turned(place, 0.03) + away
    ahead = carried(place, later, guess=np.tile(away, (1000, 1)))[:500]
    assert np.quantile(np.linalg.norm(place + ahead - later, axis=1), 0.9) < 0.1
    assert not np.allclose(carried(place, later)[:500], ahead, atol=1.0)


def test_it_turns_moves_and_scales_with_the_movie():
    place = np.random.default_rng(0).uniform(-5, 5, (200, 3))
    place = np.array([place, turned(place, 0.1), turned(place, -0.1)])
    ahead = carried(*place)
    assert np.abs(ahead[:400]).max() > 0.5
    np.testing.assert_allclose(carried(*(1e-6 * place)), 1e-6 * ahead, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(carried(*(place + 1e5)), ahead, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(carried(*place[..., ::-1]), ahead[:, ::-1], rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(carried(*place, workers=5), ahead)
    assert not ahead[400:].any()  # nobody comes after the last frame


def test_frames_that_show_nothing_go_as_guessed():
    rng = np.random.default_rng(0)
    crowd, few, same = rng.uniform(-5, 5, (100, 2)), rng.uniform(-5, 5, (5, 2)), np.ones((30, 2))
    frames = crowd, turned(crowd, 0.1), few, crowd, same, crowd, np.empty((0, 2)), crowd
    guess = rng.normal(0, 1e-3, (sum(map(len, frames)), 2))
    ahead = carried(*frames, guess=guess)
    assert np.median(np.linalg.norm(ahead[:100] - turned(crowd, 0.1) + crowd, axis=1)) < 0.03
    np.testing.assert_array_equal(ahead[100:205], guess[100:205])
    np.testing.assert_array_equal(ahead[305:], guess[305:])  # at one place all distances are 0


@pytest.mark.parametrize("seed", range(5))
def test_a_right_guess_is_kept(seed):
    """Where all move about besides, what a few neighbours do would only blur it."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(-6, 6, (400, 2))
    there = turned(place, 0.1)
    later = rng.permutation(there + rng.normal(0, 0.15, place.shape))
    guess = np.concatenate([there - place, np.zeros_like(place)])
    assert carried(place, later, guess=guess) is guess
    flow = Flow(np.array([0, 400, 800]), np.concatenate([place, later]))
    assert flow.register(guess, lead=2) is guess
    assert not flow.led


def test_as_many_neighbours_go_together_as_predict_best(monkeypatch):
    """Many predict a large stream, in which all move about, better; few predict small eddies better."""
    rng = np.random.default_rng(0)
    place = rng.uniform(-6, 6, (400, 2))
    for stream, best in (
        (turned(place, 0.08) + rng.normal(0, 0.15, place.shape), 16),
        (place + 0.5 * np.sin(1.8 * place[:, ::-1]), 6),
    ):
        found = carried(place, stream)
        for crowd in (16, 6):
            with monkeypatch.context() as patch:
                patch.setattr(registration, "_CROWDS", (crowd,))
                assert (carried(place, stream) == found).all() == (crowd == best)


def turning_tissue(seed, cells=300, frames=8, angle=0.2, noise=0.1):
    """Cells at one a unit of area, on a sheet that turns to and fro, and move about; who is who."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(-1, 1, (cells, 2)) * np.sqrt(cells) / 2
    steps = rng.normal(0, noise, (frames, cells, 2)).cumsum(axis=0)
    seen = [turned(place + step, angle * (frame % 2)) for frame, step in enumerate(steps)]
    points = np.concatenate([np.zeros((cells * frames, 1)), np.concatenate(seen)], axis=1)
    frame = np.repeat(np.arange(frames), cells)
    return Tracks.from_track_ids(Detections.from_table(frame, points), np.tile(np.arange(cells), frames))


def f1_of(truth):
    links = calibrate(truth.detections)[1]
    return score(Tracks(truth.detections, links.pairs), truth, families=("links",)).values["link_f1"]


@pytest.mark.parametrize("seed", [0, 1])
def test_tissue_that_turns_farther_than_its_cells_are_apart_is_followed(monkeypatch, seed):
    """Links alone follow fewer."""
    truth = turning_tissue(seed, noise=0.13)
    registered = f1_of(truth)
    assert registered > 0.88
    monkeypatch.setattr(learning, "_DOUBTED_FLOW", 1.0)
    assert f1_of(truth) < registered - 0.04


@pytest.mark.nightly
def test_it_is_followed_where_most_was_learned_from_a_part_of_the_movie(monkeypatch):
    """The flow of the part alone follows fewer, and links alone fewer still."""
    monkeypatch.setattr("outbid.refine.movie._PART", 1000)
    truth = turning_tissue(2, frames=20)
    followed = f1_of(truth)
    assert followed > 0.85
    monkeypatch.setattr(passes.Flow, "register", lambda _, guess, **__: guess)
    assert f1_of(truth) < followed - 0.1
    monkeypatch.setattr(passes.Flow, "elsewhere", lambda _, __, place: np.full_like(place, np.inf))
    assert f1_of(truth) < 0.6


def asked_of_flow(monkeypatch, detections):
    """What is done to learn: "link", "register", or whether the flow that is predicted is led."""
    asked = []
    register, predict, link = Flow.register, Flow.foretold, learning._Learning.link

    def noted_register(flow, guess, *, lead=0):
        asked.append("register")
        return register(flow, guess, lead=lead)

    def noted_flow(flow, step, trust=None):
        found = predict(flow, step, trust)
        asked.append(flow.led)
        return found

    monkeypatch.setattr(Flow, "register", noted_register)
    monkeypatch.setattr(Flow, "foretold", noted_flow)
    monkeypatch.setattr(learning._Learning, "link", lambda one: (asked.append("link"), link(one)))
    calibrate(detections)
    return asked


@pytest.mark.parametrize(("angle", "noise", "late"), [(0.2, 0.1, True), (0.1, 0.2, False)])
def test_learning_goes_on_from_a_registration_which_leads_for_two_passes(monkeypatch, angle, noise, late):
    """Whether learning would end there, or is half over."""
    asked = asked_of_flow(monkeypatch, turning_tissue(0, angle=angle, noise=noise).detections)
    assert asked.count("register") == 1
    at = asked.index("register")
    assert asked[:at] == ["link", False] * (at // 2)
    assert (at == learning.PASSES) == late  # of both a pass
    assert asked[at + 1 : at + 7] == ["link", True, "link", True, "link", False]


@pytest.mark.nightly
@pytest.mark.parametrize(("axes", "seed"), [(2, 0), (2, 1), (3, 2)])
def test_where_nothing_can_be_followed_no_flow_is_made_of_it(monkeypatch, axes, seed):
    """Wrong links make a flow of their own, along which other wrong ones would seem right."""
    place = np.zeros((6000, 3))
    place[:, 3 - axes :] = np.random.default_rng(seed).uniform(0, 9, (6000, axes))
    noise = Detections.from_table(np.repeat(np.arange(20), 300), place)
    assert "register" not in asked_of_flow(monkeypatch, noise)


@pytest.mark.parametrize("most", [1000, 10**6])
def test_where_all_is_sure_nothing_is_registered(monkeypatch, most):
    """Nor in the rest of a movie that is learned from a part."""
    monkeypatch.setattr("outbid.refine.movie._PART", most)
    tissue = turning_tissue(0, frames=20, angle=0.03, noise=0.01)
    assert "register" not in asked_of_flow(monkeypatch, tissue.detections)


def test_flows_of_few_neighbours_can_be_registered_too():
    place = np.random.default_rng(0).uniform(-5, 5, (500, 2))
    both, start = np.concatenate([place, turned(place, 0.05)]), np.array([0, 500, 1000])
    flow = Flow(start, both, crowds=(0, 8, 4))
    guess, _ = flow.foretold(np.concatenate([both[500:] - place, np.full_like(place, np.nan)]))
    assert flow.register(guess).shape == both.shape


def test_steps_of_neighbours_add_to_a_registration_for_as_long_as_asked():
    rng = np.random.default_rng(0)
    place = rng.uniform(-9, 9, (400, 2))
    there, start = turned(place, 0.05), np.array([0, 400, 800])
    flow = Flow(start, np.concatenate([place, there]))
    ahead = flow.register(np.zeros((800, 2)), lead=2)
    np.testing.assert_allclose(ahead[:400], there - place, atol=0.1)
    nothing, led = np.full_like(ahead, np.nan), []
    for _ in range(3):
        predicted, crowd = flow.foretold(nothing)
        led.append((flow.led, crowd, bool((predicted == ahead).all())))
    assert led == [(True, 16, True), (True, 16, True), (False, None, False)]
