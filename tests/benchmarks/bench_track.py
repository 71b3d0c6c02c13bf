"""The tracker as a whole: five frames, births and deaths 5 %, persistent walk, against SciPy and trackpy.

Lengths are in units of density^(-1/3); the mean nearest-neighbour distance is .5540 of these. The gates are
.2216, .5540, .8863 and 1.108, which are .4, 1.0, 1.6 and 2.0 nearest-neighbour distances. The walk has
persistence .5 and step .7035 (1.27 nearest-neighbour distances); the mean displacement is .465 (.84). Both
were chosen by a scan: with them, links at the gate 1.108 have the recall and precision .715/.701 if the
unmatched cost is half of the gate, which is Outbid's default, and .685/.658 if it is the full gate, which is
usual elsewhere. `cost` is the sum of link costs and unmatched costs; all exact linkers must reach the same
value. Simulation and compilation are not timed. Each case runs in its own process; `peak_gb` is the peak
memory of this process, detections included.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import measure
import numpy as np
import peers

from outbid import Detections, TrackingSettings, Tracks, track
from outbid.simulate.motions import PersistentWalk
from outbid.simulate.walks import WalkSettings, walk

NEAREST = 0.55396
"""Mean nearest-neighbour distance in units of density^(-1/3)."""
STEP = 1.27 * NEAREST
"""In units of density^(-1/3): .7035."""
GATES = tuple(distance * NEAREST for distance in (0.4, 1.0, 1.6, 2.0))
"""In units of density^(-1/3): .2216, .5540, .8863, 1.108."""


def simulate(folder: Path, count: int) -> measure.Row:
    side = count ** (1 / 3)
    motion = PersistentWalk(step=STEP, persistence=0.5)
    box = (side, side, side)
    truth = walk(WalkSettings(motion, count, 5, box, "reflect", birth_rate=0.05, death_rate=0.05, seed=0))
    for name, values in (
        ("frame", truth.detections.frame),
        ("position", truth.detections.position),
        ("links", truth.links),
    ):
        np.save(folder / f"{name}.npy", values)
    return {"detections": len(truth.detections), "links": len(truth.links)}


def stored(folder: Path) -> Detections:
    return Detections(np.load(folder / "frame.npy"), np.load(folder / "position.npy"))


def total_cost(detections: Detections, links: np.ndarray, unmatched: float) -> float:
    """Lengths of the links, plus unmatched costs of detections not linked to the next or previous frame."""
    length = np.linalg.norm(detections.position[links[:, 1]] - detections.position[links[:, 0]], axis=1)
    ends = len(detections.position[detections.rows_of(detections.first_frame)])
    ends += len(detections.position[detections.rows_of(int(detections.frame[-1]))])
    return float(length.sum()) + unmatched * (2 * len(detections) - ends - 2 * len(links))


def result(folder: Path, seconds: float, links: np.ndarray, unmatched: float) -> measure.Row:
    detections, truth = stored(folder), np.load(folder / "links.npy")
    size = len(detections)
    right = len(np.intersect1d(truth @ [size, 1], links @ [size, 1]))
    return {
        "seconds": seconds,
        "links": len(links),
        "cost": f"{total_cost(detections, links, unmatched):.3f}",
        "recall": round(right / len(truth), 4),
        "precision": round(right / len(links), 4),
    }


def outbid(folder: Path, gate: float, unmatched: float) -> measure.Row:
    detections = stored(folder)
    settings = TrackingSettings(max_distance=gate, unmatched_cost=unmatched)
    track(detections.take(np.arange(len(detections)) % 1000 == 0), settings)  # compiles
    seconds, run = measure.best_of(3, lambda: track(detections, settings))
    links = run.tracks.links
    peak = {"peak_gb": measure.peak_gb()}
    return result(folder, seconds, links, unmatched) | {"gap": run.stats["worst_gap"]} | peak


def scipy_groups(folder: Path, gate: float, unmatched: float) -> measure.Row:
    detections = stored(folder)
    start = time.perf_counter()
    found = []
    for first, second in pairwise(range(detections.first_frame, detections.frame_count)):
        a, b = detections.rows_of(first), detections.rows_of(second)
        rows, cols, _ = peers.scipy_in_groups(detections.position[a], detections.position[b], gate, unmatched)
        found.append(np.column_stack([rows + a.start, cols + b.start]))
    seconds = time.perf_counter() - start
    peak = {"peak_gb": measure.peak_gb()}
    return result(folder, seconds, np.concatenate(found), unmatched) | peak


def trackpy_adaptive(folder: Path, gate: float, unmatched: float) -> measure.Row:
    """Squared distances and the full gate as unmatched cost are trackpy's own: no cost to compare."""
    import pandas as pd
    import trackpy

    trackpy.quiet()
    detections = stored(folder)
    table = pd.DataFrame(detections.position, columns=["z", "y", "x"]).assign(frame=detections.frame)
    start = time.perf_counter()
    linked = trackpy.link(
        table, gate, pos_columns=["z", "y", "x"], adaptive_stop=0.1 * gate, adaptive_step=0.9
    )
    seconds = time.perf_counter() - start
    tracks = Tracks.from_track_ids(detections, linked["particle"].to_numpy())
    return result(folder, seconds, tracks.links, unmatched)


def table(limit: float, who: list[str], most: int) -> Iterator[measure.Row]:
    linkers = {"outbid": outbid, "scipy": scipy_groups, "trackpy": trackpy_adaptive}
    for count, gates in ((100_000, GATES), (1_000_000, GATES[:2])):
        if count > most:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            yield {"n": count, "who": "simulated"} | measure.in_process(simulate, folder, count, limit=limit)
            # The usual unmatched cost, the full gate, makes the hardest problem: the last case.
            for gate, share in [(gate, 0.5) for gate in gates] + [(GATES[-1], 1.0)] * (count == 100_000):
                unmatched = "half gate" if share == 0.5 else "full gate"
                case = {"n": count, "gate": float(f"{gate:.4g}"), "unmatched": unmatched}
                for linker in who:
                    row = measure.in_process(linkers[linker], folder, gate, share * gate, limit=limit)
                    yield case | {"who": linker} | row


if __name__ == "__main__":
    parser = measure.options(__doc__)
    parser.add_argument("--who", nargs="+", default=["outbid", "scipy"], help="outbid, scipy, trackpy")
    parser.add_argument("--most", type=int, default=1_000_000, help="leave out scenes of more particles")
    chosen = parser.parse_args()
    measure.show(table(chosen.limit, chosen.who, chosen.most), chosen.csv)
