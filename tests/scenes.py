"""Named scenes of three frames, small enough to score by hand.

A scene is written as paths of words: ``"a0 a1 a2"`` is particle a in frames 0, 1 and 2. A word that
stands in two paths is one detection, so that ``"a0 a1", "a1 d2", "a1 e2"`` is a division. Particles
move by 1 along x in every frame; `PLACES` says where each of them begins.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from outbid import Detections, Tracks

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
