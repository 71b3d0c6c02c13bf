"""Learned linking: what it learns of simulated movies, and what it makes of real ones."""

import math
from functools import partial

import numpy as np
import pytest
from commands import run as run_command
from commands import succeed
from scenes import link_f1, simulated

from outbid import (
    Detections,
    SettingsError,
    TrackingSettings,
    read_record,
    read_tracks,
    score,
    track,
    write_detections,
)
from outbid.learned.learn.options import LearnOptions
from outbid.learned.linking import linked
from outbid.simulate.experiments.calibration import expected_calibration_error
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import BrownianWalk, OrnsteinUhlenbeckWalk
from outbid.simulate.scenes import Scene
from outbid.simulate.walks import WalkSettings, walk

FREE = TrackingSettings()


@pytest.mark.slow
def test_the_unit_of_length_changes_nothing():
    """No gate and no choice depends on the unit, for lengths of 1e-12 or of 1e9."""
    seen = Scene(0.3, 5.0, 0, 0, particles=200, frames=12).film(1).detections
    learned, links = linked(seen, FREE)
    for power in (-40, 30):
        other, found = linked(Detections.from_table(seen.frame, np.ldexp(seen.position, power)), FREE)
        np.testing.assert_array_equal(found.pairs, links.pairs)
        np.testing.assert_allclose(np.ldexp(other.step, -power), learned.step, rtol=1e-9)


def test_frames_that_hardly_fit_leave_rates_between_0_and_1():
    """Many pairs, none of them sure: their shares may sum to more than one in a column."""
    for seed in (2, 9, 41, 51, 64):
        rng = np.random.default_rng(seed)
        first, second, frames = (int(rng.integers(*limits)) for limits in ((5, 80), (5, 80), (2, 4)))
        frame = np.repeat(np.arange(frames), [first, second, first][:frames])
        place = rng.uniform(0, rng.uniform(1, 6), (len(frame), 3))
        learned, _ = linked(Detections.from_table(frame, place), FREE)
        assert 0 < learned.start <= 0.9
        assert 0 < learned.end <= 0.9


@pytest.mark.slow
def test_a_long_movie_is_learnt_from_a_part(monkeypatch):
    drift = 0.02 * np.sin(np.arange(40) / 5).cumsum()
    truth = simulated(BrownianWalk(0.15), particles=300, frames=40, noise=0.03, miss=0.05)
    seen = Detections(truth.detections.frame, truth.detections.position + drift[truth.detections.frame, None])
    whole, links = linked(seen, FREE)
    monkeypatch.setattr("outbid.learned.linking.LearnOptions", partial(LearnOptions, sample=2400))
    part, others = linked(seen, FREE)
    assert (part.step != whole.step).all()
    assert part.step == pytest.approx(whole.step, rel=0.05)
    assert part.follow[1] == pytest.approx(whole.follow[1], abs=0.02)
    assert link_f1(others, truth) > link_f1(links, truth) - 0.005


@pytest.mark.slow
@pytest.mark.parametrize(
    ("motion", "lost"),
    [
        (OrnsteinUhlenbeckWalk(0.53, 5.0), 0.1),
        (BrownianWalk(0.2), 0.0),
        (BrownianWalk(0.3), 0.0),
        (BrownianWalk(0.3), 0.1),
    ],
)
def test_probabilities_of_links_are_right_where_particles_are_crowded(motion, lost):
    truth = simulated(motion, particles=1000, noise=0.03, miss=lost, clutter=lost)
    links = linked(truth.detections, FREE)[1]
    count = len(truth.detections)
    right = np.isin(links.pairs @ [count, 1], truth.links @ [count, 1])
    assert links.probability is not None
    assert right.mean() < 0.95
    assert expected_calibration_error(links.probability, right) < 0.035


@pytest.mark.slow
def test_persistence_is_learnt_and_helps():
    speed = 0.3 * math.sqrt(3) / math.sqrt(2 * 25 * (1 / 5 - 1 + math.exp(-1 / 5)))
    truth = simulated(OrnsteinUhlenbeckWalk(speed, 5.0), noise=0.02)
    learned, links = linked(truth.detections, FREE)
    assert learned.persistence_frames > 2.5
    plain = max(
        score(track(truth.detections, TrackingSettings(gate)).tracks, truth, families=("links",)).values[
            "link_f1"
        ]
        for gate in (0.6, 0.8, 1.0, 1.3)
    )
    assert link_f1(links, truth) > plain + 0.15


@pytest.mark.parametrize(("kappa", "persistence"), [(0.1, 10.0), (0.2, 3.0)])
def test_persistence_is_learnt_within_a_sixth_where_no_walls_turn_particles(kappa, persistence):
    step2 = 2 * persistence**2 * (1 / persistence - 1 + math.exp(-1 / persistence))
    motion = OrnsteinUhlenbeckWalk(kappa * math.sqrt(3 / step2), persistence)
    settings = WalkSettings(motion, 800, 20, (800 ** (1 / 3),) * 3, "open", 0.02, 0.02, seed=1)
    truth = observe(walk(settings), Microscope((0.03,) * 3), box=settings.box, seed=1)
    learned, _ = linked(truth.detections, FREE)
    assert learned.persistence_frames == pytest.approx(persistence, rel=0.17)
    assert learned.step.mean() == pytest.approx(math.sqrt(kappa**2 + 2 * 0.03**2), rel=0.05)


@pytest.mark.slow
def test_track_with_no_option_learns_and_says_what():
    truth = simulated(BrownianWalk(0.2), particles=300, frames=8)
    run = track(truth.detections, TrackingSettings())
    assert run.learned is not None
    assert run.tracks.link_probability is not None
    assert run.settings.max_gap is None
    assert run.stats["worst_gap"] == 0
    assert run.learned.step.mean() == pytest.approx(0.2, rel=0.15)
    np.testing.assert_array_equal(run.tracks.links, linked(truth.detections, FREE)[1].pairs)
    stretched = Detections(truth.detections.frame, truth.detections.position / (4, 1, 1))
    again = track(stretched, TrackingSettings(spacing=(4, 1, 1)))
    np.testing.assert_array_equal(run.tracks.links, again.tracks.links)


@pytest.mark.smoke
def test_the_command_needs_no_option_and_repeats_itself_from_its_record(tmp_path):
    seen = tmp_path / "seen.csv"
    write_detections(seen, simulated(BrownianWalk(0.2), particles=100, frames=6).detections)
    said = succeed("track", seen, "-v").stderr
    assert "Localisation noise" in said
    assert said.splitlines()[-1].startswith(f"{tmp_path / 'seen_tracks.csv'}: ")
    assert succeed("track", seen, "--overwrite").stderr.count("\n") == 1
    first, again = tmp_path / "seen_tracks.csv", tmp_path / "again.csv"
    assert read_record(first)["learned"]["axes"] == "zyx"
    succeed("track", seen, "-o", again, "--config", f"{first}.json")
    assert first.read_bytes() == again.read_bytes()
    assert run_command("track", seen, "--unmatched-cost", "full").exit_code == 2


def test_costs_are_not_set_where_they_are_learned():
    with pytest.raises(SettingsError, match="needs a max_distance"):
        TrackingSettings(unmatched_cost=1.0)


def test_a_drift_much_longer_than_diffusion_is_learnt():
    truth = simulated(BrownianWalk(0.05), frames=12)
    seen = truth.detections
    drift = np.cumsum(np.random.default_rng(3).normal(0, 0.15, (12, 3)), axis=0)
    moved = Detections(seen.frame, seen.position + drift[seen.frame])
    learned, links = linked(moved, FREE)
    assert learned.neighbours == 0
    assert "Neighbour flow: mean step of the whole frame." in str(learned)
    assert learned.drift is not None
    np.testing.assert_allclose(np.diff(learned.drift, axis=0), np.diff(drift, axis=0), atol=0.05)
    assert link_f1(links, truth) > 0.98


@pytest.mark.smoke
@pytest.mark.parametrize("axes", [1, 2])
def test_flat_movies_are_linked_as_what_they_are(axes):
    rng = np.random.default_rng(8)
    place = np.zeros((10, 60, 3))
    place[..., 3 - axes :] = rng.uniform(0, 60 ** (2 / axes), (60, axes)) + np.cumsum(
        rng.normal(0, 0.3, (10, 60, axes)), axis=0
    )
    seen = Detections.from_table(np.repeat(np.arange(10), 60), place.reshape(-1, 3))
    learned, links = linked(seen, FREE)
    assert learned.axes == "zyx"[3 - axes :]
    assert (links.pairs[:, 1] - links.pairs[:, 0] == 60).mean() > 0.97


@pytest.mark.smoke
@pytest.mark.parametrize("frames", [[], [1], [1, 1], [0, 3], [3, 0], [1, 0, 1], [2, 2], [5, 5, 5]], ids=str)
def test_movies_with_little_or_nothing_to_learn_from(frames):
    frame = np.repeat(np.arange(len(frames)), frames)
    for position in (np.zeros((len(frame), 3)), np.random.default_rng(9).uniform(0, 9, (len(frame), 3))):
        run = track(Detections.from_table(frame, position))
        assert run.stats["worst_gap"] == 0
        assert run.learned is None or math.isfinite(run.learned.end)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stride", "least"),
    [
        ("turbulence/tracers_2000.csv", 6, 0.95),
        ("turbulence/subcube.csv", 3, 0.9),
        ("turbulence/subcube.csv", 4, 0.93),
        ("celegans/L2.csv", 5, 0.885),
    ],
)
def test_real_movies_with_frames_left_out(real_data, name, stride, least):
    truth = read_tracks(real_data / name).every(stride)
    assert link_f1(linked(truth.detections, FREE)[1], truth) > least


def test_where_particles_are_sparse_the_gate_forgives_jumps_of_whole_frames():
    rng = np.random.default_rng(3)
    place = rng.uniform(0, 100, (150, 3)) + np.cumsum(rng.normal(0, 0.3, (40, 150, 3)), axis=0)
    for frame, jump in ((8, 1), (16, -1.2), (24, 1.2), (32, -1)):  # nearest neighbours are 10 apart
        place[frame:] += jump
    movie = Detections.from_table(np.repeat(np.arange(40), 150), place.reshape(-1, 3))
    links = linked(movie, FREE)[1].pairs
    assert len(links) == pytest.approx(39 * 150, rel=0.002)  # a frame has 1 of 39 parts of them
    assert np.mean(links[:, 1] - links[:, 0] == 150) > 0.998  # of eight seeds one had two wrong


@pytest.mark.parametrize(
    ("particles", "frames", "step"),
    [(1, 2, 0.0), (1, 10, 0.0), (1, 10, 0.1), (2, 8, 0.0), (10, 5, 0.0), (10, 5, 0.01)],
)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_lone_particle_and_particles_that_never_move_are_linked(
    particles: int, frames: int, step: float, offset: float
) -> None:
    rng = np.random.default_rng(0)
    place = offset + rng.uniform(0, 20, (particles, 3)) + rng.normal(0, step, (frames, particles, 3))
    movie = Detections.from_table(np.repeat(np.arange(frames), particles), place.reshape(-1, 3))
    assert len(linked(movie, FREE)[1].pairs) == particles * (frames - 1)


@pytest.mark.slow
def test_a_drift_longer_than_particles_are_apart_is_taken_out():
    truth = simulated(BrownianWalk(0.15), particles=500, frames=12, miss=0.05, clutter=0.05)
    seen, rng = truth.detections, np.random.default_rng(5)
    jump = rng.normal(0, 1.2, (12, 3))  # at density 1 most jumps are longer than particles are apart
    jump[[0, 5]] = 0
    drift = np.cumsum(jump, axis=0)
    moved = Detections(seen.frame, seen.position + drift[seen.frame])
    learned, links = linked(moved, FREE)
    assert learned.drift is not None
    np.testing.assert_allclose(learned.drift - learned.drift[0], drift, atol=0.15)
    assert link_f1(links, truth) > link_f1(linked(seen, FREE)[1], truth) - 0.01
    assert "Whole frames drift" in str(learned)
    kept = learned.as_dict()["drift"]
    assert isinstance(kept, list)
    assert len(kept) == 12


@pytest.mark.slow
@pytest.mark.parametrize("kappa", [0.1, 0.4])
def test_no_drift_is_found_where_particles_do_not_drift(kappa):
    assert linked(simulated(BrownianWalk(kappa), particles=500, frames=8).detections, FREE)[0].drift is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "numbers", [np.arange(8) * 1_000_000, np.array([0, 33, 67, 100, 133, 166, 200, 233])]
)
def test_frame_numbers_may_be_times(numbers):
    truth = simulated(BrownianWalk(0.15), particles=200, frames=8, miss=0.1)
    seen = truth.detections
    expected, links = linked(seen, FREE)
    timed = Detections(numbers[seen.frame].astype(np.int32), seen.position)
    learned, others = linked(timed, FREE)
    np.testing.assert_array_equal(others.pairs, links.pairs)
    assert learned.interval > 30
    assert "Frame numbers increase by" in str(learned)
    assert {**learned.as_dict(), "interval": 1} == expected.as_dict()
    run = track(timed, TrackingSettings())
    assert run.stats["gap_links"] == track(seen, TrackingSettings()).stats["gap_links"]


def test_long_stretches_without_a_detection_cost_nothing():
    seen = simulated(BrownianWalk(0.1), particles=100, frames=10).detections
    late = seen.frame + np.where(seen.frame >= 5, 50_000_000, 0).astype(np.int32)
    links = linked(Detections(late, seen.position), FREE)[1].pairs
    assert len(links) > 8 * 90
    assert not ((seen.frame[links[:, 0]] < 5) & (seen.frame[links[:, 1]] >= 5)).any()
