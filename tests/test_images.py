"""Movies as images: axes, voxels, channels; files that are cut short or hostile; Cell Tracking Challenge."""

import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import tifffile

from outbid import Images, InputError, ResourceError, SettingsError, read_detections, read_tracks
from outbid.formats import holds_tracks
from outbid.formats.images.folders import open_movie

VOXELS = np.random.default_rng(0).integers(0, 1000, (4, 3, 20, 30)).astype(np.uint16)


def write(path: Path, kind: str) -> Path:
    """The same movie as different programs write it."""
    gray = {"photometric": "minisblack"}
    if kind == "imagej":
        metadata = {"axes": "TZYX", "spacing": 2.0, "unit": "um", "finterval": 1.5}
        tifffile.imwrite(path, VOXELS, imagej=True, metadata=metadata, resolution=(4.0, 4.0))
    elif kind in ("ome", "ome zlib"):
        metadata = {"axes": "TZYX", "PhysicalSizeX": 0.25, "PhysicalSizeY": 0.25, "PhysicalSizeZ": 2}
        packed = "zlib" if kind == "ome zlib" else None
        metadata |= {"TimeIncrement": 1.5}
        tifffile.imwrite(path, VOXELS, ome=True, metadata=metadata, compression=packed, **gray)
    elif kind == "shaped":
        tifffile.imwrite(path, VOXELS, **gray)
    elif kind in ("pages", "big"):
        with tifffile.TiffWriter(path, bigtiff=kind == "big") as file:
            for plane in VOXELS.reshape(-1, 20, 30):
                packed = None if kind == "big" else "zlib"
                file.write(plane, metadata=None, contiguous=False, compression=packed)
    return path


def frames(movie: Images) -> np.ndarray:
    return np.array(list(movie.frames()))


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["imagej", "ome zlib", "shaped", "pages"])
def test_frames_by_their_numbers(kind: str, tmp_path: Path) -> None:
    movie = open_movie(write(tmp_path / "a.tif", kind))
    whole = frames(movie)
    for numbers in ([2], [0, 3], [1, 1, 0], []):
        assert [image.tolist() for image in movie.frames(numbers)] == [whole[n].tolist() for n in numbers]
    for wrong in (-1, movie.frame_count):
        with pytest.raises(SettingsError, match=f"no frame {wrong}"):
            list(movie.frames([0, wrong]))


KINDS = ["imagej", "ome", "ome zlib", "shaped", "pages", "big"]


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read(kind: str, tmp_path: Path) -> None:
    movie = open_movie(write(tmp_path / "a.tif", kind))
    if kind in ("pages", "big"):  # nothing says what the planes are
        assert (movie.axes, movie.frame_count, movie.unit) == ("TYX", 12, "pixel")
        np.testing.assert_array_equal(frames(movie)[:, 0], VOXELS.reshape(-1, 20, 30))
        return
    assert (movie.axes, movie.frame_count, movie.shape) == ("TZYX", 4, (3, 20, 30))
    np.testing.assert_array_equal(frames(movie), VOXELS)
    if kind != "shaped":
        assert (movie.spacing, movie.unit, movie.interval) == ((2.0, 0.25, 0.25), "micrometer", 1.5)


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_short_is_never_taken_for_a_shorter_one(kind: str, tmp_path: Path) -> None:
    content = write(tmp_path / "a.tif", kind).read_bytes()
    whole = frames(open_movie(tmp_path / "a.tif"))
    cuts = {
        *np.linspace(1, len(content) - 1, 25).astype(int).tolist(),
        *range(len(content) - 30, len(content), 7),
    }
    refused = 0
    for cut in sorted(cuts):
        (tmp_path / "b.tif").write_bytes(content[:cut])
        try:
            read = frames(open_movie(tmp_path / "b.tif"))
        except InputError:
            refused += 1
        else:  # bytes behind the last plane that mean nothing
            assert cut > len(content) - 32
            np.testing.assert_array_equal(read, whole)
    assert refused > 20


def test_pages_in_a_circle_and_sizes_beyond_memory(tmp_path: Path) -> None:
    content = bytearray(write(tmp_path / "a.tif", "pages").read_bytes())
    (first,) = struct.unpack_from("<I", content, 4)
    (tags,) = struct.unpack_from("<H", content, first)
    struct.pack_into("<I", content, first + 2 + 12 * tags, first)
    (tmp_path / "b.tif").write_bytes(content)
    with pytest.raises(InputError):
        open_movie(tmp_path / "b.tif")
    bomb = np.zeros((16, 16), np.uint8)
    tifffile.imwrite(tmp_path / "c.tif", bomb, compression="zlib", metadata=None)
    huge = bytearray((tmp_path / "c.tif").read_bytes())
    (first,) = struct.unpack_from("<I", huge, 4)
    for tag in range(struct.unpack_from("<H", huge, first)[0]):
        if struct.unpack_from("<H", huge, first + 2 + 12 * tag)[0] in (256, 257, 278):
            struct.pack_into("<HII", huge, first + 4 + 12 * tag, 4, 1, 1_000_000)
    (tmp_path / "c.tif").write_bytes(huge)
    with pytest.raises((ResourceError, InputError)) as refused:
        frames(open_movie(tmp_path / "c.tif"))
    assert "GB" in str(refused.value)


@pytest.mark.smoke
def test_channels_and_axes_in_any_order(tmp_path: Path) -> None:
    both = np.stack([VOXELS, VOXELS + 1], axis=2)
    tifffile.imwrite(tmp_path / "a.tif", both, imagej=True, metadata={"axes": "TZCYX"})
    for channel in (0, 1):
        np.testing.assert_array_equal(
            frames(open_movie(tmp_path / "a.tif", channel=channel)), VOXELS + channel
        )
    with pytest.raises(SettingsError, match="no channel 2"):
        open_movie(tmp_path / "a.tif", channel=2)
    swapped = open_movie(write(tmp_path / "b.tif", "shaped"), axes="ZTYX")
    np.testing.assert_array_equal(frames(swapped), VOXELS.swapaxes(0, 1))
    for wrong in ("TYX", "TZYY", "TZXQ"):
        with pytest.raises(SettingsError, match="axes"):
            open_movie(tmp_path / "b.tif", axes=wrong)


def test_what_a_file_leaves_open_is_said(real_data: Path, tmp_path: Path) -> None:
    def doubts(name: Path, **given: object) -> str:
        return " ".join(open_movie(name, **given).doubts)  # type: ignore[arg-type]

    for kind in ("imagej", "ome"):
        assert doubts(write(tmp_path / f"{kind}.tif", kind)) == ""
    pages = write(tmp_path / "pages.tif", "pages")
    assert "taken for TYX" in doubts(pages)
    assert doubts(pages, axes="TYX") == ""
    assert "--spacing" in doubts(pages, axes="ZYX")
    assert doubts(pages, axes="ZYX", spacing=(2.0, 1.0, 1.0)) == ""
    trap = doubts(real_data / "faketracks/fake_tracks1_stracking.tif")
    assert "one frame of 5 planes" in trap
    assert "--axes TYX" in trap
    assert "--spacing" in doubts(real_data / "drosophila_nuclei/tif")


def test_time_that_pretends_to_be_depth(real_data: Path) -> None:
    file = real_data / "faketracks/fake_tracks1_stracking.tif"
    assert (open_movie(file).axes, open_movie(file).frame_count) == ("ZYX", 1)
    movie = open_movie(file, axes="TYX")
    assert (movie.frame_count, movie.shape) == (5, (1, 119, 101))


def test_a_folder_is_a_movie(real_data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stacks = open_movie(real_data / "drosophila_nuclei/tif", spacing=(5, 1, 1))
    assert (stacks.axes, stacks.frame_count, stacks.shape) == ("ZYX", 16, (29, 101, 151))
    pytest.importorskip("PIL", reason="pillow is not installed: pip install 'outbid[images]'")
    pictures = open_movie(real_data / "colloids_png")
    assert (pictures.frame_count, pictures.shape) == (30, (1, 424, 640))
    assert "the others are left out" in caplog.text, "a TIFF stands among the PNGs"
    for number, value in ((10, 10), (9, 9), (100, 100)):
        tifffile.imwrite(tmp_path / f"t{number}.tif", np.full((4, 5), value, np.uint8))
    assert frames(open_movie(tmp_path))[:, 0, 0, 0].tolist() == [9, 10, 100]
    tifffile.imwrite(tmp_path / "t11.tif", np.zeros((5, 5), np.uint8))
    with pytest.raises(InputError, match="t11"):
        frames(open_movie(tmp_path))


@pytest.mark.parametrize("unit", ["pixel", "µm"])
@pytest.mark.parametrize("deep", [True, False])
def test_a_distance_of_planes_that_is_not_given_is_a_doubt(unit: str, deep: bool, tmp_path: Path) -> None:
    metadata = {"axes": "TZYX"} | {f"PhysicalSize{a}": 0.5 for a in ("ZYX" if deep else "YX")}
    metadata |= {f"PhysicalSize{a}Unit": unit for a in "ZYX"}
    tifffile.imwrite(tmp_path / "a.ome.tif", VOXELS, ome=True, metadata=metadata, photometric="minisblack")
    movie = open_movie(tmp_path / "a.ome.tif")
    assert movie.spacing == (0.5 if deep else 1.0, 0.5, 0.5)
    assert [f"taken for 1 {movie.unit}" in doubt for doubt in movie.doubts] == [True] * (not deep)
    assert open_movie(tmp_path / "a.ome.tif", spacing=(1, 1, 1)).doubts == ()


def test_a_distance_of_planes_in_imagej(tmp_path: Path) -> None:
    assert open_movie(write(tmp_path / "a.tif", "imagej")).doubts == ()
    metadata = {"axes": "TZYX", "unit": "um"}
    tifffile.imwrite(tmp_path / "b.tif", VOXELS, imagej=True, metadata=metadata, resolution=(4.0, 4.0))
    (doubt,) = open_movie(tmp_path / "b.tif").doubts
    assert "taken for 1 micrometer" in doubt


def test_without_pillow_png_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.png").write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ResourceError, match=r"pip install 'outbid\[images\]'"):
        open_movie(tmp_path / "a.png")


def test_without_imagecodecs_a_compressed_tiff_says_what_to_install(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, VOXELS[0, 0], metadata=None, photometric="minisblack")
    with tifffile.TiffFile(path) as file:
        (tag,) = (page.tags["Compression"].valueoffset for page in file.pages)
    content = bytearray(path.read_bytes())
    struct.pack_into("<H", content, tag, 5)  # LZW
    path.write_bytes(content)
    # tifffile looks for its codecs when it is imported.
    without = (
        "import sys; sys.modules['imagecodecs'] = None; from outbid.cli import main; "
        "sys.argv = ['outbid', 'detect', 'a.tif', '-o', 'a.csv']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", without], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert "pip install 'outbid[images]'" in done.stderr
    assert not (tmp_path / "a.csv").exists()


def test_what_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "a.tif").write_text("no image at all, but long enough to look at")
    (tmp_path / "b.tif").touch()
    (tmp_path / "c.docx").write_text("x")
    (tmp_path / "d").mkdir()
    (tmp_path / "f/g").mkdir(parents=True)
    (tmp_path / "f/g/a.png").touch()
    for name, said in (
        ("a.tif", "TIFF"),
        ("b.tif", "empty"),
        ("c.docx", "no image"),
        ("d", "without images"),
        ("f", "There are some in .*g: give that"),
        ("e", "no file"),
    ):
        with pytest.raises(InputError, match=said):
            open_movie(tmp_path / name)


def test_images_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so that the refusal is made by hand."""

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path / "a.tif", "pages")
    for name in ("open", "iterdir"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, name, denied)
            with pytest.raises(InputError, match="Permission denied"):
                open_movie(path if name == "open" else tmp_path)


# ---------------------------------------------------------------- Cell Tracking Challenge


def test_ctc_result_of_real_cells(real_data: Path) -> None:
    folder = real_data / "formats/ctc_hela_01_RES"
    tracks = read_tracks(folder)
    assert holds_tracks(folder)
    rows = np.loadtxt(folder / "res_track.txt", dtype=int)
    assert (len(tracks.detections), tracks.detections.frame_count) == (8600, 92)
    assert tracks.detections.unit == "pixel"
    # Every row of the table is a track here, unless a division has one daughter only.
    assert tracks.track_count <= len(rows)
    starts = np.zeros(92, int)
    np.add.at(starts, rows[:, 1], 1)
    assert tracks.detections.rows_of(0).stop == starts[0]


def test_ctc_truth(real_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("imagecodecs", reason="LZW needs imagecodecs: pip install 'outbid[images]'")
    zipfile.ZipFile(real_data / "formats/ctc_java_measures/test_data.zip").extractall(tmp_path)
    tracks = read_tracks(tmp_path / "GT/TRA")
    assert (len(tracks.detections), tracks.track_count, len(tracks.links)) == (18, 3, 15)
    assert len(read_tracks(tmp_path / "res").detections) == 18
    assert len(read_tracks(tmp_path / "GT/TRA/man_track.txt").links) == 15


def test_ctc_made_by_hand(tmp_path: Path) -> None:
    for frame, boxes in enumerate([{1: 2}, {1: 3}, {2: 1, 3: 8}, {2: 1, 3: 9}]):
        image = np.zeros((6, 12), np.uint16)
        for label, place in boxes.items():
            image[2:4, place : place + 2] = label
        tifffile.imwrite(tmp_path / f"mask{frame:03}.tif", image)
    (tmp_path / "res_track.txt").write_text("1 0 1 0\n2 2 3 1\n3 2 3 1\n")
    tracks = read_tracks(tmp_path)
    assert tracks.detections.position[0].tolist() == [0, 2.5, 2.5]
    assert tracks.links.tolist() == [[0, 1], [1, 2], [1, 3], [2, 4], [3, 5]]
    assert read_detections(tmp_path).features["size"].tolist() == [4] * 6
    for table, said in (
        ("1 0 1 0\n2 2 3 1\n", "label 3"), ("1 0 1 0\n2 2 2 1\n3 2 3 1\n", "outside frames"),
        ("1 0 1\n", "line 1"), ("1 0 1 0\n1 0 1 0\n", "two rows"),
    ):  # fmt: skip
        (tmp_path / "res_track.txt").write_text(table)
        with pytest.raises(InputError, match=said):
            read_tracks(tmp_path)


def a_folder_of_masks(folder: Path, frames: range, name: str = "mask{:03}.tif") -> Path:
    """One object that moves along x, frame by frame."""
    for frame in frames:
        image = np.zeros((4, 20), np.uint16)
        image[1:3, frame : frame + 2] = 1
        tifffile.imwrite(folder / name.format(frame), image)
    (folder / "res_track.txt").write_text(f"1 {frames[0]} {frames[-1]} 0\n")
    return folder


@pytest.mark.parametrize("lost", [[0], [3], [2, 3, 4], [5]])
def test_masks_that_the_table_needs_are_missed(tmp_path: Path, lost: list[int]) -> None:
    folder = a_folder_of_masks(tmp_path, range(6))
    assert len(read_detections(folder)) == 6
    for frame in lost:
        (folder / f"mask{frame:03}.tif").unlink()
    for read in (read_detections, read_tracks):
        with pytest.raises(InputError, match=rf"mask{lost[0]:03}\.tif .* frames 0 to 5") as error:
            read(folder)
        assert str(folder) in str(error.value)
        assert ("and 2 more" in str(error.value)) == (len(lost) == 3)


def test_masks_that_no_track_needs_are_not_missed(tmp_path: Path) -> None:
    folder = a_folder_of_masks(tmp_path, range(4, 8))
    tifffile.imwrite(folder / "mask001.tif", np.zeros((4, 20), np.uint16))
    assert read_tracks(folder).detections.frame.tolist() == [4, 5, 6, 7]


def test_two_masks_of_one_frame_are_refused(tmp_path: Path) -> None:
    folder = a_folder_of_masks(tmp_path, range(3))
    tifffile.imwrite(folder / "mask1.tif", np.zeros((4, 20), np.uint16))
    with pytest.raises(InputError, match=r"mask001\.tif and mask1\.tif are both of frame 1"):
        read_tracks(folder)


def test_three_planes_written_without_a_word_are_no_colours(tmp_path: Path) -> None:
    stack = np.arange(3 * 600, dtype=np.uint16).reshape(3, 20, 30)
    # As tifffile writes them by default; given here, for it warns otherwise.
    tifffile.imwrite(tmp_path / "few.tif", stack, photometric="rgb", planarconfig="separate")
    with pytest.raises(InputError, match=r"axes SYX .* Name them with --axes"):
        open_movie(tmp_path / "few.tif")
    np.testing.assert_array_equal(frames(open_movie(tmp_path / "few.tif", axes="TYX"))[:, 0], stack)
    np.testing.assert_array_equal(frames(open_movie(tmp_path / "few.tif", axes="ZYX"))[0], stack)


def test_what_tifffile_logs_is_not_printed_before_our_error(tmp_path: Path) -> None:
    """Where nobody has set up logging, Python prints warnings to stderr."""
    path = write(tmp_path / "a.tif", "pages")
    content = bytearray(path.read_bytes())
    (first,) = struct.unpack_from("<I", content, 4)
    struct.pack_into("<H", content, first + 2 + 4 * 12 + 2, 77)  # a tag of a type that there is not
    path.write_bytes(content)
    loud = f"import tifffile; tifffile.TiffFile({str(path)!r}).pages[0].tags"
    ours = (
        "from pathlib import Path; from outbid.formats.images.folders import open_movie; "
        f"p = Path({str(path)!r})"
    )
    ours += "\ntry: [*open_movie(p).frames()]\nexcept ValueError: pass"
    for code, said in ((loud, True), (ours, False)):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert bool(done.stderr) == said, done.stderr
