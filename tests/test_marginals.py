"""Marginals of the engine beside the exact posterior over partitions into tracks, under the same model."""

import numpy as np
import pytest
from partitions import Assumptions, Scene, enumerated
from posteriors import posterior_of

from outbid.learned.inference.jpda import no_link
from outbid.learned.model import AssociationModel, LocalFields, Model, MotionModel
from outbid.learned.model.movie import Movie, movie_of


def movie_with(seed: int, step: float, particles: int, frames: int) -> Movie:
    """Persistent walkers in a box, some of which are missed, among clutter."""
    rng = np.random.default_rng(seed)
    place = rng.random((particles, 3)) * (particles / 0.6) ** (1 / 3)
    walk = place + step * np.cumsum(rng.normal(size=(frames, particles, 3)), axis=0)
    seen = [part[rng.random(particles) > 0.1] for part in walk]
    return movie_of(np.concatenate(seen), np.concatenate([[0], np.cumsum([len(part) for part in seen])]))


def model_of(movie: Movie, step: float) -> Model:
    """Two classes of steps, gaps of a frame, deaths, births and clutter."""
    variance = (step * movie.basis[0, 0]) ** 2 * np.array([[0.7], [2.0]]) * np.ones((1, movie.axes))
    motion = MotionModel(
        variance, np.array([0.1, 0.4]), np.array([0.7, 0.3]), np.array([0.2, 0.3]),
        np.full(movie.axes, 0.05 * variance[0, 0]), np.ones(movie.frames - 1),
    )  # fmt: skip
    delay = np.array([0.85, 0.08])
    return Model(motion, AssociationModel(delay, delay, 0.02), LocalFields.uniform(0 * movie.position))


def assumed(movie: Movie, model: Model) -> tuple[Scene, Assumptions]:
    """The same for the oracle."""
    motion, association, around = model.motion, model.association, model.local
    scene = Scene(movie.position, movie.frame, movie.density, around.flow)
    rates = (association.delay, *no_link(movie, model), association.clutter / (1 - association.clutter))
    return scene, Assumptions(
        motion.variance, motion.correlation, motion.share, motion.renewal, motion.noise, *rates
    )


def compared(movie: Movie, model: Model, exact: np.ndarray) -> np.ndarray:
    """Differences of the marginals, of the links that either finds possible."""
    found = posterior_of(movie, model, sweeps=30, still=1e-6)
    known = np.zeros_like(exact)
    known[found.candidates.tail, found.candidates.head] = found.probability
    return (known - exact)[np.maximum(exact, known) > 0.02]


@pytest.mark.smoke
@pytest.mark.parametrize(("step", "error"), [(0.15, 0.03), (0.3, 0.04)])
def test_marginals_over_three_frames_are_near_the_exact_ones(step: float, error: float) -> None:
    apart = []
    for seed in range(4):
        movie = movie_with(seed, step, 3, 3)
        model = model_of(movie, step)
        apart.append(compared(movie, model, enumerated(*assumed(movie, model))))
    assert np.abs(np.concatenate(apart)).mean() < error
