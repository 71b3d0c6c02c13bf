"""Images as users have them: folders whose names count, files in parts, channels, bits."""

from itertools import product
from pathlib import Path
from uuid import NAMESPACE_DNS, uuid5

import numpy as np
import pytest
import tifffile
from commands import run, succeed

from outbid import InputError, SettingsError, read_detections
from outbid.formats.images.folders import open_movie

SIZES = {"T": 4, "C": 2, "Z": 3, "S": 2}
NAMES = [
    ("img_t{t:02d}_c{c}.tif", "TC"),
    ("exp_t{t:03d}_z{z:02d}.tif", "TZ"),
    ("xy{s}c{c}t{t:03d}.tif", "SCT"),
    ("W{s}T{t:04d}Z{z:02d}C{c}.tif", "STZC"),
    ("img_channel{c:03d}_position{s:03d}_time{t:09d}_z{z:03d}.tif", "CSTZ"),  # Micro-Manager 2
    ("img_{t:09d}_{c}_{z:03d}.tif", "TCZ"),  # Micro-Manager 1, with the name of a channel
    ("a_{t}_ch{c}.tif", "TC"),
    ("2024-01-05_12-30-{t:02d}_img{t:04d}_w{c}.tif", "TC"),  # with the time of day
    ("{c}_{t:03d}.tif", "CT"),  # a word is a channel
]


def image(of: dict[str, int]) -> np.ndarray:
    """An image that says what it is of."""
    return np.full((6, 5), sum(of[axis] * 10**place for place, axis in enumerate("TCZS")), np.uint16)


def folder(path: Path, name: str, axes: str) -> Path:
    path.mkdir()
    for numbers in product(*(range(SIZES[axis]) for axis in axes)):
        of = {**dict.fromkeys(SIZES, 0), **dict(zip(axes, numbers, strict=True))}
        channel = ("GFP", "RFP")[of["C"]] if "_{c}_" in name or name.startswith("{c}") else of["C"] + 1
        at = name.format(t=of["T"] + 1, z=of["Z"], c=channel, s=of["S"])
        tifffile.imwrite(path / at, image(of))
    return path


@pytest.mark.smoke
@pytest.mark.parametrize(("name", "axes"), NAMES)
def test_the_numbers_of_names_are_axes(name: str, axes: str, tmp_path: Path) -> None:
    """Case 01: a second counter is no time."""
    made = folder(tmp_path / "movie", name, axes)
    for channel, scene in product(range(SIZES["C"] if "C" in axes else 1), range(2 if "S" in axes else 1)):
        movie = open_movie(made, channel=channel, scene=scene if "S" in axes else None)
        assert (movie.frame_count, movie.shape) == (4, (3 if "Z" in axes else 1, 6, 5))
        for t, frame in enumerate(movie.frames()):
            assert frame[:, 0, 0].tolist() == [
                t + 10 * channel + 100 * z + 1000 * scene for z in range(len(frame))
            ]
    assert ("--channel" in " ".join(open_movie(made).doubts)) == ("C" in axes)
    assert ("--scene" in " ".join(open_movie(made).doubts)) == ("S" in axes)


def test_counters_that_nothing_names(tmp_path: Path) -> None:
    made = folder(tmp_path / "movie", "a_{t:03d}_{z:03d}.tif", "TZ")
    with pytest.raises(InputError, match=r"2 numbers vary .*1 to 4 and 0 to 2.*--axes TZYX"):
        open_movie(made)
    movie = open_movie(made, axes="TZYX")
    assert (movie.frame_count, movie.shape) == (4, (3, 6, 5))
    with pytest.raises(SettingsError, match="2 numbers"):
        open_movie(made, axes="TCZYX")


def test_a_missing_number_is_a_missing_frame(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    z, y, x = np.ogrid[:1, :32, :32]
    spot = 300 * np.exp(-((y - 10) ** 2 + (x - 20) ** 2 + 0 * z) / 4)[0]
    for t in (0, 1, 2, 4, 5):
        tifffile.imwrite(tmp_path / f"a{t:03d}.tif", rng.poisson(spot + 20).astype(np.uint16))
    assert "number 3" in " ".join(open_movie(tmp_path).doubts)
    done = run("detect", tmp_path, "-o", tmp_path / "spots.csv", "--radius", 2)
    assert (done.exit_code, "number 3" in done.stderr) == (0, True), done.stderr
    assert {0, 1, 2, 4, 5} == {*read_detections(tmp_path / "spots.csv").frame.tolist()}


def test_a_plane_that_is_missing_is_named(tmp_path: Path) -> None:
    made = folder(tmp_path / "movie", "exp_t{t:03d}_z{z:02d}.tif", "TZ")
    (made / "exp_t002_z01.tif").unlink()
    with pytest.raises(InputError, match="no image of t 2, z 1"):
        open_movie(made)


def test_files_that_are_no_images_are_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = folder(tmp_path / "movie", "exp_t{t:03d}.tif", "T")
    for name in ("._exp_t001.tif", "Thumbs.db", "MAX_exp.tif"):
        (made / name).write_bytes(b"no image")
    assert open_movie(made).frame_count == 4
    assert all(name in caplog.text for name in ("._exp_t001.tif", "MAX_exp.tif"))


# ---------------------------------------------------------------- one movie in several files


def in_several_files(path: Path, count: int) -> np.ndarray:
    """Case 09: an OME-TIFF with one file a frame, as Micro-Manager and OMERO write."""
    path.mkdir()
    voxels = np.random.default_rng(0).integers(0, 999, (count, 16, 12)).astype(np.uint16)
    names = [f"m_{k:03d}.ome.tif" for k in range(count)]
    ids = [f"urn:uuid:{uuid5(NAMESPACE_DNS, name)}" for name in names]
    places = "".join(
        f'<TiffData FirstT="{k}" FirstC="0" FirstZ="0" IFD="0" PlaneCount="1"><UUID FileName="{names[k]}">'
        f"{ids[k]}</UUID></TiffData>" for k in range(count)
    )  # fmt: skip
    for k, name in enumerate(names):
        text = (
            '<?xml version="1.0" encoding="UTF-8"?><OME '
            'xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" '
            f'UUID="{ids[k]}"><Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYCZT" Type="uint16" '
            f'SizeX="12" SizeY="16" SizeC="1" SizeZ="1" SizeT="{count}" PhysicalSizeX="0.1" '
            f'PhysicalSizeY="0.1" TimeIncrement="500" TimeIncrementUnit="ms">'
            f'<Channel ID="Channel:0:0" SamplesPerPixel="1"/>{places}</Pixels></Image></OME>'
        )
        tifffile.imwrite(
            path / name, voxels[k], photometric="minisblack", metadata=None, description=text.encode()
        )
    return voxels


@pytest.mark.parametrize("given", ["m_000.ome.tif", "m_003.ome.tif", ""])
def test_one_movie_in_several_files(given: str, tmp_path: Path) -> None:
    voxels = in_several_files(tmp_path / "multi", 5)
    movie = open_movie(tmp_path / "multi" / given)
    assert (movie.frame_count, movie.spacing[1:], movie.interval) == (5, (0.1, 0.1), 0.5)
    np.testing.assert_array_equal(np.concatenate(list(movie.frames())), voxels)
    assert list(movie.frames([3, 1]))[1][0].tolist() == voxels[1].tolist()


def test_one_of_several_files_is_missing_or_elsewhere(tmp_path: Path) -> None:
    voxels = in_several_files(tmp_path / "multi", 5)
    (tmp_path / "multi" / "m_004.ome.tif").rename(tmp_path / "m_004.ome.tif")
    path = tmp_path / "multi" / "m_000.ome.tif"
    with pytest.raises(InputError, match=r"no m_004\.ome\.tif beside it"):
        open_movie(path)
    text = path.read_bytes().replace(b"m_004.ome.tif", b"../m_004.e.tif")[: path.stat().st_size]
    (tmp_path / "multi" / "m_000.ome.tif").write_bytes(text)
    with pytest.raises(InputError):
        open_movie(path)
    assert len(voxels) == 5


# ---------------------------------------------------------------- what a file declares


@pytest.mark.parametrize("kind", ["imagej", "ome"])
def test_frames_that_are_there_on_request(kind: str, tmp_path: Path) -> None:
    """Case 08: the header declares ten frames; six are there."""
    voxels = np.random.default_rng(0).integers(0, 999, (10, 2, 16, 12)).astype(np.uint16)
    path = tmp_path / "a.tif"
    whole = tmp_path / "whole.tif"
    tifffile.imwrite(whole, voxels, **{kind: True}, metadata={"axes": "TZYX"}, photometric="minisblack")
    with tifffile.TiffFile(whole) as file:
        text = file.pages[0].description.encode()
    with tifffile.TiffWriter(path) as file:
        for k, plane in enumerate(voxels.reshape(-1, 16, 12)[:12]):
            said = text if k == 0 else None
            file.write(plane, metadata=None, contiguous=False, description=said, photometric="minisblack")
    with pytest.raises(InputError, match="--frames 0:N"):
        open_movie(path)
    movie = open_movie(path, partial=True)
    assert movie.frame_count == 6
    np.testing.assert_array_equal(np.array(list(movie.frames())), voxels[:6])
    succeed("detect", path, "-o", tmp_path / "o.csv", "--frames", "0:6")


@pytest.mark.parametrize("width", [64, 61])
def test_one_bit_a_voxel(width: int, tmp_path: Path) -> None:
    """Case 08."""
    mask = np.random.default_rng(0).random((6, 33, width)) > 0.5
    tifffile.imwrite(tmp_path / "a.tif", mask, photometric="minisblack", metadata={"axes": "TYX"})
    np.testing.assert_array_equal(np.concatenate(list(open_movie(tmp_path / "a.tif").frames())), mask)
    whole = (tmp_path / "a.tif").read_bytes()
    (tmp_path / "b.tif").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError):
        list(open_movie(tmp_path / "b.tif").frames())


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("axes", "words"), [("TCYX", ["2 channels", "--channel N"]), ("CYX", ["If they are times: --axes TYX"])]
)
def test_channels_are_said(axes: str, words: list[str], tmp_path: Path) -> None:
    """Case 19."""
    voxels = np.zeros((3, 2, 16, 12) if "T" in axes else (2, 16, 12), np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", voxels, imagej=True, metadata={"axes": axes})
    done = run("detect", tmp_path / "a.tif", "-o", tmp_path / "o.csv")
    assert all(word in done.stderr for word in words), done.stderr


def test_the_unit_of_the_interval(tmp_path: Path) -> None:
    voxels = np.zeros((3, 16, 12), np.uint16)
    metadata = {"axes": "TYX", "finterval": 2.0, "tunit": "min"}
    tifffile.imwrite(tmp_path / "a.tif", voxels, imagej=True, metadata=metadata)
    assert open_movie(tmp_path / "a.tif").interval == 120
    planes = {"DeltaT": [0.0, 3.0, 6.0], "DeltaTUnit": ["s"] * 3}
    tifffile.imwrite(tmp_path / "b.ome.tif", voxels, ome=True, metadata={"axes": "TYX", "Plane": planes})
    assert open_movie(tmp_path / "b.ome.tif").interval == 3
