"""Columns that help to link: what they bring, what uninformative ones leave as it is, and what is refused."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import run, succeed
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scenes import link_f1, simulated
from scipy.stats import multivariate_normal

from outbid import Detections, InputError, SettingsError, TrackingSettings, Tracks, read_detections, score
from outbid.formats import read_record, read_tracks, write_detections
from outbid.formats.images.labels import detect_labels
from outbid.gated.linking import Links
from outbid.learned.features import features_of
from outbid.learned.inference.candidates import candidates_of
from outbid.learned.inference.decide import decide
from outbid.learned.inference.features_cpu import feature_filter, feature_ratio
from outbid.learned.learn import learn
from outbid.learned.learn.options import LearnOptions
from outbid.learned.linking import linked
from outbid.learned.model.features import FeatureModel, Features, KeptAxes, clutter_odds
from outbid.learned.prepare import read_movie
from outbid.learned.summary import Summary
from outbid.settings.columns import check_columns
from outbid.simulate.motions import BrownianWalk
from outbid.work.chunks.movie import How, track_in_chunks
from outbid.work.jobs import TrackJob

FRAMES = 12


def movie(seed: int = 0, clutter: float = 0.05) -> Tracks:
    size = {"particles": 110, "frames": FRAMES}
    return simulated(BrownianWalk(0.26), **size, noise=0.03, miss=0.05, clutter=clutter, seed=seed)


def with_features(truth: Tracks, features: Mapping[str, NDArray]) -> Tracks:
    return replace(truth, detections=replace(truth.detections, features=dict(features)))


def informative(truth: Tracks) -> dict[str, NDArray]:
    """Columns of which tracks keep something: a brightness, a label, an angle, a vector."""
    rng, of, count = np.random.default_rng(1), truth.track_id, len(truth.detections)
    many = int(of.max()) + 1
    kind = np.where(rng.random(count) < 0.07, rng.integers(0, 3, count), rng.integers(0, 3, many)[of])
    vector = rng.normal(size=(count, 4))
    vector[:, :2] = 0.8 * rng.normal(size=(many, 2))[of] + 0.6 * rng.normal(size=(count, 2))
    turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    return {
        "brightness": np.exp(0.4 * rng.normal(size=many)[of] + 0.2 * rng.normal(size=count)),
        "kind": np.array(["a", "b", "c"], dtype=object)[kind],
        "theta": (np.degrees(rng.uniform(0, np.pi, many)[of]) + 12 * rng.normal(size=count)) % 180,
        **{f"emb_{k}": column for k, column in enumerate((vector @ turn).T)},
    }


@pytest.fixture(scope="module")
def truth() -> Tracks:
    found = movie()
    return with_features(found, informative(found))


def found_in(
    truth: Tracks, column: Mapping[str, str] | str | None, workers: int = 1
) -> tuple[Summary, Links]:
    chosen = TrackingSettings(divisions=False, features=column)  # type: ignore[arg-type]
    return linked(truth.detections, chosen, workers)


@pytest.fixture(scope="module")
def alone(truth: Tracks) -> Links:
    return found_in(truth, None)[1]


@pytest.mark.parametrize(
    "column",
    [
        {"theta": "angle=180"},
        *(pytest.param({name: ""}, marks=pytest.mark.slow) for name in ("brightness", "kind", "emb_*")),
    ],
    ids=str,
)
def test_what_tracks_keep_helps(truth: Tracks, alone: Links, column: dict[str, str]) -> None:
    _, links = found_in(truth, column)
    assert link_f1(links, truth) > link_f1(alone, truth) + 0.03
    assert links.probability is not None
    right = score(Tracks(truth.detections, links.pairs), truth, families=["links"]).values["link_precision"]
    assert links.probability.mean() == pytest.approx(right, abs=0.05)


def test_what_says_nothing_changes_nothing(truth: Tracks, alone: Links) -> None:
    rng, count = np.random.default_rng(2), len(truth.detections)
    useless = np.array(["a", "b", "c"], dtype=object)[rng.integers(0, 3, count)]
    nothing = {"constant": np.ones(count), "useless": useless, "missing": np.full(count, np.nan)}
    _, links = found_in(with_features(truth, nothing), {"constant": "", "useless": "", "missing": ""})
    assert (links.pairs == alone.pairs).all()
    assert links.probability == pytest.approx(alone.probability, abs=1e-9)
    white = with_features(truth, {f"white_{k}": rng.normal(size=count) for k in range(10)})
    assert link_f1(found_in(white, {"white_*": ""})[1], truth) == pytest.approx(
        link_f1(alone, truth), abs=0.002
    )


def test_missing_values_count_for_nothing(truth: Tracks, alone: Links) -> None:
    features = dict(truth.detections.features)
    holes = np.random.default_rng(3).random(len(truth.detections)) < 0.3
    features["brightness"] = np.where(holes, np.nan, features["brightness"])
    part = link_f1(found_in(with_features(truth, features), {"brightness": ""})[1], truth)
    assert (
        link_f1(alone, truth) + 0.01 < part < link_f1(found_in(truth, {"brightness": ""})[1], truth) - 0.005
    )


def detected(seed: int = 4) -> Tracks:
    """A movie with columns of `outbid detect`, a third of it clutter, which is dim and less probable."""
    found = movie(seed, clutter=0.3)
    rng, count = np.random.default_rng(seed), len(found.detections)
    dim = (found.successors == 0) & (found.predecessors == 0)
    quality = np.where(dim, 4.0, 7.0) + 1.5 * rng.normal(size=count)
    names = {
        "quality": quality,
        "probability": 1 / (1 + np.exp(3 - quality)),
        "amplitude": 10 * np.maximum(quality, 0.1) * np.exp(0.3 * rng.normal(size=count)),
        "radius": 2 + 0.1 * rng.normal(size=count),
    }
    return with_features(found, names)


@pytest.mark.slow
def test_columns_of_detect_find_clutter_unasked() -> None:
    truth = detected()
    without, with_them = (link_f1(found_in(truth, column)[1], truth) for column in (None, "auto"))
    assert with_them > without + 0.05
    fewer = {name: of for name, of in truth.detections.features.items() if name != "quality"}
    foreign = found_in(with_features(truth, fewer), "auto")[1]  # not a table of detect
    assert (foreign.pairs == found_in(truth, None)[1].pairs).all()


def test_workers_and_the_order_of_rows_change_nothing(truth: Tracks) -> None:
    column = {"brightness": "", "kind": "", "emb_*": ""}
    one, two = (found_in(truth, column, workers)[1] for workers in (1, 2))
    assert (one.pairs == two.pairs).all()
    assert (one.probability == two.probability).all()


@pytest.mark.smoke
@given(st.integers(0, 999), st.floats(0.05, 0.97), st.floats(-0.3, 0.995))
@settings(max_examples=30, deadline=None)
def test_ratios_along_a_track_are_those_of_a_joint_normal(seed: int, kept: float, phi: float) -> None:
    """The product of the ratios by the past is the density of all values over that of each alone."""
    rng, n = np.random.default_rng(seed), 5
    value, gap = rng.normal(size=(n, 1)), np.array([1, 2, 1, 3])
    error = rng.exponential(size=(n, 1)) * rng.integers(0, 2, (n, 1))
    when = np.concatenate([[0], np.cumsum(gap)])
    joint = kept * phi ** np.abs(when[:, None] - when) + np.diag(1 - kept + error[:, 0])
    links = candidates_of(np.arange(n - 1) * n + np.arange(1, n), when)
    tail, head, lag, row_start, row_link, column_start, column_link = links
    k, a, weight = np.array([kept]), np.array([phi]), np.ones(n - 1, np.float32)
    past, future, ratio = np.zeros((n, 1, 2)), np.zeros((n, 1, 2)), np.ones((3, n - 1))
    feature_filter(np.arange(n), column_start, column_link, tail, lag, weight, value, error, k, a, past)
    feature_filter(np.arange(n)[::-1], row_start, row_link, head, lag, weight, value, error, k, a, future)
    feature_ratio(0, n - 1, (tail, head), lag, value, error, k, a, past, future, ratio)
    apart = multivariate_normal(cov=np.diag(np.diag(joint))).logpdf(value[:, 0])
    expected = multivariate_normal(cov=joint).logpdf(value[:, 0]) - apart
    assert np.log(ratio[:2]).sum(axis=1) == pytest.approx([expected] * 2, abs=1e-6)
    cut = joint.copy()  # the track without its second link
    cut[:2, 2:] = cut[2:, :2] = 0
    without = multivariate_normal(cov=cut).logpdf(value[:, 0]) - apart
    assert np.log(ratio[2, 1]) == pytest.approx(expected - without, abs=1e-6)


@given(st.integers(0, 999), st.floats(0.01, 0.6))
@settings(max_examples=20, deadline=None)
def test_odds_of_clutter_have_the_share_as_their_mean(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    features = Features(
        np.zeros((400, 0)), np.ones((400, 0), bool), rng.normal(size=(400, 3)), np.zeros((400, 0), int)
    )
    odds = clutter_odds(features, FeatureModel(rng.normal(size=3)), share)
    assert np.mean(odds / (1 + odds)) == pytest.approx(share, rel=1e-3)
    assert clutter_odds(None, None, share) == share / (1 - share)


def test_missing_scores_are_predicted_by_others() -> None:
    """Two scores that are the same but for little: one is as good as both; none says nothing."""
    spread = np.array([[1.0, 0.95], [0.95, 1.0]])
    axes = KeptAxes(spread, np.full((2, 1), 1 / np.sqrt(spread.sum())), np.array([0.8]), np.array([0.9]))
    value = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    seen = np.array([[True, True], [True, False], [False, False]])
    variate, error = axes.seen_in(Features(value, seen, np.zeros((3, 0)), np.zeros((3, 0), int)))
    assert error[:, 0] == pytest.approx([0.0, 0.0256, 1e9], rel=0.01)
    assert variate[1, 0] == pytest.approx(variate[0, 0], rel=0.05)
    assert variate[2, 0] == 0


def test_a_function_of_the_position_is_warned_of(truth: Tracks) -> None:
    place = truth.detections.position
    seen = with_features(truth, {"light": np.sin(place[:, 0] / 2), "own": place[::-1, 1].copy()}).detections
    columns = features_of(seen.features, read_movie(seen), {"light": "", "own": ""})
    assert columns is not None
    assert columns.by_place == ("light",)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"track_id": ""}, "cannot help to link"),
        ({"area": "colour"}, "Choose from: number, angle=PERIOD"),
        ({"area": "angle=0"}, "Choose from"),
        ("brightness", "'auto', None or a mapping"),
    ],
)
def test_what_is_no_column_is_refused(column: Mapping[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check_columns(column)


def test_columns_that_are_not_there_or_of_another_kind_are_refused() -> None:
    features = {"area": np.arange(100.0), "kind": np.array(["a", "b"] * 50, dtype=object)}
    seen = Detections.from_table(
        np.arange(100) // 50, np.random.default_rng(0).random((100, 2)), features=features
    )
    for column, message in (
        ({"aera": ""}, "Did you mean 'area'"),
        ({"area": "label"}, "100 labels, more than 64"),
        ({"kind": "number"}, "holds no numbers"),
    ):
        with pytest.raises(SettingsError, match=message):
            features_of(seen.features, read_movie(seen), column)
    with pytest.raises(SettingsError, match="features has no effect with max_distance"):
        TrackingSettings(max_distance=3.0, features={"area": ""})


def test_the_command_learns_from_columns_and_repeats_it(truth: Tracks, tmp_path: Path) -> None:
    place = truth.detections.position
    features = {**truth.detections.features, "light": np.sin(place[:, 0] / 2), "white": place[::-1, 0] % 0.01}
    seen = with_features(truth, features).detections
    spots = tmp_path / "cells.csv"
    write_detections(spots, seen)
    names = "brightness", "kind:label", "white", "light"
    given = [word for name in names for word in ("--features", name)]
    first = succeed("track", spots, "-o", tmp_path / "a.csv", *given, "--no-divisions", "-v")
    assert "nearly the same for neighbours: light" in first.stderr
    record = read_record(tmp_path / "a.csv")
    said = record["learned"]["columns"]
    assert 0.4 < said["links"]["brightness"] < 1.2
    assert 0.6 < said["links"]["kind"] < 1.6
    assert said["links"]["white"] == 0
    assert record["settings"]["features"] == {"brightness": "", "kind": "label", "white": "", "light": ""}
    line = next(line for line in first.stderr.splitlines() if line.startswith("Columns:"))
    assert f"brightness {said['links']['brightness']:.2g}" in line
    assert "nothing" in line
    run("track", spots, "-o", tmp_path / "b.csv", "--config", tmp_path / "a.csv.json")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_no_columns_are_no_columns(tmp_path: Path) -> None:
    """A table of `outbid detect` without its columns is linked by positions alone, to the same bytes."""
    truth = detected()
    spots, bare = tmp_path / "spots.csv", tmp_path / "bare.csv"
    write_detections(spots, truth.detections)
    write_detections(bare, replace(truth.detections, features={}))
    run("track", spots, "-o", tmp_path / "a.csv", "--no-features", "--no-divisions")
    run("track", bare, "-o", tmp_path / "b.csv", "--no-divisions")
    a, b = (read_tracks(tmp_path / name) for name in ("a.csv", "b.csv"))
    assert (a.links == b.links).all()
    assert (a.measures["link_probability"] == b.measures["link_probability"]).all()
    record = read_record(tmp_path / "a.csv")
    assert record["settings"]["no_features"] is True
    assert "columns" not in record["learned"]
    both = run("track", spots, "-o", tmp_path / "c.csv", "--no-features", "--features", "radius")
    assert both.exit_code == 2
    gated = run("track", spots, "-o", tmp_path / "c.csv", "--max-distance", 1, "--features", "radius")
    assert "--features has no effect with --max-distance" in gated.output


def test_large_movies_use_what_their_sample_says(truth: Tracks) -> None:
    reading = read_movie(truth.detections)
    columns = features_of(truth.detections.features, reading, {"brightness": "", "kind": "", "emb_*": ""})
    assert columns is not None
    found = []
    for features, workers in ((None, 1), (columns.features, 1), (columns.features, 2)):
        options = LearnOptions(sample=500, workers=workers)
        learned = learn(reading.position, reading.frame_start, options, features=features)
        assert learned.sample is not None
        found.append(decide(learned.posterior.candidates, learned.posterior.probability))
    alone, one, two = (replace(links, pairs=reading.order[links.pairs]) for links in found)
    assert link_f1(one, truth) > link_f1(alone, truth) + 0.1
    assert (one.probability == two.probability).all()


@pytest.mark.slow
def test_ranges_and_their_frames_use_columns(truth: Tracks, tmp_path: Path) -> None:
    """Four times the movie, one after another, in ranges of about two of them."""
    one, times = truth.detections, 4
    frame = np.concatenate([one.frame + k * FRAMES for k in range(times)])
    features = {name: np.tile(of, times) for name, of in one.features.items()}
    shift = np.repeat(np.arange(times), len(one))[:, None] % 2 * 3.0
    source = tmp_path / "long.parquet"
    write_detections(
        source, Detections.from_table(frame, np.tile(one.position, (times, 1)) + shift, features=features)
    )
    scores = []
    for column in (None, {"brightness": "", "kind": "", "emb_*": ""}):
        job = TrackJob(TrackingSettings(divisions=False, features=column))
        track_in_chunks(source, tmp_path / "out.parquet", job, How(rows=2000, overwrite=True))
        pairs = read_tracks(tmp_path / "out.parquet").links
        inside = pairs[(pairs // len(one) == 1).all(axis=1)] - len(one)
        scores.append(score(Tracks(one, inside), truth, families=["links"]).values["link_f1"])
    assert scores[1] > scores[0] + 0.1


@pytest.mark.slow
def test_columns_that_are_too_good_leave_probabilities_finite(real_data: Path) -> None:
    """Coordinates by another name: ratios without a cap made weights of rivals infinite, with divisions."""
    seen = read_tracks(real_data / "hela_geff" / "Fluo-N2DL-HeLa-01.zarr").detections
    copied = replace(seen, features={"a": seen.position[:, 1].copy(), "b": seen.position[:, 2].copy()})
    _, links = linked(copied, TrackingSettings(features={"a": "", "b": ""}))
    assert links.probability is not None
    assert np.isfinite(links.probability).all()
    assert len(links.pairs) > 8000


@pytest.mark.smoke
def test_elongation_and_angle_are_those_of_an_ellipse() -> None:
    y, x = np.mgrid[:80, :80] - 40.0
    turn = np.radians(30)
    along, across = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    seen = detect_labels([((along / 30) ** 2 + (across / 10) ** 2 <= 1).astype(int)[None] * 5])
    assert seen.features["elongation"] == pytest.approx([3.0], rel=0.01)
    assert seen.features["angle"] == pytest.approx([30.0], abs=0.5)


@pytest.mark.smoke
@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 3)])
def test_lists_of_a_table_are_a_vector(kind: pa.DataType, tmp_path: Path) -> None:
    # pyarrow before 26 writes or reads no null among lists of one length.
    none = kind != pa.list_(pa.float64(), 3) or int(pa.__version__.partition(".")[0]) >= 26
    values = [[1, 2, 3], None if none else [np.nan] * 3, [4, 5, 6.5]]
    rows = {"frame": [0, 0, 1], "y": [1.0, 5, 1], "x": [1.0, 5, 1]}
    table = pa.table(rows | {"emb": pa.array(values, kind)})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    found = read_detections(tmp_path / "a.parquet").features
    assert [*found] == ["emb_0", "emb_1", "emb_2"]
    np.testing.assert_array_equal(found["emb_2"], [3, np.nan, 6.5])
    uneven = pa.table(rows | {"emb": [[1.0], [2.0, 3.0], []]})
    pa.parquet.write_table(uneven, tmp_path / "b.parquet")
    with pytest.raises(InputError, match="column emb has lists of 0 to 2 numbers"):
        read_detections(tmp_path / "b.parquet")
