"""Periodic boxes, as simulations have them: what leaves on one side comes in on the other."""

from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run
from hypothesis import given, settings
from hypothesis import strategies as st

import outbid
from outbid import SettingsError, read_record, read_tracks
from outbid.gating import pairs_in_box


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


def test_tracks_go_on_beyond_the_side(tmp_path: Path) -> None:
    path = drifting(tmp_path / "p.csv")
    box = ("--periodic", 10, 10, 10)
    done = run("track", path, "-o", tmp_path / "o.csv", "--max-distance", 0.6, *box)
    assert done.exit_code == 0, done.stderr
    assert read_tracks(tmp_path / "o.csv").track_count == 300
    assert read_record(tmp_path / "o.csv")["settings"]["periodic"] == [10, 10, 10]
    assert run("track", path, "-o", tmp_path / "open.csv", "--max-distance", 0.6).exit_code == 0
    assert read_tracks(tmp_path / "open.csv").track_count > 350
    again = run("track", path, "-o", tmp_path / "a.csv", "--config", tmp_path / "o.csv.json")
    assert again.exit_code == 0, again.stderr
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "o.csv").read_bytes()
    assert_refused(run("track", path, "-o", tmp_path / "b.csv", *box), 2, "--max-distance")
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
