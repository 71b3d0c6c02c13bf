"""Divisions: found where cells divide, and nowhere else."""

import numpy as np
import pytest
from scenes import merged, tissue

from outbid import Detections, TrackingSettings, Tracks, read_tracks, score, track
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


@pytest.mark.smoke
@pytest.mark.parametrize("apart", [0.12, 0.25])
def test_divisions_are_found(apart):
    truth = tissue(apart=apart)
    found = track(truth.detections).tracks
    assert division_f1(found.links, truth) > 0.85
    assert np.unique(found.links[:, 1]).size == len(found.links)  # one mother each
    assert np.bincount(found.links[:, 0]).max() == 2
    assert found.link_probability is not None
    assert ((found.link_probability >= 0) & (found.link_probability <= 1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("apart", [0.12, 0.25])
def test_divisions_are_found_where_a_tenth_is_missed(apart):
    truth = tissue(cells=300, apart=apart, missed=0.1)
    found = track(truth.detections).tracks
    assert division_f1(found.links, truth) > 0.8
    assert np.unique(found.links[:, 1]).size == len(found.links)


@pytest.mark.slow
@pytest.mark.parametrize(("apart", "least"), [(0.1, 0.84), (0.2, 0.7)])
def test_buds_are_found_where_the_mother_stays(apart, least):
    """Only one daughter moves away, and no even parting is assumed."""
    truth = tissue(cells=300, apart=apart, off=0.5)
    found = track(truth.detections).tracks
    assert division_f1(found.links, truth) > least


@pytest.mark.slow
@pytest.mark.parametrize("frames", [3, 4, 12])
def test_divisions_of_many_in_few_frames_are_found(frames):
    truth = tissue(cells=2000, frames=frames, rate=0.1)
    found = track(truth.detections).tracks
    assert division_f1(found.links, truth) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize(("resting", "speed", "miss"), [(150, 0.5, 0.03), (150, 1.0, 0.1), (0, 1.0, 0.1)])
def test_a_cloud_that_disperses_does_not_divide(resting, speed, miss):
    """A particle that is missed at first and starts near one that flies is no daughter."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        place, velocity = rng.uniform(0, 30, (300, 3)), rng.normal(0, speed, (300, 3))
        velocity[:resting] = 0
        way = place + np.arange(20)[:, None, None] * velocity + rng.normal(0, 0.05, (20, 300, 3))
        seen = rng.random((20, 300)) >= miss
        found = track(Detections.from_table(np.nonzero(seen)[0], way[seen])).tracks
        assert np.bincount(found.links[:, 0]).max() == 1


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "least"), [(0.0001, 0.0), (0.001, 0.0), (0.005, 0.6)])
def test_few_divisions_show_no_others(rate, least):
    """Less than ten in a movie are no evidence that its particles divide; twenty are (limits.md)."""
    true, right, found = 0, 0, 0
    for seed in range(4):
        truth = tissue(seed, apart=0.15, rate=rate)
        values = divisions_of(truth)
        true, right = true + values["n_true_divisions"], right + values["n_right_divisions"]
        found += values["n_found_divisions"]
    assert right >= least * true
    assert found - right <= 1 + 0.1 * true


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
    """One or two divisions are too few to be evidence; none is found where there is none."""
    values = divisions_of(between(read_tracks(real_data / name), first, last))
    assert values["n_true_divisions"] == divisions
    assert values["n_right_divisions"] == values["n_found_divisions"]


def divisions_of(truth: Tracks) -> dict[str, float]:
    """How well divisions are found with no option set."""
    return score(track(truth.detections, TrackingSettings()).tracks, truth, families=["divisions"]).values


def between(truth: Tracks, first: int, last: int) -> Tracks:
    """The truth from one frame to another."""
    frame = truth.detections.frame
    return truth.take((frame >= first) & (frame <= last))


@pytest.mark.slow
def test_divisions_can_be_left_out():
    seen = tissue().detections
    run = track(seen, TrackingSettings(divisions=False))
    assert run.stats["divisions"] == 0
    assert track(seen, TrackingSettings()).stats["divisions"] > 30


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "miss"), [(0.1, 0.0), (0.2, 0.1), (0.35, 0.0)])
def test_births_anywhere_and_clutter_are_no_divisions(sigma, miss):
    settings = WalkSettings(BrownianWalk(sigma), 500, 15, (8, 8, 8), "reflect", 0.03, 0.03, seed=2)
    seen = observe(walk(settings), Microscope(miss=miss, clutter=0.05), box=(8, 8, 8), seed=2).detections
    assert track(seen, TrackingSettings()).stats["divisions"] <= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stride", "least"),
    [
        ("ascidian/Pm05.csv", 1, 0.99),
        ("ascidian/Pm08.csv", 1, 0.99),
        ("celegans/L1.csv", 1, 0.94),
        ("celegans/L5.csv", 1, 0.97),
        ("celegans/L5.csv", 3, 0.72),
        ("ascidian/Pm07.csv", 5, 0.94),
    ],
)
def test_cells_of_real_embryos_divide(real_data, name, stride, least):
    truth = read_tracks(real_data / name).every(stride)
    assert division_f1(track(truth.detections).tracks.links, truth) > least


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_never_divides_shows_no_division(real_data):
    seen = read_tracks(real_data / "turbulence/subcube.csv").detections.every(3)
    assert track(seen, TrackingSettings()).stats["divisions"] == 0
