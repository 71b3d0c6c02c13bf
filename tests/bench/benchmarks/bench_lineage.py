"""The lineage of many tracks in its window: frames a second as one zooms in and out, a click, memory.

``.ci/on_a_screen python tests/bench/benchmarks/bench_lineage.py`` on one thread; figures are CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from typing import Any

import measure
import numpy as np

from outbid import Detections, Tracks
from outbid.viewers.forest import forest_of

LENGTH, FRAMES = 20, 200
SIZE = (1200, 800)


def many(count: int, seed: int = 0) -> Tracks:
    """So many tracks of 20 detections, of which every tenth has a mother."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.integers(0, FRAMES - LENGTH, count))
    frame = (start[:, None] + np.arange(LENGTH)).ravel()
    seen = Detections.from_table(
        frame, rng.uniform(0, 1000, (len(frame), 3)), features={"row": np.arange(len(frame))}
    )
    place = np.empty(len(frame), np.int64)
    place[seen.features["row"]] = np.arange(len(frame))
    rows = place.reshape(count, LENGTH)
    daughter = rng.choice(count, count // 10, replace=False)
    mother = np.searchsorted(start, start[daughter] - LENGTH)
    fits = start[mother] + LENGTH <= start[daughter]
    ends = np.column_stack([rows[mother, -1], rows[daughter, 0]])[fits]
    pairs = np.concatenate([np.column_stack([rows[:, :-1].ravel(), rows[:, 1:].ravel()]), ends])
    pairs = np.unique(pairs, axis=0)
    return Tracks(seen, pairs, link_probability=rng.beta(20, 1, len(pairs)))


def drawn(plot: Any, frames: int = 60) -> list[float]:
    """CPU seconds of each frame from all tracks to twenty of them."""
    from qtpy.QtWidgets import QApplication

    wide, taken = plot.forest.width, []
    for k in range(frames):
        span = wide * (20 / wide) ** (k / (frames - 1))
        left = (wide - span) * 0.5
        start = time.process_time()
        plot.plot.setRange(xRange=(left, left + span), padding=0)
        plot.draw()
        plot.plot.viewport().repaint()
        QApplication.processEvents()
        taken.append(time.process_time() - start)
    return taken


def main() -> None:
    """Measure one count of tracks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tracks", type=int, default=100_000)
    parser.add_argument("--picture")
    given = parser.parse_args()
    from qtpy.QtWidgets import QApplication

    from outbid.viewers.forms.forest_plot import ForestPlot

    app = QApplication([])
    tracks = many(given.tracks)
    forest_of(tracks)  # compiles
    fresh = replace(tracks)
    before, start = measure.peak_gb(), time.process_time()
    forest = forest_of(fresh)
    laid_out = time.process_time() - start
    plot = ForestPlot()
    plot.resize(*SIZE)
    plot.show()
    value = np.ones(len(tracks.detections))
    value[tracks.links[:, 1]] = tracks.link_probability
    start = time.process_time()
    plot.hold(forest, np.arange(tracks.track_count), value)
    app.processEvents()
    first = time.process_time() - start
    drawn(plot, 5)
    seconds = np.array(drawn(plot))
    rows: list[int] = []
    plot.chosen.connect(lambda row, _more: rows.append(row))
    place = plot.forest.place_of([int(forest.rows_of(int(forest.across[forest.width // 2]))[3])])[0]
    from qtpy.QtCore import QPointF

    start = time.process_time()
    plot.click(plot.plot.plotItem.vb.mapViewToScene(QPointF(*place)))
    plot.select(rows)
    plot.plot.viewport().repaint()
    app.processEvents()
    clicked = time.process_time() - start
    assert rows, "the click selected nothing"
    if given.picture:
        plot.fit()
        app.processEvents()
        plot.grab().save(given.picture)
    print(
        json.dumps({
            "tracks": tracks.track_count, "links": len(tracks.links), "lay_out_s": round(laid_out, 3),
            "first_s": round(first, 3), "frame_ms_median": round(1e3 * float(np.median(seconds)), 1),
            "frame_ms_most": round(1e3 * float(seconds.max()), 1),
            "frames_a_second": round(1 / float(np.median(seconds)), 1),
            "least_frames_a_second": round(1 / float(seconds.max()), 1),
            "click_s": round(clicked, 4), "memory_gb": round(measure.peak_gb() - before, 2),
        })
    )  # fmt: skip


if __name__ == "__main__":
    main()
