"""Few and bright spots: in how many frames something is found that is no bead.

Movies of one or five beads that walk, at SNR 4 to 30, in planes and volumes. "halo": with a wide halo, which
has 15 % of the light; "focus": besides, each bead is up to three times as wide in a half of the frames;
"saturated": the camera ends at half of their height. In tests/bench/,
`python -m detection_accuracy.few --first 1 --jobs 2` measures them.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import product
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from benchmarks import measure
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from outbid import DetectionSettings, detect

FRAMES, RADIUS, LEVEL, READ = 12, 3.0, 30.0, 2.0  # pixels, photons, photons
HALO, HALO_WIDTH = 0.15, 2.2  # share of the light, and width over that of the bead
FOCUS = (1.3, 3.0)  # widths of beads out of focus over those of others
NEAR = 4.0  # pixels from a bead
COUNTED = ("frames", "with_false", "false", "missed", "beads")


class Kind(NamedTuple):
    """One kind of movie."""

    kind: str
    dimensions: int
    snr: float
    beads: int

    @property
    def name(self) -> str:
        return f"{self.kind} {self.dimensions}D SNR{self.snr:g} {self.beads}"


KINDS = {
    one.name: one
    for one in (
        Kind(*each) for each in product(("halo", "focus", "saturated"), (2, 3), (4.0, 10.0, 30.0), (1, 5))
    )
}


def movie(kind: Kind, seed: int) -> tuple[list[NDArray[np.uint16]], list[NDArray[np.float64]]]:
    """Frames, and places of the beads in each, in voxels."""
    rng = np.random.default_rng([seed, *kind.name.encode()])
    flat, wide = kind.dimensions == 2, RADIUS / sqrt(kind.dimensions)
    shape = (1, 128, 128) if flat else (16, 64, 64)
    sigma, size = np.array([wide, wide, wide]), np.array(shape)
    peak = (kind.snr**2 + kind.snr * sqrt(kind.snr**2 + 4 * (LEVEL + READ**2))) / 2
    edge = np.array([0 if flat else 4, 10, 10])
    place = rng.uniform(edge, size - 1 - edge, (kind.beads, 3))
    images, truth = [], []
    for _ in range(FRAMES):
        place = np.clip(place + rng.normal(size=place.shape), edge, size - 1 - edge)
        photons = np.full(shape, LEVEL)
        for one in place:
            out = kind.kind == "focus" and rng.random() < 0.5
            core = rng.uniform(*FOCUS) if out else 1.0
            photons += peak * (1 - HALO) * _gaussian(shape, one, core * sigma)
            photons += (
                peak * HALO / HALO_WIDTH**kind.dimensions * _gaussian(shape, one, HALO_WIDTH * core * sigma)
            )
        seen = 100 + 2.1 * (rng.poisson(photons) + rng.normal(0, READ, shape))
        most = 100 + 2.1 * (LEVEL + 0.5 * peak)
        if kind.kind == "saturated":
            seen = 4095 * np.minimum(seen / most, 1)
        images.append(np.clip(np.round(seen), 0, 65535).astype(np.uint16))
        truth.append(place.copy())
    return images, truth


def _gaussian(shape: tuple[int, ...], place: NDArray, widths: NDArray) -> NDArray[np.float64]:
    axes = np.ogrid[tuple(slice(0, n) for n in shape)]
    return np.exp(-sum(((x - c) / w) ** 2 for x, c, w in zip(axes, place, widths, strict=True)) / 2)


def measured(name: str, seed: int) -> dict[str, Any]:
    """Detections that are no bead, frames with one, and beads that were missed."""
    kind = KINDS[name]
    images, truth = movie(kind, seed)
    seen, used = detect(images, DetectionSettings(device="cpu"), workers=1)
    false, missed = [], 0
    for frame, beads in enumerate(truth):
        here = seen.position[seen.rows_of(frame)]
        away, which = cKDTree(beads).query(here)
        hit = np.unique(which[away < NEAR])
        false.append(len(here) - len(hit))
        missed += len(beads) - len(hit)
    return {
        "frames": FRAMES, "with_false": int(np.count_nonzero(false)), "false": int(np.sum(false)),
        "missed": missed, "beads": FRAMES * kind.beads, "radius": used.radius, "bodies": bool(used.bodies),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", nargs="*", default=[], help="of the names of kinds")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="movies of each kind")
    parser.add_argument("--jobs", type=int, default=1, help="movies measured at once")
    chosen = parser.parse_args()
    names = [name for name in KINDS if set(chosen.words) <= set(name.split())]
    wanted = [(name, seed) for seed in range(chosen.first, chosen.first + chosen.seeds) for name in names]
    total = {name.split()[0]: dict.fromkeys(COUNTED, 0) for name in names}
    with measure.processes(chosen.jobs) as pool:
        for (name, seed), row in zip(wanted, pool.map(measured, *zip(*wanted, strict=True)), strict=True):
            sys.stderr.write(f"{name}, seed {seed}: {json.dumps(row)}\n")
            for key, sums in ((key, total[name.split()[0]]) for key in COUNTED):
                sums[key] += row[key]
    print(json.dumps(total))


if __name__ == "__main__":
    main()
