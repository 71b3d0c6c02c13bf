"""Irregular times of frames, from a column of times or from the image: dropped frames, times that jitter."""

import struct
import warnings
from pathlib import Path

import containers
import numpy as np
import pytest
import tifffile

import outbid
from outbid import Detections, Tracks
from outbid.formats.images.opening import open_images

D, INTERVAL, SPEED = 0.05, 10.0, 0.3
FRAMES = 40


def irregular(rng: np.random.Generator) -> np.ndarray:
    """Times of frames that jitter by a seventh of the interval, a fifth of which were dropped."""
    skipped = 1 + (rng.random(FRAMES - 1) < 0.2)
    ahead = INTERVAL * (skipped + 0.15 * rng.uniform(-1, 1, FRAMES - 1) * np.sqrt(3))
    return 5.0 + np.concatenate([[0.0], np.cumsum(ahead)])


def seen_at(time: np.ndarray, place: np.ndarray, column: str = "time") -> Tracks:
    """Tracks of places (T, F, 2) in frames of these times, numbered one after the other."""
    count = len(place)
    number = np.repeat(np.arange(len(time)), count)
    seen = Detections.from_table(
        number, place.transpose(1, 0, 2).reshape(-1, 2), unit="micrometer",
        features={column: np.repeat(time, count)},
    )  # fmt: skip
    return Tracks.from_track_ids(seen, np.tile(np.arange(count), len(time)))


def diffusing(seed: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    time = irregular(rng)
    step = rng.normal(size=(60, FRAMES - 1, 2)) * np.sqrt(2 * D * np.diff(time))[:, None]
    place = np.concatenate([np.zeros((60, 1, 2)), np.cumsum(step, axis=1)], axis=1)
    return time, place + rng.normal(0, noise, place.shape)


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_diffusion_at_irregular_times_is_without_bias(noise: float) -> None:
    found, counted = [], []
    for seed in range(6):
        tracks = seen_at(*diffusing(seed, noise))
        group = outbid.measure(tracks).groups.to_pandas().iloc[0]
        found.append((group.diffusion_um2_per_s - D) / group.diffusion_error_um2_per_s)
        by_number = outbid.measure(tracks, interval=INTERVAL).groups.to_pandas().iloc[0]
        counted.append(by_number.diffusion_um2_per_s / D)
    assert abs(np.mean(found)) < 3 / np.sqrt(6)
    assert max(map(abs, found)) < 3.5
    assert np.mean(counted) > 1.1  # frame numbers alone make steps over dropped frames too long


def test_speeds_and_lags_are_those_of_the_times() -> None:
    time = irregular(np.random.default_rng(3))
    way = SPEED * time[None, :, None] * np.array([0.6, 0.8])
    found = outbid.measure(seen_at(time / 60, np.repeat(way, 3, axis=0), "t [min]"))
    table = found.to_dataframe()
    for column in ("speed_mean_um_per_s", "speed_median_um_per_s"):
        np.testing.assert_allclose(table[column], SPEED, rtol=1e-9)
    np.testing.assert_allclose(table.start_s, 5.0)
    np.testing.assert_allclose(table.duration_s, np.ptp(time))
    curves = found.curves.to_pandas()
    lags = curves[curves.curve == "msd"]
    assert (lags.value / np.square(SPEED * lags.x)).between(1, 1.03).all()
    assert lags.x.iloc[0] == pytest.approx(INTERVAL, rel=0.05)
    speed = curves[curves.curve == "velocity_autocorrelation"]
    np.testing.assert_allclose(speed.value, SPEED**2, rtol=1e-9)


def test_irregular_times_are_said_and_even_ones_are_not() -> None:
    tracks = seen_at(*diffusing(1, 0.0))
    dropped = int(np.sum(np.diff(tracks.detections.features["time"][::60]) > 1.5 * INTERVAL))
    said = " ".join(outbid.measure(tracks).remarks)
    assert f"irregular times: {dropped} of {FRAMES - 1} follow after more than the usual" in said
    assert "irregular" not in " ".join(outbid.measure(tracks, interval=INTERVAL).remarks)
    even = seen_at(5 + INTERVAL * np.arange(FRAMES), diffusing(1, 0.0)[1])
    assert "irregular" not in " ".join(outbid.measure(even).remarks)
    back = seen_at(np.sin(np.arange(FRAMES)), diffusing(1, 0.0)[1])
    assert "does not grow with the frame" in " ".join(outbid.measure(back).remarks)


def test_times_of_a_table_survive_its_file(tmp_path: Path) -> None:
    tracks = seen_at(*diffusing(2, 0.0))
    outbid.write_tracks(tmp_path / "a.csv", tracks)
    one, two = outbid.measure(tracks), outbid.measure(tmp_path / "a.csv")
    assert one.groups.equals(two.groups)


# ---------------------------------------------------------------- times of planes in images

PLANES = (0.0, 10.0, 33.5)
"""Seconds of three frames, of which one was dropped."""


def ome(folder: Path) -> Path:
    """Each frame has two planes; the second one is .4 s later."""
    path = folder / "movie.ome.tif"
    late = [time + 0.4 * z for time in PLANES for z in range(containers.VOXELS.shape[1])]
    planes = {"DeltaT": late, "DeltaTUnit": ["s"] * len(late)}
    metadata = {"axes": "TZYX", "TimeIncrement": 10.0, "TimeIncrementUnit": "s", "Plane": planes}
    tifffile.imwrite(path, containers.VOXELS, metadata=metadata, ome=True)
    return path


def nd2(folder: Path) -> Path:
    """The sample with a chunk of times, which are those of planes, in milliseconds."""
    depth = containers.VOXELS.shape[1]
    late = np.add.outer(PLANES, 0.4 * np.arange(depth)).ravel() * 1000
    return containers.nd2(folder, {"CustomData|AcqTimesCache!": late.tobytes()})


def czi(folder: Path) -> Path:
    """The sample with an attachment of times, and its directory."""
    path = containers.czi(folder)
    content = bytearray(path.read_bytes())
    times = struct.pack("<ii3d", 32, 3, *PLANES)
    at = len(content)
    entry = struct.pack("<2s10sqi16s8s80s", b"A1", b"", at, 0, b"", b"CZTIMS", b"TimeStamps")
    attached = struct.pack("<i12x", len(times)) + entry + bytes(112) + times
    listed = struct.pack("<i252x", 1) + entry
    for name, data in ((b"ZISRAWATTACH", attached), (b"ZISRAWATTDIR", listed)):
        place = len(content)
        content += struct.pack("<16sqq", name, len(data), len(data)) + data
    content[32 + 72 : 32 + 80] = struct.pack("<q", place)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("write", [ome, nd2, czi])
def test_times_of_planes_become_a_column(write: object, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        movie = open_images(write(tmp_path))  # type: ignore[operator]
        assert movie.times == pytest.approx(PLANES)
        found, _ = outbid.detect(movie, radius=1.5, radius_z=3.0, spacing=containers.SPACING)
    assert len(found) > 10
    np.testing.assert_allclose(found.features["time"], np.array(PLANES)[found.frame])


def test_even_times_of_planes_are_an_interval(tmp_path: Path) -> None:
    movie = open_images(containers.CONTAINERS["tiff"][0](tmp_path))
    assert movie.times == ()
