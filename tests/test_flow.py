"""Flows that were learned from a part of a movie, at the places of all of it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from outbid import Detections, Tracks, score, track
from outbid.calibrate.flow import Flow
from outbid.calibrate.passes import _flow_at_first
from outbid.calibrate.surveyor import Surveyor
from outbid.refine.movie import movie_of

Points = NDArray[np.float64]


def turned(place: Points, angle: float) -> Points:
    return place @ [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]


def in_a_disc(count: int, radius: float, seed: int) -> Points:
    rng = np.random.default_rng(seed)
    way, far = rng.uniform(0, 2 * np.pi, count), radius * np.sqrt(rng.random(count))
    return np.column_stack([far * np.cos(way), far * np.sin(way)])


def turning(*, particles: int, frames: int, angle: float | Points, seed: int = 0) -> list[Points]:
    rng, place, places = np.random.default_rng(seed), in_a_disc(particles, 12.0, seed), []
    for each in np.broadcast_to(angle, frames):
        places.append(place)
        place = turned(place, each) + rng.normal(0, 0.05, place.shape)
    return places


def flow_of(places: list[Points]) -> Flow:
    start = np.append(0, np.cumsum([len(place) for place in places]))
    return Flow(start, np.concatenate(places))


def test_what_flows_steadily_flows_so_elsewhere():
    there = np.concatenate(turning(particles=500, frames=6, angle=0.05))
    here = in_a_disc(300, 10.0, seed=1)
    ahead = turned(there, 0.05) - there
    ahead[-500:] = 0  # of the last frame nobody knows
    found = flow_of(turning(particles=500, frames=6, angle=0.05)).elsewhere(ahead, here)
    assert np.abs(found - (turned(here, 0.05) - here)).max() < 0.06
    assert found.shape == here.shape


@pytest.mark.parametrize("frames", [2, 3, 20])
def test_the_flow_that_there_is_goes_least_amiss(frames):
    places = turning(particles=400, frames=frames, angle=0.08)
    flow, place = flow_of(places), np.concatenate(places)[flow_of(places).shown]
    right, half, none = (flow.amiss(turned(place, angle) - place) for angle in (0.08, 0.04, 0.0))
    assert right < 0.5 * half
    assert half < 0.1 + 1.1 * none
    # A step of .05 along each of two axes goes .05 sqrt(2 log 2) astray in the median.
    assert right == pytest.approx(0.05 * np.sqrt(2 * np.log(2)), rel=0.15)


def test_none_of_the_last_frame_is_shown():
    places = turning(particles=300, frames=4, angle=0.08)
    assert flow_of(places).shown.max() < 900
    after = flow_of([*places, np.empty((0, 2)), places[0]])  # nobody is near where the next frame is empty
    assert 0 < after.amiss(np.zeros((len(after.shown), 2))) < np.inf


def test_where_links_show_no_flow_that_of_the_part_is_used():
    places = turning(particles=500, frames=8, angle=0.1)
    seen = Detections.from_table(np.repeat(np.arange(8), 500), np.concatenate(places))
    movie = movie_of(seen, (1, 1, 1))
    flow, ahead = Flow(movie.frame_start, movie.position), turned(movie.position, 0.1) - movie.position
    known = np.where(movie.frame[:, None] < 7, ahead, 0)
    part = SimpleNamespace(flow=flow, shift=known, crowd=8, registered=False)
    nobody = np.full(len(movie.frame), -1)
    shift, crowd = _flow_at_first(movie, nobody, part, flow.anew())
    assert crowd == 8
    assert np.median(np.abs(shift - ahead)) < 0.02


def test_a_flow_that_goes_as_much_astray_as_none_is_not_carried_on():
    rng = np.random.default_rng(2)
    walks = rng.uniform(0, 20, (400, 2)) + np.cumsum(rng.normal(0, 0.2, (8, 400, 2)), axis=0)
    movie = movie_of(Detections.from_table(np.repeat(np.arange(8), 400), walks.reshape(-1, 2)), (1, 1, 1))
    flow, nobody = Flow(movie.frame_start, movie.position), np.full(len(movie.frame), -1)
    for astray in (-0.01, 0.01):  # one of them happens to go nearer than none
        feigned = np.full_like(movie.position, astray)
        part = SimpleNamespace(flow=flow, shift=feigned, crowd=16, registered=False)
        assert _flow_at_first(movie, nobody, part, flow.anew())[1] is None


def test_nobody_is_counted_where_all_flow(monkeypatch):
    """Who is carried off with its neighbours is not where it was."""
    asked, places = [], turning(particles=600, frames=20, angle=0.08)
    revised = Surveyor.revised
    monkeypatch.setattr(
        Surveyor, "revised", lambda one, *by, **how: (asked.append(by), revised(one, *by, **how))[1]
    )
    track(Detections.from_table(np.repeat(np.arange(20), 600), np.concatenate(places)))
    assert not asked


@pytest.mark.nightly
def test_a_disc_that_turns_by_more_than_particles_are_apart_is_linked_in_all_frames():
    """The part that is learned from shows how it turns, and the rest is linked accordingly."""
    places = turning(particles=1000, frames=60, angle=0.12)
    seen = Detections.from_table(np.repeat(np.arange(60), 1000), np.concatenate(places))
    truth = Tracks.from_track_ids(seen, np.tile(np.arange(1000), 60))
    found = track(seen).tracks
    assert score(found, truth, gate=1e-300, families=("links",)).values["link_f1"] > 0.97


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2])
def test_a_disc_that_turns_back_and_forth_is_registered_from_whichever_guess_leads_there(seed):
    """The guess is the flow of the part, or that of the links."""
    angle = 0.08 * np.cos(2 * np.pi * np.arange(60) / 20)
    places = turning(particles=1000, frames=60, angle=angle, seed=seed)
    seen = Detections.from_table(np.repeat(np.arange(60), 1000), np.concatenate(places))
    truth = Tracks.from_track_ids(seen, np.tile(np.arange(1000), 60))
    found = track(seen).tracks
    assert score(found, truth, gate=1e-300, families=("links",)).values["link_f1"] > 0.94
