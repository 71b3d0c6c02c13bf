"""Detection on the GPU against the CPU: the same spots; run with -m gpu."""

from dataclasses import replace

import numpy as np
import pytest

from outbid import Detections, DetectionSettings, detect
from outbid.compute.arrays import on_device
from outbid.detection import spots
from outbid.detection.frames import detect_frames, learn_from

pytestmark = pytest.mark.gpu


def frame(shape, seed=0, spots=60):
    rng = np.random.default_rng(seed)
    light = np.full(shape, 40.0)
    axes = np.ogrid[tuple(slice(0, n) for n in shape)]
    for centre in rng.uniform(0, shape, (spots, 3)):
        light += 90 * np.exp(-sum((a - c) ** 2 / 8 for a, c in zip(axes, centre, strict=True)))
    return rng.poisson(light).astype(np.uint16)


def assert_alike(there, here):
    """The same spots; one whose last step is as long as the least may be fitted once more, or not."""
    assert isinstance(there, Detections)
    assert not on_device(there.position)
    np.testing.assert_array_equal(there.frame, here.frame)
    away = np.linalg.norm(there.position - here.position, axis=1)
    assert away.max(initial=0) < 0.05
    assert np.mean(away < 1e-3) > 0.95
    for name, tolerance in {
        "quality": 1e-3,
        "probability": 1e-3,
        "amplitude": 0.02,
        "background": 0.02,
    }.items():
        np.testing.assert_allclose(there.features[name], here.features[name], rtol=tolerance, atol=1e-6)
    for name in ("radius", "snr", "misfit", "position_error_x"):
        np.testing.assert_allclose(there.features[name], here.features[name], rtol=0.1)


def assert_searched_alike(movie, chosen, **how):
    """Learned once on the CPU, a movie has the same spots on both devices."""
    model, used = learn_from(lambda rows: (movie[row] for row in rows), len(movie), chosen)
    used = replace(used, **how)
    (here, _), (there, used_there) = (
        detect_frames(movie, replace(used, device=device), model=model, count=len(movie))
        for device in ("cpu", "gpu")
    )
    assert used_there.device == "gpu"
    assert len(here) > 10
    assert_alike(there, here)


@pytest.mark.parametrize(
    ("kind", "chosen"),
    [("<u2", {}), (">u2", {"radius": 3.5}), ("f4", {"threshold": 9.0}), ("f8", {"fdr": 0.1}), ("i4", {})],
)
def test_movies_get_the_cpus_spots(kind, chosen):
    movie = [frame((8, 80, 90), seed, spots=25).astype(kind) for seed in range(3)]
    assert_searched_alike(movie, DetectionSettings(**chosen))


def test_planes_dark_spots_and_batches(monkeypatch):
    monkeypatch.setattr("outbid.detection.frames._BATCH", 2 * 90 * 120)
    movie = [1000 - frame((1, 90, 120), seed, spots=30).clip(0, 1000) for seed in range(5)]
    assert_searched_alike(movie, DetectionSettings(dark=True))


def test_what_was_not_measured_or_is_saturated():
    movie = [frame((1, 90, 120), seed, spots=30).astype(np.float32) for seed in range(4)]
    movie[0][0, 20:30, 50:70] = np.nan
    movie[1][0, 40, [10, 50, 90]] = 4000  # hot
    movie[2][0, 30:45, 80:95] = 0
    movie[3][:] = np.nan
    assert_searched_alike(movie, DetectionSettings(), threshold=None)
    cut = [np.minimum(frame((1, 90, 120), seed, spots=30), 110) for seed in range(2)]
    assert_searched_alike(cut, DetectionSettings())


def test_a_bead_out_of_focus_is_one_spot():
    movie = [frame((1, 90, 120), seed, spots=20).astype(float) for seed in range(3)]
    y, x = np.ogrid[:90, :120]
    for number, wide in enumerate((1.0, 1.9, 2.3)):
        away = ((y - 44.8) ** 2 + (x - 59.8) ** 2) / (2 * wide) ** 2
        movie[number][0] += np.random.default_rng(number).poisson(150 * np.exp(-away / 2))
    assert_searched_alike(movie, DetectionSettings())


def test_tiles(monkeypatch):
    monkeypatch.setattr(spots, "LARGE", 5_000)
    movie = [frame((1, 130, 220), seed, spots=60) for seed in range(2)]
    assert len(spots.tiles(movie[0].shape, np.array([0.0, 2.0, 2.0]))) > 3
    assert_searched_alike(movie, DetectionSettings())


def test_what_the_gpu_does_not_search_is_counted(caplog):
    movie = [frame((4, 12, 60), seed, spots=8) for seed in range(2)]
    found, used = detect(movie, DetectionSettings(3.0, device="gpu"))
    assert used.device == "cpu"
    assert "2 of 2 frames were searched on the CPU" in caplog.text
    np.testing.assert_array_equal(
        found.position, detect(movie, DetectionSettings(3.0, device="cpu"))[0].position
    )


def test_auto_takes_the_gpu_where_it_is_worth_it(monkeypatch):
    movie = [frame((4, 40, 40))]
    assert detect(movie, DetectionSettings(3.0), count=1)[1].device == "cpu"
    monkeypatch.setattr("outbid.detection.frames.GPU_FROM_VOXELS", 100)
    assert detect(movie, DetectionSettings(3.0), count=1)[1].device == "gpu"


def test_what_does_not_fit_the_gpu_goes_on_the_cpu():
    import cupy  # noqa: TID251  (the limit is set on the device itself)

    movie = [frame((8, 200, 200))] * 2
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=1 << 20)
    try:
        found, used = detect(movie, DetectionSettings(3.0, device="gpu"))
    finally:
        pool.set_limit(size=0)
    assert used.device == "cpu"
    np.testing.assert_array_equal(
        found.position, detect(movie, DetectionSettings(3.0, device="cpu"))[0].position
    )
