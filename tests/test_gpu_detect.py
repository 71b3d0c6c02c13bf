"""Detection on the GPU against the CPU: the same transforms through CuPy; run with -m gpu."""

import numpy as np
import pytest

from outbid import Detections, DetectionSettings, detect
from outbid.compute.arrays import on_device
from outbid.detection.transform import CosineTransform

pytestmark = pytest.mark.gpu


def frame(shape, seed=0, spots=60):
    rng = np.random.default_rng(seed)
    light = np.full(shape, 40.0)
    axes = np.ogrid[tuple(slice(0, n) for n in shape)]
    for centre in rng.uniform(0, shape, (spots, 3)):
        light += 90 * np.exp(-sum((a - c) ** 2 / 8 for a, c in zip(axes, centre, strict=True)))
    return rng.poisson(light).astype(np.uint16)


@pytest.mark.parametrize("shape", [(12, 60, 70), (1, 90, 80), (2, 40, 50), (40, 9, 7), (3, 2, 1)])
def test_transforms_are_those_of_the_host(shape):
    image = frame(shape).astype(np.float32)
    for step in ("forward", "back"):
        here, there = (getattr(CosineTransform(2, on_gpu), step)(image) for on_gpu in (False, True))
        assert not on_device(there)
        assert there.dtype == np.float32
        np.testing.assert_allclose(there, here, rtol=0, atol=1e-5 * np.abs(here).max())


@pytest.mark.parametrize(
    "chosen", [{}, {"radius": 3.5}, {"radius": 3.5, "threshold": 9.0}, {"radius": 3.5, "bodies": True}]
)
@pytest.mark.parametrize("kind", ["<u2", ">u2", "f4", "f8", "u1", "i4"])
def test_movies_get_the_cpus_detections(chosen, kind):
    """In a crowd, or with a wrong radius, a candidate may hang on the last bits of a transform."""
    movie = [frame((8, 80, 90), seed, spots=25).clip(0, 255).astype(kind) for seed in range(2)]
    (here, used), (there, used_there) = (
        detect(movie, DetectionSettings(**chosen, device=device)) for device in ("cpu", "gpu")
    )
    assert (used.device, used_there.device) == ("cpu", "gpu")
    assert used.radius == used_there.radius
    assert len(here) > 30
    np.testing.assert_array_equal(there.frame, here.frame)
    np.testing.assert_allclose(there.position, here.position, atol=2e-3)
    np.testing.assert_allclose(there.features["quality"], here.features["quality"], rtol=1e-3)
    assert isinstance(there, Detections)
    assert not on_device(there.position)


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
