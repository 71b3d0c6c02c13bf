"""Relatives have similar lifetimes: that is learned, and shows divisions and who is whose sister."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from old_families import families
from scipy.stats import norm

from outbid.divisions import kin_cpu as kernels
from outbid.divisions.generations import Lives
from outbid.divisions.kin import _ages, kin_gains, kin_of
from outbid.refine.movie import Movie

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
    return lives_in(frame, before, rows, np.arange(len(rows)) % 3 == 0 if ended else np.zeros(len(rows)) > 0)


def lives_in(
    frame: list[int], before: list[int], rows: list[tuple[int, int, int]], ended: np.ndarray
) -> Lives:
    """The lives of what follows what, and families of such rows."""
    order = np.argsort(frame, kind="stable")
    place = np.argsort(order)
    sorted_before = np.array([-1 if row < 0 else place[row] for row in before])[order]
    movie = Movie(
        np.array(frame)[order], np.zeros((len(frame), 3)), np.arange(len(frame)),
        np.searchsorted(np.array(frame)[order], np.arange(max(frame) + 2)), "zyx",
    )  # fmt: skip
    named = [[int(place[row]) for row in side] for side in zip(*rows, strict=True)]
    return Lives.of(movie, sorted_before, replace(families(*named), ended=ended))


def lines_of(ages: NDArray, grown: float, spread: float, rng: np.random.Generator) -> Lives:
    """Cells that divide in frame 1; a daughter that does at such an age, and a daughter of hers."""
    frame, before, rows = [], [], []
    for age in ages:
        until = 1 + round(age)
        last = until + max(round(age * np.exp(grown + rng.normal(0, spread))), 2)
        line = len(frame)
        frame.extend(range(last + 3))
        before.extend([-1, *range(line, line + last + 2)])
        for divides in (1, until, last):
            rows.append((line + divides, line + divides + 1, len(frame)))
            frame.append(divides + 1)
            before.append(-1)
    return lives_in(frame, before, rows, np.zeros(len(rows), dtype=np.bool_))


def pairs_of_ages(rng: np.random.Generator, count: int, spread: float, apart: float) -> list[tuple[int, int]]:
    """Ages around 20, alike but for a share that lives each by itself."""
    one, other = np.exp(rng.normal(np.log(20), 0.3, (2, count)))
    alike = rng.random(count) >= apart
    other[alike] = one[alike] * np.exp(rng.normal(0, spread, int(alike.sum())))
    return np.clip(np.rint(np.stack([one, other], axis=1)), 2, LAST - 5).astype(int).tolist()


def room(count: int) -> tuple[NDArray, ...]:
    """For a list of ways."""
    return tuple(np.zeros(count, kind) for kind in (np.int64, np.float64, np.int64, np.float64))


@given(
    st.integers(10, 40), st.integers(3, 40), st.floats(0.05, 0.3), st.floats(0, 1), st.floats(0.01, 0.1),
    st.floats(-0.3, 0.3), st.booleans(),
)  # fmt: skip
def test_what_relatives_may_do_is_as_likely_in_all_as_what_two_cells_may(
    here, until, spread, apart, hazard, grown, mother
):
    """Ratios, each as likely as for one cell by itself, are 1 in the mean."""
    dies, lasts = _ages(np.full(until + 1, hazard))
    one, all_ways = room(2), room(until + 1)
    one[0][0], one[1][0] = here, 1.0
    all_ways[0][:], all_ways[1][:] = np.append(np.arange(1, until + 1), until), np.append(dies[1:], lasts[-1])
    ratio, back = np.empty(2), np.empty(until + 1)
    relatives = (dies, lasts, spread**2, apart, grown, False)
    found = kernels.compare(1, one, ratio, all_ways, until, back, relatives, mother)
    in_all = apart * all_ways[1].sum() + 1 - apart  # by hazards of whole frames a little more than 1
    assert found == pytest.approx(in_all, abs=0.06)
    assert found == pytest.approx(ratio[0])
    assert found == pytest.approx(all_ways[1] @ back)


@pytest.mark.parametrize(("spread", "apart"), [(0.08, 0.1), (0.2, 0.5)])
def test_how_much_alike_sisters_are_is_learned(spread, apart):
    lives = lives_of(pairs_of_ages(np.random.default_rng(0), 500, spread, apart))
    found, _ = kin_of(lives, np.full(len(lives.families), 0.98))
    assert np.sqrt(found.spread) == pytest.approx(spread, rel=0.15)
    assert found.apart == pytest.approx(apart, abs=0.1)


@pytest.mark.parametrize("grown", [0.25, -0.1])
def test_how_much_daughters_are_like_their_mother_is_learned(grown):
    """A line of cells: each daughter divides so much later than her mother did."""
    rng = np.random.default_rng(4)
    lives = lines_of(np.exp(np.log(15) + rng.normal(0, 0.3, 300)), grown, 0.1, rng)
    chance = np.full(len(lives.families), 0.98)
    _, found = kin_of(lives, chance)
    assert found.grown == pytest.approx(grown, abs=0.03)
    assert np.sqrt(found.spread) == pytest.approx(0.1, rel=0.25)
    chance[2::3] = 0.3  # when the daughter divides is in doubt
    assert np.median(kin_gains(lives, chance)[2::3]) > 0.5


def test_sisters_show_when_a_cell_divides_and_whose_sister_it_is():
    rng = np.random.default_rng(1)
    ages = pairs_of_ages(rng, 100, 0.08, 0.0)
    doubtful = [(20, 20), (20, 33), (33, 20)]
    lives = lives_of(ages + doubtful)
    chance = np.full(len(lives.families), 0.98)
    chance[-8], chance[-5] = 0.3, 0.3  # whether the first of two divides then is not known
    gain = kin_gains(lives, chance)
    assert gain[-8] > 1
    assert gain[-5] < -1
    born = gain[::3]
    assert born[:-3].mean() > 0.5
    assert born[-3] > 0.3 > -0.3 > born[-1]


def test_sisters_show_the_same_whether_links_follow_one_from_the_mother_on_or_none():
    ages = pairs_of_ages(np.random.default_rng(3), 30, 0.1, 0.2)
    chance = np.full(3 * len(ages), 0.9)
    linked, ended = (kin_gains(lives_of(ages, ended=way), chance) for way in (False, True))
    assert np.abs(linked - ended).max() < 0.3
    assert np.corrcoef(linked, ended)[0, 1] > 0.99


@pytest.mark.parametrize("side", [0, 1])
def test_daughters_show_when_their_mother_was_born(side):
    """A daughter is followed, and a daughter of hers; it may have been born in frame 6 and divides in 25."""

    def gain(last: int) -> float:
        lines = [range(6), range(6, last + 3), range(6, 9), range(26, 28), range(last + 1, last + 3)]
        start = np.cumsum([0, *map(len, lines)]).tolist()
        begun = [start[1], start[2]] if side == 0 else [start[2], start[1]]
        rows = [(5, *begun), (start[1] + 19, start[1] + 20, start[3])]
        rows.append((start[1] + last - 6, start[1] + last - 5, start[4]))
        frame = [int(each) for line in lines for each in line]
        before = [-1 if row in start else row - 1 for row in range(len(frame))]
        lives = lives_in(frame, before, rows, np.array([True, False, False]))
        return float(kin_gains(lives, np.array([0.5, 0.98, 0.98]))[0])

    assert gain(45) - gain(30) > 0.2


def test_sisters_show_a_family_whose_daughter_is_linked_to_another():
    def gain(age: int) -> float:
        lines = [range(23), range(age + 3), range(21, 23), range(age + 1, age + 3)]
        start = np.cumsum([0, *map(len, lines)]).tolist()
        rows = [(0, 1, start[1] + 1), (20, 21, start[2]), (start[1] + age, start[1] + age + 1, start[3])]
        frame = [int(each) for line in lines for each in line]
        before = [-1 if row in start else row - 1 for row in range(len(frame))]
        lives = lives_in(frame, before, rows, np.zeros(3, dtype=np.bool_))
        return float(kin_gains(lives, np.array([0.5, 0.98, 0.98]))[0])

    assert gain(20) - gain(33) > 0.3


def test_which_of_two_sisters_is_called_the_first_is_all_one():
    lives = lives_of(pairs_of_ages(np.random.default_rng(5), 30, 0.1, 0.2), ended=True)
    known, chance = lives.families, np.full(len(lives.families), 0.9)
    turned = known.ended & (np.arange(len(known)) % 2 == 0)
    first, second = (
        np.where(turned, *pair) for pair in ((known.second, known.first), (known.first, known.second))
    )
    other = replace(lives, families=replace(known, first=first, second=second))
    np.testing.assert_allclose(kin_gains(lives, chance), kin_gains(other, chance))


def test_cells_that_live_each_by_itself_show_nothing_of_their_sisters():
    lives = lives_of(pairs_of_ages(np.random.default_rng(2), 300, 0.0, 1.0))
    assert np.abs(kin_gains(lives, np.full(len(lives.families), 0.98))).mean() < 0.3


@pytest.mark.parametrize("seed", range(5))
def test_gains_from_relatives_are_those_of_all_ways_that_lives_may_go(seed):
    """A mother, who divides in frame 20, and two daughters with three points each: all their ways."""
    rng = np.random.default_rng(seed)
    frame = (np.sort(rng.permutation(14)[:9].reshape(3, 3), axis=1) + np.array([[2], [23], [23]])).ravel()
    divides, chance, hazard = rng.uniform(0.05, 0.9, 9), rng.uniform(0.2, 0.9), rng.uniform(0.02, 0.2, 50)
    final, first, born = np.array([20, 40, 39]), np.array([1, 21, 21]), 0.4
    sisters, mothers = (
        (*_ages(hazard), *rng.uniform(0.01, 0.3, 2), grown, grown == 0) for grown in (0.0, 0.2)
    )

    def ways(life: int, without: int = -1) -> list[tuple[float, int, bool, int]]:
        """How likely each way of a life is, at which age, whether that divides, and where."""
        rest, found = 1.0, []
        points = [(abs(int(frame[k]) - 20), divides[k], k) for k in range(3 * life, 3 * life + 3)]
        points = [*points[::-1], (20, born, 9)] if life == 0 else points
        for age, sure, k in points:
            if k != without:
                found.append((rest * sure, age, True, k))
                rest *= 1 - sure
        return [*found, (rest, int(final[life]) - 20, False, -1)]

    def ratio(relatives, here: int, ends: bool, there: int, also: bool) -> float:
        dies, lasts, spread, apart, grown, mutual = relatives
        if not ends:
            here, there, ends, also = there, here, also, ends
        inverse2 = (1 / here**2 + 1 / there**2) / 2 if also else 1 / here**2
        usual = norm(np.log(here) + grown, np.sqrt(spread + 0.4**2 * inverse2))
        by_chance = there * dies[there]
        by_chance = np.sqrt(by_chance * here * dies[here]) if mutual else by_chance
        divided, lasted = usual.pdf(np.log(there)) / by_chance, usual.sf(np.log(there + 0.5)) / lasts[there]
        return apart + (1 - apart) * (divided if also else lasted)

    def mean(relatives, one: list, other: list) -> float:
        total = 0.0
        for (p, here, ends, _), (q, there, also, _) in product(one, other):
            unknown = not ends and (relatives is mothers or not also)
            total += p * q * (1.0 if unknown else ratio(relatives, here, ends, there, also))
        return total

    def of_way(life: int, age: int, ends: bool) -> float:
        way = [(1.0, age, ends, -1)]
        if life == 0:
            return mean(mothers, way, ways(1)) * mean(mothers, way, ways(2))
        beside = (way, ways(2)) if life == 1 else (ways(1), way)
        return mean(sisters, *beside) * mean(mothers, ways(0), way)

    def expected(chance: float) -> np.ndarray:
        found = np.zeros(12)
        for life in range(3):
            sure = chance
            for _, age, ends, k in ways(life)[:-1]:
                no = sum(p * of_way(life, *way) for p, *way, _ in ways(life, k))
                asked = min(sure, 1.0)
                found[k] = np.log((1 + asked * (of_way(life, age, ends) - 1)) / (1 + asked * (no - 1)))
                sure *= 1 - (born if k == 9 else divides[k])
        return found

    pairs = ((1, 2, sisters), (0, 1, mothers), (0, 2, mothers))
    of_family = sum(np.log(mean(relatives, ways(one), ways(other))) for one, other, relatives in pairs)

    lives = (final, np.array([0, 3, 6, 9]), frame, divides, first, np.array([born, 0, 0]))
    lists = tuple(room(5) for _ in range(3))

    def gains(rows: list[tuple[int, int, int, int]], each: float) -> tuple[np.ndarray, np.ndarray]:
        found, of_family, shares = np.zeros(12), np.zeros(len(rows)), np.full(len(rows), each)
        kernels.gains(*np.array(rows).T, shares, lives, sisters, mothers, lists, found, of_family)
        return found, of_family

    # Those that exclude each other count together as the one does, and never more than one that is sure.
    for rivals, each in ((1, chance), (3, chance / 3), (2, 0.8)):
        found, found_of_family = gains([(0, 1, 2, 20)] * rivals, each)
        np.testing.assert_allclose(found_of_family, of_family)
        np.testing.assert_allclose(found, expected(rivals * each), rtol=1e-9)
    begins, ends = (0, 1, 2, 20), (1, 0, 2, 38)  # where a life may divide, and since when it may have lasted
    one, other, both = (gains(rows, 0.8)[0] for rows in ([begins], [ends], [begins, ends]))
    assert np.abs(one * other).max() > 0
    np.testing.assert_allclose(both, one + other)


@given(st.integers(5, 40), st.integers(5, 40), st.integers(0, 3))
def test_either_of_two_sisters_may_be_the_first(one, other, seed):
    dies, lasts = _ages(np.random.default_rng(seed).uniform(0.01, 0.3, 50))
    sisters = (dies, lasts, 0.1**2, 0.2, 0.0, True)
    found = [kernels._alike(*pair, sisters) for pair in ((one, True, other, True), (other, True, one, True))]
    assert found[0] == pytest.approx(found[1])


def test_a_life_is_listed_by_when_it_may_divide_and_when_it_may_have_begun():
    frame, divides = np.array([3, 5, 9]), np.array([0.5, 0.2, 0.4])
    lives = (np.array([12]), np.array([0, 3]), frame, divides, np.array([1]), np.array([0.25]))
    ways, listed = room(5), []
    for list_ways, at in ((kernels.list_ends, 1), (kernels.list_ends, 4), (kernels.list_begins, 9)):
        count = list_ways(0, at, lives, ways)
        age, weight, point, _ = (side[: count + 1].tolist() for side in ways)
        listed.append((age, np.round(weight, 3).tolist(), point))
    assert listed == [
        ([2, 4, 8, 11], [0.5, 0.1, 0.16, 0.24], [0, 1, 2, -1]),
        ([1, 5, 8], [0.2, 0.32, 0.48], [1, 2, -1]),
        ([4, 6, 9, 0], [0.2, 0.4, 0.1, 0.3], [1, 0, 3, -1]),
    ]
