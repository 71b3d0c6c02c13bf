"""Tails: how heavy those of the steps are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from outbid.calibrate.tails import tail_from


def test_tails_are_distinguished_from_the_gaussian():
    rng = np.random.default_rng(0)
    gauss = rng.chisquare(3, 20_000)
    size, weight = np.full(20_000, 3), np.ones(20_000)
    assert tail_from(gauss, size, weight) == (0.0, 1.0)
    heavy = gauss / (rng.chisquare(4, 20_000) / 4)
    freedom, scale = tail_from(heavy, size, weight)
    assert freedom == pytest.approx(4, abs=1)
    assert scale == pytest.approx(1, rel=0.25)


def test_tails_are_not_lighter_than_motion_says():
    """Where all links may be wrong, the nearest pass for right: distances are half of what they are."""
    rng = np.random.default_rng(1)
    freedom, scale = tail_from(0.5 * rng.chisquare(3, 20_000), np.full(20_000, 3), np.ones(20_000))
    assert freedom == 0 or scale * freedom / (freedom - 2) > 0.95


@pytest.mark.parametrize(("freedom", "scale"), [(3, 0.3), (4, 1.0), (10, 0.6), (30, 1.4)])
def test_the_tail_is_the_likeliest_of_all_that_are_tried(freedom, scale):
    rng = np.random.default_rng(freedom)
    size, weight = rng.choice([2, 4], 3000), rng.random(3000)
    distance2 = scale * rng.chisquare(size) / (rng.chisquare(freedom, 3000) / freedom)
    near = np.append(0.0, np.geomspace(1e-3, distance2.max() + 1, 200))
    rounded = near[np.searchsorted(near, np.maximum(distance2, 1e-4)) - 1]

    def likelihood(nu, variance):
        constant = [math.lgamma((nu + m) / 2) - math.lgamma(nu / 2) for m in range(5)]
        fallen = -size / 2 * np.log(variance / 2) - (nu + size) / 2 * np.log1p(rounded / variance)
        return weight @ (np.array(constant)[size] + fallen)

    scales, freedoms = np.geomspace(0.25, 1.6, 22), (2.5, 3, 4, 5, 7, 10, 15, 30)
    tried = [(nu, each) for nu in freedoms for each in scales if each * nu / (nu - 2) > 0.95]
    best = max(tried, key=lambda one: likelihood(one[0], one[0] * one[1]))
    assert tail_from(distance2, size, weight) == pytest.approx(best)
