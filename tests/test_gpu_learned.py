"""Learned linking on the GPU against the CPU: kernels, and whole movies; run with -m gpu."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from accuracy.movies import KINDS
from numpy.typing import NDArray

from outbid import Detections, TrackingRun, TrackingSettings, track
from outbid.compute.arrays import on_device, placed, to_device, to_host
from outbid.geometry.neighbours import nearest
from outbid.learned.inference.candidates import Search, candidates_of, distinct, pairs_near
from outbid.learned.inference.jpda import updated
from outbid.learned.inference.posterior import LinkPosterior
from outbid.learned.learn import Fit, learn
from outbid.learned.learn.field import Fields
from outbid.learned.learn.m_steps import raw_steps
from outbid.learned.lineage import Dividing, hypothesis
from outbid.learned.lineage.control import division_evidence
from outbid.learned.model import AssociationModel, LocalFields, Model, MotionModel
from outbid.learned.model.movie import Movie, movie_of, summed
from outbid.pins import Pin

pytestmark = pytest.mark.gpu


def walks(
    count: int, frames: int, axes: int = 3, *, flow: float = 0.0
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Frames and places of particles, of which every fifth takes steps four times as long; 3 % are missed."""
    rng = np.random.default_rng(count)
    side = count ** (1 / axes)
    place, size = rng.uniform(0, side, (count, axes)), np.where(np.arange(count) % 5, 0.1, 0.4)[:, None]
    seen: list[NDArray[np.float64]] = []
    for _ in range(frames):
        place = place + rng.normal(0, 1, place.shape) * size + flow * np.sin(3 / side * place[:, ::-1])
        seen.append(place[rng.random(count) > 0.03])
    return np.repeat(np.arange(frames), [len(some) for some in seen]), np.concatenate(seen)


def small_movie(axes: int, *, time: bool = False) -> Movie:
    frame, place = walks(400, 6, axes)
    movie = movie_of(place, np.searchsorted(frame, np.arange(7)))
    return replace(movie, time=np.array([0, 1, 2, 4, 5, 6], np.int64)) if time else movie


def model_of(movie: Movie, classes: int) -> Model:
    """A model with gaps, renewals and as many classes as asked for."""
    one, fall = np.ones(classes), 0.2 ** np.arange(3)
    variance = 0.02 * 4.0 ** np.arange(classes)[:, None] * np.ones(movie.axes)
    noise, scale = np.full(movie.axes, 1e-3), np.linspace(0.9, 1.1, len(movie.intervals))
    motion = MotionModel(variance, 0.4 * one, one / classes, 0.1 * one, noise, scale)
    flow = np.random.default_rng(1).normal(0, 0.02, movie.position.shape)
    survival = np.linspace(0.9, 1.0, len(movie))
    return Model(
        motion, AssociationModel(0.7 * fall, 0.7 * fall, 0.02), LocalFields(flow, survival, survival)
    )


def candidates_up_to(movie: Movie, lags: int) -> LinkPosterior:
    keys = [pairs_near(movie, Search(lag, 4, movie.position, radius=1.5)) for lag in range(1, lags + 1)]
    return LinkPosterior.unknown(candidates_of(distinct(keys), movie.frame))


def on_gpu(movie: Movie) -> Movie:
    return placed(movie, to_device)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(("count", "offset", "within"), [(1, 1, np.inf), (10, 0, np.inf), (7, 2, 0.6)])
def test_neighbours_are_the_cpus(axes, count, offset, within):
    frame, place = walks(500, 5, axes)
    place[::100] += 40  # strays
    frame[frame == 3] = 2  # and an empty frame
    start = np.searchsorted(frame, np.arange(6))
    rows = np.flatnonzero(frame < 5 - offset)[::2]
    here = nearest(place, start, rows, count, offset=offset, within=within)
    there = nearest(to_device(place), start, to_device(rows), count, offset=offset, within=within)
    near, square = map(to_host, there)
    beyond = square > min(within, 1e9) ** 2  # which may be returned
    near[beyond], square[beyond] = -1, np.inf
    beyond = here[1] > min(within, 1e9) ** 2
    here[0][beyond], here[1][beyond] = -1, np.inf
    np.testing.assert_array_equal(square, here[1])
    np.testing.assert_array_equal(near, here[0])


@pytest.mark.parametrize("count", [7, 5000])
def test_sums_by_index_are_the_cpus(count):
    rng = np.random.default_rng(0)
    index, weight = rng.integers(0, count - 1, 20_000), rng.random(20_000)
    there = summed(to_device(index), to_device(weight), count)
    np.testing.assert_allclose(to_host(there), summed(index, weight, count), rtol=1e-12)
    assert to_host(there).tobytes() == to_host(summed(to_device(index), to_device(weight), count)).tobytes()


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("classes", [1, 2, 3])
@pytest.mark.parametrize("time", [False, True])
def test_sweeps_are_the_cpus(axes, classes, time):
    """Candidates, filters, smoother, propagation and marginals, twice."""
    movie = small_movie(axes, time=time)
    model, there = model_of(movie, classes), on_gpu(movie)
    of_there = placed(model, to_device)
    here, found = candidates_up_to(movie, 3), candidates_up_to(there, 3)
    for name in ("tail", "head", "lag", "row_start", "column_start", "column_link"):
        np.testing.assert_array_equal(
            to_host(getattr(found.candidates, name)), getattr(here.candidates, name)
        )
    for omega in (1.0, 0.8):
        here = updated(movie, model, here, omega=omega, with_moments=False)
        found = updated(there, of_there, found, omega=omega, with_moments=False)
    assert on_device(found.probability)
    for name in ("probability", "competing", "ratio", "clutter", "death", "birth", "birth_forward"):
        np.testing.assert_allclose(
            to_host(getattr(found, name)), getattr(here, name), rtol=1e-3, atol=1e-6, err_msg=name
        )


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_fields_are_the_cpus(axes):
    movie = small_movie(axes)
    there, here, found = on_gpu(movie), candidates_up_to(movie, 2), candidates_up_to(on_gpu(movie), 2)
    p = np.random.default_rng(2).random(len(here.probability))
    here, found = replace(here, probability=p), replace(found, probability=to_device(p))
    steps, of_there = raw_steps(movie, here), raw_steps(there, found)
    flows = Fields.of(movie).flow(*steps), Fields.of(there).flow(*of_there)
    np.testing.assert_allclose(to_host(flows[1]), flows[0], rtol=1e-9, atol=1e-12)
    rates = [
        fields.survival(weight, weight**0)
        for fields, weight in (
            (Fields.of(movie), steps[1]),
            (Fields.of(there), of_there[1]),
        )
    ]
    np.testing.assert_allclose(to_host(rates[1]), rates[0], rtol=1e-9)


@cache
def divided(kind: str) -> tuple[Detections, Fit]:
    """A movie of cells that divide, and what is learned of its links."""
    truth = KINDS[kind](0, 0.07).detections
    axes = np.ptp(truth.position, axis=0) > 0
    return truth, learn(truth.position[:, axes], truth.frame_start)


@pytest.mark.parametrize("kind", ["dividing_few", "dividing", "dividing_in_a_layer"])
def test_divisions_are_the_cpus(kind):
    fit = divided(kind)[1]
    given = fit.movie, fit.model, fit.posterior
    here, there = (hypothesis(*each) for each in (given, placed(given, to_device)))
    assert isinstance(here, Dividing)
    assert isinstance(there, Dividing)
    assert on_device(there.lineage.probability)
    links, others = here.decide(), placed(there.decide(), to_host)
    np.testing.assert_array_equal(others.pairs, links.pairs)
    np.testing.assert_allclose(others.probability, links.probability, atol=1e-5)
    parts = [division_evidence(*each, 1500) for each in (given, placed(given, to_device))]
    assert None not in parts
    np.testing.assert_allclose(parts[1].model.rate, parts[0].model.rate, rtol=1e-6)


def test_divisions_of_large_movies_are_the_cpus():
    seen, copies = divided("dividing")[0], 5
    apart = 2 * np.ptp(seen.position[:, 0])
    place = np.concatenate([seen.position + apart * np.array([k, 0, 0]) for k in range(copies)])
    here, there = both(Detections.from_table(np.tile(seen.frame, copies), place))
    assert here.stats["divisions"] > 100
    keys = [run.tracks.links @ [len(place), 1] for run in (here, there)]
    assert len(np.intersect1d(*keys)) > 0.9995 * max(map(len, keys))
    assert there.stats["divisions"] == pytest.approx(here.stats["divisions"], abs=2)


def both(detections: Detections, **values) -> tuple[TrackingRun, TrackingRun]:
    """The run on the CPU and on the GPU, of which the second gives the same bytes again."""
    here, there, again = (
        track(detections, TrackingSettings(device=device, **values)) for device in ("cpu", "gpu", "gpu")
    )
    assert there.tracks.links.tobytes() == again.tracks.links.tobytes()
    assert there.tracks.link_probability.tobytes() == again.tracks.link_probability.tobytes()
    return here, there


@pytest.mark.parametrize(("frames", "axes", "flow"), [(6, 3, 0.0), (12, 2, 0.0), (6, 3, 0.6)])
def test_large_movies_get_the_cpus_links_and_probabilities(frames, axes, flow):
    frame, place = walks(5000, frames, axes, flow=flow)
    place = place if axes == 3 else np.column_stack([0 * frame, place])
    here, there = both(Detections.from_table(frame, place), divisions=False)
    where = [there.stats[name] for name in ("swept_on", "solved_on", "device")]
    assert where == ["gpu", "gpu", "gpu and cpu"]
    assert there.stats["fallbacks"] == 0
    assert there.stats["gap_links"] > 0
    keys = [run.tracks.links @ [len(frame), 1] for run in (here, there)]
    common = np.intersect1d(*keys)
    assert len(common) > 0.9999 * max(map(len, keys))
    p, q = (
        run.tracks.link_probability[np.isin(key, common)]
        for run, key in zip((here, there), keys, strict=True)
    )
    np.testing.assert_allclose(p, q, atol=1e-3)


def test_a_movie_within_the_sample_is_linked_on_the_host_which_is_counted():
    here, there = both(Detections.from_table(*walks(500, 12)))
    assert here.tracks.links.tobytes() == there.tracks.links.tobytes()
    assert here.tracks.link_probability.tobytes() == there.tracks.link_probability.tobytes()
    assert (there.stats["swept_on"], there.stats["device"], there.stats["fallbacks"]) == ("cpu", "cpu", 1)


def test_columns_are_compared_on_the_host_which_is_counted():
    frame, place = walks(5000, 6)
    size = np.random.default_rng(0).random(len(frame))
    marked = replace(Detections.from_table(frame, place), features={"size": size})
    run = track(marked, TrackingSettings(device="gpu", features={"size": "number"}))
    assert (run.stats["swept_on"], run.stats["fallbacks"]) == ("cpu", 1)


def test_what_does_not_fit_the_gpu_is_swept_on_the_host_which_is_counted(monkeypatch):
    monkeypatch.setattr("outbid.learned.linking.free_device_memory", lambda: 1_000_000)
    run = track(Detections.from_table(*walks(5000, 6)), TrackingSettings(device="gpu"))
    assert (run.stats["swept_on"], run.stats["device"], run.stats["fallbacks"]) == ("cpu", "cpu", 1)


def test_pins_hold_and_the_host_solves_again_under_them_which_is_counted():
    detections = Detections.from_table(*walks(5000, 6))
    links = track(detections, device="cpu").tracks.links
    places = [(int(detections.frame[row]), tuple(detections.position[row].tolist())) for row in links[0]]
    here, there = both(detections, pins=(Pin("forbid", tuple(places)),))
    assert (here.tracks.links == links[0]).all(axis=1).sum() == 0
    np.testing.assert_array_equal(here.tracks.links, there.tracks.links)
    assert (there.stats["swept_on"], there.stats["fallbacks"]) == ("gpu and cpu", 1)
