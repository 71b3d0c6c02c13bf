"""Crowds: merged spots are divided by their brightness, and lone ones are left alone."""

import numpy as np
import pytest
from numpy.typing import NDArray
from test_detect import blob

from outbid import match
from outbid.detection import detect
from outbid.settings.detection import DetectionSettings


def drawn(place: NDArray, amplitude: NDArray, shape: tuple[int, int, int], sigma: tuple) -> NDArray:
    image = np.zeros(shape)
    axes = np.ogrid[tuple(slice(0, n) for n in shape)]
    for at, light in zip(place, amplitude, strict=True):
        away = sum(((a - c) / max(s, 1e-9)) ** 2 for a, c, s in zip(axes, at, sigma, strict=True))
        image += light * np.exp(-away / 2)
    return image


def crowd(flat: bool, seed: int, spread: float) -> tuple[NDArray, NDArray]:
    """Spots at random, .3 in the area or volume of one, whose brightness varies by `spread`."""
    rng = np.random.default_rng(seed)
    shape, sigma = ((1, 90, 90), (0.0, 2.0, 2.0)) if flat else ((16, 48, 48), (1.5, 1.8, 1.8))
    area = np.prod([np.sqrt(2 * np.pi) * s for s in sigma if s > 0])
    place = rng.uniform(0, np.array(shape) - 1, (int(0.3 * np.prod(shape) / area), 3))
    light = drawn(place, 100 * np.exp(spread * rng.standard_normal(len(place))), shape, sigma)
    return rng.poisson(50 + light), place


def jaccard(image: NDArray, truth: NDArray, workers: int = 1) -> float:
    seen, _ = detect([image], DetectionSettings(), workers=workers)
    right = len(match(seen.position, truth, 1.5).source)
    return right / (len(seen) + len(truth) - right)


@pytest.mark.parametrize(
    ("flat", "spread", "least"),
    [
        (True, 0.0, 0.75),
        pytest.param(True, 0.4, 0.6, marks=pytest.mark.slow),
        pytest.param(False, 0.2, 0.6, marks=pytest.mark.slow),
    ],
)
def test_most_spots_of_a_crowd_are_separated(flat: bool, spread: float, least: float) -> None:
    score = [jaccard(*crowd(flat, seed, spread)) for seed in (0, 1)]
    assert np.mean(score) > least


def test_threads_do_not_change_a_crowd() -> None:
    image, _ = crowd(True, 2, 0.2)
    one, two = (detect([image], DetectionSettings(), workers=n)[0] for n in (1, 3))
    np.testing.assert_array_equal(one.position, two.position)


@pytest.mark.smoke
def test_bright_spots_by_themselves_stay_single() -> None:
    """Those twice as bright as most are no pairs if there is room for all."""
    place = np.stack(np.meshgrid([0], np.arange(8, 120, 14), np.arange(8, 120, 14), indexing="ij"), -1)
    place = place.reshape(-1, 3).astype(float)
    amplitude = np.where(np.arange(len(place)) % 4 == 0, 300.0, 120.0)
    image = np.random.default_rng(0).poisson(30 + drawn(place, amplitude, (1, 120, 120), (0, 2, 2)))
    seen, _ = detect([image], DetectionSettings())
    assert len(place) <= len(seen) <= len(place) + 1, "one that is as probable as not"


@pytest.mark.smoke
def test_spots_of_very_unequal_brightness_are_no_crowd_to_divide() -> None:
    """Without a common brightness, nothing says that a bright spot is two."""
    rng = np.random.default_rng(4)
    place = np.column_stack([np.zeros(60), rng.uniform(5, 115, (60, 2))])
    light = drawn(place, 150 * np.exp(1.2 * rng.standard_normal(60)), (1, 120, 120), (0.0, 2.5, 2.5))
    seen, _ = detect([rng.poisson(50 + light)], DetectionSettings())
    assert len(seen) <= len(place) + 2


def crowded(seed: int, density: float, light: float, side: int, spread: float) -> tuple[NDArray, NDArray]:
    """Spots of 1.06 pixels in a plane, so many in the area of one, of so many photons over ten."""
    rng = np.random.default_rng(seed)
    count = int(density * side**2 / (2 * np.pi * 1.06**2))
    place = np.column_stack([np.zeros(count), rng.uniform(0, side - 1, (count, 2))])
    bright = light * np.exp(spread * rng.standard_normal(count))
    return rng.poisson(10 + drawn(place, bright, (1, side, side), (0.0, 1.06, 1.06))), place


@pytest.mark.slow
def test_narrow_spots_of_a_crowd_are_found() -> None:
    """Beyond some .35 in the area of one, none is: they are a field like any other there (limits.md)."""
    assert np.mean([jaccard(*crowded(seed, 0.3, 22, 96, 0.0)) for seed in (0, 2)]) > 0.65


@pytest.mark.slow
def test_a_crowd_of_faint_spots_is_seen_as_one() -> None:
    """Few of them exceed five standard errors: with those alone, .34."""
    assert np.mean([jaccard(*crowded(seed, 0.2, 9, 96, 0.0)) for seed in (1, 2, 3)]) > 0.5


@pytest.mark.slow
def test_the_share_of_false_ones_holds_in_a_crowd() -> None:
    """Within a factor of two; with what is usual in the crowd, 6 % would be false."""
    found = false = 0
    for seed in range(4):
        image, place = crowded(seed, 0.08, 20, 160, 0.4)
        seen, _ = detect([image], DetectionSettings(fdr=0.01))
        found += len(seen)
        false += len(seen) - len(match(seen.position, place, 1.5).source)
    assert found > 900
    assert false <= 0.02 * found


@pytest.mark.slow
def test_large_spots_in_a_volume_are_divided_until_pairs_are_as_near_as_by_chance() -> None:
    rng = np.random.default_rng(4)
    shape, sigma = (24, 90, 90), (3.9, 4.6, 4.6)
    place = rng.uniform(0, np.array(shape) - 1, (60, 3))
    light = drawn(place, 60 * np.exp(0.4 * rng.standard_normal(len(place))), shape, sigma)
    seen, _ = detect([rng.poisson(10 + light)], DetectionSettings(spacing=(1, 1, 1)))
    right = len(match(seen.position, place, 4.0).source)
    assert right > 0.6 * (len(seen) + len(place) - right)


@pytest.mark.parametrize(("depth", "side"), [(1, 128), (24, 96)])
def test_the_background_does_not_narrow_large_spots(depth: int, side: int) -> None:
    """Its window cannot be much wider than they are: their measured width was a fifth too small."""
    rng, sigma, dimensions = np.random.default_rng(0), 5.0, 2 + (depth > 1)
    light = sum(
        np.exp(0.4 * rng.standard_normal()) * blob((depth, side, side), place, sigma)
        for place in rng.uniform(0, (depth - 1, side - 1, side - 1), (30, 3))
    )
    _, used = detect([rng.poisson(30 + 40 * light)], DetectionSettings())
    assert used.radius == pytest.approx(sigma * dimensions**0.5, rel=0.1)
