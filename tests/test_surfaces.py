"""Particles on surfaces and along fibres: neighbours show where they go, and so how crowded it is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from outbid import Detections, Tracks, read_tracks
from outbid.calibrate import calibrate, restarts
from outbid.calibrate.rehearsal import drawn, surface_of
from outbid.calibrate.surfaces import Surface
from outbid.motion import Motion
from outbid.refine.linking import Linking, LinkModel
from outbid.refine.movie import Movie, movie_of


def tracks_of(place: NDArray[np.float64]) -> Tracks:
    """The tracks of particles, all seen: place (F, N, axes)."""
    frames, count, _ = place.shape
    row = np.arange((frames - 1) * count)
    frame = np.repeat(np.arange(frames, dtype=np.int32), count)
    return Tracks(Detections(frame, place.reshape(-1, 3)), np.column_stack([row, row + count]))


def on_sphere(
    kappa: float, *, seed: int = 0, count: int = 800, frames: int = 20, noise: float = 0.03
) -> Tracks:
    """Particles, one a unit of area, that diffuse on a sphere by kappa along each of its two ways."""
    rng, radius = np.random.default_rng(seed), np.sqrt(count / 4 / np.pi)
    place, found = rng.normal(size=(count, 3)), []
    for _ in range(frames):
        place *= radius / np.linalg.norm(place, axis=1)[:, None]
        found.append(place)
        step = kappa * rng.normal(size=place.shape)
        place = place + step - np.sum(step * place, axis=1)[:, None] * place / radius**2
    return tracks_of(np.array(found) + noise * kappa * rng.normal(size=(frames, count, 3)))


def along_fibres(kappa: float, *, fibres: int = 20, each: int = 40, frames: int = 20) -> Tracks:
    """Particles, one a unit of length, that diffuse along straight fibres in any direction."""
    rng = np.random.default_rng(0)
    begin, way = rng.uniform(0, each, (fibres, 3)), rng.normal(size=(fibres, 3))
    way /= np.linalg.norm(way, axis=1)[:, None]
    along = rng.uniform(0, each, (fibres * each)) + np.cumsum(
        kappa * rng.normal(size=(frames, fibres * each)), axis=0
    )
    fibre = np.repeat(np.arange(fibres), each)
    return tracks_of(begin[fibre] + along[..., None] * way[fibre])


def on_plane(degrees: float, *, kappa: float = 0.25, seed: int = 0, out_of_focus: float = 0.0) -> Tracks:
    """Particles, one a unit of area, that diffuse on a plane so much tilted; with noise along z, in steps."""
    rng, frames, count = np.random.default_rng(seed), 20, 800
    steps = np.cumsum(kappa * rng.normal(size=(frames, count, 2)), axis=0)
    place = np.sqrt(count) - np.abs(
        np.sqrt(count) - np.abs(rng.uniform(0, np.sqrt(count), (count, 2)) + steps)
    )
    tilt = np.radians(degrees)
    axes = np.array([[np.sin(tilt), np.cos(tilt), 0], [0, 0, 1]])
    noise = kappa * np.array([max(out_of_focus, 0.03), 0.03, 0.03])
    return tracks_of(place @ axes + noise * rng.normal(size=(frames, count, 3)))


def beside(truth: Tracks, other: Tracks) -> Tracks:
    """Both, far from each other."""
    one, two = truth.detections, other.detections
    position = np.concatenate([one.position, two.position + 100])
    frame = np.concatenate([one.frame, two.frame])
    order = np.argsort(frame, kind="stable")
    row = np.argsort(order)
    links = np.concatenate([truth.links, other.links + len(one)])
    return Tracks(Detections(frame[order], position[order]), row[links])


def in_a_room(kappa: float, *, count: int = 800, frames: int = 20) -> Tracks:
    rng, side = np.random.default_rng(0), 800 ** (1 / 3)
    steps = np.cumsum(kappa * rng.normal(size=(frames, count, 3)), axis=0)
    return tracks_of(rng.uniform(0, side, (count, 3)) + steps)


def linked(truth: Tracks) -> tuple[Movie, Linking, NDArray[np.float64]]:
    """The movie, its links, and no flow."""
    movie = movie_of(truth.detections, (1, 1, 1))
    row = np.empty(len(movie.order), dtype=np.int64)
    row[movie.order] = np.arange(len(row))
    follower = np.full(len(row), -1)
    follower[row[truth.links[:, 0]]] = row[truth.links[:, 1]]
    return movie, replace(Linking.none(len(row)), follower=follower), np.zeros_like(movie.position)


def model_of(step: float, noise: float = 0.0) -> LinkModel:
    return LinkModel(Motion.static((step,) * 3, (noise,) * 3), (0.98,), 0.02, 0.02, gate=(4.5 * step,) * 3)


def model_seen(movie: Movie, links: Linking) -> LinkModel:
    """With steps and noise as they are."""
    step = movie.steps(links.follower)
    before = np.nonzero(links.follower >= 0)[0]
    mixed = np.nansum(step[before] * step[links.follower[before]], axis=0) / len(before)
    noise2 = np.clip(-mixed, 0, np.nanvar(step, axis=0) / 2)
    moved = np.sqrt(np.nanvar(step, axis=0) - 2 * noise2)
    gate = tuple((4.5 * np.nanstd(step, axis=0)).tolist())
    motion = Motion.static(tuple(moved.tolist()), tuple(np.sqrt(noise2).tolist()))
    return LinkModel(motion, (0.98,), 0.02, 0.02, gate=gate)


@pytest.mark.parametrize(
    ("truth", "found"),
    [
        (on_sphere(0.2), True), (on_sphere(0.2, count=100), True), (on_sphere(0.2, count=40), False),
        (on_sphere(0.2, count=12_000, frames=3), True), (on_sphere(0.2, count=200, frames=2), True),
        (on_plane(3), True), (on_plane(15), True), (on_plane(30, out_of_focus=0.5), True),
        (along_fibres(0.2), True), (in_a_room(0.2), False),
        (beside(on_sphere(0.2), in_a_room(0.2, count=400)), False),
    ],
    ids=[
        "sphere", "few on a sphere", "too few", "many", "two frames", "nearly flat", "tilted", "out of focus",
        "fibres", "room", "sphere beside a room",
    ],
)  # fmt: skip
def test_surfaces_are_found_where_there_are_any(truth, found):
    movie, links, flow = linked(truth)
    assert (surface_of(movie, links, flow, model_seen(movie, links)) is not None) == found


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_a_surface_is_none_where_steps_leave_it_but_for_noise(noise):
    movie, links, flow = linked(on_sphere(0.2, noise=noise))
    model = model_of(0.16, noise * 0.2)
    assert surface_of(movie, links, flow, model) is not None
    leaving = 0.16 * np.random.default_rng(0).normal(size=flow.shape)
    assert surface_of(movie, links, flow + leaving, model) is None
    assert surface_of(movie, links, flow + leaving, model_of(0.16, 0.5)) is None  # which no noise excuses
    unknown = Linking.none(len(movie.frame))
    assert surface_of(movie, unknown, flow, model) is None


def test_no_surface_is_seen_in_nuclei_that_go_anywhere(real_data):
    """Those of a mouse embryo lie in a shell, but do not keep to it; not in steps over three frames."""
    movie, links, flow = linked(read_tracks(real_data / "mouse_geff" / "tidy.csv").every(3))
    assert surface_of(movie, links, flow, model_seen(movie, links)) is None


def test_the_last_frame_shows_no_step():
    """Even if more are seen there than in any other."""
    truth = on_sphere(0.25, frames=8)
    seen = truth.detections
    frame, position = (
        np.append(seen.frame, seen.frame[-1:]),
        np.append(seen.position, [[0.0, 0.0, 0.0]], axis=0),
    )
    movie, links, flow = linked(Tracks(Detections(frame, position), truth.links))
    assert surface_of(movie, links, flow, model_seen(movie, links)) is not None


def off_sphere(place: NDArray[np.float64], count: int) -> float:
    """How far places are off the sphere of so many particles, at most, relative to its radius."""
    return float(np.abs(np.linalg.norm(place, axis=1) / np.sqrt(count / 4 / np.pi) - 1).max())


@pytest.mark.parametrize("stretch", [1.0, 5.0])
@pytest.mark.parametrize("persistence", [0.0, 10.0])
def test_who_is_drawn_on_a_sphere_stays_there_and_goes_as_far(persistence, stretch):
    """In any unit of any axis."""
    unit, kappa = np.array([1.0, 1.0, stretch]), 0.3
    truth = on_sphere(kappa, count=200)
    truth = Tracks(Detections(truth.detections.frame, truth.detections.position * unit), truth.links)
    movie, links, flow = linked(truth)
    each = tuple((kappa * np.sqrt(2 / 3) * unit).tolist())
    none = (0.0,) * 3
    motion = Motion(none, each, persistence, none) if persistence else Motion.static(each)
    gate = tuple((4.5 * np.array(each)).tolist())
    model = LinkModel(motion, (0.9, 0.05), 0.05, 0.05, gate, clutter=0.02)
    surface = surface_of(movie, links, flow, model)
    play, links = drawn(movie, model, 20, 0, surface)
    assert off_sphere(play.position / unit, 200) < 0.16
    moved = play.steps(links.follower) / unit
    usual = np.sum(motion.step_variance(1) / unit**2)
    assert np.nansum(moved**2) / np.isfinite(moved[:, 0]).sum() == pytest.approx(usual, rel=0.12)
    away, _ = drawn(movie, model, 20, 0)
    assert off_sphere(away.position / unit, 200) > 0.3


@pytest.mark.nightly
def test_particles_on_a_surface_do_not_seem_to_fly(monkeypatch):
    """Those that are drawn to be compared with them stay there, too."""
    seen = []
    monkeypatch.setattr(restarts, "flight", lambda *given, **_: seen.append(given[1]))
    calibrate(on_sphere(0.8).detections)
    assert off_sphere(seen[0].position, 800) < 0.15


def test_vectors_along_a_surface_are_as_long_as_any():
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 9, (2000, 3))
    place[:, 0] = place[:, 1]
    step = np.sqrt([0.5, 0.5, 1.0])
    surface = Surface.of(place, step)
    assert surface is not None
    np.testing.assert_allclose(surface.unit, 1, rtol=0.01)
    drawn_along = step * surface.normal(place, rng)
    assert np.square(drawn_along).sum(axis=1).mean() == pytest.approx(2, rel=0.05)
    np.testing.assert_allclose(drawn_along[:, 0], drawn_along[:, 1])
    lifted = place + np.array([0.3, -0.3, 0.0])
    back = surface.onto(lifted)
    np.testing.assert_allclose(back[:, 0], back[:, 1])
    assert np.median(np.abs(back - place)) < 1e-9


@pytest.mark.parametrize(
    ("truth", "most"),
    [
        (on_sphere(0.1), 0.012), (on_sphere(0.25), 0.03), (on_sphere(0.25, count=4000, frames=4), 0.03),
        (along_fibres(0.1), 0.04), (on_plane(15), 0.03), (on_plane(30, out_of_focus=0.5), 0.03),
    ],
    ids=["sphere", "crowded sphere", "few frames", "fibres", "tilted plane", "out of focus"],
)  # fmt: skip
def test_links_on_surfaces_are_as_often_right_as_they_say(truth, most):
    _, links = calibrate(truth.detections)
    assert links.probability is not None
    right = set(map(tuple, truth.links.tolist()))
    share = np.mean([tuple(pair) in right for pair in links.pairs.tolist()])
    assert links.probability.mean() == pytest.approx(share, abs=most)
