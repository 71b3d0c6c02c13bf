"""Ten corrections of an embryo in the window of Proofread: seconds each, errors before and after, by order.

``.ci/on_a_screen python tests/bench/benchmarks/bench_correct.py``; figures are CPU seconds of all
threads. The form is driven by its keys and its selection, as a person drives it; the truth answers.
An answer is a correction if it changes a link of the detection in question, others confirm it.
*By doubt* answers what the form asks,
*at random* asks about detections in an order of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from outbid import TrackingSettings, Tracks, read_tracks, track

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
WANTED = 10
MOST = 150
"""Guard: questions of an order that meets fewer errors."""


class Truth:
    """The true links between the detections of a form."""

    def __init__(self, truth: Tracks, tracks: Tracks) -> None:
        order = [np.lexsort((*one.detections.position.T, one.detections.frame)) for one in (truth, tracks)]
        row = np.empty(len(order[0]), np.int64)
        row[order[0]] = order[1]
        self.links = row[truth.links]

    def after(self, row: int) -> list[int]:
        """Rows of the true successors."""
        return self.links[self.links[:, 0] == row, 1].tolist()

    def errors(self, tracks: Tracks) -> tuple[int, int]:
        """Wrong links, and missing ones."""
        true, found = ({*map(tuple, links.tolist())} for links in (self.links, tracks.links))
        return len(found - true), len(true - found)


def settled(window: Any, form: Any) -> None:
    """Wait until all is solved and drawn."""
    window.wait(lambda: form.is_idle and not form.drawing.isActive())


def answer(form: Any, then: list[int]) -> None:
    """Answer the question by a key, or by the selection where the answer is not among the alternatives."""
    row = form.asked.link.row
    ways = [to for to, _ in form.asked.link.alternatives if to >= 0][:4]
    if not then:
        form.press("0")
    elif len(then) == 1 and then[0] in ways:
        form.press(str(ways.index(then[0]) + 1))
    else:
        form.select(row)
        for other in then[:2]:
            form.select(other, more=True)
        form.press("L" if len(then) == 1 else "V")


def corrected(window: Any, movie: Tracks, order: str, seed: int) -> dict[str, object]:
    """Corrections of a movie in a fresh form."""
    from outbid.viewers.layers import tracks_layer

    run = track(movie.detections, TrackingSettings())
    data, more, _ = tracks_layer(run.tracks, name=f"embryo {order} {seed}").as_tuple()
    record = {"command": "track", "settings": run.settings.as_dict()}
    window.viewer.add_tracks(data, **more, metadata={"outbid": record})
    form = window.form("Proofread")
    start = time.process_time()
    form.run()
    settled(window, form)
    opened = time.process_time() - start
    truth = Truth(movie, form.session.tracks)
    before, seconds, changed, questions = truth.errors(form.session.tracks), [], 0, 0
    rows = iter(np.random.default_rng(seed).permutation(len(movie.detections)).tolist())
    last = int(movie.detections.frame[-1])
    while changed < WANTED and questions < MOST and form.asked is not None:
        if order == "at random":
            form.ask(next(row for row in rows if movie.detections.frame[row] < last))
            settled(window, form)
        then = truth.after(form.asked.link.row)
        wrong = {*then} != {*form.asked.link.successors}
        start = time.process_time()
        answer(form, then)
        settled(window, form)
        seconds.append(time.process_time() - start)
        questions, changed = questions + 1, changed + wrong
        if order == "by doubt":
            form.press("N")
            settled(window, form)
    after = truth.errors(form.session.tracks)
    window.clear()
    return {
        "order": order, "seed": seed, "detections": len(movie.detections), "links": len(movie.links),
        "open_s": round(opened, 2), "questions": questions, "corrections": changed,
        "answer_s_median": round(float(np.median(seconds)), 2), "answer_s_most": round(max(seconds), 2),
        "wrong_missing_before": before, "wrong_missing_after": after,
    }  # fmt: skip


def main() -> None:
    """Measure one movie by doubt and in random orders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--movie", default="celegans/L1.csv")
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--random", type=int, default=2)
    given = parser.parse_args()
    from napari_window import Window

    os.chdir(tempfile.mkdtemp())
    os.environ["NAPARI_CONFIG"] = "settings.yaml"
    window = Window(Path("pictures"))
    movie = read_tracks(DATA / given.movie).every(given.every)
    for order, seed in [("by doubt", 0), *(("at random", seed) for seed in range(given.random))]:
        print(json.dumps(corrected(window, movie, order, seed)), flush=True)
    window.close()


if __name__ == "__main__":
    main()
