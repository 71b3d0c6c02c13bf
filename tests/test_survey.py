"""Survey: how many particles are seen again, and how many detections are none, found without any link."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbid import Detections
from outbid.calibrate import calibrate
from outbid.calibrate.survey import Survey, surveyed
from outbid.calibrate.survey_cpu import add_around
from outbid.motion import Motion
from outbid.refine.linking import LinkModel
from outbid.refine.movie import movie_of
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import BrownianWalk, OrnsteinUhlenbeckWalk
from outbid.simulate.walks import WalkSettings, walk

MODEL = LinkModel(Motion.static((0.3,) * 3), (0.8, 0.05, 0.01), 0.14, 0.14, gate=(1.4,) * 3, clutter=0.03)


def diffusing(step, clutter=0.1, miss=0.1, particles=1000, frames=30, seed=0):
    """Particles between walls, one a unit of volume, that are missed and die, and clutter."""
    rng, axes = np.random.default_rng(seed), len(step)
    box = particles ** (1 / axes)
    place, rows = rng.uniform(0, box, (particles, axes)), []
    for frame in range(frames):
        place = np.abs(place + rng.normal(0, step, place.shape))
        place = box - np.abs(box - place)
        gone = rng.random(particles) < 0.02
        place[gone] = rng.uniform(0, box, (gone.sum(), axes))
        seen = place[rng.random(particles) >= miss]
        none = rng.uniform(0, box, (round(len(seen) * clutter / (1 - clutter)), axes))
        both = np.concatenate([seen, none])
        rows.append(np.column_stack([np.full(len(both), frame), np.zeros((len(both), 3 - axes)), both]))
    table = np.concatenate(rows)
    return Detections.from_table(table[:, 0].astype(int), table[:, 1:])


STEPS = {"variance": np.ones(3), "spread": 0.1}


def model_of(step):
    return replace(MODEL, motion=Motion.static(tuple(step)), gate=tuple(4.5 * far for far in step))


@pytest.mark.parametrize("step", [(0.3, 0.3, 0.3), (0.12, 0.3, 0.5), (0.3, 0.3), (0.2, 0.4)])
@pytest.mark.parametrize("clutter", [0.0, 0.1, 0.4])
def test_clutter_and_who_is_seen_again_are_found_where_many_could_swap(step, clutter):
    movie = movie_of(diffusing(step, clutter), (1, 1, 1))
    found = surveyed(movie, model_of(step))
    assert found is not None
    assert (found.errors < 0.05).all()
    true = np.array([(1 - clutter) * 0.9 * 0.98, clutter])
    assert (np.abs([found.seen, found.clutter] - true) < 3 * found.errors).all()


@pytest.mark.parametrize("wide", [0.9, 1.1])
def test_steps_may_be_known_roughly(wide):
    movie = movie_of(diffusing((0.3,) * 3, particles=2000), (1, 1, 1))
    right, rough = (surveyed(movie, model_of((far,) * 3)) for far in (0.3, 0.3 * wide**0.5))
    assert rough.clutter == pytest.approx(right.clutter, abs=0.02)
    assert rough.seen == pytest.approx(right.seen, abs=0.03)


@pytest.mark.parametrize("step", [(0.3, 0.3, 0.3), (0.12, 0.3, 0.5), (0.3, 0.3)])
@pytest.mark.parametrize("wide", [0.9, 1.15])
def test_steps_are_found_though_links_have_them_too_short_or_long(step, wide):
    found = surveyed(movie_of(diffusing(step, particles=2000), (1, 1, 1)), model_of(np.array(step) * wide))
    assert found.spread < 0.08
    wide = np.mean(found.variance / np.square(step))
    assert wide == pytest.approx(1, abs=3 * found.spread)


@pytest.mark.nightly
def test_crowded_particles_are_not_thought_to_step_as_short_as_links_are():
    """Half of the links are wrong, and shorter than true steps."""
    truth = walk(WalkSettings(BrownianWalk(0.4), 2000, 30, (12.6,) * 3, "reflect", 0.02, 0.02, seed=0))
    learned, _ = calibrate(observe(truth, Microscope((0.03,) * 3), box=(12.6,) * 3, seed=0).detections)
    assert learned.step.mean() == pytest.approx((0.4**2 + 2 * 0.03**2) ** 0.5, rel=0.04)


@pytest.mark.parametrize("wide", [0.8, 1.25])
def test_what_links_show_of_steps_counts_as_far_as_it_is_sure(monkeypatch, wide):
    """If it is, and steps are thought wider than they are, more seem to be seen again."""
    movie, model = movie_of(diffusing((0.3,) * 3), (1, 1, 1)), model_of((0.3 * wide**0.5,) * 3)
    seen = []
    for learned in (1e-9, 0.05, 1e9):
        monkeypatch.setattr(sys.modules["outbid.calibrate.survey"], "_LEARNED", learned)
        seen.append(surveyed(movie, model).seen)
    assert seen == sorted(set(seen), reverse=wide > 1)


def test_particles_that_keep_their_way_are_seen_before_and_after_in_line():
    motion = OrnsteinUhlenbeckWalk(0.4 * 3**0.5, 10.0)
    truth = walk(WalkSettings(motion, 2000, 30, (12.6,) * 3, "reflect", 0.02, 0.02, seed=1))
    seen = observe(truth, Microscope((0.03,) * 3, 0.1, 0.1), box=(12.6,) * 3, seed=1).detections
    movie = movie_of(seen, (1, 1, 1))
    model = replace(MODEL, motion=Motion((0.0,) * 3, (0.4,) * 3, 10.0, (0.03,) * 3))
    found, forgetful = surveyed(movie, model), surveyed(movie, model_of((0.4,) * 3))
    assert found.clutter == pytest.approx(0.1, abs=3 * found.errors[1])
    assert forgetful.clutter > 0.2  # two that are in line are more than two that are near


@pytest.mark.parametrize("workers", [2, 3])
def test_threads_change_nothing(workers):
    movie = movie_of(diffusing((0.3,) * 3), (1, 1, 1))
    one, other = surveyed(movie, MODEL), surveyed(movie, MODEL, workers=workers)
    assert (one.seen, one.clutter) == (other.seen, other.clutter)
    np.testing.assert_array_equal(one.errors, other.errors)


@pytest.mark.parametrize("width", [-0.2, 0.0, np.nan])
def test_steps_of_no_width_show_nothing(monkeypatch, width):
    """Where hardly anybody is seen again, chance may find more near by than there are."""
    movie = movie_of(diffusing((0.3,) * 3), (1, 1, 1))
    widths = iter([width, *np.linspace(-9, 9, 16), *[1.0] * 17])
    monkeypatch.setattr(sys.modules["outbid.calibrate.survey"], "_width", lambda *_: next(widths))
    assert surveyed(movie, MODEL) is None


def test_nothing_is_found_where_it_cannot_be():
    movie = movie_of(diffusing((0.3,) * 3), (1, 1, 1))
    assert surveyed(movie, model_of((0.15,) * 3)) is None  # steps are far wider
    assert surveyed(movie, model_of((0.6,) * 3)) is None  # or far narrower
    far = (1.0,) * 3
    assert surveyed(movie_of(diffusing(far), (1, 1, 1)), model_of(far)) is None  # a hundred are near
    assert surveyed(movie_of(diffusing((0.3,) * 3, particles=100), (1, 1, 1)), MODEL) is None
    rng = np.random.default_rng(0)
    pairs = rng.uniform(0, 8, (500, 1, 3)) + rng.normal(0, 0.2, (500, 2, 3))
    together = pairs + np.cumsum(rng.normal(0, 0.2, (30, 500, 1, 3)), axis=0)
    couples = Detections.from_table(np.repeat(np.arange(30), 1000), together.reshape(-1, 3))
    assert surveyed(movie_of(couples, (1, 1, 1)), model_of((0.2,) * 3)) is None
    nobody = Detections.from_table(np.empty(0, dtype=int), np.empty((0, 3)))
    assert surveyed(movie_of(nobody, (1, 1, 1)), model_of((0.3,))) is None


@given(
    st.floats(0.0, 1.2), st.floats(-0.5, 1.5), st.floats(1e-6, 0.3),
    st.integers(1, 3), st.floats(0.05, 0.9), st.floats(0, 0.99),
)  # fmt: skip
def test_revised_rates_are_rates(seen, clutter, error, longest, end, strange):
    follow = (1 - end) * np.array([0.9, 0.08, 0.02])[:longest]
    follow *= (1 - end) / follow.sum()
    model = replace(MODEL, follow=tuple(follow), end=end, start=end / 2, clutter=strange * end / 2)
    new = Survey(seen, clutter, np.array([error, error]), **STEPS).revised(model)
    assert sum(new.follow) + new.end == pytest.approx(1)
    assert min(new.follow) >= 0
    assert 0 <= new.clutter <= 0.99 * min(new.end, new.start)
    if clutter < 2.5 * error or clutter < model.clutter:
        assert new is model


@pytest.mark.parametrize(
    ("clutter", "strange", "missed", "expected"),
    [
        (0.10, 0.03, 0.0500, 0.10),  # what is seen is far surer than what links show
        (0.10, 0.01, 0.0500, 0.04),  # at most four times as much as links show
        (0.10, 0.00, 0.0500, 0.00),  # which show that there is none
        (0.02, 0.03, 0.0500, 0.03),  # less is not believed: links show some
        (0.10, 0.03, 0.0001, 0.10),  # and they show that nobody is missed
    ],
)
def test_revised_rates_are_what_is_seen_and_what_links_show(clutter, strange, missed, expected):
    follow = 0.85 / (1 + missed) * np.array([1.0, missed])
    model = replace(MODEL, follow=tuple(follow), end=0.15, start=0.12, clutter=strange)
    new = Survey(0.8, clutter, np.array([1e-4, 1e-4]), **STEPS).revised(model)
    assert new.clutter == pytest.approx(expected, abs=1e-3)
    if clutter < strange or strange == 0:
        assert new is model
        return
    assert new.follow[0] == pytest.approx(0.8, abs=1e-3)
    # Of .9 that are particles .8 are seen again; half of the others are missed, as far as links know of any.
    late = min(missed + (1 - 0.8 / 0.9 - missed) / 2, 1.3 * missed)
    assert new.follow[1] == pytest.approx(0.8 * late, abs=1e-3)
    assert new.start / new.end == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("surely", "weight"), [(2.5, 0.0), (2.5 + 1e-9, 0.0), (3.25, 0.5), (4.0, 1.0), (9.0, 1.0)]
)
def test_clutter_is_believed_little_by_little(surely, weight):
    def revised(error):
        new = Survey(0.8, 0.1, np.array([0.01, error]), np.ones(3), 0.1).revised(MODEL)
        return np.array([new.end, new.start, new.clutter, *new.follow])

    was = np.array([MODEL.end, MODEL.start, MODEL.clutter, *MODEL.follow])
    found = revised(0.1 / surely)
    # Clutter also counts by its error, which is another for each.
    whole = Survey(0.8, 0.1, np.array([0.01, 0.1 / surely]), np.ones(3), 0.1)._agreed(MODEL)
    now = np.array([whole.end, whole.start, whole.clutter, *whole.follow])
    np.testing.assert_allclose(found, was + weight * (now - was), atol=1e-9)
    assert found[0] + found[3:].sum() == pytest.approx(1)


def test_most_may_be_clutter():
    model = replace(MODEL, follow=(0.25, 0.02), end=0.73, start=0.73, clutter=0.6)
    new = Survey(0.25, 0.7, np.array([1e-4, 1e-4]), **STEPS).revised(model)
    assert new.clutter == pytest.approx(0.7, abs=1e-3)


def test_given_clutter_is_not_asked_for():
    seen = diffusing((0.3,) * 3, particles=600, frames=25)
    alone, fixed = (calibrate(seen, known={"clutter": clutter})[0] for clutter in (0.0, 0.02))
    assert alone.model.clutter == 0
    assert fixed.model.clutter == 0.02
    assert min(alone.model.end, fixed.model.end) > 0.12  # clutter that may be none ends


def test_what_is_around_points_is_weighed():
    rng = np.random.default_rng(0)
    point, place, inverse = rng.uniform(0, 1, (5, 2)), rng.uniform(0, 1, (7, 2)), np.array([2.0, 30.0])
    near = rng.random((5, 7)) < 0.5
    around = np.empty((2, 5))
    indptr = np.append(0, near.sum(axis=1).cumsum())
    add_around(indptr, np.nonzero(near)[1].astype(np.int32), point, place, inverse, around)
    away = (np.square(point[:, None] - place) * inverse).sum(axis=2)
    for row, variance in zip(around, (1 / 3, 1), strict=True):
        np.testing.assert_allclose(row, np.where(near, np.exp(-away / 2 / variance), 0).sum(axis=1))


@pytest.mark.parametrize("miss", [0.0, 0.1])
def test_a_crowded_movie_shows_its_clutter_when_it_is_linked(miss):
    """Links alone show a third of it."""
    truth = walk(WalkSettings(BrownianWalk(0.3), 1000, 40, (10.0,) * 3, "reflect", 0.02, 0.02, seed=2))
    seen = observe(truth, Microscope((0.03,) * 3, miss, 0.1), box=(10.0,) * 3, seed=2).detections
    learned, _ = calibrate(seen)
    assert learned.model.clutter == pytest.approx(0.1, abs=0.035)
    assert learned.model.end == pytest.approx(0.12, abs=0.03)


def test_steps_are_learned_to_the_end_though_rates_are_known_early():
    """Learning begins with the same step along all axes, and gets on slowly."""
    learned, _ = calibrate(diffusing((0.12, 0.3, 0.48), particles=1500, frames=40))
    np.testing.assert_allclose(learned.step, [0.12, 0.3, 0.48], rtol=0.065)
