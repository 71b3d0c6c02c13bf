"""What is learned where particles are crowded: rates, clutter, and links as good as any gate gives."""

from __future__ import annotations

import numpy as np
import pytest

from outbid.simulate.scenes import Scene
from outbid.tracker import TrackingSettings, Tracks, score, track
from outbid.tracker.calibrate import calibrate


def f1_of(tracks: Tracks, truth: Tracks) -> float:
    return score(tracks, truth, families=("links",)).values["link_f1"]


@pytest.mark.parametrize(("clutter", "share"), [(0.0, 0.0), (0.1, 0.09)])
def test_clutter_is_told_from_births_and_deaths(clutter, share):
    truth = Scene(0.15, clutter=clutter, particles=800).film(1)
    learned, _ = calibrate(truth.detections)
    assert learned.model.clutter == pytest.approx(share, abs=0.03)
    assert learned.model.end == pytest.approx(0.02 + share, abs=0.03)


@pytest.mark.parametrize(("kappa", "clutter"), [(0.15, 0.1), (0.3, 0.0), (0.4, 0.0)])
def test_no_gate_does_better(kappa, clutter):
    """Where there is clutter, links are better than those of any gate; as good in crowds."""
    truth = Scene(kappa, clutter=clutter, particles=800, frames=12).film(2)
    gated = max(
        f1_of(
            track(truth.detections, TrackingSettings(max_distance=gate * kappa, cost="squared")).tracks, truth
        )
        for gate in (2.5, 3, 3.5, 4, 5)
    )
    learned = f1_of(track(truth.detections, TrackingSettings()).tracks, truth)
    assert learned > gated + (0.005 if clutter else 0.0)


@pytest.mark.parametrize("persistence", [0.0, 3.0])
def test_ends_are_not_overrated_where_many_links_could_swap(persistence):
    """Belief propagation sees .08 to .15, which are .02."""
    learned, _ = calibrate(Scene(0.3, persistence, particles=800).film(1).detections)
    assert learned.model.end < 0.045


def test_misses_that_last_are_learnt():
    """Particles that meet are seen as one for some frames: more links over three than independent misses."""
    whole = Scene(0.1, 5.0, turnover=0.0, particles=500, frames=30).film(3)
    kept = ~(np.isin(whole.detections.frame, [9, 10, 19, 20]) & (whole.track_id % 10 == 0))
    seen, track_id = whole.detections.take(kept), whole.track_id[kept]
    order = np.lexsort((seen.frame, track_id))
    pairs = np.column_stack([order[:-1], order[1:]])[np.diff(track_id[order]) == 0]
    over = set(map(tuple, pairs[seen.frame[pairs[:, 1]] - seen.frame[pairs[:, 0]] == 3].tolist()))
    assert len(over) == 100
    learned, links = calibrate(seen)
    assert learned.model.follow[2] == pytest.approx(len(over) / len(pairs), rel=0.3)
    assert len(over & set(map(tuple, links.pairs.tolist()))) > 90
