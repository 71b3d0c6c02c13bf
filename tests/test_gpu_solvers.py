"""Movies linked on the GPU by every solver: the links of the CPU, and no fallback that is not counted."""

import numpy as np
import pytest

from outbid import Detections, TrackingSettings, read_detections, track
from outbid.assignment import components
from outbid.data import sample

pytestmark = pytest.mark.gpu
ON_THE_GPU = (
    "bid_and_augment", "sparsified", "auction", "auction:fixed(epsilon=9)", "hungarian:classical",
    "hungarian:tree", "greedy_switching", "greedy_switching:parallel(start=greedy)",
)  # fmt: skip


def walk(frames: int, particles: int) -> Detections:
    """A walk at kappa .2, of which every tenth detection is missed."""
    rng = np.random.default_rng(4)
    steps = np.cumsum(rng.normal(0, 0.2, (frames, particles, 3)), axis=0)
    place = rng.uniform(0, particles ** (1 / 3), (1, particles, 3)) + steps
    kept = rng.random((frames, particles)) > 0.1
    return Detections.from_table(np.repeat(np.arange(frames), particles)[kept.ravel()], place[kept])


def assert_same(detections: Detections, solver: str, gate: float) -> None:
    here, there = (
        track(detections, TrackingSettings(gate, solver=solver, device=device, max_gap=1))
        for device in ("cpu", "gpu")
    )
    np.testing.assert_array_equal(there.tracks.links, here.tracks.links)
    assert there.stats["worst_gap"] == here.stats["worst_gap"]
    assert (there.stats["device"], there.stats["solved_on"], there.stats["fallbacks"]) == ("gpu", "gpu", 0)
    assert there.stats["solver"] == solver


@pytest.mark.parametrize("solver", ON_THE_GPU)
@pytest.mark.parametrize("most", [1000, components.MOST_PAIRS])
def test_a_walk_as_matrices_and_in_batches_of_components(solver, most, monkeypatch):
    monkeypatch.setattr(components, "MOST_PAIRS", most)
    monkeypatch.setattr(components, "_SIDE", 300)
    assert_same(walk(5, 400), solver, 0.7)


@pytest.mark.parametrize("solver", ON_THE_GPU)
def test_the_sample(solver):
    assert_same(read_detections(sample("walks")), solver, 6.0)


@pytest.mark.parametrize("solver", ["hungarian:tree", "greedy_switching"])
def test_a_matrix_for_which_the_gpu_has_no_room_is_solved_on_the_host_and_counted(solver, monkeypatch):
    monkeypatch.setattr("outbid.assignment.papers.hungarian.free_device_memory", lambda: 0)
    monkeypatch.setattr("outbid.assignment.papers.greedy_switching.free_device_memory", lambda: 0)
    seen = walk(4, 200)
    expected = track(seen, TrackingSettings(0.7, solver=solver, device="cpu"))
    run = track(seen, TrackingSettings(0.7, solver=solver, device="gpu"))
    np.testing.assert_array_equal(run.tracks.links, expected.tracks.links)
    assert (run.stats["solved_on"], run.stats["on_host"], run.stats["fallbacks"]) == ("cpu", 3, 3)
