"""Wrong links, stated and true, from sparse to crowded movies, and where tracks meet.

``python -m accuracy.encounters [--workers N] [--most DETECTIONS] [--short] [CELL …]`` prints one row of JSON
for each cell, ``PARTICLES,FRAMES,KAPPA,PERSISTENCE,LOST``; without cells, for all of the grid, or for cells
near it that take three minutes.
"""

import argparse
import itertools
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from outbid import TrackingSettings
from outbid.learned.inference.encounters import odds_of_exchange
from outbid.learned.linking import fit_movie
from outbid.simulate.scenes import Scene

PARTICLES, FRAMES = (5, 100, 1000, 10_000, 100_000), (10, 100, 1000, 10_000)
KAPPA, PERSISTENCE, LOST = (0.02, 0.08, 0.16, 0.25, 0.4), (0, 1, 3, 10, 30), (0.0, 0.05, 0.2)
SHORT = (
    "5,3000,.16,0,0", "5,3000,.16,10,0", "100,10,.16,3,0", "100,100,.08,0,0", "100,100,.16,1,.05",
    "100,100,.16,10,0", "100,100,.16,30,0", "100,1000,.08,3,.05", "1000,100,.16,0,0", "1000,40,.25,3,.2",
    "1000,20,.4,0,0", "10000,10,.25,10,.05",
)  # fmt: skip
"""Cells of the grid, or near it, that are measured in three minutes."""
MOST = 200_000
"""Detections of the largest movies of the grid, unless others are asked for."""
BINS = 0.0, 0.6, 0.8, 0.95, 0.99, 1.0 + 1e-9
MEETS = float(np.exp(-5.0))
"""Odds of an exchange from which a link lies in an encounter."""


@dataclass(frozen=True)
class Cell:
    """A kind of movie; `lost` is the share of misses, and of clutter."""

    particles: int
    frames: int
    kappa: float
    persistence: float
    lost: float

    def seeds(self) -> int:
        """Movies of this kind: as many as hold some 50,000 detections."""
        return int(np.clip(50_000 // (self.particles * self.frames), 1, 20))


def grid(most: int) -> list[Cell]:
    """All cells of at most so many detections."""
    every = itertools.product(PARTICLES, FRAMES, KAPPA, PERSISTENCE, LOST)
    return [cell for cell in itertools.starmap(Cell, every) if cell.particles * cell.frames <= most]


def measured(cell: Cell) -> dict[str, Any]:
    """Numbers of links, wrong ones and stated ones: of all, in encounters, and by bin of the latter."""
    parts, begun = [], time.process_time()
    for seed in range(cell.seeds()):
        scene = Scene(
            cell.kappa, float(cell.persistence), cell.lost, cell.lost, noise=min(0.03, cell.kappa / 4),
            turnover=0.0, particles=cell.particles, frames=cell.frames,
        )  # fmt: skip
        truth = scene.film(seed)
        movie = fit_movie(truth.detections, TrackingSettings(divisions=False))
        links, fit = movie.decided.links, movie.fit
        track = truth.track_id[movie.reading.order]
        right = track[links.pairs[:, 0]] == track[links.pairs[:, 1]]
        assert links.probability is not None
        meets = odds_of_exchange(fit.movie, fit.model, links.pairs) > MEETS
        parts.append(np.stack([links.probability, right, meets], axis=1))
    p, right, meets = np.concatenate(parts).T
    seconds, here = time.process_time() - begun, meets > 0
    bins = [here & (p >= low) & (p < high) for low, high in itertools.pairwise(BINS)]
    return asdict(cell) | {
        "seconds": round(seconds, 2),
        "all": _counts(p, right, np.ones(len(p), bool)),
        "encounters": _counts(p, right, here),
        "bins": [_counts(p, right, some) for some in bins],
    }


def _counts(p: np.ndarray, right: np.ndarray, some: np.ndarray) -> dict[str, float]:
    wrong, stated = 1 - right[some], 1 - p[some]
    return {"links": int(some.sum()), "wrong": int(wrong.sum()), "stated": round(float(stated.sum()), 2)}


def main() -> None:
    """Print the rows of cells as they are done."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("cells", nargs="*")
    given.add_argument("--workers", type=int, default=1)
    given.add_argument("--most", type=int, default=MOST)
    given.add_argument("--short", action="store_true")
    asked = given.parse_args()
    texts = asked.cells or (SHORT if asked.short else ())
    numbers = [[float(value) for value in text.split(",")] for text in texts]
    cells = [Cell(int(n), int(f), *rest) for n, f, *rest in numbers] or grid(asked.most)
    with ProcessPoolExecutor(asked.workers) as pool:
        for row in pool.map(measured, cells):
            print(json.dumps(row), file=sys.stdout, flush=True)


if __name__ == "__main__":
    main()
