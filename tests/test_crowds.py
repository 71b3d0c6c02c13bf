"""Learning in crowded movies: rates, clutter, and links at least as good as those with any gate."""

import numpy as np
import pytest
from scenes import always_seen, f1_of, link_f1, share_of_right

from outbid import Detections, TrackingSettings, Tracks, track
from outbid.learned.linking import linked
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import BrownianWalk
from outbid.simulate.scenes import Scene
from outbid.simulate.walks import WalkSettings, walk

FREE = TrackingSettings()


@pytest.mark.slow
@pytest.mark.parametrize(("clutter", "share"), [(0.0, 0.0), (0.1, 0.09)])
def test_clutter_is_distinguished_from_births_and_deaths(clutter, share):
    truth = Scene(0.15, clutter=clutter, particles=800).film(1)
    learned, _ = linked(truth.detections, FREE)
    assert learned.clutter == pytest.approx(share, abs=0.03)
    assert learned.end == pytest.approx(0.02 + share, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("kappa", "clutter"), [(0.15, 0.1), (0.3, 0.0), (0.4, 0.0)])
def test_no_gate_does_better(kappa, clutter):
    """Where there is clutter, links are better than those of any gate; behind the best at .4 (limits.md)."""
    truth = Scene(kappa, clutter=clutter, particles=800, frames=12).film(2)
    gated = max(
        f1_of(track(truth.detections, TrackingSettings(max_distance=gate * kappa, cost="squared")), truth)
        for gate in (2.5, 3, 3.5, 4, 5)
    )
    learned = f1_of(track(truth.detections, TrackingSettings()), truth)
    assert learned > gated + (0.005 if clutter else 0.0) - (0.04 if kappa == 0.4 else 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("persistence", [0.0, 3.0])
def test_ends_are_not_overrated_where_many_links_could_swap(persistence):
    """To belief propagation alone, swaps look like ends; the rate of ends is .02."""
    learned, _ = linked(Scene(0.3, persistence, particles=800).film(1).detections, FREE)
    assert learned.end < 0.045


def test_misses_that_last_are_learnt():
    """Particles that meet are seen as one for some frames: their links are found, their rate is too low."""
    whole = Scene(0.1, 5.0, turnover=0.0, particles=500, frames=30).film(3)
    kept = ~(np.isin(whole.detections.frame, [9, 10, 19, 20]) & (whole.track_id % 10 == 0))
    seen, track_id = whole.detections.take(kept), whole.track_id[kept]
    order = np.lexsort((seen.frame, track_id))
    pairs = np.column_stack([order[:-1], order[1:]])[np.diff(track_id[order]) == 0]
    over = set(map(tuple, pairs[seen.frame[pairs[:, 1]] - seen.frame[pairs[:, 0]] == 3].tolist()))
    assert len(over) == 100
    _, links = linked(seen, FREE)
    assert len(over & set(map(tuple, links.pairs.tolist()))) > 90


def populations(seed: int, *, count: int = 400, frames: int = 25) -> Tracks:
    """A quarter flies straight at .7 a frame, the others jitter by .05, one a unit of volume."""
    rng = np.random.default_rng(seed)
    velocity = rng.normal(0, 1, (count, 3))
    velocity *= np.where(np.arange(count) < count // 4, 0.7, 0.0)[:, None] / np.linalg.norm(
        velocity, axis=1, keepdims=True
    )
    place = rng.uniform(0, count ** (1 / 3), (count, 3)) + np.arange(frames)[:, None, None] * velocity
    place += np.cumsum(rng.normal(0, 0.05, place.shape), axis=0)
    place, laps = np.mod(place, count ** (1 / 3)), np.floor(place / count ** (1 / 3))
    turns = np.cumsum((np.diff(laps, axis=0, prepend=laps[:1]) != 0).any(axis=2), axis=0)
    seen = Detections.from_table(np.repeat(np.arange(frames), count), place.reshape(-1, 3))
    return Tracks.from_track_ids(seen, (np.arange(count) + count * turns).ravel())


@pytest.mark.smoke
def test_a_few_fast_among_slow_ones_are_not_overlooked():
    """A few fast particles among slow ones are not taken for clutter."""
    truth = populations(1)
    learned, links = linked(truth.detections, FREE)
    assert learned.clutter < 0.03
    assert learned.persistence_frames > 20
    assert link_f1(links, truth) > 0.97


@pytest.mark.parametrize(("fast", "miss", "clutter"), [(15, 0.1, 0.0), (30, 0.2, 0.0), (15, 0.0, 0.1)])
def test_a_few_that_fly_past_many_at_rest_are_not_overlooked(fast, miss, clutter):
    """Neither other particles that are missed nor clutter hide them."""
    rng = np.random.default_rng(3)
    place, velocity = rng.uniform(0, 30, (300, 3)), rng.normal(0, 1, (300, 3))
    velocity[fast:] = 0
    frame, position, name = [], [], []
    for t in range(20):
        seen, strays = rng.random(300) >= miss, rng.poisson(300 * clutter)
        frame += [t] * (seen.sum() + strays)
        position += [place[seen] + rng.normal(0, 0.05, (seen.sum(), 3)), rng.uniform(0, 30, (strays, 3))]
        name += [*np.flatnonzero(seen), *[-1] * strays]
        place = place + velocity
        turned = (place < 0) | (place > 30)
        velocity[turned] *= -1
        place = np.where(place < 0, -place, np.where(place > 30, 60 - place, place))
    truth = Tracks.from_track_ids(Detections.from_table(frame, np.concatenate(position)), name)
    flown = truth.links[np.isin(np.array(name)[truth.links[:, 0]], np.arange(fast))]
    _, links = linked(truth.detections, FREE)
    found = set(map(tuple, links.pairs.tolist()))
    assert np.mean([tuple(link) in found for link in flown.tolist()]) > 0.9


@pytest.mark.slow
def test_far_jumps_are_looked_for_farther_than_small_steps_ask():
    """Steps of a Student's t of 1.5 degrees of freedom: one in 20 is longer than density^(-1/2)."""
    count, frames, ahead = 300, 25, []
    for seed in range(2, 6):
        rng = np.random.default_rng(seed)
        step = 0.08 * np.clip(rng.standard_t(1.5, (frames, count, 2)), -60, 60)
        place = rng.uniform(0, 17, (count, 2)) + np.cumsum(step, axis=0)
        truth = always_seen(np.abs((place + 17) % 34 - 17))
        learned, links = linked(truth.detections, FREE)
        assert learned.end < 0.035
        gates = [TrackingSettings(max_distance=gate) for gate in (0.7, 1, 1.4)]
        gated = max(f1_of(track(truth.detections, gate), truth) for gate in gates)
        ahead.append(link_f1(links, truth) - gated)
    assert np.mean(ahead) > 0


@pytest.mark.slow
def test_a_velocity_is_learned_where_every_third_frame_is_missing():
    """No track has three frames in a row, so steps must be compared over the gaps."""
    reached = []
    for seed in (5, 6, 7):
        whole = Scene(0.15, 8.0, particles=400, frames=40).film(seed)
        kept = whole.detections.frame % 3 < 2
        truth = whole.take(kept)
        learned, links = linked(truth.detections, FREE)
        assert learned.persistence_frames > 3
        reached.append(link_f1(links, truth))
    assert np.mean(reached) > 0.94


def test_a_stream_among_particles_that_stick_is_followed():
    """It moves by more than its particles are apart, so that another is nearer than the right one."""
    rng, count, frames, box = np.random.default_rng(3), 400, 20, 400 ** (1 / 3)
    step = rng.normal(0, 0.04, (frames, count, 3))
    step[:, : count * 6 // 10, 2] += 0.8
    free = rng.uniform(0, box, (count, 3)) + np.cumsum(step, axis=0)
    laps = np.floor(free / box)
    turns = np.cumsum((np.diff(laps, axis=0, prepend=laps[:1]) != 0).any(axis=2), axis=0)
    seen = Detections.from_table(np.repeat(np.arange(frames), count), np.mod(free, box).reshape(-1, 3))
    truth = Tracks.from_track_ids(seen, (np.arange(count) + count * turns).ravel())
    assert link_f1(linked(seen, FREE)[1], truth) > 0.97


def eddies(seed: int, *, count: int = 800, frames: int = 10) -> Tracks:
    """A flow without sources in 2D, by six waves; steps of about .6 at density 1."""
    rng = np.random.default_rng(seed)
    wave, phase, height = rng.normal(0, 0.5, (6, 2)), rng.uniform(0, 2 * np.pi, 6), rng.normal(0, 1, 6)
    fast = np.sqrt(np.square(height[:, None] * wave).sum() / 4)
    path = [rng.uniform(0, count**0.5, (count, 2))]
    for _ in range(frames - 1):
        rising = np.cos(path[-1] @ wave.T + phase) * height
        flow = np.stack([rising @ wave[:, 1], -rising @ wave[:, 0]], axis=1)
        path.append(path[-1] + 0.6 / fast * flow + rng.normal(0, 0.05, flow.shape))
    place = np.array(path)
    seen = ((place >= 0) & (place <= count**0.5)).all(axis=2)
    frame, track = np.nonzero(seen)
    return Tracks.from_track_ids(Detections.from_table(frame, place[seen]), track)


@pytest.mark.nightly
def test_in_eddies_the_nearest_neighbours_weigh_most():
    movies = [eddies(seed) for seed in (2, 6)]
    reached = [link_f1(linked(truth.detections, FREE)[1], truth) for truth in movies]
    assert np.mean(reached) > 0.872


@pytest.mark.slow
def test_where_most_is_clutter_it_is_recognised_and_left_alone():
    """Ends and starts are more than half of all; wider steps would link clutter with clutter."""
    box = (600.0 ** (1 / 3),) * 3
    truth = observe(
        walk(WalkSettings(BrownianWalk(0.12), 200, 30, box, "reflect", 0.02, 0.02, seed=6)),
        Microscope((0.03,) * 3, 0.1, 2.0),
        box=box,
        seed=6,
    )
    learned, links = linked(truth.detections, FREE)
    assert learned.clutter == pytest.approx(0.67, abs=0.13)
    assert link_f1(links, truth) > 0.79


def flown(speed, count=300, frames=12, noise=0.02, seed=0, miss=0.0):
    """Straight flights in a periodic box, one particle a unit of area, and who is who."""
    rng = np.random.default_rng(seed)
    box = count**0.5
    velocity = rng.normal(0, speed, (count, 2))
    path = rng.uniform(0, box, (count, 2)) + np.arange(frames)[:, None, None] * velocity
    seen = rng.random((frames, count)) >= miss
    # A particle that leaves comes back as another.
    number = np.floor(path / box).astype(int) @ [1, 1000] * count + np.arange(count)
    place = np.mod(path, box) + rng.normal(0, noise, path.shape)
    frame = np.repeat(np.arange(frames), count).reshape(frames, count)
    points = np.concatenate([np.zeros((seen.sum(), 1)), place[seen]], axis=1)
    return Tracks.from_track_ids(Detections.from_table(frame[seen], points), number[seen])


@pytest.mark.slow
@pytest.mark.parametrize(("kappa", "misses", "least"), [(0.3, 0.1, 0.915), (0.4, 0.1, 0.79)])
def test_crowded_movies_of_particles_that_keep_their_way(kappa, misses, least):
    truth = Scene(kappa, 10.0, miss=misses, clutter=misses, particles=600, frames=24).film(4)
    links = linked(truth.detections, FREE)[1]
    found = link_f1(links, truth)
    assert found > least


@pytest.mark.slow
def test_flights_past_neighbours_are_found_with_nothing_given():
    """Most particles have another nearer than their next detection, so that nearest links are wrong."""
    truth = flown(0.6, count=400, frames=14, seed=2)
    learned, links = linked(truth.detections, FREE)
    found = link_f1(links, truth)
    assert found > 0.88
    assert learned.persistence_frames > 30
    assert learned.step.mean() == pytest.approx(0.6, rel=0.1)


@pytest.mark.slow
def test_a_memory_is_found_where_most_links_are_wrong():
    """Of the first links .6 are wrong, and show no velocity."""
    truth = Scene(0.4, 2.0, miss=0.1, clutter=0.1, particles=800, frames=12).film(7)
    learned, links = linked(truth.detections, FREE)
    found = link_f1(links, truth)
    assert learned.persistence_frames == pytest.approx(2.0, abs=1.5)
    assert found > 0.38


@pytest.mark.slow
def test_particles_that_bind_and_diffuse_are_followed_in_both_states():
    """Steps are of .03 and .28; those that diffuse are not taken for clutter."""
    rng = np.random.default_rng(9)
    count, frames, box = 400, 20, 400 ** (1 / 3)
    free, steps = rng.random(count) < 0.5, []
    for _ in range(frames - 1):
        free = free ^ (rng.random(count) < 0.08)
        steps.append(np.where(free, 0.28, 0.03)[:, None] * rng.normal(size=(count, 3)))
    path = np.cumsum([rng.uniform(0, box, (count, 3)), *steps], axis=0)
    # Who leaves the room comes back as another.
    left = np.diff(np.floor(path / box), axis=0).any(axis=2).cumsum(axis=0)
    number = np.concatenate([np.zeros((1, count), int), left]) * count + np.arange(count)
    place = np.mod(path, box) + rng.normal(0, 0.03, path.shape)
    seen = Detections.from_table(np.repeat(np.arange(frames), count), place.reshape(-1, 3))
    truth = Tracks.from_track_ids(seen, number.ravel())
    learned, links = linked(seen, FREE)
    assert link_f1(links, truth) > 0.88
    assert learned.clutter < 0.1


@pytest.mark.slow
def test_links_are_as_often_right_as_they_say_where_few_are_wrong():
    """Nobody leaves or joins; what no replicate shows is corrected for as well."""
    box = (2000 ** (1 / 3),) * 3
    truth = walk(WalkSettings(BrownianWalk(0.2), 2000, 20, box, "reflect", 0.0, 0.0, seed=0))
    seen = observe(truth, Microscope((0.03,) * 3, 0.0, 0.0), box=box, seed=0)
    _, links = linked(seen.detections, FREE)
    assert links.probability is not None
    assert links.probability.mean() == pytest.approx(share_of_right(links.pairs, seen), abs=0.012)
