"""Vasconcelos & Rosenhahn's matching by their auction with a fixed ε, frame pair by frame pair."""

from __future__ import annotations

from outbid.assignment.auction import Auction

from .whole import Whole

EPSILON = 1e-3
"""The fixed ε, in units of density^(-1/3)."""


def _auction(unit: float) -> Auction:
    return Auction(EPSILON * unit, 1.0)


LINKER = Whole(_auction)
