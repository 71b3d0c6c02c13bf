"""What notebooks show of tracks, scores and assignments."""

import defusedxml.ElementTree as ElementTree
import numpy as np

from outbid import AssignmentProblem, DenseCosts, Detections, Scores, Tracks, assign


def shown(value: object) -> dict[str, str]:
    """The table of a value, read as XML, which bad HTML is not."""
    rows = ElementTree.fromstring(value._repr_html_()).findall("tr")  # type: ignore[attr-defined]
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
