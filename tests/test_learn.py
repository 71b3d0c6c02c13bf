"""Parameters learned from simulated movies agree with the true ones, on any number of threads; odd movies."""

import numpy as np
import pytest
from numpy.typing import NDArray

from outbid.gated.linking import Links
from outbid.learned.inference.decide import decide
from outbid.learned.learn import Fit, em, learn
from outbid.learned.learn.options import LearnOptions
from outbid.learned.learn.registration import frame_shifts
from outbid.learned.model import AssociationModel, LocalFields, Model, MotionModel

STEP, PERSISTENCE, NOISE, MISS, LOST, CLUTTER = 0.14, 0.8, 0.03, 0.05, 0.02, 0.03


class Walkers:
    """Persistent walkers at density 1, some of which are missed, replaced, or clutter."""

    def __init__(
        self, seed: int, *, count: int = 400, frames: int = 20, step: float = STEP,
        persistence: float = PERSISTENCE, miss: float = MISS, clutter: float = CLUTTER,
    ) -> None:  # fmt: skip
        rng = np.random.default_rng(seed)
        side = count ** (1 / 3)
        place, name = rng.uniform(0, side, (count, 3)), np.arange(count)
        velocity = rng.normal(0, step, (count, 3))
        seen, names = [], []
        for frame in range(frames):
            if frame:
                turn = rng.normal(0, step * np.sqrt(1 - persistence**2), (count, 3))
                velocity = persistence * velocity + turn
                place = place + velocity
                new = (rng.random(count) < LOST) | (place < 0).any(axis=1) | (place > side).any(axis=1)
                place[new] = rng.uniform(0, side, (new.sum(), 3))
                name[new] = name.max() + 1 + np.arange(new.sum())
                velocity[new] = rng.normal(0, step, (new.sum(), 3))
            kept = rng.random(count) > miss
            false = rng.uniform(0, side, (rng.poisson(clutter * count), 3))
            seen.append(np.concatenate([place[kept] + rng.normal(0, NOISE, (kept.sum(), 3)), false]))
            names.append(np.concatenate([name[kept], np.full(len(false), -1)]))
        self.position = np.concatenate(seen)
        self.name = np.concatenate(names)
        self.frame_start = np.concatenate([[0], np.cumsum([len(part) for part in seen])])

    def links(self) -> NDArray[np.int64]:
        order = np.argsort(self.name, kind="stable")
        order = order[self.name[order] >= 0]
        same = self.name[order[1:]] == self.name[order[:-1]]
        return np.column_stack([order[:-1], order[1:]])[same]


FEW = Walkers(0, count=270, frames=10)  # a third of the detections, for what holds of any movie


@pytest.fixture(scope="module")
def walkers() -> Walkers:
    return Walkers(0)


@pytest.fixture(scope="module")
def of_few() -> Fit:
    return learn(FEW.position, FEW.frame_start)


@pytest.fixture(scope="module")
def learned(walkers: Walkers) -> Fit:
    return learn(walkers.position, walkers.frame_start)


def judged(walkers: Walkers, found: Fit) -> tuple[float, NDArray[np.bool_], Links]:
    """Link F1, which links are true, and the links."""
    links = decide(found.posterior.candidates, found.posterior.probability)
    true = {*map(tuple, walkers.links().tolist())}
    hit = np.array([tuple(pair) in true for pair in links.pairs.tolist()])
    return 2 * hit.sum() / (len(links.pairs) + len(true)), hit, links


@pytest.mark.smoke
def test_links_are_the_true_ones_and_as_probable_as_they_say(walkers: Walkers, learned: Fit) -> None:
    f1, hit, links = judged(walkers, learned)
    assert f1 > 0.96
    assert links.probability.mean() == pytest.approx(hit.mean(), abs=0.01)
    unsure = links.probability < 0.9
    assert links.probability[unsure].mean() == pytest.approx(hit[unsure].mean(), abs=0.1)


@pytest.mark.smoke
def test_motion_is_learned(learned: Fit) -> None:
    motion, unit = learned.model.motion, learned.movie.basis
    # Whitened axes may be turned: traces are not.
    inverse = np.linalg.inv(unit)
    step = np.sqrt(np.trace(inverse.T @ np.diag(motion.share @ motion.variance) @ inverse) / 3)
    noise = np.sqrt(np.trace(inverse.T @ np.diag(motion.noise) @ inverse) / 3)
    assert step == pytest.approx(STEP, rel=0.05)
    assert noise == pytest.approx(NOISE, rel=0.15)
    assert motion.share @ motion.correlation == pytest.approx(PERSISTENCE, abs=0.05)


@pytest.mark.smoke
def test_rates_are_learned(walkers: Walkers, learned: Fit) -> None:
    association = learned.model.association
    assert association.clutter == pytest.approx((walkers.name < 0).mean(), abs=0.012)
    frame = np.repeat(np.arange(20), np.diff(walkers.frame_start))
    source, target = walkers.links().T
    lag = np.bincount(frame[target] - frame[source], minlength=3)
    assert association.delay[1] / association.delay[0] == pytest.approx(lag[2] / lag[1], rel=0.35)


def test_what_is_learned_does_not_depend_on_threads(of_few: Fit) -> None:
    again = learn(FEW.position, FEW.frame_start, LearnOptions(workers=3))
    assert again.posterior.probability.tobytes() == of_few.posterior.probability.tobytes()
    assert again.model.motion.variance.tobytes() == of_few.model.motion.variance.tobytes()


@pytest.mark.parametrize("moved", ["turned", "mirrored", "far off"])
def test_a_movie_that_is_turned_mirrored_or_far_off_has_the_same_links(of_few: Fit, moved: str) -> None:
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    position = {
        "turned": FEW.position @ turn,
        "mirrored": FEW.position[:, [2, 0, 1]] * [1, -1, 1],
        "far off": FEW.position + 1e9,
    }[moved]
    other = learn(np.ascontiguousarray(position), FEW.frame_start)
    links = [
        {*map(tuple, decide(one.posterior.candidates, one.posterior.probability).pairs.tolist())}
        for one in (of_few, other)
    ]
    assert len(links[0] ^ links[1]) <= 1e-4 * len(links[0])


def test_a_sideways_view_of_noise_is_registered_alike() -> None:
    """Frames that do not shift: what the correlation takes for a shift does not depend on the axes."""
    rng = np.random.default_rng(3)
    seen, start = rng.uniform(0, 9, (8 * 700, 3)), np.arange(9) * 700
    plain, mirrored = frame_shifts(seen, start), frame_shifts(-seen[:, ::-1], start)
    assert plain == pytest.approx(-mirrored[:, ::-1])


def test_gaps_are_bridged_unless_they_are_not_sought(learned: Fit) -> None:
    without = learn(FEW.position, FEW.frame_start, LearnOptions(longest_lag=1))
    lags = [one.posterior.candidates.lag[one.posterior.probability > 0.5] for one in (learned, without)]
    assert (lags[0] > 1).sum() > 200
    assert lags[1].max() == 1


@pytest.mark.parametrize("missed", [0.2, 0.4])
def test_half_of_those_without_a_successor_are_expected_later(
    monkeypatch: pytest.MonkeyPatch, missed: float
) -> None:
    monkeypatch.setattr(em, "MISSED", missed)
    one, delay = np.ones(1), np.append(0.8, np.zeros(20))
    motion = MotionModel(one[:, None], 0 * one, one, one, one, one)
    model = Model(motion, AssociationModel(delay, delay, 0.0), LocalFields.uniform(np.zeros((2, 1))))
    expected = em.expecting_gaps(model).association
    assert expected.delay[1:].sum() == pytest.approx(0.1)
    assert expected.delay_back[1:].sum() == pytest.approx(0.1)


def test_a_large_movie_is_linked_by_what_a_part_of_it_shows(walkers: Walkers, learned: Fit) -> None:
    large = learn(walkers.position, walkers.frame_start, LearnOptions(sample=3000))
    assert judged(walkers, large)[0] == pytest.approx(judged(walkers, learned)[0], abs=0.004)
    rates = (large.model.association, learned.model.association)
    assert rates[0].delay[:2] == pytest.approx(rates[1].delay[:2], abs=0.01)
    again = learn(walkers.position, walkers.frame_start, LearnOptions(sample=3000, workers=3))
    assert again.posterior.probability.tobytes() == large.posterior.probability.tobytes()


@pytest.mark.slow
def test_fast_walkers_among_clutter_are_followed() -> None:
    """Their next detections are rarely the nearest: learning from diffusion never finds them."""
    fast = Walkers(1, count=150, step=0.24, persistence=0.95, miss=0.15, clutter=0.15)
    assert judged(fast, learn(fast.position, fast.frame_start))[0] > 0.8


def test_clutter_where_particles_were_missed_is_no_step_there_and_back() -> None:
    """A class of wide steps that turn back would link particles to clutter in frames that miss them."""
    missed = Walkers(2, count=300, step=0.07, persistence=0.0, miss=0.08, clutter=0.1)
    found = learn(missed.position, missed.frame_start)
    assert found.model.motion.correlation.min() >= -0.5
    assert judged(missed, found)[0] > 0.978


@pytest.mark.slow
def test_a_model_learned_from_a_part_leads_to_the_links_of_the_whole() -> None:
    """A model of little noise, before links are known, leads EM into another optimum than the whole movie."""
    fast = Walkers(1, count=150, step=0.3, persistence=0.95, miss=0.15, clutter=0.15)
    part, whole = (
        judged(fast, learn(fast.position, fast.frame_start, LearnOptions(trial=trial)))[0]
        for trial in (1000, len(fast.position))
    )
    assert part == pytest.approx(whole, abs=0.015)


ODD = {
    "one particle": (np.random.default_rng(0).normal(size=(12, 3)), np.arange(13)),
    "two frames": (np.array([[0.0, 0, 0], [5, 5, 5], [0.1, 0, 0], [5, 5, 5.1]]), np.array([0, 2, 4])),
    "nothing moves": (np.tile(np.eye(4)[:, :3] * 7, (6, 1)), np.arange(7) * 4),
    "empty frames": (np.tile(np.eye(4)[:, 1:] * 9, (3, 1)), np.array([0, 4, 4, 8, 8, 12])),
}


@pytest.mark.nightly
@pytest.mark.parametrize("position", [np.zeros((8, 3)), np.arange(24.0).reshape(8, 3)])
def test_movies_without_extent_or_on_a_line_have_probabilities(position: NDArray[np.float64]) -> None:
    found = learn(position, np.array([0, 2, 4, 6, 8]))
    assert found.movie.axes == 1
    assert np.isfinite(found.posterior.probability).all()


@pytest.mark.smoke
@pytest.mark.parametrize("name", ODD)
def test_odd_movies_have_probabilities(name: str) -> None:
    position, frame_start = ODD[name]
    found = learn(position + 0.0, frame_start)
    assert np.isfinite(found.posterior.probability).all()
    links = decide(found.posterior.candidates, found.posterior.probability)
    assert (found.movie.frame[links.pairs[:, 1]] > found.movie.frame[links.pairs[:, 0]]).all()


def test_options_are_kept(walkers: Walkers) -> None:
    part, start = walkers.position[: walkers.frame_start[7]], walkers.frame_start[:8]
    found = learn(part, start, LearnOptions(longest_lag=2))
    assert found.model.association.longest == 2
