"""The posterior over links, against oracles: enumeration and Gaussian conditioning."""

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from posteriors import posterior_of

from outbid.learned.inference.candidates import Search, candidates_of, pairs_near
from outbid.learned.inference.decide import decide, log_odds
from outbid.learned.inference.jpda import updated
from outbid.learned.inference.posterior import LinkPosterior
from outbid.learned.model import AssociationModel, LocalFields, Model, MotionModel
from outbid.learned.model.movie import Movie, movie_of

LOST = 0.1


def model_of(movie: Movie, variance: float, correlation: float, noise: float, delay: list[float]) -> Model:
    """One class of steps without renewals (but for one in a million), and no clutter."""
    one, axes = np.ones(1), movie.axes
    scale = np.ones(movie.frames - 1)
    motion = MotionModel(
        np.full((1, axes), variance), correlation * one, one, 1e-6 * one, np.full(axes, noise), scale
    )
    rate = np.array(delay)
    return Model(motion, AssociationModel(rate, rate, 0.0), LocalFields.uniform(0 * movie.position))


def enumerated(ratio: NDArray[np.float64], none: float) -> NDArray[np.float64]:
    """(R, C) probabilities of pairs, by all matchings; a row or column without one has the weight `none`."""
    rows, cols = ratio.shape
    total, found = 0.0, np.zeros_like(ratio)
    for many in range(min(rows, cols) + 1):
        for some in combinations(range(rows), many):
            for other in permutations(range(cols), many):
                weight = none ** (rows + cols - 2 * many) * np.prod(ratio[list(some), list(other)])
                total += weight
                found[list(some), list(other)] += weight
    return found / total


def crowd(seed: int, step: float) -> tuple[Movie, NDArray[np.float64], Model]:
    """Five particles in two frames, the likelihood ratios of their pairs, and the model."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, 2.2, (5, 3))
    later = place + step * rng.normal(size=place.shape)
    movie = movie_of(np.concatenate([place, later]), np.array([0, 5, 10]))
    scale = movie.basis[0, 0]
    model = model_of(movie, (scale * step) ** 2, 0.0, 1e-9, [1 - LOST])
    square = np.square(movie.position[:5, None] - movie.position[None, 5:]).sum(axis=2)
    variance = (scale * step) ** 2 + 2e-9
    ratio = np.exp(-square / (2 * variance)) / (2 * np.pi * variance) ** 1.5
    return movie, (1 - LOST) * ratio / movie.density[5:], model


@pytest.mark.smoke
@pytest.mark.parametrize(("step", "error"), [(0.1, 0.002), (0.2, 0.01)])
def test_marginals_are_near_those_of_all_matchings(step: float, error: float) -> None:
    wrong = []
    for seed in range(20):
        movie, ratio, model = crowd(seed, step)
        found = posterior_of(movie, model)
        exact = enumerated(ratio, LOST)
        known = np.zeros_like(exact)
        known[found.candidates.tail, found.candidates.head - 5] = found.probability
        seen = np.maximum(exact, known) > 0.02
        wrong.append(np.abs(known - exact)[seen].mean())
    assert np.mean(wrong) < error


@pytest.mark.smoke
def test_a_lone_pair_is_exact() -> None:
    movie = movie_of(np.array([[0.0, 0, 0], [0.3, 0, 0]]), np.array([0, 1, 2]))
    model = model_of(movie, 0.1, 0.0, 0.01, [1 - LOST])
    found = posterior_of(movie, model)
    square = np.square(np.diff(movie.position[:, 0]))[0]
    ratio = (1 - LOST) * np.exp(-square / 0.24) / (2 * np.pi * 0.12) ** 1.5 / movie.density[1]
    assert found.probability == pytest.approx(enumerated(np.array([[ratio]]), LOST)[0, 0], rel=1e-6)


def test_without_rivals_the_exponent_is_of_no_effect() -> None:
    """In a chain of candidates that may be clutter: births and clutter share the weight of no link."""
    movie = movie_of(np.cumsum([[0.0], [0.9], [0.2], [0.8], [0.5]], axis=0), np.arange(6))
    model = model_of(movie, 0.4, 0.0, 0.01, [1 - LOST])
    model = replace(model, association=replace(model.association, clutter=0.8))
    found = []
    for omega in (1.0, 0.75):
        posterior = LinkPosterior.unknown(candidates_of(np.arange(4) * 5 + np.arange(1, 5), movie.frame))
        for _ in range(60):
            posterior = updated(movie, model, posterior, omega=omega)
        found.append(np.append(posterior.probability, posterior.clutter))
    assert found[0][4:].min() > 0.02
    assert found[1] == pytest.approx(found[0], rel=1e-5)


class Chain:
    """One particle, its model, and the joint Gaussian of all it makes, from which everything is known."""

    variance, correlation, noise, frames = 0.2, 0.8, 0.03, 12

    def __init__(self) -> None:
        steps = self.frames - 1
        lag = np.abs(np.subtract.outer(np.arange(steps), np.arange(steps)))
        self.of_steps = self.variance * self.correlation**lag
        differences = np.eye(steps) * 2 - np.eye(steps, k=1) - np.eye(steps, k=-1)
        self.of_seen = self.of_steps + self.noise * differences
        rng = np.random.default_rng(1)
        seen = rng.multivariate_normal(np.zeros(steps), self.of_seen, 3).T
        self.seen = seen
        place = np.concatenate([np.zeros((1, 3)), np.cumsum(seen, axis=0)])
        frame_start = np.arange(self.frames + 1)
        density = np.full(self.frames, 0.5)
        self.movie = Movie(place, np.arange(self.frames), frame_start, density, np.eye(3))
        self.model = model_of(self.movie, self.variance, self.correlation, self.noise, [1 - 1e-9])
        key = np.arange(steps) * self.frames + np.arange(1, self.frames)
        self.posterior = LinkPosterior.unknown(candidates_of(key, self.movie.frame))
        for _ in range(4):
            self.posterior = updated(self.movie, self.model, self.posterior)


@pytest.mark.smoke
def test_the_evidence_of_a_single_track_is_that_of_a_kalman_filter() -> None:
    chain = Chain()
    inverse, steps = np.linalg.inv(chain.of_seen), chain.frames - 1
    quadratic = np.einsum("td,ts,sd", chain.seen, inverse, chain.seen)
    determinant = np.linalg.slogdet(2 * np.pi * chain.of_seen)[1]
    # Where nothing is linked, one track begins in each frame in the mean; here none after the first.
    exact = -0.5 * (quadratic + 3 * determinant) - steps * np.log(0.5) + steps
    assert chain.posterior.probability.min() > 0.999
    assert chain.posterior.log_evidence == pytest.approx(exact, abs=0.02)


def test_the_evidence_is_greatest_at_the_share_of_tracks_that_go_on() -> None:
    rng = np.random.default_rng(2)
    place = 10 * np.stack(np.meshgrid(*[np.arange(20.0)] * 2), axis=-1).reshape(-1, 2)
    later = place + rng.normal(size=place.shape) * 0.1
    later[::2] += 5  # every second track ends, and another one begins
    movie = movie_of(np.concatenate([place, later]), np.array([0, len(place), 2 * len(place)]))
    found = {}
    for share in (0.3, 0.5, 0.7):
        model = model_of(movie, 1e-4, 0.0, 1e-6, [share])
        near = LinkPosterior.unknown(
            candidates_of(pairs_near(movie, Search(1, 2, movie.position)), movie.frame)
        )
        for _ in range(3):
            near = updated(movie, model, near)
        found[share] = near.log_evidence
    assert max(found, key=found.__getitem__) == 0.5


@pytest.mark.smoke
def test_the_moments_of_a_single_track_are_those_of_exact_smoothing() -> None:
    chain = Chain()
    gain = chain.of_steps @ np.linalg.inv(chain.of_seen)
    mean, left = gain @ chain.seen, chain.of_steps - gain @ chain.of_steps
    moments = chain.posterior.moments
    assert moments is not None
    # The first link's step is drawn anew; all others go on from the one before.
    square = moments.sums[:, 0, :, :2].sum(axis=-1)
    assert square == pytest.approx(mean**2 + left.diagonal()[:, None], rel=1e-3)
    product = mean[1:] * mean[:-1] + left.diagonal(offset=1)[:, None]
    assert moments.sums[1:, 0, :, 2] == pytest.approx(product, rel=1e-3, abs=1e-4)
    at_head = chain.noise * (np.eye(chain.frames)[1:] - np.eye(chain.frames)[:-1])
    away = at_head.T @ np.linalg.inv(chain.of_seen)
    residual = (away @ chain.seen) ** 2 + (chain.noise - (away @ at_head).diagonal())[:, None]
    assert moments.residual == pytest.approx(residual[1:], rel=1e-3)


def walks(count: int, frames: int) -> Movie:
    rng = np.random.default_rng(3)
    steps = np.concatenate(
        [rng.uniform(0, count ** (1 / 3), (1, count, 3)), rng.normal(0, 0.15, (frames - 1, count, 3))]
    )
    return movie_of(np.cumsum(steps, axis=0).reshape(-1, 3), np.arange(frames + 1) * count)


@pytest.mark.parametrize(("count", "frames"), [(300, 14), (9000, 2)])
def test_links_and_probabilities_do_not_depend_on_threads(count: int, frames: int) -> None:
    movie = walks(count, frames)
    model = model_of(movie, 0.08, 0.0, 0.001, [0.9, 0.05])
    one, many = (posterior_of(movie, model, sweeps=3, workers=workers) for workers in (1, 3))
    assert one.probability.tobytes() == many.probability.tobytes()
    assert one.competing.tobytes() == many.competing.tobytes()
    assert one.probability.sum() > 0.9 * count * (frames - 1)


@pytest.mark.smoke
def test_probabilities_of_successor_death_and_clutter_sum_to_one() -> None:
    movie = walks(200, 6)
    known = model_of(movie, 0.08, 0.0, 0.001, [0.9])
    rate = known.association.delay
    model = Model(known.motion, AssociationModel(rate, rate, 0.05), known.local)
    found = posterior_of(movie, model)
    after, before = found.degree_probability()
    assert after + found.death + found.clutter == pytest.approx(1, abs=0.01)
    assert before + found.birth + found.clutter == pytest.approx(1, abs=0.05)


def test_candidates_kept_and_added_are_those_searched_at_once() -> None:
    movie = walks(80, 4)
    near, far = (pairs_near(movie, Search(1, many, movie.position)) for many in (2, 5))
    some = LinkPosterior.unknown(candidates_of(near, movie.frame)).with_pairs(far, movie.frame)
    assert np.array_equal(some.candidates.key(), far)
    back = some.kept(np.isin(far, near)).candidates
    for mine, fresh in zip(back, candidates_of(near, movie.frame), strict=True):
        assert np.array_equal(mine, fresh)


SOME = candidates_of(np.array([3, 4, 5, 9, 10, 11, 15, 16, 17]), np.array([0, 0, 0, 1, 1, 1]))
"""Three tails, three heads of six detections."""
SETS = [
    [3 * i + j for i, j in zip(rows, cols, strict=True)]
    for many in range(4)
    for rows in combinations(range(3), many)
    for cols in permutations(range(3), many)
]
"""All sets of these links in which no detection is twice."""


def test_links_of_maximum_expected_f1_are_those_of_all_sets() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        p = rng.dirichlet([0.3, 0.3, 0.3, 0.3], 3)[:, :3].ravel() * 0.9
        best = max(2 * p[those].sum() / (len(those) + p.sum()) for those in SETS)
        links = decide(SOME, p)
        assert 2 * links.probability.sum() / (len(links.pairs) + p.sum()) == pytest.approx(best, abs=0.02)
        assert links.gap == 0


def test_exact_margins_are_what_the_best_set_loses_without_a_link() -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        p = rng.dirichlet([1.0, 1.0, 1.0, 0.1], 3)[:, :3].ravel()
        links = decide(SOME, p, exact=True)
        against = (log_odds(links.probability) + links.cost)[0]  # log odds of the threshold
        gain = log_odds(p) - against

        def best(values: NDArray[np.float64]) -> float:
            return max(values[those].sum() for those in SETS)

        for (tail, head), margin in zip(links.pairs, links.margin, strict=True):
            without = gain.copy()
            without[3 * tail + head - 3] = -99.0
            assert margin == pytest.approx(best(gain) - best(without), abs=1e-6)


@pytest.mark.smoke
def test_walkers_under_the_model_that_made_them_are_linked() -> None:
    """Walkers that keep their heading: who follows whom is known, and so is the model."""
    count, frames, rng = 300, 8, np.random.default_rng(4)
    steps = np.empty((frames, count, 3))
    steps[0] = rng.normal(0, 0.25, (count, 3))
    for t in range(1, frames):
        steps[t] = 0.9 * steps[t - 1] + np.sqrt(1 - 0.81) * rng.normal(0, 0.25, (count, 3))
    place = rng.uniform(0, count ** (1 / 3), (count, 3)) + np.cumsum(steps, axis=0)
    movie = movie_of(place.reshape(-1, 3), np.arange(frames + 1) * count)
    model = model_of(movie, (0.25 * movie.basis[0, 0]) ** 2, 0.9, 1e-4, [0.95, 0.01])
    found = posterior_of(movie, model)
    links = decide(found.candidates, found.probability)
    right = links.pairs[:, 1] == links.pairs[:, 0] + count
    assert right.sum() > 0.97 * count * (frames - 1)
    assert links.probability.mean() == pytest.approx(right.mean(), abs=0.03)
    after, _ = found.degree_probability()
    assert after + found.death + found.clutter == pytest.approx(1, abs=0.02)
