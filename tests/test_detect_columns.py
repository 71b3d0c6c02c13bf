"""Columns of detected spots, and noise models of cameras: damaged voxels, saturation."""

import numpy as np
import pytest
from test_detect import blob, speckled

from outbid import match
from outbid.detection import detect
from outbid.detection.noise import noise_of
from outbid.detection.prepare import sample_of
from outbid.settings.detection import DetectionSettings


@pytest.mark.parametrize("gain", [1.0, 7.5])
def test_noise_is_measured_as_the_camera_made_it(gain: float) -> None:
    light = 200 * np.linspace(0.1, 1, 150)[:, None] + 300 * blob((1, 150, 150), (0, 60, 70), 2)
    rng = np.random.default_rng(1)
    image = 100 + gain * (rng.poisson(light) + rng.normal(0, 2, light.shape))
    settings = DetectionSettings()
    sample = sample_of([image], settings)
    noise = noise_of([image], sample, settings)
    assert noise.slope == pytest.approx(gain, rel=0.1)
    there = 100 + 100 * gain - sample.middle
    assert noise.base + noise.slope * there == pytest.approx(gain**2 * (100 + 4), rel=0.1)


@pytest.mark.smoke
def test_the_columns_are_those_of_the_spot() -> None:
    """On a slope of light, which says how noise grows with it."""
    slope = 20 + np.arange(120.0)
    light = (
        slope + 300 * blob((1, 120, 120), (0, 80.3, 20.0), 2.0) + 150 * blob((1, 120, 120), (0, 42, 80), 2.0)
    )
    noise = np.random.default_rng(2)
    found = [detect([noise.poisson(light)], DetectionSettings(2 * 2**0.5))[0] for _ in range(12)]
    assert [len(seen) for seen in found] == [2] * 12
    mean = {name: np.mean([seen.features[name] for seen in found], axis=0) for name in found[0].features}
    np.testing.assert_allclose(mean["amplitude"], [150, 300], rtol=0.1)
    np.testing.assert_allclose(mean["background"], [100, 40], rtol=0.1)
    np.testing.assert_allclose(mean["radius"], 2 * 2**0.5, rtol=0.1)
    np.testing.assert_allclose(mean["snr"], [150 / 250**0.5, 300 / 340**0.5], rtol=0.1)
    assert (mean["probability"] > 0.95).all()
    assert 0.6 < mean["misfit"].mean() < 1.5
    for axis, name in ((1, "position_error_y"), (2, "position_error_x")):
        spread = np.std([seen.position[:, axis] for seen in found], axis=0)
        assert (spread < 2 * mean[name]).all()
        assert (mean[name] < 2.5 * spread).all()
    assert (mean["position_error_z"] == 0).all()


def test_a_camera_that_is_given_is_taken() -> None:
    image = speckled()
    given, _ = detect([image], DetectionSettings(3, radius_z=3, gain=1.0, offset=0.0, read_noise=0.0))
    twice, _ = detect([image], DetectionSettings(3, radius_z=3, gain=4.0, offset=0.0, read_noise=0.0))
    pairs = match(given.position, twice.position, 0.5)
    ratio = given.features["quality"][pairs.source] / twice.features["quality"][pairs.target]
    assert len(pairs.source) > 5
    # Of eight such images it is 1.45, which deviates by 0.07.
    assert 1.2 < np.median(ratio) < 2.1, "noise is twice as wide; what spots leave over is not"


def test_a_share_of_false_ones_can_be_asked_for() -> None:
    """Of faint spots; a stricter share leaves a part of the generous one."""
    rng = np.random.default_rng(4)
    light = 20.0 + sum(9 * blob((1, 200, 200), (0, *rng.uniform(5, 195, 2)), 2) for _ in range(80))
    image = rng.poisson(light)
    counts = [len(detect([image], DetectionSettings(2.8, fdr=share))[0]) for share in (0.001, 0.05, 0.3)]
    assert 20 < counts[0] < counts[1] < counts[2]


def test_what_was_not_measured_is_left_out() -> None:
    """Dead planes, NaN, a cut corner and hot voxels are no spots, and what is beside them is found."""
    rng = np.random.default_rng(5)
    light = 30 + sum(
        200 * blob((10, 60, 60), place, 1.5) for place in ((5, 15, 15), (4, 40, 20), (5, 20, 45))
    )
    image = rng.poisson(light).astype(float)
    clean, used = detect([image], DetectionSettings())
    assert len(clean) == 3
    image[8] = 0
    image[:, 45:, 45:] = np.nan
    image[2, 30, 30] = image[6, 50, 10] = 3000
    image[5, 14, 14] = np.nan
    seen, _ = detect([image], DetectionSettings(used.radius, used.radius_z))
    assert len(seen) == 3
    np.testing.assert_allclose(seen.position, clean.position, atol=0.4)
    assert len(detect([np.full((1, 20, 20), np.nan)], DetectionSettings(2))[0]) == 0


@pytest.mark.smoke
def test_saturated_spots_are_fitted_by_their_flanks() -> None:
    rng = np.random.default_rng(6)
    light = 20 + sum(
        900 * blob((1, 80, 80), (0, *place), 2.5) for place in ((20.3, 20), (50, 30.4), (60, 60))
    )
    image = rng.poisson(light)
    seen, _ = detect([image.clip(0, 255).astype(np.uint8)], DetectionSettings(2.5 * 2**0.5))
    assert len(seen) == 3
    # By the noise alone a coordinate deviates by 0.08; and by 0.04 with the instructions of the processor.
    np.testing.assert_allclose(seen.position[:, 1:], [[20.3, 20], [50, 30.4], [60, 60]], atol=0.3)
    assert (seen.features["amplitude"] > 500).all()


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e-3, 1e6, 1e12])
@pytest.mark.parametrize("camera", [{}, {"gain": 1.0, "offset": 0.0, "read_noise": 0.0}])
def test_the_unit_of_grey_values_changes_nothing_but_theirs(unit: float, camera: dict[str, float]) -> None:
    image = speckled() + np.random.default_rng(3).uniform(-0.5, 0.5, (8, 60, 70))  # no value is whole
    plain, used = detect([image], DetectionSettings(**camera))
    scaled = {name: value * unit for name, value in camera.items()}
    seen, used_too = detect([image * unit], DetectionSettings(**scaled))
    assert len(plain) > 10
    assert used_too.radius == pytest.approx(used.radius, rel=0.05)
    pairs = match(seen.position, plain.position, 0.2)
    assert len(pairs.source) >= 0.95 * max(len(seen), len(plain))
    for name, scale in (("amplitude", unit), ("background", unit), ("quality", 1.0)):
        wanted = scale * plain.features[name][pairs.target]
        np.testing.assert_allclose(seen.features[name][pairs.source], wanted, rtol=0.15)
