"""What columns bring: ``python -m accuracy.columns [grid] [kinds] [recorded]`` in tests/bench/.

grid: the whole way on movies of the second renderer of `detection_accuracy` (brightness differs by a factor
e^.4 between particles and e^.2 within, light is uneven), detected with nothing set, linked without and with
the columns of `outbid detect`, with the least quality that gives the best links by the truth, and by laptrack
with log amplitude as one more coordinate, each of its scores at the gate, weight and gap that are best by the
truth. kinds: walks with columns of every kind. recorded: real tracks with columns, every few frames.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import measure
from detection_accuracy import cells
from detection_accuracy.cells import Cell
from detection_accuracy.movies import Movie, brightness, rendered, walked
from numpy.typing import NDArray

from outbid import Detections, DetectionSettings, Tracks, detect, read_tracks, score, track
from outbid.edit.fill_gaps import with_gaps_filled
from outbid.formats.images.labels import detect_labels
from outbid.formats.images.opening import open_images
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import BrownianWalk
from outbid.simulate.walks import WalkSettings, walk

from .run import about

KAPPAS, SNRS, DIMENSIONS = (0.07, 0.14, 0.24), (3.0, 4.0, 7.0), (2, 3)
SHAPES, PARTICLES = {2: (1, 160, 160), 3: (16, 96, 96)}, {2: 100, 3: 150}
FRAMES, TURNOVER, WITHIN, GATE = 20, 0.02, 0.2, 5.0
QUALITIES = (0.0, 4.0, 5.0, 6.0, 8.0)  # least quality, of which the truth chooses
GATES = (3.0, 4.5, 6.0)  # of laptrack, in steps
WEIGHTS = (0.0, 1.0, 2.0, 3.0, 4.0)  # of laptrack, in steps a unit of log amplitude
GAPS = (1, 2, 3)  # of laptrack, most frames from one detection of a track to the next: 1 closes no gap
RECORD = Path(__file__).with_name("columns.json")
DATA = Path(__file__).parents[4] / "shared" / "data"
MASKS = "formats/ctc_hela_01_RES"
Row = dict[str, Any]


def filmed(dimensions: int, kappa: float, snr: float, seed: int) -> tuple[list[NDArray], Tracks, Cell]:
    """Frames (Z, Y, X), true tracks in pixels of the plane, and the cell of the detection grid."""
    movie = Movie(dimensions, PARTICLES[dimensions], snr, SHAPES[dimensions])
    truth = walked(movie, kappa * movie.cell.spacing, FRAMES, seed)
    rng = np.random.default_rng([seed, dimensions, int(1000 * kappa), int(snr)])
    bright = brightness(truth.track_id, rng)
    left = np.exp(WITHIN * rng.standard_normal(len(bright)))
    return rendered(movie, truth, bright * left, rng), truth, movie.cell


def scored(found: Tracks, truth: Tracks) -> Row:
    """Scores of links, identities and particles; filled: of links after gaps are filled."""
    values = score(
        found, truth, gate=GATE, families=("links", "identity", "particles"), link_rule="edge"
    ).values
    filled = score(with_gaps_filled(found), truth, gate=GATE, families=["links"], link_rule="edge").values[
        "link_f1"
    ]
    made = {name: values[name] for name in ("link_f1", "idf1", "jsc_theta")} | {"filled": filled}
    return {name: round(float(value), 4) for name, value in made.items()}


def whole_way(dimensions: int, kappa: float, snr: float, seed: int) -> Row:
    """Scores of each way to link one movie."""
    images, truth, cell = filmed(dimensions, kappa, snr, seed)
    seen, _ = detect(images, DetectionSettings(spacing=cell.voxel), workers=1)
    row: Row = {"detections": len(seen)}
    row["columns"] = scored(track(seen, workers=1, divisions=False).tracks, truth)
    row["alone"] = scored(track(seen, workers=1, divisions=False, features=None).tracks, truth)
    above = [row["alone"]]
    for least in QUALITIES[1:]:
        kept = seen.features["quality"] >= least
        if 0 < kept.sum() < len(seen):
            some = Detections(seen.frame[kept], seen.position[kept], seen.unit)
            above.append(scored(track(some, workers=1, divisions=False).tracks, truth))
    row["threshold"] = max(above, key=lambda one: one["link_f1"])
    peers = [scored(Tracks(seen, links), truth) for links in _laptrack(seen, kappa * cell.spacing)]
    return row | ({"laptrack": {name: max(one[name] for one in peers) for name in peers[0]}} if peers else {})


def _laptrack(seen: Detections, step: float) -> Iterator[NDArray[np.int64]]:
    """Links with each gate, weight and gap; none if it is not installed."""
    try:
        import laptrack
    except ImportError:
        return
    brightness = np.log(np.maximum(seen.features["amplitude"], 1e-9))[:, None]
    first = seen.frame_start
    for gate, weight, gap in product(GATES, WEIGHTS, GAPS):
        cutoff = (gate * step) ** 2
        tracker = laptrack.LapTrack(
            cutoff=cutoff, track_start_cost=1.05 * cutoff, track_end_cost=1.05 * cutoff,
            gap_closing_cutoff=cutoff, gap_closing_max_frame_count=gap,
        )  # fmt: skip
        places = np.column_stack([seen.position, weight * step * brightness])
        edges = tracker.predict([places[a:b] for a, b in zip(first[:-1], first[1:], strict=True)]).edges
        links = [(first[t] + i, first[u] + j) for (t, i), (u, j) in edges]
        yield np.array(sorted(links), dtype=np.int64).reshape(-1, 2)


def columned(kappa: float, seed: int) -> Tracks:
    """A 3D walk with clutter, and columns of every kind."""
    box = (250 ** (1 / 3),) * 3
    steps = WalkSettings(BrownianWalk(kappa), 250, FRAMES, box, "reflect", TURNOVER, TURNOVER, seed=seed)
    truth = observe(walk(steps), Microscope((0.03,) * 3, 0.05, 0.05), box=box, seed=seed)
    rng, of, count = np.random.default_rng([seed, 7]), truth.track_id, len(truth.detections)
    many, three = int(of.max()) + 1, np.array(["a", "b", "c"], dtype=object)
    kind = np.where(rng.random(count) < 0.07, rng.integers(0, 3, count), rng.integers(0, 3, many)[of])
    vector = rng.normal(size=(count, 16))
    vector[:, :4] = 0.8 * rng.normal(size=(many, 4))[of] + 0.6 * rng.normal(size=(count, 4))
    vector = vector @ np.linalg.qr(rng.normal(size=(16, 16)))[0]
    features: dict[str, NDArray] = {
        "brightness": np.exp(cells.BRIGHTNESS * rng.normal(size=many)[of] + WITHIN * rng.normal(size=count)),
        "constant": np.ones(count),
        "type": three[kind],
        "useless": three[rng.integers(0, 3, count)],
        "theta": (np.degrees(rng.uniform(0, np.pi, many)[of]) + 12 * rng.normal(size=count)) % 180,
        **{f"white_{k}": rng.normal(size=count) for k in range(10)},
        **{f"emb_{k}": one for k, one in enumerate(vector.T)},
    }
    return replace(truth, detections=replace(truth.detections, features=features))


KINDS: dict[str, Mapping[str, str] | None] = {
    "alone": None, "ten white": {"white_*": ""}, "constant": {"constant": ""},
    "brightness": {"brightness": ""},
    "brightness, ten white": {"brightness": "", "white_*": ""}, "label": {"type": ""},
    "useless label": {"useless": ""}, "angle": {"theta": "angle=180"}, "embedding": {"emb_*": ""},
    "all": dict.fromkeys(("brightness", "constant", "type", "useless", "white_*", "emb_*"), "")
    | {"theta": "angle=180"},
}  # fmt: skip


def kinds(kappa: float, seed: int) -> Row:
    """Link F1 and overconfidence (stated less true precision) by each kind of column."""
    truth = columned(kappa, seed)
    row: Row = {}
    for name, column in KINDS.items():
        found = track(truth.detections, workers=1, divisions=False, features=column).tracks
        values = score(found, truth, families=["links"], link_rule="edge").values
        assert found.link_probability is not None
        over = float(found.link_probability.mean()) - values["link_precision"]
        row[name] = {"link_f1": round(values["link_f1"], 4), "over": round(over, 4)}
    return row


def recorded(name: str, every: int) -> Row:
    """Real tracks, every so many frames, with their own columns and without."""
    whole = read_tracks(DATA / {"fly": "drosophila_nuclei/tracks.csv", "hela": MASKS}[name])
    seen = whole.detections
    if name == "hela":
        kinds = {"size": "", "elongation": "", "angle": "angle=180"}
        features: Mapping[str, NDArray] = _shapes(seen)
    else:
        kinds, features = {"intensity": ""}, {"intensity": _intensity(seen)}
    truth = replace(whole, detections=replace(seen, features=features)).every(every)
    row: Row = {"columns of": list(features)}
    for how, column in (("alone", None), ("columns", kinds)):
        found = track(truth.detections, workers=1, features=column)
        row[how] = round(
            score(found.tracks, truth, families=["links"], link_rule="edge").values["link_f1"], 4
        )
    return row | {"bits": found.learned.as_dict()["columns"] if found.learned else None}


def _shapes(seen: Detections) -> dict[str, NDArray]:
    """Size, elongation and angle of the masks of the cells."""
    found = detect_labels(open_images(DATA / MASKS).frames())
    places = zip(found.frame.tolist(), *found.position.T.tolist(), strict=True)
    at = {place: k for k, place in enumerate(places)}
    rows = [at[place] for place in zip(seen.frame.tolist(), *seen.position.T.tolist(), strict=True)]
    return {name: found.features[name][rows].astype(float) for name in ("size", "elongation", "angle")}


def _intensity(seen: Detections) -> NDArray[np.float64]:
    """Mean grey value of 3 x 3 x 3 voxels about each nucleus."""
    images = open_images(DATA / "drosophila_nuclei" / "tif").frames()
    found = np.full(len(seen), np.nan)
    for frame, image in enumerate(images):
        rows = np.flatnonzero(seen.frame == frame)
        at = np.clip(np.rint(seen.position[rows]).astype(int), 1, np.array(image.shape) - 2)
        found[rows] = [image[z - 1 : z + 2, y - 1 : y + 2, x - 1 : x + 2].mean() for z, y, x in at]
    return found


def cases(seeds: int) -> list[tuple[str, list[Any]]]:
    """What is measured: the part of the record and its case; recorded movies as far as they are here."""
    grid = [[*c, seed] for c in product(DIMENSIONS[::-1], KAPPAS, SNRS) for seed in range(seeds)]
    walked = [[kappa, seed] for seed in range(seeds) for kappa in (0.14, 0.24)]
    real = [["fly", 1], ["fly", 2], ["hela", 1], ["hela", 12], ["hela", 16]] if DATA.exists() else []
    return [*product(["grid"], grid), *product(["kinds"], walked), *product(["recorded"], real)]


def row_of(part: str, case: list[Any]) -> tuple[str, Row]:
    """A row of the record, with the part where it belongs."""
    make: Callable[..., Row] = {"grid": whole_way, "kinds": kinds, "recorded": recorded}[part]
    return part, {"case": case} | make(*case)


def renew(parts: Sequence[str], seeds: int, jobs: int, record: Path) -> None:
    """Measure what the record lacks; it is written after every movie."""
    made = json.loads(record.read_text("utf-8")) if record.exists() else {"about": about("columns")}
    known = [[part, row["case"]] for part in parts for row in made.setdefault(part, [])]
    lacking = [case for case in cases(seeds) if case[0] in parts and [*case] not in known]
    compiled = [row_of(*case) for case in lacking[:1]]  # the kernels, once for all processes
    with measure.processes(jobs) as pool:
        later = [pool.submit(row_of, *case) for case in lacking[1:]]
        for part, row in chain(compiled, (each.result() for each in as_completed(later))):
            made[part] = sorted([*made[part], row], key=lambda each: each["case"])
            print(part, row, flush=True)
            record.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="accuracy.columns", description=__doc__)
    parser.add_argument("parts", nargs="*", default=["grid", "kinds", "recorded"])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="movies side by side")
    parser.add_argument("--record", type=Path, default=RECORD)
    given = parser.parse_args()
    renew(given.parts, given.seeds, given.jobs, given.record)


if __name__ == "__main__":
    main()
