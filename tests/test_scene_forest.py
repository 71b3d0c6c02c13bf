"""Where tracks are in the picture of all lineages, and how much of it a view draws; without a window."""

import numpy as np
import pytest
from test_napari_lineage import dividing

from outbid import Detections, Tracks
from outbid.viewers.coloured import coloured, measures_of, names_of
from outbid.viewers.forest import DOUBTFUL, forest_of


def random_forest(seed: int, count: int = 300) -> Tracks:
    """Tracks of 2 to 6 detections, many of which begin at the end of another."""
    rng = np.random.default_rng(seed)
    frames, links, ends, row = [], [], [], 0
    for _ in range(count):
        mother = int(rng.integers(len(ends))) if ends and rng.random() < 0.6 else -1
        start = frames[ends[mother]] + 1 if mother >= 0 else int(rng.integers(20))
        length = int(rng.integers(2, 7))
        links += [(row + k, row + k + 1) for k in range(length - 1)]
        links += [(ends[mother], row)] if mother >= 0 else []
        frames += range(start, start + length)
        row += length
        ends.append(row - 1)
    order = np.argsort(frames, kind="stable")
    at = np.empty(row, np.int64)
    at[order] = np.arange(row)
    pairs = at[np.array(links)]
    seen = Detections.from_table(np.array(frames)[order], rng.uniform(0, 9, (row, 3)))
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return Tracks(seen, pairs, link_probability=rng.uniform(0.5, 1, len(pairs)))


@pytest.mark.smoke
@pytest.mark.parametrize("order", ["start", "most tracks", "least certain"])
def test_no_two_tracks_are_on_the_same_place_and_mothers_are_amid_their_daughters(order: str) -> None:
    tracks = random_forest(1)
    forest = forest_of(tracks, order=order)
    parent = forest.spans.parent
    assert (parent >= 0).sum() > 100
    leaves = np.setdiff1d(np.arange(tracks.track_count), parent)
    assert sorted(forest.column[leaves]) == list(range(forest.width))
    for mother in np.unique(parent[parent >= 0]).tolist():
        family = forest.column[parent == mother]
        assert (
            family.min() - 1e-9 <= forest.column[mother] <= forest.column[family_leaves(parent, mother)].max()
        )
    columns = np.round(2 * forest.column).astype(int)
    for k in np.unique(columns):
        spans = sorted((forest.spans.first[t], forest.spans.last[t]) for t in np.flatnonzero(columns == k))
        assert all(one[1] < other[0] for one, other in zip(spans[:-1], spans[1:], strict=True))


def family_leaves(parent: np.ndarray, mother: int) -> list[int]:
    found, open_ = [], [mother]
    while open_:
        one = open_.pop()
        below = np.flatnonzero(parent == one).tolist()
        open_ += below
        found += [one] * (not below)
    return found


def test_families_are_in_the_order_that_is_asked_for() -> None:
    tracks = random_forest(2)
    least = np.full(tracks.track_count, np.inf)
    np.minimum.at(least, tracks.track_id[tracks.links[:, 1]], tracks.link_probability)
    forest = forest_of(tracks, order="least certain")
    first = forest.family_of([forest.across[0]])
    assert least[first].min() == tracks.link_probability.min()
    sizes = forest_of(tracks, order="most tracks")
    largest = max(len(sizes.family_of([track])) for track in range(tracks.track_count))
    assert len(sizes.family_of([sizes.across[0]])) == largest


def test_a_view_of_all_draws_each_link_and_a_far_one_a_line_a_pixel() -> None:
    tracks = random_forest(3)
    forest, value = forest_of(tracks), coloured(tracks, "link_probability").value
    every = ((-1, forest.width), (-1, 999))
    near = forest.lines(*every, 5000, value)
    drawn = {(tuple(x), tuple(y)) for x, y in zip(near.x.tolist(), near.y.tolist(), strict=True)}
    places = forest.place_of(tracks.links.ravel()).reshape(-1, 2, 2)
    assert drawn == {((a[0], b[0]), (a[1], b[1])) for a, b in places.tolist()}
    assert len(near.x) == len(tracks.links)
    assert np.array_equal(np.sort(near.spots), np.arange(len(value)))
    assert set(near.doubtful) == set(np.flatnonzero(tracks.link_probability < DOUBTFUL))
    assert (np.diff(tracks.link_probability[near.doubtful]) >= 0).all()
    far = forest.lines(*every, 40, value)
    assert len(far.x) <= 41
    assert (far.y.min(), far.y.max()) == (forest.spans.first.min(), forest.spans.last.max())
    part = forest.lines((10, 20), (5, 9), 5000, value)
    inside = (places[..., 0].max(axis=1) >= 9) & (places[..., 0].min(axis=1) <= 21)
    inside &= (places[:, 1, 1] >= 5) & (places[:, 0, 1] <= 9)
    assert len(part.x) >= inside.sum()
    assert len(part.x) < len(near.x) / 2


def test_the_nearest_detection_is_found_or_none() -> None:
    tracks = random_forest(4)
    forest = forest_of(tracks)
    places = forest.place_of(np.arange(len(tracks.detections)))
    for row in range(0, len(places), 7):
        assert forest.nearest(places[row, 0] + 0.1, places[row, 1] - 0.2, (0.4, 0.5)) == row
    assert forest.nearest(-50, 3, (1, 1)) == -1
    assert forest.nearest(places[0, 0], 10_000, (1, 1)) == -1


def test_filtered_tracks_have_no_place_and_their_daughters_begin_anew() -> None:
    tracks = dividing()
    root = int(tracks.track_id[0])
    forest = forest_of(tracks, tracks.track_id != root)
    assert np.isnan(forest.column[root])
    assert forest.width == 4
    assert np.isfinite(np.delete(forest.column, root)).all()
    assert forest_of(tracks, np.zeros(16, bool)).width == 0


def test_values_of_colours_are_those_of_tables() -> None:
    tracks = dividing()
    assert names_of(tracks)[:4] == ["link_probability", "track", "speed", "mass"]
    measured = measures_of(tracks)
    assert measured["generation"].tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 1, 2, 2, 0]
    share = coloured(tracks, "generation", measured).share
    assert share.min() == 0
    assert share.max() == 1
