"""One count of tracks: all commands, the table and the report state the same number."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import succeed

import outbid
from outbid import Detections, Tracks, write_tracks
from outbid.viewers.report import report


@pytest.fixture
def tracks(here: Path) -> Tracks:
    """Three tracks of 6, 4 and 2 detections and two single detections, in tracks.csv and truth.csv."""
    assert here
    frame, number = np.array([(t, k) for k, length in enumerate((6, 4, 2, 1, 1)) for t in range(length)]).T
    order = np.argsort(frame, kind="stable")
    frame, number = frame[order], number[order]
    seen = Detections.from_table(frame, np.column_stack([0 * frame, 20 * number, frame + 0.25 * number]))
    made = Tracks.from_track_ids(seen, number)
    for name in ("tracks.csv", "truth.csv"):
        write_tracks(name, made)
    return made


COUNTED: dict[str, Callable[[], str]] = {
    "track": lambda: succeed("track", "tracks.csv", "-o", "o.csv", "--max-distance", 3).stderr,
    "filter": lambda: succeed("filter", "tracks.csv", "-o", "o.csv").stderr,
    "convert": lambda: succeed("convert", "tracks.csv", "o.parquet").stderr,
    "measure": lambda: succeed("measure", "tracks.csv", "-o", "o.csv").stderr,
    "report": lambda: succeed("report", "tracks.csv", "-o", "o.html").stderr,
    "page": lambda: re.sub("<[^>]*>", " ", report("tracks.csv")),
}


@pytest.mark.parametrize("door", COUNTED)
@pytest.mark.usefixtures("tracks")
def test_every_door_counts_the_same_tracks(door: str) -> None:
    assert set(re.findall(r"([\d,]+) (?:of 5 )?tracks?\b", COUNTED[door]().replace("  ", " "))) == {"5"}


def test_python_and_json_count_the_same(tracks: Tracks) -> None:
    run = outbid.track(tracks.detections, max_distance=3)
    assert (run.stats["tracks"], run.tracks.track_count, tracks.track_count) == (5, 5, 5)
    assert str(run.tracks).startswith("<Tracks: 5 tracks, 2 of them single detections, from 14 detections")
    done = succeed("track", "tracks.csv", "-o", "o.csv", "--max-distance", 3, "--json")
    assert json.loads(done.stdout)["tracks"] == 5
    assert len(outbid.measure(tracks).tracks) == 5


def test_the_page_has_one_median_length(tracks: Tracks) -> None:
    page = report(tracks)
    assert "median track length 2 detections" in page
    assert np.median(np.bincount(tracks.track_id)) == 2
