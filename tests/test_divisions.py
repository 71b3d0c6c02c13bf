"""Divisions: found where cells divide, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scenes import merged, tissue

from outbid import Detections, TrackingSettings, Tracks, divisions, read_tracks, score, track
from outbid import calibrate as calibration
from outbid.calibrate import _with_branches, calibrate
from outbid.divisions import Branches, _real, parting
from outbid.divisions.relink import Choice, _solved
from outbid.linking import Links
from outbid.refine.movie import movie_of
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import BrownianWalk, OrnsteinUhlenbeckWalk, PersistentWalk
from outbid.simulate.walks import WalkSettings, walk


def division_f1(found: np.ndarray, truth: Tracks) -> float:
    """F1 of mothers with both daughters right."""
    families = []
    for links in (found, truth.links):
        children: dict[int, set[int]] = {}
        for source, target in links.tolist():
            children.setdefault(source, set()).add(target)
        families.append({(mother, *sorted(two)) for mother, two in children.items() if len(two) == 2})
    return 2 * len(families[0] & families[1]) / max(len(families[0]) + len(families[1]), 1)


@pytest.mark.parametrize("apart", [0.12, 0.25])
def test_divisions_are_found(apart):
    truth = tissue(apart=apart)
    _, links = calibrate(truth.detections)
    assert division_f1(links.pairs, truth) > 0.85
    assert np.unique(links.pairs[:, 1]).size == len(links.pairs)  # one mother each
    assert np.bincount(links.pairs[:, 0]).max() == 2
    assert links.probability is not None
    assert ((links.probability >= 0) & (links.probability <= 1)).all()


@pytest.mark.parametrize("apart", [0.12, 0.25])
def test_divisions_are_found_where_a_tenth_is_missed(apart):
    """Daughters that are missed in the next frame are found one frame later."""
    truth = tissue(cells=300, apart=apart, missed=0.1)
    _, links = calibrate(truth.detections)
    assert division_f1(links.pairs, truth) > 0.84
    assert np.unique(links.pairs[:, 1]).size == len(links.pairs)


@pytest.mark.parametrize(("apart", "least"), [(0.1, 0.84), (0.2, 0.72)])
def test_buds_are_found_where_the_mother_stays(apart, least):
    """Only one daughter moves away, and no even parting is assumed."""
    truth = tissue(cells=300, apart=apart, off=0.5)
    _, links = calibrate(truth.detections)
    assert division_f1(links.pairs, truth) > least


@pytest.mark.parametrize("off", [0.0, 0.25, 0.5])
def test_how_unevenly_daughters_part_is_learned(monkeypatch, off):
    learned = []

    def kept(*given):
        learned.append(parting.parting_of(*given))
        return learned[-1]

    monkeypatch.setattr(divisions, "parting_of", kept)
    truth = tissue(cells=300, apart=0.2, off=off)
    calibrate(truth.detections)
    assert learned[-1].off == pytest.approx(off, abs=0.04)
    assert learned[-1].both < 0.1 or off == 0


def test_who_parts_hardly_unevenly_parts_as_likely_as_evenly(monkeypatch):
    given = []
    monkeypatch.setattr(divisions, "parting_of", lambda *values: given.append(values))
    calibrate(tissue(apart=0.2).detections)
    families, *rest = given[0]
    even = parting.parting_of(families, *rest)
    odds = parting.log_odds(families, replace(even, off=0.0))
    assert parting.log_odds(families, replace(even, off=1e-9, both=0.3)) == pytest.approx(odds, abs=1e-6)
    assert np.abs(parting.log_odds(families, replace(even, off=0.3, both=0.3)) - odds).max() > 1


@pytest.mark.parametrize("frames", [3, 4, 12])
def test_divisions_of_many_in_few_frames_are_found(monkeypatch, frames):
    """Also where one frame has more families than a sample holds."""
    truth = tissue(cells=2000, frames=frames, rate=0.1)
    for enough in ("_TRIED", "_TOLD", "_FAMILIES"):
        monkeypatch.setattr(divisions, enough, 100)
    _, links = calibrate(truth.detections)
    assert division_f1(links.pairs, truth) > 0.85


def test_a_crowd_is_not_searched_where_a_sample_shows_chance_alone(monkeypatch):
    """Families that do not look good show that chance makes those that do."""
    step = OrnsteinUhlenbeckWalk(0.3, 3.0)
    truth = walk(WalkSettings(step, 2000, 30, (2000 ** (1 / 3),) * 3, "reflect", 0.02, 0.02, seed=0))
    seen = observe(truth, Microscope((0.03,) * 3, 0.1, 0.1), box=(2000 ** (1 / 3),) * 3, seed=0)
    looks, judged, find, judge = [], [], divisions._found, divisions._tell
    monkeypatch.setattr(divisions, "_TRIED", 100)
    monkeypatch.setattr(divisions, "_KEPT", 2.0)  # with a density of followers no family looks good
    monkeypatch.setattr(divisions, "_tell", lambda *given: judged.append(given) or judge(*given))
    monkeypatch.setattr(divisions, "_found", lambda *given: looks.append(find(*given)) or looks[-1])
    _, links = calibrate(seen.detections)
    assert [len(forward) > 1 for forward, *_ in looks] == [True]
    # A sample may show fewer than there are, by three standard deviations.
    ((forward, backward, _, unsure),) = judged
    assert unsure == pytest.approx(3 * (len(forward) + len(backward) + 1) ** 0.5)
    assert (np.bincount(links.pairs[:, 0]) < 2).all()


@pytest.mark.parametrize(("resting", "speed", "miss"), [(150, 0.5, 0.03), (150, 1.0, 0.1), (0, 1.0, 0.1)])
def test_a_cloud_that_disperses_does_not_divide(resting, speed, miss):
    """A particle that is missed at first and starts near one that flies is no daughter."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        place, velocity = rng.uniform(0, 30, (300, 3)), rng.normal(0, speed, (300, 3))
        velocity[:resting] = 0
        way = place + np.arange(20)[:, None, None] * velocity + rng.normal(0, 0.05, (20, 300, 3))
        seen = rng.random((20, 300)) >= miss
        _, links = calibrate(Detections.from_table(np.nonzero(seen)[0], way[seen]))
        assert np.bincount(links.pairs[:, 0]).max() == 1


@pytest.mark.parametrize("rate", [0.0001, 0.0005, 0.001])
def test_few_divisions_are_found_and_no_others(rate):
    """From none to eight in a movie."""
    true, right, found = 0, 0, 0
    for seed in range(10):
        truth = tissue(seed, apart=0.15, rate=rate)
        values = divisions_of(truth)
        true, right = true + values["n_true_divisions"], right + values["n_right_divisions"]
        found += values["n_found_divisions"]
    assert true > 5
    assert right > 0.6 * true
    assert found - right <= 1


@pytest.mark.parametrize(
    ("name", "first", "last", "divisions"),
    [
        ("formats/tidy_mamut_lineagetree.csv", 160, 199, 1),
        ("mouse_geff/tidy.csv", 500, 509, 1),
        ("mouse_geff/tidy.csv", 470, 479, 2),
        ("mouse_geff/tidy.csv", 0, 39, 0),
    ],
)
def test_a_few_frames_of_real_embryos(real_data, name, first, last, divisions):
    values = divisions_of(between(read_tracks(real_data / name), first, last))
    assert values["n_true_divisions"] == divisions
    assert values["n_right_divisions"] == values["n_found_divisions"] == divisions


def divisions_of(truth: Tracks) -> dict[str, float]:
    """How well divisions are found with no option set."""
    return score(track(truth.detections, TrackingSettings()).tracks, truth, families=["divisions"]).values


def between(truth: Tracks, first: int, last: int) -> Tracks:
    """The truth from one frame to another."""
    frame = truth.detections.frame
    return truth.take((frame >= first) & (frame <= last))


def test_where_particles_keep_their_way_it_predicts_where_they_go_on(monkeypatch):
    """The prediction is a density in the unit of length; rates of ends and starts do not count."""
    asked, going = [], divisions._going
    monkeypatch.setattr(divisions, "_going", lambda *given: asked.append(going(*given)) or asked[-1])

    def predicted(motion, unit, **known):
        settings = WalkSettings(motion, 300, 15, (8, 8, 8), "reflect", 0.03, 0.03, seed=1)
        seen = observe(walk(settings), Microscope((0.02,) * 3), box=(8, 8, 8), seed=1).detections
        calibrate(Detections.from_table(seen.frame, unit * seen.position), known=known)
        return asked[0], asked.clear()

    (flying, _), (scaled, _) = (predicted(OrnsteinUhlenbeckWalk(0.3, 10), unit) for unit in (1, 8))
    linked = np.isfinite(flying)
    assert linked.mean() > 0.8
    assert scaled[linked] == pytest.approx(flying[linked] - 3 * np.log(8), abs=1e-3)
    rare, _ = predicted(OrnsteinUhlenbeckWalk(0.3, 10), 1, end=0.005, start=0.005)
    both = linked & np.isfinite(rare)
    assert np.median(rare[both] - flying[both]) == pytest.approx(0, abs=0.2)
    assert np.isneginf(predicted(BrownianWalk(0.2), 1)[0]).all()


def test_what_is_found_backward_as_well_is_not_real():
    many, good = np.arange(10.0), np.array([8.0])
    none = np.empty(0)
    assert _real(good, good, none, 1.0) > 0.5  # one, and nothing at all backward
    assert _real(good, many, none, 10.0) > 0.9
    for backward, claimed in ((many[2:], 10.0), (none, 40.0)):  # meetings; and much that is vague
        assert _real(good, many, backward, claimed) == 0
    assert _real(good, many[:3], many[:2], 3.0) == 0


def test_divisions_can_be_left_out():
    seen = tissue().detections
    run = track(seen, TrackingSettings(divisions=False))
    assert run.stats["divisions"] == 0
    assert track(seen, TrackingSettings()).stats["divisions"] > 30


@pytest.mark.parametrize(("sigma", "miss"), [(0.1, 0.0), (0.2, 0.1), (0.35, 0.0)])
def test_births_anywhere_and_clutter_are_no_divisions(sigma, miss):
    settings = WalkSettings(BrownianWalk(sigma), 500, 15, (8, 8, 8), "reflect", 0.03, 0.03, seed=2)
    seen = observe(walk(settings), Microscope(miss=miss, clutter=0.05), box=(8, 8, 8), seed=2).detections
    assert track(seen, TrackingSettings()).stats["divisions"] <= 5


@pytest.mark.parametrize(
    ("name", "stride", "least"),
    [
        ("ascidian/Pm05.csv", 1, 0.99),
        ("ascidian/Pm08.csv", 1, 0.99),
        ("celegans/L1.csv", 1, 0.955),
        ("celegans/L5.csv", 1, 0.97),
        ("celegans/L5.csv", 3, 0.72),
        ("ascidian/Pm07.csv", 5, 0.94),
    ],
)
def test_cells_of_real_embryos_divide(real_data, name, stride, least):
    truth = read_tracks(real_data / name).every(stride)
    assert division_f1(calibrate(truth.detections)[1].pairs, truth) > least


@pytest.mark.parametrize(
    ("name", "stride"), [("celegans/L1.csv", 3), ("celegans/L5.csv", 3), ("ascidian/Pm08.csv", 5)]
)
def test_divisions_are_as_likely_as_they_say(monkeypatch, real_data, name, stride):
    """Their mean probability is the share of right ones."""
    truth, found = read_tracks(real_data / name).every(stride), []
    find = divisions.find_divisions
    monkeypatch.setattr(calibration, "find_divisions", lambda *given: found.append(find(*given)) or found[-1])
    run = track(truth.detections, TrackingSettings())
    ((_, branches),) = found
    right = score(run.tracks, truth, families=["divisions"]).values["division_precision"]
    assert branches.probability.mean() == pytest.approx(right, abs=0.06)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("motion", "count", "box", "apart"),
    [
        (PersistentWalk(2.0, 0.8), 50, (15, 80, 80), 4.0),
        (BrownianWalk(0.8), 100, (12, 60, 60), 3.0),
        (OrnsteinUhlenbeckWalk(1.0, 5.0), 200, (10, 60, 60), 3.0),
    ],
)
def test_spots_that_cross_do_not_divide(motion, count, box, apart, seed):
    seen = walk(WalkSettings(motion, count, 30, box, "reflect", 0.01, 0.01, seed=seed)).detections
    run = track(merged(seen, apart, np.random.default_rng(seed)), TrackingSettings())
    assert run.stats["divisions"] == 0


def test_a_division_beyond_doubt_has_a_finite_cost():
    movie = movie_of(Detections.from_table([0, 1, 1], [[0, 0, 1], [0, 0, 0], [0, 0, 2]]), (1, 1, 1))
    link = Links(np.array([[0, 1]]), np.array([-5.0]), np.array([5.0]), 0.0, probability=np.array([0.9]))
    links = _with_branches(link, movie, Branches(np.array([0]), np.array([2]), np.array([1.0])))
    assert links.pairs.tolist() == [[0, 1], [0, 2]]
    assert -40 < links.cost[1] < -30


def test_what_never_divides_shows_no_division(real_data):
    seen = read_tracks(real_data / "turbulence/subcube.csv").detections.every(3)
    assert track(seen, TrackingSettings()).stats["divisions"] == 0


def test_a_pair_that_is_a_link_and_half_of_a_family_counts_once():
    """The solver and its proof take the same of both."""
    row, col, family = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), np.array([-1, 0, -1, -1])
    choice = Choice(row, col, np.array([1.0, 3.0, 2.5, 1.0]), family, np.where(family < 0, 0.0, 0.5))
    taken, _, gap = _solved(choice, np.ones(4, dtype=np.bool_))
    assert taken.tolist() == [False, True, False, True]
    assert gap == 0
