"""Identity scores: by hand on the scenes, as another program has them, and what must always hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import SCENES

from outbid import Detections, Tracks, score

NAN = float("nan")
KEYS = (
    "idf1", "mota", "id_switches", "hota", "det_a", "ass_a", "complete_tracks", "track_purity",
    "target_effectiveness",
)  # fmt: skip


def identity_values(truth: Tracks, tracks: Tracks, gate: float = 5.0) -> list[float]:
    found = score(tracks, truth, gate=gate, families=["identity"]).values
    return [found[key] for key in KEYS]


# Thresholds are .05 to .95, so a distance of 1 within a gate of 5, similarity .8, passes 16 of 19,
# and a distance of 2, similarity .6, passes 12.
BY_HAND = {
    "perfect": (1, 1, 0, 1, 1, 1, 1, 1, 1),
    "reordered": (1, 1, 0, 1, 1, 1, 1, 1, 1),
    "shifted": (1, 1, 0, 16 / 19, 16 / 19, 16 / 19, 1, 1, 1),
    # a is in two tracks: 2 frames of 3, and 1 of 3
    "missed link": (5 / 6, 5 / 6, 1, np.sqrt(7 / 9), 1, 7 / 9, 1 / 2, 1, 5 / 6),
    # both tracks: 2 of the 4 frames that the two cover, then 1 of 5
    "swap": (2 / 3, 2 / 3, 2, np.sqrt(0.4), 1, 0.4, 0, 2 / 3, 2 / 3),
    "gap": (10 / 11, 5 / 6, 0, np.sqrt(13 / 18), 5 / 6, 13 / 15, 1 / 2, 1, 5 / 6),
    "gap in both": (1, 1, 0, 1, 1, 1, 1, 1, 1),
    "spurious track": (0.8, 0.5, 0, np.sqrt(2 / 3), 2 / 3, 1, 1, 2 / 3, 1),
    "missed track": (2 / 3, 0.5, 0, np.sqrt(0.5), 0.5, 1, 0.5, 1, 0.5),
    # HOTA and MOTA stay with p, which was there before and after; the frame alone would have q
    "decoy": (6 / 7, 2 / 3, 0, 12 / 19 * np.sqrt(0.75), 12 / 19 * 0.75, 12 / 19, 0, 3 / 4, 2 / 3),
    "division": (1, 1, 0, 1, 1, 1, 1, 1, 1),
    "missed division": (3 / 4, 1, 0, np.sqrt(2 / 3), 1, 2 / 3, 1 / 3, 3 / 4, 1),
    "no links": (1 / 3, 1 / 3, 4, np.sqrt(1 / 3), 1, 1 / 3, 0, 1, 1 / 3),
    "one frame": (1, 1, 0, 1, 1, 1, 1, 1, 1),
    "no common frames": (0, -0.5, 0, 0, 0, 0, 0, 0, 0),
    "nothing found": (0, 0, 0, 0, 0, 0, 0, NAN, 0),
    "nothing true": (0, NAN, 0, 0, 0, 0, NAN, 0, NAN),
    "nothing at all": (NAN, NAN, 0, NAN, NAN, NAN, NAN, NAN, NAN),
}


@pytest.mark.smoke
@pytest.mark.parametrize("name", BY_HAND)
def test_scenes_by_hand(name: str) -> None:
    found = identity_values(SCENES[name].truth, SCENES[name].tracks)
    np.testing.assert_allclose(found, BY_HAND[name], rtol=1e-12)


def test_forty_swaps_hide_in_link_scores_but_not_in_identity_scores() -> None:
    """200 tracks of 50 frames in which 40 times two change places for good."""
    rng = np.random.default_rng(1)
    count, frames = 200, 50
    seen = Detections.from_table(
        np.repeat(np.arange(frames), count), rng.uniform(0, 1000, (count * frames, 3))
    )
    ids = np.tile(np.arange(count), (frames, 1))
    for _ in range(40):
        since, (a, b) = rng.integers(1, frames), rng.choice(count, 2, replace=False)
        ids[since:, [a, b]] = ids[since:, [b, a]]
    found = score(
        Tracks.from_track_ids(seen, ids.ravel()),
        Tracks.from_track_ids(seen, np.tile(np.arange(count), frames)),
    ).values
    assert found["id_switches"] == 80
    assert found["mota"] == pytest.approx(0.992, abs=1e-12)
    assert found["link_f1"] == pytest.approx(0.992, abs=5e-4)
    # Of a random draw: what the published example has, within a few hundredths.
    assert found["idf1"] == pytest.approx(0.905, abs=0.03)
    assert found["complete_tracks"] == pytest.approx(0.68, abs=0.05)
    # TrackEval 1.3.0 on this very draw gives the same HOTA.
    assert found["hota"] == pytest.approx(GOLDEN_SWAPS, abs=1e-9)


# Made by TrackEval 1.3.0 (HOTA; CLEAR and Identity with threshold 1e-9) from `crowd(...)`, similarity
# 1 - distance / 5.
GOLDEN_SWAPS = 0.9175016190121291
GOLDEN_CROWDS: dict[tuple[int, float], tuple[float, ...]] = {
    (0, 100.0): (0.661134163208852, 0.73006993006993, 27.0, 0.4668097271436301, 0.5738123218857778,
                 0.38097357110580266),
    (1, 30.0): (0.6569444444444444, 0.71004243281471, 35.0, 0.4622772905657999, 0.5694577939655118,
                0.3761950547483965),
    (2, 15.0): (0.6652949245541838, 0.7368421052631579, 58.0, 0.4764138539139585, 0.5919067063311974,
                0.38458803006199876),
    (3, 10.0): (0.7179846046186145, 0.6732673267326733, 108.0, 0.48288668039800986, 0.572342976900539,
                0.40862325867051613),
}  # fmt: skip


def crowd(seed: int, box: float) -> tuple[Tracks, Tracks]:
    """Truth and tracks of 30 particles with swaps, misses on both sides, noise and clutter."""
    rng = np.random.default_rng(seed)
    count, frames, clutter = 30, 25, 60
    position = rng.uniform(0, box, (count, 3)) + np.cumsum(rng.normal(0, 1, (frames, count, 3)), axis=0)
    position = position.reshape(-1, 3)
    frame, true_id = np.repeat(np.arange(frames), count), np.tile(np.arange(count), frames)
    ids = np.tile(np.arange(count), (frames, 1))
    for _ in range(15):
        since, (a, b) = rng.integers(1, frames), rng.choice(count, 2, replace=False)
        ids[since:, [a, b]] = ids[since:, [b, a]]
    known, seen = rng.random(len(frame)) > 0.05, rng.random(len(frame)) > 0.1
    found_frame = np.concatenate([frame[seen], rng.integers(0, frames, clutter)])
    found_position = np.concatenate(
        [(position + rng.normal(0, 0.8, position.shape))[seen], rng.uniform(0, box, (clutter, 3))]
    )
    found_id = np.concatenate([ids.ravel()[seen], 1000 + np.arange(clutter)])
    order = np.argsort(found_frame, kind="stable")
    return (
        Tracks.from_track_ids(Detections.from_table(frame[known], position[known]), true_id[known]),
        Tracks.from_track_ids(
            Detections.from_table(found_frame[order], found_position[order]), found_id[order]
        ),
    )


@pytest.mark.parametrize(("seed", "box"), GOLDEN_CROWDS)
def test_crowds_score_as_in_trackeval(seed: int, box: float) -> None:
    truth, tracks = crowd(seed, box)
    found = identity_values(truth, tracks)[:6]
    np.testing.assert_allclose(found, GOLDEN_CROWDS[seed, box], rtol=1e-9)


@given(seed=st.integers(0, 10**6), box=st.sampled_from([10.0, 40.0]))
def test_scores_lie_between_zero_and_one_and_ignore_order(seed: int, box: float) -> None:
    truth, tracks = crowd(seed, box)
    found = np.array(identity_values(truth, tracks))
    switches, mota = found[KEYS.index("id_switches")], found[KEYS.index("mota")]
    assert switches >= 0
    assert mota <= 1
    rest = np.delete(found, [KEYS.index("id_switches"), KEYS.index("mota")])
    assert ((rest >= 0) & (rest <= 1)).all()
    assert not np.isclose(found[0], 1)  # there are clutter and misses
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(tracks.detections)), tracks.detections.frame))
    moved = Detections.from_table(tracks.detections.frame, tracks.detections.position[order])
    shuffled = Tracks.from_track_ids(moved, rng.permutation(tracks.track_count)[tracks.track_id][order])
    np.testing.assert_allclose(identity_values(truth, shuffled), found, rtol=1e-9)


@given(seed=st.integers(0, 10**6))
def test_tracks_scored_against_themselves_are_perfect(seed: int) -> None:
    truth, _ = crowd(seed, 10.0)
    assert identity_values(truth, truth) == [1, 1, 0, 1, 1, 1, 1, 1, 1]
