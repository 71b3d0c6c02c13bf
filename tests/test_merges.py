"""Merges: found where particles fuse and they are asked for, and nowhere else."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import run, succeed
from scenes import backward, merged, tissue

from outbid import Detections, TrackingSettings, Tracks, read_tracks, score, track, write_tracks
from outbid.simulate.motions import BrownianWalk
from outbid.simulate.walks import WalkSettings, walk


@pytest.mark.slow
def test_particles_that_fuse_are_found_if_asked_for() -> None:
    truth = backward(tissue(apart=0.15))
    run = track(truth.detections, TrackingSettings(merges=True))
    values = score(run.tracks, truth, families=["merges"]).values
    assert values["n_true_merges"] > 60
    assert values["merge_f1"] > 0.85
    assert run.stats["merges"] == values["n_found_merges"]
    assert run.stats["divisions"] == 0
    probability = run.tracks.link_probability
    assert probability is not None
    assert ((probability > 0) & (probability <= 1)).all()
    unasked = track(truth.detections, TrackingSettings())
    assert unasked.stats["merges"] == unasked.stats["divisions"] == 0


def test_scores_distinguish_right_merges_from_others() -> None:
    """Scored by distance and by identity, against the scores of divisions in the movie run backward."""
    truth = backward(tissue(cells=60, apart=0.15))
    found = track(truth.detections, TrackingSettings(merges=True)).tracks
    back = score(backward(found), backward(truth), families=["divisions"]).values
    moved = Detections(truth.detections.frame, truth.detections.position + 1e-6)
    for side in (truth, Tracks(moved, truth.links)):
        values = score(found, side, gate=0.05, families=["merges"]).values
        assert list(values.values()) == list(back.values())
    single = Tracks(truth.detections, truth.links[np.unique(truth.links[:, 1], return_index=True)[1]])
    assert score(single, truth).values["merge_recall"] == 0
    assert "merge" not in str(score(single, single))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ascidian/Pm08.csv", "celegans/L1.csv"])
def test_real_embryos_run_backward_merge(real_data, name: str) -> None:
    truth = backward(read_tracks(real_data / name))
    run = track(truth.detections, TrackingSettings(merges=True))
    assert score(run.tracks, truth, families=["merges"]).values["merge_f1"] > 0.9
    assert run.stats["divisions"] == 0


@pytest.mark.slow
def test_a_movie_that_divides_does_not_merge() -> None:
    seen = tissue().detections
    asked, unasked = (track(seen, TrackingSettings(merges=merges)).tracks for merges in (True, False))
    assert (asked.links == unasked.links).all()
    assert asked.predecessors.max() == 1


def test_spots_that_cross_do_not_merge() -> None:
    seen = walk(WalkSettings(BrownianWalk(0.8), 100, 30, (12, 60, 60), "reflect", 0.01, 0.01)).detections
    crossing = merged(seen, 3.0, np.random.default_rng(0))
    assert track(crossing, TrackingSettings(merges=True)).stats["merges"] == 0


@pytest.mark.smoke
def test_what_fuses_is_found_written_and_scored(tmp_path: Path) -> None:
    write_tracks(tmp_path / "truth.csv", backward(tissue(cells=60, frames=20, apart=0.15)))
    done = run("track", tmp_path / "truth.csv", "-o", tmp_path / "tracks.csv", "--merges", "--json")
    found = json.loads(done.stdout)
    assert found["merges"] >= 10
    assert f"{found['merges']} merges" in done.stderr
    assert (read_tracks(tmp_path / "tracks.csv").predecessors == 2).sum() == found["merges"]
    succeed("score", tmp_path / "tracks.csv", tmp_path / "truth.csv", "--fail-under", "merge_f1=0.8")
    without = run("track", tmp_path / "truth.csv", "-o", tmp_path / "without.csv", "--json")
    assert json.loads(without.stdout)["merges"] == 0
    assert "Merges" not in without.stderr
