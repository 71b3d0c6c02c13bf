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
REPEATED = 5
"""Of each kind of correction."""
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


def corrected(window: Any, movie: Tracks) -> dict[str, object]:
    """Corrections of a movie in the form, in its order."""
    from outbid.viewers.layers import tracks_layer

    run = track(movie.detections, TrackingSettings())
    data, more, _ = tracks_layer(run.tracks, name="embryo").as_tuple()
    record = {"command": "track", "settings": run.settings.as_dict()}
    window.viewer.add_tracks(data, **more, metadata={"outbid": record})
    form = window.form("Proofread")
    start = time.process_time()
    form.run()
    settled(window, form)
    opened = time.process_time() - start
    truth = Truth(movie, form.session.tracks)
    before, seconds, changed = truth.errors(form.session.tracks), [], 0
    while changed < WANTED and len(seconds) < MOST and form.asked is not None:
        then = truth.after(form.asked.link.row)
        changed += {*then} != {*form.asked.link.successors}
        start = time.process_time()
        answer(form, then)
        settled(window, form)
        seconds.append(time.process_time() - start)
        form.press("N")
        settled(window, form)
    return {
        "order": "by doubt", "detections": len(movie.detections), "links": len(movie.links),
        "open_s": round(opened, 2), "questions": len(seconds), "corrections": changed,
        "answer_s_median": round(float(np.median(seconds)), 2), "answer_s_most": round(max(seconds), 2),
        "wrong_missing_before": before, "wrong_missing_after": truth.errors(form.session.tracks),
    }  # fmt: skip


def at_random(movie: Tracks, seed: int) -> dict[str, object]:
    """Corrections of a movie by the session that the form holds, with questions in a random order."""
    from outbid.viewers import correcting
    from outbid.viewers.proofreading import opened, question

    session = opened(track(movie.detections, TrackingSettings()).tracks, TrackingSettings())
    truth = Truth(movie, session.tracks)
    before, seconds, changed = truth.errors(session.tracks), [], 0
    seen = session.tracks.detections
    for row in np.random.default_rng(seed).permutation(np.flatnonzero(seen.frame < seen.frame[-1])).tolist():
        asked, then = question(session, row), truth.after(row)
        changed += {*then} != {*asked.link.successors}
        start = time.process_time()
        if len(then) == 2:
            session = correcting.divide(session, [row, *then]).session
        else:
            kind = "link" if then else "end"
            session = correcting.answered(session, asked, kind, *then).session
        seconds.append(time.process_time() - start)
        if changed == WANTED or len(seconds) == MOST:
            break
    return {
        "order": "at random", "seed": seed, "questions": len(seconds), "corrections": changed,
        "solved_s_median": round(float(np.median(seconds)), 2), "solved_s_most": round(max(seconds), 2),
        "wrong_missing_before": before, "wrong_missing_after": truth.errors(session.tracks),
    }  # fmt: skip


def acts(movie: Tracks, seed: int) -> dict[str, object]:
    """Seconds in which each kind of correction is solved, in a session without a window."""
    from outbid.viewers import correcting
    from outbid.viewers.proofreading import opened

    start = time.process_time()
    session = opened(track(movie.detections, TrackingSettings()).tracks, TrackingSettings())
    opening, seen, rng = time.process_time() - start, session.tracks.detections, np.random.default_rng(seed)
    links = session.tracks.links
    seconds: dict[str, list[float]] = {"cut": [], "remove": [], "add": [], "move": []}
    for row in rng.choice(links[:, 0], REPEATED, replace=False).tolist():
        frame, (z, y, x) = session.spot(row)
        beside = (frame, (z, y + float(seen.position[:, 1].std()) / 50, x))
        for name, step in {
            "cut": lambda row=row: correcting.cut(session, (row, int(links[links[:, 0] == row, 1][0]))),
            "remove": lambda row=row: correcting.remove(session, (row,)),
            "add": lambda beside=beside: correcting.add(session, beside),
            "move": lambda row=row, beside=beside: correcting.move(session, row, beside),
        }.items():
            start = time.process_time()
            step()
            seconds[name].append(time.process_time() - start)
    medians = {f"{name}_s": round(float(np.median(each)), 2) for name, each in seconds.items()}
    return {"detections": len(seen), "track_and_open_s": round(opening, 2), **medians}


def main() -> None:
    """Measure one movie by doubt and in random orders; and each kind of correction in the whole movie."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--movie", default="celegans/L1.csv")
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--random", type=int, default=2)
    parser.add_argument("--acts", action="store_true", help="only the kinds of corrections, without a window")
    given = parser.parse_args()
    if given.acts:
        print(json.dumps(acts(read_tracks(DATA / given.movie).every(given.every), 0)), flush=True)
        return
    from napari_window import Window

    os.chdir(tempfile.mkdtemp())
    os.environ["NAPARI_CONFIG"] = "settings.yaml"
    window = Window(Path("pictures"))
    movie = read_tracks(DATA / given.movie).every(given.every)
    print(json.dumps(corrected(window, movie)), flush=True)
    window.close()
    for seed in range(given.random):
        print(json.dumps(at_random(movie, seed)), flush=True)


if __name__ == "__main__":
    main()
