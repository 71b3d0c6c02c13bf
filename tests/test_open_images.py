"""`open_images`: the same movie in every file format, parts, levels, scenes; and files that are refused."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, refused, run, succeed
from containers import CONTAINERS, INTERVAL, SPACING, VOXELS, hdf5, lif, nd2, ome_zarr, plain_zarr

from outbid import (
    DetectionSettings,
    InputError,
    ResourceError,
    SettingsError,
    detect,
    read_detections,
    read_record,
)
from outbid.formats.images.opening import open_images

READERS = ("zarr", "h5py", "nd2", "czifile", "liffile", "dask", "fsspec")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The movie in every container."""
    folder = tmp_path_factory.mktemp("containers")
    return {name: write(folder) for name, (write, _, _) in CONTAINERS.items()}


@pytest.fixture(autouse=True)
def _warnings_of_readers() -> Iterator[None]:
    """nd2 warns of what a small file lacks, its old versions of files, old ones of czifile of SciPy."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="nd2")
        warnings.filterwarnings("ignore", "ND2File file not closed", UserWarning)
        warnings.filterwarnings("ignore", "Please import `zoom`", DeprecationWarning)
        yield


@pytest.mark.smoke
@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_holds_the_same_movie(name: str, files: dict[str, Path]) -> None:
    movie = open_images(files[name], **CONTAINERS[name][1])
    assert (movie.frame_count, movie.shape) == (3, VOXELS.shape[1:])
    np.testing.assert_array_equal(np.array(list(movie.frames())), VOXELS)
    box = slice(1, 4), slice(5, 20), slice(3, 30)
    part = np.array(list(movie.frames([2, 0], box)))
    np.testing.assert_array_equal(part, VOXELS[[2, 0]][:, 1:4, 5:20, 3:30])
    if name != "zarr":
        assert (movie.spacing, movie.unit) == (pytest.approx(SPACING), "micrometer")
    if name in ("tiff", "imaris", "nd2", "lif") or name.startswith("ome"):
        assert movie.interval == pytest.approx(INTERVAL)
    for wrong in (-1, 3):
        with pytest.raises(SettingsError, match=f"no frame {wrong}"):
            list(movie.frames([wrong]))


def test_the_same_spots_to_the_bit_in_every_container(files: dict[str, Path], tmp_path: Path) -> None:
    found = {}
    for name, path in files.items():
        options = [f"--{key}={value}" for key, value in CONTAINERS[name][1].items()]
        output = tmp_path / f"{name}.csv"
        succeed("detect", path, "-o", output, "--radius", 1.5, "--spacing", *SPACING, *options)
        found[name] = read_detections(output)
        assert read_record(output)["input"]["name"] == path.name
    first = found["tiff"]
    assert len(first) == 21
    for name, seen in found.items():
        assert seen.frame.tolist() == first.frame.tolist(), name
        assert seen.position.tobytes() == first.position.tobytes(), name
        assert seen.features["quality"].tobytes() == first.features["quality"].tobytes(), name


def test_detect_takes_a_path_what_was_opened_or_frames(files: dict[str, Path]) -> None:
    movie = open_images(files["tiff"])
    frames = detect(list(movie.frames()), radius=1.5, spacing=movie.spacing, unit=movie.unit)
    for given in (files["tiff"], str(files["tiff"]), movie):
        found, used = detect(given, DetectionSettings(radius=9.0), radius=1.5)
        assert (used.spacing, found.unit) == (movie.spacing, movie.unit)
        assert abs(used.radius - 1.5) < 0.1
        np.testing.assert_array_equal(found.position, frames[0].position)
    doubled = [2 * size for size in SPACING]
    assert detect(files["tiff"], radius=3.0, spacing=tuple(doubled))[1].spacing == tuple(doubled)
    with pytest.raises(TypeError, match="Did you mean 'radius'"):
        detect(movie, radios=1.5)  # type: ignore[call-arg]


def test_lazy_arrays_are_read_frame_by_frame(files: dict[str, Path]) -> None:
    dask = pytest.importorskip("dask.array", reason="dask is not installed: pip install 'outbid[zarr]'")
    lazy = open_images(files["ome-zarr 0.5"], channel=1).lazy()
    assert (lazy.shape, lazy.dtype, lazy.chunks[0]) == (VOXELS.shape, VOXELS.dtype, (1, 1, 1))
    np.testing.assert_array_equal(lazy[1, 2:4].compute(), VOXELS[1, 2:4])
    turned = dask.from_array(VOXELS.transpose(3, 1, 2, 0), chunks=16)
    asked = open_images(turned, axes="XZYT", spacing=SPACING)
    np.testing.assert_array_equal(np.array(list(asked.frames())), VOXELS)
    assert asked.spacing == SPACING
    again = open_images(lazy)
    assert again.axes == "TZYX"
    assert any("does not name its axes" in warning for warning in again.warnings)
    assert again.doubts == again.warnings  # its former name


@pytest.mark.smoke
def test_levels_channels_and_scenes(files: dict[str, Path], tmp_path: Path) -> None:
    for name in ("ome-zarr 0.4", "imaris"):
        coarse = open_images(files[name], level=1, **CONTAINERS[name][1])
        assert len(coarse.levels) == 2
        assert coarse.spacing == pytest.approx((2.0, 1.0, 1.0))
        np.testing.assert_array_equal(np.array(list(coarse.frames())), VOXELS[..., ::2, ::2])
        refused("no level 2", open_images, files[name], level=2, error=SettingsError)
    red = open_images(files["ome-zarr 0.4"])
    assert red.channels == ("red", "green")
    np.testing.assert_array_equal(next(red.frames([0])), VOXELS[2])
    for path in files.values():
        refused("no channel 7", open_images, path, channel=7, error=SettingsError)
        refused("no scene 7", open_images, path, scene=7, error=SettingsError)
    import zarr

    group = zarr.open_group(tmp_path / "several.zarr", mode="w")
    for number in range(11):
        group.create_array(str(number), shape=(2, 4, 5), dtype="uint8", fill_value=number)
    group.create_array("table", shape=(9,), dtype="uint8")
    movie = open_images(tmp_path / "several.zarr")
    assert movie.scenes == tuple(map(str, range(11)))
    assert "--scene N" in movie.doubts[0]
    assert next(open_images(tmp_path / "several.zarr", scene=10).frames([0])).max() == 10
    assert next(open_images(tmp_path / "several.zarr" / "4").frames([0])).max() == 4


def test_urls_are_opened_as_folders_are(tmp_path: Path) -> None:
    why = "no fsspec that zarr reads memory by: pip install --upgrade 'outbid[zarr]'"
    fsspec = pytest.importorskip("fsspec", minversion="2024.12", reason=why)
    ome_zarr(tmp_path)
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path / "movie0.4.zarr"), "/bucket/movie.zarr", recursive=True)
    url = "memory://bucket/movie.zarr"
    np.testing.assert_array_equal(np.array(list(open_images(url, channel=1).frames())), VOXELS)
    succeed("detect", url, "-o", tmp_path / "spots.csv", "--channel", 1, "--radius", 1.5)
    assert read_record(tmp_path / "spots.csv")["input"]["name"] == url
    assert_refused(run("detect", "memory://bucket/none.zarr", "-o", tmp_path / "a.csv"), 3, "no Zarr")


@pytest.mark.parametrize("name", [name for name, (_, _, extra) in CONTAINERS.items() if extra])
def test_a_missing_reader_ends_with_4_and_the_line_that_installs_it(
    name: str, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for reader in READERS:
        monkeypatch.setitem(sys.modules, reader, None)
    done = run("detect", files[name], "-o", tmp_path / "a.csv")
    assert_refused(done, 4, f"pip install 'outbid[{CONTAINERS[name][2]}]'")


@pytest.mark.parametrize("name", ["hdf5", "imaris", "nd2", "czi", "lif"])
def test_files_that_are_cut_short_or_damaged_are_refused(
    name: str, files: dict[str, Path], tmp_path: Path
) -> None:
    content = files[name].read_bytes()
    path = tmp_path / files[name].name
    for cut in (1, 100, len(content) // 3, len(content) - 3000):
        path.write_bytes(content[:cut])
        with pytest.raises(InputError):
            list(open_images(path).frames())
    path.write_bytes(b"")
    refused("empty", open_images, path)
    path.write_bytes(b"no image at all" * 1000)
    with pytest.raises(InputError, match=r"may be damaged|cannot be read|holds no"):
        list(open_images(path).frames())


@pytest.mark.smoke
def test_what_is_no_movie_is_refused(tmp_path: Path) -> None:
    import h5py
    import zarr

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["names"] = ["a", "b"]
    zarr.create_array(tmp_path / "a.zarr", shape=(2, 0, 4), dtype="uint8")
    zarr.create_array(tmp_path / "b.zarr", shape=(2, 4, 4), dtype="complex64")
    zarr.open_group(tmp_path / "c.zarr", mode="w")
    for name in ("a.h5", "a.zarr", "b.zarr", "c.zarr", "none.zarr", "none.nd2"):
        with pytest.raises(InputError):
            open_images(tmp_path / name)
    zarr.create_array(tmp_path / "d.zarr", shape=(2, 10**6, 10**6), dtype="uint8", chunks=(1, 1000, 1000))
    huge = open_images(tmp_path / "d.zarr")
    with pytest.raises(ResourceError, match="GB"):
        next(huge.frames([0]))
    assert next(huge.frames([0], (slice(None), slice(0, 5), slice(0, 7)))).shape == (1, 5, 7)
    refused("path, a URL or an array", open_images, 3, error=TypeError)
    for writer in (hdf5, nd2, lif, plain_zarr):
        refused("level", open_images, writer(tmp_path), level=1, error=SettingsError)
    refused("names 3 axes", open_images, tmp_path / "movie.h5", axes="ZYX", error=SettingsError)
