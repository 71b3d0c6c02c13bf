"""Families, how daughters part, how old cells become, and links exchanged for divisions."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from old_families import families

from outbid.divisions import generations_cpu as kernels
from outbid.divisions.families import FREEDOM, Families, Nearby, Usual, log_t
from outbid.divisions.generations import Lives, _likelihoods
from outbid.divisions.parting import log_odds, parting_of, probabilities
from outbid.divisions.relink import choice_of, family_chances, reachable, relinked
from outbid.refine.linking import Linking
from outbid.refine.movie import Movie


def some(rng: np.random.Generator, daughters: int, others: int) -> Families:
    """Daughters that part by 0.6 along an axis, twice as far along z; and other particles anywhere."""
    count = daughters + others
    along = rng.normal(size=(count, 3))
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    apart = 0.6 * np.exp(rng.normal(0, 0.15, (count, 1))) * along * [2.0, 1.0, 1.0]
    middle = rng.normal(0, 0.08, (count, 3))
    apart[daughters:], middle[daughters:] = rng.uniform(-1.5, 1.5, (2, others, 3))
    growth = np.where(np.arange(count) < daughters, rng.normal(0.2, 0.05, count), rng.normal(0, 0.1, count))
    along2 = (middle * apart).sum(axis=1) ** 2 / (apart**2).sum(axis=1)
    second = np.concatenate([np.arange(daughters), rng.integers(0, daughters, others)])
    return replace(
        families([0] * count, [0] * count, second.tolist()),
        along2=along2, aside2=(middle**2).sum(axis=1) - along2, apart2=apart**2, growth=growth,
        usual_growth=-(growth**2) / 0.02 + np.log(1 / np.sqrt(2 * np.pi) / 0.1),
    )  # fmt: skip


def test_how_daughters_part_is_learned():
    seen = some(np.random.default_rng(0), 300, 3000)
    found = parting_of(seen, 300, np.zeros(len(seen)))
    assert found is not None
    assert found.share > 0.9
    np.testing.assert_allclose(np.sqrt(found.axes / found.axes.min()), [2, 1, 1], rtol=0.15)
    assert np.exp(found.apart) == pytest.approx(0.6 * 2 ** (1 / 3), rel=0.1)
    assert found.growth == pytest.approx(0.2, abs=0.02)
    assert np.sqrt(found.aside) == pytest.approx(0.08, rel=0.35)
    chance, _ = probabilities(seen, log_odds(seen, found))
    assert chance[:300].mean() > 0.9
    assert chance[300:].mean() < 0.02


def test_unrelated_particles_alone_are_no_daughters():
    rng = np.random.default_rng(1)
    seen = some(rng, 300, 3000).only(np.arange(300, 3300))
    # Their density: a start has ten of them in a cube of 3.
    seen = replace(seen, chance=np.full(len(seen), 2 * np.log(10 / 27)), growth=np.full(len(seen), np.nan))
    assert parting_of(seen, 300, np.zeros(len(seen))) is None


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_families_are_all_that_are_near_each_measured_by_itself(axes, late):
    rng = np.random.default_rng(axes)
    count, frames = 60, 4
    frame, position = np.repeat(np.arange(frames), count), rng.uniform(0, 3, (frames * count, axes))
    movie = Movie(frame, position, np.arange(len(frame)), np.arange(frames + 1) * count, "zyx"[-axes:])
    before, follower = np.full((2, len(frame)), -1)
    for first in range(0, len(frame) - count, count):
        linked = rng.permutation(count)[:40]
        follower[first + linked] = first + count + rng.permutation(count)[:40]
    before[follower[follower >= 0]] = np.nonzero(follower >= 0)[0]
    for first in range(0, len(frame) - 2 * count, count):  # some are missed in the next frame
        free = [
            np.nonzero(side[k : k + count] < 0)[0] + k
            for side, k in ((follower, first), (before, first + 2 * count))
        ]
        follower[free[0][:5]], before[free[1][:5]] = free[1][:5], free[0][:5]
    shift, log_density = rng.normal(0, 0.1, position.shape), rng.normal(0, 0.1, len(frame))
    starts = np.nonzero((before < 0) & (frame > 0))[0]
    among, usual = np.union1d(starts, [70, 75, 130]), Usual(0.04, 0.2, 0.1)
    near = Nearby.of(movie, among, log_density, shift, usual, late=late)
    going = rng.normal(-1, 3, len(frame))
    seen = near.families(before, follower, going)

    reach = 1.25 * np.exp(-np.median(log_density[among]) / axes)
    wanted = []
    for mother in range(len(frame)):
        for gap in (1, 2) if late else (1,):
            ahead, one = position[mother] + gap * shift[mother], follower[mother]
            found = [j for j in among if frame[j] == frame[mother] + gap]
            found = [j for j in found if np.linalg.norm(position[j] - ahead) <= reach]
            if one >= 0:
                other = follower[one] if gap == 2 and frame[one] == frame[mother] + 1 else one
                found = [j for j in found if other >= 0 and frame[other] == frame[j] and other != j]
                wanted += [(mother, one, j) for j in found]
            elif gap == 1:
                wanted += [(mother, *two) for two in combinations([j for j in found if before[j] < 0], 2)]
    rows = zip(seen.mother.tolist(), seen.first.tolist(), seen.second.tolist(), strict=True)
    assert sorted(rows) == sorted(wanted)
    assert (seen.ended == (follower[seen.mother] < 0)).all()
    assert seen.ended.any()
    gap = frame[seen.second] - frame[seen.mother]
    assert (seen.late == (gap == 2)).all()
    assert set(frame[seen.first[seen.late]] - frame[seen.mother[seen.late]]) == ({1, 2} if late else set())

    beside = np.where(frame[seen.first] < frame[seen.second], follower[seen.first], seen.first)
    here, there = position[beside], position[seen.second]
    ahead = position[seen.mother] + gap[:, None] * shift[seen.mother]
    apart, middle = there - here, (here + there) / 2 - ahead
    far = np.linalg.norm(apart, axis=1)
    along = (middle * apart).sum(axis=1) / far
    np.testing.assert_allclose(seen.along2, along**2)
    np.testing.assert_allclose(seen.aside2, (middle**2).sum(axis=1) - along**2, atol=1e-12)
    np.testing.assert_allclose(seen.apart2, apart**2)
    np.testing.assert_allclose(np.exp(seen.crowd) * seen.spacing, np.exp(-log_density[seen.mother] / axes))
    after = np.column_stack([follower[beside], follower[seen.second]])
    wider = ((position[after[:, 1]] - position[after[:, 0]] - apart) * apart).sum(axis=1) / far
    wider[(after < 0).any(axis=1) | (frame[after] != frame[seen.second][:, None] + 1).any(axis=1)] = np.nan
    np.testing.assert_allclose(seen.growth, wider)
    of_growth = log_t(np.nan_to_num(wider) ** 2, 1, 2 * 0.04, FREEDOM)
    np.testing.assert_allclose(seen.usual_growth, of_growth)
    late = np.array([0, 6, 0.6, 0.06])  # missed at first
    log_starts = log_density + np.log1p(late / ((len(among) - late.sum()) / 3))[frame]
    lost = log_starts[seen.first] + np.log(0.2 * len(among) / len(frame))
    frames = (frame[seen.first] - frame[seen.mother])[:, None]
    step2 = ((position[seen.first] - position[seen.mother] - frames * shift[seen.mother]) ** 2 / frames).sum(
        axis=1
    )
    usual_step = log_t(step2, axes, 0.04, FREEDOM) - axes / 2 * np.log(frames[:, 0])
    usual_step = np.maximum(usual_step, going[seen.mother])
    chance = np.where(seen.ended, lost, usual_step) + log_starts[seen.second]
    np.testing.assert_allclose(seen.chance, chance)


def test_daughters_two_frames_after_the_mother_are_as_rare_as_misses_and_farther_apart():
    seen = some(np.random.default_rng(0), 300, 3000)
    found = parting_of(seen, 300, np.zeros(len(seen)))
    late = replace(seen, late=np.ones(len(seen)) > 0, missed=0.1)
    gained = log_odds(late, found) - log_odds(seen, found)
    wider = replace(found, apart=np.log(np.exp(found.apart) + found.growth), along=found.along + 1e-4)
    wider = replace(wider, aside=found.aside + 1e-4)
    np.testing.assert_allclose(gained, np.log(0.1) + log_odds(seen, wider) - log_odds(seen, found), atol=1e-9)


@pytest.mark.parametrize(("missed", "looked"), [(0.0, False), (0.2, True)])
def test_families_over_a_frame_are_looked_for_where_detections_are_missed(missed, looked):
    # 0 goes on to 1 and 2; her other daughter 3 was missed beside 1, or is that of 1.
    usual = Usual(1e-4, 0.1, missed)
    place = np.array([[0.0], [0.1], [0.2], [-0.2]])
    movie = Movie(np.array([0, 1, 2, 2]), place, np.arange(4), np.array([0, 1, 2, 4]), "x")
    near = Nearby.of(movie, np.array([3]), np.zeros(4), np.zeros((4, 1)), usual, late=True)
    seen = near.families(np.array([-1, 0, 1, -1]), np.array([1, 2, -1, -1]), np.full(4, -np.inf))
    found = list(zip(seen.mother.tolist(), seen.first.tolist(), seen.second.tolist(), strict=True))
    assert found == ([(0, 1, 3), (1, 2, 3)] if looked else [(1, 2, 3)])


def lineage(ages: list[int], frames: int) -> tuple[Movie, np.ndarray, Families]:
    """A cell for each age, that divides when it is so old, and its daughter then; frames 1 to the last."""
    frame, chain = [], []
    for cell, age in enumerate(ages):
        frame += [*range(frames), *range(age, frames)]
        chain += [2 * cell] * frames + [2 * cell + 1] * (frames - age)
    order = np.lexsort((chain, frame))
    number, chain = np.array(frame, dtype=np.int64)[order], np.array(chain)[order]
    before, latest = np.full(len(order), -1, dtype=np.int64), {}
    for row, of in enumerate(chain.tolist()):
        before[row] = latest.get(of, -1)
        latest[of] = row
    start = np.searchsorted(number, np.arange(frames + 1))
    movie = Movie(number, np.zeros((len(order), 3)), np.arange(len(order)), start, "zyx")
    rows = {(of, t): row for row, (of, t) in enumerate(zip(chain.tolist(), number.tolist(), strict=True))}
    mothers = [(rows[2 * c, t - 1], rows[2 * c, t]) for c, age in enumerate(ages) for t in (age, age + 3)]
    second = [rows[2 * c + 1, age] for c, age in enumerate(ages) for _ in range(2)]
    return movie, before, families(*map(list, zip(*mothers, strict=True)), second)


def test_a_cell_that_has_just_divided_does_not():
    rng = np.random.default_rng(0)
    movie, before, seen = lineage(rng.integers(8, 12, 60).tolist(), 30)
    true = np.tile([True, False], 60)
    gain = Lives.of(movie, before, seen).gains(np.where(true, 0.99, 0.0))
    # Cells are followed from frame 0 on, from an age that is not known, so the first division is neutral.
    assert gain[true].mean() > gain[~true].mean() + 1
    assert (gain[~true] < 0).all()


def test_ages_weigh_a_division_by_the_likelihoods_of_the_lives_before_and_after():
    rng = np.random.default_rng(3)
    hazard, mean, born, final = rng.uniform(0.01, 0.3, 20), 0.1, 0.7, 14
    frame, divides = np.array([2, 5, 6, 11]), np.array([0.3, 0.0, 0.8, 0.5])

    def life(age, known, divided):
        if not known:
            return mean**divided * np.exp(-mean * (age - divided))
        return hazard[age] ** divided * np.exp(-hazard[1 : age + 1 - divided].sum())

    def ends_after(i):
        """How probable each end of the life is, when that is, and whether it is a division."""
        rest = 1.0
        for k in range(i + 1, 4):
            yield rest * divides[k], frame[k], 1
            rest *= 1 - divides[k]
        yield rest, final, 0

    def mean_ratio(i, begun, known):
        here = frame[i]
        return sum(
            share * life(here - begun, known, 1) * life(end - here, True, divided)
            / life(end - begun, known, divided) / mean
            for share, end, divided in ends_after(i)
        )  # fmt: skip

    of_point, of_birth = np.zeros(4), np.zeros(1)
    one = np.zeros(1, dtype=np.int64)
    kernels.gains(
        one, one, one + final, np.array([born]), np.array([0, 4]), frame, divides,
        *_likelihoods(hazard, mean), of_point, of_birth,
    )  # fmt: skip
    for i in range(4):
        wanted, rest = 0.0, 1.0
        for j in range(i - 1, -1, -1):
            wanted += rest * divides[j] * mean_ratio(i, frame[j], True)
            rest *= 1 - divides[j]
        wanted += rest * (born * mean_ratio(i, -1, True) + (1 - born) * mean_ratio(i, -1, False))
        assert mean + of_point[i] == pytest.approx(np.log(wanted), rel=1e-9)
    wanted = sum(
        share * life(end + 1, True, divided) / life(end + 1, False, divided)
        for share, end, divided in ends_after(-1)
    )
    assert of_birth[0] == pytest.approx(np.log(wanted), rel=1e-9)


def linking(row: list[int], col: list[int], odds: list[float], follower: list[int]) -> Linking:
    after = np.array(follower, dtype=np.int64)
    before = np.full(len(after), -1, dtype=np.int64)
    before[after[after >= 0]] = np.nonzero(after >= 0)[0]
    gain = np.zeros(len(after))
    for i, j, value in zip(row, col, odds, strict=True):
        if after[i] == j:
            gain[i] = value
    pairs = [np.array(side, dtype=np.int32) for side in (row, col)]
    chance = np.full(len(row), 0.5)
    return replace(
        Linking.none(len(after)), follower=after, before=before, gain=gain, trust=(after >= 0) * 0.9,
        row=pairs[0], col=pairs[1], odds=np.array(odds), probability=chance,
    )  # fmt: skip


@pytest.mark.parametrize(("odds", "given_back"), [(6.0, True), (0.5, False)])
def test_a_daughter_is_given_back_if_that_is_likelier(odds, given_back):
    # Mother 0 goes on to 2; her other daughter 3 was linked to 1, whose own follower 4 starts.
    known = linking([0, 1, 1], [2, 3, 4], [5.0, 4.0, 3.0], [2, 3, -1, -1, -1])
    among = reachable(known, np.array([4]))
    assert among.tolist() == [3, 4]
    seen = families([0, 0], [2, 2], [3, 4])
    choice = choice_of(known, seen, np.array([odds, -2.0]), among)
    new, chosen = relinked(known, seen, choice)
    assert new.follower[:2].tolist() == ([2, 4] if given_back else [2, 3])
    assert seen.second[chosen].tolist() == ([3] if given_back else [])
    assert new.gap == 0
    chance = family_chances(choice, seen)
    assert (chance[0] > 0.5) == given_back
    assert chance[1] < 0.5


@pytest.mark.parametrize(("rarer", "taken"), [(0.0, True), (1.5, True), (2.5, False)])
def test_links_gain_where_starts_by_chance_are_rarer(rarer, taken):
    # Mother 0 goes on to 2; 3 is her other daughter or follows 1, who ends otherwise.
    known = linking([0, 1], [2, 3], [5.0, 4.0], [2, 3, -1, -1])
    seen = families([0], [2], [3])
    choice = choice_of(known, seen, np.array([6.0]), np.array([3]), rarer)
    new, chosen = relinked(known, seen, choice)
    assert new.follower.tolist() == [2, -1 if taken else 3, -1, -1]
    assert len(chosen) == taken


def test_two_that_start_are_both_daughters_or_none():
    # Mother 0 ends; 1 goes on to 4, of which she is sure; 2 and 3 start.
    known = linking([1], [4], [9.0], [-1, 4, -1, -1, -1])
    seen = replace(families([0, 1], [2, 4], [3, 3]), ended=np.array([True, False]))
    for odds, wanted in (([4.0, 1.0], [0]), ([1.0, 4.0], [1]), ([-1.0, -1.0], [])):
        choice = choice_of(known, seen, np.array(odds), np.array([2, 3]))
        new, chosen = relinked(known, seen, choice)
        assert chosen.tolist() == wanted
        assert new.follower.tolist() == [-1, 4, -1, -1, -1]


@pytest.mark.parametrize("seed", range(5))
def test_links_and_families_are_best_together(seed):
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, 4, (3, 4))
    row, col = np.divmod(np.arange(12), 4)
    follower = np.full(7, -1)
    follower[:3] = [3, 4, 5]
    known = linking(row.tolist(), (col + 3).tolist(), np.abs(odds).ravel().tolist(), follower.tolist())
    seen = families([0, 1, 2], [3, 4, 5], [6, 6, 6])
    gains = rng.normal(3, 3, 3)
    new, chosen = relinked(known, seen, choice_of(known, seen, gains, np.arange(3, 7)))
    value = {(i, 3 + j): abs(odds[i, j]) for i in range(3) for j in range(4)}
    value |= {(7 + i, 6): gains[i] for i in range(3)}
    found = [(i, int(new.follower[i])) for i in range(3) if new.follower[i] >= 0]
    found += [(7 + int(seen.mother[e]), 6) for e in chosen]

    def allowed(pairs: tuple[tuple[int, int], ...]) -> bool:
        rows, cols = zip(*pairs, strict=True)
        firsts = all((i - 7, i - 7 + 3) in pairs for i in rows if i >= 7)
        return len(set(rows)) == len(rows) and len(set(cols)) == len(cols) and firsts

    best = max(
        sum(value[pair] for pair in pairs)
        for size in range(1, 5)
        for pairs in combinations(value, size)
        if allowed(pairs)
    )
    total = sum(value[pair] for pair in found)
    assert allowed(tuple(found))
    # A family whose mother was linked otherwise is given up for good, so the best may be missed.
    assert total <= best + 1e-6
    assert total >= 0.8 * best


def test_of_a_heap_of_starts_the_nearest_are_looked_at():
    """All pairs of two among thousands would fill the memory."""
    place = np.random.default_rng(0).normal(0, 1, (101, 3)) * (np.arange(101) > 0)[:, None]
    frame, start = np.minimum(np.arange(101), 1), np.array([0, 1, 101])
    movie, none = Movie(frame, place, np.arange(101), start, "zyx"), np.full(101, -1)
    near = Nearby.of(
        movie, np.arange(1, 101), np.full(101, -6.0), np.zeros_like(place), Usual(0.04, 0.2, 0.0)
    )
    nearest = 1 + np.argsort(np.square(place[1:]).sum(axis=1))
    assert set(near.start.tolist()) == set(nearest[:24].tolist())
    assert len(near.families(none, none, np.full(101, -np.inf))) == 24 * 23 / 2
