"""Divisions beside links: how daughters part, lifetimes, time reversal, and the joint choice."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from accuracy.movies import KINDS

from outbid import Tracks, score
from outbid.inference.candidates import candidates_of
from outbid.inference.decide import decide
from outbid.learn import Learned, learn
from outbid.lineage import find_divisions, with_divisions
from outbid.lineage.candidates import Divisions, candidate_divisions
from outbid.lineage.daughters import Rates, learned_daughters, log_odds, marginals
from outbid.lineage.evidence import Evidence
from outbid.lineage.joint import decide_jointly
from outbid.lineage.lifetimes import Lives, log_factors


@cache
def seen(kind: str, seed: int = 0) -> tuple[Tracks, Learned]:
    """A movie and what is learned of its links."""
    truth = KINDS[kind](seed, 0.07)
    axes = np.ptp(truth.detections.position, axis=0) > 0
    return truth, learn(truth.detections.position[:, axes], truth.detections.frame_start)


def divisions_of(count: int, **changed: np.ndarray) -> Divisions:
    """Candidates of as many mothers, each with daughters of her own, a spacing apart."""
    row, one = np.arange(count), np.ones(count)
    usual = Divisions(row, count + row, 2 * count + row, one, one, 0 * one, 0 * one, np.nan * one, 0 * one)
    return replace(usual, **changed)


def test_divisions_of_a_tissue_are_found() -> None:
    truth, learned = seen("dividing_few")
    links, lineage = with_divisions(learned.movie, learned.model, learned.posterior)
    found = score(
        Tracks(truth.detections, links.pairs), truth, families=("divisions", "links", "identity")
    ).values
    plain = decide(learned.posterior.candidates, learned.posterior.probability)
    before = score(Tracks(truth.detections, plain.pairs), truth, families=("links", "identity")).values
    assert found["division_f1"] > 0.9
    assert found["idf1"] > before["idf1"] + 0.2
    assert found["link_f1"] > before["link_f1"] - 0.002
    assert lineage.model is not None
    assert 0.6 < np.exp(lineage.model.log_distance) < 1.6


def test_what_is_stated_of_divisions_is_realised() -> None:
    right, stated = [], []
    for kind in ("dividing_few", "dividing_in_a_layer"):
        truth, learned = seen(kind)
        lineage = find_divisions(learned.movie, learned.model, learned.posterior)
        size = len(truth.detections)
        true = set((truth.links @ [size, 1]).tolist())
        both = zip(lineage.divisions.first, lineage.divisions.second, lineage.divisions.mother, strict=True)
        hits = np.array([m * size + a in true and m * size + b in true for a, b, m in both])
        right.append(hits[lineage.probability > 0.2])
        stated.append(lineage.probability[lineage.probability > 0.2])
    assert len(np.concatenate(right)) > 100
    assert np.concatenate(stated).mean() == pytest.approx(np.concatenate(right).mean(), abs=0.1)


@pytest.mark.parametrize("kind", ["few", "few_and_still", "merging_spots"])
def test_where_nothing_divides_links_stay_as_they_are(kind: str) -> None:
    _, learned = seen(kind)
    links, lineage = with_divisions(learned.movie, learned.model, learned.posterior)
    plain = decide(learned.posterior.candidates, learned.posterior.probability)
    assert lineage.model is None
    assert (links.pairs == plain.pairs).all()


def test_a_tissue_run_backward_shows_no_divisions() -> None:
    """Its cells fuse: of meetings there are as many, or more, than partings."""
    _, learned = seen("dividing_few")
    evidence = Evidence.of(learned.movie, learned.model, learned.posterior)
    turned = evidence.backward()
    again = turned.backward()
    for name in ("tail", "head", "no_successor", "successor"):
        assert (getattr(again, name) == getattr(evidence, name)).all(), name
    assert (turned.tail < turned.head).all()
    assert (np.diff(turned.tail * len(learned.movie) + turned.head) > 0).all()
    backward = candidate_divisions(turned)
    forward = candidate_divisions(evidence)
    axes, rates = 3, Rates(len(learned.movie), 80.0, 1e-5)
    model, _ = learned_daughters(forward, rates, axes, np.zeros(len(forward)))
    counts = [(marginals(some, log_odds(some, model, axes))[0] > 0.5).sum() for some in (forward, backward)]
    assert counts[1] < counts[0] / 10


def test_reversed_steps_lead_to_the_previous_frame() -> None:
    """Frames that jump to and fro, one of them not recorded: reversed, steps lead to the predecessor."""
    rng = np.random.default_rng(0)
    jumps = np.cumsum([0.0, 1.0, -2.0, 3.0, -1.0, 2.0])
    time = np.array([0, 1, 2, 4, 5, 6])
    place = (3 * rng.uniform(0, 9, (40, 3)))[None] + jumps[:, None, None] + rng.normal(0, 0.02, (6, 40, 3))
    learned = learn(place.reshape(-1, 3), np.arange(7) * 40, time=time)
    back = Evidence.of(learned.movie, learned.model, learned.posterior).backward()
    linked = np.flatnonzero(back.successor >= 0)
    step = back.movie.position[back.successor[linked]] - back.movie.position[linked]
    assert len(linked) > 190
    assert np.abs(step - back.flow[linked]).max() < 0.2
    assert back.movie.intervals.tolist() == [1, 1, 2, 1, 1]


def test_merging_spots_whose_frames_jitter_do_not_divide() -> None:
    truth = KINDS["merging_spots"](20, 0.07)
    seen = truth.detections
    jitter = np.random.default_rng(1).normal(0, 0.15, (seen.frame.max() + 1, 3))
    learned = learn(seen.position + jitter[seen.frame], seen.frame_start)
    _, lineage = with_divisions(learned.movie, learned.model, learned.posterior)
    assert lineage.probability.sum() < 2


def test_two_frames_have_finite_probabilities() -> None:
    truth, _ = seen("dividing_few")
    frames = truth.detections.frame
    some = truth.detections.position[(frames == 29) | (frames == 30)]
    start = np.array([0, (frames == 29).sum(), len(some)])
    learned = learn(some, start)
    links, lineage = with_divisions(learned.movie, learned.model, learned.posterior)
    assert len(links.pairs) > 20
    assert np.isfinite(lineage.probability).all()


def test_how_daughters_part_is_recovered() -> None:
    rng, count = np.random.default_rng(0), 400
    true = rng.random(count) < 0.5
    distance = np.where(true, np.exp(rng.normal(-0.2, 0.2, count)), 1.8 * rng.random(count) ** (1 / 3))
    along, across = (
        np.where(true, rng.normal(0, 0.1, count), 0.5 * rng.normal(size=count)) ** 2 for _ in "ab"
    )
    some = divisions_of(count, distance=distance, along=along, across=2 * across)
    model, evidence = learned_daughters(some, Rates(5000.0, 400.0, 1e-2), 3, np.zeros(count))
    probability, _ = marginals(some, log_odds(some, model, 3))
    assert evidence > 50
    assert model.log_distance == pytest.approx(-0.2, abs=0.06)
    assert model.along**0.5 == pytest.approx(0.1, abs=0.03)
    assert probability[true].mean() > 0.8
    assert probability[~true].mean() < 0.1


def test_candidates_that_share_a_cell_share_the_probability() -> None:
    some = divisions_of(2, mother=np.array([0, 1]), first=np.array([2, 3]), second=np.array([4, 4]))
    probability, _ = marginals(some, np.log([3.0, 6.0]))
    assert probability.tolist() == pytest.approx([0.3, 0.6])


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


def test_lives_run_from_division_to_division() -> None:
    frame, links = lives()
    found = Lives.of(frame, links)
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
        both.append(float(log_factors(Lives.of(frame, links), some)[0]))
    assert both[0] > 1.5
    assert both[1] < -1.5


def test_links_and_divisions_exclude_each_other() -> None:
    """Row 0 may be linked to 2 and 3, row 1 to 3; a division of 0 into both takes 3 from row 1."""
    frame = np.array([0, 0, 1, 1])
    candidates = candidates_of(np.array([2, 3, 7]), frame)
    link = np.array([0.9, 0.02, 0.6])
    division = divisions_of(1, mother=np.array([0]), first=np.array([2]), second=np.array([3]))
    for sure, expected in ((0.95, [[0, 2], [0, 3]]), (0.05, [[0, 2], [1, 3]])):
        found = decide_jointly(candidates, link, division, np.array([sure]))
        assert found.pairs.tolist() == expected
        assert found.probability is not None
        assert found.probability.max() <= 1
