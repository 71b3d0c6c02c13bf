"""Values that a user fixes instead of letting them be learned."""

import json
import math
from functools import partial
from pathlib import Path

import pytest
from commands import run, succeed
from test_learned import NOISE
from test_learned import movie as learned_movie

from outbid import SettingsError, TrackingSettings, score, track, write_detections
from outbid.settings.fixed import NAMES, known_of, text_of

movie = partial(learned_movie, step=0.3)


@pytest.mark.slow
def test_what_is_given_is_used_and_the_rest_is_learned() -> None:
    seen = movie().detections
    stated = {
        "noise": (0.05, 0.04, 0.03),
        "persistence_frames": 4.0,
        "gate": 1.5,
        "end": 0.2,
        "clutter": 0.06,
    }
    run_ = track(seen, TrackingSettings(fixed=stated))
    assert run_.learned is not None
    model, free = run_.learned, track(seen).learned
    assert free is not None
    assert model.noise == pytest.approx((0.05, 0.04, 0.03))
    assert (model.persistence_frames, model.gate.tolist()) == (4.0, [1.5, 1.5, 1.5])
    assert (model.end, model.clutter) == (0.2, 0.06)
    assert model.start != free.start
    assert sum(model.follow) == pytest.approx(0.8)
    assert run_.learned.known == tuple(stated)
    assert "Fixed, not learned: noise, persistence_frames, gate, end, clutter." in str(run_.learned)
    assert "Fixed" not in str(free)


@pytest.mark.slow
def test_true_values_that_are_given_do_no_harm() -> None:
    truth = movie(1)
    free = track(truth.detections).tracks
    fixed = track(
        truth.detections, TrackingSettings(fixed={"noise": NOISE, "persistence_frames": 4.0})
    ).tracks
    scores = [score(tracks, truth, families=["links"]).values["link_f1"] for tracks in (free, fixed)]
    assert scores[1] > scores[0] - 0.005 > 0.9


@pytest.mark.slow
def test_a_wrong_persistence_is_believed_and_costs_links() -> None:
    truth = movie(2)
    free, none = (
        score(track(truth.detections, TrackingSettings(fixed=known)).tracks, truth).values["link_f1"]
        for known in ({}, {"persistence_frames": 0})
    )
    assert none < free - 0.01


@pytest.mark.parametrize("persistence", [math.inf, 1e-9, 1e9])
def test_any_persistence_may_be_given(persistence: float) -> None:
    found = track(movie().detections, TrackingSettings(fixed={"persistence_frames": persistence})).learned
    assert found is not None
    assert found.persistence_frames == persistence


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"nose": 1}, "nose.*Choose from: step, noise"),
        ({"noise": -1}, "0 or more"),
        ({"noise": math.inf}, "0 or more"),
        ({"noise": (1, 2)}, "one number, or three"),
        ({"persistence_frames": (1, 2, 3)}, "give one number"),
        ({"persistence_frames": math.nan}, "0 or more"),
        ({"step": 0}, "a length above 0"),
        ({"gate": (1, 0, 1)}, "a length above 0"),
        ({"end": 0}, "probability from more than 0"),
        ({"miss": 1}, "probability from 0"),
        ({"clutter": 0.2, "end": 0.1}, "at most 0.98 of end"),
        ({"clutter": 0.99}, "at most 0.98"),
        ({"end": 1e-300}, "above 1e-09"),
        ({"step": 1e-200}, "a length"),
        ({"gate": 1e200}, "a length"),
    ],
)
def test_what_makes_no_sense_is_refused(stated: dict[str, float | tuple[float, ...]], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        TrackingSettings(fixed=stated)


def test_with_a_max_distance_there_is_nothing_to_give() -> None:
    with pytest.raises(SettingsError, match="fixed has no effect with max_distance"):
        TrackingSettings(max_distance=1.0, fixed={"noise": 1.0})


@pytest.mark.smoke
def test_texts_and_values_are_the_same() -> None:
    known = {"noise": (0.3, 0.1, 1 / 3), "persistence_frames": 3.5}
    assert known_of(text_of(known)) == known
    with pytest.raises(SettingsError, match="NAME=NUMBER"):
        known_of(["noise"])
    assert set(NAMES) >= set(known)


def test_the_command_reports_records_and_repeats(tmp_path: Path) -> None:
    write_detections(tmp_path / "spots.csv", movie().detections)
    spots, first, again = (tmp_path / name for name in ("spots.csv", "first.csv", "again.csv"))
    done = succeed("track", spots, "-o", first, "--fixed", "noise=0.05,0.04,0.03", "--fixed", "end=0.2", "-v")
    assert "Fixed, not learned: noise, end." in done.stderr
    record = json.loads((tmp_path / "first.csv.json").read_text())
    assert record["settings"]["fixed"] == {"noise": [0.05, 0.04, 0.03], "end": 0.2}
    assert record["learned"]["known"] == ["noise", "end"]
    succeed("track", spots, "-o", again, "--config", first)
    assert again.read_bytes() == first.read_bytes()
    (tmp_path / "settings.toml").write_text("[track]\n[track.fixed]\nnoise = [0.05, 0.04, 0.03]\nend = 0.2\n")
    succeed("track", spots, "-o", again, "--overwrite", "--config", tmp_path / "settings.toml")
    assert again.read_bytes() == first.read_bytes()
    for wrong, code in (("noise", 2), ("nose=1", 2), ("noise=1,2", 2)):
        assert run("track", spots, "-o", tmp_path / "no.csv", "--fixed", wrong).exit_code == code
    assert not (tmp_path / "no.csv").exists()
