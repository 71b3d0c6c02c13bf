"""The oracle of partitions: densities of tracks by algebra, marginals by enumeration."""

from dataclasses import replace

import numpy as np
import pytest
from partitions import Assumptions, Scene, log_density, partitions


def assumptions(**changed: object) -> Assumptions:
    """Two classes of steps, a slow diffusing and a fast persistent one."""
    usual = Assumptions(
        np.array([[0.04, 0.03], [0.3, 0.2]]), np.array([0.1, 0.7]), np.array([0.6, 0.4]),
        np.array([0.2, 0.2]), np.array([0.01, 0.02]), np.array([0.85, 0.05]), 0.1, 0.1, 0.02,
    )  # fmt: skip
    return replace(usual, **changed)  # type: ignore[arg-type]


def scene(seed: int, counts: tuple[int, ...], side: float = 1.6) -> Scene:
    rng = np.random.default_rng(seed)
    frame = np.repeat(np.arange(len(counts)), counts)
    return Scene.of(rng.random((len(frame), 2)) * side, frame)


@pytest.mark.smoke
@pytest.mark.parametrize("renewal", [0.0, 0.35])
def test_the_density_of_a_track_is_the_normal_one(renewal: float) -> None:
    """Of one class, with and without renewals, from the covariance of all steps at once."""
    given = assumptions(
        step=np.array([[0.3, 0.2]]),
        persistence=np.array([0.7]),
        share=np.ones(1),
        renewal=np.array([renewal]),
    )
    frame = np.array([0, 1, 3, 4])
    the = replace(Scene.of(np.random.default_rng(0).normal(size=(4, 2)), frame), flow=np.full((4, 2), 0.1))
    sums = np.array([[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])  # steps up to each later detection
    apart = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    density = 0.0
    for second, third in np.ndindex(2, 2):  # whether the links of lag 2 and of lag 1 begin anew
        chain = np.cumsum([0, second, 0, third])
        steps = 0.7**apart * (chain[:, None] == chain)
        kept = (1 - renewal) ** 2, 1 - renewal
        part = (1 - kept[0] if second else kept[0]) * (1 - kept[1] if third else kept[1])
        for axis in range(2):
            covariance = given.step[0, axis] * sums @ steps @ sums.T
            covariance = covariance + given.noise[axis] * (1 + np.eye(3))
            offset = the.position[1:, axis] - the.position[0, axis] - 0.1 * frame[1:]
            part *= np.exp(-0.5 * offset @ np.linalg.solve(covariance, offset))
            part /= np.sqrt(np.linalg.det(2 * np.pi * covariance))
        density += part
    assert log_density(the, given, (0, 1, 2, 3)) == pytest.approx(np.log(density), abs=1e-9)


def test_classes_are_mixed_by_their_shares() -> None:
    the, both = scene(1, (1, 1, 1)), assumptions(renewal=np.zeros(2))
    parts = []
    for kind in range(2):
        one = assumptions(
            step=both.step[kind : kind + 1], persistence=both.persistence[kind : kind + 1],
            share=np.ones(1), renewal=np.zeros(1),
        )  # fmt: skip
        parts.append(np.log(both.share[kind]) + log_density(the, one, (0, 1, 2)))
    assert log_density(the, both, (0, 1, 2)) == pytest.approx(np.logaddexp(*parts))


@pytest.mark.smoke
def test_all_partitions_are_enumerated_once() -> None:
    found = [frozenset(tracks) for tracks in partitions(scene(0, (2, 2)), 1)]
    assert len(found) == len(set(found)) == 7
    assert len(list(partitions(scene(0, (1, 1, 1)), 1))) == 4
    assert len(list(partitions(scene(0, (1, 1, 1)), 2))) == 5
