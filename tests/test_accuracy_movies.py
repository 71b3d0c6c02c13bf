"""The list of movies on which learned linking is measured: complete, reproducible, and what its names say."""

import numpy as np
import pytest
from accuracy.film import folded
from accuracy.movies import KINDS, Movie, fingerprint, plan, simulated

from outbid import Tracks


def steps_of(film: Tracks) -> np.ndarray:
    """Displacements of true links to the next frame."""
    source, target = film.links.T
    seen = film.detections
    next_frame = seen.frame[target] == seen.frame[source] + 1
    return (seen.position[target] - seen.position[source])[next_frame]


def test_each_kind_is_either_developed_on_or_reported() -> None:
    given = plan()
    named = given["developed"]["kinds"] + given["reported"]["kinds"]
    assert sorted(named) == sorted(KINDS)
    assert not set(given["developed"]["recorded"]) & set(given["reported"]["recorded"])


def test_most_movies_are_never_developed_on() -> None:
    """A change may be chosen on few seeds of some kinds; figures come from the rest."""
    movies = simulated()
    kinds = {movie.kind for movie in movies}
    assert len(kinds) >= 16
    assert {len({m.seed for m in movies if m.kind == kind}) for kind in kinds} == {12}
    developed = [movie for movie in movies if movie.developed]
    assert len(developed) < len(movies) / 5
    assert {movie.kind for movie in developed} <= set(plan()["developed"]["kinds"])
    assert not Movie("swimmers", 0.14, plan()["developed"]["seeds"]).developed
    assert not Movie("celegans/L1.csv", 2).developed


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_a_movie_with_its_truth(kind: str) -> None:
    kappa = 0.14
    film = KINDS[kind](11, kappa)
    seen = film.detections
    counts = np.bincount(seen.frame)
    assert 20 <= len(counts) <= 40
    assert 5 <= np.median(counts) <= 600
    assert len(film.links) > 0.55 * len(seen)
    dividing = int((film.successors > 1).sum())
    assert (dividing > 10) == kind.startswith("dividing")
    assert dividing or film.successors.max() == 1
    shared = kind in {"pipe", "stage_jumps", "shaking", "unlike_axes", "beating", "two_streams", "shear"}
    if not shared:
        rms = float(np.sqrt(np.mean(np.square(steps_of(film))[:, seen.position.any(axis=0)])))
        assert 0.6 * kappa < rms < 1.6 * kappa


def test_rows_do_not_give_links_away() -> None:
    """Particles of one frame come in a random order: the next frame's order says nothing of who is who."""
    film = KINDS["diffusion"](3, 0.14)
    seen = film.detections
    rank = np.arange(len(seen)) - seen.frame_start[seen.frame]
    assert abs(np.corrcoef(rank[film.links[:, 0]], rank[film.links[:, 1]])[0, 1]) < 0.05


def test_a_seed_is_a_movie_and_another_is_another() -> None:
    for kind in ("curved", "dividing", "blinking"):
        once, again, other = (fingerprint(KINDS[kind](seed, 0.14)) for seed in (5, 5, 6))
        assert once == again != other


def test_flights_go_straight_until_a_wall_reflects_them() -> None:
    film = KINDS["flights"](2, 0.14)
    position = film.detections.position
    order = np.lexsort((film.detections.frame, film.track_id))
    paths = position[order].reshape(500, 20, 3)
    turn = np.diff(paths, n=2, axis=1)
    inside = ((paths > 0.6) & (paths < 500 ** (1 / 3) - 0.6)).all(axis=2)[:, 1:-1]
    assert np.abs(turn[inside]).max() < 1e-5
    assert np.abs(turn).max() > 0.1


def test_walls_reflect() -> None:
    assert folded(np.array([-0.25, 0.5, 1.25, 2.25]), 1.0).tolist() == [0.25, 0.5, 0.75, 0.25]
