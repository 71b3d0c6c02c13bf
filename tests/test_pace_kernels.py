"""Every kernel takes how far particles go from the frame of the earlier detection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scenes import REST, walks
from scipy.stats import multivariate_t

from outbid.motion import Motion
from outbid.refine.bridges import with_gaps
from outbid.refine.candidates import pairs_of
from outbid.refine.exchanged import doubted
from outbid.refine.linking import Linking, LinkModel
from outbid.refine.looks import BY_DETECTIONS, BY_HEADINGS
from outbid.refine.movie import movie_of
from outbid.refine.untangle import untangled
from outbid.refine.weigh import link_pass, possible
from outbid.refine.weigh_cpu import weigh_still


@pytest.fixture(scope="module")
def movie():
    return movie_of(walks(np.full(19, 0.2), 200, side=6.0, miss=0.1).detections, (1, 1, 1))


@pytest.fixture(scope="module")
def model():
    motion = Motion((0.02,) * 3, (0.2,) * 3, 3.0, (0.03,) * 3)
    return LinkModel(motion, (0.85, 0.08, 0.01), 0.06, 0.06, gate=(0.9,) * 3, clutter=0.01, freedom=7.0)


def every_look(movie, model):
    """What every kernel that looks at a movie finds of its links."""
    still = np.zeros_like(movie.position)
    near = pairs_of(movie, model.gate)
    yield possible(movie, near, model).indices
    for look in (BY_DETECTIONS, BY_HEADINGS):
        pairs = with_gaps(movie, near, model, still, sweep=look.sweep)
        found, pairs = look.link(movie, pairs, model, Linking.none(len(movie.frame)), still)
        yield found.trust
    better = untangled(movie, model, found, pairs.log_density, still)
    yield better.follower
    found = link_pass(movie, pairs, model, better, still)
    yield found.trust
    yield doubted(movie, model, found, still).trust


def test_a_step_scale_of_one_changes_nothing(movie, model):
    usual = movie.paced(np.ones(len(movie.frame_start) - 1))
    for one, other in zip(every_look(movie, model), every_look(usual, model), strict=True):
        np.testing.assert_array_equal(one, other)


def test_twice_the_step_scale_is_twice_the_step(movie, model):
    scale = np.full(len(movie.frame_start) - 1, 2.0)
    speed, diffusion = (tuple(2 * np.array(of)) for of in (model.motion.speed, model.motion.diffusion))
    wider = replace(model, motion=replace(model.motion, speed=speed, diffusion=diffusion))
    scaled = every_look(movie.paced(scale), model)
    for one, other in zip(scaled, every_look(movie, wider), strict=True):
        np.testing.assert_allclose(one, other, atol=5e-3)  # a pair at a gate may be rounded away


@pytest.mark.parametrize("look", [BY_DETECTIONS, BY_HEADINGS], ids=["detections", "headings"])
def test_a_movie_run_backward_gives_the_same_links(look):
    truth = walks(REST[:30], 200, side=6.0, seed=3)
    scale = REST[:30] / np.sqrt(np.mean(REST[:30] ** 2))
    movie = movie_of(truth.detections, (1, 1, 1)).paced(np.append(scale, 1.0))
    step = tuple([float(np.sqrt(np.mean(REST[:30] ** 2)))] * 3)
    model = LinkModel(Motion.static(step, (0.02,) * 3), (0.9,), 0.1, 0.1, gate=(1.2,) * 3)

    def linked(movie):
        still = np.zeros_like(movie.position)
        return look.link(movie, pairs_of(movie, model.gate), model, Linking.none(len(movie.frame)), still)[0]

    found, back = linked(movie), linked(movie.backward()).backward()
    assert (found.follower == back.follower).mean() > 0.97
    right = truth.links[np.isin(truth.links[:, 0], movie.order[found.follower >= 0])]
    assert len(right) > 0.8 * len(truth.links)


@pytest.mark.parametrize("holes", [False, True])
def test_the_step_scale_of_a_frame_without_detections_has_no_say(movie, model, holes):
    """All is known of each frame by its own number."""
    frames = len(movie.frame_start) - 1
    time = np.append(0, np.arange(2, 2 + frames))
    later = replace(
        movie,
        frame=movie.frame + 1,
        frame_start=np.append(0, movie.frame_start),
        time=time if holes else None,
    )
    scales = (np.append(first, np.linspace(0.8, 1.2, frames)) for first in (0.1, 0.9))
    slow, fast = (every_look(later.paced(scale), model) for scale in scales)
    for one, other in zip(slow, fast, strict=True):
        np.testing.assert_array_equal(one, other)


def test_who_is_believed_to_be_another_is_so_backward_as_well(movie, model):
    still, other = np.zeros_like(movie.position), movie.paced(np.linspace(0.5, 2, len(movie.frame_start) - 1))
    pairs = with_gaps(other, pairs_of(other, model.gate), model, still)
    found, _ = BY_DETECTIONS.link(other, pairs, model, Linking.none(len(movie.frame)), still)
    there, back = (
        doubted(*of, still).trust
        for of in ((other, model, found), (other.backward(), model, found.backward()))
    )
    assert (there < found.trust - 0.01).sum() > 20
    np.testing.assert_allclose(found.backward().backward().trust, found.trust)
    follower = found.follower
    linked = np.nonzero(follower >= 0)[0]
    np.testing.assert_allclose(back[len(back) - 1 - follower[linked]], there[linked], atol=1e-6)


def test_a_part_keeps_its_own_step_scales(movie):
    frames = len(movie.frame_start) - 1
    scaled = movie.paced(np.arange(1.0, frames + 1))
    assert scaled.part(3, 9).pace.tolist() == [4, 5, 6, 7, 8, 9]
    assert scaled.backward().backward().pace.tolist() == scaled.pace.tolist()
    assert scaled.backward().pace[:2].tolist() == [frames - 1, frames - 2]
    assert scaled._pace_over(2)[:2] == pytest.approx(np.sqrt([2.5, 6.5]))
    holed = replace(scaled, time=np.cumsum(np.arange(frames)))  # 1, 2, 3, … intervals long
    assert holed._pace_over(2)[:2] == pytest.approx(np.sqrt([(1 + 4 * 2) / 3, (4 * 2 + 9 * 3) / 5]))
    assert holed.backward().lasting(1)[:2].tolist() == [frames - 1, frames - 2]
    assert np.diff(holed.part(3, 9).when[[0, -1]]) == 4 + 5 + 6 + 7 + 8


@pytest.mark.parametrize("freedom", [0.0, 5.0])
def test_pairs_are_weighed_by_how_far_particles_go_from_their_frame(freedom):
    rng, step2, reach = np.random.default_rng(2), np.array([0.3, 0.2, 0.5]), np.array([0.5, 2.0, 1.0])
    place, frame, gain = rng.normal(size=(3, 3)), np.arange(3), np.empty(2)
    weigh_still(
        np.array([0, 1, 2, 2]), np.array([1, 2], np.int32), frame, place, reach, step2, np.zeros(3), freedom,
        2.0, gain,
    )  # fmt: skip
    for i in range(2):
        shape = np.diag(step2) * reach[i] ** 2 * (2 if freedom else 1)
        t = multivariate_t(np.zeros(3), shape, df=freedom or np.inf)
        assert gain[i] == pytest.approx(t.logpdf(place[i + 1] - place[i]))
