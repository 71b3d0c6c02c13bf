"""The bundled sample: its record repeats it, and tracking it gives what the README promises."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import succeed

from outbid import TrackingSettings, read_detections, read_tracks, score, track
from outbid.data import SAMPLES, sample


@pytest.mark.smoke
@pytest.mark.parametrize("name", SAMPLES)
def test_the_record_repeats_the_sample(name: str, tmp_path: Path) -> None:
    again = tmp_path / "again.csv"
    succeed("simulate", "-o", again, "--config", f"{sample(name)}.json")
    # Not to the byte: another machine's sine may differ in the last digit.
    kept, made = read_tracks(sample(name)), read_tracks(again)
    np.testing.assert_array_equal(made.links, kept.links)
    np.testing.assert_array_equal(made.detections.frame, kept.detections.frame)
    np.testing.assert_allclose(made.detections.position, kept.detections.position, rtol=0, atol=1e-9)


@pytest.mark.smoke
def test_tracking_the_sample_finds_its_tracks() -> None:
    truth = read_tracks(sample("walks"))
    run = track(read_detections(sample("walks")), TrackingSettings(max_distance=4, max_gap=2))
    assert run.stats["worst_gap"] == 0
    assert score(run.tracks, truth).values["link_f1"] == pytest.approx(0.970, abs=0.001)


@pytest.mark.usefixtures("here")
def test_the_example_of_the_readme_runs(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (repository / "README.md").read_text("utf-8"), re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert "230 tracks, 63 of them single detections, from 3,429 detections" in capsys.readouterr().out
    assert len(read_tracks("walks_tracks.csv").detections) == 3429


def test_an_unknown_sample_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="walks"):
        sample("waves")


def test_records_name_no_machine() -> None:
    for name in SAMPLES:
        record = json.loads(Path(f"{sample(name)}.json").read_text("utf-8"))
        assert record["command"] == "simulate"
        assert "output" not in record["settings"]
