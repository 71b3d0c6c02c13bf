"""Link scores by hand, and what must hold for all movies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import SCENES

from outbid import Detections, SettingsError, Tracks, score
from outbid.viewers.judged import judge_links

NAN = float("nan")

# scene: true, predicted and correct links
COUNTS = {
    "perfect": (4, 4, 4),
    "reordered": (4, 4, 4),
    "shifted": (4, 4, 4),
    "missed link": (4, 3, 3),
    "swap": (4, 4, 2),
    "gap": (4, 3, 3),  # a1 was not detected, so a0-a2 is right
    "gap in both": (3, 3, 3),
    "gap in the truth": (3, 4, 2),
    "spurious track": (4, 6, 4),
    "missed track": (4, 2, 2),
    "decoy": (2, 2, 0),  # q1 is nearer to a1 than p1, so both of p's links join nothing true
    "division": (1, 1, 1),  # of three links two divide, and are not counted on either side
    "missed division": (1, 1, 1),  # a1-d2 is one of the two that divide
    "wrong daughter": (3, 3, 2),  # a1-b2 leaves a division, but to another cell: false
    "false division": (4, 4, 3),
    "no links": (4, 0, 0),
    "one frame": (0, 0, 0),
    "no common frames": (4, 2, 0),
    "nothing found": (4, 0, 0),
    "nothing true": (0, 4, 0),
    "nothing at all": (0, 0, 0),
}


def link_values(truth: Tracks, tracks: Tracks, gate: float = 5.0) -> dict[str, float]:
    return score(tracks, truth, gate=gate, families=["links"]).values


@pytest.mark.smoke
@pytest.mark.parametrize("name", SCENES)
def test_counts_of_each_scene(name: str) -> None:
    found = link_values(SCENES[name].truth, SCENES[name].tracks)
    counted = tuple(found[key] for key in ("n_true_links", "n_predicted_links", "n_correct_links"))
    assert counted == COUNTS[name]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "precision", "recall", "f1", "jaccard"),
    [
        ("perfect", 1, 1, 1, 1),
        ("missed link", 1, 3 / 4, 6 / 7, 3 / 4),
        ("swap", 1 / 2, 1 / 2, 1 / 2, 1 / 3),
        ("gap", 1, 3 / 4, 6 / 7, 3 / 4),
        ("nothing found", NAN, 0, 0, 0),
        ("nothing true", 0, NAN, 0, 0),
        ("one frame", NAN, NAN, NAN, NAN),
    ],
)
def test_ratios(name: str, precision: float, recall: float, f1: float, jaccard: float) -> None:
    found = link_values(SCENES[name].truth, SCENES[name].tracks)
    keys = ("link_precision", "link_recall", "link_f1", "link_jaccard")
    np.testing.assert_allclose([found[key] for key in keys], [precision, recall, f1, jaccard])


@given(seed=st.integers(0, 10**6), keep=st.floats(0, 1))
def test_links_taken_away_and_points_shuffled(seed: int, keep: float) -> None:
    """Of true links some are kept and none added: precision 1; the rows' order does not matter."""
    rng = np.random.default_rng(seed)
    frames, particles = 5, 6
    truth = Tracks.from_track_ids(
        Detections.from_table(
            np.repeat(np.arange(frames), particles), rng.uniform(0, 100, (frames * particles, 3))
        ),
        np.tile(np.arange(particles), frames),
    )
    kept = truth.links[rng.random(len(truth.links)) < keep]
    # Rows move inside their frames only.
    order = np.lexsort((rng.random(len(truth.detections)), truth.detections.frame))
    place = np.argsort(order)
    moved = Detections.from_table(truth.detections.frame, truth.detections.position[order])
    found = link_values(truth, Tracks(moved, place[kept]))
    assert found["n_correct_links"] == found["n_predicted_links"] == len(kept)
    assert found["link_recall"] == pytest.approx(len(kept) / len(truth.links))


@given(seed=st.integers(0, 10**6))
def test_pairing_by_distance_finds_what_is_known(seed: int) -> None:
    """Points far apart, moved a little: the same scores as if it were known which is which."""
    rng = np.random.default_rng(seed)
    frames, particles = 4, 8
    corner = np.stack(np.meshgrid(*[[0, 20]] * 3), axis=-1).reshape(-1, 3)
    seen = Detections.from_table(np.repeat(np.arange(frames), particles), np.tile(corner, (frames, 1)))
    ids = np.concatenate([rng.permutation(particles) for _ in range(frames)])
    truth = Tracks.from_track_ids(seen, np.tile(np.arange(particles), frames))
    moved = Detections.from_table(seen.frame, seen.position + rng.uniform(-2, 2, seen.position.shape))
    known = link_values(truth, Tracks.from_track_ids(seen, ids))
    paired = link_values(truth, Tracks.from_track_ids(moved, ids))
    assert paired == known


def test_a_link_over_a_missed_frame_is_right_and_stated_apart() -> None:
    gap = SCENES["gap"]
    found = score(gap.tracks, gap.truth, gate=5.0)
    assert found["n_correct_links_over_missed_frames"] == 1
    assert "1 right link over a missed frame;" in found.remark
    assert found.provenance["link_rule"] == "particle"
    strict = score(gap.tracks, gap.truth, gate=5.0, link_rule="edge")
    assert [strict[f"n_{name}_links"] for name in ("true", "predicted", "correct")] == [4, 3, 2]
    assert "over missed" not in strict.remark
    assert "over_missed" not in str(strict)
    with pytest.raises(SettingsError, match="edge"):
        score(gap.tracks, gap.truth, link_rule="ctc")


def test_a_link_past_a_detection_of_its_particle_is_wrong() -> None:
    """What is in the table of the tracks was not missed, though it is in no track."""
    particle = Detections.from_table(np.arange(4), np.column_stack([[0, 1, 2, 3]] * 3))
    truth = Tracks(particle, np.array([[0, 1], [1, 2], [2, 3]]))
    found = link_values(truth, Tracks(particle, np.array([[0, 2], [2, 3]])))
    assert (found["n_correct_links"], found["n_correct_links_over_missed_frames"]) == (1, 0)


def test_no_link_over_a_missed_frame_passes_a_division_or_goes_back_to_another() -> None:
    truth = SCENES["division"].truth  # a0 a1, then d2 and e2
    seen = truth.detections
    kept = np.array([0, 2, 3])
    tracks = Tracks(Detections.from_table(seen.frame[kept], seen.position[kept]), np.array([[0, 1], [0, 2]]))
    assert link_values(truth, tracks)["n_correct_links"] == 0


@given(seed=st.integers(0, 10**6), missed=st.floats(0, 0.9))
def test_tracks_without_missed_detections_have_no_wrong_link(seed: int, missed: float) -> None:
    """The truth less some detections, linked across them: all links are right, and judged so one by one."""
    rng = np.random.default_rng(seed)
    frames, particles = 8, 5
    frame, number = np.divmod(np.arange(frames * particles), particles)
    place = np.column_stack([0 * number, 30.0 * number, frame]).astype(float)
    truth = Tracks.from_track_ids(Detections.from_table(frame, place), number)
    kept = rng.random(len(frame)) >= missed
    tracks = Tracks.from_track_ids(Detections.from_table(frame[kept], place[kept]), number[kept])
    found, judged = link_values(truth, tracks), judge_links(tracks, truth, gate=5.0)
    gaps = np.diff(tracks.detections.frame[tracks.links], axis=1)[:, 0] > 1
    assert found["n_correct_links"] == found["n_predicted_links"] == judged.right.sum() == len(tracks.links)
    assert found["n_correct_links_over_missed_frames"] == gaps.sum()
    assert judged.found_again.sum() == found["n_correct_links"]
