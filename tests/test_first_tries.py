"""Mistakes in first scripts of users, and the error messages for them."""

import numpy as np
import pytest

from outbid import (
    AssignmentProblem,
    DenseCosts,
    Detections,
    InputError,
    SettingsError,
    TrackingSettings,
    assign,
    match,
    track,
)

PLANE, ROWS = np.zeros((3, 2)), [[0.0, 0.0, 0.0]]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("attempt", "error", "said"),
    [
        (lambda: Detections([0], ROWS), InputError, "from_table converts lists"),
        (lambda: match(PLANE, PLANE, 1.0), InputError, "let z be 0"),
        (lambda: match(ROWS, ROWS, 1.0), InputError, "no array of shape"),
        (lambda: assign(np.eye(2)), TypeError, r"AssignmentProblem\(DenseCosts"),
        (lambda: assign(AssignmentProblem(np.eye(2))), TypeError, "no bare array"),
        (lambda: assign(AssignmentProblem(DenseCosts(np.eye(1)), [1], [1])), TypeError, "no lists"),
        (lambda: TrackingSettings(max_gap=1.5), SettingsError, "whole number"),
        (lambda: TrackingSettings(max_gap=-1), SettingsError, "0 or more"),
    ],
)
def test_errors_of_first_tries_say_what_to_write(attempt, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        attempt()


def test_settings_may_be_left_out() -> None:
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 9, (50, 3)) + np.cumsum(rng.normal(0, 0.1, (6, 50, 3)), axis=0)
    seen = Detections.from_table(np.repeat(np.arange(6), 50), place.reshape(-1, 3))
    assert (track(seen).tracks.links == track(seen, TrackingSettings()).tracks.links).all()
