"""Divisions as edges of three slots: competition with links, the daughter model, reversed time, merges."""

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from accuracy.movies import KINDS

from outbid import Tracks, score
from outbid.learned.inference.candidates import candidates_of
from outbid.learned.inference.decide import decide
from outbid.learned.inference.jpda import marginals, propagate, updated
from outbid.learned.learn import Fit, learn
from outbid.learned.lineage import Dividing, Merging, Plain, find_divisions, hypothesis
from outbid.learned.lineage.candidates import Divisions
from outbid.learned.lineage.control import division_evidence
from outbid.learned.lineage.daughters import DaughterModel, log_weight, m_step
from outbid.learned.lineage.joint import decide_jointly
from outbid.learned.lineage.lifetimes import Lifetimes, log_factors
from outbid.learned.lineage.packing import Pairs, log_partition, propagated
from outbid.learned.lineage.reverse import in_reverse


@cache
def seen(kind: str, seed: int = 0, kappa: float = 0.07) -> tuple[Tracks, Fit]:
    """A movie and what is learned of its links."""
    truth = KINDS[kind](seed, kappa)
    axes = np.ptp(truth.detections.position, axis=0) > 0
    return truth, learn(truth.detections.position[:, axes], truth.detections.frame_start)


def scored(pairs: np.ndarray, truth: Tracks, *families: str) -> dict[str, float]:
    return score(Tracks(truth.detections, pairs), truth, families=families).values


def divisions_of(count: int, **changed: np.ndarray) -> Divisions:
    """Candidates of as many mothers, each with daughters of her own, a spacing apart."""
    row, one = np.arange(count), np.ones(count)
    usual = Divisions(
        row, count + row, 2 * count + row, one, np.eye(3)[0 * row], 0 * one, 0 * one, np.nan * one, 0 * one,
        0 * one,
    )  # fmt: skip
    return replace(usual, **changed)


@pytest.mark.smoke
def test_divisions_of_a_tissue_are_found() -> None:
    truth, learned = seen("dividing_few")
    tracks = hypothesis(learned.movie, learned.model, learned.posterior)
    links = tracks.decide()
    found = scored(links.pairs, truth, "divisions", "links", "identity")
    plain = decide(learned.posterior.candidates, learned.posterior.probability)
    before = scored(plain.pairs, truth, "links", "identity")
    assert found["division_f1"] > 0.95
    assert found["idf1"] > before["idf1"] + 0.2
    assert found["link_f1"] >= before["link_f1"]
    assert isinstance(tracks, Dividing)
    assert 0.6 < np.exp(tracks.lineage.model.log_distance) < 1.6


def test_a_sure_link_has_rivals_beside_divisions() -> None:
    """Their weight is a difference, of which rounding leaves nothing: it is that of no link at least."""
    _, learned = seen("dividing_few")
    sure, ratio = learned.posterior.probability > 0.99, learned.posterior.ratio
    posterior = replace(learned.posterior, ratio=np.where(sure, 1e20 * ratio, ratio))
    tracks = hypothesis(learned.movie, learned.model, posterior)
    links = tracks.decide()
    assert isinstance(tracks, Dividing)
    assert links.probability is not None
    assert np.isfinite(links.probability).all()
    assert np.isfinite(tracks.lineage.probability).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dividing", "dividing_in_a_layer"])
def test_where_steps_are_long_divisions_are_found_too(kind: str) -> None:
    truth, learned = seen(kind, 30, 0.14)
    links = hypothesis(learned.movie, learned.model, learned.posterior).decide()
    assert scored(links.pairs, truth, "divisions")["division_f1"] > 0.65


@pytest.mark.slow
def test_probabilities_of_divisions_are_true() -> None:
    """Of candidates between .2 and .9, and of all above, the share that is right is what is stated."""
    right, stated = [], []
    for seed, kind in enumerate(("dividing", "dividing_in_a_layer", "dividing_and_dying")):
        truth, learned = seen(kind, 30 + seed, 0.14)
        lineage = find_divisions(learned.movie, learned.model, learned.posterior)
        assert lineage is not None
        size = len(truth.detections)
        true = set((truth.links @ [size, 1]).tolist())
        both = zip(*lineage.divisions.slots.tolist(), strict=True)
        right.append(np.array([m * size + a in true and m * size + b in true for m, a, b in both]))
        stated.append(lineage.probability)
    p, hits = np.concatenate(stated), np.concatenate(right)
    for low, high, apart in ((0.0, 0.2, 0.01), (0.2, 0.9, 0.1), (0.9, 1.0, 0.05)):
        some = (p >= low) & (p <= high)
        assert some.sum() > 100
        assert p[some].mean() == pytest.approx(hits[some].mean(), abs=apart)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "kappa"),
    [
        ("few", 0.07), ("few_and_still", 0.07), ("merging_spots", 0.07), ("merging_spots", 0.14),
        ("short_lives", 0.14), ("misses_and_clutter", 0.14), ("diffusion", 0.24),
    ],
)  # fmt: skip
def test_where_nothing_divides_links_stay_as_they_are(kind: str, kappa: float) -> None:
    _, learned = seen(kind, 31, kappa)
    tracks = hypothesis(learned.movie, learned.model, learned.posterior)
    links = tracks.decide()
    plain = decide(learned.posterior.candidates, learned.posterior.probability)
    assert isinstance(tracks, Plain)
    assert (links.pairs == plain.pairs).all()


def test_divisions_of_a_part_are_those_of_the_whole() -> None:
    _, learned = seen("dividing")
    found = [
        division_evidence(learned.movie, learned.model, learned.posterior, most)
        for most in (10_000, 1500, 400)
    ]
    for each in found:
        assert each is not None
        assert each.real > 0.9
        assert each.model.log_distance == pytest.approx(found[0].model.log_distance, abs=0.1)
        assert each.model.rate == pytest.approx(found[0].model.rate, rel=0.3)


def test_a_tissue_run_backward_merges_and_does_not_divide() -> None:
    _, learned = seen("dividing_few")
    back = in_reverse(learned.movie, learned.model, learned.posterior)
    tracks = hypothesis(*back, merges=True)
    assert isinstance(tracks, Merging)
    links = tracks.decide()
    forward = hypothesis(learned.movie, learned.model, learned.posterior).decide()
    last = len(learned.movie) - 1
    assert (np.bincount(links.pairs[:, 1]) == 2).sum() == (np.bincount(forward.pairs[:, 0]) == 2).sum() > 50
    assert (np.lexsort((links.pairs[:, 1], links.pairs[:, 0])) == np.arange(len(links.pairs))).all()
    again = {tuple(pair) for pair in (last - links.pairs[:, ::-1]).tolist()}
    assert len(again & {tuple(pair) for pair in forward.pairs.tolist()}) > 0.99 * len(forward.pairs)


def test_reversed_twice_is_the_same_movie_with_the_same_probabilities() -> None:
    _, learned = seen("misses_and_clutter", 31, 0.14)
    given = learned.movie, learned.model, learned.posterior
    back = in_reverse(*given)
    movie, model, posterior = in_reverse(*back)
    assert (movie.position == learned.movie.position).all()
    assert (movie.frame == learned.movie.frame).all()
    assert (posterior.probability == learned.posterior.probability).all()
    assert (posterior.candidates.key() == learned.posterior.candidates.key()).all()
    assert (model.motion.step_scale == learned.model.motion.step_scale).all()
    assert (np.diff(back[2].candidates.key()) > 0).all()
    forward, backward = (updated(*some, omega=0.8, with_moments=False) for some in (given, back))
    again = in_reverse(back[0], back[1], backward)[2]
    assert np.abs(again.probability - forward.probability).mean() < 0.006


def test_reversed_steps_lead_to_the_previous_frame() -> None:
    """Frames that jump to and fro, one of them not recorded: reversed, steps lead to the predecessor."""
    rng = np.random.default_rng(0)
    jumps = np.cumsum([0.0, 1.0, -2.0, 3.0, -1.0, 2.0])
    time = np.array([0, 1, 2, 4, 5, 6])
    place = (3 * rng.uniform(0, 9, (40, 3)))[None] + jumps[:, None, None] + rng.normal(0, 0.02, (6, 40, 3))
    learned = learn(place.reshape(-1, 3), np.arange(7) * 40, time=time)
    movie, model, posterior = in_reverse(learned.movie, learned.model, learned.posterior)
    links = posterior.candidates
    likely = (posterior.probability > 0.5) & (links.lag == 1)
    tail, head = links.tail[likely], links.head[likely]
    assert len(tail) > 190
    step = movie.position[head] - movie.position[tail]
    assert np.abs(step - model.local.flow[tail]).max() < 0.2
    assert movie.intervals.tolist() == [1, 1, 2, 1, 1]


def test_merging_spots_whose_frames_jitter_do_not_divide() -> None:
    truth = KINDS["merging_spots"](20, 0.07)
    seen = truth.detections
    jitter = np.random.default_rng(1).normal(0, 0.15, (seen.frame.max() + 1, 3))
    learned = learn(seen.position + jitter[seen.frame], seen.frame_start)
    lineage = find_divisions(learned.movie, learned.model, learned.posterior)
    assert lineage is None or lineage.probability.sum() < 2


def test_two_frames_have_finite_probabilities() -> None:
    truth, _ = seen("dividing_few")
    frames = truth.detections.frame
    some = truth.detections.position[(frames == 29) | (frames == 30)]
    start = np.array([0, (frames == 29).sum(), len(some)])
    learned = learn(some, start)
    tracks = hypothesis(learned.movie, learned.model, learned.posterior)
    assert len(tracks.decide().pairs) > 20
    assert isinstance(tracks, Plain) or np.isfinite(tracks.lineage.probability).all()


def test_the_daughter_model_is_recovered() -> None:
    """Lengths scale with the local spacing, directions are mostly along one axis; as many are by chance."""
    rng, count = np.random.default_rng(0), 1500
    true, room = rng.random(count) < 0.5, rng.normal(0, 0.3, count)
    distance = np.where(
        true, np.exp(rng.normal(-0.2, 0.2, count) + 0.8 * room), 1.8 * rng.random(count) ** (1 / 3)
    )
    along, across = (
        np.where(true, np.exp(0.8 * room) * rng.normal(0, 0.1, count), 0.5 * rng.normal(size=count)) ** 2
        for _ in "ab"
    )
    direction = rng.normal(size=(count, 3)) * np.where(true[:, None], [1.0, 1.0, 3.0], 1.0)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    growth = np.where(true, rng.normal(0.3, 0.1, count), rng.normal(0, 0.1, count))
    some = divisions_of(
        count, distance=distance, along=along, across=2 * across, room=room, direction=direction,
        growth=growth,
    )  # fmt: skip
    model = DaughterModel.initial(0.3, 3)
    for _ in range(60):
        probability = np.exp(-np.logaddexp(0, -log_weight(some, model)))
        model = m_step(some, probability, model, float(count))
    assert model.rate == pytest.approx(0.5, abs=0.13)  # of six seeds 0.42, which deviates by 0.013
    assert model.log_distance == pytest.approx(-0.2, abs=0.06)
    assert model.scaling == pytest.approx(0.8, abs=0.1)
    assert model.along**0.5 == pytest.approx(0.1, abs=0.03)
    assert model.growth == pytest.approx(0.3, abs=0.05)
    assert np.argmax(np.diag(model.shape)) == 2
    assert model.shape[2, 2] / model.shape[0, 0] == pytest.approx(9, rel=0.4)
    assert probability[true].mean() > 0.79  # of six seeds 0.85, which deviates by 0.017
    assert probability[~true].mean() < 0.1
    assert model.parameters == 14


def pairs_of(
    rows: list[int], columns: list[int], ratio: list[float], daughters: list[tuple[int, int]]
) -> Pairs:
    """Pairs, all of them candidate links, and divisions of two of them each."""
    many = len(rows)
    return Pairs(
        np.array(rows), np.array(columns), np.array(ratio), np.ones(many), np.ones((2, many)),
        np.array(daughters, dtype=np.int64).reshape(-1, 2).T, np.empty(0),
    )  # fmt: skip


def enumerated(pairs: Pairs, none: np.ndarray, weight: list[float]) -> tuple[list[float], float]:
    """Probability of each division, and the total weight, over all sets of links and divisions."""
    edges = [((e,), pairs.ratio[e]) for e in range(len(pairs.row))]
    edges += [(tuple(both), w) for both, w in zip(pairs.daughters.T.tolist(), weight, strict=True)]
    total, each = 0.0, np.zeros(len(edges))
    for size in range(len(edges) + 1):
        for chosen in combinations(range(len(edges)), size):
            rows = [pairs.row[edges[e][0][0]] for e in chosen]
            columns = [pairs.column[p] for e in chosen for p in edges[e][0]]
            if len(set(rows)) < len(rows) or len(set(columns)) < len(columns):
                continue
            this = np.prod([edges[e][1] for e in chosen])
            this *= np.delete(none[0], rows).prod() * np.delete(none[1], columns).prod()
            total += this
            each[list(chosen)] += this
    return (each[len(pairs.row) :] / total).tolist(), total


@pytest.mark.smoke
def test_competition_of_links_and_divisions_is_exact_without_loops() -> None:
    """Mother 0 has three possible daughters, one of them a rival's only successor."""
    pairs = pairs_of([0, 0, 0, 1], [0, 1, 2, 2], [5.0, 0.5, 2.0, 3.0], [(0, 1), (0, 2), (1, 2)])
    none, weight = np.array([[0.5, 0.2, 1.0], [1.0, 0.7, 0.3]]), [2.0, 4.0, 0.5]
    expected, total = enumerated(pairs, none, weight)
    pairs = pairs.weighing(np.log(weight), 1.0)
    found = propagated(none, pairs, 1.0, 30).beliefs(none, 1.0)
    assert found.division == pytest.approx(expected, abs=1e-3)
    assert log_partition(none, pairs, 30) == pytest.approx(np.log(total), abs=1e-3)


def test_competition_with_loops_is_close() -> None:
    """Two mothers with the same three possible daughters: shorter loops do not occur."""
    rng = np.random.default_rng(3)
    apart = []
    for _ in range(20):
        rows, columns = [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]
        pairs = pairs_of(rows, columns, np.exp(rng.normal(0, 1, 6)).tolist(), [(0, 1), (1, 2), (4, 5)])
        none, weight = np.exp(rng.normal(-1, 0.5, (2, 3))), np.exp(rng.normal(1, 1, 3)).tolist()
        expected, _ = enumerated(pairs, none, weight)
        pairs = propagated(none, pairs.weighing(np.log(weight), 0.8), 0.8, 50)
        apart.append(np.abs(pairs.beliefs(none, 0.8).division - expected).max())
    assert np.mean(apart) < 0.12


def test_without_divisions_the_competition_is_that_of_links() -> None:
    rng = np.random.default_rng(1)
    key = np.sort(rng.choice(400, 60, replace=False))
    frame = np.repeat([0, 1], 20)
    row, column = np.divmod(key, 20)
    candidates = candidates_of(row * 40 + 20 + column, frame)
    ratio, none = np.exp(rng.normal(0, 2, 60)), np.exp(rng.normal(-1, 1, (2, 40)))
    competing = np.ones((2, 60))
    propagate(candidates, ratio, tuple(none), competing, omega=0.8, rounds=50)
    empty = np.empty((2, 0), np.int64)
    pairs = Pairs(candidates.tail, candidates.head, ratio, np.ones(60), np.ones((2, 60)), empty, np.empty(0))
    found = propagated(none, pairs, 0.8, 50).beliefs(none, 0.8)
    assert found.link == pytest.approx(marginals(ratio, competing, 0.8), abs=5e-3)


def lives() -> tuple[np.ndarray, np.ndarray]:
    """Frames and links of twelve cells whose daughters all divide at an age of five frames."""
    frame, links = [], []

    def grow(born: int, mother: int | None, generation: int) -> None:
        for age in range(6):
            frame.append(born + age)
            row = len(frame) - 1
            if age or mother is not None:
                links.append((row - 1 if age else mother, row))
        for _ in range(2 if generation < 2 else 0):
            grow(born + 6, row, generation + 1)

    for _ in range(12):
        grow(0, None, 0)
    order = np.argsort(frame, kind="stable")
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    pairs = rank[np.array(links)]
    return np.array(frame)[order], pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


@pytest.mark.smoke
def test_lives_run_from_division_to_division() -> None:
    frame, links = lives()
    found = Lifetimes.of(frame, links)
    assert (found.seen_born == (frame >= 6)).all()
    assert (found.born == frame // 6 * 6).all()
    assert (found.end == frame // 6 * 6 + 5).all()
    assert (found.divides == (frame < 12)).all()


def test_a_division_at_the_usual_age_gains_and_an_early_one_loses() -> None:
    frame, links = lives()
    mothers = np.flatnonzero(frame == 11)[:1], np.flatnonzero(frame == 8)[:1]
    both = []
    for mother in mothers:
        after = links[links[:, 0] == mother[0], 1]
        some = divisions_of(
            1, mother=mother, first=after[:1], second=np.flatnonzero(frame == frame[mother] + 1)[-1:]
        )
        both.append(float(log_factors(Lifetimes.of(frame, links), some)[0]))
    assert both[0] > 1.5
    assert both[1] < -1.5


@pytest.mark.smoke
def test_links_and_divisions_exclude_each_other() -> None:
    """Row 0 may be linked to 2 and 3, row 1 to 3; a division of 0 into both takes 3 from row 1."""
    frame = np.array([0, 0, 1, 1])
    candidates = candidates_of(np.array([2, 3, 7]), frame)
    division = divisions_of(1, mother=np.array([0]), first=np.array([2]), second=np.array([3]))
    for sure, expected in ((0.95, [[0, 2], [0, 3]]), (0.05, [[0, 2], [1, 3]])):
        link = (1 - sure) * np.array([0.9, 0.02, 0.6])
        found = decide_jointly(candidates, link, division, np.array([sure]))
        assert found.pairs.tolist() == expected
        assert found.probability is not None
        assert found.probability.max() <= 1
