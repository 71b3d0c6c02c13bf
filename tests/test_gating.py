"""Gating against all pairs, whatever the blocks, the radius or the number of threads."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import points

from outbid import ResourceError
from outbid.geometry.gating import pairs_within


def pair_set(found) -> set[tuple[int, int]]:
    row = np.repeat(found.rows.order, np.diff(found.indptr))
    col = found.cols.order[found.indices]
    pairs = set(zip(row.tolist(), col.tolist(), strict=True))
    assert len(pairs) == len(row), "a pair is there twice"
    return pairs


def all_pairs(rows, cols, radius, row_block, col_block, offsets) -> set[tuple[int, int]]:
    distance2 = ((rows[:, None] - cols[None]) ** 2).sum(axis=2)
    offset = col_block[None, :] - row_block[:, None]
    near = (distance2 <= radius**2) & (offset >= offsets[0]) & (offset <= offsets[1])
    return set(zip(*(index.tolist() for index in np.nonzero(near)), strict=True))


@pytest.mark.smoke
@settings(max_examples=examples(300))
@given(points(), points(), st.sampled_from([0.0, 0.5, 1.0, 1.7, 100.0, np.inf]))
def test_finds_exactly_the_pairs_within_the_radius(rows, cols, radius):
    found = pairs_within(rows, cols, radius, np.array([0, len(rows)]), np.array([0, len(cols)]))
    zero = np.zeros(len(rows), int), np.zeros(len(cols), int)
    assert pair_set(found) == all_pairs(rows, cols, radius, *zero, (0, 0))
    row = np.repeat(np.arange(len(rows)), np.diff(found.indptr))
    difference = found.rows.point[:, row] - found.cols.point[:, found.indices]
    np.testing.assert_array_equal(found.distance2, (difference**2).sum(axis=0))


@settings(max_examples=examples(200))
@given(points(), points(), st.tuples(st.integers(-2, 2), st.integers(0, 2)), st.data())
def test_compares_only_blocks_at_the_allowed_offsets(rows, cols, span, data):
    blocks = 4
    draw = [
        np.sort(data.draw(st.lists(st.integers(0, 3), min_size=len(p), max_size=len(p))))
        for p in (rows, cols)
    ]
    row_block, col_block = (block.astype(int) for block in draw)
    offsets = (span[0], span[0] + span[1])
    starts = [np.searchsorted(block, np.arange(blocks + 1)) for block in (row_block, col_block)]
    found = pairs_within(rows, cols, 1.0, *starts, offsets)
    assert pair_set(found) == all_pairs(rows, cols, 1.0, row_block, col_block, offsets)


@pytest.mark.parametrize(("scale", "shift"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e6), (1.0, -1e6)])
def test_scale_and_offset_do_not_change_the_pairs(scale, shift):
    rng = np.random.default_rng(1)
    # Multiples of 2^-10 stay exact under the shift: any difference would be the grid's.
    rows, cols = (np.rint(rng.uniform(0, 5, (300, 3)) * 1024) / 1024 for _ in range(2))
    one = np.array([0, 300])
    expected = pair_set(pairs_within(rows, cols, 0.7501, one, one))
    found = pairs_within(rows * scale + shift, cols * scale + shift, 0.7501 * scale, one, one)
    assert pair_set(found) == expected


def test_a_stray_point_far_away_costs_nothing():
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.uniform(0, 10, (1000, 3)), [[1e12, -1e12, 1e12]]])
    one = np.array([0, len(rows)])
    found = pairs_within(rows, rows, 1.0, one, one)
    assert pair_set(found) == all_pairs(rows, rows, 1.0, np.zeros(1001, int), np.zeros(1001, int), (0, 0))


@pytest.mark.smoke
@pytest.mark.parametrize("flat", [(0,), (0, 1), (0, 1, 2)])
def test_flat_collinear_and_identical_points(flat):
    points = np.random.default_rng(3).uniform(0, 9, (200, 3))
    points[:, flat] = 4.25
    one = np.array([0, 200])
    found = pairs_within(points, points, 1.0, one, one)
    assert pair_set(found) == all_pairs(points, points, 1.0, np.zeros(200, int), np.zeros(200, int), (0, 0))


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_workers_do_not_change_the_result(workers):
    rng = np.random.default_rng(4)
    rows, cols = rng.uniform(0, 9, (700, 3)), rng.uniform(0, 9, (500, 3))
    starts = np.array([0, 300, 700]), np.array([0, 100, 500])
    one, many = (pairs_within(rows, cols, 1.2, *starts, (0, 1), workers=w) for w in (1, workers))
    for name in ("indptr", "indices", "distance2"):
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name))


def test_candidates_beyond_the_memory_are_refused_with_their_size():
    points = np.zeros((2000, 3))
    one = np.array([0, 2000])
    with pytest.raises(ResourceError, match=r"4,000,000 pairs .* Lower the largest distance"):
        pairs_within(points, points, 1.0, one, one, most_bytes=1_000_000)


def test_points_of_a_cell_keep_their_order():
    points = np.zeros((5, 3))
    found = pairs_within(points, points, 1.0, np.array([0, 5]), np.array([0, 5]))
    assert found.rows.order.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.smoke
@pytest.mark.parametrize("axis", range(3))
def test_pairs_at_the_radius_are_found_wherever_cells_begin(axis):
    rows, cols = np.zeros((2, 2000, 3))
    rows[:, axis] = np.random.default_rng(axis).uniform(0, 9, 2000)
    cols[:, axis] = rows[:, axis] + (1 - 1e-9)
    block = np.array([0, 2000])
    found = pairs_within(rows, cols, 1.0, block, block)
    apart = np.abs(rows[:, None, axis] - cols[None, :, axis])
    assert found.indptr[-1] == (apart <= 1).sum()
