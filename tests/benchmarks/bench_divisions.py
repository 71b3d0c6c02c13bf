"""Divisions of real embryos, identities removed and no option set: precision, recall and F1 within one frame.

At every k-th frame a true division is one from a frame to the next that is left. The movies are found as in
`bench_real`.
"""

from __future__ import annotations

from collections.abc import Iterator

import measure
from bench_real import DATA, every

from outbid.tracker import TrackingSettings, read_tracks, score, track

MOVIES = (
    *(f"celegans/{name}.csv" for name in ("L1", "L2", "L5")),
    *(f"ascidian/{name}.csv" for name in ("Pm05", "Pm07", "Pm08")),
)
STRIDES = (1, 3, 5)


def found(name: str, stride: int) -> measure.Row:
    truth = every(read_tracks(DATA / name), stride)
    seconds, run = measure.best_of(2, lambda: track(truth.detections, TrackingSettings()))
    without, _ = measure.best_of(2, lambda: track(truth.detections, TrackingSettings(divisions=False)))
    values = score(run.tracks, truth, families=("divisions", "links")).values
    shown = ("division_f1", "division_precision", "division_recall", "n_true_divisions", "link_f1")
    return {"seconds": seconds, "without": without} | {name: values[name] for name in shown}


def table(limit: float) -> Iterator[measure.Row]:
    for stride in STRIDES:
        for name in MOVIES:
            yield {"movie": name, "every": stride} | measure.in_process(found, name, stride, limit=limit)


if __name__ == "__main__":
    chosen = measure.options(__doc__).parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"There is no folder {DATA}. Name the one with the movies: OUTBID_DATA=folder.")
    measure.show(table(chosen.limit), chosen.csv)
