"""Headings: what is believed of a particle that came from one detection to another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from outbid import Detections, Tracks, score
from outbid.calibrate import calibrate, restarts
from outbid.calibrate.known import Known
from outbid.calibrate.overlooked import _part, flight
from outbid.calibrate.restarts import _forgetful
from outbid.motion import Motion
from outbid.refine import headings
from outbid.refine.bridges import with_gaps
from outbid.refine.candidates import pairs_of
from outbid.refine.headings import headed
from outbid.refine.linking import Linking, LinkModel
from outbid.refine.looks import BY_DETECTIONS, BY_HEADINGS
from outbid.refine.movie import movie_of
from outbid.refine.sweep import swept
from outbid.simulate.scenes import Scene

MOTION = Motion((0.2, 0.1), (1.0, 0.5), 3.0, (0.1, 0.2))


def flown(speed, count=300, frames=12, noise=0.02, seed=0, miss=0.0):
    """Straight flights in a periodic box, one particle a unit of area, and who is who."""
    rng = np.random.default_rng(seed)
    box = count**0.5
    velocity = rng.normal(0, speed, (count, 2))
    path = rng.uniform(0, box, (count, 2)) + np.arange(frames)[:, None, None] * velocity
    seen = rng.random((frames, count)) >= miss
    # A particle that leaves comes back as another.
    number = np.floor(path / box).astype(int) @ [1, 1000] * count + np.arange(count)
    place = np.mod(path, box) + rng.normal(0, noise, path.shape)
    frame = np.repeat(np.arange(frames), count).reshape(frames, count)
    points = np.concatenate([np.zeros((seen.sum(), 1)), place[seen]], axis=1)
    return Tracks.from_track_ids(Detections.from_table(frame[seen], points), number[seen])


def passed(movie, model, look, shift=None):
    shift = np.zeros_like(movie.position) if shift is None else shift
    pairs = with_gaps(movie, pairs_of(movie, model.gate), model, shift, sweep=look.sweep)
    return look.link(movie, pairs, model, Linking.none(len(movie.frame)), shift)[0]


def f1_of(truth, linking, movie):
    linked = np.nonzero(linking.follower >= 0)[0]
    links = np.column_stack([movie.order[linked], movie.order[linking.follower[linked]]])
    links = links[np.argsort(links[:, 0])]
    return score(Tracks(truth.detections, links), truth, families=("links",)).values["link_f1"]


def test_flights_past_many_neighbours_are_followed():
    """Steps of twice the distance between neighbours: beliefs of detections mix all that may have come."""
    truth = flown(0.8)
    movie = movie_of(truth.detections, (1, 1, 1))
    motion = Motion.constant_velocity((0.8, 0.8), noise=(0.02, 0.02))
    model = LinkModel(motion, (0.9,), 0.1, 0.1, gate=(3.0, 3.0))
    assert f1_of(truth, passed(movie, model, BY_DETECTIONS), movie) < 0.5
    assert f1_of(truth, passed(movie, model, BY_HEADINGS), movie) > 0.85


def test_flights_are_followed_over_gaps():
    truth = flown(0.6, miss=0.1)
    movie = movie_of(truth.detections, (1, 1, 1))
    motion = Motion.constant_velocity((0.6, 0.6), noise=(0.02, 0.02))
    model = LinkModel(motion, (0.87, 0.08, 0.01), 0.04, 0.04, gate=(2.5, 2.5))
    assert f1_of(truth, passed(movie, model, BY_HEADINGS), movie) > 0.88


@pytest.mark.parametrize(("freedom", "clutter"), [(0.0, 0.0), (5.0, 0.0), (0.0, 5e-4)])
def test_where_nobody_meets_beliefs_are_those_of_detections(freedom, clutter):
    """Far from all others there is one belief of each: odds and distances are those of detections."""
    path = np.array([[0, 0], [300.0, 40]]) + np.arange(6)[:, None, None] * [[1, 0.2], [-0.5, 0.1]]
    points = np.concatenate([np.zeros((12, 1)), path.reshape(-1, 2)], axis=1)
    movie = movie_of(Detections.from_table(np.repeat(np.arange(6), 2), points), (1, 1, 1))
    model = LinkModel(MOTION, (0.999,), 1e-3, 1e-3, gate=(5.0, 5.0), freedom=freedom, clutter=clutter)
    soft, found = (passed(movie, model, look) for look in (BY_DETECTIONS, BY_HEADINGS))
    np.testing.assert_array_equal(found.follower, soft.follower)
    np.testing.assert_array_equal(found.size, soft.size)
    np.testing.assert_allclose(found.odds, soft.odds, rtol=0.02, atol=0.05)
    np.testing.assert_allclose(found.distance2, soft.distance2, rtol=0.02, atol=0.02)


def test_tails_of_many_degrees_of_freedom_are_those_of_a_gaussian():
    """Whose futures are weighed by their peaks, too, in another way."""
    movie = movie_of(flown(0.3, count=150, frames=8, noise=0.05, miss=0.1).detections, (1, 1, 1))
    motion = Motion((0.1, 0.1), (0.3, 0.3), 5.0, (0.05, 0.05))
    gaussian = LinkModel(motion, (0.87, 0.08), 0.05, 0.05, gate=(1.5, 1.5))
    shift, none = np.zeros_like(movie.position), Linking.none(len(movie.frame))
    pairs = with_gaps(movie, pairs_of(movie, gaussian.gate), gaussian, shift, sweep=headed)
    one, other = (
        BY_HEADINGS.link(movie, pairs, model, none, shift)[0]
        for model in (gaussian, replace(gaussian, freedom=1e7))
    )
    np.testing.assert_array_equal(other.follower, one.follower)
    np.testing.assert_array_equal(other.col, one.col)
    np.testing.assert_allclose(other.odds, one.odds, rtol=1e-3, atol=1e-3)


def test_room_grows_as_it_must(monkeypatch):
    movie = movie_of(flown(0.5, count=100, miss=0.1).detections, (1, 1, 1))
    motion = Motion((0.02, 0.02), (0.5, 0.5), 20.0, (0.03, 0.03))
    model = LinkModel(motion, (0.87, 0.08), 0.05, 0.05, gate=(2.0, 2.0))
    wide = passed(movie, model, BY_HEADINGS)
    monkeypatch.setattr(headings, "_GUESS", 0)
    np.testing.assert_array_equal(passed(movie, model, BY_HEADINGS).odds, wide.odds)


@pytest.mark.parametrize(("unit", "away"), [(1e-12, 0.0), (1e9, 0.0), (1.0, 1e7)])
def test_units_and_places_far_away_cost_no_digits(unit, away):
    """Beliefs are in single precision, about where each detection is."""
    seen, odds = flown(0.5, count=100, miss=0.1).detections, []
    for size, shift in ((1.0, 0.0), (unit, away)):
        place = Detections.from_table(seen.frame, seen.position * size + shift)
        movie = movie_of(place, (1, 1, 1), interval=1)
        motion = Motion((0.02 * size,) * 2, (0.5 * size,) * 2, 20.0, (0.03 * size,) * 2)
        model = LinkModel(motion, (0.87, 0.08), 0.05, 0.05, gate=(2.0 * size,) * 2)
        odds.append(passed(movie, model, BY_HEADINGS).odds)
    np.testing.assert_allclose(odds[1], odds[0], rtol=1e-4, atol=1e-4)


def test_a_movie_run_backward_gives_the_same_links():
    truth = flown(0.5, count=150, miss=0.1)
    movie = movie_of(truth.detections, (1, 1, 1))
    motion = Motion((0.02, 0.02), (0.5, 0.5), 20.0, (0.03, 0.03))
    model = LinkModel(motion, (0.87, 0.08), 0.05, 0.05, gate=(2.0, 2.0), freedom=7.0)
    found = passed(movie, model, replace(BY_HEADINGS, sweep=swept))
    back = passed(movie.backward(), model, replace(BY_HEADINGS, sweep=swept)).backward()
    both = (found.follower >= 0) | (back.follower >= 0)
    assert np.mean(found.follower[both] == back.follower[both]) > 0.95


def test_a_known_shift_is_taken_out():
    rng = np.random.default_rng(3)
    place, velocity = rng.uniform(0, 12, (144, 2)), rng.normal(0, 0.3, (144, 2))
    frame = np.repeat(np.arange(8), 144)
    model = LinkModel(
        Motion.constant_velocity((0.3, 0.3), noise=(0.01, 0.01)), (0.96,), 0.04, 0.04, gate=(4.0, 4.0)
    )
    for moved in (0.0, 1.5):
        path = place + np.arange(8)[:, None, None] * (velocity + np.array([0, moved]))
        points = np.concatenate([np.zeros((len(frame), 1)), path.reshape(-1, 2)], axis=1)
        movie = movie_of(Detections.from_table(frame, points), (1, 1, 1))
        found = passed(movie, model, BY_HEADINGS, np.tile([0.0, moved], (len(frame), 1)))
        who = movie.order % 144
        linked = found.follower >= 0
        assert linked.sum() > 0.95 * 7 * 144
        assert np.mean((who == who[found.follower])[linked]) > 0.97


def test_a_known_flow_changes_nothing():
    """Whatever lies over gaps of some frames is moved as far as the flow went meanwhile."""
    movie, flow = movie_of(flown(0.5, miss=0.15).detections, (1, 1, 1)), np.array([1.5, -0.7])
    flowing = replace(movie, position=movie.position + movie.frame[:, None] * flow)
    motion = Motion((0.02, 0.02), (0.5, 0.5), 20.0, (0.03, 0.03))
    model = LinkModel(motion, (0.8, 0.12), 0.08, 0.08, gate=(2.0, 2.0), freedom=7.0)
    still, moved = np.zeros_like(movie.position), np.tile(flow, (len(movie.frame), 1))
    pairs = with_gaps(movie, pairs_of(movie, model.gate), model, still, sweep=headed)
    one, other = (headed(each, pairs, model, shift) for each, shift in ((movie, still), (flowing, moved)))
    np.testing.assert_allclose(other.chance, one.chance, rtol=1e-6, atol=1e-9)
    none = Linking.none(len(movie.frame))
    found, same = (
        BY_HEADINGS.link(each, pairs, model, none, shift)[0]
        for each, shift in ((movie, still), (flowing, moved))
    )
    assert (movie.frame[found.col] - movie.frame[found.row] == 2)[found.probability > 0.5].sum() > 100
    np.testing.assert_array_equal(same.follower, found.follower)
    np.testing.assert_allclose(same.odds, found.odds, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("kappa", "misses", "least"), [(0.3, 0.1, 0.915), (0.4, 0.1, 0.79)])
def test_crowded_movies_of_particles_that_keep_their_way(kappa, misses, least):
    truth = Scene(kappa, 10.0, miss=misses, clutter=misses, particles=600, frames=24).film(4)
    links = calibrate(truth.detections)[1]
    found = score(Tracks(truth.detections, links.pairs), truth, families=("links",)).values["link_f1"]
    assert found > least


@pytest.mark.nightly
def test_learning_goes_on_where_it_turns_to_headings():
    """The first links by headings differ from those by detections; more may still be found."""
    truth = Scene(0.4, 3.0, miss=0.1, clutter=0.1, particles=2000, frames=9).film(6)
    links = calibrate(truth.detections)[1]
    found = score(Tracks(truth.detections, links.pairs), truth, families=("links",)).values["link_f1"]
    assert found > 0.525


def test_flights_past_neighbours_are_found_with_nothing_given():
    """Most particles have another nearer than their next detection, so that nearest links are wrong."""
    truth = flown(0.6, count=400, frames=14, seed=2)
    learned, links = calibrate(truth.detections)
    found = score(Tracks(truth.detections, links.pairs), truth, families=("links",)).values["link_f1"]
    assert found > 0.88
    assert learned.model.motion.persistence > 30
    assert learned.step.mean() == pytest.approx(0.6, rel=0.1)


@pytest.mark.parametrize(("persistence", "least"), [(3.0, 0.57), (0.0, 0.43)])
def test_a_thousand_detections_show_a_short_memory_or_none(persistence, least):
    found = []
    for seed in (36, 37, 38, 39):
        truth = Scene(0.4, persistence, miss=0.1, clutter=0.1, particles=50, frames=20).film(seed)
        learned, links = calibrate(truth.detections)
        assert (learned.model.motion.persistence > 1) == (persistence > 0)
        values = score(Tracks(truth.detections, links.pairs), truth, families=("links",)).values
        found.append(values["link_f1"])
    assert np.mean(found) > least


@pytest.mark.parametrize(
    "stated", [{"noise": 0.03}, {"miss": 0.1}, {"end": 0.13}, {"gate": 1.6}, {"persistence": 3.0}]
)
def test_true_values_that_are_given_cost_no_links(monkeypatch, stated):
    """Flights are looked for whatever is given."""
    found, known, learn = [], Known.of(stated, "zyx"), restarts.learnt_from

    def held(movie, model, *given, **more):
        assert more["flying"]
        assert known.but("persistence").held(model) == model
        assert model.motion.persistence >= 5
        return learn(movie, model, *given, **more)

    for seed in (36, 37):
        truth = Scene(0.4, 3.0, miss=0.1, clutter=0.1, particles=50, frames=20).film(seed)
        for given, learned in (({}, learn), (stated, held)):
            monkeypatch.setattr(restarts, "learnt_from", learned)
            links = calibrate(truth.detections, known=given)[1]
            values = score(Tracks(truth.detections, links.pairs), truth, families=("links",)).values
            found.append(values["link_f1"])
    alone, helped = np.reshape(found, (2, 2)).mean(axis=0)
    assert alone > 0.56
    assert helped > alone - 0.02


@pytest.mark.parametrize(("persistence", "sought"), [(0.0, 0), (1e-10, 0), (3.0, 1)])
def test_who_is_known_to_remember_nothing_is_sought_in_no_flight(monkeypatch, persistence, sought):
    asked = []
    monkeypatch.setattr(restarts, "flight", lambda *given, **_: asked.append(given))
    seen = Scene(0.5, particles=200, frames=12).film(0).detections
    calibrate(seen, known={"persistence": persistence})
    assert len(asked) == sought


def test_no_flights_are_seen_where_particles_diffuse():
    """Three in line by chance promise less than particles that stay near, or as much as others by chance."""
    scene = Scene(0.45, particles=500, frames=12)
    movie, play = (movie_of(scene.film(seed).detections, (1, 1, 1)) for seed in (5, 6))
    model, room = LinkModel(Motion.static((0.4,) * 3), (0.9,), 0.1, 0.1, gate=(2.0,) * 3), 0.83
    assert flight(movie, play, model, room, 0.5) is None
    assert flight(movie, play, model, room, 0.0) is None
    flying = movie_of(flown(0.6).detections, (1, 1, 1))
    play = replace(flying, position=np.random.default_rng(0).permutation(flying.position))
    found = flight(flying, play, model, room, 0.5)
    assert found is not None
    assert found.motion.speed[0] == pytest.approx(0.6, rel=0.25)
    other = movie_of(flown(0.6, seed=1).detections, (1, 1, 1))
    assert flight(flying, other, model, room, 0.5) is None
    assert flight(other, flying, model, room, 0.5) is None
    assert flight(flying, play, model, room, 1.0) is None
    assert flight(flying, play.part(0, 0), model, room, 0.5) is None


def test_who_forgets_steps_as_far():
    moving = LinkModel(Motion((0.1,) * 3, (0.4,) * 3, 5.0, (0.05,) * 3), (0.9,), 0.1, 0.1, gate=(2.0,) * 3)
    motion = _forgetful(moving).motion
    assert motion.persistence == 0
    np.testing.assert_allclose(motion.step_variance(1), moving.motion.step_variance(1))


def test_a_memory_is_found_where_most_links_are_wrong():
    """Of the first links .6 are wrong, and show no velocity."""
    truth = Scene(0.4, 2.0, miss=0.1, clutter=0.1, particles=800, frames=12).film(7)
    learned, links = calibrate(truth.detections)
    found = score(Tracks(truth.detections, links.pairs), truth, families=("links",)).values["link_f1"]
    assert learned.model.motion.persistence == pytest.approx(2.0, abs=1.5)
    assert found > 0.47


def test_flights_are_looked_for_in_the_middle_of_large_movies():
    movie = movie_of(flown(0.6, count=1600, frames=9).detections, (1, 1, 1))
    part = _part(movie, 3500)
    assert 3500 <= len(part.frame) < 3600
    np.testing.assert_array_equal(np.diff(part.frame_start), np.bincount(part.frame, minlength=7))
    where = dict(zip(movie.order.tolist(), movie.position.tolist(), strict=True))
    assert [where[row] for row in part.order.tolist()] == part.position.tolist()
    np.testing.assert_allclose(part.bounds, [[8.8, 8.8], [31.2, 31.2]], atol=0.8)


def test_particles_that_bind_and_diffuse_are_followed_in_both_states():
    """Steps are of .03 and .28; those that diffuse are not taken for clutter."""
    rng = np.random.default_rng(9)
    count, frames, box = 400, 20, 400 ** (1 / 3)
    free, steps = rng.random(count) < 0.5, []
    for _ in range(frames - 1):
        free = free ^ (rng.random(count) < 0.08)
        steps.append(np.where(free, 0.28, 0.03)[:, None] * rng.normal(size=(count, 3)))
    path = np.cumsum([rng.uniform(0, box, (count, 3)), *steps], axis=0)
    # Who leaves the room comes back as another.
    left = np.diff(np.floor(path / box), axis=0).any(axis=2).cumsum(axis=0)
    number = np.concatenate([np.zeros((1, count), int), left]) * count + np.arange(count)
    place = np.mod(path, box) + rng.normal(0, 0.03, path.shape)
    seen = Detections.from_table(np.repeat(np.arange(frames), count), place.reshape(-1, 3))
    truth = Tracks.from_track_ids(seen, number.ravel())
    learned, links = calibrate(seen)
    assert score(Tracks(seen, links.pairs), truth, families=("links",)).values["link_f1"] > 0.88
    assert learned.model.clutter < 0.1
