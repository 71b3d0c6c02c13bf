"""The door of learned linking: what is given to it, and what it states."""

import pickle

import numpy as np
import pytest
from scenes import always_seen, carried, f1_of, followed, link_f1

from outbid import Detections, ResourceError, TrackingSettings, Tracks, score, track
from outbid.gated.linking import Links
from outbid.learned.linking import linked
from outbid.learned.live import Live
from outbid.learned.summary import Summary
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import OrnsteinUhlenbeckWalk
from outbid.simulate.scenes import Scene
from outbid.simulate.walks import WalkSettings, walk

BOX, NOISE, MISS, CLUTTER = (7.0, 7.0, 7.0), 0.04, 0.05, 0.05
FREE = TrackingSettings(divisions=False)


def movie(seed: int = 0, frames: int = 12, step: float = 0.2) -> Tracks:
    motion = OrnsteinUhlenbeckWalk(step, 4.0)
    settings = WalkSettings(motion, 340, frames, BOX, "reflect", 0.02, 0.02, seed=seed)
    return observe(walk(settings), Microscope((NOISE,) * 3, MISS, CLUTTER), box=BOX, seed=seed)


@pytest.fixture(scope="module")
def truth() -> Tracks:
    return movie()


@pytest.fixture(scope="module")
def free(truth: Tracks) -> tuple[Summary, Links]:
    """What is learned where nothing is given, without divisions."""
    return linked(truth.detections, FREE)


@pytest.mark.smoke
def test_links_are_right_and_what_is_learned_is_true(truth: Tracks, free: tuple[Summary, Links]) -> None:
    shown, links = free
    assert link_f1(links, truth) > 0.95
    assert (np.diff(links.pairs @ [len(truth.detections), 1]) > 0).all()
    assert links.gap == 0
    assert links.probability is not None
    assert 0 < links.probability.min() <= links.probability.max() <= 1
    steps = np.diff(truth.detections.position[truth.links], axis=1)[:, 0]
    lag = np.diff(truth.detections.frame[truth.links], axis=1)[:, 0]
    assert shown.step.mean() == pytest.approx(np.sqrt(np.square(steps[lag == 1]).mean()), rel=0.06)
    assert np.mean(shown.noise) == pytest.approx(NOISE, rel=0.4)
    assert shown.persistence_frames == pytest.approx(4.0, rel=0.4)
    assert shown.clutter == pytest.approx(CLUTTER, abs=0.03)
    assert shown.follow[1] / shown.follow[0] == pytest.approx(MISS, abs=0.02)
    assert set(shown.uncertainty) == {"step", "noise", "persistence_frames", "end", "start"}
    assert shown.neighbours is None
    assert not any(word in str(shown) for word in ("Neighbour flow", "sweeps"))
    assert shown.axes == "zyx"


def test_what_is_given_is_held(truth: Tracks) -> None:
    given = {"noise": (0.05, 0.04, 0.03), "persistence_frames": 5.0, "gate": 1.5, "end": 0.2, "clutter": 0.06}
    shown, links = linked(truth.detections, TrackingSettings(divisions=False, fixed=given))
    assert shown.noise == pytest.approx((0.05, 0.04, 0.03))
    assert (shown.persistence_frames, shown.gate.tolist()) == (5.0, [1.5, 1.5, 1.5])
    assert (shown.end, shown.clutter) == (0.2, 0.06)
    assert sum(shown.follow) == pytest.approx(0.8)
    assert not {"noise", "persistence_frames", "end"} & set(shown.uncertainty)
    assert shown.known == tuple(given)
    assert link_f1(links, truth) > 0.93


def test_a_given_persistence_leaves_room_for_turns() -> None:
    """Particles that fly straight turn now and then, which none of one Gaussian class would."""
    rng, many, frames = np.random.default_rng(2), 300, 20
    heading, places = rng.normal(0, 0.12, (many, 3)), [rng.uniform(0, 7, (many, 3))]
    for _ in range(frames - 1):
        turns = rng.random(many) < 0.05
        heading[turns] = rng.normal(0, 0.12, (turns.sum(), 3))
        places.append(places[-1] + heading)
    place = np.array(places) + rng.normal(0, 0.01, (frames, many, 3))
    truth = always_seen(place)
    given = TrackingSettings(divisions=False, fixed={"persistence_frames": 20.0})
    assert link_f1(linked(truth.detections, given)[1], truth) > 0.99


@pytest.mark.slow
def test_what_is_true_may_be_given() -> None:
    """Slow changes of direction are no turns, and who is missed does not end."""
    truth = Scene(0.12, 8.0, miss=0.1, clutter=0.05, particles=300, frames=30).film(10)
    free, *given = (
        link_f1(linked(truth.detections, TrackingSettings(divisions=False, fixed=known))[1], truth)
        for known in (
            {},
            {"persistence_frames": 8.0},
            {"end": 0.07},
            {"end": 0.07, "start": 0.07, "miss": 0.1},
        )
    )
    assert min(given) > free - 0.002 > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("moves", [{"jitter": 0.1}, {"drift": 0.2}], ids=["jitter", "drift"])
def test_steps_are_those_observed_with_what_whole_frames_move(moves: dict[str, float]) -> None:
    """So they can be given again, and live linking knows how far frames go."""
    truth = carried(**moves)
    seen = truth.detections
    shown, _ = linked(seen, FREE)
    once = truth.links[np.diff(seen.frame[truth.links], axis=1)[:, 0] == 1]
    true = np.sqrt(np.square(np.diff(seen.position[once], axis=1)[:, 0]).mean(axis=0))
    assert shown.step == pytest.approx(true, rel=0.15)
    assert shown.neighbours == 0
    again = linked(seen, TrackingSettings(divisions=False, fixed={"step": tuple(shown.step.tolist())}))[1]
    assert link_f1(again, truth) > 0.999
    assert score(followed(Live(shown), seen)[0], truth, families=["links"]).values["link_f1"] > 0.99


def test_a_narrow_gate_and_no_gaps_are_kept(truth: Tracks) -> None:
    seen = truth.detections
    _, links = linked(seen, TrackingSettings(divisions=False, max_gap=0, fixed={"gate": 0.3}))
    way = np.linalg.norm(np.diff(seen.position[links.pairs], axis=1)[:, 0], axis=1)
    assert 0.25 < way.max() <= 0.33  # beside what the frame flows
    assert (np.diff(seen.frame[links.pairs], axis=1) == 1).all()


def test_frames_that_were_not_recorded_are_no_gaps() -> None:
    whole = movie(1, frames=16)
    seen = ~np.isin(whole.detections.frame, [5, 6, 11])
    name, detections = whole.track_id[seen], whole.detections.take(seen)
    shown, links = linked(detections, FREE)
    assert shown.time is not None
    assert np.diff(shown.time).tolist() == [1, 1, 1, 1, 3, 1, 1, 1, 2, 1, 1, 1]
    assert link_f1(links, Tracks.from_track_ids(detections, name)) > 0.93
    frame = np.unique(detections.frame, return_inverse=True)[1]
    assert (np.diff(frame[links.pairs], axis=1) == 1).mean() > 0.9
    assert "taken as not recorded: 3." in str(shown)


def test_rows_in_another_order_have_the_same_links(truth: Tracks, free: tuple[Summary, Links]) -> None:
    seen, (_, links) = truth.detections, free
    order = np.lexsort((np.random.default_rng(0).random(len(seen)), seen.frame))
    _, again = linked(Detections(seen.frame, seen.position[order]), FREE)
    assert {*map(tuple, order[again.pairs].tolist())} == {*map(tuple, links.pairs.tolist())}


@pytest.mark.smoke
def test_costs_margins_and_gaps_are_in_nats(free: tuple[Summary, Links]) -> None:
    """Minus log odds above the threshold, before encounters; what is not worth a link never passes it."""
    _, links = free
    assert links.probability is not None
    sure = (links.probability > 0.6) & (links.probability < 1 - 1e-5)
    against = (np.log(links.probability / (1 - links.probability)) + links.cost)[sure]
    assert (links.cost <= 0).all()
    assert (links.margin >= 0).all()
    assert -2 < np.median(against) <= 0.1  # log odds of the threshold: F1 / 2, or less
    apart = np.abs(against - np.median(against)) < 1e-3  # the others lie in encounters
    assert apart.mean() > 0.6


@pytest.mark.nightly
def test_errors_of_what_is_learned_are_those_between_movies() -> None:
    shown = [linked(movie(seed).detections, FREE)[0] for seed in range(12)]
    for name, value in (
        ("step", [each.step.mean() for each in shown]),
        ("noise", [np.mean(each.noise) for each in shown]),
        ("end", [each.end for each in shown]),
    ):
        stated = np.mean([each.uncertainty[name] for each in shown])
        assert 0.4 < stated / np.std(value) < 2.5, name


def test_errors_of_what_is_learned_are_computed_once_when_they_are_read(
    truth: Tracks, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[int] = []

    def errors(*given: object) -> dict[str, float]:
        called.append(len(given))
        return {"step": 0.5, "noise": 0.25}

    monkeypatch.setattr("outbid.learned.summary.standard_errors", errors)
    shown, _ = linked(truth.detections, TrackingSettings(fixed={"noise": NOISE}))
    assert not called
    assert shown.uncertainty["step"] == 0.5
    assert set(pickle.loads(pickle.dumps(shown)).uncertainty) == {"step", "end", "start"}
    assert "± 0.5" in str(shown)
    assert called == [3]


def test_progress_is_reported_on_the_way(truth: Tracks) -> None:
    said: list[tuple[int, int]] = []
    linked(truth.detections, FREE, progress=lambda *now: said.append(now))
    done, total = np.array(said).T
    assert len(said) > 20
    assert (np.diff(done) >= 0).all()
    assert done[-1] == total[-1] == len(truth.detections)


def test_more_candidates_than_may_be_are_refused(truth: Tracks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbid.learned.linking.free_memory", lambda: 100_000)
    with pytest.raises(ResourceError, match=r"pairs or more .* GB that may be used"):
        linked(truth.detections, FREE)


@pytest.mark.slow
@pytest.mark.parametrize(("kappa", "behind"), [(0.3, 0.0), (0.4, 0.05)])
def test_in_crowds_the_posterior_answers_and_says_so(kappa: float, behind: float) -> None:
    """At .4 links are behind those of the best gate; the run warns of wrong ones."""
    truth = Scene(kappa, particles=800, frames=12).film(2)
    run = track(truth.detections, FREE)
    assert "are expected to be wrong" in run.warning
    costs = TrackingSettings(max_distance=3.5 * kappa, cost="squared", divisions=False)
    assert f1_of(run, truth) > f1_of(track(truth.detections, costs), truth) - behind
