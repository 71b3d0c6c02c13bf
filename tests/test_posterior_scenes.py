"""The posterior over links where frames were lost, gaps are long and the stage moves."""

import numpy as np
import pytest
from scenes import blinking, carried, lost, over_gaps, share_of_right

from outbid import TrackingSettings, Tracks, score
from outbid.learned.linking import linked as learned_links
from outbid.learned.model.advection import advected
from outbid.learned.model.movie import movie_of
from outbid.learned.summary import Summary
from outbid.simulate.scenes import Scene


def linked(truth: Tracks, max_gap: int | None = None) -> tuple[Summary, Tracks, float]:
    """What is learned, the tracks, and their link F1."""
    shown, links = learned_links(truth.detections, TrackingSettings(divisions=False, max_gap=max_gap))
    tracks = Tracks(truth.detections, links.pairs)
    return shown, tracks, score(tracks, truth, gate=1e-6, families=("links",)).values["link_f1"]


def test_a_frame_that_shows_no_flow_goes_on_as_the_last_one_that_does() -> None:
    place = np.array([[0.0], [9.0], [1.0], [10.0], [5.0], [14.0]])
    start = np.array([0, 2, 4, 4, 6])  # nothing is seen in the third frame
    flow = np.array([[1.0], [1.0], [0.0], [0.0], [0.0], [0.0]])
    ways = advected(movie_of(place, start, spacing=1.0), flow, np.array([0, 2]), 2)
    assert [way.ravel().tolist() for way in ways] == [[1.0, 1.0], [2.0, 2.0]]


@pytest.mark.parametrize("disc", [0.0, 0.2])
def test_gaps_are_closed_on_a_stage_that_jitters(disc: float) -> None:
    truth = carried(0.4, disc=disc)
    _, tracks, f1 = linked(truth)
    assert over_gaps(truth, tracks) > 0.985
    assert f1 > 0.998


@pytest.mark.smoke
def test_steps_over_lost_frames_are_those_of_all_intervals() -> None:
    """Particles that keep a direction go farther than those that diffuse."""
    scene = Scene(0.12, 20.0, particles=300, frames=50, turnover=0.0)
    truth = lost(scene.film(2), np.arange(20, 24))
    shown, tracks, _ = linked(truth)
    across = tracks.detections.frame[tracks.links[:, 0]] == 19
    assert share_of_right(tracks.links[across], truth) > 0.9
    assert across.sum() > 0.9 * 300
    assert shown.step_scale is None


@pytest.mark.slow
@pytest.mark.parametrize(("missed", "longest", "least"), [(0.1, 6, 0.98), (0.4, 8, 0.98), (0.6, 12, 0.97)])
def test_gaps_are_as_long_as_particles_are_missed(missed: float, longest: int, least: float) -> None:
    truth = blinking(missed)
    shown, tracks, f1 = linked(truth)
    frame = tracks.detections.frame
    assert (len(shown.follow) >= longest) == (missed > 0.1)
    assert np.diff(frame[tracks.links], axis=1).max() >= longest - 2
    assert f1 > 0.98
    assert score(tracks, truth, gate=1e-6, families=("identity",)).values["idf1"] > least
    assert shown.end < 0.01


@pytest.mark.parametrize("max_gap", [1, 9])
def test_a_gap_that_is_given_is_neither_longer_nor_shorter(max_gap: int) -> None:
    truth = blinking(0.6)
    shown, tracks, _ = linked(truth, max_gap)
    assert np.diff(tracks.detections.frame[tracks.links], axis=1).max() == max_gap + 1
    assert len(shown.follow) == max_gap + 1
