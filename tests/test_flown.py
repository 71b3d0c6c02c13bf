"""A missed particle is predicted with the flow (displacement field) of each later frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scenes import carried, f1_of, lost, over_gaps

from outbid import Detections, track
from outbid.motion import Motion
from outbid.refine.bridges import with_gaps
from outbid.refine.candidates import pairs_of
from outbid.refine.exchanged import doubted
from outbid.refine.linking import Linking, LinkModel
from outbid.refine.looks import BY_DETECTIONS, BY_HEADINGS
from outbid.refine.movie import movie_of
from outbid.refine.untangle import untangled
from outbid.refine.weigh import link_pass
from outbid.simulate.scenes import Scene


@pytest.mark.parametrize(("disc", "least"), [(0.0, 0.985), (0.2, 0.958)])
@pytest.mark.parametrize("jitter", [0.1, 0.4])
def test_gaps_are_closed_on_a_stage_that_jitters(jitter, disc, least):
    """The flow of all frames of a gap shows where to look at its end."""
    truth = carried(jitter, disc=disc)
    run = track(truth.detections)
    assert over_gaps(truth, run.tracks) > least
    assert f1_of(run, truth) > 0.994


@pytest.mark.parametrize(
    ("moves", "least"), [({"drift": 0.2}, 0.935), ({"disc": 0.3}, 0.9)], ids=["drift", "disc"]
)
def test_gaps_beside_frames_that_were_not_recorded(moves, least):
    """The way over a hole is that of all frames that are lost, not of one."""
    truth = carried(**moves, frames=60, step=0.05, count=400)
    truth = lost(truth, np.concatenate([[a, a + 1, a + 2] for a in range(4, 60, 8)]))
    run = track(truth.detections)
    assert over_gaps(truth, run.tracks) > least


def flown(place, frames, shift, time=None):
    """(2, 3) how far the first particles of the first two frames go in 0, 1 and 2 frames."""
    frame, shift = np.repeat(np.arange(len(frames)), frames), np.asarray(shift, dtype=np.float64)
    seen = Detections(frame.astype(np.int32), np.asarray(place)[:, None] * [0.0, 0.0, 1.0])
    movie = replace(movie_of(seen, (1, 1, 1)), time=time)
    shift = shift[movie.order]
    table = movie.transitions(Motion.static((1.0,)), 2, shift[:, None])
    return [
        (table[f, :, 0, 5] * shift[at] + table[f, :, 0, 6]).tolist()
        for f, at in enumerate(movie.frame_start[:2])
    ]


def test_frames_as_a_whole_and_particles_beside():
    place, frames = [0, 1] * 3, (2, 2, 2)
    # From frame to frame both go 2 farther.
    assert flown(place, frames, [1, 2, 3, 4, 0, 0]) == [[0, 1, 4], [0, 3, 6]]
    # The second frame lasts three times as long.
    assert flown(place, frames, [1, 2, 9, 12, 0, 0], np.array([0, 1, 4])) == [[0, 1, 10], [0, 9, 12]]
    # Nothing is seen in the second frame, so that no flow is known there.
    assert flown([0, 1, 0, 1, 0, 1], (2, 0, 2, 2), [1, 2, 3, 4, 0, 0])[0] == [0, 1, 2]


def test_frames_that_show_others_need_not_go_farther():
    """Right goes thrice as far as left, and of the second frame the right alone is seen."""
    place = [*range(16), *range(8, 16), *range(16)]
    shift = [*[1] * 8, *[3] * 8, *[3] * 8, *[0] * 16]
    assert flown(place, (16, 8, 16), shift)[0] == [0, 1, 2]


def seen_by(look, movie, near, model, shift):
    """Followers, trust and probabilities after all that looks at a movie has looked at it."""
    pairs = with_gaps(movie, near, model, shift, sweep=look.sweep)
    linking, pairs = look.link(movie, pairs, model, Linking.none(len(movie.frame)), shift)
    order = np.lexsort((linking.col, linking.row))
    first = (linking.row[order], linking.col[order], linking.probability[order])
    linking = untangled(movie, model, linking, pairs.log_density, shift)
    linking = link_pass(movie, pairs, model, linking, shift)
    linking = doubted(movie, model, linking, shift)
    return *first, linking.follower, linking.trust


@pytest.mark.parametrize("two_sided", [True, False], ids=["past and future", "past alone"])
@pytest.mark.parametrize("look", [BY_DETECTIONS, BY_HEADINGS], ids=["detections", "headings"])
@pytest.mark.parametrize("time", [False, True], ids=["all recorded", "with holes"])
def test_a_stage_that_moves_and_is_known_changes_nothing(look, two_sided, time):
    truth = Scene(0.25, 5.0, miss=0.2, clutter=0.1, particles=200, frames=20).film(1)
    movie = movie_of(truth.detections, (1, 1, 1))
    if time:
        movie = replace(movie, time=np.cumsum(np.random.default_rng(2).integers(1, 4, 20)))
    motion = Motion((0.02,) * 3, (0.15,) * 3, 5.0, (0.03,) * 3)
    model = LinkModel(
        motion, (0.75, 0.16, 0.04), 0.03, 0.05, gate=(0.9,) * 3, clutter=0.02, two_sided=two_sided
    )
    near, still = pairs_of(movie, model.gate), np.zeros_like(movie.position)
    way = np.cumsum(np.random.default_rng(0).normal(size=(20, 3)), axis=0)
    ahead = np.append(np.diff(way, axis=0), np.zeros((1, 3)), axis=0)
    expected = seen_by(look, movie, near, model, still)
    found = seen_by(look, movie.moved(way), near, model, ahead[movie.frame])
    for one, other in zip(expected, found, strict=True):
        assert other == pytest.approx(one, abs=1e-6)
    assert (movie.frame[expected[3]] > movie.frame + 1)[expected[3] >= 0].sum() > 200
    # A wrong flow does change links.
    wrong = np.repeat(ahead[:1], len(movie.frame), axis=0)
    assert (seen_by(look, movie.moved(way), near, model, wrong)[3] != expected[3]).mean() > 0.1
