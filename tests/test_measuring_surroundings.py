"""Regions, contacts, velocities and their correlation: against second implementations, and theory."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tifffile
from commands import refused, run, succeed

import outbid
from outbid import Detections, SettingsError, Tracks
from outbid.measuring import Surroundings
from outbid.measuring.groups import Samples
from outbid.measuring.neighbours import contacts, nearest_distances, pairs_within, velocities
from outbid.measuring.regions import Region, first_passages, visits
from outbid.measuring.survival import half_life, median_time

FRAMES, COUNT, INTERVAL = 30, 40, 5.0


def walks(seed: int, step: float = 0.5, missed: float = 0.1, side: float = 12.0) -> Tracks:
    """Diffusion in the plane with missed detections."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, side, (COUNT, 1, 2)) + np.cumsum(rng.normal(0, step, (COUNT, FRAMES, 2)), axis=1)
    kept = rng.random((COUNT, FRAMES)) > missed
    number, frame = np.nonzero(kept)
    seen = Detections.from_table(frame, place[kept], unit="micrometer")
    return Tracks.from_track_ids(seen, number[np.argsort(frame, kind="stable")])


def rows_of(tracks: Tracks) -> pd.DataFrame:
    seen = tracks.detections
    table = pd.DataFrame(seen.position[:, 1:], columns=["y", "x"])
    table = table.assign(track=tracks.track_id, frame=seen.frame, time=seen.frame * INTERVAL)
    return table.sort_values(["track", "frame"]).reset_index(drop=True)


def test_velocities_are_those_of_pandas() -> None:
    rows = rows_of(walks(1))
    found = velocities(rows[["y", "x"]].to_numpy(), rows.time.to_numpy(), rows.track.to_numpy())
    groups = rows.groupby("track")[["y", "x", "time"]]
    after, before = groups.shift(-1).fillna(rows), groups.shift(1).fillna(rows)
    due = (after - before)[["y", "x"]].div((after - before)["time"], axis=0)
    np.testing.assert_allclose(found, due)


def slow_visits(
    inside: list[bool], time: list[float]
) -> tuple[list[tuple[float, bool]], tuple[float, bool] | None]:
    """Stays of one track, and its way to the region, by a loop over its detections."""
    stays, since = [], None
    for k in range(1, len(time)):
        middle = (time[k] + time[k - 1]) / 2
        if inside[k] and not inside[k - 1]:
            since = middle
        elif inside[k - 1] and not inside[k] and since is not None:
            stays.append((middle - since, True))
            since = None
    if since is not None:
        stays.append((time[-1] - since, False))
    if inside[0] or len(time) < 2:
        return stays, None
    first = next((k for k, within in enumerate(inside) if within), None)
    return stays, (time[-1] - time[0], False) if first is None else (
        (time[first] + time[first - 1]) / 2 - time[0],
        True,
    )


def test_visits_and_first_passages_are_those_of_a_loop() -> None:
    rows = rows_of(walks(2, missed=0.3))
    inside = rows.x.between(3, 8).to_numpy()
    time, owner = rows.time.to_numpy(), rows.track.to_numpy()
    slow = [slow_visits(inside[owner == k].tolist(), time[owner == k].tolist()) for k in np.unique(owner)]
    dwell, passage = visits(inside, time, owner), first_passages(inside, time, owner)
    assert list(zip(dwell.lasting, dwell.complete, strict=True)) == [
        one for stays, _ in slow for one in stays
    ]
    assert list(zip(passage.lasting, passage.complete, strict=True)) == [way for _, way in slow if way]
    assert len(dwell.owner) > 20


def test_medians_of_stays_that_are_cut_off_are_those_of_theory() -> None:
    """Exponential stays of mean 20 in movies of 25: the complete ones alone are far too short."""
    rng = np.random.default_rng(3)
    lasting, seen = rng.exponential(20, 4000), rng.uniform(0, 25, 4000)
    complete = lasting < seen
    found = half_life(np.minimum(lasting, seen), complete, np.ones(4000))
    assert found == pytest.approx(20 * np.log(2), rel=0.06)
    assert np.median(lasting[complete]) < 0.5 * found
    weights = Samples(np.ones((1, 4000)), rng.multinomial(4000, np.full(4000, 1 / 4000), 100).astype(float))
    one = median_time(weights, np.arange(4000), np.minimum(lasting, seen), complete)
    assert abs(one.value - 20 * np.log(2)) < 3.5 * one.error < 3


def test_regions_are_boxes_circles_and_labels(tmp_path: Path) -> None:
    place = np.array([[0.0, 5, 5], [0, 5, 15], [0, 15, 5], [0, 30, 30]])
    frame = np.zeros(4, np.int64)
    assert Region.of("a", ":10,0:10").inside(place, frame)["a"].tolist() == [True, False, False, False]
    assert Region.of("a", "5,5,10").inside(place, frame)["a"].tolist() == [True, True, True, False]
    assert Region.of("a", "3,5,5,2").inside(place, frame)["a"].tolist() == [False] * 4
    labels = np.zeros((20, 20), np.uint8)
    labels[5, 15], labels[15, 5] = 1, 7
    tifffile.imwrite(tmp_path / "labels.tif", labels)
    found = Region.of("cell", str(tmp_path / "labels.tif")).inside(place, frame)
    assert {name: where.tolist() for name, where in found.items()} == {
        "cell 1": [False, True, False, False], "cell 7": [False, False, True, False],
    }  # fmt: skip
    for wrong in ("5", "a:b,c:d", "no.tif", "1:2"):
        refused("centre and a radius", Region.of, "a", wrong, error=SettingsError)
    refused("above 0", Surroundings.of, {}, -1.0, error=SettingsError)


def slow_contacts(rows: pd.DataFrame, radius: float) -> list[tuple[float, bool]]:
    """Contact times by a loop over pairs of tracks."""
    found, tracks = [], {k: one.set_index("frame") for k, one in rows.groupby("track")}
    for a, one in tracks.items():
        for b, two in tracks.items():
            both = one.index.intersection(two.index)
            apart = np.hypot(*(one.loc[both, ["y", "x"]] - two.loc[both, ["y", "x"]]).to_numpy().T)
            near = both[apart < radius] if a < b else []
            for part in np.split(near, np.flatnonzero(np.diff(near) != 1) + 1) if len(near) else []:
                whole = part[0] > max(one.index[0], two.index[0]) and part[-1] < min(
                    one.index[-1], two.index[-1]
                )
                found.append(((part[-1] - part[0] + 1) * INTERVAL, whole))
    return sorted(found)


def test_contacts_and_neighbours_are_those_of_a_loop() -> None:
    tracks = walks(4)
    seen, place = tracks.detections, tracks.detections.position[:, 1:]
    pair, distance = pairs_within(place, seen.frame, 1.0)
    assert (distance < 1).all()
    found = contacts(pair, tracks.track_id, seen.frame.astype(np.int64), seen.frame * INTERVAL, 1, INTERVAL)
    due = slow_contacts(rows_of(tracks), 1.0)
    assert sorted(zip(found.lasting.tolist(), found.complete.tolist(), strict=True)) == due
    assert len(due) > 50
    nearest = nearest_distances(place, seen.frame)
    for frame in (0, 7):
        here = place[seen.frame == frame]
        apart = np.linalg.norm(here[:, None] - here, axis=2) + 1e9 * np.eye(len(here))
        np.testing.assert_allclose(nearest[seen.frame == frame], apart.min(axis=1))


def measured(tracks: Tracks, **regions: str) -> outbid.measuring.Measures:
    return outbid.measure(tracks, interval=INTERVAL, around=Surroundings.of(regions, contact=1.0))


def test_velocities_of_neighbours_that_move_together_are_correlated() -> None:
    """Pairs of particles half a unit apart share 80 % of their steps' variance; the pairs are independent."""
    rng = np.random.default_rng(5)
    shared, own = (rng.normal(size=(n, FRAMES, 2)) for n in (60, 120))
    step = np.sqrt(0.8) * np.repeat(shared, 2, axis=0) + np.sqrt(0.2) * own
    place = np.cumsum(0.1 * step, axis=1) + np.repeat(rng.uniform(0, 60, (60, 1, 2)), 2, axis=0)
    place[::2, :, 0] += 0.4
    seen = Detections.from_table(np.tile(np.arange(FRAMES), 120), place.reshape(-1, 2), unit="micrometer")
    tracks = Tracks.from_track_ids(
        seen, np.repeat(np.arange(120), FRAMES)[np.argsort(np.tile(np.arange(FRAMES), 120), kind="stable")]
    )
    curves = measured(tracks).curves.to_pandas()
    curve = curves[curves.curve == "velocity_correlation"].reset_index(drop=True)
    assert curve.x.tolist() == [0, 0.5, 1.5, 2.5, 3.5, 4.5]
    variance = (
        2 * 0.1**2 / (2 * INTERVAL**2)
    )  # of a difference over two intervals, at most one-sided ends more
    assert curve.value[0] == pytest.approx(variance * (1 + 2 / FRAMES), rel=0.1)
    near = curve.value[1] / curve.value[0]
    assert near == pytest.approx(0.8, abs=0.08)
    assert abs(curve.value[4]) < 4 * curve.error[4] < 0.5 * variance


def test_turning_angles_of_diffusion_are_uniform_in_the_plane() -> None:
    curves = outbid.measure(walks(6, missed=0.0)).curves.to_pandas()
    angles = curves[curves.curve == "turning_angle_distribution"]
    assert (angles.value * 6).sum() == pytest.approx(1)
    assert angles.value.mean() == pytest.approx(1 / 180)
    assert ((angles.value - 1 / 180).abs() < 4 * angles.error).all()


def test_errors_of_velocities_are_those_of_doubtful_links() -> None:
    tracks = walks(7, missed=0.0, side=6.0)
    chance = np.ones(len(tracks.links))
    doubtful = tracks.detections.frame[tracks.links[:, 0]] == 14
    chance[doubtful] = 0.5
    tracks = dataclasses.replace(tracks, link_probability=chance)
    table = measured(tracks, middle="2:4,2:4").detections.to_pandas()
    errors = table.groupby("frame").velocity_error_um_per_s.mean()
    assert (errors.loc[[14, 15]] > 0).all()
    assert (errors.drop([14, 15]) == 0).all()
    found = measured(tracks, middle="2:4,2:4")
    rows = found.regions.to_pandas().iloc[0]
    assert rows.share_inside == pytest.approx(table.in_middle.mean(), abs=1e-9)
    assert rows.dwell_time_median_s > 0
    assert rows.dwell_time_median_error_s > 0


def test_the_table_of_detections_is_one_of_tracks(tmp_path: Path) -> None:
    tracks = walks(8)
    outbid.write_tracks(tmp_path / "a.csv", tracks)
    options = ("--interval", 5, "--region", "left=:,:6", "--contact", 1)
    more = ("--detections", tmp_path / "d.csv", "--regions", tmp_path / "r.csv")
    succeed("measure", tmp_path / "a.csv", "-o", tmp_path / "t.csv", *more, *options)
    again = outbid.read_tracks(tmp_path / "d.csv")
    assert again.detections.unit == "micrometer"
    np.testing.assert_array_equal(again.detections.position, tracks.detections.position)
    assert len(again.links) == len(tracks.links)
    speed = again.detections.features["speed_um_per_s"]
    assert np.isfinite(speed).all()
    assert {"in_left", "neighbour_distance_um"} <= set(again.detections.features)
    assert pd.read_csv(tmp_path / "r.csv").region.tolist() == ["left"]
    done = run("measure", tmp_path / "a.csv", "-o", tmp_path / "u.csv", "--regions", tmp_path / "s.csv")
    assert done.exit_code == 2
    assert "name them by --region" in done.output
