"""Two tracks that pass close by each other: how probable it is that they have each other's detection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from outbid import Detections, track
from outbid.motion import Motion
from outbid.refine.exchanged import doubted
from outbid.refine.linking import Linking, LinkModel
from outbid.refine.movie import Movie, movie_of
from outbid.simulate.experiments.calibration import confidence
from outbid.simulate.scenes import Scene

MODEL = LinkModel(
    Motion.constant_velocity((0.5,) * 3, noise=(0.05,) * 3), (0.95,), 0.05, 0.05, gate=(2.0,) * 3
)


def two_tracks(apart: float, exchanged: bool) -> tuple[Movie, NDArray[np.float64]]:
    """Two particles that fly past each other, nine frames; in the middle they are so far apart."""
    frame = np.repeat(np.arange(9), 2)
    time = frame - 4.0
    which = np.tile([0, 1], 9)
    place = np.column_stack([time * 0.3 * (1 - 2 * which), which * apart, time * 0.1])
    movie = movie_of(Detections.from_table(frame, place), (1.0, 1.0, 1.0))
    follower, before = np.arange(18) + 2, np.arange(18) - 2
    follower[-2:] = before[:2] = -1
    if exchanged:
        follower[[6, 7, 8, 9]] = [9, 8, 11, 10]
        before[[8, 9, 10, 11]] = [7, 6, 9, 8]
    # Rows of a movie are sorted anew within their frames.
    row = np.append(np.argsort(movie.order), -1)
    follower, before = (row[ends][movie.order] for ends in (follower, before))
    trust = np.where(follower >= 0, 0.9999, 0.0)
    linking = replace(Linking.none(18), follower=follower, before=before, trust=trust)
    return movie, doubted(movie, MODEL, linking, np.zeros((18, 3))).trust


def test_far_tracks_are_not_doubted() -> None:
    movie, trust = two_tracks(1.0, exchanged=False)
    assert (trust[movie.frame < 8] == 0.9999).all()
    assert (trust[movie.frame == 8] == 0).all()


@pytest.mark.parametrize("exchanged", [False, True])
def test_only_the_links_of_what_could_be_exchanged_are_doubted(exchanged: bool) -> None:
    movie, trust = two_tracks(0.2, exchanged)
    middle = (movie.frame == 3) | (movie.frame == 4)
    assert (trust[~middle & (movie.frame < 8)] > 0.99).all()
    if exchanged:
        assert (trust[middle] < 0.05).all()
    else:
        assert (trust[middle] > 0.95).all()
    _, near = two_tracks(0.01, exchanged)
    assert near[middle] == pytest.approx(np.full(4, 0.5), abs=0.1)


def test_tracks_without_a_middle_are_left() -> None:
    movie = movie_of(Detections.from_table([0, 1], [[0.0, 0, 0], [0.1, 0, 0]]), (1.0, 1.0, 1.0))
    short = replace(
        Linking.none(2), follower=np.array([1, -1]), before=np.array([-1, 0]), trust=np.array([0.9, 0])
    )
    assert doubted(movie, MODEL, short, np.zeros((2, 3))) is short


def test_most_wrong_links_are_among_the_least_certain_where_few_are_wrong() -> None:
    """Also two that are wrong together and support each other."""
    film = Scene(0.2, 10.0, particles=1000, frames=20).film(3)
    values = confidence(track(film.detections).tracks, film)
    assert float(values["wrong"]) < 0.02
    assert float(values["wrong_caught"]) > 0.75
    assert float(values["ece"]) < 0.004
