"""Batches that do not fit the memory of a GPU are halved, or linked on the CPU, with the same tracks."""

import os
from pathlib import Path

import numpy as np
import pytest
from scenes import blinking

from outbid import Detections, ResourceError
from outbid.compute.arrays import free_memory
from outbid.gated.gaps import close_gaps
from outbid.gated.linking import LinkCosts, link_frames

COSTS = LinkCosts(0.6)


@pytest.fixture
def movie() -> Detections:
    return blinking(0.1, 0.1, count=300, frames=12, side=8, seed=6).detections


def device_with(room: int, taken: list[int]):
    """A device that holds so many points at a time, and counts how many it got."""

    def place(points):
        if len(points) > room:
            raise MemoryError
        taken.append(len(points))
        return points.copy()

    return place


@pytest.mark.parametrize("room", [0, 500, 700, 1500])
def test_a_movie_that_does_not_fit_is_halved_and_ends_on_the_host(movie, room):
    expected = link_frames(movie, movie.position, COSTS)
    taken: list[int] = []
    found = link_frames(movie, movie.position, COSTS, place=device_with(room, taken))
    np.testing.assert_array_equal(found.pairs, expected.pairs)
    np.testing.assert_array_equal(found.cost, expected.cost)
    # Twelve frames are eleven pairs: ten halvings part them, and eleven more fallbacks put all on the host.
    assert (found.batches.fallbacks == 21) if room < 700 else (0 < found.batches.fallbacks <= 10)
    assert (sum(taken) > 0) == (room >= 700)
    assert expected.batches.fallbacks == 0


def test_gaps_that_do_not_fit_are_closed_on_the_host(movie):
    links = link_frames(movie, movie.position, COSTS)
    expected = close_gaps(movie, movie.position, links, 2, COSTS)
    found = close_gaps(movie, movie.position, links, 2, COSTS, place=device_with(10, []))
    np.testing.assert_array_equal(found.pairs, expected.pairs)
    assert len(found.pairs) > len(links.pairs)
    assert found.batches.fallbacks == 1


def test_candidates_that_do_not_fit_are_counted_before_they_are_stored(movie):
    expected = link_frames(movie, movie.position, COSTS)
    one_pair = 12 * 300 * 2
    found = link_frames(movie, movie.position, COSTS, place=device_with(10_000, []), memory=3 * one_pair)
    np.testing.assert_array_equal(found.pairs, expected.pairs)
    assert found.batches.fallbacks > 0
    with pytest.raises(ResourceError, match="may be used"):  # on the host there is nothing to fall back to
        link_frames(movie, movie.position, COSTS, memory=3 * one_pair)


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="a system without sysconf")
def test_without_a_statement_of_the_system_all_memory_counts_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = free_memory()
    monkeypatch.setattr(Path, "read_text", lambda *_: "")
    assert free_memory() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >= stated
    monkeypatch.delattr(os, "sysconf")
    assert free_memory() == 4 << 30
