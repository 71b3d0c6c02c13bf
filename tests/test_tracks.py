"""Tracks from links and from labels: numbers, counts, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbid import Detections, InputError, Tracks


def still(frame: list[int]) -> Detections:
    return Detections.from_table(frame, np.zeros((len(frame), 3)))


def numbered_one_by_one(count: int, links: list[tuple[int, int]]) -> list[int]:
    """A new number for whatever begins, divides or merges; the one before it for the rest."""
    number: list[int] = []
    for row in range(count):
        before = [source for source, target in links if target == row]
        goes_on = len(before) == 1 and sum(source == before[0] for source, _ in links) == 1
        number.append(number[before[0]] if goes_on else max(number, default=-1) + 1)
    return number


def drawn(data: st.DataObject, count: int) -> tuple[list[tuple[int, int]], Tracks]:
    """Any links between detections of a frame each."""
    pairs = [(a, b) for b in range(count) for a in range(b)]
    links = sorted(data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else [])
    return links, Tracks(still(list(range(count))), np.array(links, dtype=np.int64).reshape(-1, 2))


@pytest.mark.smoke
@given(st.data(), st.integers(0, 12))
def test_numbers_count_the_tracks_whatever_divides_or_merges(data, count):
    links, tracks = drawn(data, count)
    rows = [np.flatnonzero(tracks.track_id == one) for one in range(tracks.track_count)]
    assert tracks.span.T.tolist() == [[of[0], of[-1]] for of in rows]
    assert tracks.track_id.tolist() == numbered_one_by_one(count, links)
    assert tracks.track_count == len(set(tracks.track_id.tolist()))
    several = [
        row for side in (0, 1) for row in np.bincount([link[side] for link in links] or [0]) if row > 1
    ]
    assert tracks.branches == bool(several if links else [])


@given(st.lists(st.sampled_from([-7, -1, 0, 1, 2, 5, 10**6, 2**62]), max_size=30))
def test_labels_of_any_size_are_followed(labels):
    tracks = Tracks.from_track_ids(still(list(range(len(labels)))), labels)
    rows = {label: [k for k, of in enumerate(labels) if of == label] for label in labels if label >= 0}
    expected = sorted((a, b) for of in rows.values() for a, b in zip(of[:-1], of[1:], strict=True))
    assert tracks.links.tolist() == [list(link) for link in expected]


@given(st.data(), st.integers(0, 10))
def test_what_leads_over_others_is_a_link_of_those_that_are_kept(data, count):
    _, tracks = drawn(data, count)
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=np.bool_)
    way = np.zeros((count, count), dtype=np.bool_)
    way[tuple(tracks.links.T)] = True
    for between in np.flatnonzero(~kept):  # as Warshall finds what can be reached
        way |= np.outer(way[:, between], way[between])
    taken = tracks.take(kept)
    assert taken.detections.frame.tolist() == np.flatnonzero(kept).tolist()
    assert taken.links.tolist() == np.argwhere(way[np.ix_(kept, kept)]).tolist()
    assert tracks.take(np.flatnonzero(kept)).links.tolist() == taken.links.tolist()
    assert tracks.every(3).links.tolist() == tracks.take(slice(None, None, 3)).links.tolist()
    assert tracks.every(3).detections.frame.tolist() == list(range(len(range(0, count, 3))))


@pytest.mark.parametrize("scale", [1, 10**9])
def test_parents_are_found_by_their_labels(scale):
    label = scale * np.array([3, 3, 1, 7])
    parent = np.array([-1, -1, 3 * scale, 3 * scale])
    tracks = Tracks.from_track_ids(still([0, 1, 2, 2]), label, parent)
    assert tracks.links.tolist() == [[0, 1], [1, 2], [1, 3]]
    with pytest.raises(InputError, match="names parent"):
        Tracks.from_track_ids(still([0, 1, 2, 2]), label, parent + 1)
    with pytest.raises(InputError, match=f"Track {3 * scale} has two detections in frame 5"):
        Tracks.from_track_ids(still([0, 5, 5, 6]), scale * np.array([3, 3, 3, 4]))


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("link", "said"),
    [([0, 4], "points outside the 4"), ([-1, 2], "points outside"), ([1, 0], "from detection 1 .* forward"),
     ([1, 2], "does not run forward")],
)  # fmt: skip
def test_links_that_cannot_be_are_refused(link, said):
    with pytest.raises(InputError, match=said):
        Tracks(still([0, 1, 1, 2]), np.array([[0, 1], link]))


def test_a_track_spans_its_first_and_last_frame_even_below_zero() -> None:
    assert Tracks(still([-3, -2, -2, 1]), np.array([[0, 1], [2, 3]])).span.tolist() == [[-3, -2], [-2, 1]]
