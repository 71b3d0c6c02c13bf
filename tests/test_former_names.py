"""Names that settings had: accepted for one release, in Python, options and files, with a message."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import succeed

from outbid import (
    Calibration,
    Detections,
    SettingsError,
    TrackingSettings,
    Tracks,
    advise,
    read_record,
    track,
    write_detections,
)
from outbid.simulate.settings import SimulationSettings
from outbid.viewers.curves import mean_square_displacement
from outbid.viewers.layers import points_layer, tracks_layer
from outbid.work.pooled import read_model


@pytest.mark.usefixtures("here")
def test_former_names_are_accepted_with_a_message() -> None:
    with pytest.warns(FutureWarning, match="(known is called fixed|column is called features) now"):
        settings = TrackingSettings(known={"noise": 0.1}, column={"area": ""})  # type: ignore[call-arg]
    assert (settings.fixed, settings.features) == ({"noise": 0.1}, {"area": ""})
    assert settings.known == settings.fixed  # type: ignore[attr-defined]
    assert replace(settings, fixed={}).features == {"area": ""}
    with pytest.warns(FutureWarning, match="persistence is called directionality"):
        assert SimulationSettings(persistence=0.2).directionality == 0.2  # type: ignore[call-arg]
    seen = {"frame": [0, 0, 1, 1, 2, 2], "y": [0, 9, 0, 9, 0, 9], "x": [0, 9, 1, 8, 2, 7.5]}
    with pytest.warns(FutureWarning, match="known is called fixed"):
        assert track(seen, known={"noise": 0.1}).settings.fixed == {"noise": 0.1}  # type: ignore[call-arg]
    with pytest.warns(FutureWarning, match="column is called features"):
        assert advise(seen | {"size": [4.0, 9] * 3}, column={"size": ""}).columns is not None  # type: ignore[call-arg]
    with pytest.warns(FutureWarning, match="persistence is called persistence_frames"):
        assert TrackingSettings(fixed={"persistence": 2}).fixed == {"persistence_frames": 2}
    write_detections("s.csv", seen)
    done = succeed("track", "s.csv", "-o", "t.csv", "--set", "noise=0.1", "--no-columns")
    assert "--set is called --fixed now" in done.stderr
    assert "--no-columns is called --no-features now" in done.stderr
    Path("old.toml").write_text("[track]\n[track.known]\nnoise = 0.1\n")
    again = succeed("track", "s.csv", "-o", "u.csv", "--config", "old.toml", "--no-features")
    assert "known is called fixed now" in again.stderr
    assert Path("t.csv").read_bytes() == Path("u.csv").read_bytes()
    said = "persistence is called persistence_frames now"
    done = succeed("track", "s.csv", "-o", "p.csv", "--fixed", "persistence=2", "--no-features")
    record = json.loads(Path("p.csv.json").read_text("utf-8"))
    assert said in done.stderr
    assert record["settings"]["fixed"] == {"persistence_frames": 2}
    assert record["learned"]["persistence_frames"] == 2
    assert "persistence" not in record["learned"]
    record["settings"]["fixed"] = {"persistence": 2}
    Path("p.csv.json").write_text(json.dumps(record), "utf-8")
    done = succeed("track", "s.csv", "-o", "q.csv", "--config", "p.csv.json")
    assert said in done.stderr
    assert Path("p.csv").read_bytes() == Path("q.csv").read_bytes()
    model = {"command": "learn", "known": {"persistence": 2.0}}
    Path("model.json").write_text(json.dumps(model), "utf-8")
    assert read_model(Path("model.json")) == {"persistence_frames": 2.0}
    succeed("simulate", "-o", "v.csv", "--persistence=0.3", "--particles", 5, "--frames", 2)
    assert read_record("v.csv")["settings"]["directionality"] == 0.3


def test_a_bare_spacing_is_taken_for_a_calibration_with_a_message() -> None:
    """In µm, with voxels of 2, 1 and 1: as the calibration says, which detections carry or a caller gives."""
    seen = Detections.from_table([0, 1], [[0, 0, 0], [1, 0, 0]], unit="micrometer")
    size = Calibration("micrometer", (2, 1, 1), 3)
    tracks = Tracks(seen, np.array([[0, 1]]))
    in_voxels = replace(tracks, detections=replace(seen, calibration=size))
    assert tracks_layer(tracks).features["speed"].tolist() == [1, 1]
    for layer in (tracks_layer(in_voxels), tracks_layer(tracks, calibration=size)):
        assert (layer.features["speed"].tolist(), layer.scale, layer.unit) == (
            [2, 2], (1, 2, 1, 1), "micrometer",
        )  # fmt: skip
    with pytest.warns(FutureWarning, match="a bare spacing ends"):
        assert tracks_layer(tracks, spacing=(2, 1, 1)).scale == (1, 2, 1, 1)
    with pytest.warns(FutureWarning, match="a bare spacing ends"):
        assert points_layer(seen, spacing=(2, 1, 1)).scale == (1, 2, 1, 1)
    with pytest.warns(FutureWarning, match="a bare spacing ends"):
        found = mean_square_displacement(tracks, (2, 1, 1))  # type: ignore[arg-type]
    assert found.mean_square.tolist() == mean_square_displacement(in_voxels).mean_square.tolist() == [4]
    with pytest.raises(SettingsError, match="spacing"), pytest.warns(FutureWarning):
        tracks_layer(tracks, spacing=(2, 1))


def test_layers_lie_where_their_calibration_says() -> None:
    seen = Detections.from_table([0], [[1, 2, 3]], calibration=Calibration(origin=(0, 5, 7)))
    layer = points_layer(seen)
    assert layer.as_tuple()[1]["translate"] == (0, 0, 5, 7)
    assert layer.in_plane().as_tuple()[1]["translate"] == (0, 5, 7)
