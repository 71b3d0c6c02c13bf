"""TIFF files with several images: which is read, what is joined, what is refused; never a part in silence."""

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import assert_refused, run, succeed
from test_images import frames

from outbid import InputError, SettingsError, read_detections
from outbid.formats.images.folders import open_movie

PLANES = np.random.default_rng(0).integers(0, 1000, (12, 20, 30)).astype(np.uint16)
GREY = {"photometric": "minisblack"}


def mixture(path: Path, **given: object) -> Path:
    """A page of bytes before eleven of words."""
    with tifffile.TiffWriter(path) as file:
        file.write(PLANES[0].astype(np.uint8), **GREY, **given)
        for plane in PLANES[1:]:
            file.write(plane, contiguous=False, **GREY, **given)
    return path


def positions(path: Path) -> Path:
    """An OME file with two images of different length and voxel."""
    with tifffile.TiffWriter(path, ome=True) as file:
        for name, planes, size in (("left", PLANES[:5], 0.25), ("right", PLANES[5:], 0.5)):
            metadata = {"axes": "TYX", "Name": name} | {f"PhysicalSize{a}": size for a in "XY"}
            file.write(planes, metadata=metadata, **GREY)
    return path


@pytest.mark.parametrize("metadata", [None, {}])
def test_images_that_do_not_fit_together_are_refused_and_named(tmp_path: Path, metadata: object) -> None:
    path = mixture(tmp_path / "a.tif", metadata=metadata)
    with pytest.raises(InputError, match=r"a\.tif holds .* do not fit together") as error:
        open_movie(path)
    assert "scene 0: 20 x 30 uint8" in str(error.value)
    assert "uint16" in str(error.value)
    assert "--scene" in str(error.value)
    assert "\n" not in str(error.value)
    np.testing.assert_array_equal(frames(open_movie(path, scene=0))[0, 0], PLANES[0].astype(np.uint8))
    found = open_movie(path, scene=1)
    expected = PLANES[1:] if metadata is None else PLANES[1:2]
    np.testing.assert_array_equal(frames(found)[:, 0], expected)
    for wrong in (-1, 12):
        with pytest.raises(SettingsError, match=f"no scene {wrong}: "):
            open_movie(path, scene=wrong)


@pytest.mark.smoke
@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize("depth", [1, 3])
def test_images_written_one_after_the_other_are_one_movie(
    tmp_path: Path, compression: str | None, depth: int
) -> None:
    """As `TiffWriter.write` leaves them in a loop: each is a series of its own."""
    path = tmp_path / "a.tif"
    images = PLANES.reshape(12 // depth, depth, 20, 30)
    with tifffile.TiffWriter(path) as file:
        for image in images:
            file.write(image.squeeze(), compression=compression, **GREY)
    movie = open_movie(path)
    assert movie.axes == ("TZYX" if depth > 1 else "TYX")
    assert any(f"taken for {movie.axes}" in doubt for doubt in movie.doubts)
    np.testing.assert_array_equal(frames(movie), images)
    np.testing.assert_array_equal(next(movie.frames([2])), images[2])
    assert open_movie(path, axes="ZTYX" if depth > 1 else "ZYX").frame_count == depth
    np.testing.assert_array_equal(frames(open_movie(path, scene=1)).squeeze(), images[1].squeeze())
    content = path.read_bytes()
    path.write_bytes(content[:-40])
    with pytest.raises(InputError, match=r"a\.tif"):
        frames(open_movie(path))


def test_scenes_that_a_file_names_are_said_and_the_first_is_taken(tmp_path: Path) -> None:
    path = positions(tmp_path / "a.ome.tif")
    movie = open_movie(path)
    (doubt,) = movie.doubts
    assert "scene 0: 'left' 5 x 20 x 30 uint16; scene 1: 'right' 7 x 20 x 30 uint16" in doubt
    assert "--scene" in doubt
    np.testing.assert_array_equal(frames(movie)[:, 0], PLANES[:5])
    second = open_movie(path, scene=1)
    assert (second.doubts, second.frame_count, second.spacing) == ((), 7, (1.0, 0.5, 0.5))
    np.testing.assert_array_equal(frames(second)[:, 0], PLANES[5:])


@pytest.mark.parametrize("kind", ["imagej", "ome"])
def test_images_that_the_header_does_not_know_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.tif"
    axes = {"metadata": {"axes": "TYX"}}
    tifffile.imwrite(path, PLANES, imagej=kind == "imagej", ome=kind == "ome" or None, **axes, **GREY)
    content = path.read_bytes()
    for word in (b"images=%s", b"frames=%s", b'SizeT="%s"', b'PlaneCount="%s"'):
        content = content.replace(word % b"12", word % b"07")
    path.write_bytes(content)
    with pytest.raises(InputError, match="holds 12 images, of which its header describes 7"):
        open_movie(path)
    np.testing.assert_array_equal(frames(open_movie(path, scene=0))[:, 0], PLANES[:7])


def test_a_plane_that_declares_another_size(tmp_path: Path) -> None:
    """The pages of an uncompressed stack lie in one block, of which the first page states the size."""
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, PLANES, **GREY)
    with tifffile.TiffFile(path) as file:
        place = file.pages.get(3, aspage=True).tags["ImageLength"].valueoffset
    content = bytearray(path.read_bytes())
    content[place : place + 4] = (10**6).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.tif: page 3 .* where its header needs 50000"):
        open_movie(path)


def test_an_ome_header_that_is_cut_is_refused_beside_one_of_tifffile(tmp_path: Path) -> None:
    """What tifffile adds has the shape, but neither the axes nor the size of a voxel."""
    path = tmp_path / "a.tif"
    cut = '<?xml version="1.0"?><OME xmlns="x"><Image><Pixels SizeT="12"'
    tifffile.imwrite(path, PLANES, description=cut, **GREY)
    with tifffile.TiffFile(path) as file:
        assert file.is_shaped
        assert not file.is_ome
    with pytest.raises(InputError, match="its OME header is cut short"):
        open_movie(path)
    tifffile.imwrite(path, PLANES, **GREY)
    np.testing.assert_array_equal(frames(open_movie(path, axes="TYX"))[:, 0], PLANES)


def test_smaller_copies_are_no_scenes(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as file:
        file.write(PLANES, subifds=1, **GREY)
        file.write(PLANES[:, ::2, ::2], subfiletype=1, **GREY)
        file.write(PLANES[0, ::4, ::4], subfiletype=1, **GREY)
    movie = open_movie(path)
    assert movie.frame_count == 12
    assert not any("scene" in doubt for doubt in movie.doubts)


def test_a_folder_of_stacks_that_were_written_plane_by_plane(tmp_path: Path) -> None:
    for number, stack in enumerate(PLANES.reshape(3, 4, 20, 30)):
        with tifffile.TiffWriter(tmp_path / f"t{number}.tif") as file:
            for plane in stack:
                file.write(plane, **GREY)
    movie = open_movie(tmp_path)
    assert (movie.axes, movie.frame_count) == ("ZYX", 3)
    np.testing.assert_array_equal(frames(movie), PLANES.reshape(3, 4, 20, 30))
    assert frames(open_movie(tmp_path, scene=2))[0, 0].tolist() == PLANES[2].tolist()


def test_a_picture_has_one_scene(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed: pip install pillow")
    image.fromarray(PLANES[0].astype(np.uint8)).save(tmp_path / "a.png")
    assert open_movie(tmp_path / "a.png", scene=0).frame_count == 1
    with pytest.raises(SettingsError, match="no scene 1"):
        open_movie(tmp_path / "a.png", scene=1)


def test_the_commands_take_a_scene(tmp_path: Path) -> None:
    path, out = mixture(tmp_path / "a.tif", metadata=None), tmp_path / "out.csv"
    assert_refused(run("detect", path, "-o", out, "--labels"), 3, "a.tif", "--scene")
    assert not out.exists()
    done = run("detect", path, "-o", out, "--labels", "--scene", "1", "--json")
    assert json.loads(done.stdout)["frames"] == 11
    assert json.loads((tmp_path / "out.csv.json").read_text())["settings"]["scene"] == 1
    assert read_detections(out).frame.max() == 10
    succeed("detect", path, "-o", tmp_path / "b.csv", "--config", tmp_path / "out.csv.json")
    assert (tmp_path / "b.csv").read_bytes() == out.read_bytes()
    assert_refused(run("detect", path, "-o", tmp_path / "c.csv", "--scene", "2"), 2, "no scene 2")
    two = positions(tmp_path / "b.ome.tif")
    assert "scene 1: 'right'" in run("detect", two, "-o", tmp_path / "d.csv", "--labels").stderr
    assert_refused(run("view", two, "--scene", "7"), 2, "no scene 7")
