"""Reliability of tracks: expected number of wrong links against the truth, and warnings if it is large."""

import logging

import numpy as np
import pytest
from commands import run

import outbid
from outbid import Detections, Tracks
from outbid.data import sample
from outbid.particles.reliability import reliability_of, sentence_on, warning_on
from outbid.simulate.scenes import Scene
from outbid.viewers.judged import judge_links

LINE = Detections.from_table(range(4), [[0, 0, x] for x in range(4)])
LINKS = np.array([[0, 1], [1, 2], [2, 3]])


def with_probability(*values: float) -> Tracks:
    return Tracks(LINE, LINKS, link_probability=np.array(values))


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((1, 1, 1), "detections; none of 3 links is expected to be wrong; no track is doubtful."),
        ((1, 0, 1), "about 1 (0 to 2) of 3 links is expected to be wrong; 1 track is doubtful."),
        ((0.2, 0.1, np.nan), "about 2 (0 to 2) of 2 links are expected to be wrong; 1 track is doubtful."),
        ((np.nan,) * 3, "1 track from 4 detections; 3 links, without probabilities."),
    ],
)
def test_the_sentence(values: tuple[float, ...], said: str) -> None:
    assert sentence_on(with_probability(*values)).endswith(said)


def test_single_detections_are_tracks_and_said_apart() -> None:
    said = sentence_on(Tracks(LINE, LINKS[:1]))
    assert said == "3 tracks, 2 of them single detections, from 4 detections; 1 link, without probabilities."


def test_a_warning_above_a_tenth() -> None:
    assert warning_on(with_probability(0.9, 0.9, 0.91)) == ""
    assert "13 % of the links" in warning_on(with_probability(0.9, 0.9, 0.8))
    assert warning_on(Tracks(LINE, LINKS)) == ""


KINDS = (
    (0.08, 0.0, 0.0, "fürth"), (0.08, 3.0, 0.05, "fürth"), (0.14, 0.0, 0.05, "fürth"),
    (0.14, 1.0, 0.0, "fürth"), (0.14, 10.0, 0.0, "fürth"), (0.14, 30.0, 0.05, "fürth"),
    (0.2, 0.0, 0.0, "fürth"), (0.2, 3.0, 0.05, "fürth"), (0.25, 0.0, 0.05, "fürth"),
    (0.25, 1.0, 0.0, "fürth"), (0.14, 0.8, 0.02, "vasconcelos"), (0.2, 0.8, 0.05, "autoregressive"),
)  # fmt: skip
"""Twelve kinds of movies: kappa, persistence, share of misses and of clutter, and walk."""


def holds(kind: tuple[float, float, float, str], seed: int) -> bool:
    """Whether the interval of a small movie holds the number of wrong links."""
    kappa, persistence, lost, walk = kind
    truth = Scene(kappa, persistence, lost, lost, walk=walk, particles=60, frames=30).film(seed)
    tracks = outbid.track(truth.detections).tracks
    found, label = reliability_of(tracks), truth.track_id[tracks.links]
    assert found is not None
    assert found.within[0] <= round(found.wrong) <= found.within[1] < found.links
    return bool(found.within[0] <= (label[:, 0] != label[:, 1]).sum() <= found.within[1])


@pytest.mark.parametrize(("seeds", "least"), [(2, 0.8), pytest.param(17, 0.9, marks=pytest.mark.slow)])
def test_intervals_hold_in_nine_of_ten_movies(seeds: int, least: float) -> None:
    """Of movies on which no level was derived; these are 40 to 46."""
    held = [holds(kind, seed) for seed in range(60, 60 + seeds) for kind in KINDS]
    assert np.mean(held) >= least


@pytest.mark.smoke
def test_expected_wrong_links_are_about_those_that_are_wrong() -> None:
    truth = outbid.read_tracks(sample("walks"))
    tracks = outbid.track(truth.detections).tracks
    judged = judge_links(tracks, truth)
    found = reliability_of(tracks)
    assert found is not None
    wrong = int((~judged.right).sum())
    assert abs(found.wrong - wrong) < 0.01 * found.links


@pytest.mark.slow
def test_random_points_are_not_linked_without_a_word(tmp_path, caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(0)
    points = Detections.from_table(np.repeat(np.arange(20), 60), rng.random((1200, 3)))
    found = outbid.track(points)
    assert found.warning
    assert found.warning in [one.message for one in caplog.records if one.levelno == logging.WARNING]
    outbid.formats.write_detections(tmp_path / "points.csv", points)
    done = run("track", tmp_path / "points.csv")
    lines = done.stderr.splitlines()
    assert lines[-1] == found.summary
    assert lines.count(found.warning) == 1
