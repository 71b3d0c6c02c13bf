"""From images to diffusion, exponent and persistence: rendered, detected, tracked, measured; and trackpy.

2D movies, particles 20 pixels apart on average. Diffusion at D = κ² spacing² / 2, and Fürth's walk with a
persistence time of 4 frames. Each is measured on the true tracks, on the true positions with the links that
tracking found, and the whole way from images. `held` is the share of tracks of ten detections or more whose
68 % interval holds the true value. trackpy's D and exponent are those of its tutorial: straight lines through
`emsd` of the same tracks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import measure
import numpy as np

import outbid
from outbid import Detections, Tracks
from outbid.simulate.camera import Camera, render
from outbid.simulate.motions import BrownianWalk, Motion, OrnsteinUhlenbeckWalk, Vectors
from outbid.simulate.walks import WalkSettings, walk

SPACING = 20.0
"""Pixels: spots of radius 2.6 overlap with a neighbour in one of twenty frames."""
PERSISTENCE = 4.0
KAPPAS = (0.05, 0.10, 0.15)


@dataclass(frozen=True)
class Flat(Motion):
    """A motion in the plane."""

    motion: Motion

    def start(self, count: int, rng: np.random.Generator) -> Vectors:
        return self.motion.start(count, rng)

    def move(self, velocity: Vectors, rng: np.random.Generator) -> tuple[Vectors, Vectors]:
        step, velocity = self.motion.move(velocity, rng)
        return step * [0, 1, 1], velocity


def motion_of(kind: str, step: float) -> Motion:
    """A motion whose steps have this standard deviation along each axis."""
    if kind == "diffusion":
        return Flat(BrownianWalk(step))
    time = PERSISTENCE * (1 - PERSISTENCE * (1 - np.exp(-1 / PERSISTENCE)))
    return Flat(OrnsteinUhlenbeckWalk(step * np.sqrt(3 / (2 * time)), PERSISTENCE))


def truth_of(kind: str, kappa: float, particles: int, frames: int, seed: int) -> Tracks:
    side = SPACING * np.sqrt(particles)
    motion = motion_of(kind, kappa * SPACING)
    truth = walk(WalkSettings(motion, particles, frames, (1.0, side, side), "periodic", seed=seed))
    seen = truth.detections
    return Tracks(Detections(seen.frame, seen.position * [0.0, 1.0, 1.0]), truth.links)


def seen_in(truth: Tracks, particles: int, snr: float, seed: int) -> Detections:
    """Detections in the rendered movie."""
    side = round(SPACING * np.sqrt(particles))
    camera = Camera(shape=(1, side, side), psf=(1.0, 1.5, 1.5), snr=snr)
    return outbid.detect(list(render(truth.detections, camera, seed=seed)))[0]


def trackpy_of(tracks: Tracks) -> dict[str, float]:
    """D and exponent from trackpy's ensemble mean square displacement, as its tutorial takes them."""
    import pandas as pd
    import trackpy

    _, y, x = tracks.detections.position.T
    table = pd.DataFrame({"particle": tracks.track_id, "frame": tracks.detections.frame, "y": y, "x": x})
    curve = trackpy.emsd(table, mpp=1, fps=1, max_lagtime=10)
    line = np.polyfit(np.log(curve.index), np.log(curve.to_numpy()), 1)
    return {"trackpy_D": float(np.exp(line[1]) / 4), "trackpy_exponent": float(line[0])}


def row_of(tracks: object, diffusion: float, kind: str) -> measure.Row:
    found = outbid.measure(tracks, axes="yx", drift="none")
    group, each = found.groups.to_pandas().iloc[0], found.to_dataframe()
    each = each[each.detections >= 10]
    names = {"diffusion": diffusion, "exponent": 1.0} if kind == "diffusion" else {"persistence": PERSISTENCE}
    row: measure.Row = {}
    for name, true in names.items():
        value, error = (
            next(group[c] for c in group.index if c.startswith(n)) for n in (name, f"{name}_error")
        )
        columns = [next(c for c in each if c.startswith(n)) for n in (name, f"{name}_error")]
        known = each[columns].dropna().to_numpy()
        held = (np.abs(known[:, 0] - true) <= known[:, 1]).mean()
        row |= {name: value / true, f"{name}_error": error / true, f"{name}_held": held}
    return row


def table(particles: int, frames: int, snr: float, seeds: int) -> Iterator[measure.Row]:
    for kind in ("diffusion", "persistence"):
        for kappa in KAPPAS:
            for seed in range(seeds):
                truth = truth_of(kind, kappa, particles, frames, seed)
                diffusion = (kappa * SPACING) ** 2 / 2
                linked = outbid.track(truth.detections)
                whole = outbid.track(seen_in(truth, particles, snr, seed))
                for way, tracks in (("truth", truth), ("linked", linked), ("whole way", whole)):
                    row: measure.Row = {"kind": kind, "kappa": kappa, "seed": seed, "way": way}
                    row |= row_of(tracks, diffusion, kind)
                    if kind == "diffusion":
                        beside = trackpy_of(tracks if isinstance(tracks, Tracks) else tracks.tracks)
                        row |= {**beside, "trackpy_D": beside["trackpy_D"] / diffusion}
                    yield row


if __name__ == "__main__":
    options = measure.options(__doc__)
    options.add_argument("--particles", type=int, default=300)
    options.add_argument("--frames", type=int, default=40)
    options.add_argument("--snr", type=float, default=7.0)
    options.add_argument("--seeds", type=int, default=4)
    given = options.parse_args()
    rows = table(given.particles, given.frames, given.snr, given.seeds)
    measure.show(rows)
