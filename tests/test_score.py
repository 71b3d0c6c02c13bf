"""The door of the scores: settings, provenance, the table, and inputs at the edge."""

import json
import math

import numpy as np
import pytest
from scenes import SCENES, tracks_of

from outbid import Detections, ResourceError, Scores, SettingsError, Tracks, score
from outbid.scoring import FAMILIES, matched


@pytest.mark.parametrize("name", SCENES)
def test_every_scene_gets_every_score(name: str) -> None:
    found = score(SCENES[name].tracks, SCENES[name].truth)
    assert set(found.values) == set(score(SCENES["perfect"].tracks, SCENES["perfect"].truth).values)
    assert all(isinstance(value, int | float) and not math.isinf(value) for value in found.values.values())


def test_families_are_what_was_asked_for() -> None:
    scene = SCENES["division"]
    whole = score(scene.tracks, scene.truth).values
    parts = [score(scene.tracks, scene.truth, families=[name]).values for name in FAMILIES]
    assert [len(part) for part in parts] == [7, 5, 9, 6, 6]
    assert {key: value for part in parts for key, value in part.items()} == pytest.approx(whole, nan_ok=True)


@pytest.mark.parametrize("gate", [0.0, -1.0, math.nan, math.inf])
def test_a_gate_that_is_no_distance_is_refused(gate: float) -> None:
    with pytest.raises(SettingsError, match="gate"):
        score(SCENES["perfect"].tracks, SCENES["perfect"].truth, gate=gate)


def test_an_unknown_family_is_refused_with_those_there_are() -> None:
    with pytest.raises(SettingsError, match="links, particles, identity"):
        score(SCENES["perfect"].tracks, SCENES["perfect"].truth, families=["linkz"])


def test_provenance_says_how_detections_were_paired_and_is_json() -> None:
    same, other = (
        score(SCENES[name].tracks, SCENES[name].truth).provenance for name in ("reordered", "shifted")
    )
    assert same["pairing"] == "same detections"
    assert other["pairing"] == "by distance"
    assert json.loads(json.dumps(other)) == other
    assert other["truth"] == {"detections": 6, "links": 4, "tracks": 2, "unit": "pixel"}


def test_the_table_has_a_line_for_each_score_in_columns() -> None:
    found = score(SCENES["swap"].tracks, SCENES["swap"].truth)
    lines = str(found).splitlines()
    assert len(lines) == len(found.values) - 12  # nothing divides or merges
    assert len({len(line) for line in lines}) == 1
    assert "hota                  0.6325" in lines
    assert str(Scores({}, {})) == ""


@pytest.mark.parametrize(
    ("name", "shown"),
    [("division", "1.0000"), ("missed division", "0.0000"), ("false division", "0.0000"), ("swap", None)],
)
def test_divisions_are_in_the_table_where_there_are_any(name: str, shown: str | None) -> None:
    found = score(SCENES[name].tracks, SCENES[name].truth)
    table = dict(line.split() for line in str(found).splitlines())
    assert table.get("division_f1") == shown
    assert ("n_found_divisions" in table) == (shown is not None)
    assert ("divisions" in found.remark) == (shown is None)
    assert "n_true_divisions" in found.values  # whatever the table shows


def test_a_wider_gate_reaches_farther() -> None:
    scene = SCENES["shifted"]
    assert score(scene.tracks, scene.truth, gate=1.0).values["link_f1"] == 0  # at the gate is not within it
    assert score(scene.tracks, scene.truth, gate=1.1).values["link_f1"] == 1


def test_known_detections_are_not_paired_by_distance() -> None:
    """Neighbours much nearer than the gate do not blur which detection is which."""
    seen = Detections.from_table([0, 0, 1, 1], [[0, 0, 0], [0, 0, 0.1], [0, 0, 0.1], [0, 0, 0]])
    truth = Tracks(seen, np.array([[0, 2], [1, 3]]))
    crossed = Tracks(seen, np.array([[0, 3], [1, 2]]))
    found = score(crossed, truth).values
    assert found["link_f1"] == 0
    assert found["idf1"] == 0.5
    assert found["id_switches"] == 2


def test_points_on_each_other_keep_their_order() -> None:
    seen = Detections.from_table([0, 0, 1, 1], np.zeros((4, 3)))
    truth = Tracks(seen, np.array([[0, 2], [1, 3]]))
    assert score(truth, truth).values["link_f1"] == 1


def test_frames_far_apart_and_negative_cost_no_memory() -> None:
    far = np.array([-5, 2_000_000_000], dtype=np.int32)
    truth = Tracks(Detections.from_table(far, np.zeros((2, 3))), np.array([[0, 1]]))
    moved = Tracks(Detections.from_table(far, np.tile([0, 0, 1.0], (2, 1))), np.array([[0, 1]]))
    found = score(moved, truth).values
    assert found["link_f1"] == 1
    assert found["idf1"] == 1
    assert found["alpha"] == pytest.approx(0, abs=1e-8)  # of 2e9 frames two are seen


def test_too_many_pairs_are_refused_before_the_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matched, "_MOST_PAIR_BYTES", 100)
    points = Detections.from_table(np.zeros(20, int), np.random.default_rng(0).random((20, 3)))
    other = Detections.from_table(np.zeros(20, int), np.random.default_rng(1).random((20, 3)))
    no_links = np.empty((0, 2), np.int64)
    for family in FAMILIES:
        with pytest.raises(ResourceError):
            score(Tracks(points, no_links), Tracks(other, no_links), families=[family])


def test_two_dimensional_scenes_score_like_their_projection() -> None:
    flat = tracks_of("a0 a1 a2", "b0 b1 b2")
    table = Detections.from_table(flat.detections.frame, flat.detections.position[:, 1:])
    assert score(Tracks(table, flat.links), flat).values["link_f1"] == 1


def test_progress_is_reported_before_each_family_and_may_end_the_scoring() -> None:
    scene, reported = SCENES["swap"], []
    score(scene.tracks, scene.truth, progress=lambda done, of: reported.append((done, of)))
    assert reported == [(done, 5) for done in range(5)]

    def stop(done: int, _: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score(scene.tracks, scene.truth, progress=stop)
