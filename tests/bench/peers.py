"""Outbid beside LapTrack and trackpy: accuracy on real movies, speed on frame pairs; peers_record.json.

Accuracy: the identities of a movie are removed. Each peer gets the settings of its grid that link a sibling
movie, of the same kind, best by its truth; Outbid gets no setting. Speed: frame pairs of `pair_linkers`, in
processor seconds of one core, which other work on the machine hardly changes. The movies are in OUTBID_DATA,
by default in ../shared/data beside the checkout. With 16 cores it takes some five minutes.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import metadata
from pathlib import Path

import numpy as np
from benchmarks import measure, pair_linkers
from scipy.spatial import cKDTree

from outbid import Detections, Tracks, read_tracks, score, track
from outbid.simulate.linkers import linker_named
from outbid.simulate.linkers.linker import Linker, Settings, silence
from outbid.simulate.scenes import NEAREST

HERE = Path(__file__).resolve().parent
RECORD = HERE / "peers_record.json"
DATA = Path(os.environ.get("OUTBID_DATA", HERE.parents[2] / "shared" / "data"))
MOVIES = (
    ("C. elegans embryo, nuclei", "celegans/L2.csv", "celegans/L1.csv", 3),
    ("ascidian embryo, nuclei", "ascidian/Pm07.csv", "ascidian/Pm08.csv", 3),
    ("turbulent flow, tracers", "turbulence/subcube.csv", "turbulence/tracers_2000.csv", 2),
)
"""What it shows, movie to tune on, movie to score, and every which frame is kept."""
LINKERS = ("outbid", "laptrack", "trackpy")
PAIRS = [(10_000, 0.5, 1.5), (100_000, 0.2, 0.8)]


def unit_of(detections: Detections) -> float:
    """density^(-1/3) as nearest neighbours show it."""
    frames = np.split(detections.position, detections.frame_start[1:-1])
    near = np.concatenate([cKDTree(f).query(f, 2)[0][:, 1] for f in frames if len(f) > 1])
    return float(np.median(near)) / NEAREST


def f1_of(linker: str, movie: Tracks, settings: Settings) -> float:
    """Link F1 of one run; 0 if the peer gives up."""
    seen = movie.detections
    if linker == "outbid":
        tracks = track(Detections(seen.frame, seen.position, seen.unit)).tracks
    else:
        made: Linker = linker_named(linker)
        with silence():
            tracks = Tracks(seen, made.link(seen, settings, unit_of(seen)))
    return float(score(tracks, movie, families=("links",), link_rule="edge").values["link_f1"])


def tuned(linker: str, name: str, stride: int) -> Settings:
    """The settings of the grid with the best link F1 on a movie."""
    if linker == "outbid":
        return {}
    made: Linker = linker_named(linker)
    movie = read_tracks(DATA / name).every(stride)
    return max(made.grid(gaps=False), key=lambda settings: f1_of(linker, movie, settings))


def accuracy(job: tuple[str, str, str, int, str]) -> dict[str, object]:
    """Accuracy of one linker on one movie."""
    what, tune_on, name, stride, linker = job
    settings = tuned(linker, tune_on, stride)
    movie = read_tracks(DATA / name).every(stride)
    start = time.perf_counter()
    found = f1_of(linker, movie, settings)
    return {
        "what": what, "movie": name, "every": stride, "tuned_on": None if linker == "outbid" else tune_on,
        "linker": linker, "settings": settings, "link_f1": round(found, 4),
        "seconds": round(time.perf_counter() - start, 2), "detections": len(movie.detections),
    }  # fmt: skip


def speed() -> list[dict[str, object]]:
    """Frame pairs, one linker after the other."""
    return [
        {"particles": count, "kappa": kappa, "gate": gate, "linker": name}
        | measure.in_process(pair_linkers.LINKERS[name], count, kappa, gate, limit=120)
        for count, kappa, gate in PAIRS
        for name in LINKERS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    chosen = parser.parse_args()
    jobs = [(*movie, linker) for movie in MOVIES for linker in LINKERS]
    with ProcessPoolExecutor(chosen.jobs) as pool:
        rows = [done.result() for done in as_completed([pool.submit(accuracy, job) for job in jobs])]
    order = [(movie[2], linker) for movie in MOVIES for linker in LINKERS]
    rows.sort(key=lambda row: order.index((str(row["movie"]), str(row["linker"]))))
    record = {
        **measure.stated(), "peers": {name: metadata.version(name) for name in LINKERS[1:]},
        "command": "python tests/bench/peers.py", "accuracy": rows, "speed": speed(),
    }  # fmt: skip
    chosen.record.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
