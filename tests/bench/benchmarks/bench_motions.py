"""D, exponent, persistence and speed by motion: bias and coverage of intervals, beside trackpy.

Movies in the plane, 100 particles over 30 frames, steps of 1 along each axis, localisation error .3, lengths
in pixels and times in frames. Each motion is sampled exactly here, without the simulator. `true tracks` have
the true links; `tracked` ones are linked by `outbid.track` with nothing set, at κ = .15 and 3 % missed
detections. `held` is the share of movies whose interval holds the true value: one and 1.96 standard errors,
and for the persistence time its stated limits. trackpy's D and exponent are those of its tutorial, a power
law through `emsd` of the same tracks; it states no errors. The speed is compared with that of the true
positions.
`--record` writes tests/bench/motions_record.json, from which docs/tables.py makes its table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import measure
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import toeplitz

import outbid
from outbid import Detections, Tracks

RECORD = Path(__file__).resolve().parents[1] / "motions_record.json"
TRACKS, FRAMES, NOISE, KAPPA, MISSED = 100, 30, 0.3, 0.15, 0.03
EXPONENT, PERSISTENCE, CONFINEMENT = 0.6, 3.0, 3.0
LAGS = 10
"""Of trackpy's curve."""

Places = NDArray[np.float64]


def gaussian(displacement: Callable[[Places], Places], rng: np.random.Generator) -> Places:
    """Paths (T, F, 2) with Gaussian steps of this mean square displacement, by the covariance of steps."""
    mean = displacement(np.arange(FRAMES + 1, dtype=np.float64))
    row = np.concatenate([[mean[1]], np.diff(mean, 2) / 2])[: FRAMES - 1] / mean[1]
    factor = np.linalg.cholesky(toeplitz(row))
    step = np.einsum("ij,tja->tia", factor, rng.normal(size=(TRACKS, FRAMES - 1, 2)))
    return np.concatenate([np.zeros((TRACKS, 1, 2)), np.cumsum(step, axis=1)], axis=1)


def walk(time: Places) -> Places:
    """Of Fürth's walk."""
    return time + PERSISTENCE * np.expm1(-time / PERSISTENCE)


def cage(time: Places) -> Places:
    """Of Ornstein and Uhlenbeck's motion around a place."""
    return -CONFINEMENT * np.expm1(-time / CONFINEMENT)


def d_of(displacement: Callable[[Places], Places]) -> float:
    """D for steps of 1 along each axis, of the time at which the displacement grows as t."""
    return float(0.5 / displacement(np.ones(1))[0])


MOTIONS: dict[str, tuple[Callable[[Places], Places], dict[str, float]]] = {
    "diffusion": (lambda time: time, {"diffusion": 0.5, "exponent": 1.0, "persistence": 0.0}),
    "anomalous": (lambda time: time**EXPONENT, {"exponent": EXPONENT}),
    "persistent": (walk, {"diffusion": d_of(walk), "persistence": PERSISTENCE}),
    "confined": (cage, {"diffusion": d_of(cage)}),
}
"""Mean square displacement of each motion, and its true values."""


def movie(name: str, seed: int) -> tuple[Tracks, float]:
    """True tracks of a motion in a field of density κ², and the mean speed of the true positions."""
    rng = np.random.default_rng(seed)
    place = gaussian(MOTIONS[name][0], rng) + rng.uniform(0, np.sqrt(TRACKS) / KAPPA, (TRACKS, 1, 2))
    speed = float(np.linalg.norm(np.diff(place, axis=1), axis=2).mean())
    place += rng.normal(0, NOISE, place.shape)
    kept = rng.random(place.shape[:2]) >= MISSED
    number, frame = np.nonzero(kept)
    seen = Detections.from_table(frame, place[kept])
    return Tracks.from_track_ids(seen, number[np.argsort(frame, kind="stable")]), speed


def of_trackpy(tracks: Tracks) -> dict[str, float]:
    """D and exponent by trackpy's tutorial."""
    import pandas as pd
    import trackpy

    trackpy.quiet()
    y, x = tracks.detections.position[:, 1:].T
    frame = tracks.detections.frame
    table = pd.DataFrame({"frame": frame, "particle": tracks.track_id, "y": y, "x": x})
    curve = trackpy.emsd(table, 1.0, 1.0, max_lagtime=LAGS)
    found = trackpy.utils.fit_powerlaw(curve, plot=False)
    return {"diffusion": float(found["A"].iloc[0]) / 4, "exponent": float(found["n"].iloc[0])}


def held(group: dict[str, float], name: str, column: str, error: float, true: float) -> tuple[bool, bool]:
    """Whether the 68 % and the 95 % interval hold the true value."""
    if name == "persistence":
        ends = [group[f"persistence_{end}_{level}_frame"] for level in (68, 95) for end in ("low", "high")]
        low, high, lowest, highest = (np.inf if end is None else end for end in ends)
        return low <= true <= high, lowest <= true <= highest
    apart = abs(group[column] - true) / error
    return apart <= 1, apart <= 1.96


def cases(name: str, way: str, seeds: range) -> Iterator[dict[str, object]]:
    """A row for each quantity of a motion."""
    values: dict[str, list[tuple[float, bool, bool, float]]] = {}
    chosen = 0
    for seed in seeds:
        tracks, speed = movie(name, seed)
        if way == "tracked":
            tracks = outbid.track(tracks.detections).tracks
        group = outbid.measure(tracks, seed=seed).groups.to_pylist()[0]
        peer = of_trackpy(tracks)
        chosen += group["motion"] == name
        for quantity, true in {**MOTIONS[name][1], "speed_mean": speed}.items():
            column = next(one for one in group if one.startswith(quantity))
            error = next(group[one] for one in group if one.startswith(f"{quantity}_error"))
            if group[column] is not None:
                inside = held(group, quantity, column, error or np.nan, true)
                apart = group[column] - true, peer.get(quantity, np.nan) - true
                values.setdefault(quantity, []).append((apart[0], *inside, apart[1]))
    for quantity, rows in values.items():
        apart, one, two, peer_apart = np.array(rows, np.float64).T
        yield {
            "motion": name, "way": way, "quantity": quantity, "movies": len(rows), "chosen": chosen,
            "true": MOTIONS[name][1].get(quantity, speed), "bias": float(apart.mean()),
            "scatter": float(apart.std(ddof=1)), "held_68": float(one.mean()), "held_95": float(two.mean()),
            "trackpy_bias": None if np.isnan(peer_apart).any() else float(peer_apart.mean()),
        }  # fmt: skip


def main() -> None:
    """Measure, print, and perhaps record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(50, 20), metavar=("TRUE", "TRACKED"))
    parser.add_argument("--record", type=Path, nargs="?", const=RECORD)
    given = parser.parse_args()
    rows: list[dict[str, object]] = []
    stated = measure.stated()  # of the code that runs, whatever is edited meanwhile
    for way, many in zip(("true tracks", "tracked"), given.seeds, strict=True):
        for name in MOTIONS:
            found = list(cases(name, way, range(5000, 5000 + many)))
            rows += found
            measure.show(found)
            if given.record:  # as far as it is, for a run may be ended
                measure.write_rows(given.record, stated, rows)


if __name__ == "__main__":
    main()
