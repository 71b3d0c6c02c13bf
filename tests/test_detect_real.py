"""Detection in real stacks, where nothing is given but the voxel."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree

from outbid import match, read_detections
from outbid.detection import detect
from outbid.formats.images.folders import open_movie
from outbid.settings.detection import DetectionSettings


def test_volumes_have_their_three_spots(real_data: Path) -> None:
    movie = open_movie(real_data / "volumes_3spots")
    seen, used = detect(movie.frames(), DetectionSettings())
    assert [seen.rows_of(frame).stop - seen.rows_of(frame).start for frame in range(5)] == [3] * 5
    for frame in range(5):  # they stand at y = 18, 58, 98 and move by 15 in x
        y = np.sort(seen.position[seen.rows_of(frame), 1])
        np.testing.assert_allclose(y, [18, 58, 98], atol=2)
    x = [seen.position[seen.rows_of(frame), 2].mean() for frame in range(5)]
    np.testing.assert_allclose(np.diff(x), 15, atol=1)
    assert used.radius is not None


@pytest.mark.slow
def test_nuclei_of_drosophila(real_data: Path) -> None:
    """The reference is a tracker's result; its z is not compared.

    Nuclei are in planes 8 to 17. Below there is haze, in which the reference has a third of its points and
    few of them on anything that can be seen; so the layer is asked for by itself, and the whole by its
    Jaccard index.
    """
    movie = open_movie(real_data / "drosophila_nuclei/tif", spacing=(5, 1, 1))
    truth = read_detections(real_data / "drosophila_nuclei/tracks.csv")
    seen, _ = detect(movie.frames(), DetectionSettings(spacing=movie.spacing, bodies=True))
    hits = total = found_in_the_layer = in_the_layer = 0
    for frame in range(16):
        wanted = truth.position[truth.rows_of(frame)]
        found = cKDTree(seen.position[seen.rows_of(frame), 1:]).query(wanted[:, 1:])[0] <= 5
        flat = [points * [0, 1, 1] for points in (seen.position[seen.rows_of(frame)], wanted)]
        hits += len(match(*flat, 5.0).source)
        total += len(wanted)
        layer = wanted[:, 0] < 18 * 5
        found_in_the_layer += int(found[layer].sum())
        in_the_layer += int(layer.sum())
    assert len(seen) <= 1.15 * total
    assert hits / (len(seen) + total - hits) >= 0.62
    assert found_in_the_layer >= 0.99 * in_the_layer


@pytest.mark.slow
@pytest.mark.parametrize("name", ["faketracks/FakeTracks.tif", "colloids_png/pims_stuck.tif"])
def test_real_movies_run(name: str, real_data: Path) -> None:
    movie = open_movie(real_data / name)
    seen, _ = detect(list(movie.frames()), DetectionSettings())
    assert seen.frame_count == movie.frame_count
    if "Fake" in name:  # TrackMate's result has 3 to 6 spots a frame
        reference = read_detections(real_data / "faketracks/tidy.csv")
        found = [
            (
                cKDTree(seen.position[seen.rows_of(t)]).query(reference.position[reference.rows_of(t)])[0] < 2
            ).mean()
            for t in range(50)
        ]
        assert np.mean(found) > 0.98
        assert len(seen) < 1.06 * len(reference)


@pytest.mark.slow
def test_colloids_are_dark_and_nothing_else_is(real_data: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("PIL", reason="pillow is not installed: pip install 'outbid[images]'")
    for name in ("colloids_png/pims_stuck.tif", "faketracks/FakeTracks.tif", "volumes_3spots"):
        detect(open_movie(real_data / name).frames([0]), DetectionSettings())
    assert caplog.text == ""
    movie = open_movie(real_data / "colloids_png")
    caplog.clear()
    detect(movie.frames([0]), DetectionSettings())
    assert "--dark" in caplog.text
    caplog.clear()
    seen, _ = detect(movie.frames([0]), DetectionSettings(dark=True))
    assert caplog.text == ""
    (image,) = movie.frames([0])
    voxel = np.minimum(seen.position.round(), np.subtract(image.shape, 1))  # some lie on the far edge
    under = image[tuple(voxel.astype(int).T)]
    assert np.median(under) < np.percentile(image, 3), "they are the darkest places"
