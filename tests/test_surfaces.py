"""Particles on surfaces and along fibres: how much too large the probabilities of their links are."""

import numpy as np
import pytest
from scenes import always_seen, share_of_right

from outbid import Tracks, track


def on_sphere(
    kappa: float, *, seed: int = 0, count: int = 800, frames: int = 20, noise: float = 0.03
) -> Tracks:
    """Particles, one a unit of area, that diffuse on a sphere by kappa along each of its two ways."""
    rng, radius = np.random.default_rng(seed), np.sqrt(count / 4 / np.pi)
    place, found = rng.normal(size=(count, 3)), []
    for _ in range(frames):
        place *= radius / np.linalg.norm(place, axis=1)[:, None]
        found.append(place)
        step = kappa * rng.normal(size=place.shape)
        place = place + step - np.sum(step * place, axis=1)[:, None] * place / radius**2
    return always_seen(np.array(found) + noise * kappa * rng.normal(size=(frames, count, 3)))


def along_fibres(kappa: float, *, fibres: int = 20, each: int = 40, frames: int = 20) -> Tracks:
    """Particles, one a unit of length, that diffuse along straight fibres in any direction."""
    rng = np.random.default_rng(0)
    begin, way = rng.uniform(0, each, (fibres, 3)), rng.normal(size=(fibres, 3))
    way /= np.linalg.norm(way, axis=1)[:, None]
    along = rng.uniform(0, each, (fibres * each)) + np.cumsum(
        kappa * rng.normal(size=(frames, fibres * each)), axis=0
    )
    fibre = np.repeat(np.arange(fibres), each)
    return always_seen(begin[fibre] + along[..., None] * way[fibre])


def on_plane(degrees: float, *, kappa: float = 0.25, seed: int = 0, out_of_focus: float = 0.0) -> Tracks:
    """Particles, one a unit of area, that diffuse on a plane so much tilted; with noise along z, in steps."""
    rng, frames, count = np.random.default_rng(seed), 20, 800
    steps = np.cumsum(kappa * rng.normal(size=(frames, count, 2)), axis=0)
    place = np.sqrt(count) - np.abs(
        np.sqrt(count) - np.abs(rng.uniform(0, np.sqrt(count), (count, 2)) + steps)
    )
    tilt = np.radians(degrees)
    axes = np.array([[np.sin(tilt), np.cos(tilt), 0], [0, 0, 1]])
    noise = kappa * np.array([max(out_of_focus, 0.03), 0.03, 0.03])
    return always_seen(place @ axes + noise * rng.normal(size=(frames, count, 3)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "most"),
    [
        (on_sphere(0.1), 0.02), (on_sphere(0.25), 0.08), (on_sphere(0.25, count=4000, frames=4), 0.08),
        (along_fibres(0.1), 0.1), (on_plane(15), 0.03), (on_plane(30, out_of_focus=0.5), 0.03),
    ],
    ids=["sphere", "crowded sphere", "few frames", "fibres", "tilted plane", "out of focus"],
)  # fmt: skip
def test_links_on_surfaces_are_nearly_as_often_right_as_they_say(truth, most):
    """Density is counted in a volume, which particles on a sphere or a fibre do not fill (limits.md)."""
    found = track(truth.detections).tracks
    share = share_of_right(found.links, truth)
    assert found.link_probability.mean() == pytest.approx(share, abs=most)
