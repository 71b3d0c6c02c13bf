"""Masks given as labels, labels as floats; reasons where nothing was linked."""

from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import assert_refused, run, succeed

from outbid import InputError, read_detections
from outbid.formats.images.labels import detect_labels


def labels() -> np.ndarray:
    """Case 06: three frames of four objects that move."""
    found = np.zeros((3, 30, 30), np.uint16)
    for t in range(3):
        for k, (y, x) in enumerate(((2, 2), (2, 20), (20, 3), (20, 22))):
            found[t, y : y + 4, x + t : x + t + 4] = k + 1
    return found


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["uint16", "float32", "float64"])
def test_labels_of_any_type(kind: str, tmp_path: Path) -> None:
    tifffile.imwrite(
        tmp_path / "a.tif", labels().astype(kind), photometric="minisblack", metadata={"axes": "TYX"}
    )
    succeed("detect", tmp_path / "a.tif", "-o", tmp_path / "o.csv", "--labels")
    found = read_detections(tmp_path / "o.csv")
    assert len(found) == 12
    assert found.features["label"].tolist() == [1, 2, 3, 4] * 3


def test_objects_are_measured_in_each_channel_of_a_movie(tmp_path: Path) -> None:
    seen, light = labels(), np.random.default_rng(1).normal(100, 9, (3, 2, 30, 30)).astype(np.float32)
    tifffile.imwrite(tmp_path / "a.tif", seen, photometric="minisblack", metadata={"axes": "TYX"})
    tifffile.imwrite(tmp_path / "i.tif", light, imagej=True, metadata={"axes": "TCYX"})
    whole = "detect", tmp_path / "a.tif", "--labels", "--intensity", tmp_path / "i.tif"
    succeed(*whole, "-o", tmp_path / "o.csv")
    found = read_detections(tmp_path / "o.csv").features
    inside = [light[t, :, seen[t] == k] for t in range(3) for k in range(1, 5)]
    for channel in (0, 1):
        for name, of in (("mean", np.mean), ("max", np.max)):
            expected = [of(one[:, channel].astype(float)) for one in inside]
            np.testing.assert_allclose(found[f"{name}_{channel}"], expected, rtol=1e-6)
    succeed(*whole, "-o", tmp_path / "p.csv", "--frames", "1:3", "--region", ":,0:15,:")
    kept = np.arange(12) % 4 < 2
    kept[:4] = False
    np.testing.assert_array_equal(
        read_detections(tmp_path / "p.csv").features["mean_1"], found["mean_1"][kept]
    )
    again = "detect", tmp_path / "a.tif", "-o", tmp_path / "r.csv", "--config", tmp_path / "o.csv"
    succeed(*again)
    assert (tmp_path / "r.csv").read_bytes() == (tmp_path / "o.csv").read_bytes()
    tifffile.imwrite(tmp_path / "i.tif", light[:2], imagej=True, metadata={"axes": "TCYX"})
    assert_refused(
        run(*whole, "-o", tmp_path / "e.csv"), 3, "differ in frames", "(2, 1, 30, 30)", "Give the movie"
    )
    done = run("detect", tmp_path / "a.tif", "-o", tmp_path / "e.csv", "--intensity", "i.tif")
    assert (done.exit_code, "of --labels" in done.stderr) == (2, True)


@pytest.mark.smoke
@pytest.mark.parametrize("value", [255, 1, True])
def test_a_mask_has_connected_parts(value: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mask = (labels() > 0).astype(bool if value is True else np.uint8) * value
    tifffile.imwrite(tmp_path / "a.tif", mask, photometric="minisblack", metadata={"axes": "TYX"})
    done = succeed("detect", tmp_path / "a.tif", "-o", tmp_path / "o.csv", "--labels")
    assert "taken for masks" in done.stderr + caplog.text
    found = read_detections(tmp_path / "o.csv")
    assert (len(found), found.position[:4].tolist()) == (
        12,
        [[0, 3.5, 3.5], [0, 3.5, 21.5], [0, 21.5, 4.5], [0, 21.5, 23.5]],
    )
    succeed("track", tmp_path / "o.csv", "-o", tmp_path / "t.csv", "--max-distance", 3)
    succeed("convert", tmp_path / "a.tif", tmp_path / "t.csv", tmp_path / "r.tif")
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "r.tif").reshape(3, 30, 30), labels())


def test_a_mask_may_begin_with_one_object(caplog: pytest.LogCaptureFixture) -> None:
    mask = (labels() > 0)[:, None] * np.uint8(255)
    mask[0, :, 12:], mask[0, :, :, 12:] = 0, 0
    assert np.bincount(detect_labels(mask).frame).tolist() == [1, 4, 4]
    assert "taken for masks" in caplog.text
    parts = (labels() * (labels() == 2))[:, None]
    parts[2, :, 20:23, 3:5], parts[1, :, 9:, 9:] = 2, 5  # label 2 is in two parts, beside a label 5
    assert np.bincount(detect_labels(parts).frame).tolist() == [1, 2, 1]


def test_one_label_that_is_no_mask(caplog: pytest.LogCaptureFixture) -> None:
    image = (labels() * (labels() == 2))[:, None]
    assert detect_labels(image).features["label"].tolist() == [2, 2, 2]
    assert caplog.messages == []
    with pytest.raises(InputError, match=r"fractions.*leave --labels out"):
        detect_labels(np.full((1, 1, 4, 4), 0.5))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("0,1,2\n30,1,2\n60,1,2\n", ["less than 30 apart", "--max-gap 29", "frame=NAME/30"]),
        ("0,1,2\n1,1,9\n2,1,2\n", ["are 7 apart", "max_distance is 3"]),
    ],
)
def test_a_reason_where_nothing_was_linked(rows: str, said: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("frame,y,x\n" + rows)
    done = run("track", tmp_path / "a.csv", "-o", tmp_path / "t.csv", "--max-distance", 3)
    assert all(word in done.stderr for word in said), done.stderr
    again = run("track", tmp_path / "a.csv", "-o", tmp_path / "t.csv", "--max-distance", 3)
    assert_refused(again, 2, "--overwrite (Python: overwrite=True)")
