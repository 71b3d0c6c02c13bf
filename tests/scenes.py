"""Scenes that tests share: named ones of three frames, small enough to score by hand; simulated movies.

A scene is written as paths of words: ``"a0 a1 a2"`` is particle a in frames 0, 1 and 2. A word that
stands in two paths is one detection, so that ``"a0 a1", "a1 d2", "a1 e2"`` is a division. Particles
move by 1 along x in every frame; `PLACES` says where each of them begins.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from outbid import Detections, Tracks, score
from outbid.learned.live import Joined, Live
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import BrownianWalk, OrnsteinUhlenbeckWalk
from outbid.simulate.walks import WalkSettings, walk

PLACES: Mapping[str, tuple[float, float, float]] = {
    "a": (0, 0, 0),
    "b": (0, 20, 0),
    "c": (0, 40, 0),
    "d": (0, -8, 0),  # d and e: the daughters of a
    "e": (0, 8, 0),
    "p": (2, 0, 0),  # p and q: two that may be a, q the nearer
    "q": (-1, 0, 0),
}
"""Position z, y, x of each particle in frame 0, in pixels."""


def tracks_of(*paths: str, shift: tuple[float, float, float] = (0, 0, 0)) -> Tracks:
    """Tracks along the paths, all positions moved by `shift`."""
    words = sorted(dict.fromkeys(word for path in paths for word in path.split()), key=lambda word: word[1:])
    row = {word: i for i, word in enumerate(words)}
    frame = [int(word[1:]) for word in words]
    position = [np.add(PLACES[word[0]], np.add(shift, (0, 0, int(word[1:])))) for word in words]
    links = [
        (row[source], row[target])
        for path in paths
        for source, target in zip(path.split()[:-1], path.split()[1:], strict=True)
    ]
    return Tracks(Detections.from_table(frame, position), np.array(sorted(links), np.int64).reshape(-1, 2))


@dataclass(frozen=True)
class Scene:
    """A small movie for tests of scores: its true tracks and the tracks that were found."""

    truth: Tracks
    tracks: Tracks


_TWO = ("a0 a1 a2", "b0 b1 b2")
_DIVISION = ("a0 a1", "a1 d2", "a1 e2")

SCENES: Mapping[str, Scene] = {
    "perfect": Scene(tracks_of(*_TWO), tracks_of(*_TWO)),
    "reordered": Scene(tracks_of(*_TWO), tracks_of(*_TWO[::-1])),
    "shifted": Scene(tracks_of(*_TWO), tracks_of(*_TWO, shift=(1, 0, 0))),
    "missed link": Scene(tracks_of(*_TWO), tracks_of("a0 a1", "a2", "b0 b1 b2")),
    "swap": Scene(tracks_of(*_TWO), tracks_of("a0 a1 b2", "b0 b1 a2")),
    "gap": Scene(tracks_of(*_TWO), tracks_of("a0 a2", "b0 b1 b2")),
    "gap in both": Scene(tracks_of("a0 a2", "b0 b1 b2"), tracks_of("a0 a2", "b0 b1 b2")),
    "gap in the truth": Scene(tracks_of("a0 a2", "b0 b1 b2"), tracks_of(*_TWO)),
    "spurious track": Scene(tracks_of(*_TWO), tracks_of(*_TWO, "c0 c1 c2")),
    "missed track": Scene(tracks_of(*_TWO), tracks_of("a0 a1 a2")),
    "decoy": Scene(tracks_of("a0 a1 a2"), tracks_of("p0 p1 p2", "q1")),
    "division": Scene(tracks_of(*_DIVISION), tracks_of(*_DIVISION)),
    "missed division": Scene(tracks_of(*_DIVISION), tracks_of("a0 a1 d2", "e2")),
    "wrong daughter": Scene(tracks_of(*_DIVISION, "b0 b1 b2"), tracks_of("a0 a1 b2", "b0 b1", "d2", "e2")),
    "false division": Scene(tracks_of(*_TWO), tracks_of("a0 a1", "a1 a2", "a1 b2", "b0 b1")),
    "no links": Scene(tracks_of(*_TWO), tracks_of("a0", "a1", "a2", "b0", "b1", "b2")),
    "one frame": Scene(tracks_of("a0", "b0"), tracks_of("a0", "b0")),
    "no common frames": Scene(tracks_of(*_TWO), tracks_of("a3 a4 a5")),
    "nothing found": Scene(tracks_of(*_TWO), tracks_of()),
    "nothing true": Scene(tracks_of(), tracks_of(*_TWO)),
    "nothing at all": Scene(tracks_of(), tracks_of()),
}
"""All scenes by name; a gate of 5 is meant."""


def simulated(motion, *, particles=800, frames=20, noise=0.0, miss=0.0, clutter=0.0, seed=1) -> Tracks:
    """A movie of one particle a unit of volume, so that steps are in units of density^(-1/3)."""
    box = (particles ** (1 / 3),) * 3
    settings = WalkSettings(motion, particles, frames, box, "reflect", 0.02, 0.02, seed=seed)
    return observe(walk(settings), Microscope((noise,) * 3, miss, clutter), box=box, seed=seed)


REST = np.where(np.arange(49) // 5 % 2, 0.3, 0.05)
"""Steps of bursts."""


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
    strays = rng.poisson(clutter * count, len(path))
    points = np.concatenate([path[frame, who], rng.uniform(0, side, (strays.sum(), 3))])
    frame = np.append(frame, np.repeat(np.arange(len(path)), strays))
    who = np.append(who, count + np.arange(strays.sum()))
    order = np.argsort(frame, kind="stable")
    detections = Detections(frame[order].astype(np.int32), points[order])
    return Tracks.from_track_ids(detections, who[order])


def f1_of(run, truth: Tracks) -> float:
    return score(run.tracks, truth, gate=1e-6, families=("links",)).values["link_f1"]


def link_f1(links, truth: Tracks) -> float:
    """Of links between the detections of the truth."""
    return score(Tracks(truth.detections, links.pairs), truth, families=("links",)).values["link_f1"]


def share_of_right(links, truth: Tracks) -> float:
    """Of links (L, 2), how many are true."""
    true = set(map(tuple, truth.links.tolist()))
    return float(np.mean([tuple(link) in true for link in links.tolist()]))


def always_seen(place) -> Tracks:
    """Particles at places (F, N, axes), all of them seen."""
    frames, count, axes = place.shape
    seen = Detections.from_table(np.repeat(np.arange(frames), count), place.reshape(-1, axes))
    return Tracks.from_track_ids(seen, np.tile(np.arange(count), frames))


def lost(truth: Tracks, frames) -> Tracks:
    """The movie without some frames; the others keep their numbers."""
    kept = ~np.isin(truth.detections.frame, frames)
    return truth.take(kept)


def stuck(when) -> Detections:
    """Particles that stay where they are, but for noise."""
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 9, (700, 3)) + 0.05 * rng.normal(size=(len(when), 700, 3))
    return Detections(np.repeat(when, 700).astype(np.int32), place.reshape(-1, 3))


def carried(jitter=0.0, drift=0.0, disc=0.0, frames=50, count=300, side=7.0, step=0.03, miss=0.15) -> Tracks:
    """Particles on a stage that jitters and drifts, by so much a frame, or on a disc that turns."""
    rng = np.random.default_rng(0)
    place, stage = [rng.uniform(0, side, (count, 3))], np.zeros((frames, 3))
    for _ in range(frames - 1):
        z, y, x = (place[-1] - side / 2).T
        turn = 2 * disc / side * np.stack([0 * z, x, -y], axis=1)
        place.append(place[-1] + turn + step * rng.normal(size=(count, 3)))
    stage[1:, 1:] = np.cumsum(drift + jitter * rng.normal(size=(frames - 1, 2)), axis=0)
    path = np.array(place) + stage[:, None] + 0.01 * rng.normal(size=(frames, count, 3))
    frame, who = np.nonzero(rng.random(path.shape[:2]) >= miss)
    return Tracks.from_track_ids(Detections(frame.astype(np.int32), path[frame, who]), who)


def over_gaps(truth: Tracks, tracks: Tracks) -> float:
    """Share of the true links over frames that are seen that are found."""
    number = np.unique(truth.detections.frame, return_inverse=True)[1]
    source, target = number[truth.links].T
    found = {tuple(link) for link in tracks.links.tolist()}
    return float(np.mean([tuple(link) in found for link in truth.links[target > source + 1].tolist()]))


def followed(live: Live, seen: Detections) -> tuple[Tracks, list[Joined]]:
    """Tracks of a movie that is added frame by frame."""
    start = seen.frame_start
    found = [live.add(seen.position[slice(*start[f : f + 2])]) for f in range(len(start) - 1)]
    return Tracks.from_track_ids(seen, np.concatenate([each.track for each in found])), found


NOISE = 0.03


def crowded(kappa: float, persistence: float, lost: float, *, frames: int, seed: int = 1) -> Tracks:
    """2,000 particles, one a unit of volume, that step by kappa along each axis."""
    motion = BrownianWalk(kappa)
    if persistence:
        step2 = 2 * persistence**2 * (1 / persistence - 1 + math.exp(-1 / persistence))
        motion = OrnsteinUhlenbeckWalk(kappa * math.sqrt(3 / step2), persistence)
    return simulated(motion, particles=2000, frames=frames, noise=NOISE, miss=lost, clutter=lost, seed=seed)


def tissue(
    seed: int = 0,
    cells: int = 150,
    frames: int = 30,
    apart: float = 0.25,
    rate: float = 0.02,
    off: float = 0.0,
    missed: float = 0.0,
) -> Tracks:
    """Cells in a growing box that jitter; some divide in each frame, the daughters parting to both sides.

    The middle between them is off by such a share of their distance: 0.5 if one stays where the mother was.
    """
    rng = np.random.default_rng(seed)
    place, name = rng.uniform(0, cells ** (1 / 3), (cells, 3)), np.arange(cells)
    frame, position, track_id, parent = [], [], [], []
    mother = np.full(cells, -1)
    named = cells
    for t in range(frames):
        frame += [t] * len(place)
        position.append(place)
        track_id.append(name)
        parent.append(mother)
        divides = rng.random(len(place)) < rate
        axis = rng.normal(size=(divides.sum(), 3))
        axis *= apart / np.linalg.norm(axis, axis=1, keepdims=True)
        new, away = named + np.arange(2 * divides.sum()), 2 * off * axis
        named += len(new)
        place = np.concatenate([place[~divides], place[divides] + away + axis, place[divides] + away - axis])
        place = (place + rng.normal(0, 0.04, place.shape)) * 1.007
        mother = np.concatenate([mother[~divides], name[divides], name[divides]])
        name = np.concatenate([name[~divides], new])
    seen = rng.random(len(frame)) >= missed
    detections = Detections.from_table(np.array(frame)[seen], np.concatenate(position)[seen])
    ids, parents = np.concatenate(track_id)[seen], np.concatenate(parent)[seen]
    return Tracks.from_track_ids(detections, ids, np.where(np.isin(parents, ids), parents, -1))


def merged(seen: Detections, apart: float, rng: np.random.Generator) -> Detections:
    """What is seen where particles nearer to each other than `apart` are one spot."""
    frames, places = [], []
    for frame in np.unique(seen.frame):
        place = seen.position[seen.frame == frame]
        near = cKDTree(place).query_pairs(apart, output_type="ndarray")
        graph = coo_matrix((np.ones(len(near)), near.T), (len(place), len(place)))
        spots, spot = connected_components(graph, directed=False)
        frames += [frame] * spots
        sums = np.stack([np.bincount(spot, column) for column in place.T], axis=1)
        places.append(sums / np.bincount(spot)[:, None])
    place = np.concatenate(places)
    return Detections.from_table(frames, place + rng.normal(0, 0.05 * apart, place.shape))


def backward(tracks: Tracks) -> Tracks:
    """The same tracks in the movie run backward."""
    seen, last = tracks.detections, len(tracks.detections) - 1
    links = last - tracks.links[:, ::-1]
    turned_round = Detections.from_table((seen.frame.max() - seen.frame)[::-1], seen.position[::-1])
    return Tracks(turned_round, links[np.lexsort((links[:, 1], links[:, 0]))])


Points = NDArray[np.float64]
Step = Callable[[Points, int], Points]


def film(step: Step, *, particles: int = 300, frames: int = 20, drop: tuple[int, ...] = ()) -> Tracks:
    """Particles in a box, some 5 from each other, each frame by a step from the last."""
    place, places = np.random.default_rng(1).uniform(0, 60, (particles, 3)), []
    for frame in range(frames):
        places.append(place)
        place = step(place, frame)
    kept = [frame for frame in range(frames) if frame not in drop]
    points = np.concatenate([places[frame] for frame in kept])
    seen = Detections.from_table(np.repeat(kept, particles), points)
    return Tracks.from_track_ids(seen, np.tile(np.arange(particles), len(kept)))


def diffusing(sigma: NDArray[np.float64] | float, seed: int = 0) -> Step:
    rng = np.random.default_rng(seed)
    return lambda place, _: place + sigma * rng.normal(size=place.shape)


def seen_of(place, seen) -> Tracks:
    """Detections of places (F, N, 3) that are seen (F, N), and links to where each is seen next."""
    frame, who = np.nonzero(seen)
    detections = Detections(frame.astype(np.int32), place[seen])
    order = np.lexsort((frame, who))
    same = who[order][1:] == who[order][:-1]
    links = np.column_stack([order[:-1][same], order[1:][same]])
    return Tracks(detections, links[np.argsort(links[:, 0])])


def blinking(missed, step=0.05, count=400, frames=30, side=9.0, seed=4) -> Tracks:
    """Particles that diffuse, each missed in so many frames."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, side, (count, 3)) + np.cumsum(rng.normal(0, step, (frames, count, 3)), axis=0)
    return seen_of(place, rng.random((frames, count)) >= missed)
