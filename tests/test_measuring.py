"""Every column of `outbid measure` by a few lines of pandas; units, groups, drift and lineages."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import toeplitz
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import outbid
from outbid import Detections, InputError, SettingsError, Tracks
from outbid.measuring.common_motion import Drift, without_common_motion
from outbid.measuring.whole import Recorded

INTERVAL = 0.5


def walks(seed: int = 0, *, count: int = 40, frames: int = 20, missed: float = 0.1) -> Tracks:
    """Diffusion in the plane with localisation error, missed detections and a feature, in micrometers."""
    rng = np.random.default_rng(seed)
    place = np.cumsum(rng.normal(0, 1, (count, frames, 2)), axis=1) + rng.uniform(0, 200, (count, 1, 2))
    place += rng.normal(0, 0.3, place.shape)
    track, frame = np.nonzero(rng.random((count, frames)) >= missed)
    features = {"mass": rng.uniform(0, 9, len(track)), "kind": (track % 2).astype(np.int64), "label": track}
    seen = Detections.from_table(frame, place[track, frame], unit="micrometer", features=features)
    return Tracks.from_track_ids(seen, seen.features["label"])


@pytest.fixture(scope="module")
def tracks() -> Tracks:
    return walks()


@pytest.fixture(scope="module")
def found(tracks: Tracks) -> pd.DataFrame:
    return outbid.measure(tracks, interval=INTERVAL).to_dataframe().set_index("track_id")


@pytest.fixture(scope="module")
def rows(tracks: Tracks) -> pd.DataFrame:
    """The tracks in pandas, with the step to the next detection of the same track."""
    table = tracks.to_dataframe().sort_values(["track_id", "frame"])
    ahead = table.groupby("track_id")[["frame", "y", "x"]].shift(-1)
    table["ahead"] = ahead.frame - table.frame
    table["dy"], table["dx"] = ahead.y - table.y, ahead.x - table.x
    table["length"] = np.hypot(table.dy, table.dx)
    return table


def turning(track: pd.DataFrame) -> float:
    """Mean angle between steps over one frame each, in degrees."""
    one = track.ahead.eq(1) & track.ahead.shift(-1).eq(1)
    angle = np.arctan2(track.dy, track.dx)
    turn = np.degrees(np.abs(angle.shift(-1) - angle))
    return float(np.minimum(turn, 360 - turn)[one].mean())


def displacement(track: pd.DataFrame) -> float:
    """Distance between the ends."""
    return float(np.hypot(*(track.iloc[-1] - track.iloc[0])[["y", "x"]]))


PANDAS = {
    "detections": len, "start_s": lambda track: track.frame.min() * INTERVAL,
    "duration_s": lambda track: np.ptp(track.frame) * INTERVAL, "path_um": lambda track: track.length.sum(),
    "displacement_um": displacement, "straightness": lambda track: displacement(track) / track.length.sum(),
    "speed_mean_um_per_s": lambda track: track.length.sum() / (np.ptp(track.frame) * INTERVAL),
    "speed_median_um_per_s": lambda track: (track.length / track.ahead / INTERVAL).median(),
    "msd_1_um2": lambda track: (track.length[track.ahead == 1] ** 2).mean(),
    "radius_of_gyration_um": lambda track: np.sqrt(track[["y", "x"]].var(ddof=0).sum()),
    "turning_angle_deg": turning, "mean_mass": lambda track: track["mass"].mean(),
}  # fmt: skip  # fmt: skip


@pytest.mark.smoke
@pytest.mark.parametrize("column", PANDAS)
def test_a_column_is_what_pandas_makes_of_it(column: str, found: pd.DataFrame, rows: pd.DataFrame) -> None:
    due = rows.groupby("track_id").apply(PANDAS[column], include_groups=False)
    assert len(due) == len(found)
    pd.testing.assert_series_equal(found[column], due, check_names=False, check_dtype=False, rtol=1e-9)


def likelihood_of(table: pd.DataFrame, noise: np.ndarray, step: np.ndarray, exponent: float) -> float:
    """Minus the log-likelihood of tracks in runs without a gap; `noise`, `step`: variances along y, x."""
    total, one = 0.0, table.ahead.eq(1)
    for _, run in table[one].groupby((~one).cumsum()[one]):
        time = np.arange(len(run) + 1.0) ** exponent
        row = np.append(time[1], np.diff(time, 2) / 2)
        for axis, variance, square in zip("yx", noise, step, strict=True):
            error = np.append([2 * variance, -variance], np.zeros(len(run)))[: len(run)]
            total -= multivariate_normal.logpdf(run["d" + axis], cov=toeplitz(square * row + error))
    return total


def test_diffusion_is_that_of_the_likelihood_in_scipy(
    tracks: Tracks, found: pd.DataFrame, rows: pd.DataFrame
) -> None:
    """Given the localisation error of all tracks, to a tenth of the error."""
    group = outbid.measure(tracks, interval=INTERVAL).groups.to_pandas().iloc[0]
    noise = np.square([group.localisation_error_y_um, group.localisation_error_x_um])
    assert noise == pytest.approx(0.09, abs=0.09)
    for number in (0, 7, 21):
        track = rows[rows.track_id == number]
        best = minimize(lambda at: likelihood_of(track, noise, np.exp([at[0], at[0]]), 1.0), [0.0])  # noqa: B023
        due, error = np.exp(best.x[0]) / (2 * INTERVAL), found.diffusion_error_um2_per_s[number]
        assert found.diffusion_um2_per_s[number] == pytest.approx(due, abs=0.15 * error)


def test_exponents_are_those_of_the_likelihood_in_scipy() -> None:
    """Of all tracks together, and of single tracks given the localisation error of all."""
    tracks = walks(8, count=12, frames=16, missed=0.0)
    table = tracks.to_dataframe().sort_values(["track_id", "frame"])
    ahead = table.groupby("track_id")[["y", "x"]].shift(-1)
    table = table.assign(ahead=ahead.y.notna().astype(int), dy=ahead.y - table.y, dx=ahead.x - table.x)
    best = minimize(
        lambda at: likelihood_of(table, np.exp(at[:2]) - 0.1, np.exp(at[2:4]), at[4]), [-1, -1, 0, 0, 1]
    )
    noise, step = np.exp(best.x[:2]) - 0.1, np.exp(best.x[2:4])
    found = outbid.measure(tracks)
    group, each = found.groups.to_pandas().iloc[0], found.to_dataframe()
    assert group.exponent == pytest.approx(best.x[4], abs=0.05 * group.exponent_error)
    for number in (2, 9):
        one = minimize(
            lambda at: likelihood_of(table[table.track_id == number], noise, step * np.exp(at[0]), at[1]),  # noqa: B023
            [0.0, 1.0],
        )
        assert each.exponent[number] == pytest.approx(one.x[1], abs=0.2 * each.exponent_error[number])


@pytest.fixture(scope="module")
def curves(tracks: Tracks) -> pd.DataFrame:
    return outbid.measure(tracks, interval=INTERVAL).curves.to_pandas().set_index(["curve", "x"])["value"]


@pytest.mark.smoke
def test_the_mean_square_displacement_of_all_tracks(curves: pd.DataFrame, rows: pd.DataFrame) -> None:
    pairs = rows.merge(rows.assign(frame=rows.frame - 3), on=["track_id", "frame"], suffixes=("", "_later"))
    due = ((pairs.y_later - pairs.y) ** 2 + (pairs.x_later - pairs.x) ** 2).mean()
    assert curves["msd", 3 * INTERVAL] == pytest.approx(due)


def test_the_velocity_autocorrelation(curves: pd.DataFrame, rows: pd.DataFrame) -> None:
    steps = rows[rows.ahead == 1]
    pairs = steps.merge(
        steps.assign(frame=steps.frame - 2), on=["track_id", "frame"], suffixes=("", "_later")
    )
    due = (pairs.dy * pairs.dy_later + pairs.dx * pairs.dx_later).mean() / INTERVAL**2
    assert curves["velocity_autocorrelation", 2 * INTERVAL] == pytest.approx(due)


def test_the_distribution_of_steps_is_a_density(curves: pd.DataFrame) -> None:
    steps = curves["step_distribution"]
    assert (steps * np.diff(steps.index)[0]).sum() == pytest.approx(0.999, abs=2e-3)


# ---------------------------------------------------------------- units


def test_every_column_names_its_unit_in_its_metadata_too(tracks: Tracks) -> None:
    found = outbid.measure(tracks, interval=INTERVAL)
    for table in (found.tracks, found.groups):
        units = {field.name: field.metadata[b"unit"].decode() for field in table.schema}
        assert units["diffusion_um2_per_s"] == "um^2/s"
        for name, unit in units.items():
            suffix = unit.replace("^", "").replace("/", "_per_")
            assert name.endswith("_" + suffix) if unit else not name.endswith(("_um", "_s", "_deg", "_px"))


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("unit", "spacing", "column", "due"),
    [
        ("pixel", None, "speed_mean_px_per_frame", 3.0), ("nanometer", None, "path_um", 3e-3),
        ("millimeter", None, "path_um", 3e3), ("pixel", (4, 1, 2), "path_um", 6.0),
    ],
)  # fmt: skip
def test_lengths_become_micrometers_or_stay_pixels(
    unit: str, spacing: tuple, column: str, due: float
) -> None:
    end = [0, 0, 3] if spacing is None else [1, 2, 2]
    seen = Detections.from_table([0, 1], [[0, 0, 0], end], unit=unit)
    table = outbid.measure(Tracks(seen, np.array([[0, 1]])), spacing=spacing).to_dataframe()
    assert table[column].tolist() == [due]


# ---------------------------------------------------------------- lineages, groups, drift


def dividing() -> Tracks:
    """A mother in frames 0 to 2, two daughters from 3 on; one of them divides in frame 6."""
    frame = [0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 6]
    place = [[0, 0]] * 3 + [[0, 5]] * 3 + [[0, -5]] * 3 + [[0, 8], [0, 3]]
    label = [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5]
    parent = [-1, -1, -1, 1, 1, 1, 1, 1, 1, 2, 2]
    seen = Detections.from_table(frame, place, features={"label": label, "parent": parent})
    return Tracks.from_track_ids(seen, seen.features["label"], seen.features["parent"])


@pytest.mark.smoke
def test_generations_mothers_daughters_and_cycles() -> None:
    found = outbid.measure(dividing(), interval=2.0)
    table = found.to_dataframe()
    assert table.generation.tolist() == [0, 1, 1, 2, 2]
    assert table.mother.fillna(-1).tolist() == [-1, 0, 0, 1, 1]
    assert table.daughters.tolist() == [2, 2, 0, 0, 0]
    assert table.cycle_time_s.fillna(0).tolist() == [0, 6.0, 0, 0, 0]
    group = found.groups.to_pandas().iloc[0]
    assert (group.divisions, group.cycles, group.appearances, group.disappearances) == (2, 1, 0, 1)


def test_groups_by_a_column_are_compared() -> None:
    fast, slow = walks(1), walks(2)
    seen = slow.detections
    half = Tracks(Detections(seen.frame, seen.position / 2, seen.unit, seen.features), slow.links)
    found = outbid.measure({"fast": fast, "slow": half}, interval=INTERVAL)
    row = found.comparison.to_pandas().set_index("quantity").loc["diffusion"]
    assert row.difference == pytest.approx(-0.75, abs=4 * row.difference_error)
    assert row.p_of_tracks < 1e-6
    assert np.isnan(row.p)  # of one movie each
    assert row.low_95 < row.difference < row.high_95 < 0
    assert found.to_dataframe().groupby("group").size().tolist() == [fast.track_count, slow.track_count]
    by_kind = outbid.measure(fast, group="kind", interval=INTERVAL)
    alike = by_kind.comparison.to_pandas().set_index("quantity").loc["diffusion"]
    assert abs(alike.difference) < 4 * alike.difference_error
    assert by_kind.groups.to_pandas().group.tolist() == ["kind 0", "kind 1"]
    still = Tracks(seen, np.empty((0, 2), np.int64))
    assert "diffusion" not in outbid.measure({"a": fast, "b": still}).comparison["quantity"].to_pylist()


def test_what_makes_no_sense_is_refused(tracks: Tracks) -> None:
    for given, kind, said in (
        ({"group": "size"}, InputError, "no column 'size'"), ({"interval": 0}, SettingsError, "above 0"),
        ({"axes": "xq"}, SettingsError, "some of zyx"), ({"drift": "some"}, SettingsError, "learned, tracks"),
    ):  # fmt: skip
        with pytest.raises(kind, match=said):
            outbid.measure(tracks, **given)
    pixels = Tracks(Detections(tracks.detections.frame, tracks.detections.position), tracks.links)
    with pytest.raises(SettingsError, match="differ in their units"):
        outbid.measure({"a": tracks, "b": pixels})


def test_a_learned_drift_is_subtracted_unless_it_is_to_stay() -> None:
    still = walks(3, missed=0.0)
    seen = still.detections
    shift = np.column_stack([np.zeros(20), 2.0 * np.arange(20)])
    moved = seen.position + np.column_stack([np.zeros(len(seen)), shift[seen.frame]])
    drifting = Tracks(Detections(seen.frame, moved, seen.unit, seen.features), still.links)
    record = {"learned": {"drift": shift.tolist(), "axes": "yx", "interval": 1, "time": None}}
    due = outbid.measure(still).to_dataframe()
    found = outbid.measure({"a": Recorded(drifting, record)}).to_dataframe()
    np.testing.assert_allclose(found.path_um, due.path_um)
    left = outbid.measure({"a": Recorded(drifting, record)}, drift="none").to_dataframe()
    assert (left.displacement_um > 30).all()


def test_no_tracks_at_all_are_measured_too() -> None:
    found = outbid.measure(Tracks(Detections.from_table([], []), np.empty((0, 2), np.int64)))
    assert len(found.tracks) == 0


def test_the_same_seed_gives_the_same_tables(tmp_path: Path) -> None:
    one, two = (outbid.measure(walks(4), seed=5) for _ in range(2))
    assert one.groups.equals(two.groups)
    assert one.tracks.equals(two.tracks)
    outbid.write_tracks(tmp_path / "a.csv", walks(4))
    assert outbid.measure(tmp_path / "a.csv", seed=5).tracks.num_rows == one.tracks.num_rows


def grouped(kinds: list[list[int]]) -> Tracks:
    """Tracks along x, the slower the higher their number, with a column kind as given."""
    frame, number, kind = np.array(
        [(t, k, value) for k, values in enumerate(kinds) for t, value in enumerate(values)]
    ).T
    order = np.argsort(frame, kind="stable")
    frame, number = frame[order], number[order]
    place = np.column_stack([0 * frame, 50 * number, frame / (1 + number)])
    seen = Detections.from_table(frame, place, features={"kind": kind[order]})
    return Tracks.from_track_ids(seen, number)


def test_a_group_that_changes_within_a_track_is_its_most_frequent_value() -> None:
    tracks = grouped([[1, 0, 0, 0, 0], [0, 1, 1, 1, 1], [0] * 5])
    found = outbid.measure(tracks, group="kind")
    assert found.to_dataframe().group.tolist() == ["kind 0", "kind 1", "kind 0"]
    (said,) = [remark for remark in found.remarks if "changes" in remark]
    assert "2 of 3 tracks" in said
    assert "track 0 has kind 0 in 4 of 5 detections" in said
    assert not [
        remark
        for remark in outbid.measure(grouped([[0] * 4, [1] * 4]), group="kind").remarks
        if "changes" in remark
    ]


def test_a_group_by_a_value_of_detections_is_refused_with_a_track() -> None:
    tracks = grouped([[0, 1, 2, 3], [4, 5, 6, 7], [8, 8, 8, 8]])
    with pytest.raises(InputError, match=r"'kind' changes .* track 0 has kind 0 in 1 of 4"):
        outbid.measure(tracks, group="kind")


# ---------------------------------------------------------------- drift of any tracks


def drifting(seed: int = 5) -> tuple[Tracks, Tracks]:
    """Diffusing particles, and the same on a stage that shifts by .5 and turns by .01 a frame."""
    still = walks(seed, count=80, frames=30, missed=0.0)
    seen = still.detections
    angle = 0.01 * seen.frame
    y, x = seen.position[:, 1:].T
    turned = np.column_stack([
        0 * y, np.cos(angle) * y - np.sin(angle) * x + 0.4 * seen.frame,
        np.sin(angle) * y + np.cos(angle) * x - 0.3 * seen.frame,
    ])  # fmt: skip
    return still, Tracks(Detections(seen.frame, turned, seen.unit, seen.features), still.links)


def diffusion(tracks: Tracks, drift: str) -> float:
    return float(outbid.measure(tracks, drift=drift).groups.to_pandas().diffusion_um2_per_frame[0])


def test_a_shift_and_rotation_that_tracks_share_are_subtracted() -> None:
    """To 3 %; the mean step leaves the rotation, by which particles far from the centre move a lot."""
    still, moved = drifting()
    due = diffusion(still, "none")
    assert diffusion(moved, "rigid") == pytest.approx(due, rel=0.03)
    assert not abs(diffusion(moved, "tracks") / due - 1) < 0.1


def test_a_slow_drift_is_subtracted_without_the_motion_of_few_tracks() -> None:
    """Of 15 tracks the mean step takes a fifteenth of D with it; the smoothed one nearly nothing."""
    found = []
    for seed in range(4):
        still = walks(seed, count=15, frames=60, missed=0.0)
        seen, phase = still.detections, still.detections.frame / 20
        drift = 10 * np.column_stack([0 * phase, np.sin(phase), np.cos(phase)])  # .5 a frame
        moved = Tracks(Detections(seen.frame, seen.position + drift, seen.unit), still.links)
        kinds = [without_common_motion(moved, Drift.of(kind))[0] for kind in ("smooth", "tracks")]
        found.append([square_step(tracks) / square_step(still) for tracks in kinds])
    smooth, mean = np.mean(found, axis=0)
    assert smooth == pytest.approx(1, abs=0.03)
    assert mean == pytest.approx(14 / 15, abs=0.01)


def square_step(tracks: Tracks) -> float:
    return float(np.square(np.diff(tracks.detections.position[tracks.links], axis=1)).sum(axis=2).mean())


def test_what_was_subtracted_is_written() -> None:
    _, moved = drifting()
    table = outbid.measure(moved, drift="rigid").detections.to_pandas()
    seen = moved.detections
    for k, axis in enumerate("zyx"):
        np.testing.assert_allclose(table[axis] + table[f"drift_{axis}_um"], seen.position[:, k], atol=1e-9)
    assert table.drift_y_um.abs().max() > 10


def test_the_drift_that_some_tracks_show_is_subtracted() -> None:
    """Of four beads that are fixed to the stage: the tracks of particles keep all of their motion."""
    still, moved = drifting()
    seen, frames = moved.detections, np.arange(30)
    corner = np.array([[0, 0], [0, 200], [200, 0], [200, 200]])
    turn = np.array(
        [[np.cos(0.01 * frames), -np.sin(0.01 * frames)], [np.sin(0.01 * frames), np.cos(0.01 * frames)]]
    )
    bead = np.einsum("abf,nb->fna", turn, corner) + np.stack([0.4 * frames, -0.3 * frames], 1)[:, None]
    place = np.concatenate([seen.position[:, 1:], bead.reshape(-1, 2)])
    label = np.concatenate([moved.track_id, np.tile(np.arange(4) + 80, 30)])
    frame = np.concatenate([seen.frame, np.repeat(frames, 4)])
    order = np.argsort(frame, kind="stable")
    both = Detections.from_table(frame[order], place[order], unit="micrometer")
    numbers = label[order]
    with_beads = Tracks.from_track_ids(both, numbers)
    beads = [int(with_beads.track_id[numbers == 80 + k][0]) for k in range(4)]
    table = outbid.measure(with_beads, drift="rigid=" + ",".join(map(str, beads))).to_dataframe()
    plain = outbid.measure(still, drift="none").to_dataframe().sort_values("path_um").path_um
    found = table[~table.track_id.isin(beads)].sort_values("path_um").path_um
    np.testing.assert_allclose(found, plain, rtol=1e-6)
    with pytest.raises(SettingsError, match="Track 900 has no links"):
        outbid.measure(with_beads, drift="tracks=900")
