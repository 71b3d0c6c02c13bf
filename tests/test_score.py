"""The door of the scores: settings, provenance, the table, and inputs at the edge."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run, succeed
from scenes import SCENES, tracks_of

from outbid import Detections, ResourceError, Scores, SettingsError, Tracks, read_tracks, score, write_tracks
from outbid.scoring import FAMILIES, matched
from outbid.scoring.gate import gate_for


@pytest.mark.smoke
@pytest.mark.parametrize("name", SCENES)
def test_every_scene_gets_every_score(name: str) -> None:
    found = score(SCENES[name].tracks, SCENES[name].truth)
    assert set(found.values) == set(score(SCENES["perfect"].tracks, SCENES["perfect"].truth).values)
    assert all(isinstance(value, int | float) and not math.isinf(value) for value in found.values.values())


def test_families_are_what_was_asked_for() -> None:
    scene = SCENES["division"]
    whole = score(scene.tracks, scene.truth).values
    parts = [score(scene.tracks, scene.truth, families=[name]).values for name in FAMILIES]
    assert [len(part) for part in parts] == [8, 5, 9, 6, 6]
    assert {key: value for part in parts for key, value in part.items()} == pytest.approx(whole, nan_ok=True)


def test_no_distance_and_no_family_are_refused() -> None:
    refused = [({"gate": gate}, "gate") for gate in (0.0, -1.0, math.nan, math.inf)]
    for given, said in (*refused, ({"families": ["linkz"]}, "links, particles, identity")):
        with pytest.raises(SettingsError, match=said):
            score(SCENES["perfect"].tracks, SCENES["perfect"].truth, **given)


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
    assert len(lines) == len(found.values) - 13  # nothing divides, merges or is over a missed frame
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


@pytest.mark.smoke
def test_the_usual_gate_is_half_of_the_spacing_and_is_stated() -> None:
    shifted = SCENES["shifted"]
    found = score(shifted.tracks, shifted.truth)
    assert found.provenance["gate"] == 10  # the two particles are 20 apart
    assert str(found.gate) == (
        "Gate: 10 pixel, half of the median distance from a true detection to the nearest in its frame."
    )
    assert score(shifted.tracks, shifted.truth, gate=5).provenance["gate_from"] == "given"
    alone = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 3], [0, 0, 3]])
    assert gate_for(None, Tracks(alone, np.array([[0, 1]]))).distance == 3
    assert gate_for(None, Tracks(alone, np.empty((0, 2), np.int64))).distance == 5


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_usual_gate_follows_the_unit(unit: float) -> None:
    rng = np.random.default_rng(3)
    frame, place = np.repeat(np.arange(4), 200), rng.random((800, 3)) * 10
    noise = 0.05 * rng.normal(size=place.shape)
    ids = np.tile(np.arange(200), 4)
    truth, tracks = (
        Tracks.from_track_ids(Detections.from_table(frame, unit * of), ids) for of in (place, place + noise)
    )
    found = score(tracks, truth)
    assert found.provenance["gate"] == pytest.approx(0.48 * unit, rel=0.1)
    assert found.values["link_f1"] > 0.99


def test_real_tracks_in_other_units_are_scored_with_the_usual_gate(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = real_data / "turbulence" / "tracers_2000.csv"
    truth = read_tracks(file)
    truth = truth.take(truth.detections.frame < truth.detections.first_frame + 3)
    seen = truth.detections
    moved = Detections(seen.frame, seen.position + 1e-4)
    write_tracks(tmp_path / "truth.csv", truth)
    write_tracks(tmp_path / "moved.csv", Tracks(moved, truth.links))
    both = tmp_path / "moved.csv", tmp_path / "truth.csv"
    done = succeed("score", *both, "--json")
    made = json.loads(done.stdout)
    assert made["values"]["link_f1"] == 1
    assert done.stderr.startswith(f"Gate: {made['provenance']['gate']:g} pixel, half of the median distance")
    monkeypatch.setattr(matched, "_MOST_PAIR_BYTES", 10_000_000)
    assert_refused(run("score", *both, "--gate", 5), 4, f"it would be {made['provenance']['gate']:g}.")
    page = succeed("report", *both, "-o", tmp_path / "page.html")
    assert page.stderr.startswith("Gate: ")
    assert "half of the median distance" in (tmp_path / "page.html").read_text()


def _unlike(seen: Detections, name: str) -> Detections:
    position, frame, unit = seen.position, seen.frame, seen.unit
    if name == "axes":
        position = np.ascontiguousarray(position[:, ::-1])
    if name == "unit":
        position, unit = position * 0.1, "micrometer"
    if name == "offset":
        position = position + np.array([0, 500, 0])
    if name == "frames":
        frame = frame + np.int32(100)
    if name == "gate":
        position = position + np.array([0, 0, 2.4])
    return Detections(frame, position, unit)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("axes", "x, y, z of the tracks are z, y, x of the truth"),
        ("unit", "The tracks are in micrometer, the truth in pixel. Along z, y, x the tracks extend over"),
        ("offset", "The offset of the tracks from the truth is z, y, x = 0, 500, 0."),
        ("frames", "They have no common frame: the tracks are in frames 100 to 103, the truth in 0 to 3."),
        ("gate", "The offset of the tracks from the truth is z, y, x = 0, 0, 2.4."),
    ],
)
def test_where_nothing_is_matched_the_reason_is_stated(name: str, said: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    place = rng.random((30, 3)) * [20, 100, 100] + [300, 0, 0]
    frame, ids = np.repeat(np.arange(4), 30), np.tile(np.arange(30), 4)
    truth = Tracks.from_track_ids(Detections.from_table(frame, np.tile(place, (4, 1))), ids)
    tracks = Tracks.from_track_ids(_unlike(truth.detections, name), ids)
    gate = 2.0 if name == "gate" else None
    found = score(tracks, truth, gate=gate)
    assert found.values["link_f1"] == 0
    assert said in found.remark
    assert said in found.provenance["unmatched_because"]
    for path, of in (("tracks.parquet", tracks), ("truth.parquet", truth)):
        write_tracks(tmp_path / path, of)
    for mode in ([], ["--json"]):
        words = [*mode, *([] if gate is None else ["--gate", gate])]
        assert said in run("score", tmp_path / "tracks.parquet", tmp_path / "truth.parquet", *words).stderr


def test_exchanged_axes_are_seen_though_some_lie_near_by_chance() -> None:
    rng = np.random.default_rng(6)
    frame, place = np.repeat(np.arange(4), 500), rng.random((2000, 3))
    truth = Tracks.from_track_ids(Detections.from_table(frame, place), np.tile(np.arange(500), 4))
    tracks = Tracks(Detections.from_table(frame, place[:, ::-1]), truth.links)
    found = score(tracks, truth)
    assert 0 < found.values["idf1"] < 0.5
    assert "The axes are exchanged" in found.remark
    assert "unmatched_because" not in score(truth, truth).provenance


def test_frames_that_true_tracks_skip_are_named_beside_the_scores_that_count_them() -> None:
    """The organisers' program counts them as missed, also of tracks that are scored against themselves."""
    both = SCENES["gap in both"]
    found = score(both.tracks, both.truth)
    assert found.values["alpha"] == pytest.approx(5 / 6)
    assert found.values["link_f1"] == found.values["hota"] == 1
    assert "True tracks skip 1 frame;" in found.remark
    assert "skip" not in score(both.truth, both.truth, families=["links"]).remark
    assert "skip" not in score(SCENES["perfect"].tracks, SCENES["perfect"].truth).remark


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
            score(Tracks(points, no_links), Tracks(other, no_links), gate=5.0, families=[family])


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
