"""Kernels of detection beside SciPy and NumPy: transforms of short axes, quantiles, windows, neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import fft, ndimage
from scipy.spatial.distance import cdist

from outbid.detection.fit_cpu import AMPLITUDE, PARAMETERS, render
from outbid.detection.joint_cpu import resolved
from outbid.detection.response_cpu import local_scales, quantile
from outbid.detection.transform import CosineTransform


@pytest.mark.parametrize("shape", [(7, 12, 20), (16, 30, 45), (97, 8, 9), (1, 12, 20)])
def test_transforms_are_those_of_scipy(shape: tuple[int, int, int]) -> None:
    image = np.random.default_rng(0).random(shape, np.float32)
    small = tuple(max(1, 3 * n // 4) for n in shape)
    axes = [axis for axis in range(3) if shape[axis] > 1]
    modes, dct = fft.dctn(image.astype(float), axes=axes, norm="ortho"), CosineTransform()
    np.testing.assert_allclose(dct.forward(image), modes, atol=1e-5)
    np.testing.assert_allclose(dct.back(dct.forward(image)), image, atol=1e-5)
    part = modes[tuple(slice(n) for n in small)]
    np.testing.assert_allclose(dct.forward(image, small), part, atol=1e-5)
    padded = np.zeros(shape)
    padded[tuple(slice(n) for n in small)] = part
    expected = fft.idctn(padded, axes=axes, norm="ortho")
    np.testing.assert_allclose(dct.back(part.astype(np.float32), shape), expected, atol=1e-5)


@pytest.mark.parametrize("scale", [0.001, 1.0, 30.0])
@pytest.mark.parametrize("step", [1, 3])
def test_quantiles_are_sorted_values(scale: float, step: int) -> None:
    values = (scale * np.random.default_rng(1).standard_normal((3, 40, 50))).astype(np.float32)
    part = np.sort(values.ravel()[::step])
    for share in (0.0, 0.0228, 0.5, 1.0):
        assert quantile(values, step, share) == part[round(share * (len(part) - 1))]


def test_the_window_of_the_noise_is_a_gaussian() -> None:
    response = np.random.default_rng(2).standard_normal((6, 30, 42)).astype(np.float32)
    size, widths = np.array([2, 3, 4]), np.array([0.0, 1.7, 2.2])
    depth = np.maximum(-response.astype(float), 0).reshape(3, 2, 10, 3, 42)
    depth = np.pad(depth, [(0, 0)] * 4 + [(0, 2)], constant_values=np.nan).reshape(3, 2, 10, 3, 11, 4)
    scale = np.nanmean(depth, axis=(1, 3, 5)) * np.sqrt(2 * np.pi)
    local = ndimage.gaussian_filter(scale, widths, mode="reflect")
    expected = np.maximum((local + 0.5 * 0.9) / 1.5, 0.92)
    np.testing.assert_allclose(local_scales(response, size, widths, 0.9, 0.5, 0.92), expected, rtol=1e-6)


def test_the_dimmer_of_neighbours_leaves() -> None:
    rng = np.random.default_rng(3)
    place, light = rng.uniform(0, 20, (60, 3)), rng.integers(1, 9, 60).astype(float)
    apart = np.array([1.0, 2.0, 3.0])
    near = cdist(place / apart, place / apart) <= 1
    rank = np.lexsort([np.arange(60), -light]).argsort()
    expected = [not any(near[i, j] and rank[j] < rank[i] for j in range(60)) for i in range(60)]
    np.testing.assert_array_equal(resolved(place, light, apart), expected)
    assert 0 < sum(expected) < 60


def test_spots_are_drawn_to_their_reach_and_the_border() -> None:
    shape, sigma = (5, 30, 30), np.array([1.0, 2.0, 2.0])
    spots = np.zeros((2, PARAMETERS))
    spots[:, :3], spots[:, AMPLITUDE] = [[2.3, 14.6, 14.2], [0.0, 1.0, 29.0]], [5.0, 3.0]
    z, y, x = np.ogrid[:5, :30, :30]
    away = [((z - c[0]) ** 2 + ((y - c[1]) / 2) ** 2 + ((x - c[2]) / 2) ** 2) for c in spots]
    expected = 5 * np.exp(-away[0] / 2) + 3 * np.exp(-away[1] / 2)
    np.testing.assert_allclose(render(shape, spots, sigma, 6.0), expected, atol=2e-6)
