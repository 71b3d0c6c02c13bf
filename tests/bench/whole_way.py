"""From images to tracks with nothing set, beside peers whose settings are chosen by the truth; a record.

Twelve kinds of movies of 24 frames: planes and volumes, in even light, haze, light that falls off and hot
pixels, steps of .15 to .35 of the distance between particles. Peers detect by the maxima of a Laplacian of
Gaussian, between pixels, and link by trackpy or laptrack. Of its widths and thresholds the three with the
best Jaccard index of detections are linked, with several search ranges, without and with a missed frame; of
these runs each peer is shown by the one with the best link F1. Seconds are of one core: of all that Outbid
does, and of a peer's run with its chosen settings alone.

In tests/bench/, `python whole_way.py --words hot` measures some kinds; `--record` renews the record.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import measure
from detection_accuracy import movies, tuned
from detection_accuracy.cells import View
from numpy.typing import NDArray

from outbid import Detections, DetectionSettings, Tracks, detect, match, score, track
from outbid.simulate.linkers import linker_named
from outbid.simulate.linkers.linker import Linker, Settings, silence

RECORD = Path(__file__).with_name("whole_way_record.json")
FRAMES = 24
GATE = 3.0  # pixels, within which a detection is that of a particle
SHAPES = {2: (1, 192, 192), 3: (12, 96, 96)}
PARTICLES = {2: 150, 3: 120}
FRESH = 5  # seed: those below were seen when the choice of bodies was set
FEW = 3  # settings of the detector that are linked
RANGES = (2.0, 3.0, 4.0)  # search ranges, in standard deviations of a step along an axis
LINKERS = {
    "trackpy": ({"memory": 0}, {"memory": 1}),
    "laptrack": ({"start_cost": 1.05, "gap": 0}, {"start_cost": 1.05, "gap": 1}),
}
SCORES = {"link_f1": "link F1", "idf1": "IDF1", "jsc_theta": "JSC of tracks"}
Row = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of movie: its light, the step over the distance of particles, and the SNR."""

    dimensions: int
    light: Callable[..., movies.Background]
    step: float
    snr: float

    @property
    def name(self) -> str:
        where = {2: "plane", 3: "volume"}[self.dimensions]
        return f"{where}, {LIGHTS[self.light]}, steps {self.step:g}, SNR {self.snr:g}"

    @property
    def movie(self) -> movies.Movie:
        d = self.dimensions
        return movies.Movie(d, PARTICLES[d], self.snr, SHAPES[d])

    @property
    def length(self) -> float:
        """Standard deviation of a step along an axis, in pixels."""
        return self.step * self.movie.cell.spacing


LIGHTS = {
    movies.even: "even light",
    movies.haze: "haze",
    movies.falling: "light falls off",
    movies.hot: "hot pixels",
}
KINDS = tuple(
    Kind(dimensions, light, step, snr)
    for dimensions in (2, 3)
    for light, step, snr in (
        (movies.even, 0.15, 3.0), (movies.even, 0.25, 4.0), (movies.even, 0.35, 7.0),
        (movies.haze, 0.2, 5.0), (movies.falling, 0.25, 5.0), (movies.hot, 0.2, 4.0),
    )
)  # fmt: skip


def filmed(kind: Kind, seed: int, frames: int = FRAMES) -> tuple[list[NDArray], Tracks]:
    """Frames and true tracks, in pixels of the plane."""
    truth = movies.walked(kind.movie, kind.length, frames, seed)
    rng = np.random.default_rng([seed, *kind.name.encode()])
    bright = movies.brightness(truth.track_id, rng)
    return movies.rendered(kind.movie, truth, bright, rng, kind.light), truth


def scored(found: Tracks, truth: Tracks) -> Row:
    """The scores of `SCORES`."""
    values = score(
        found, truth, gate=GATE, families=("links", "identity", "particles"), link_rule="edge"
    ).values
    return {name: round(float(values[name]), 4) for name in SCORES}


def ours(kind: Kind, images: list[NDArray], truth: Tracks) -> Row:
    """Scores and seconds with nothing set but the voxel."""
    start = time.process_time()
    seen, _ = detect(images, DetectionSettings(spacing=kind.movie.cell.voxel), workers=1)
    made = track(seen, workers=1).tracks
    return {"seconds": round(time.process_time() - start, 2), **scored(made, truth)}


def peers(kind: Kind, images: list[NDArray], truth: Tracks) -> dict[str, Row]:
    """Scores of each linker at its best settings, and the seconds of that run."""
    best: dict[str, Row] = {}
    for name, (seen, seconds) in _detected(kind, images, truth):
        for linker, more in [(one, more) for one, listed in LINKERS.items() for more in listed]:
            for reach in RANGES:
                settings = {"radius": reach * kind.length, **more}
                row = _linked(linker_named(linker), settings, seen, truth)
                row["seconds"] = round(row["seconds"] + seconds, 2)
                row["settings"] = f"{name}; {json.dumps(settings)}"
                if row["link_f1"] > best.get(linker, {"link_f1": -1.0})["link_f1"]:
                    best[linker] = row
    return best


def _linked(linker: Linker, settings: Settings, seen: Detections, truth: Tracks) -> Row:
    start = time.process_time()
    with silence():
        links = linker.link(seen, settings, 1.0)
    return {"seconds": time.process_time() - start, **scored(Tracks(seen, links), truth)}


def _detected(
    kind: Kind, images: list[NDArray], truth: Tracks
) -> Iterator[tuple[str, tuple[Detections, float]]]:
    """Detections and seconds of the few settings that agree best with the truth."""
    cell, frames = kind.movie.cell, dict[str, list[tuple[NDArray, NDArray]]]()
    start = time.process_time()
    for image in images:
        view = View(image, np.empty((0, 3)), np.empty((0, 3)), np.empty(0))
        for width, spots in tuned.log(view, cell):
            frames.setdefault(width, []).append(spots)
    seconds = (time.process_time() - start) / len(frames)  # of one width
    fit: dict[str, tuple[float, Detections]] = {}
    for (width, spots), least in product(frames.items(), tuned.THRESHOLDS[::2]):
        places = [place[strength >= least] for place, strength in spots]
        number = np.repeat(np.arange(len(places)), [len(place) for place in places])
        seen = Detections.from_table(number, np.concatenate(places))
        fit[f"{width}, threshold {least:.3f}"] = _agreement(seen, truth.detections), seen
    for name in sorted(fit, key=lambda each: -fit[each][0])[:FEW]:
        yield name, (fit[name][1], seconds)


def _agreement(seen: Detections, truth: Detections) -> float:
    """Jaccard index of detections within the gate."""
    if not len(seen):
        return 0.0
    pairs = match(seen.position, truth.position, GATE, source_block=seen.frame, target_block=truth.frame)
    return len(pairs.source) / (len(seen) + len(truth) - len(pairs.source))


def measured(number: int, seed: int) -> Row:
    """The row of a kind of movie."""
    kind = KINDS[number]
    images, truth = filmed(kind, seed)
    ours(kind, images[:2], truth)  # compiles
    own = ours(kind, images, truth)
    row = {"movie": kind.name, "seed": seed, "outbid": own, **peers(kind, images, truth)}
    sys.stderr.write(f"{json.dumps(row)}\n")
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", nargs="*", default=[], help="of the names of kinds")
    parser.add_argument("--seeds", type=int, default=1, help="movies of each kind")
    parser.add_argument("--first", type=int, default=FRESH, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="movies measured at once")
    parser.add_argument("--record", action="store_true", help=f"renew {RECORD.name}")
    chosen = parser.parse_args()
    some = [number for number, kind in enumerate(KINDS) if all(word in kind.name for word in chosen.words)]
    tasks = list(product(some, range(chosen.first, chosen.first + chosen.seeds)))
    with measure.processes(chosen.jobs) as pool:
        rows = list(pool.map(measured, *zip(*tasks, strict=True)))
    if chosen.record:
        stated = {
            **measure.stated(), "peers": {name: metadata.version(name) for name in LINKERS},
            "command": "python tests/bench/whole_way.py --record",
        }  # fmt: skip
        RECORD.write_text(json.dumps({**stated, "rows": rows}, indent=1) + "\n", "utf-8")
    measure.show(
        {"who": who, **{key: float(np.mean([row[who][key] for row in rows])) for key in (*SCORES, "seconds")}}
        for who in ("outbid", *LINKERS)
    )


if __name__ == "__main__":
    main()
