"""The whole way from images to tracks with nothing set, beside trackpy and laptrack tuned on the truth.

Movies of 30 frames by the second renderer: particles walk, die and are born, spots differ in brightness and
bleach. Scores are those of the ISBI 2012 challenge at a gate of 5 pixels (alpha, beta, JSC, JSC_theta). The
peers' settings are those with the best mean of the four: of trackpy.locate's diameter and least mass those
few whose detections have the best Jaccard index, each linked by laptrack with several gates, without and with
gap closing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outbid import Detections, DetectionSettings, Tracks, detect, match, score, track
from outbid.simulate.linkers.laptrack import LapTrack
from outbid.simulate.motions import BrownianWalk
from outbid.simulate.walks import WalkSettings, walk

from . import cells, optics, scmos, tuned
from .cells import Cell

GATE = 5.0  # pixels, as in the challenge
SCORES = ("alpha", "beta", "jsc", "jsc_theta")
FRAMES = 30
THIN = 1e-9  # pixels, along z of a plane, for a box has a volume
STEP = 1.5  # standard deviation of a step along an axis, in pixels
TURNOVER = 0.02  # share of the particles that die in a frame; as many are born
BLEACHED = 60.0  # frames in which brightness falls to 1/e
RADII = {2: 2.0, 3: 2.5}
SHAPES = {2: (1, 256, 256), 3: (16, 128, 128)}
SEEDS = 2
FEW = 2  # best settings of trackpy.locate that are linked
GATES = (3.5, 5.0, 7.0)  # of laptrack, in pixels
GAPS = (0, 1)  # frames
Row = dict[str, Any]


@dataclass(frozen=True)
class Movie:
    """One kind of movie, of frames (Z, Y, X) of this shape."""

    dimensions: int
    particles: int
    snr: float
    shape: tuple[int, int, int]

    @property
    def name(self) -> str:
        return f"{self.dimensions}D {self.particles} SNR{self.snr:g}"

    @property
    def cell(self) -> Cell:
        """What its spots look like, and their mean spacing."""
        d = self.dimensions
        size = np.prod(np.array(self.shape[3 - d :]) * ([cells.PLANE, 1, 1] if d == 3 else [1, 1]))
        return Cell("optics", d, RADII[d], self.snr, float(size / self.particles) ** (1 / d))


MOVIES = {
    movie.name: movie
    for dimensions, particles in ((2, 150), (2, 400), (3, 200))
    for movie in (Movie(dimensions, particles, snr, SHAPES[dimensions]) for snr in cells.SNRS)
}


def filmed(movie: Movie, seed: int) -> tuple[list[NDArray], Tracks]:
    """Frames and true tracks, in pixels of the plane."""
    truth = walked(movie, STEP, FRAMES, seed)
    rng = np.random.default_rng([seed, 9, *movie.name.encode()])
    bright, left = brightness(truth.track_id, rng), np.exp(-truth.detections.frame / BLEACHED)
    return rendered(movie, truth, bright, left, rng), truth


def walked(movie: Movie, step: float, frames: int, seed: int) -> Tracks:
    """Random walks between the middles of the outermost voxels, in pixels of the plane."""
    box = tuple(max(float(n * v - v), THIN) for n, v in zip(movie.shape, movie.cell.voxel, strict=True))
    return walk(
        WalkSettings(BrownianWalk(step), movie.particles, frames, box, "reflect", TURNOVER, TURNOVER, seed)  # type: ignore[arg-type]
    )


def brightness(track: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Of detections, over the median: each track has its own."""
    return np.exp(cells.BRIGHTNESS * rng.standard_normal(track.max() + 1))[track]


def rendered(
    movie: Movie,
    truth: Tracks,
    bright: NDArray[np.float64],
    left: NDArray[np.float64],
    rng: np.random.Generator,
) -> list[NDArray]:
    """What an sCMOS camera records in uneven light; `left` of the brightness of each detection is seen."""
    cell, shape, seen = movie.cell, movie.shape, truth.detections
    bright = bright * (left * cell.amplitude / optics.peak(cell.sigma))
    sensor, haze, images = scmos.sensor(*shape[1:], rng), cells.uneven(shape, rng), []
    for frame in range(int(seen.frame.max()) + 1):
        here = seen.rows_of(frame)
        light = optics.light_of(seen.position[here], bright[here], shape, cell.sigma, cell.voxel)
        images.append(scmos.expose(haze + light, sensor, rng))
    return images


def scored(found: Tracks, truth: Tracks) -> Row:
    """The four scores."""
    values = score(found, truth, gate=GATE, families=("particles",)).values
    return {name: values[name] for name in SCORES}


def ours_on(movie: Movie) -> Row:
    """Mean scores with nothing set but the voxel."""
    rows, count = [], 0
    for seed in range(SEEDS):
        images, truth = filmed(movie, seed)
        seen, _ = detect(images, DetectionSettings(spacing=movie.cell.voxel), workers=1)
        count += len(seen)
        rows.append(scored(track(seen).tracks, truth) if len(seen) else dict.fromkeys(SCORES, 0.0))
    return {name: _mean(row[name] for row in rows) for name in SCORES} | {"detections": count}


def peers_on(movie: Movie) -> Row:
    """Mean scores of trackpy and laptrack at their best setting, and the best of each score at any."""
    films = [filmed(movie, seed) for seed in range(SEEDS)]
    located = [_located(movie, images) for images, _ in films]
    fit = {
        name: _mean(
            _agreement(seen[name], truth.detections) for seen, (_, truth) in zip(located, films, strict=True)
        )
        for name in located[0]
    }
    mean: dict[str, Row] = {}
    for name in sorted(fit, key=lambda key: -fit[key])[:FEW]:
        for gate in GATES:
            for gap in GAPS:
                settings = {"radius": gate, "start_cost": 1.05, "gap": gap}
                rows = [
                    scored(Tracks(seen[name], LapTrack().link(seen[name], settings, 1.0)), truth)
                    for seen, (_, truth) in zip(located, films, strict=True)
                ]
                mean[f"{name}, gate {gate:g}, gap {gap}"] = {
                    kind: _mean(row[kind] for row in rows) for kind in SCORES
                }
    best = max(mean, key=lambda setting: sum(mean[setting].values()))
    most = {f"most_{kind}": max(row[kind] for row in mean.values()) for kind in SCORES}
    return {**mean[best], "setting": best, **most}


def _located(movie: Movie, images: list[NDArray]) -> dict[str, Detections]:
    """Detections of trackpy.locate at every setting."""
    frames: dict[str, list[tuple[NDArray, NDArray]]] = {}
    for image in images:
        one = cells.View(image, np.empty((0, 3)), np.empty((0, 3)), np.empty(0))
        for setting, spots in tuned.trackpy(one, movie.cell):
            frames.setdefault(setting, []).append(spots)
    found = {}
    for setting, spots in frames.items():
        for least in tuned.MASSES:
            places = [place[mass >= least] for place, mass in spots]
            number = np.repeat(np.arange(len(places)), [len(place) for place in places])
            found[f"{setting}, mass {least:.3f}"] = Detections.from_table(number, np.concatenate(places))
    return found


def _agreement(seen: Detections, truth: Detections) -> float:
    """Jaccard index of detections within the gate."""
    if not len(seen):
        return 0.0
    pairs = match(seen.position, truth.position, GATE, source_block=seen.frame, target_block=truth.frame)
    return len(pairs.source) / (len(seen) + len(truth) - len(pairs.source))


def _mean(values: Any) -> float:
    return round(float(np.mean(list(values))), 4)
