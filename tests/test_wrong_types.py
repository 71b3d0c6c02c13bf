"""Values of a wrong type are refused in words, by each public function: no raw error of Python."""

import inspect
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import outbid
from outbid import Detections, SettingsError, Tracks

SEEN = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
TRACKS = Tracks(SEEN, np.array([[0, 1]]))
POINTS = np.array([[0.0, 0, 0], [0, 0, 9]])
MOVIE = np.random.default_rng(0).poisson(20, (1, 16, 16))
WRONG = ["4", b"x", 3, [1, "a"], {"a": 1}, float("nan"), [None], np.array(["a", "b"]), 1j, object()]

FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "track": (outbid.track, {"detections": SEEN, "max_distance": 2.0}),
    "score": (outbid.score, {"tracks": TRACKS, "truth": TRACKS}),
    "measure": (outbid.measure, {"tracks": TRACKS}),
    "filter": (outbid.filter, {"tracks": TRACKS}),
    "read_tracks": (outbid.read_tracks, {"path": "t.csv"}),
    "read_detections": (outbid.read_detections, {"path": "t.csv"}),
    "write_tracks": (outbid.write_tracks, {"path": "w.csv", "tracks": TRACKS, "overwrite": True}),
    "write_detections": (outbid.write_detections, {"path": "w.csv", "detections": SEEN, "overwrite": True}),
    "convert": (outbid.convert, {"source": "t.csv", "output": "w.csv", "overwrite": True}),
    "match": (outbid.match, {"source": POINTS, "target": POINTS, "max_distance": 2.0}),
    "assign": (outbid.assign, {"problem": outbid.AssignmentProblem(outbid.DenseCosts(np.eye(2)))}),
    "detect": (outbid.detect, {"movie": [MOVIE], "radius": 2.0}),
    "open_images": (outbid.open_images, {"source": MOVIE}),
    "read_record": (outbid.read_record, {"path": "t.csv"}),
    "report": (outbid.report, {"tracks": TRACKS}),
    "advise": (outbid.advise, {"detections": SEEN}),
    "track_many": (outbid.track_many, {"sources": ["t.csv"], "out_dir": "o", "overwrite": True}),
    "detect_many": (outbid.detect_many, {"sources": ["m.tif"], "out_dir": "o", "overwrite": True}),
    "from_table": (Detections.from_table, {"frame": [0], "position": [[0, 0, 0]]}),
}
SETTINGS = {
    "track": [
        "max_distance",
        "max_gap",
        "spacing",
        "device",
        "cost",
        "unmatched_cost",
        "fixed",
        "periodic",
        "pins",
        "features",
    ],
    "detect": ["radius", "radius_z", "threshold", "spacing", "device", "fdr", "gain", "offset", "read_noise"],
}
CASES = [
    (name, parameter)
    for name, (function, _) in FUNCTIONS.items()
    for parameter in (*inspect.signature(function).parameters, *SETTINGS.get(name, ()))
    if parameter
    not in ("values", "progress", "overwrite", "settings", "fill_gaps", "subtract_drift", "executor", "exact")
]


def is_ours(error: Exception) -> bool:
    """Whether Outbid raised it on purpose."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return type(error).__module__.startswith("outbid") or (place.line or "").startswith(
        ("raise TypeError(", "raise ValueError(")
    )


@pytest.mark.parametrize(("name", "parameter"), CASES)
@pytest.mark.usefixtures("here")
def test_a_wrong_type_is_refused_in_words(name: str, parameter: str) -> None:
    outbid.write_tracks("t.csv", TRACKS)
    function, given = FUNCTIONS[name]
    for value in WRONG:
        raised: Exception | None = None
        try:
            function(**given | {parameter: value})
        except Exception as error:
            raised = error
        assert raised is None or is_ours(raised), (value, raised)


@pytest.mark.usefixtures("here")
def test_what_users_give() -> None:
    run = outbid.track(SEEN, columns=None, max_distance=2.0)
    with pytest.raises(SettingsError, match="max_distance is '4'"):
        outbid.track(SEEN, max_distance="4")  # type: ignore[arg-type]
    outbid.write_tracks("run.csv", run)
    assert len(outbid.read_tracks("run.csv", columns=None).links) == 2
    assert outbid.filter(run, min_length=4).track_count == 0
    assert outbid.convert("run.csv", "run.parquet") == {
        "detections": 3,
        "tracks": 1,
        "units": "positions in px, times in frames",
    }
    assert "<html" in outbid.report(run)
    assert callable(outbid.advise)
