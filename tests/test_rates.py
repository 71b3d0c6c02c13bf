"""Rates: pairs that are drawn are counted as NumPy would count them."""

from __future__ import annotations

import numpy as np
import pytest

from outbid.calibrate import rates_cpu as kernels
from outbid.calibrate.rates import _WORTH

FRAMES, EACH, PAIRS = 6, 20, 300


def some_pairs():
    """Pairs over one to three frames, sorted by row, some of them links."""
    rng = np.random.default_rng(0)
    frame = np.repeat(np.arange(FRAMES), EACH)
    row, col = rng.integers(0, len(frame), (2, PAIRS))
    ahead = frame[col] - frame[row]
    taken = np.unique(np.column_stack([row, col])[(ahead > 0) & (ahead < 4)], axis=0)
    row, col = taken.T.copy()
    chance = rng.random(len(row)) * 0.3
    follower = np.full(len(frame), -1)
    follower[row[::7]] = col[::7]
    return frame, row, col, frame[col] - frame[row], chance, follower


def test_counts_are_numpys():
    frame, row, col, gap, chance, _ = some_pairs()
    early, late = 2, 3
    shares, chance = np.empty(4), 4 * chance
    counts = kernels.count(row, col, gap, chance, frame, early, late, shares)
    none_after, none_before = (1 - np.bincount(ends, chance, len(frame)) for ends in (row, col))
    seen = frame[row] <= early
    assert shares == pytest.approx(np.bincount(gap[seen], chance[seen], 4))
    lost, new = none_after[frame <= early].sum(), none_before[frame >= late].sum()
    inner = (frame > 0) & (frame < FRAMES - 1)
    alone = (np.maximum(none_after, 0) * np.maximum(none_before, 0))[inner].sum()
    assert counts == pytest.approx((lost, new, np.sum(frame >= late), alone, np.sum(inner)))
    assert (none_after < 0).any()


def test_improbable_pairs_are_shared_as_numpy_would():
    frame, row, col, gap, chance, follower = some_pairs()
    count, log_odds = len(frame), np.linspace(-2, 2, len(row))
    indptr, order, odds = np.empty(count + 1, np.int64), np.empty(len(row), "u4"), np.empty((2, len(row)))
    kernels.split(row, col, chance, follower, _WORTH, indptr, order, odds)
    worth = (chance > _WORTH) | (follower[row] == col)
    assert (order == np.concatenate([np.nonzero(worth)[0], np.nonzero(~worth)[0]])).all()
    assert (indptr == np.searchsorted(row[worth], np.arange(count + 1))).all()
    free = [np.maximum(1 - np.bincount(ends, chance, count), 1e-9)[ends] for ends in (row, col)]
    assert odds == pytest.approx(chance / free)
    more, rest, gain = np.array([0.0, 0.5, -0.3, 1.0]), np.empty((2, count)), np.empty(worth.sum())
    kernels.weigh(row, col, gap, order, odds, log_odds, more, rest, gain)
    now = odds * np.exp(more[gap]) * ~worth
    expected = [np.bincount(ends, of, count) for ends, of in zip((row, col), now, strict=True)]
    np.testing.assert_allclose(rest, expected)
    against = np.log1p(rest[0])[row] + np.log1p(rest[1])[col]
    assert gain == pytest.approx((log_odds + more[gap] - against)[worth])
    seen, found = np.linspace(0, 0.2, len(gain)), np.empty(len(row))
    kernels.share(row, gap, order, odds, more, rest, seen, found)
    assert found[worth] == pytest.approx(seen)
    left = (1 - np.bincount(row[worth], seen, count)) / (1 + rest[0])
    assert found[~worth] == pytest.approx((left[row] * now[0])[~worth])
