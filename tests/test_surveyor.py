"""The surveyor asks the movie itself, and again only where the answer would be another."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from outbid import Detections
from outbid.calibrate.census import Census
from outbid.calibrate.survey import Survey
from outbid.calibrate.surveyor import Surveyor
from outbid.motion import Motion
from outbid.refine.linking import LinkModel
from outbid.refine.movie import movie_of

MODEL = LinkModel(Motion.static((0.3,) * 3), (0.8, 0.05, 0.01), 0.14, 0.14, gate=(1.4,) * 3, clutter=0.03)
SCALE = 1e-7  # such as metres


@pytest.fixture
def asked(monkeypatch):
    """The models by which surveys and censuses were asked for; none answers."""
    module, models = sys.modules["outbid.calibrate.surveyor"], {"surveyed": [], "counted": []}
    for name, seen in models.items():
        monkeypatch.setattr(module, name, lambda _, by, seen=seen, **__: seen.append(by))
    return models


def surveyor() -> Surveyor:
    return Surveyor(movie_of(Detections.from_table([0], [[0, 0, 0]]), (1, 1, 1)))


def going(step: float, persistence: float = 0.0) -> LinkModel:
    motion = Motion.static((step * SCALE,) * 3)
    if persistence:
        motion = Motion((0.0,) * 3, (step * SCALE,) * 3, persistence, (0.0,) * 3)
        wide = (motion.step_variance(1)[0] ** 0.5) / (step * SCALE)
        motion = replace(motion, speed=(step * SCALE / wide,) * 3)
    return replace(MODEL, motion=motion)


def test_it_is_asked_again_where_motion_is_another(asked):
    movie = surveyor()
    for model in (going(0.3), going(0.31), going(0.4), going(0.4), going(0.4, 3.0), going(0.4, 3.2)):
        assert movie.revised(model, doubt=0.1) is model
    assert len(asked["surveyed"]) == 3
    # How far they go is all that counts ask for.
    assert len(asked["counted"]) == 2


@pytest.mark.parametrize(
    ("freedom", "doubt", "surveys"),
    [(0.0, 0.1, 1), (2.5, 0.1, 0), (10.0, 0.2, 0), (15.0, 0.1, 1), (2.5, 0.3, 1)],
)
def test_steps_are_surveyed_if_they_are_about_gaussian_or_hardly_known(asked, freedom, doubt, surveys):
    surveyor().revised(replace(MODEL, freedom=freedom), doubt=doubt)
    assert (len(asked["surveyed"]), len(asked["counted"])) == (surveys, 1)


@pytest.mark.parametrize("sure", [False, True])
def test_who_knows_the_clutter_asks_for_steps_alone(monkeypatch, asked, sure):
    answer = Survey(0.75, 0.1, np.array([0.01, 0.01]), np.full(3, 0.12), 0.01)
    monkeypatch.setattr(sys.modules["outbid.calibrate.surveyor"], "surveyed", lambda *_, **__: answer)
    movie = Surveyor(movie_of(Detections.from_table([0], [[0, 0, 0]]), (1, 1, 1)), sure=sure)
    found = movie.revised(MODEL, doubt=0.1)
    assert found.motion.step_variance(1) == pytest.approx(answer.variance, rel=0.03)
    rates = [(one.follow, one.end, one.start, one.clutter) for one in (found, MODEL)]
    assert (rates[0] == rates[1]) == sure
    assert len(asked["counted"]) == 1


def test_what_is_counted_revises_what_was_surveyed(monkeypatch):
    module = sys.modules["outbid.calibrate.surveyor"]
    monkeypatch.setattr(module, "counted", lambda *_, **__: Census(0.95, 0.01))
    monkeypatch.setattr(module, "surveyed", lambda *_, **__: None)
    assert surveyor().revised(MODEL, doubt=0.1).follow[0] == pytest.approx(0.95)
