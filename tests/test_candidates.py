"""Candidates: one walk over cells lists the pairs that all distances give."""

import numpy as np
import pytest

from outbid import ResourceError
from outbid.detections import Detections
from outbid.refine import candidates
from outbid.refine.candidates import pairs_of
from outbid.refine.candidates_cpu import add_up
from outbid.refine.movie import movie_of


def found(rows, row_start, cols, col_start, ahead, workers=1):
    indptr, indices = candidates._listed(rows, row_start, cols, col_start, ahead, workers, None)
    return list(zip(np.repeat(np.arange(len(rows)), np.diff(indptr)).tolist(), indices.tolist(), strict=True))


def near(rows, row_start, cols, col_start, ahead):
    block, other = (np.repeat(np.arange(len(start) - 1), np.diff(start)) for start in (row_start, col_start))
    apart = np.square(rows[:, None] - cols[None]).sum(axis=2)
    return set(zip(*np.nonzero((apart <= 1) & (block[:, None] + ahead == other[None])), strict=True))


@pytest.mark.parametrize("ahead", [1, 2, -1, 7])
@pytest.mark.parametrize("wide", [(9, 9, 9), (0, 30, 40), (0, 0, 90), (2, 2, 2), (300, 300, 300)])
def test_those_that_all_distances_give(ahead, wide):
    rng = np.random.default_rng(0)
    rows, cols = (rng.uniform(-0.5, 0.5, (count, 3)) * wide for count in (700, 500))
    cols[:3], rows[:2] = 1e6, 1e6  # a stray few
    starts = np.array([0, 200, 200, 500, 700]), np.array([0, 100, 250, 250, 500])
    pairs = found(rows, starts[0], cols, starts[1], ahead)
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == near(rows, starts[0], cols, starts[1], ahead)
    assert all(pairs == found(rows, starts[0], cols, starts[1], ahead, workers) for workers in (2, 5))


def test_a_stray_few_make_no_cells_wide():
    points = np.random.default_rng(0).uniform(0, 12, (2000, 3))
    points[:4] = 1e6
    _, inverse_edge, size = candidates._cells(points, points, 2)
    assert (inverse_edge > 0.5).all()
    assert np.prod(size) < 20 * len(points)


def test_room_grows_as_it_must():
    points, start = np.zeros((600, 3)), np.array([0, 300, 600])
    indptr, indices = candidates._listed(points, start, points, start, 1, 1, None)
    assert indptr.tolist() == [*range(0, 90_001, 300), *[90_000] * 300]
    np.testing.assert_array_equal(indices.reshape(300, 300), np.arange(300, 600) + np.zeros((300, 1), int))


def test_at_the_gate_is_within():
    points = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [-1, 0, 0], [0, 0, np.nextafter(1, 2)]])
    pairs = found(points[:1], np.array([0, 1, 1]), points[1:], np.array([0, 0, 4]), 1)
    assert sorted(pairs) == [(0, 0), (0, 1), (0, 2)]


def test_densities_are_counted_around_each_usually_and_in_the_box_at_large():
    movie = movie_of(
        Detections.from_table(np.repeat([0, 1, 2], 40), np.random.default_rng(1).random((120, 3)) * 4),
        (1, 1, 1),
    )
    gate, place = np.array([0.9, 0.8, 1.1]), movie.position
    near = np.square((place[:, None] - place[None]) / gate).sum(axis=2) <= 1
    before = movie.frame[:, None] == movie.frame[None] - 1
    others, volume = np.maximum((near & before).sum(axis=0) - 1, 0), 4 / 3 * np.pi * gate.prod()
    evenly = 40 * volume / np.prod(place.max(axis=0) - place.min(axis=0))
    expected = (others + others[movie.frame > 0].mean() + evenly) / 3 / volume
    assert len(set(others.tolist())) > 2
    np.testing.assert_allclose(np.exp(pairs_of(movie, tuple(gate)).log_density), expected)


def test_weights_are_added_up_by_row_and_by_column():
    indptr, indices, weight = np.array([0, 2, 2, 3]), np.array([1, 2, 2], np.int32), np.array([0.5, 0.25, 2])
    sums = np.zeros((2, 3))
    add_up(indptr, indices, weight, sums)
    assert sums.tolist() == [[0.75, 0, 2], [0, 0.5, 2.25]]


def test_nothing_is_near_nothing():
    none, start = np.zeros((0, 3)), np.zeros(1, int)
    assert found(none, start, none, start, 1) == []


def test_pairs_beyond_the_memory_are_refused():
    places = np.zeros((4000, 3))
    places[:, 2] = np.linspace(0, 1, 4000)
    movie = movie_of(Detections.from_table(np.repeat([0, 1], 2000), places), (1, 1, 1))
    with pytest.raises(ResourceError, match=r"pairs or more .* Give a smaller gate: --set gate=DISTANCE"):
        pairs_of(movie, (3.0,), most_bytes=100_000)
