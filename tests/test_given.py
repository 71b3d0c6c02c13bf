"""Detections and tracks in whatever form users have them."""

import logging
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import outbid
from outbid import Detections, DetectionSettings, InputError, SettingsError, TrackingSettings, Tracks
from outbid.data import sample
from outbid.settings.keywords import DetectionValues, TrackingValues

FRAME = [0, 0, 1, 1]
PLACE = np.array([[0, 0, 0], [0, 9, 9], [0, 9, 8], [0, 0, 1]], float)
COLUMNS = {"frame": FRAME, "z": PLACE[:, 0], "y": PLACE[:, 1], "x": PLACE[:, 2]}
SEEN = Detections.from_table(FRAME, PLACE)
LABEL = [0, 1, 1, 0]


def pandas_frame() -> object:
    return pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas").DataFrame(
        COLUMNS
    )


def polars_frame() -> object:
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars")
    return polars.DataFrame(COLUMNS)


FORMS = {
    "detections": lambda: SEEN, "tracks": lambda: Tracks.from_track_ids(SEEN, LABEL),
    "run": lambda: outbid.track(SEEN, max_distance=3.0), "dict": lambda: COLUMNS,
    "arrow": lambda: pa.table(COLUMNS), "array": lambda: np.column_stack([FRAME, PLACE]),
    "array in a plane": lambda: np.column_stack([FRAME, PLACE[:, 1:]]).tolist(),
    "a frame each": lambda: [PLACE[:2], PLACE[2:]], "pandas": pandas_frame, "polars": polars_frame,
    "structured": lambda: np.rec.fromarrays(list(COLUMNS.values()), names=list(COLUMNS)),
    "as trackpy leaves it": lambda: pandas_frame().set_index("frame", drop=False),  # the index, too
    "pandas index": lambda: pandas_frame().set_index("frame"),
}  # fmt: skip


@pytest.mark.smoke
@pytest.mark.parametrize("form", FORMS)
def test_detections_in_any_form_are_linked_alike(form: str) -> None:
    run = outbid.track(FORMS[form](), max_distance=3.0)
    assert run.tracks.track_id.tolist() == LABEL
    assert run.tracks.detections.position.tolist() == PLACE.tolist()


def test_a_path_and_named_columns(tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text("when,a,b\n0,0,0\n1,0,1\n")
    columns = {"frame": "when", "y": "a", "x": "b"}
    for given in (file, str(file), {"when": [0, 1], "a": [0, 0], "b": [0, 1]}):
        assert outbid.track(given, max_distance=3.0, columns=columns).tracks.links.tolist() == [[0, 1]]


def test_tracks_in_any_form_are_scored_alike(tmp_path: Path) -> None:
    truth = Tracks.from_track_ids(SEEN, LABEL)
    columns = {"track_id": LABEL, **COLUMNS}
    outbid.write_tracks(tmp_path / "truth.csv", truth)
    array = np.column_stack([LABEL, FRAME, PLACE])
    for given in (columns, pa.table(columns), array, np.delete(array, 2, axis=1), tmp_path / "truth.csv"):
        assert outbid.score(given, truth, gate=1.0)["link_f1"] == 1
        assert outbid.score(truth, given, gate=1.0)["link_f1"] == 1


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (5, TypeError, "detections is of type int"),
        (None, TypeError, "detections is of type NoneType"),
        (np.zeros((3, 7)), InputError, "shape (3, 7)"),
        ({"frame": [0, 1], "x": [1, np.nan], "y": [1, 2]}, InputError, "detections, row 1: x is nan"),
        ({"frame": [0, 0.5], "x": [1, 2], "y": [1, 2]}, InputError, "detections, row 1: frame is 0.5"),
        ({"frame": [0, 1]}, InputError, "No column for y"),
        ("nowhere.csv", InputError, "nowhere.csv"),
    ],
)
def test_what_holds_no_detections_is_refused_by_name(given: object, error: type, said: str) -> None:
    with pytest.raises(error) as refused:
        outbid.track(given)
    assert said in str(refused.value)


def test_scores_name_the_argument_that_is_wrong() -> None:
    with pytest.raises(TypeError, match="truth is of type float"):
        outbid.score(Tracks.from_track_ids(SEEN, LABEL), 0.5)
    with pytest.raises(TypeError, match=r"states no tracks\. Give what track\(\) returns"):
        outbid.score(SEEN, SEEN)
    with pytest.raises(InputError, match="tracks holds no tracks"):
        outbid.score(COLUMNS, Tracks.from_track_ids(SEEN, LABEL))


# ---------------------------------------------------------------- settings by keyword


def test_the_keywords_are_the_fields_of_the_settings() -> None:
    for values, settings in ((TrackingValues, TrackingSettings), (DetectionValues, DetectionSettings)):
        assert list(values.__annotations__) == [field.name for field in fields(settings)]


def test_keywords_replace_fields_of_the_settings_object() -> None:
    run = outbid.track(SEEN, TrackingSettings(max_distance=3.0, max_gap=1), max_gap=2)
    assert (run.settings.max_distance, run.settings.max_gap) == (3.0, 2)


def test_keywords_are_checked() -> None:
    with pytest.raises(TypeError, match=r"no setting 'max_distanse'\. Did you mean 'max_distance'"):
        outbid.track(SEEN, max_distanse=3.0)
    with pytest.raises(SettingsError, match="max_distance is -1"):
        outbid.track(SEEN, max_distance=-1)


# ---------------------------------------------------------------- what comes back


def test_frames_of_data_go_round() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    seen = Detections.from_table(FRAME, PLACE, unit="micrometer", features={"mass": [1.5, 2, 3, 4]})
    run = outbid.track(seen)
    frame = run.to_dataframe()
    assert frame.columns.tolist() == [
        "track_id", "frame", "z", "y", "x", "mass", "link_cost", "link_margin", "link_probability",
    ]  # fmt: skip
    assert frame["track_id"].tolist() == run.tracks.track_id.tolist()
    again = outbid.track(frame)
    assert again.tracks.links.tolist() == run.tracks.links.tolist()
    assert again.tracks.detections.features["mass"].tolist() == [1.5, 2, 3, 4]
    assert outbid.track(seen.to_arrow()).tracks.detections.unit == "micrometer"


def test_scores_as_a_row() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    scores = outbid.score(sample("walks"), sample("walks"), families=["links"])
    assert scores.to_dataframe().iloc[0].to_dict() == scores.values
    assert repr(scores).startswith("<Scores: link_precision 1.0000")


def test_a_run_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "outbid")
    run = outbid.track(SEEN, max_distance=3.0)
    assert [(record.name, record.message) for record in caplog.records] == [("outbid", run.summary)]
