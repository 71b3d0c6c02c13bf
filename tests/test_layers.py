"""Layers for napari: rows, graph and features, checked without napari."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbid import Detections, SettingsError, Tracks, score
from outbid.particles.calibration import Calibration
from outbid.viewers.judged import judge_links
from outbid.viewers.layers import Layer, error_layers, points_layer, tracks_layer


@st.composite
def random_tracks(draw: st.DrawFn) -> Tracks:
    """Detections of a few frames with any links between them that run forward."""
    frame = np.sort(draw(st.lists(st.integers(0, 4), min_size=1, max_size=12)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    seen = Detections.from_table(frame, rng.random((len(frame), 3)))
    pairs = np.argwhere(seen.frame[:, None] < seen.frame[None, :])
    links = pairs[rng.random(len(pairs)) < draw(st.sampled_from([0.05, 0.2, 0.5]))].astype(np.int64)
    cost = np.where(rng.random(len(links)) < 0.2, np.nan, rng.random(len(links)))
    return Tracks(seen, links, cost, rng.random(len(links)), None)


def drawn_links(layer: Layer) -> set[tuple[tuple[float, ...], tuple[float, ...]]]:
    """The lines that napari draws: from row to row of a track, and along the graph."""
    rows = {}
    for row in layer.data:
        rows.setdefault(int(row[0]), []).append(tuple(row[1:]))
    lines = {(a, b) for track in rows.values() for a, b in zip(track, track[1:], strict=False)}
    joined = {(rows[p][-1], rows[child][0]) for child, parents in layer.graph.items() for p in parents}
    return lines | joined


def links_of(tracks: Tracks) -> set[tuple[tuple[float, ...], tuple[float, ...]]]:
    rows = np.column_stack([tracks.detections.frame, tracks.detections.position])
    return {(tuple(rows[source]), tuple(rows[target])) for source, target in tracks.links}


# ---------------------------------------------------------------- tracks and points


@pytest.mark.smoke
@given(random_tracks())
def test_napari_draws_each_link_once_and_nothing_else(tracks: Tracks) -> None:
    assert drawn_links(tracks_layer(tracks)) == links_of(tracks)


@pytest.mark.smoke
@given(random_tracks())
def test_rows_are_sorted_ids_compact_and_features_finite(tracks: Tracks) -> None:
    layer = tracks_layer(tracks)
    ids = layer.data[:, 0]
    assert np.array_equal(np.unique(ids), np.arange(tracks.track_count))
    assert np.array_equal(np.lexsort((layer.data[:, 1], ids)), np.arange(len(ids)))
    assert {"speed", "track_length", "link_cost", "link_margin", "confidence"} == set(layer.features)
    for values in layer.features.values():
        assert values.shape == (len(layer.data),)
        assert np.isfinite(values).all()


@pytest.mark.smoke
def test_what_a_link_has_stands_where_it_ends() -> None:
    seen = Detections.from_table([0, 0, 1, 2], [[0, 0, 0], [0, 9, 9], [0, 0, 1], [2, 0, 1]])
    tracks = Tracks(seen, np.array([[0, 2], [2, 3]]), np.array([1.0, 7.0]), None, np.array([0.9, 0.5]))
    layer = tracks_layer(tracks, calibration=Calibration(spacing=(5, 1, 1)))
    # Rows: the track of detections 0, 2 and 3, then detection 1, which has no link.
    assert layer.features["link_cost"].tolist() == [1, 1, 7, 1]
    assert layer.features["link_probability"].tolist() == [0.9, 0.9, 0.5, 0.5]
    assert layer.features["speed"].tolist() == [1, 1, 10, 1]
    assert layer.features["track_length"].tolist() == [3, 3, 3, 1]
    assert layer.features["confidence"].tolist() == [0.9, 0.9, 0.5, 0.5]
    assert layer.color_by == "confidence"


@pytest.mark.parametrize(("unit", "shown"), [("micrometer", "micrometer"), ("stone's throw", "pixel")])
def test_a_unit_that_napari_does_not_know_stands_as_pixel(unit: str, shown: str) -> None:
    seen = Detections.from_table([0], [[0, 0, 0]], unit=unit)
    assert points_layer(seen).as_tuple()[1]["units"] == ("pixel", shown, shown, shown)


# ---------------------------------------------------------------- errors


@pytest.mark.smoke
def test_a_layer_without_z_keeps_the_scale_of_each_axis() -> None:
    seen = Detections.from_table([3, 4], [[1, 2], [3, 4]])
    flat = points_layer(seen, calibration=Calibration(spacing=(5.0, 0.5, 0.25))).in_plane()
    assert flat.scale == (1, 0.5, 0.25)
    assert flat.data.tolist() == [[3.0, 1.0, 2.0], [4.0, 3.0, 4.0]]


def test_error_layers_hold_what_the_scores_count(found: Tracks, truth: Tracks) -> None:
    values = score(found, truth, families=("links",)).values
    judged = judge_links(found, truth)
    true, false, missed, errors = error_layers(judged)
    correct = values["n_correct_links"]
    assert 0 < correct < values["n_predicted_links"]
    assert len(drawn_links(true)) == correct
    assert len(drawn_links(false)) == values["n_predicted_links"] - correct
    assert len(drawn_links(missed)) == values["n_true_links"] - correct
    assert drawn_links(missed) == links_of(truth) - links_of(found)
    assert np.bincount(errors.features["kind"] == "missed").tolist() == [
        len(drawn_links(false)), len(drawn_links(missed)),
    ]  # fmt: skip
    assert (np.diff(errors.data[:, 0]) >= 0).all()
    assert len({layer.colour for layer in (true, false, missed, errors)}) == 4


@pytest.mark.smoke
@given(random_tracks(), st.integers(0, 99))
def test_judged_links_sum_up_to_the_scores_also_where_tracks_divide(truth: Tracks, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kept = rng.random(len(truth.links)) < 0.7
    # Links from the last frames' detections to nowhere in the truth would need others: move their ends.
    ends = rng.permutation(len(truth.detections))
    wrong = np.column_stack([np.arange(len(ends)), ends])
    forward = truth.detections.frame[wrong[:, 0]] < truth.detections.frame[wrong[:, 1]]
    tracks = Tracks(truth.detections, np.unique(np.concatenate([truth.links[kept], wrong[forward]]), axis=0))
    judged, values = judge_links(tracks, truth), score(tracks, truth, families=("links",)).values
    assert (judged.right & judged.found_counts).sum() == values["n_correct_links"]
    assert (judged.found_again & judged.true_counts).sum() == values["n_correct_links"]
    assert judged.found_counts.sum() == values["n_predicted_links"]
    assert judged.true_counts.sum() == values["n_true_links"]


def test_unpaired_detections_have_no_right_links() -> None:
    seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]])
    far = Detections.from_table([0, 1], [[0, 50, 0], [0, 50, 1]])
    links = np.array([[0, 1]])
    judged = judge_links(Tracks(seen, links), Tracks(far, links))
    assert (judged.right.tolist(), judged.found_again.tolist()) == ([False], [False])


def test_nothing_gives_empty_layers() -> None:
    none = Tracks(Detections.from_table([], []), np.empty((0, 2), np.int64))
    layers = [tracks_layer(none), points_layer(none.detections), *error_layers(judge_links(none, none))]
    assert [layer.data.shape for layer in layers] == [(0, 5), (0, 4), (0, 5), (0, 5), (0, 5), (0, 4)]


@pytest.mark.parametrize("gate", [0.0, -3.0, np.inf, np.nan])
def test_a_gate_without_sense_is_refused(gate: float) -> None:
    none = Tracks(Detections.from_table([], np.empty((0, 3))), np.empty((0, 2), np.int64))
    with pytest.raises(SettingsError, match="The gate is"):
        judge_links(none, none, gate)


def test_links_of_divisions_have_the_colour_of_the_others() -> None:
    """A graph is drawn in white; links of a false division are tracks of their own instead."""
    seen = Detections.from_table([0, 1, 1, 2], [[0, 0, 0], [0, 0, 3], [0, 4, 0], [0, 4, 9]])
    found = Tracks(seen, np.array([[0, 1], [0, 2], [2, 3]]))
    (true, false, missed, errors) = error_layers(judge_links(found, Tracks(seen, np.array([[0, 1]]))))
    assert [layer.graph for layer in (true, false, missed)] == [{}, {}, {}]
    assert drawn_links(false) == {((0, 0, 0, 0), (1, 0, 4, 0)), ((1, 0, 4, 0), (2, 0, 4, 9))}
    both = error_layers(judge_links(found, Tracks(seen, np.array([[2, 3]]))))[1]
    assert both.graph == {}
    assert drawn_links(both) == {((0, 0, 0, 0), (1, 0, 0, 3)), ((0, 0, 0, 0), (1, 0, 4, 0))}
    numbers = both.data[:, 0]
    assert np.unique(numbers).tolist() == list(range(int(numbers.max()) + 1))
    assert {len(values) for values in both.features.values()} == {len(both.data)}
    assert len(errors.data) == 2
