"""Corrections until the links are right: asked by doubt and solved again, by cost, or at random.

    python -m accuracy.proofread  # from tests/bench/; writes proofread.json and docs/images/proofread.png

An oracle answers each question with where the detection goes next, or that its track ends there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outbid import TrackingSettings, Tracks
from outbid.edit.proofreading import FrozenModel, hold, resolve, uncertain_links
from outbid.pins import Pin

from .film import View, bordered, cast
from .movies import Movie, recorded
from .walkers import diffusing

HERE = Path(__file__).resolve().parent
RECORD = HERE / "proofread.json"
PICTURE = HERE.parents[2] / "docs" / "images" / "proofread.png"
WANTED = 0.99
"""Share of links, by F1, at which a movie counts as corrected."""
EACH = 25
"""Answers between two points of a curve that is not solved again."""
AT_ONCE = 5
"""Answers before all is solved again."""
MOST = 4000
"""Most answers of an order that needs more."""
ORDERS = ("by doubt, solved again", "by doubt", "by link cost", "at random")


class Curve(NamedTuple):
    """Link F1 after so many answers."""

    answers: list[int]
    f1: list[float]

    @property
    def reached(self) -> int | None:
        """Answers until the wanted F1; None if it was not reached."""
        return next((n for n, f1 in zip(self.answers, self.f1, strict=True) if f1 >= WANTED), None)


def simulated(seed: int) -> Tracks:
    """Diffusion with steps of .24 spacings, 5 % missed, 3 % clutter."""
    the = cast([59, seed], count=150, frames=15)
    return bordered(the, the.start + diffusing(the, 0.24), View((0.02,), 0.05, 0.03))


def f1_of(links: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    right = len({*map(tuple, links.tolist())} & {*map(tuple, truth.tolist())})
    return 2 * right / max(len(links) + len(truth), 1)


def answer(truth: Tracks, row: int) -> Pin:
    """What the oracle says of the next detection of a particle."""
    seen, target = truth.detections, truth.links[truth.links[:, 0] == row, 1].tolist()
    kind = ("end", "link", "division")[min(len(target), 2)]
    places = [(int(seen.frame[k]), tuple(seen.position[k].tolist())) for k in (row, *target[:2])]
    return Pin(kind, tuple(places))  # type: ignore[arg-type]


def solved_again(held: FrozenModel, truth: Tracks) -> Curve:
    """The most doubtful are asked, a few at a time, and all is solved again under the answers."""
    curve, pins = Curve([], []), list[Pin]()
    while len(pins) <= MOST:
        now = resolve(held, pins)
        asked = uncertain_links(now, AT_ONCE)
        curve.answers.append(len(pins))
        curve.f1.append(f1_of(now.run.tracks.links, truth.links))
        if not asked or curve.f1[-1] >= WANTED:
            break
        pins += [answer(truth, one.row) for one in asked]
    return curve


def corrected(links: NDArray[np.int64], rows: Iterator[int], truth: Tracks) -> Curve:
    """Each answer corrects the links of its detection, and those that are in the way."""
    curve = Curve([], [])
    for count, row in enumerate(rows):
        if count % EACH == 0:
            curve.answers.append(count)
            curve.f1.append(f1_of(links, truth.links))
            if curve.f1[-1] >= WANTED or count >= MOST:
                break
        right = truth.links[truth.links[:, 0] == row]
        wrong = (links[:, 0] == row) | np.isin(links[:, 1], right[:, 1])
        links = np.concatenate([links[~wrong], right])
    return curve


def orders(truth: Tracks, seed: int) -> dict[str, Curve]:
    """A curve for each order."""
    held = hold(truth.detections, TrackingSettings())
    now = resolve(held)
    tracks = now.run.tracks
    assert tracks.link_cost is not None
    asked = np.flatnonzero(truth.detections.frame < truth.detections.frame[-1])
    cost = np.full(len(truth.detections), -np.inf)
    step = np.diff(truth.detections.position[tracks.links], axis=1)[:, 0]
    cost[tracks.links[:, 0]] = np.linalg.norm(step, axis=1)
    by: dict[str, Callable[[], Iterator[int]]] = {
        "by doubt": lambda: iter([one.row for one in uncertain_links(now)]),
        "by link cost": lambda: iter(asked[np.argsort(-cost[asked], kind="stable")].tolist()),
        "at random": lambda: iter(np.random.default_rng(seed).permutation(asked).tolist()),
    }
    found = {name: corrected(tracks.links, rows(), truth) for name, rows in by.items()}
    return {ORDERS[0]: solved_again(held, truth), **found}


def movies() -> dict[str, Callable[[], Tracks]]:
    """The movies by name; recorded ones as far as they are here."""
    found: dict[str, Callable[[], Tracks]] = {
        f"simulated {seed}": lambda seed=seed: simulated(seed) for seed in range(3)
    }
    for stride, named in ((3, "3rd"), (5, "5th")):
        movie = Movie("celegans/L1.csv", stride)
        if movie in recorded():
            found[f"C. elegans, every {named} frame"] = movie.truth
    return found


def main() -> None:
    """Measure all movies."""
    found = {}
    for seed, (name, movie) in enumerate(movies().items()):
        found[name] = orders(movie(), seed)
        print(name, {order: (curve.f1[0], curve.reached) for order, curve in found[name].items()}, flush=True)
    plain = {
        name: {order: curve._asdict() | {"reached": curve.reached} for order, curve in curves.items()}
        for name, curves in found.items()
    }
    RECORD.write_text(json.dumps(plain) + "\n")
    draw(found)


def draw(found: dict[str, dict[str, Curve]]) -> None:
    """Link F1 over answers, one panel a movie."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(found), figsize=(2.6 * len(found), 2.6), squeeze=False)
    for panel, (name, curves) in zip(panels[0], found.items(), strict=True):
        for order, curve in curves.items():
            panel.plot(curve.answers, curve.f1, label=order)
        panel.axhline(WANTED, color="0.7", lw=0.8)
        panel.set(title=name, xlabel="answers", xlim=(0, None))
        panel.title.set_fontsize(8)
    panels[0, 0].set_ylabel("link F1")
    panels[0, 0].legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
