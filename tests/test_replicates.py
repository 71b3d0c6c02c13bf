"""Conditions of several movies: a movie is the unit of replication, in Python and from the shell."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import assert_refused, run, succeed

import outbid
from outbid import SettingsError, Tracks
from outbid.measuring.groups import Estimate
from outbid.measuring.replicates import compared, over_movies

from .test_measuring_statistics import moving

COUNT, FRAMES = 12, 10


def movie(seed: int, step: float = 1.0) -> Tracks:
    """A few diffusing particles."""
    rng = np.random.default_rng(seed)
    return moving(rng.normal(0, step, (COUNT, FRAMES - 1, 2)), 0.2, rng)


@pytest.fixture(scope="module")
def conditions() -> dict[str, list[Tracks]]:
    """Two conditions of three movies; the steps of the second one are half as long."""
    return {
        "control": [movie(seed, 1 + 0.1 * seed) for seed in range(3)],
        "drug": [movie(seed + 3, 0.5 + 0.1 * seed) for seed in range(3)],
    }


@pytest.fixture(scope="module")
def found(conditions: dict[str, list[Tracks]]) -> outbid.Measures:
    return outbid.measure(conditions)


@pytest.mark.smoke
def test_a_condition_has_the_mean_of_its_movies(found: outbid.Measures) -> None:
    groups, movies = found.groups.to_pandas().set_index("group"), found.movies.to_pandas()
    assert groups.movies.tolist() == [3, 3]
    assert groups.tracks.tolist() == [3 * COUNT, 3 * COUNT]
    for name in ("speed_mean_px_per_frame", "diffusion_px2_per_frame"):
        each = movies.groupby("group")[name]
        assert groups[name].tolist() == pytest.approx(each.mean().tolist())
        error = groups[name.replace("_px", "_error_px", 1)]
        assert error.tolist() == pytest.approx((each.std(ddof=1) / np.sqrt(3)).tolist())
    table = found.to_dataframe()
    assert table.groupby(["group", "movie"]).size().tolist() == [COUNT] * 6


def test_a_column_of_conditions_states_the_same(
    conditions: dict[str, list[Tracks]], found: outbid.Measures, tmp_path: Path
) -> None:
    """In one table with a column of movies, from Python and from the shell."""
    parts = []
    for name, movies in conditions.items():
        for number, one in enumerate(movies):
            rows = one.to_dataframe().assign(condition=name, movie=f"{name} {number}")
            parts.append(rows.assign(track_id=rows.track_id + 100 * len(parts)))
    table = pd.concat(parts)
    by_column = outbid.measure(table)
    for sheet in ("groups", "movies"):
        one, other = (getattr(each, sheet).to_pandas() for each in (found, by_column))
        for column in ("group", "tracks", "speed_mean_px_per_frame"):
            pd.testing.assert_series_equal(one[column], other[column])
    assert by_column.movies["movie"].to_pylist()[:2] == ["control 0", "control 1"]
    assert by_column.comparison.to_pandas().movies.eq(3).all()
    table.to_csv(tmp_path / "all.csv", index=False)
    succeed("measure", tmp_path / "all.csv", "-o", tmp_path / "t.csv", "--movies", tmp_path / "m.csv")
    assert pd.read_csv(tmp_path / "m.csv").group.tolist() == ["control"] * 3 + ["drug"] * 3


@pytest.mark.smoke
def test_conditions_are_compared_by_the_means_of_their_movies(found: outbid.Measures) -> None:
    from scipy.stats import ttest_ind

    movies = found.movies.to_pandas()
    control, drug = (
        movies[movies.group == name].speed_mean_px_per_frame.to_numpy() for name in ("control", "drug")
    )
    row = found.comparison.to_pandas().set_index("quantity").loc["speed_mean"]
    assert row.p == pytest.approx(ttest_ind(control, drug, equal_var=False).pvalue)
    assert (row.movies, row.other_movies) == (3, 3)
    assert row.low_95 < row.difference < row.high_95 < 0
    assert np.isnan(row.p_of_tracks)


def test_tracks_of_one_movie_are_no_replicates(conditions: dict[str, list[Tracks]]) -> None:
    found = outbid.measure({name: movies[0] for name, movies in conditions.items()})
    row = found.comparison.to_pandas().set_index("quantity").loc["speed_mean"]
    assert np.isnan(row.p)
    assert row.p_of_tracks < 0.05
    assert row.test == "bootstrap over tracks"


def test_between_movies_is_what_their_own_errors_do_not_explain(found: outbid.Measures) -> None:
    group = found.groups.to_pandas().set_index("group").loc["control"]
    each = found.movies.to_pandas().query("group == 'control'")
    within = np.sqrt(np.square(each.speed_mean_error_px_per_frame).mean())
    assert group.speed_mean_within_movies_px_per_frame == pytest.approx(within)
    variance = each.speed_mean_px_per_frame.var(ddof=1) - within**2
    assert group.speed_mean_between_movies_px_per_frame == pytest.approx(np.sqrt(max(variance, 0)))


def test_of_a_thousand_null_experiments_a_twentieth_is_significant() -> None:
    """Five movies of either condition, which scatter twice as much between as within: 5 ± 1.5 %."""
    rng, hits = np.random.default_rng(11), 0
    none = np.full(10, np.nan)
    for _ in range(1000):
        groups = {}
        for name in ("a", "b"):
            values = rng.normal(1, 0.2, 5) + rng.normal(0, 0.1, 5)
            movies = [Estimate(value, 0.1, np.nan, none) for value in values]
            groups[name] = {"speed": over_movies(movies, Estimate(1.0, 0.05, np.nan, none))}
        hits += compared(groups)["p"][0] < 0.05
    assert 35 <= hits <= 65


def test_conditions_from_the_shell(conditions: dict[str, list[Tracks]], tmp_path: Path) -> None:
    words = []
    for name, movies in conditions.items():
        (tmp_path / name).mkdir()
        for number, tracks in enumerate(movies):
            outbid.write_tracks(tmp_path / name / f"{number}.csv", tracks)
            words.append(str(tmp_path / name / f"{number}.csv"))
    outputs = {name: tmp_path / f"{name}.csv" for name in ("groups", "movies", "comparison")}
    options = [word for name, path in outputs.items() for word in (f"--{name}", str(path))]
    named = ["--condition", f"control={tmp_path}/control", "--condition", f"drug={tmp_path}/drug/*.csv"]
    plot = ["--plot", str(tmp_path / "plot.png")]
    command = ["measure", *words, "-o", str(tmp_path / "table.csv"), *options, *plot]
    done = succeed(*command, *named)
    assert "control: 3 movies, 36 tracks" in done.stderr
    assert pd.read_csv(outputs["groups"]).movies.tolist() == [3, 3]
    assert len(pd.read_csv(outputs["movies"])) == 6
    assert pd.read_csv(outputs["comparison"]).p.notna().any()
    assert (tmp_path / "plot.png").stat().st_size > 10_000
    assert_refused(run(*command, "--overwrite", *named[:2]), 2, "is of no condition")
    assert_refused(run(*command, "--overwrite", "--condition", "control"), 2, "NAME=PATTERN")


def test_a_condition_without_a_movie_is_refused(conditions: dict[str, list[Tracks]]) -> None:
    with pytest.raises(SettingsError, match="'none' has no movie"):
        outbid.measure({**conditions, "none": []})
