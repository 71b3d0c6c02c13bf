"""Windows: a long movie is weighed some frames at a time."""

from contextlib import nullcontext
from threading import Lock, get_ident
from time import sleep

import numpy as np
import pytest

from outbid import Detections
from outbid.calibrate import calibrate
from outbid.errors import ResourceError
from outbid.motion import Motion
from outbid.refine import windows
from outbid.refine.bridges import with_gaps
from outbid.refine.candidates import Pairs, pairs_of
from outbid.refine.linking import LinkModel
from outbid.refine.movie import movie_of
from outbid.refine.weigh import Weighed, weighed_softly
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import OrnsteinUhlenbeckWalk
from outbid.simulate.walks import WalkSettings, walk


def flights(frames, particles=40, seed=0):
    """Detections of particles that are seen now and then, in frames of which some may be empty."""
    rng = np.random.default_rng(seed)
    count = rng.integers(0, particles, frames)
    return Detections.from_table(np.repeat(np.arange(frames), count), rng.uniform(0, 5, (count.sum(), 3)))


def crowd(frames, particles):
    """As many detections in every frame, all in one place."""
    frame = np.repeat(np.arange(frames, dtype=np.int32), particles)
    return movie_of(Detections(frame, np.ones((len(frame), 3))), (1, 1, 1))


@pytest.mark.parametrize(("detections", "frames"), [(1, 1), (200, 1), (200, 7), (1, 40), (10**6, 1)])
@pytest.mark.parametrize("beside", [0, 3, 100])
@pytest.mark.parametrize("given", [1, 3])
def test_all_windows_together_hold_every_pair_once(monkeypatch, detections, frames, beside, given):
    for name, value in zip(("_DETECTIONS", "_FRAMES", "_BESIDE"), (detections, frames, beside), strict=True):
        monkeypatch.setattr(windows, name, value)
    movie = movie_of(flights(40), (1, 1, 1))
    pairs, shift = pairs_of(movie, (1.0, 1.0, 1.0)), np.sin(movie.position)

    def weigh(part, near, *, shift, workers):
        row = np.repeat(np.arange(len(part.frame)), np.diff(near.indptr))
        assert workers in (1, given)
        assert (part.frame[near.indices] == part.frame[row] + 1).all()
        away = part.position[near.indices] - part.position[row] - shift[row] + near.log_density[row, None]
        return Weighed(near, away[:, 0], away[:, 1], part.order[near.indices])

    found = windows.weighed_in_windows(movie, pairs, shift, weigh, workers=given)
    whole = weigh(movie, pairs, shift=shift, workers=1)
    np.testing.assert_array_equal(found.pairs.indptr, pairs.indptr)
    np.testing.assert_array_equal(found.pairs.indices, pairs.indices)
    for name in ("gain", "distance2", "size"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    assert found.pairs.log_density is pairs.log_density


@pytest.mark.parametrize("many", [20, 2000])
def test_windows_hold_enough_of_both_and_reach_beyond_themselves(monkeypatch, many):
    """Also where a few frames hold most of the detections."""
    monkeypatch.setattr(windows, "_DETECTIONS", 300)
    monkeypatch.setattr(windows, "_FRAMES", 5)
    count = np.r_[np.full(40, 20), np.full(4, many), np.full(43, 20)]
    place = np.random.default_rng(0).uniform(0, 5, (count.sum(), 3))
    movie = movie_of(Detections.from_table(np.repeat(np.arange(87), count), place), (1, 1, 1))
    found = windows._windows_of(movie, 8)
    assert [one.begun for one in found] == [0, *(one.ended for one in found[:-1])]
    assert found[-1].ended == 87
    assert all(one.first == max(one.begun - 8, 0) and one.last == min(one.ended + 8, 87) for one in found)
    assert all(one.ended - one.begun >= 5 for one in found)
    assert all(movie.frame_start[one.ended] - movie.frame_start[one.begun] >= 300 for one in found)
    assert len(found) >= 4


def test_windows_of_very_many_detections_hold_fewer_frames(monkeypatch):
    for name, value in (("_DETECTIONS", 300), ("_FRAMES", 20), ("_FEWEST", 10), ("_MANY", 1000)):
        monkeypatch.setattr(windows, name, value)
    for many, frames in ((10, 30), (40, 20), (80, 13), (200, 10)):
        movie = crowd(90, many)
        assert {one.ended - one.begun for one in windows._windows_of(movie, 8)[:-1]} == {frames}


@pytest.mark.parametrize(("most", "together"), [(10**6, 3), (1100, 2), (10, 1)])
def test_so_many_detections_are_looked_at_together(monkeypatch, most, together):
    """Windows of 10 frames of 20, with those beside them 520 detections at most."""
    for name, value in (("_DETECTIONS", 1), ("_FRAMES", 10), ("_BESIDE", 7), ("_AT_ONCE", most)):
        monkeypatch.setattr(windows, name, value)
    movie = crowd(80, 20)
    now, most_at_once, lock = set(), [], Lock()

    def weigh(_part, near, **_):
        with lock:
            now.add(get_ident())
            most_at_once.append(len(now))
        sleep(0.05)
        with lock:
            now.remove(get_ident())
        return Weighed(near, *np.zeros((2, 0)), np.zeros(0, np.int64))

    nothing = Pairs(np.zeros(1601, np.int64), np.zeros(0, np.int32), np.zeros(1600))
    windows.weighed_in_windows(movie, nothing, movie.position, weigh, workers=3)
    assert max(most_at_once) == together


def test_links_over_many_frames_are_not_lost_where_a_movie_is_cut(monkeypatch):
    monkeypatch.setattr(windows, "_DETECTIONS", 100)
    monkeypatch.setattr(windows, "_FRAMES", 15)
    place = np.random.default_rng(0).uniform(0, 90, (200, 3))
    frame, who = np.nonzero((np.arange(60)[:, None] + np.arange(200)) % 11 == 0)
    movie = movie_of(Detections.from_table(frame, place[who]), (1, 1, 1), interval=1)
    model = LinkModel(Motion.static((0.1,) * 3), (0.01,) * 10 + (0.8,), 0.1, 0.1, gate=(0.5,) * 3)
    near, still = pairs_of(movie, model.gate), np.zeros_like(movie.position)

    def weigh(part, near, *, shift, workers):
        return weighed_softly(part, with_gaps(part, near, model, shift), model, shift, workers=workers)

    found = windows.weighed_in_windows(movie, near, still, weigh, longest=11)
    assert len(found.pairs.indices) == len(weigh(movie, near, shift=still, workers=1).pairs.indices) > 800


def test_threads_do_not_change_what_fits_the_memory(monkeypatch):
    """Each window has twice the share of its detections, however many are looked at together."""
    motion = OrnsteinUhlenbeckWalk(0.3, 5.0)
    truth = walk(WalkSettings(motion, 320, 80, (6.84,) * 3, "reflect", 0.02, 0.02, seed=3))
    seen = observe(truth, Microscope((0.03,) * 3, 0.1, 0.1), box=(6.84,) * 3, seed=3).detections
    monkeypatch.setattr(windows, "_DETECTIONS", 3000)
    monkeypatch.setattr(windows, "_FRAMES", 10)
    for most_bytes, fits in ((4_000_000, True), (100_000, False)):
        for workers in (1, 2, 16):
            with nullcontext() if fits else pytest.raises(ResourceError):
                calibrate(seen, most_bytes=most_bytes, workers=workers)


@pytest.mark.parametrize(("kappa", "persistence"), [(0.3, 5.0), (0.15, 20.0)])
def test_a_long_movie_is_linked_as_if_it_were_one_window(monkeypatch, kappa, persistence):
    """What is believed of a detection hardly depends on what was eight frames before."""
    motion = OrnsteinUhlenbeckWalk(kappa, persistence)
    truth = walk(WalkSettings(motion, 320, 80, (6.84,) * 3, "reflect", 0.02, 0.02, seed=3))
    seen = observe(truth, Microscope((0.03,) * 3, 0.1, 0.1), box=(6.84,) * 3, seed=3).detections
    _, whole = calibrate(seen)
    monkeypatch.setattr(windows, "_DETECTIONS", 3000)
    monkeypatch.setattr(windows, "_FRAMES", 10)
    (_, links), (_, same) = (calibrate(seen, workers=workers) for workers in (1, 3))
    np.testing.assert_array_equal(links.pairs, same.pairs)
    np.testing.assert_array_equal(links.probability, same.probability)
    one, other = ({tuple(pair) for pair in found.pairs.tolist()} for found in (whole, links))
    assert len(one ^ other) < 0.01 * len(one)
    assert links.probability.sum() != whole.probability.sum()  # for it was cut
    assert links.gap <= 1e-6
