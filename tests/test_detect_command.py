"""The command `outbid detect`: its files, what it says, and its preview."""

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import run, succeed
from test_detect import blob, speckled

from outbid import read_detections, read_record
from outbid.detection import detect
from outbid.detection.frames import expected_noise
from outbid.settings.detection import DetectionSettings


@pytest.mark.smoke
def test_the_command(tmp_path: Path) -> None:
    stack = np.stack([100 + 50 * blob((7, 40, 40), (3, 15 + t, 20), 2) for t in range(3)]).astype(np.uint16)
    metadata = {"axes": "TZYX", "spacing": 2.0, "unit": "um"}
    tifffile.imwrite(tmp_path / "a.tif", stack, imagej=True, metadata=metadata, resolution=(2.0, 2.0))
    detecting = "detect", tmp_path / "a.tif", "-o"
    done = succeed(*detecting, tmp_path / "a.csv", "--radius", 1.7, "--radius-z", 7, "--json")
    assert json.loads(done.stdout)["detections"] == 3
    seen = read_detections(tmp_path / "a.csv")
    assert seen.unit == "micrometer"
    np.testing.assert_allclose(seen.position[0], [6, 7.5, 10], atol=0.1)
    record = read_record(tmp_path / "a.csv")
    assert record["settings"]["spacing"] == [2.0, 0.5, 0.5]
    assert record["input"]["name"] == "a.tif"
    succeed(*detecting, tmp_path / "again.csv", "--config", tmp_path / "a.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    (tmp_path / "masks").mkdir()
    for frame in range(2):
        tifffile.imwrite(tmp_path / f"masks/m{frame}.tif", np.eye(8, dtype=np.uint8) * 3)
    succeed("detect", tmp_path / "masks", "-o", tmp_path / "b.csv", "--labels", "--spacing", 1, 2, 2)
    assert read_detections(tmp_path / "b.csv").position.tolist() == [[0, 7, 7]] * 2


def test_the_command_says_what_was_guessed_and_where_to_look_on(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.full((5, 30, 30), 7, np.uint8), photometric="minisblack")
    done = succeed("detect", path, "-o", tmp_path / "a.csv")
    assert all(said in done.stderr for said in ("taken for TYX", "--preview", "at any radius"))
    assert "--spacing" in run("detect", path, "-o", tmp_path / "b.csv", "--axes", "ZYX").stderr


def test_the_preview_command(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.stack([speckled(0), speckled(1)]), imagej=True, metadata={"axes": "TZYX"})
    done = succeed("detect", path, "--preview", "--frame", 1, "--radius", 3, "--json")
    shown = json.loads(done.stdout)
    found, _ = detect([speckled(0), speckled(1)], DetectionSettings(3))
    found = found.take(found.rows_of(1))
    assert shown["expected_noise"] == pytest.approx(expected_noise(found))
    assert shown["spots"] == len(found) == shown["spots_above"][shown["thresholds"].index(shown["automatic"])]
    done = run("detect", path, "--preview")
    assert "<- automatic" in done.stdout
    assert "--threshold" in done.stderr
    for wrong, said in (
        (["--preview", "--frame", "2"], "no frame 2"),
        (["--preview", "--labels"], "--labels"),
        (["--preview", "-o", str(tmp_path / "b.csv")], "--output"),
        ([], "--output"),
    ):
        done = run("detect", path, *wrong)
        assert done.exit_code != 0 and said in f"{done.output}{done.exception}"  # noqa: PT018
    assert [file.name for file in tmp_path.iterdir()] == ["a.tif"]
