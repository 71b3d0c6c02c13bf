"""Names that settings had: accepted for one release, in Python, options and files, with a message."""

from dataclasses import replace
from pathlib import Path

import pytest
from commands import succeed

from outbid import TrackingSettings, read_record, track, write_detections
from outbid.simulate.settings import SimulationSettings


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
    write_detections("s.csv", seen)
    done = succeed("track", "s.csv", "-o", "t.csv", "--set", "noise=0.1", "--no-columns")
    assert "--set is called --fixed now" in done.stderr
    assert "--no-columns is called --no-features now" in done.stderr
    Path("old.toml").write_text("[track]\n[track.known]\nnoise = 0.1\n")
    again = succeed("track", "s.csv", "-o", "u.csv", "--config", "old.toml", "--no-features")
    assert "known is called fixed now" in again.stderr
    assert Path("t.csv").read_bytes() == Path("u.csv").read_bytes()
    succeed("simulate", "-o", "v.csv", "--persistence=0.3", "--particles", 5, "--frames", 2)
    assert read_record("v.csv")["settings"]["directionality"] == 0.3
