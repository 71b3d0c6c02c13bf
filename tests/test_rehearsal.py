"""Bias of estimates from links in crowded movies, and its correction by a bootstrap replicate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scenes import NOISE, crowded

from outbid import Detections
from outbid.calibrate import calibrate, learning, rehearsal
from outbid.calibrate.calibration import Calibration
from outbid.calibrate.maximise import Bias, motion_learned
from outbid.calibrate.rates import Rates, rates_counted
from outbid.calibrate.rehearsal import drawn, rehearsed
from outbid.motion import Motion
from outbid.refine.linking import LinkModel
from outbid.refine.movie import Movie, movie_of
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import BrownianWalk
from outbid.simulate.walks import WalkSettings, walk


def learned(*case: float, frames: int, seed: int = 1) -> Calibration:
    return calibrate(crowded(*case, frames=frames, seed=seed).detections)[0]


def of_noise(*found: Calibration) -> float:
    """Mean variance of the noise that was found, in that of the truth."""
    return float(np.mean(np.square([one.model.motion.noise for one in found]))) / NOISE**2


def still(particles: int = 1000, frames: int = 4, sides: tuple[float, ...] = (10.0, 10.0, 10.0)) -> Movie:
    """Detections anywhere."""
    place = np.random.default_rng(3).uniform(0, 1, (particles * frames, 3)) * sides
    return movie_of(Detections.from_table(np.repeat(np.arange(frames), particles), place), (1, 1, 1))


# ---------------------------------------------------------------- what is learned


def test_swaps_are_no_noise():
    """Two that swap and swap back look like noise, and are corrected for."""
    found = [learned(0.2, 0, 0.0, frames=40, seed=seed) for seed in (3, 4, 5, 6)]
    assert math.sqrt(of_noise(*found)) == pytest.approx(1, abs=0.1)


def test_links_are_as_often_right_as_they_say_where_few_are_wrong():
    """Nobody leaves or joins; what no replicate shows is corrected for as well."""
    box = (2000 ** (1 / 3),) * 3
    truth = walk(WalkSettings(BrownianWalk(0.2), 2000, 20, box, "reflect", 0.0, 0.0, seed=0))
    seen = observe(truth, Microscope((NOISE,) * 3, 0.0, 0.0), box=box, seed=0)
    _, links = calibrate(seen.detections)
    right = set(map(tuple, seen.links.tolist()))
    assert links.probability is not None
    share = np.mean([tuple(pair) in right for pair in links.pairs.tolist()])
    assert links.probability.mean() == pytest.approx(share, abs=0.012)


@pytest.mark.nightly
def test_noise_is_not_blown_up_where_a_quarter_of_all_links_is_wrong():
    """It is 1 % of the variance of a step: even the true links of such a movie determine it to 13 % only."""
    found = [learned(0.3, 0, 0.0, frames=40, seed=seed) for seed in (1, 2, 3)]
    assert 0.4 < of_noise(*found) < 1.8


@pytest.mark.nightly
@pytest.mark.parametrize("persistence", [3.0, 10.0])
def test_wrong_links_dilute_no_persistence(persistence):
    """Noise, persistence and steps are corrected for wrong links."""
    found = [learned(0.3, persistence, 0.1, frames=30, seed=seed) for seed in (1, 2, 3)]
    assert np.mean([one.model.motion.persistence for one in found]) == pytest.approx(persistence, rel=0.1)
    assert math.sqrt(of_noise(*found)) == pytest.approx(1, abs=0.15)
    step = math.sqrt(0.3**2 + 2 * NOISE**2)
    assert np.mean([one.step for one in found]) == pytest.approx(step, rel=0.04)


@pytest.mark.nightly
def test_ends_are_few_where_few_can_be_followed():
    """Wrong links make neither ends more frequent nor steps shorter."""
    found = [learned(0.4, 3.0, 0.0, frames=20, seed=seed) for seed in (1, 2)]
    assert 0.01 < np.mean([one.model.end for one in found]) < 0.035
    assert np.mean([one.model.motion.persistence for one in found]) == pytest.approx(3.0, rel=0.1)
    assert np.mean([one.step for one in found]) == pytest.approx(math.hypot(0.4, NOISE, NOISE), rel=0.05)


@pytest.mark.nightly
def test_what_flights_show_is_surveyed_as_well():
    """Wrong links among flights make neither ends much more frequent nor steps shorter."""
    found = [learned(0.4, 3.0, 0.1, frames=20, seed=seed) for seed in (1, 3)]
    assert np.mean([one.model.end for one in found]) < 0.2
    assert np.mean([one.step for one in found]) == pytest.approx(math.hypot(0.4, NOISE, NOISE), rel=0.035)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_nonsense_where_little_can_be_learned(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 60))
    place = rng.uniform(0, 3, (count * 8, 3)) * [1, 1, rng.integers(0, 2)]
    frame = np.sort(rng.choice([0, 1, 2, 5, 6, 9], count * 8))
    found, _ = calibrate(Detections.from_table(frame, place))
    assert np.isfinite(found.step).all()
    assert np.isfinite(found.model.motion.noise).all()
    assert 0 < found.model.end <= 0.9
    assert 0 <= found.model.clutter < min(found.model.end, found.model.start)
    assert sum(found.model.follow) == pytest.approx(1 - found.model.end)


# ---------------------------------------------------------------- what is drawn


@pytest.mark.parametrize(
    "motion",
    [Motion.static((0.2, 0.1, 0.3), (0.05, 0.1, 0.0)), Motion((0.0,) * 3, (0.3, 0.2, 0.1), 4.0, (0.05,) * 3)],
)
@pytest.mark.parametrize("scaled", [False, True])
def test_a_movie_that_is_drawn_gives_the_model(motion, scaled, monkeypatch):
    monkeypatch.setattr(rehearsal, "_ENOUGH", 50_000)  # in few frames all are near an end
    model = LinkModel(motion, (0.7, 0.1, 0.02), 0.18, 0.2, gate=(1.0,) * 3, clutter=0.1)
    scale = np.sqrt([0.4, 1.2, 1.4, 1.0])  # the last is never needed
    play, truth = drawn(still().paced(scale if scaled else None), model, 50, seed=1)
    rates = rates_counted(play, truth, model)
    np.testing.assert_allclose(rates.follow, model.follow, rtol=0.15)
    assert (rates.end, rates.start) == pytest.approx((0.18, 0.18), rel=0.1)
    links = replace(truth, distance2=np.ones(len(truth.row)), size=np.full(len(truth.row), 3))
    found = motion_learned(play, links, np.zeros_like(play.position), model, 1.0, Bias.none(3)).model.motion
    np.testing.assert_allclose(found.step_variance(1), motion.step_variance(1), rtol=0.06)
    np.testing.assert_allclose(found.noise, motion.noise, atol=0.03)
    assert found.persistence == pytest.approx(motion.persistence, rel=0.15)


@pytest.mark.parametrize("follow", [(0.8,), (0.4, 0.2, 0.1, 0.1)])
def test_what_is_drawn_stays_between_the_walls_and_is_as_dense_as_the_movie(follow):
    """From the first frame to the last, however many are missed."""
    model = LinkModel(Motion.static((0.5,) * 3), follow, 0.2, 0.2, gate=(2.0,) * 3, clutter=0.1)
    for movie in (still(), still(4000), still(9000, frames=3, sides=(10.0, 10.0, 1.0))):
        play, _ = drawn(movie, model, 12, seed=2)
        assert (play.bounds[0] >= movie.bounds[0]).all()
        assert (play.bounds[1] <= movie.bounds[1]).all()
        density = [
            len(one.frame) / (len(one.frame_start) - 1) / float(np.prod(np.ptp(one.bounds, axis=0)))
            for one in (movie, play)
        ]
        assert density[1] == pytest.approx(density[0], rel=0.1)
        size = np.diff(play.frame_start)
        assert size[1:].mean() == pytest.approx(size[0], rel=0.05)
        assert len(play.frame) < 30_000


def test_corrected_rates_stay_probabilities():
    rates = Rates((0.5, 0.1, 0.02), 0.38, 0.3, 0.2).times(np.array([2.5, 2.5, 2.5, 2.5]))
    assert sum(rates.follow) == pytest.approx(1 - rates.end)
    assert (rates.end, rates.start, rates.clutter) == pytest.approx((0.9, 0.75, 0.5))
    few = Rates((0.5, 0.1, 0.02), 0.38, 0.3, 0.2).times(np.array([2.5, 1.0, 2.5, 2.5]))
    assert few.put_into(LinkModel(Motion.static((1.0,)), (0.9,), 0.1, 0.1, gate=(5.0,))).clutter < few.start


def test_a_replicate_of_another_kind_of_movie_is_refused():
    """Where the model makes for more wrong links than there seem to be, or for fewer."""
    movie = still()
    model = LinkModel(Motion.static((0.3,) * 3), (0.95,), 0.05, 0.05, gate=(1.4,) * 3)
    play = {"doubt": 5.0, "solver": "bid_and_augment", "workers": 1}
    bias = [rehearsed(movie, model, 20, 0, wrong=wrong, **play) for wrong in (0.02, 0.25, 0.9)]
    assert bias[0] is bias[2] is None
    assert bias[1] is not None
    assert (bias[1].variance > 1).all()  # the short steps are those that are found


def test_shares_of_wrong_links_so_small_vary_from_pass_to_pass():
    """So a replicate is refused only where its share differs by more than that."""
    movie, play = still(), {"doubt": 5.0, "solver": "bid_and_augment", "workers": 1}
    flying = Motion((0.0,) * 3, (0.3,) * 3, 30.0, (0.01,) * 3)
    model = LinkModel(flying, (0.95,), 0.05, 0.05, gate=(1.4,) * 3)
    bias = [rehearsed(movie, model, 20, 0, wrong=wrong, **play) for wrong in (0.003, 0.02, 0.04)]
    assert [one is None for one in bias] == [False, False, True]


def test_corrections_are_forgotten_when_the_model_draws_another_movie(monkeypatch):
    """What corrects for wrong links is not kept where links are right."""
    replicate, learn, replicates, believed = learning.rehearsed, learning.learned, [], []

    def once(*args, **kwargs):
        replicates.append(len(believed))
        return replicate(*args, **kwargs) if len(replicates) == 1 else None

    def noted(*args):
        believed.append(bool(args[-1].correlation.any()))
        return learn(*args)

    monkeypatch.setattr(learning, "rehearsed", once)
    monkeypatch.setattr(learning, "learned", noted)
    calibrate(crowded(0.4, 0, 0.0, frames=12).detections)
    first, second = replicates[:2]
    assert believed == [False] * first + [True] * (second - first) + [False] * (len(believed) - second)
    assert second > first


def test_a_replicate_without_a_detection_is_refused():
    movie = still(particles=1)
    model = LinkModel(Motion.static((0.3,) * 3), (0.05, 0.05), 0.9, 0.9, gate=(1.4,) * 3, clutter=0.85)
    seed = next(seed for seed in range(100) if not len(drawn(movie, model, 2, seed)[0].frame))
    assert rehearsed(movie, model, 2, seed, wrong=0.1, doubt=5.0, solver="bid_and_augment", workers=1) is None


def test_a_movie_that_cannot_be_drawn_has_no_replicate():
    """Frames that are drawn have detections, and walls turn those that would fly out of the room."""
    movie, play = still(), {"doubt": 5.0, "solver": "bid_and_augment", "workers": 1}
    model = LinkModel(Motion.static((0.3,) * 3), (0.95,), 0.05, 0.05, gate=(1.4,) * 3)
    assert rehearsed(movie, model, 20, 0, wrong=0.25, **play) is not None
    pausing = replace(movie, frame=2 * movie.frame, frame_start=np.repeat(movie.frame_start, 2)[:-1])
    assert rehearsed(pausing, model, 20, 0, wrong=0.25, **play) is None
    flying = replace(model, motion=Motion((0.0,) * 3, (0.3,) * 3, 30.0, (0.01,) * 3))
    assert rehearsed(movie, flying, 20, 0, wrong=0.008, **play) is not None
    through = replace(model, motion=replace(flying.motion, persistence=40.0))
    assert rehearsed(movie, through, 20, 0, wrong=0.008, **play) is None
