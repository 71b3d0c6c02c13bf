"""Advice: what is predicted before any linking, against what linking then makes."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scenes
from commands import run, succeed
from scipy.spatial import cKDTree

from outbid import Detections, InputError, TrackingSettings, Tracks, score, track, write_detections
from outbid.simulate.advise import advise
from outbid.simulate.motions import BrownianWalk


def simulated(kappa: float, *, miss: float = 0.0, particles: int = 800, frames: int = 10) -> Tracks:
    motion = BrownianWalk(kappa)
    return scenes.simulated(motion, particles=particles, frames=frames, miss=miss, clutter=miss, seed=7)


@pytest.mark.parametrize(
    ("kappa", "miss", "off"),
    [(0.05, 0.0, 0.005), (0.1, 0.0, 0.005), (0.2, 0.0, 0.02), (0.3, 0.0, 0.03), (0.1, 0.1, 0.015)],
)
def test_what_is_predicted_is_what_linking_makes(kappa, miss, off):
    truth = simulated(kappa, miss=miss)
    advice = advise(truth.detections)
    assert advice.kappa == pytest.approx(kappa, rel=0.15)
    for number, gate in enumerate(advice.gates):
        tracks = track(truth.detections, TrackingSettings(max_distance=gate.max_distance)).tracks
        values = score(tracks, truth, families=("links",)).values
        # Links of the truth over gaps are beyond any gate.
        gap = truth.detections.frame[truth.links[:, 1]] - truth.detections.frame[truth.links[:, 0]]
        recall = values["link_recall"] / (gap == 1).mean()
        allowed = off if number == advice.best else 0.04
        assert gate.wrong == pytest.approx(1 - values["link_precision"], abs=allowed)
        assert gate.missing == pytest.approx(1 - recall, abs=allowed)


@pytest.mark.smoke
def test_candidates_and_components_are_those_of_the_movie():
    seen = simulated(0.15, particles=200, frames=4).detections
    advice = advise(seen, max_distances=(0.6,))
    frames = np.split(seen.position, seen.frame_start[1:-1])
    pairs, largest = 0, 0
    for here, there in zip(frames[:-1], frames[1:], strict=True):
        near = cKDTree(here).query_ball_point(there, 0.6)
        pairs += sum(len(some) for some in near)
        group = np.arange(len(here) + len(there))
        for number, some in enumerate(near):
            for row in some:
                group[group == group[row]] = group[len(here) + number]
        largest += np.bincount(group).max()
    (gate,) = advice.gates
    assert gate.candidates == pytest.approx(pairs / sum(len(here) for here in frames[:-1]))
    assert gate.in_one_component == pytest.approx(largest / sum(map(len, frames[:-1] + frames[1:])))


def test_the_advice_helps():
    """Steps as many times shorter as is advised give links as good as is promised."""
    advice = advise(simulated(0.2).detections)
    assert advice.shorter is not None
    assert 0 < advice.shorter < 1
    assert "times shorter" in str(advice)
    again = advise(simulated(0.2 * advice.shorter).detections)
    best = again.gates[again.best]
    tracks = track(
        simulated(0.2 * advice.shorter).detections, TrackingSettings(max_distance=best.max_distance)
    ).tracks
    f1 = score(tracks, simulated(0.2 * advice.shorter), families=("links",)).values["link_f1"]
    assert 0.987 < f1 < 0.999
    easy = advise(simulated(0.02).detections)
    assert easy.shorter == 1
    assert "no need" in str(easy)


def test_the_advice_knows_units_flat_axes_and_spacing():
    seen = simulated(0.15, particles=300).detections
    advice = advise(seen)
    larger = advise(Detections(seen.frame, seen.position * (0.5, 4, 4)), spacing=(8, 1, 1))
    assert larger.step == pytest.approx(4 * advice.step, rel=1e-6)
    assert larger.kappa == pytest.approx(advice.kappa, rel=1e-6)
    assert [gate.wrong for gate in larger.gates] == pytest.approx([gate.wrong for gate in advice.gates])
    rng = np.random.default_rng(1)
    flat = rng.uniform(0, 20, (400, 2)) + np.cumsum(rng.normal(0, 0.1, (5, 400, 2)), axis=0)
    advice = advise(Detections.from_table(np.repeat(np.arange(5), 400), flat.reshape(-1, 2)))
    assert advice.axes == 2
    assert advice.kappa == pytest.approx(0.1, rel=0.2)


@pytest.mark.parametrize("frames", [[], [5], [1, 1, 1], [5, 1, 5]], ids=str)
def test_movies_with_too_little_to_advise_on_are_refused(frames):
    frame = np.repeat(np.arange(len(frames)), frames)
    with pytest.raises(InputError, match="Nothing can be said"):
        advise(Detections.from_table(frame, np.random.default_rng(0).random((len(frame), 3))))


@pytest.mark.smoke
def test_the_command(tmp_path):
    seen = tmp_path / "seen.csv"
    write_detections(seen, simulated(0.1, particles=200, frames=4).detections)
    assert re.search(r"kappa 0\.(0[89]|1)", succeed("advise", seen).output)
    values = json.loads(run("advise", seen, "--json", "--max-distance", 0.4, "--max-distance", 0.3).stdout)
    assert [gate["max_distance"] for gate in values["gates"]] == [0.3, 0.4]
    assert values["advice"]
    assert run("advise", seen, "--spacing", 0, 1, 1).exit_code == 2
    assert run("advise", seen, "--max-distance", 0).exit_code == 2


def test_a_drift_is_reported_and_taken_out():
    """Steps and errors are those of the particles beside the drift."""
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 8, (500, 3)) + np.cumsum(rng.normal(0, 0.1, (6, 500, 3)), axis=0)
    frame = np.repeat(np.arange(6), 500)
    still = advise(Detections.from_table(frame, place.reshape(-1, 3)))
    moved = advise(
        Detections.from_table(frame, (place + np.arange(6)[:, None, None] * [0, 0, 2]).reshape(-1, 3))
    )
    assert still.drift == 0
    assert "Whole frames" not in str(still)
    assert moved.drift == pytest.approx(2, abs=0.05)
    assert "Whole frames move, by up to 2" in str(moved)
    assert moved.step == pytest.approx(still.step, rel=0.1)
    assert moved.gates[moved.best].error == pytest.approx(still.gates[still.best].error, abs=0.01)


def test_columns_that_are_named_are_advised_on(tmp_path: Path) -> None:
    """What is learned of them from the movie itself."""
    truth = simulated(0.2, particles=150)
    rng = np.random.default_rng(5)
    kept = rng.normal(size=truth.track_count)[truth.track_id] + rng.normal(0, 0.3, len(truth.track_id))
    features = {"area": kept, "white": rng.normal(size=len(kept))}
    write_detections(tmp_path / "a.csv", replace(truth.detections, features=features))
    said = succeed("advise", tmp_path / "a.csv", "--features", "area", "--features", "white", "--json")
    found = json.loads(said.stdout)
    tracked = track(tmp_path / "a.csv", features={"area": "", "white": ""}, divisions=False).learned
    assert found["columns"] == tracked.as_dict()["columns"]
    assert found["columns"]["links"]["area"] > 0.5 > found["columns"]["links"]["white"]
    assert "area" in " ".join(found["advice"])
    assert advise(truth.detections).columns is None
