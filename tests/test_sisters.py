"""Sisters divide at much the same age: that is learned, and tells of divisions and of who is whose sister."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_families import families

from outbid.tracker.divisions import sisters_cpu as kernels
from outbid.tracker.divisions.generations import Lives
from outbid.tracker.divisions.sisters import Sisters, _ages, sister_gains
from outbid.tracker.refine.movie import Movie

LAST = 60


def lives_of(ages: list[tuple[int, int]], *, ended: bool = False) -> Lives:
    """Pairs of sisters, born in frame 0, that divide at these ages: three families each, in order.

    Their own daughters are followed for two frames only. Their mother is linked to one of them, or ended.
    """
    frame, before, rows = [], [], []

    def followed(first: int, last: int) -> int:
        begin = len(frame)
        frame.extend(range(first, last + 1))
        before.extend([-1, *range(begin, begin + last - first)])
        return begin

    for one, other in ages:
        mother = followed(0, 0 if ended else one + 2)
        left, right = followed(1, one + 2) if ended else mother + 1, followed(1, other + 2)
        rows.append((mother, left, right))
        rows.append((left + one - 1, left + one, followed(one + 1, one + 2)))
        rows.append((right + other - 1, right + other, followed(other + 1, other + 2)))
    order = np.argsort(frame, kind="stable")
    place = np.argsort(order)
    sorted_before = np.array([-1 if row < 0 else place[row] for row in before])[order]
    movie = Movie(
        np.array(frame)[order], np.zeros((len(frame), 3)), np.arange(len(frame)),
        np.searchsorted(np.array(frame)[order], np.arange(LAST + 2)), "zyx",
    )  # fmt: skip
    named = [[int(place[row]) for row in side] for side in zip(*rows, strict=True)]
    ends = np.arange(len(rows)) % 3 == 0 if ended else np.zeros(len(rows), dtype=np.bool_)
    return Lives.of(movie, sorted_before, replace(families(*named), ended=ends))


def pairs_of_ages(rng: np.random.Generator, count: int, spread: float, apart: float) -> list[tuple[int, int]]:
    """Ages around 20, alike but for a share that lives each by itself."""
    one, other = np.exp(rng.normal(np.log(20), 0.3, (2, count)))
    alike = rng.random(count) >= apart
    other[alike] = one[alike] * np.exp(rng.normal(0, spread, int(alike.sum())))
    return np.clip(np.rint(np.stack([one, other], axis=1)), 2, LAST - 5).astype(int).tolist()


@given(st.integers(10, 40), st.integers(3, 40), st.floats(0.05, 0.3), st.floats(0, 1), st.floats(0.01, 0.1))
def test_what_sisters_may_do_is_as_likely_in_all_as_what_two_cells_may(here, until, spread, apart, hazard):
    """Ratios, each as likely as for one cell by itself, are 1 in the mean."""
    dies, lasts = _ages(np.full(until + 1, hazard))
    age = np.append(np.arange(1, until + 1), until)
    weight = np.append(dies[1:], lasts[until])
    model = (dies, lasts, spread**2, apart)
    in_all = apart * weight.sum() + 1 - apart  # by hazards of whole frames a little more than 1
    assert kernels.ratio_of_way(here, True, age, weight, until, model) == pytest.approx(in_all, abs=0.05)


@pytest.mark.parametrize(("spread", "apart"), [(0.08, 0.1), (0.2, 0.5)])
def test_how_much_alike_sisters_are_is_learned(spread, apart):
    lives = lives_of(pairs_of_ages(np.random.default_rng(0), 500, spread, apart))
    found = Sisters.of(lives, np.full(len(lives.families), 0.98))
    assert np.sqrt(found.spread) == pytest.approx(spread, rel=0.15)
    assert found.apart == pytest.approx(apart, abs=0.1)


def test_sisters_tell_when_a_cell_divides_and_whose_sister_it_is():
    rng = np.random.default_rng(1)
    ages = pairs_of_ages(rng, 100, 0.08, 0.0)
    doubtful = [(20, 20), (20, 33), (33, 20)]
    lives = lives_of(ages + doubtful)
    chance = np.full(len(lives.families), 0.98)
    chance[-8], chance[-5] = 0.3, 0.3  # whether the first of two divides then is not known
    gain = sister_gains(lives, chance)
    assert gain[-8] > 1
    assert gain[-5] < -1
    born = gain[::3]
    assert born[:-3].mean() > 0.5
    assert born[-3] > 0.3 > -0.3 > born[-1]


def test_sisters_tell_the_same_whether_links_follow_one_from_the_mother_on_or_none():
    ages = pairs_of_ages(np.random.default_rng(3), 30, 0.1, 0.2)
    chance = np.full(3 * len(ages), 0.9)
    linked, ended = (sister_gains(lives_of(ages, ended=way), chance) for way in (False, True))
    assert np.abs(linked - ended).max() < 0.3
    assert np.corrcoef(linked, ended)[0, 1] > 0.99


def test_cells_that_live_each_by_itself_tell_nothing_of_their_sisters():
    lives = lives_of(pairs_of_ages(np.random.default_rng(2), 300, 0.0, 1.0))
    assert np.abs(sister_gains(lives, np.full(len(lives.families), 0.98))).mean() < 0.3


def test_a_life_is_listed_by_when_it_may_divide():
    frame, divides = np.array([3, 5, 9]), np.array([0.5, 0.2, 0.4])
    age, weight = np.empty(5, np.int64), np.empty(5)
    listed = []
    for begun, without in ((1, -1), (4, -1), (1, 1)):
        count = kernels.list_ways(
            0, begun, np.array([12]), np.array([0, 3]), frame, divides, without, age, weight
        )
        listed.append((count, age[: count + 1].tolist(), weight[: count + 1].round(3).tolist()))
    assert listed == [
        (3, [2, 4, 8, 11], [0.5, 0.1, 0.16, 0.24]),
        (2, [1, 5, 8], [0.2, 0.32, 0.48]),
        (2, [2, 8, 11], [0.5, 0.2, 0.3]),
    ]
