"""Periodic boxes, as simulations have them: what leaves on one side comes in on the other."""

from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run, succeed
from hypothesis import given, settings
from hypothesis import strategies as st

import outbid
from outbid import SettingsError, read_record, read_tracks
from outbid.geometry.gating import pairs_in_box
from outbid.learned.periodic import with_images


@pytest.mark.smoke
@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([(10.0, 10.0, 10.0), (0.0, 8.0, 0.0), (6.0, 0.0, 9.0)]),
    st.sampled_from([0.5, 1.5, 2.9]), st.sampled_from([1e-9, 1.0, 1e9]),
)  # fmt: skip
def test_pairs_are_those_of_the_nearest_images(
    seed: int, box: tuple[float, float, float], radius: float, unit: float
) -> None:
    rng = np.random.default_rng(seed)
    rows, cols = (rng.random((rng.integers(0, 30), 3)) * 12 * unit for _ in range(2))
    cut = int(rng.integers(0, len(cols) + 1))
    size = np.array(box) * unit
    starts = np.array([0, len(rows), len(rows)]), np.array([0, cut, len(cols)])
    found = pairs_in_box(rows, cols, radius * unit, starts, (1, 1), (size[0], size[1], size[2]))
    ours = {
        (int(found.rows.order[row]), int(found.cols.order[col]))
        for row in range(len(rows))
        for col in found.indices[found.indptr[row] : found.indptr[row + 1]]
    }
    step = rows[:, None] - cols[None]
    where = size > 0
    step[..., where] -= np.rint(step[..., where] / size[where]) * size[where]
    near = np.linalg.norm(step, axis=2) <= radius * unit
    near[:, :cut] = False  # of another block
    assert ours == {(int(row), int(col)) for row, col in zip(*np.nonzero(near), strict=True)}
    assert len(found.indices) == len(ours)


def drifting(path: Path) -> Path:
    """Case 21: 300 particles drift along z through a box of 10 x 10 x 10, for 10 frames."""
    rng = np.random.default_rng(0)
    place, lines = rng.random((300, 3)) * 10, ["frame,z,y,x"]
    for t in range(10):
        lines += [f"{t},{z:.4f},{y:.4f},{x:.4f}" for z, y, x in place]
        place = (place + np.array([0.3, 0, 0]) + rng.normal(0, 0.02, place.shape)) % 10
    path.write_text("\n".join([*lines, ""]))
    return path


@pytest.mark.smoke
def test_tracks_go_on_beyond_the_side(tmp_path: Path) -> None:
    path = drifting(tmp_path / "p.csv")
    box = ("--periodic", 10, 10, 10)
    succeed("track", path, "-o", tmp_path / "o.csv", "--max-distance", 0.6, *box)
    assert read_tracks(tmp_path / "o.csv").track_count == 300
    assert read_record(tmp_path / "o.csv")["settings"]["periodic"] == [10, 10, 10]
    succeed("track", path, "-o", tmp_path / "open.csv", "--max-distance", 0.6)
    assert read_tracks(tmp_path / "open.csv").track_count > 350
    succeed("track", path, "-o", tmp_path / "a.csv", "--config", tmp_path / "o.csv.json")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "o.csv").read_bytes()
    too_far = run("track", path, "-o", tmp_path / "b.csv", *box, "--max-distance", 5)
    assert_refused(too_far, 2, "below half")


def test_gaps_close_beyond_the_side_as_well() -> None:
    frames = [np.array([[0, 5, 9.6]]), np.empty((0, 3)), np.array([[0, 5, 0.1]])]
    found = outbid.track(frames, max_distance=1.0, max_gap=1, periodic=(0, 10, 10))
    assert found.tracks.links.tolist() == [[0, 1]]
    assert found.tracks.link_cost is not None
    assert found.tracks.link_cost[0] == pytest.approx(0.5)
    with pytest.raises(SettingsError, match="three sizes"):
        outbid.TrackingSettings(max_distance=1.0, periodic=(0, 0, 0))


# ---------------------------------------------------------------- learned


def test_learned_tracks_go_on_beyond_the_side(tmp_path: Path) -> None:
    path = drifting(tmp_path / "p.csv")
    box = ("--periodic", 10, 10, 10)
    succeed("track", path, "-o", tmp_path / "o.csv", *box)
    found = read_tracks(tmp_path / "o.csv")
    assert found.track_count == 300
    assert np.ptp(found.detections.position, axis=0).max() < 10  # positions stay as they are
    succeed("track", path, "-o", tmp_path / "open.csv")
    assert read_tracks(tmp_path / "open.csv").track_count > 350
    ranges = run("track", path, "-o", tmp_path / "r.csv", *box, "--cluster", "local")
    assert (ranges.exit_code, "need a max_distance" in ranges.stderr) == (2, True)


def walking(shift: float, unit: float, box: float) -> outbid.Tracks:
    """Diffusion in a periodic plane, 6 by 6 spacings, moved as a whole by a shift."""
    rng = np.random.default_rng(3)
    place = np.cumsum(np.concatenate([rng.random((1, 36, 2)) * 6, rng.normal(0, 0.08, (19, 36, 2))]), axis=0)
    inside = (place + shift) % 6 * unit
    seen = outbid.Detections.from_table(np.repeat(np.arange(20), 36), inside.reshape(-1, 2))
    truth = {(k, k + 36) for k in range(36 * 19)}
    found = outbid.track(seen, periodic=(0, box * unit, box * unit)).tracks
    assert len(truth & set(map(tuple, found.links.tolist()))) > 0.95 * len(truth)
    assert (found.successors <= 1).all()
    assert (found.predecessors <= 1).all()
    return found


def test_a_box_has_no_place_where_it_begins() -> None:
    one, two = (set(map(tuple, walking(shift, 1.0, 6.0).links.tolist())) for shift in (0.0, 2.7))
    assert len(one & two) > 0.99 * len(one)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_learned_links_in_a_box_of_any_unit(unit: float) -> None:
    assert walking(0.0, unit, 6.0).links.tolist() == walking(0.0, 1.0, 6.0).links.tolist()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([(10.0, 10.0, 10.0), (0.0, 8.0, 0.0), (0.0, 6.0, 9.0)]),
)  # fmt: skip
def test_images_are_all_that_lie_in_the_margin(seed: int, box: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(seed)
    seen = outbid.Detections.from_table(np.sort(rng.integers(0, 3, 12)), rng.normal(0, 20, (12, 3)))
    every, row, inside = with_images(seen, (1, 1, 1), box)
    size = np.array(box)
    assert sorted(row[inside].tolist()) == list(range(12))
    assert (every.frame == seen.frame[row]).all()
    away = (every.position - seen.position[row])[:, size > 0] / size[size > 0]
    np.testing.assert_allclose(away, np.rint(away), atol=1e-9)
    within = every.position[inside][:, size > 0]
    assert ((within >= 0) & (within < size[size > 0])).all()
    assert len(np.unique(np.round(every.position, 9), axis=0)) == len(every)
