"""The final choice of links, and matchings drawn as likely as they are: against all matchings there are."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from outbid.calibrate import calibrate
from outbid.calibrate.rates import _Lots
from outbid.calibrate.sampling_cpu import sample_matchings
from outbid.refine.candidates_cpu import looked_up
from outbid.refine.choose import chosen, sobered, sobriety_of
from outbid.refine.choose_cpu import fractional_probabilities
from outbid.refine.linking import Linking
from outbid.refine.weigh_cpu import pair_probabilities
from outbid.simulate.scenes import Scene


def matchings(row, col):
    """Every set of pairs in which no row and no column comes twice, as a boolean each."""
    for taken in product((False, True), repeat=len(row)):
        some = np.array(taken)
        if len(set(row[some])) == some.sum() == len(set(col[some])):
            yield some


def linking_of(row, col, odds, probability, count):
    """A linking of these pairs that has chosen the likeliest matching."""
    row, col = np.array([row, col], dtype=np.int32)
    best = max(matchings(row, col), key=lambda some: odds[some].sum())
    follower, before, trust = np.full(count, -1), np.full(count, -1), np.zeros(count)
    follower[row[best]], before[col[best]] = col[best], row[best]
    trust[row[best]] = probability[best]
    return replace(
        Linking.none(count), follower=follower, before=before, trust=trust, row=row, col=col, odds=odds,
        probability=probability,
    )  # fmt: skip


def scene(seed):
    """Four detections that may be followed by four others."""
    rng = np.random.default_rng(seed)
    row, col = np.nonzero(rng.random((4, 4)) < 0.7)
    return row, col + 4, rng.normal(1.0, 1.5, len(row))


def exact(row, col, odds):
    """Probability of each pair, by all matchings."""
    every = np.array(list(matchings(row, col)))
    weight = np.exp(every @ odds)
    return weight @ every / weight.sum()


@pytest.mark.parametrize("seed", range(3))
def test_matchings_are_drawn_as_likely_as_they_are(seed):
    row, col, odds = scene(seed)
    seen, none = np.empty(len(row)), np.full(8, -1)
    sample_matchings(
        np.searchsorted(row, np.arange(9)), col, odds, none.copy(), none.copy(), 40_000, 100, seen
    )
    assert seen == pytest.approx(exact(row, col, odds), abs=0.02)


def test_swaps_bring_no_ends():
    """Where all could swap, belief propagation sees many ends; what is drawn does not."""
    pairs = 300
    each = np.arange(2 * pairs, dtype=np.int32)
    row, col = np.repeat(each, 2), 2 * pairs + np.column_stack([each, each ^ 1]).ravel()
    odds, count = np.full(len(row), np.log(100.0)), 4 * pairs
    one = exact(np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3]), odds[:4])[0]
    follower, before = np.full(count, -1), np.full(count, -1)
    follower[: 2 * pairs], before[2 * pairs :] = np.arange(2 * pairs, count), np.arange(2 * pairs)
    believed = 0.475  # what belief propagation says: b (1 - b) = 100 (1 - 2 b)²
    linking = replace(
        Linking.none(count), follower=follower, before=before, row=row, col=col, odds=odds,
        probability=np.full(len(row), believed),
    )  # fmt: skip
    assert _Lots(linking, np.ones_like(row)).drawn(np.zeros(1)).mean() == pytest.approx(one, abs=0.01)


def test_improbable_pairs_are_not_drawn_but_counted():
    """A detection whose candidates are many and none of them probable still has a link as often."""
    many, each = 400, 8
    row = np.repeat(np.arange(many, dtype=np.int32), each)
    col = many + np.arange(many * each, dtype=np.int32)
    odds = np.full(len(row), np.log(0.1))
    true = 0.1 / (1 + 0.1 * each)
    linking = replace(
        Linking.none(many * (each + 1)), row=row, col=col, odds=odds, probability=np.full(len(row), true)
    )
    drawn = _Lots(linking, np.ones_like(row)).drawn(np.zeros(1))
    assert drawn.sum() == pytest.approx(true * len(row), rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_choice_is_expected_to_agree_with_the_truth_as_well_as_any(seed):
    row, col, odds = scene(seed)
    probability = exact(row, col, odds)
    linking = linking_of(row, col, odds, probability, 8)
    expected = (linking.follower >= 0).sum()

    def f1(some):
        return 2 * probability[some].sum() / max(some.sum() + expected, 1)

    best = chosen(linking, 0.0, "bid_and_augment")
    taken = best.follower[row] == col
    assert f1(taken) >= 0.97 * max(f1(some) for some in matchings(row, col))
    assert best.trust[row[taken]].tolist() == probability[taken].tolist()
    assert (best.gain[row[taken]] > 0).all()
    assert best.gap == 0


def test_links_that_are_mostly_wrong_are_chosen_where_all_are():
    row, col = np.array([0, 1, 2]), np.array([3, 4, 5])
    likely = linking_of(row, col, np.ones(3), np.full(3, 0.3), 6)
    assert (chosen(likely, 0.0, "bid_and_augment").follower[:3] == col).all()
    mixed = linking_of(row, col, np.ones(3), np.array([0.95, 0.9, 0.1]), 6)
    assert chosen(mixed, 0.0, "bid_and_augment").follower[:3].tolist() == [3, 4, -1]


def test_links_of_which_hardly_any_is_right_make_no_tracks():
    """The best F1 alone would take a link of p = 0.14 where all others are as bad."""
    row, col = np.arange(4), np.arange(4, 8)
    poor = linking_of(row, col, np.ones(4), np.array([0.3, 0.3, 0.3, 0.14]), 8)
    assert chosen(poor, 0.0, "bid_and_augment").follower[:4].tolist() == [4, 5, 6, -1]


@pytest.mark.parametrize(
    ("others", "clutter", "least"),
    [
        (0.6, 0.0, 0.2),  # (F1 / 2 + 2 * 0.35 F1) / 3, where F1 = (1.8 + p) / 4
        (0.6, 0.03, 0.227),  # and 2 * 1.2 * 0.03 / 3
        (0.6, 0.3, 0.287),  # (F1 / 2 + 2 * 0.3) / 3
        (0.95, 0.0, 0.317),  # as the first, where F1 = (2.85 + p) / 4
    ],
)
def test_what_is_worth_a_link_depends_on_what_else_can_be_followed_and_on_clutter(others, clutter, least):
    row, col = np.arange(4), np.arange(4, 8)
    for last, taken in ((least + 0.01, 7), (least - 0.01, -1)):
        linking = linking_of(row, col, np.ones(4), np.array([others] * 3 + [last]), 8)
        assert chosen(linking, clutter, "bid_and_augment").follower[3] == taken


def test_the_clutter_that_was_learned_is_asked(monkeypatch):
    asked = []

    def noted(linking, clutter, solver):
        asked.append(clutter)
        return chosen(linking, clutter, solver)

    monkeypatch.setattr("outbid.calibrate.chosen", noted)
    learned, _ = calibrate(Scene(0.2, 0.0, clutter=0.2, particles=300, frames=10).film(1).detections)
    assert asked == [learned.model.clutter]
    assert asked[0] > 0.02


def believed(row, col, odds, count):
    """Probabilities of pairs, as the final choice takes them."""
    row, col = np.array([row, col], dtype=np.int32)
    linking = replace(Linking.none(count), row=row, col=col, odds=odds, probability=np.full(len(row), 0.5))
    return sobered(linking, linking).probability


@pytest.mark.parametrize("lead", [0.3, 1.0, 2.0])
def test_a_ring_of_four_is_as_probable_as_it_is(lead):
    """Each of four may go on to either of two, all the one way or all the other; hardly any track ends."""
    row, col = np.repeat(np.arange(4), 2), 4 + np.array([0, 1, 1, 2, 2, 3, 3, 0])
    odds = 9.0 + np.tile([lead / 4, 0.0], 4)
    true = exact(row, col, odds)
    assert true[0] == pytest.approx(1 / (1 + np.exp(-lead)), abs=0.01)
    settled = np.empty(8)
    indptr = np.searchsorted(row, np.arange(9))
    fractional_probabilities(indptr, col, 8, np.exp(odds).astype(np.float32), 200, 0.0, settled)
    assert settled == pytest.approx(true, abs=0.015)
    assert believed(row, col, odds, 8) == pytest.approx(true, abs=0.06)


def test_probabilities_are_nearer_to_the_truth_than_those_of_belief_propagation():
    """In the mean of many small crowds; and a pair without a rival is about as probable as it is."""
    lone, odds = np.array([0, 1, 2]), np.array([-2.0, 0.0, 3.0])
    assert believed(lone, lone + 3, odds, 6) == pytest.approx(1 / (1 + np.exp(-odds)), abs=0.06)
    ours, plain = [], []
    for seed in range(60):
        row, col, odds = scene(seed)
        odds += 5.0  # ends are rare
        true, loose = exact(row, col, odds), np.empty(len(row))
        pair_probabilities(np.searchsorted(row, np.arange(9)), col, 8, odds, 50, 1e-6, loose)
        ours.append(np.abs(believed(row, col, odds, 8) - true).mean())
        plain.append(np.abs(loose - true).mean())
    assert np.mean(ours) < 0.55 * np.mean(plain)


def test_probabilities_are_between_those_of_both_passes():
    row, col = np.array([0, 1]), np.array([2, 3])
    soft = linking_of(row, col, np.array([0.0, 1.0]), np.zeros(2), 4)
    settled = linking_of(row, col, np.array([3.0, 1.0]), np.zeros(2), 4)
    low, high, both = (
        sobered(*which).probability for which in ((soft,) * 2, (settled,) * 2, (soft, settled))
    )
    log_odds = [np.log(p / (1 - p)) for p in (low, high, both)]
    assert log_odds[2] == pytest.approx((log_odds[0] + log_odds[1]) / 2)
    assert low[0] < both[0] < high[0]
    assert both[1] == pytest.approx(low[1], abs=0.01)
    assert sobered(soft, settled).trust[:2].tolist() == both.tolist()


@pytest.mark.parametrize("true", [(0.7, -0.3), (1.2, 0.2)])
def test_how_right_probabilities_are_is_learned_from_a_movie_whose_truth_is_known(true):
    """Pairs without rivals, right as often as a slope and an intercept make of their log odds."""
    rng, many = np.random.default_rng(3), 20_000
    row, odds = np.arange(many, dtype=np.int32), rng.normal(0.5, 2.0, many)
    linking = replace(
        Linking.none(2 * many), row=row, col=row + many, odds=odds, probability=np.full(many, 0.5)
    )
    found = sobered(linking, linking).probability
    log_odds = np.log(found / (1 - found))
    chance = 1 / (1 + np.exp(-true[0] * log_odds - true[1]))
    follower = np.full(2 * many, -1)
    right = rng.random(many) < chance
    follower[row[right]] = many + row[right]
    fitted = sobriety_of(linking, linking, follower)
    assert fitted == pytest.approx(true, abs=0.06)
    recalibrated = sobered(linking, linking, fitted).probability
    assert np.abs(recalibrated - chance).max() < 0.03
    assert sobered(linking, linking, (1.0, 1e-12)).probability == pytest.approx(found)


def test_without_probable_pairs_nothing_is_recalibrated():
    assert sobriety_of(Linking.none(3), Linking.none(3), np.full(3, -1)) == (1, 0)


def test_pairs_are_looked_up_in_another_list():
    row, col = np.array([0, 0, 2, 2, 5]), np.array([7, 8, 9, 6, 6])
    known_row, known_col = np.array([0, 0, 1, 2, 2, 4]), np.array([9, 8, 6, 9, 6, 6])
    found = np.empty(5)
    looked_up(row, col, known_row, known_col, np.arange(1.0, 7.0), found)
    assert found.tolist() == [0, 2, 4, 5, 0]
    looked_up(row, col, known_row[:0], known_col[:0], np.empty(0), found)
    assert found.tolist() == [0] * 5
