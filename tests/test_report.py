"""The report: its numbers against plain loops, and a page that is whole, safe and the same every time."""

import base64
import hashlib
import io
import re
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import defusedxml.ElementTree as ElementTree
import matplotlib as mpl
import numpy as np
import pytest
import tifffile
from commands import assert_refused, run, succeed, written
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from outbid import Detections, Tracks, measure, write_tracks
from outbid.data import sample
from outbid.particles.calibration import Calibration
from outbid.particles.reliability import sentence_on
from outbid.viewers import curves, plots
from outbid.viewers.judged import judge_links
from outbid.viewers.lineage import trees
from outbid.viewers.projections import colours, projections
from outbid.viewers.report import report, spacing_of

SPACING = (2.0, 0.5, 1.0)
NASTY = "<script>alert('$x_1$ & \"é\u4e2d')</script>"


@st.composite
def tracks_with_gaps(draw: st.DrawFn) -> Tracks:
    """A few particles, each seen in some of the frames."""
    seed, frames = draw(st.integers(0, 999)), draw(st.integers(1, 9))
    rng = np.random.default_rng(seed)
    frame, label = np.nonzero(rng.random((frames, 4)) < 0.7)
    return Tracks.from_track_ids(Detections.from_table(frame, rng.random((len(frame), 3))), label)


@pytest.fixture(scope="module")
def page(found: Tracks, truth: Tracks) -> str:
    return report(found, truth, title="walks")


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def pictures(text: str) -> list[tuple[str, bytes]]:
    found = re.findall(r'src="data:image/([a-z+]+);base64,([^"]+)"', text)
    return [(kind, base64.b64decode(content)) for kind, content in found]


# ---------------------------------------------------------------- the numbers


@pytest.mark.smoke
@given(tracks_with_gaps(), st.integers(1, 10))
def test_mean_square_displacement_is_what_a_loop_over_all_pairs_gives(tracks: Tracks, most: int) -> None:
    sums: Counter[int] = Counter()
    pairs: Counter[int] = Counter()
    seen, place = tracks.detections, tracks.detections.position * SPACING
    for i in range(len(seen)):
        for j in range(i + 1, len(seen)):
            lag = int(seen.frame[j] - seen.frame[i])
            if tracks.track_id[i] == tracks.track_id[j] and lag <= most:
                pairs[lag] += 1
                sums[lag] += ((place[j] - place[i]) ** 2).sum()
    curve = curves.mean_square_displacement(tracks, Calibration(spacing=SPACING), most)
    assert dict(zip(curve.lag.tolist(), curve.pairs.tolist(), strict=True)) == pairs
    np.testing.assert_allclose(curve.mean_square, [sums[k] / pairs[k] for k in curve.lag.tolist()])


def test_the_fit_of_the_displacement_is_that_of_outbid_measure(found: Tracks) -> None:
    curve = curves.mean_square_displacement(found)
    assert curve.fit is not None
    due = measure(replace(found, link_probability=None)).curves.to_pandas()
    due = due[due.curve == "msd_fit"].set_index("x").value
    np.testing.assert_allclose(curve.fit[:10], due[curve.lag[:10]], rtol=1e-6)
    assert curve.exponent > 1  # persistent walks


@pytest.mark.smoke
def test_accuracy_of_each_frame_is_that_of_its_links(found: Tracks, truth: Tracks) -> None:
    judged = judge_links(found, truth)
    frames, precisions, recalls = curves.accuracy_over_time(judged)
    assert frames.tolist() == list(range(29))
    for frame, precision, recall in zip(frames, precisions, recalls, strict=True):
        starts_found = found.detections.frame[found.links[:, 0]] == frame
        starts_true = truth.detections.frame[truth.links[:, 0]] == frame
        assert precision == judged.right[starts_found].mean()
        assert recall == judged.found_again[starts_true].mean()
    assert np.nanmin(precisions) < 1


def test_long_movies_are_drawn_by_groups_of_frames() -> None:
    frame = np.repeat(np.arange(1001), 2)  # 250 groups of four and one frame more
    seen = Detections.from_table(frame, np.column_stack([frame * 0, frame * 0, np.arange(2002) % 2 * 20]))
    truth = Tracks.from_track_ids(seen, np.arange(2002) % 2)
    tracks = Tracks(seen, truth.links[truth.links[:, 0] < 1000])
    frames, _, recall = curves.accuracy_over_time(judge_links(tracks, truth))
    assert len(frames) <= 300
    assert (recall[frames < 498].min(), recall[frames > 502].max()) == (1, 0)
    middle, count = curves.detections_a_frame(tracks)
    assert len(middle) <= 300
    assert set(count) == {2.0}  # the last group is of fewer frames


def test_steps_leave_out_gaps() -> None:
    seen = Detections.from_table([0, 1, 3], [[0, 0, 0], [1, 0, 0], [1, 0, 9]])
    assert curves.step_lengths(
        Tracks.from_track_ids(seen, [0, 0, 0]), Calibration(spacing=SPACING)
    ).tolist() == [2]


def test_the_worst_links_are_the_least_probable_else_of_least_margin_else_the_dearest() -> None:
    seen = Detections.from_table([0, 1, 2, 3], [[0, 0, x] for x in (0, 1, 3, 9)])
    links = np.array([[0, 1], [1, 2], [2, 3]])
    cost, margin = np.array([5.0, 9.0, 7.0]), np.array([3.0, np.nan, 1.0])
    probability = np.array([0.9, 0.1, 0.5])
    chosen = [
        curves.worst_links(Tracks(seen, links, cost, margin, probability), 2),
        curves.worst_links(Tracks(seen, links, cost, margin), 3),
        curves.worst_links(Tracks(seen, links, cost), 9),
        curves.worst_links(Tracks(seen, links), 1),
    ]
    assert [(one.measure, one.row.tolist()) for one in chosen] == [
        ("probability", [1, 2]), ("margin", [2, 0]), ("cost", [1, 2, 0]), ("speed", [2]),
    ]  # fmt: skip


# ---------------------------------------------------------------- the page


def test_the_page_is_whole_and_loads_nothing(page: str) -> None:
    read = Page(page)
    assert read.open == []
    (script,) = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{allowed}'" in page
    assert not [name for name, _ in read.attributes if name.startswith("on") or name == "href"]
    assert all((value or "").startswith("data:image/") for name, value in read.attributes if name == "src")
    assert "http://" not in page
    assert "https://" not in page


@pytest.mark.smoke
def test_the_page_states_the_scores_and_shows_every_plot(page: str) -> None:
    assert re.search(r"<span>Link F1</span><b>0\.970\d</b>", page)
    assert re.search(r"<th>link_f1</th><td>0\.970\d</td>", page)
    assert [kind for kind, _ in pictures(page)] == ["svg+xml"] * 8
    for _, content in pictures(page):
        assert ElementTree.fromstring(content).tag.endswith("svg")


def test_the_page_begins_with_the_sentence_and_ends_with_the_keys(page: str, found: Tracks) -> None:
    text = Page(page).text
    order = [sentence_on(found), "Scores against the truth", "Tracks", "Links worth a look", "All scores"]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "<details open" not in page


def test_a_movie_is_shown_around_each_doubtful_link(tmp_path: Path) -> None:
    """Positions in micrometres, voxels of half of one: each picture is red where its link starts."""
    frame, place = [0, 0, 1, 1], np.array([[0, 5, 5], [0, 20, 30], [0, 6, 5], [0, 20, 33]])
    tracks = Tracks(Detections.from_table(frame, place, unit="micrometer"), np.array([[0, 2], [1, 3]]))
    movie = np.zeros((2, 80, 80), np.uint8)
    movie[(frame, *(2 * place[:, 1:]).T)] = 200
    tif, path, out = tmp_path / "movie.tif", tmp_path / "tracks.geff", tmp_path / "page.html"
    size = {"axes": "TYX", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5}
    tifffile.imwrite(tif, movie, ome=True, metadata={**size, "PhysicalSizeXUnit": "µm"})
    write_tracks(path, tracks)
    run("report", path, "--movie", tif, "-o", out)
    text = out.read_text("utf-8")
    gallery = pictures(text)[-1][1].decode()
    crops = re.findall(r"data:image/png;base64,\s*([^\"]+)", gallery)
    assert len(crops) == 2
    for crop in crops:
        red, green, _ = (
            np.moveaxis(np.asarray(Image.open(io.BytesIO(base64.b64decode(crop)))), -1, 0)[:3] > 200
        )
        assert red.any()
        assert green.any()
        assert not (red & green).any()
    assert re.search(r"<th>track</th><th>frame</th>", text)


def test_three_projections_show_every_link_in_its_colour(found: Tracks) -> None:
    views = projections(found, Calibration(spacing=SPACING))
    assert [view.name for view in views] == ["y, x", "z, x", "z, y"]
    for view in views:
        assert sum(path.count("M") for _, path in view.lines) == len(found.links)
        assert [colour for colour, _ in view.lines] == colours()
    assert views[0].width / views[1].height == pytest.approx(
        np.ptp(found.detections.position[:, 2]) / (2 * np.ptp(found.detections.position[:, 0]))
    )
    flat = Detections.from_table([0, 1], [[0, 0, 0], [0, 1, 2]])
    assert [
        view.name for view in projections(Tracks(flat, np.array([[0, 1]])), Calibration(spacing=SPACING))
    ] == ["y, x"]


def test_a_lineage_has_a_line_for_every_track_and_division() -> None:
    seen = Detections.from_table([0, 0, 1, 1, 1, 2, 2], np.zeros((7, 3)))
    tracks = Tracks(seen, np.array([[0, 2], [0, 3], [1, 4], [2, 5], [2, 6]]))
    (tree,), families = trees(tracks)
    assert (tree.track, tree.tracks, tree.frames, families) == (0, 5, (0, 2), 1)
    assert sum(x == to_x and y != to_y for x, y, to_x, to_y in tree.lines) == 4  # forks
    assert tree.path.count("M") == len(tree.lines) == 5 + 4 + 4
    assert "Lineage trees" in report(tracks)
    assert "Lineage trees" not in report(Tracks(seen, tracks.links[:1]))


def test_starts_and_ends_leave_out_those_of_the_movie() -> None:
    seen = Detections.from_table([0, 1, 1, 2, 3], np.zeros((5, 3)))
    _, starts, ends = curves.starts_and_ends(Tracks(seen, np.array([[0, 1], [2, 3], [3, 4]])))
    assert (starts.tolist(), ends.tolist()) == ([0, 1, 0, 0], [0, 1, 0, 0])


def test_a_link_of_small_probability_is_explained_and_many_are_warned_of_at_the_top() -> None:
    seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 0, -1]])
    tracks = Tracks(seen, np.array([[0, 1]]), link_probability=np.array([0.4]))
    page = report(tracks)
    text = Page(page).text
    assert "A link below 0.5 is more likely wrong than right. It is chosen all the same" in text
    assert "1 other detection at its end is about as near." in text
    assert '<p class="warning">Warning: 60 % of the links' in page
    plain = report(Tracks(seen, tracks.links))
    assert "below 0.5" not in Page(plain).text
    assert 'class="warning"' not in plain


def test_the_same_input_gives_the_same_page_whatever_the_user_s_style(
    page: str, found: Tracks, truth: Tracks
) -> None:
    with mpl.rc_context({"font.size": 20, "lines.linewidth": 7, "axes.facecolor": "black"}):
        assert report(found, truth, title="walks") == page


def test_what_comes_from_files_cannot_become_part_of_the_page() -> None:
    seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]], unit=NASTY)
    tracks = Tracks(seen, np.array([[0, 1]]))
    record = {NASTY: {NASTY: [NASTY]}, "settings": NASTY}
    inputs = {NASTY: {"name": NASTY, "sha256": NASTY}}
    read = Page(report(tracks, tracks, title=NASTY, record=record, inputs=inputs))
    assert read.tags.count("script") == 1
    assert read.open == []
    # Title, heading, unit (twice), record (name twice, value, settings), file (what, name, sum), scores,
    # gate.
    assert read.text.count(NASTY) == 14


@pytest.mark.parametrize("unit", ["$", "\\frac", "$$", "a_b^c", "\u4e2d", "x" * 99, "\n"])
def test_any_unit_can_be_drawn(unit: str) -> None:
    with plots.style():
        drawn = plots.image(plots.speed_histogram(np.array([1.0, 2.0]), Calibration(unit)))
        assert drawn != plots.image(plots.speed_histogram(np.array([1.0, 2.0]), Calibration()))


@pytest.mark.parametrize("frames", [[], [3], [2, 2], [0, 5]])
def test_tracks_of_next_to_nothing_have_a_page(frames: list[int]) -> None:
    seen = Detections.from_table(frames, np.zeros((len(frames), 3)))
    tracks = Tracks.from_track_ids(seen, np.arange(len(frames)))
    joined = Tracks.from_track_ids(seen, [0, 0]) if frames == [0, 5] else tracks
    assert Page(report(joined, tracks)).open == []


def test_lengths_are_taken_in_the_spacing_of_the_record() -> None:
    record = {"settings": {"spacing": [3, 1, 1]}}
    seen = Detections.from_table([0, 1], [[0, 0, 0], [1, 0, 0]])
    text = report(Tracks(seen, np.array([[0, 1]])), record=record)
    assert "<th>speed</th>" in text
    assert "<td>3</td><td>No competing detection is near" in text


@pytest.mark.parametrize("recorded", [None, "wide", [1, 2], [1, 2, "3"], [1, 2, 0], [1, 2, float("nan")], {}])
def test_a_record_without_a_usable_spacing_gives_none(recorded: object) -> None:
    assert spacing_of({"settings": {"spacing": recorded}}) == (1, 1, 1)


# ---------------------------------------------------------------- the command


@pytest.fixture
def tracked(tmp_path: Path) -> Path:
    """Tracks in a file, with their run record."""
    path = tmp_path / "tracks.csv"
    succeed("track", sample("walks"), "-o", path, "--max-distance", 4)
    return path


def test_the_command_writes_record_scores_and_files(tracked: Path) -> None:
    done = run("report", tracked, sample("walks"))
    assert (done.exit_code, done.stdout) == (0, "")
    text = (tracked.parent / "tracks_report.html").read_text("utf-8")
    assert "<th>settings.max_distance</th><td>4</td>" in text
    assert re.search(r"<th>the truth</th><td>walks.csv, sha256 [0-9a-f]{64}</td>", text)
    assert str(tracked.parent) not in text
    before = (tracked.parent / "tracks_report.html").read_bytes()
    succeed("report", tracked, sample("walks"), "--overwrite")
    assert (tracked.parent / "tracks_report.html").read_bytes() == before


def test_an_output_that_is_there_or_no_page_is_refused(tracked: Path) -> None:
    there = written(tracked.parent / "there.html", "mine")
    assert_refused(run("report", tracked, "-o", there), 2, "exists")
    assert there.read_text() == "mine"
    done = run("report", tracked, "-o", tracked, "--overwrite")
    assert done.exit_code == 2
    assert "let its name end in .html" in done.stderr


def test_without_matplotlib_the_error_says_what_to_install(
    tracked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import outbid.viewers

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "outbid.viewers.plots", raising=False)
    monkeypatch.delattr(outbid.viewers, "plots", raising=False)
    assert_refused(run("report", tracked), 4, "pip install 'outbid[report]'")
    assert not (tracked.parent / "tracks_report.html").exists()
