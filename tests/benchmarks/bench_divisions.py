"""Divisions of real embryos and cultured cells: precision, recall and F1 within one frame.

Identities are removed and all settings are the defaults. Where only every k-th frame is kept, a true division
is one between successive kept frames. With ``--pieces`` movies are cut into pieces of a few frames, many of
which have few divisions; the table counts pieces and their true, found and right divisions, grouped by the
number of true divisions in a piece. With ``--missed`` this share of the detections is removed at random, and
true links span the gaps. The movies are those of `bench_real` and others in the same folder.
"""

from __future__ import annotations

from collections.abc import Iterator

import measure
import numpy as np
from bench_real import DATA

from outbid import TrackingSettings, Tracks, read_tracks, score, track

MOVIES = (
    *(f"celegans/{name}.csv" for name in ("L1", "L2", "L5")),
    *(f"ascidian/{name}.csv" for name in ("Pm05", "Pm07", "Pm08")),
    "mouse_geff/tidy.csv",
    "hela_geff/Fluo-N2DL-HeLa-01.zarr",
)
STRIDES = (1, 3, 5)
PIECES = (
    ("mouse_geff/tidy.csv", 1, 20), ("mouse_geff/tidy.csv", 1, 10), ("mouse_geff/tidy.csv", 3, 12),
    ("hela_geff/Fluo-N2DL-HeLa-01.zarr", 1, 6), ("celegans/L1.csv", 1, 10), ("celegans/L5.csv", 1, 10),
    ("ascidian/Pm08.csv", 1, 8), ("ascidian/Pm05.csv", 1, 8), ("formats/tidy_mamut_lineagetree.csv", 1, 40),
)  # fmt: skip
"""Movie, k of every k-th frame, and number of frames of a piece."""
HELD = ("none", "one", "2 to 4", "5 to 9", "more")


def found(name: str, stride: int, missed: float) -> measure.Row:
    truth = read_tracks(DATA / name).every(stride)
    truth = truth.take(np.random.default_rng(0).random(len(truth.detections)) >= missed)
    seconds, run = measure.best_of(2, lambda: track(truth.detections, TrackingSettings()))
    without, _ = measure.best_of(2, lambda: track(truth.detections, TrackingSettings(divisions=False)))
    values = score(run.tracks, truth, families=("divisions", "links")).values
    shown = ("division_f1", "division_precision", "division_recall", "n_true_divisions", "link_f1")
    return {"seconds": seconds, "without": without} | {name: values[name] for name in shown}


def pieces(name: str, stride: int, frames: int) -> Iterator[Tracks]:
    """The truth in successive pieces of `frames` frames; pieces of less than 20 detections are left out."""
    truth = read_tracks(DATA / name).every(stride)
    seen = truth.detections
    for first in range(seen.first_frame, int(seen.frame[-1]), frames * stride):
        kept = (seen.frame >= first) & (seen.frame < first + frames * stride)
        if kept.sum() >= 20:
            yield truth.take(kept)


def found_in_pieces(name: str, stride: int, frames: int) -> measure.Row:
    counts = np.zeros((len(HELD), 4), dtype=np.int64)
    for truth in pieces(name, stride, frames):
        run = track(truth.detections, TrackingSettings())
        values = score(run.tracks, truth, families=("divisions",)).values
        true, *others = (int(values[f"n_{which}_divisions"]) for which in ("true", "found", "right"))
        counts[np.searchsorted([0, 1, 4, 9], true)] += [1, true, *others]
    return {held: "/".join(map(str, row)) for held, row in zip(HELD, counts.tolist(), strict=True)}


def table_of_pieces(limit: float) -> Iterator[measure.Row]:
    for name, stride, frames in PIECES:
        row = measure.in_process(found_in_pieces, name, stride, frames, limit=limit)
        yield {"movie": name, "every": stride, "frames": frames, "shown": "pieces/true/found/right"} | row


def table(limit: float, missed: float) -> Iterator[measure.Row]:
    for stride in STRIDES:
        for name in MOVIES:
            row = measure.in_process(found, name, stride, missed, limit=limit)
            yield {"movie": name, "every": stride, "missed": missed} | row


if __name__ == "__main__":
    parser = measure.options(__doc__)
    parser.add_argument("--pieces", action="store_true", help="cut movies into pieces with few divisions")
    parser.add_argument("--missed", type=float, default=0.0, metavar="SHARE", help="detections removed")
    chosen = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"There is no folder {DATA}. Name the one with the movies: OUTBID_DATA=folder.")
    rows = table_of_pieces(chosen.limit) if chosen.pieces else table(chosen.limit, chosen.missed)
    measure.show(rows, chosen.csv)
