"""HTML that notebooks show for the results of Outbid."""

import defusedxml.ElementTree as ElementTree
import numpy as np
import pytest

from outbid import AssignmentProblem, DenseCosts, Detections, Scores, Tracks, assign, track


def shown(value: object) -> dict[str, str]:
    """The table of a value, read as XML, which bad HTML is not."""
    rows = ElementTree.fromstring(value._repr_html_()).iter("tr")  # type: ignore[attr-defined]
    return {row.findtext("th"): row.findtext("td") for row in rows}


def test_tracks() -> None:
    seen = Detections.from_table([3, 4, 4, 9], [[0, 0, 0]] * 4, unit="<b>µm & $</b>")
    assert shown(Tracks(seen, np.array([[0, 1], [0, 2]]))) == {
        "detections": "4", "frames": "3 to 9", "tracks": "4", "links": "2", "divisions": "1",
        "unit": "<b>µm & $</b>",
    }  # fmt: skip


def test_no_tracks() -> None:
    none = Tracks(Detections.from_table([], []), np.empty((0, 2), np.int64))
    assert (shown(none)["frames"], shown(none)["tracks"]) == ("none", "0")


@pytest.mark.smoke
def test_tracks_are_drawn_each_link_once() -> None:
    seen = Detections.from_table([0, 1, 2, 3], [[0, 0, 0], [0, 1, 1], [0, 2, 4], [0, 9, 9]])
    tracks = Tracks(seen, np.array([[0, 1], [1, 2]]))
    (svg,) = ElementTree.fromstring(tracks._repr_html_()).iter("svg")
    assert "".join(path.get("d") for path in svg).count("M") == 2
    assert "<svg" not in Tracks(seen, np.empty((0, 2), np.int64))._repr_html_()


def test_a_picture_of_many_tracks_stays_small() -> None:
    rng = np.random.default_rng(0)
    seen = Detections.from_table(np.repeat([0, 1], 30_000), rng.random((60_000, 3)))
    links = np.column_stack([np.arange(30_000), np.arange(30_000, 60_000)])
    assert len(Tracks(seen, links)._repr_html_()) < 150_000


def test_detections() -> None:
    seen = Detections.from_table([3, 4], [[0, 0, 0], [0, 2, 5]], unit="<µm>", features={"a<b": [1, 2]})
    table = shown(seen)
    assert (table["detections"], table["x"], table["unit"], table["features"]) == (
        "2", "0 to 5", "<µm>", "a<b",
    )  # fmt: skip
    assert repr(seen) == "<Detections: 2 in 2 frames, <µm>, features a<b>"


def test_a_run_shows_its_warning_first() -> None:
    rng = np.random.default_rng(0)
    run = track([rng.random((60, 3)) for _ in range(12)])
    assert run.warning.startswith("Warning: ")
    shown_text = "".join(ElementTree.fromstring(run._repr_html_()).itertext())
    assert shown_text.startswith(run.warning)
    assert run.summary in shown_text


def test_scores_are_those_that_are_printed() -> None:
    scores = Scores({"link_f1": 0.5, "n_true_links": 12, "mota": float("nan"), "a<b": 1.0}, {})
    assert shown(scores) == dict(line.split() for line in str(scores).splitlines())
    assert shown(scores)["link_f1"] == "0.5000"


def test_assignment_shows_its_proof() -> None:
    answer = assign(AssignmentProblem(DenseCosts(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))))
    table = shown(answer)
    assert table["rows × columns"] == "3 × 3"
    assert (table["matched"], table["cost"], table["lower bound"], table["gap"]) == ("3", "5", "5", "0")
    assert table["status"] == str(answer.status)
