"""Simulator and scorer against theory: how often the nearest, or the optimal, partner is the right one.

Particles of density 1 take Gaussian steps of standard deviation kappa along each axis, so kappa is
the step in density^(-1/3). Walls reflect: then the density is exactly uniform at both times,
but near a wall there are fewer neighbours to take for the true one, and accuracies are higher. So
the box is large and only particles that start `MARGIN` or more from every wall are judged.
"""

from functools import cache
from math import sqrt

import numpy as np
import pytest
from scipy.spatial import cKDTree

from outbid.gated.matching import match
from outbid.particles.tracks import Tracks
from outbid.scoring import score
from outbid.simulate.motions import BrownianWalk
from outbid.simulate.theory import OPTIMAL, nearest, swapped
from outbid.simulate.walks import WalkSettings, walk

LENGTH, MARGIN = 44, 3.0
SIGMAS = 4
NEAREST = {0.05: 0.9967, 0.10: 0.974, 0.15: 0.919, 0.20: 0.831, 0.30: 0.610, 0.40: 0.415}
"""Published accuracy of the nearest neighbour: theory, rounded."""

OPTIMAL_SAMPLE = 5000
"""Particles of the published simulation of the optimal assignment, whose size is unknown, at least.

Wrong links come in twos, since two particles swap: .9996 needs some 5,000 particles."""


@cache
def pair_of_frames(kappa: float) -> Tracks:
    return walk(
        WalkSettings(BrownianWalk(kappa), LENGTH**3, 2, (LENGTH, LENGTH, LENGTH), "reflect", seed=2009)
    )


def accuracy(truth: Tracks, partner: np.ndarray) -> tuple[float, int]:
    """Share of right links among those of inner particles, by the scorer; and how many were judged.

    `partner` (N,) holds the row in the second frame that each of the N particles is linked to.
    """
    count = len(partner)
    start = truth.detections.position[:count]
    inner = np.nonzero(((start > MARGIN) & (start < LENGTH - MARGIN)).all(axis=1))[0]
    tracks = Tracks(truth.detections, np.column_stack([inner, count + partner[inner]]))
    found = score(tracks, truth, families=("links",)).values
    assert found["n_predicted_links"] == len(inner) > 50_000
    return found["link_precision"], len(inner)


def clouds(truth: Tracks) -> tuple[np.ndarray, np.ndarray]:
    position = truth.detections.position
    return position[: LENGTH**3], position[LENGTH**3 :]


def optimal_partners(truth: Tracks) -> np.ndarray:
    """Least squared distances, the likeliest matching for Gaussian steps; at this gate all find a partner."""
    found = match(*clouds(truth), 3.0, cost="squared", workers=2)
    assert found.assignment.gap == 0
    np.testing.assert_array_equal(found.source, np.arange(LENGTH**3))
    return found.target


@pytest.mark.smoke
@pytest.mark.parametrize("kappa", NEAREST)
def test_nearest_neighbours_are_right_as_often_as_theory_says(kappa: float) -> None:
    expected = nearest(kappa)
    assert expected == pytest.approx(NEAREST[kappa], abs=0.0006)
    truth = pair_of_frames(kappa)
    first, second = clouds(truth)
    measured, judged = accuracy(truth, cKDTree(second).query(first)[1])
    assert abs(measured - expected) < SIGMAS * sqrt(expected * (1 - expected) / judged)


@pytest.mark.parametrize("kappa", OPTIMAL)
def test_the_optimal_assignment_is_right_as_often_as_published(kappa: float) -> None:
    truth = pair_of_frames(kappa)
    measured, judged = accuracy(truth, optimal_partners(truth))
    variance = measured * (1 - measured) * (1 / judged + 1 / OPTIMAL_SAMPLE)
    assert abs(measured - OPTIMAL[kappa]) < SIGMAS * sqrt(variance)
    assert measured > nearest(kappa)


@pytest.mark.parametrize("kappa", [0.05, 0.10])
def test_the_optimal_assignment_errs_where_two_particles_pass_each_other(kappa: float) -> None:
    expected = swapped(kappa)
    truth = pair_of_frames(kappa)
    measured, judged = accuracy(truth, optimal_partners(truth))
    assert abs(1 - measured - expected) < SIGMAS * sqrt(2 * expected / judged)  # errors come in twos
