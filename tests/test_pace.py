"""Frames from which all particles go farther than from others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_t

from outbid.simulate.scenes import Scene
from outbid.tracker import Detections, TrackingSettings, Tracks, read_tracks, score, surveyor, track
from outbid.tracker.calibrate import calibrate
from outbid.tracker.candidates import pairs_of
from outbid.tracker.exchanged import doubted
from outbid.tracker.linking import Linking, LinkModel
from outbid.tracker.looks import BY_DETECTIONS, BY_HEADINGS
from outbid.tracker.motion import Motion
from outbid.tracker.motion_cpu import weigh_still
from outbid.tracker.movie import movie_of
from outbid.tracker.pace import pace_of
from outbid.tracker.refine import with_gaps
from outbid.tracker.untangle import untangled
from outbid.tracker.weigh import link_pass, possible

REST = np.where(np.arange(49) // 5 % 2, 0.3, 0.05)
"""Steps of bursts."""
JITTER = 0.2 * np.exp(np.random.default_rng(5).normal(0, 0.4, 49))


def walks(steps, count=600, side=9.0, miss=0.0, clutter=0.0, blur=0.0, seed=0) -> Tracks:
    """Particles that diffuse by such steps between walls; some frames are blurred."""
    rng = np.random.default_rng(seed)
    place = [rng.uniform(0, side, (count, 3))]
    for step in steps:
        moved = np.abs(place[-1] + step * rng.normal(size=(count, 3)))
        place.append(side - np.abs(side - moved))
    path = np.array(place)
    noise = 0.02 + blur * (np.arange(len(path)) % 8 == 3)
    path = path + noise[:, None, None] * rng.normal(size=path.shape)
    frame, who = np.nonzero(rng.random(path.shape[:2]) >= miss)
    strangers = rng.poisson(clutter * count, len(path))
    points = np.concatenate([path[frame, who], rng.uniform(0, side, (strangers.sum(), 3))])
    frame = np.append(frame, np.repeat(np.arange(len(path)), strangers))
    who = np.append(who, count + np.arange(strangers.sum()))
    order = np.argsort(frame, kind="stable")
    detections = Detections(frame[order].astype(np.int32), points[order])
    return Tracks.from_track_ids(detections, who[order])


def f1_of(run, truth: Tracks) -> float:
    return score(run.tracks, truth, gate=1e-6, families=("links",)).values["link_f1"]


def over_sure(run, truth: Tracks) -> float:
    """By how much more links are said to be right than are."""
    right = {tuple(link) for link in truth.links.tolist()}
    true = [tuple(link) in right for link in run.tracks.links.tolist()]
    return float(run.tracks.link_probability.mean() - np.mean(true))


# ---------------------------------------------------------------- what is learned


@pytest.mark.parametrize("steps", [REST, JITTER], ids=["bursts", "jitter"])
def test_frames_of_long_steps_are_told_from_those_of_short_ones(steps):
    learned, _ = calibrate(walks(steps).detections)
    told = learned.pace[:-1] / np.sqrt(np.mean(learned.pace[:-1] ** 2))
    true = steps / np.sqrt(np.mean(steps**2))
    often = true < 1.6  # steps of twice the spacing cannot be linked, nor told
    assert np.abs(np.log(told / true))[often].max() < 0.3
    assert min(learned.model.gate) > 4 * min(steps.max(), 0.35)
    assert "differs from frame to frame" in str(learned)
    assert learned.as_dict()["pace"] == learned.pace.tolist()


@pytest.mark.parametrize(
    ("steps", "spoiled", "least"),
    [
        (REST, {}, 0.885),  # .876 by one step for all frames
        (REST, {"miss": 0.1, "clutter": 0.1}, 0.81),  # .72
        (np.full(49, 0.1), {"blur": 0.3, "miss": 0.1, "clutter": 0.1}, 0.8),
    ],
    ids=["bursts", "missed", "blurred"],
)
def test_links_are_right_and_as_right_as_they_say(steps, spoiled, least):
    truth = walks(steps, **spoiled)
    run = track(truth.detections)
    assert run.learned.pace is not None
    assert f1_of(run, truth) > least
    assert abs(over_sure(run, truth)) < 0.03


@pytest.mark.parametrize("spoiled", [{}, {"miss": 0.1, "clutter": 0.1}])
@pytest.mark.parametrize("step", [0.1, 0.25])
@pytest.mark.parametrize("count", [60, 600])
def test_frames_that_are_alike_stay_so(step, spoiled, count):
    truth = walks(np.full(49, step), count, side=9.0 * (count / 600) ** (1 / 3), **spoiled)
    learned, _ = calibrate(truth.detections)
    assert learned.pace is None
    assert "frame to frame" not in str(learned)


def test_long_movies_of_which_a_part_tells_more():
    steps = np.tile(REST, 4)
    truth = walks(steps)
    run = track(truth.detections)
    assert len(run.learned.pace) == len(steps) + 1
    assert f1_of(run, truth) > 0.885


def linked(steps, count=400, noise=0.0):
    """A movie of particles that diffuse by such steps, and its true links."""
    rng, frames = np.random.default_rng(1), len(steps) + 1
    moved = np.concatenate(
        [np.zeros((1, count, 3)), steps[:, None, None] * rng.normal(size=(frames - 1, count, 3))]
    )
    place = rng.uniform(0, 9, (count, 3)) + np.cumsum(moved, axis=0) + noise * rng.normal(size=moved.shape)
    movie = movie_of(
        Detections.from_table(np.repeat(np.arange(frames), count), place.reshape(-1, 3)), (1, 1, 1)
    )
    who = np.argsort(movie.order).reshape(frames, count)
    row, col = who[:-1].ravel(), who[1:].ravel()
    return movie, replace(Linking.none(len(movie.frame)), row=row, col=col, probability=np.ones(len(row)))


def test_noise_is_no_pace():
    steps, noise = np.where(np.arange(30) % 6 < 3, 0.1, 0.3), 0.1
    movie, links = linked(steps, noise=noise)
    motion = Motion.static((float(np.sqrt(np.mean(steps**2))),) * 3, (noise,) * 3)
    pace = pace_of(movie, links, np.zeros_like(movie.position), motion)[:-1]
    ratio = np.sqrt(np.mean(pace[steps > 0.2] ** 2) / np.mean(pace[steps < 0.2] ** 2))
    assert ratio == pytest.approx(3, rel=0.15)


def test_how_long_a_step_takes_is_no_pace():
    lasting, noise = np.where(np.arange(40) % 2, 4, 1), 0.1
    time = np.append(0, np.cumsum(lasting))
    motion = Motion.static((0.2,) * 3, (noise,) * 3)
    movie, links = linked(0.2 * np.sqrt(lasting), noise=noise)
    still = np.zeros_like(movie.position)
    assert pace_of(movie, links, still, motion) is not None
    assert pace_of(replace(movie, time=time), links, still, motion) is None
    # Of long steps noise is a smaller part.
    true = np.where(np.arange(40) % 8 < 4, 0.5, 1.3)
    movie, links = linked(0.2 * true * np.sqrt(lasting), noise=noise)
    pace = pace_of(replace(movie, time=time), links, still, motion)[:-1]
    for long in (1, 4):
        slow, fast = (pace[(lasting == long) & which].mean() for which in (true < 1, true > 1))
        assert fast / slow == pytest.approx(1.3 / 0.5, rel=0.15)


def test_only_many_frames_that_differ_tell_a_pace():
    """Links from the first and the last frame have no past or no future, and are wrong more often."""
    usual, ends = np.full(30, 0.2), np.full(30, 0.2)
    ends[[0, -1]] = 0.5
    other = np.where(np.arange(30) % 6 < 3, 0.1, 0.3)
    motion = Motion.static((0.2,) * 3)
    for steps, told in ((usual, False), (ends, False), (other, True), (other[:7], False)):
        movie, links = linked(steps)
        assert (pace_of(movie, links, np.zeros_like(movie.position), motion) is not None) == told


def test_a_survey_that_knows_one_step_is_not_asked(model, monkeypatch):
    wide = replace(model, motion=Motion.static((0.25,) * 3), freedom=0.0)
    crowd = movie_of(walks(np.full(14, 0.2), 1000, side=10.0).detections, (1, 1, 1))
    assert surveyor.Surveyor(crowd).revised(wide, doubt=0.1).motion != wide.motion
    steps = []
    monkeypatch.setattr(surveyor, "counted", lambda _, step, **__: steps.append(step))
    uneven, once = np.linspace(0.5, 1.5, 15), np.append(np.ones(14), 3.0)
    assert surveyor.Surveyor(crowd).revised(wide, doubt=0.1, reach=uneven).motion == wide.motion
    assert steps[0] == pytest.approx([0.35] * 3)  # who is seen again is counted as far as most go
    assert surveyor.Surveyor(crowd).revised(wide, doubt=0.1, reach=once).motion != wide.motion


# ---------------------------------------------------------------- frames that were not recorded


def lost(truth: Tracks, frames) -> Tracks:
    """The movie without some frames; the others keep their numbers."""
    kept = ~np.isin(truth.detections.frame, frames)
    return Tracks.from_track_ids(truth.detections.take(kept), truth.track_id[kept])


@pytest.mark.parametrize(
    ("scene", "frames", "least"),
    [
        (Scene(0.1, 0.0, particles=500, frames=40), np.arange(12, 18), 0.975),
        (Scene(0.1, 3.0, particles=500, frames=40), np.random.default_rng(1).choice(40, 20, False), 0.93),
        (Scene(0.2, 3.0, miss=0.1, clutter=0.1, particles=500, frames=40), np.arange(3, 40, 5), 0.87),
    ],
    ids=["a pause", "half of the frames", "every fifth"],
)
def test_particles_are_followed_over_frames_that_were_not_recorded(scene, frames, least):
    truth = lost(scene.film(3), frames)
    run = track(truth.detections)
    told = track(truth.detections, TrackingSettings(max_gap=2))
    assert f1_of(run, truth) > max(least, f1_of(told, truth) - 0.003)
    seen = np.unique(truth.detections.frame)
    assert run.learned.as_dict()["time"] == (seen - seen[0]).tolist()
    assert f"In {seen[-1] - seen[0] + 1 - len(seen)} frames nothing is seen" in str(run.learned)
    assert run.learned.model.motion.persistence == pytest.approx(scene.persistence, rel=0.2, abs=0.1)


@pytest.mark.parametrize(
    ("name", "stride", "least"),
    [("turbulence/subcube.csv", 1, 0.99), ("ascidian/Pm08.csv", 3, 0.985)],  # .855 and .972 as gaps
)
def test_recorded_movies_of_which_every_fifth_frame_is_lost(real_data, name, stride, least):
    truth = read_tracks(real_data / name)
    frame = truth.detections.frame // stride
    kept = np.nonzero((truth.detections.frame % stride == 0) & (frame % 5 != 2))[0]
    place = np.full(len(frame), -1)
    place[kept] = np.arange(len(kept))
    seen = Detections(frame[kept], truth.detections.position[kept])
    run = track(seen)
    right = Tracks(seen, across(truth.links, place))
    assert score(run.tracks, right, gate=1e-6, families=("links",)).values["link_f1"] > least


def across(links, place):
    """The links among the detections that have a place, over those that have none."""
    before, found = dict(links[:, ::-1].tolist()), []
    for row in np.nonzero(place >= 0)[0].tolist():
        earlier = before.get(row)
        while earlier is not None and place[earlier] < 0:
            earlier = before.get(earlier)
        found += [] if earlier is None else [(place[earlier], place[row])]
    return np.array(sorted(found))


def test_what_is_told_of_gaps_holds_over_those_frames_too():
    truth = lost(walks(np.full(29, 0.05), 200), np.arange(10, 13))
    frame = truth.detections.frame
    for max_gap in (0, 2, 3):
        run = track(truth.detections, TrackingSettings(max_gap=max_gap))
        ahead = np.diff(frame[run.tracks.links], axis=1)
        assert ahead.max() == (4 if max_gap == 3 else 1)
        assert run.learned.time is None
    assert np.diff(frame[track(truth.detections).tracks.links], axis=1).max() == 4


def test_few_particles_may_all_be_missed_and_long_pauses_end_all_tracks():
    few = movie_of(lost(walks(np.full(9, 0.1), 6), [4]).detections, (1, 1, 1), holes=True)
    assert few.time is None
    assert len(few.frame_start) == 11
    paused = lost(walks(np.full(39, 0.05), 60), [3, *range(10, 30)])
    movie = movie_of(paused.detections, (1, 1, 1), holes=True)
    assert movie.time.tolist() == [0, 1, 2, *range(4, 40)]
    frame = paused.detections.frame
    links = track(paused.detections).tracks.links
    assert not ((frame[links[:, 0]] < 10) & (frame[links[:, 1]] > 29)).any()


# ---------------------------------------------------------------- the kernels


@pytest.fixture(scope="module")
def movie():
    return movie_of(walks(np.full(19, 0.2), 200, side=6.0, miss=0.1).detections, (1, 1, 1))


@pytest.fixture(scope="module")
def model():
    motion = Motion((0.02,) * 3, (0.2,) * 3, 3.0, (0.03,) * 3)
    return LinkModel(motion, (0.85, 0.08, 0.01), 0.06, 0.06, gate=(0.9,) * 3, clutter=0.01, freedom=7.0)


def every_look(movie, model):
    """What is told of the links of a movie, by whatever looks at it."""
    still = np.zeros_like(movie.position)
    near = pairs_of(movie, model.gate)
    yield possible(movie, near, model).indices
    for look in (BY_DETECTIONS, BY_HEADINGS):
        pairs = with_gaps(movie, near, model, still, sweep=look.sweep)
        found, pairs = look.link(movie, pairs, model, Linking.none(len(movie.frame)), still)
        yield found.trust
    better = untangled(movie, model, found, pairs.log_density, still)
    yield better.follower
    found = link_pass(movie, pairs, model, better, still)
    yield found.trust
    yield doubted(movie, model, found, still).trust


def test_a_pace_of_one_changes_nothing(movie, model):
    usual = movie.paced(np.ones(len(movie.frame_start) - 1))
    for one, other in zip(every_look(movie, model), every_look(usual, model), strict=True):
        np.testing.assert_array_equal(one, other)


def test_twice_the_pace_is_twice_the_step(movie, model):
    pace = np.full(len(movie.frame_start) - 1, 2.0)
    speed, diffusion = (tuple(2 * np.array(of)) for of in (model.motion.speed, model.motion.diffusion))
    wider = replace(model, motion=replace(model.motion, speed=speed, diffusion=diffusion))
    paced = every_look(movie.paced(pace), model)
    for one, other in zip(paced, every_look(movie, wider), strict=True):
        np.testing.assert_allclose(one, other, atol=5e-3)  # a pair at a gate may be rounded away


@pytest.mark.parametrize("look", [BY_DETECTIONS, BY_HEADINGS], ids=["detections", "headings"])
def test_a_movie_run_backward_gives_the_same_links(look):
    truth = walks(REST[:30], 200, side=6.0, seed=3)
    pace = REST[:30] / np.sqrt(np.mean(REST[:30] ** 2))
    movie = movie_of(truth.detections, (1, 1, 1)).paced(np.append(pace, 1.0))
    step = tuple([float(np.sqrt(np.mean(REST[:30] ** 2)))] * 3)
    model = LinkModel(Motion.static(step, (0.02,) * 3), (0.9,), 0.1, 0.1, gate=(1.2,) * 3)

    def linked(movie):
        still = np.zeros_like(movie.position)
        return look.link(movie, pairs_of(movie, model.gate), model, Linking.none(len(movie.frame)), still)[0]

    found, back = linked(movie), linked(movie.backward()).backward()
    assert (found.follower == back.follower).mean() > 0.97
    right = truth.links[np.isin(truth.links[:, 0], movie.order[found.follower >= 0])]
    assert len(right) > 0.8 * len(truth.links)


@pytest.mark.parametrize("holes", [False, True])
def test_the_pace_of_a_frame_without_detections_has_no_say(movie, model, holes):
    """All is known of each frame by its own number."""
    frames = len(movie.frame_start) - 1
    time = np.append(0, np.arange(2, 2 + frames))
    later = replace(
        movie,
        frame=movie.frame + 1,
        frame_start=np.append(0, movie.frame_start),
        time=time if holes else None,
    )
    paces = (np.append(first, np.linspace(0.8, 1.2, frames)) for first in (0.1, 0.9))
    slow, fast = (every_look(later.paced(pace), model) for pace in paces)
    for one, other in zip(slow, fast, strict=True):
        np.testing.assert_array_equal(one, other)


def test_who_is_believed_to_be_another_is_so_backward_as_well(movie, model):
    still, paced = np.zeros_like(movie.position), movie.paced(np.linspace(0.5, 2, len(movie.frame_start) - 1))
    pairs = with_gaps(paced, pairs_of(paced, model.gate), model, still)
    found, _ = BY_DETECTIONS.link(paced, pairs, model, Linking.none(len(movie.frame)), still)
    there, back = (
        doubted(*of, still).trust
        for of in ((paced, model, found), (paced.backward(), model, found.backward()))
    )
    assert (there < found.trust - 0.01).sum() > 20
    np.testing.assert_allclose(found.backward().backward().trust, found.trust)
    follower = found.follower
    linked = np.nonzero(follower >= 0)[0]
    np.testing.assert_allclose(back[len(back) - 1 - follower[linked]], there[linked], atol=1e-6)


def test_a_part_keeps_its_own_pace(movie):
    frames = len(movie.frame_start) - 1
    paced = movie.paced(np.arange(1.0, frames + 1))
    assert paced.part(3, 9).pace.tolist() == [4, 5, 6, 7, 8, 9]
    assert paced.backward().backward().pace.tolist() == paced.pace.tolist()
    assert paced.backward().pace[:2].tolist() == [frames - 1, frames - 2]
    assert paced._pace_over(2)[:2] == pytest.approx(np.sqrt([2.5, 6.5]))
    holed = replace(paced, time=np.cumsum(np.arange(frames)))  # 1, 2, 3, … intervals long
    assert holed._pace_over(2)[:2] == pytest.approx(np.sqrt([(1 + 4 * 2) / 3, (4 * 2 + 9 * 3) / 5]))
    assert holed.backward().lasting(1)[:2].tolist() == [frames - 1, frames - 2]
    assert np.diff(holed.part(3, 9).when[[0, -1]]) == 4 + 5 + 6 + 7 + 8


@pytest.mark.parametrize("freedom", [0.0, 5.0])
def test_pairs_are_weighed_by_how_far_particles_go_from_their_frame(freedom):
    rng, step2, reach = np.random.default_rng(2), np.array([0.3, 0.2, 0.5]), np.array([0.5, 2.0, 1.0])
    place, frame, gain = rng.normal(size=(3, 3)), np.arange(3), np.empty(2)
    weigh_still(
        np.array([0, 1, 2, 2]), np.array([1, 2], np.int32), frame, place, reach, step2, np.zeros(3), freedom,
        2.0, gain,
    )  # fmt: skip
    for i in range(2):
        shape = np.diag(step2) * reach[i] ** 2 * (2 if freedom else 1)
        t = multivariate_t(np.zeros(3), shape, df=freedom or np.inf)
        assert gain[i] == pytest.approx(t.logpdf(place[i + 1] - place[i]))


# ---------------------------------------------------------------- long movies, of which a part tells most


def test_frames_lost_outside_the_part_are_bridged_as_far_as_particles_went():
    scene = Scene(0.12, 20.0, particles=400, frames=120, turnover=0.0)
    truth = lost(scene.film(2), np.arange(20, 24))
    tracks = track(truth.detections).tracks
    across = tracks.detections.frame[tracks.links[:, 0]] == 19
    right = {tuple(link) for link in truth.links.tolist()}
    assert np.mean([tuple(link) in right for link in tracks.links[across].tolist()]) > 0.9
    assert across.sum() > 0.9 * 400


def test_nobody_is_followed_over_a_time_in_which_all_go_farther_than_is_looked():
    truth = lost(Scene(0.25, 8.0, miss=0.05, particles=600, frames=40).film(1), np.arange(20, 30))
    run = track(truth.detections)
    frame, links = truth.detections.frame, run.tracks.links
    assert not ((frame[links[:, 0]] < 20) & (frame[links[:, 1]] > 29)).any()
    assert run.learned.pace is None


def test_a_pace_is_learned_where_a_part_has_too_few_frames_to_tell_it():
    truth = walks(np.where(np.arange(23) // 3 % 2, 0.3, 0.06), 2000, side=13.0)
    run = track(truth.detections)
    assert run.learned.pace is not None
    assert abs(over_sure(run, truth)) < 0.03


def test_times_that_are_a_little_off_are_no_holes():
    rng, count = np.random.default_rng(0), 60
    number = np.cumsum(rng.integers(800, 1200, 30))
    place = rng.uniform(0, 9, (count, 3)) + np.cumsum(rng.normal(0, 0.05, (30, count, 3)), axis=0)
    seen = Detections.from_table(np.repeat(number, count), place.reshape(-1, 3))
    movie = movie_of(seen, (1, 1, 1), holes=True)
    assert movie.time is None
    assert len(movie.frame_start) == 31
