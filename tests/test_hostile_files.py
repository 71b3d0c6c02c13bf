"""Files that `make fuzz` found to be read wrong, or to crash a reader: each stands in tests/hostile."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import refused, written
from containers import CONTAINERS

from outbid import InputError, read_tracks
from outbid.formats.images.folders import open_movie
from outbid.formats.images.opening import open_images
from outbid.formats.tables.npy import read_matrix

FOLDER = Path(__file__).parent / "hostile"
REFUSED = {
    "icy_detection_outside.xml": "line 6: a detection outside",  # was one of the track before
    "row_that_is_nan": "row nan of the next",  # was none
    "half_a_row": "row 1.5 of the next",  # was row 1
    "one_number_in_a_line/ptv_is.7": "line 4: ' 2'; 5 numbers",  # was five times that number
    "cut_short/trajectories": "line 3: '1'; 9 numbers",
    "edge_in_the_first_line-spots.csv": "line 2",  # was left out
    "prefix_that_nothing_declares.xml": "line 4: the prefix 'dete'",  # was left out
    "track_inside_a_track.xml": "line 32: a Track is inside another",  # its edges were of the inner one
    "row_of_a_fraction.xlsx": "'1.' is no number of a row",  # was left out
    "row_that_goes_back.xlsx": "row 1 follows row 4",  # was left out
    "open_quote-spots.csv": "a quotation mark is opened and never closed",  # its rows are one field
    "name_of_two_lines.csv": "line 1: a quotation mark is opened",  # the names were those of line 3
    "unit_separator/particles": "unknown format",  # two readers of it split lines in two ways
    "no_root.h5": "unknown format",  # h5py does not hash such a file
    "mark_before_the_first_row.csv": "line 2: a byte order mark",  # was left out, but in no other row
}
"""What reading tracks says of each."""


@pytest.mark.smoke
@pytest.mark.parametrize("name", REFUSED)
def test_what_was_read_wrong_is_refused(name: str) -> None:
    refused(REFUSED[name], read_tracks, FOLDER / name)


@pytest.mark.parametrize("name", ["track_that_is_nan.csv", "parent_that_is_nan.parquet"])
def test_a_number_of_a_track_that_is_nan_is_none(name: str) -> None:
    """The second reader refused it; but so pandas writes that a detection is in no track."""
    read = read_tracks(FOLDER / name)
    assert len(read.links) == {"track_that_is_nan.csv": 53, "parent_that_is_nan.parquet": 1}[name]


def test_a_frame_of_imaris_without_rows_is_refused() -> None:
    pytest.importorskip("h5py", reason="the extra imaris is missing")
    with pytest.raises(InputError, match="TimePoint 2, Channel 0 holds less than the first one"):
        list(open_images(FOLDER / "frame_without_rows.ims").frames())


def test_a_piece_of_a_png_that_would_end_behind_the_file_is_refused() -> None:
    """Pillow takes as much memory as is declared."""
    pytest.importorskip("PIL", reason="the extra images is missing")
    with pytest.raises(InputError, match="is cut short: a piece would end at byte"):
        list(open_movie(FOLDER / "long_piece.png").frames())


def _czi_with(folder: Path, place: int, byte: int) -> Path:
    """A movie of three frames with one byte replaced."""
    pytest.importorskip("czifile", reason="the extra czi is missing")
    content = bytearray((FOLDER.parent / "three_frames.czi").read_bytes())
    content[place] = byte
    return written(folder / "movie.czi", content)


@pytest.mark.parametrize(
    ("place", "byte", "said"),
    [
        # A byte of where a tile begins in time made a movie of a thousand million frames, of zeros,
        (80791, 94, r"movie\.czi: of 1577058307 frames, number \d+ is not stored"),
        # and one of where it begins in space an image that is a thousand times as large.
        (80537, 220, r"movie\.czi has tiles far from each other"),
    ],
)
def test_tiles_of_a_czi_that_are_misplaced_are_refused(
    place: int, byte: int, said: str, tmp_path: Path
) -> None:
    path = _czi_with(tmp_path, place, byte)
    with pytest.raises(InputError, match=said):
        list(open_images(path).frames())


def test_the_copy_of_a_directory_entry_does_not_enlarge_a_tile(tmp_path: Path) -> None:
    """A byte of the copy beside the pixels asked for 335 million voxels, zoomed for half a minute."""
    pytest.importorskip("czifile", reason="the extra czi is missing")
    whole = list(open_images(FOLDER.parent / "three_frames.czi").frames())
    path = _czi_with(tmp_path, 63994, 128)
    for expected, frame in zip(whole, open_images(path).frames(), strict=True):
        np.testing.assert_array_equal(frame, expected)


def test_an_axis_longer_than_any_memory_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("zarr", reason="the extra zarr is missing")
    facts = {
        "shape": [1, 4, 2**70], "data_type": "uint16", "fill_value": 0, "attributes": {}, "zarr_format": 3,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 4, 4]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "node_type": "array",
    }  # fmt: skip
    path = tmp_path / "movie.zarr"
    path.mkdir()
    (path / "zarr.json").write_text(json.dumps(facts), encoding="utf-8")
    refused("which no memory holds", open_images, path, axes="TYX")


def test_texts_in_hdf5_that_have_no_size_are_refused(tmp_path: Path) -> None:
    """HDF5 2.0 goes round in them for ever, where no signal ends it."""
    pytest.importorskip("h5py", reason="the extra hdf5 is missing")
    write, options, _ = CONTAINERS["hdf5"]
    path = write(tmp_path)
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL")
    place = heap + 16
    while content[place : place + 2] != bytes(2):
        place += 16 + -(-int.from_bytes(content[place + 8 : place + 16], "little") // 8) * 8
    content[place + 8 : place + 16] = bytes(8)
    path.write_bytes(content)
    refused(r"is damaged at byte \d+: a text of 0 bytes", open_images, path, **options)


@pytest.mark.timeout(60)
def test_a_group_of_hdf5_without_a_whole_header_is_refused(tmp_path: Path) -> None:
    """Bytes of the first group's header were there twice: `visititems` went round for ever."""
    pytest.importorskip("h5py", reason="the extra hdf5 is missing")
    write, options, _ = CONTAINERS["hdf5"]
    path = write(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:147] + content[115:147] + content[147:])
    refused(r"movie\.h5", open_images, path, **options)


def test_an_image_as_large_as_the_others_is_none_that_is_reduced() -> None:
    """It was left out as a thumbnail of them: a movie of five frames for six."""
    refused(r"as large as the others .page 2.*--scene 0", open_movie, FOLDER / "frame_marked_as_reduced.tif")
    assert open_movie(FOLDER / "frame_marked_as_reduced.tif", scene=0).frame_count == 5


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("strip_before_the_file.tif", "tag 273 of page 4 places its data by values of type 6"),
        ("strips_and_tiles.tif", "page 1 is in strips and in tiles"),
        ("predictor_of_nothing.tif", "page 0 has a predictor .tag 317., but no compression that uses it"),
        ("shape_without_its_bracket.tif", "its tifffile header is cut short"),
        ("header_cut.tif", "OME header is cut short"),
        ("another_count_of_rows.tif", "tag 278 of page 5 is not one whole number .type 4, 513 values"),
        ("more_strips_than_sizes.tif", "page 0 has 155 strips or tiles, but the sizes of 1"),
        ("tag_twice.tif", "tag 278 of page 0 is not one whole number .type 4, 2 values"),
        ("tag_that_is_a_fraction.tif", "tag 284 of page 3 is not one whole number .type 5, 1 values"),
        ("sign_that_is_a_fraction.tif", "tag 339 of page 1 holds values of type 5, not whole numbers"),
        ("strips_twice.tif", "tag 273 of page 1 .* unsigned numbers given once"),
        # Its own predictor was not looked at: tifffile reads all pages by the first.
        ("another_predictor.tif", "plane 1 is stored in another way than the first .tag 317"),
    ],
)
def test_headers_that_can_be_read_in_two_ways_are_refused(name: str, said: str) -> None:
    """The tiles of a page were somewhere else than its strips; the axes of another were lost.

    Where one number is needed libtiff reads neither a fraction nor the first of two or of 513.
    """
    refused(said, open_movie, FOLDER / name)


def test_fewer_strips_than_the_rows_need_are_refused(tmp_path: Path) -> None:
    """Libtiff reads four rows; tifffile all nine."""
    path = tmp_path / "movie.tif"
    tifffile.imwrite(path, np.ones((2, 9, 12), np.uint8), rowsperstrip=9, metadata=None)
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        for page in tiff.pages:
            page.tags["RowsPerStrip"].overwrite(4)
    refused("page 0 is in 1 strips or tiles where its header needs 3", open_movie, path)


def test_the_header_of_an_image_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "movie.tif"
    tifffile.imwrite(path, np.ones((9, 12), np.uint8), metadata=None)
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        tiff.pages[0].tags["StripOffsets"].overwrite(0)
    refused(r"movie\.tif: plane 0 is not stored", open_movie, path)


def test_a_matrix_of_no_real_numbers_is_refused(tmp_path: Path) -> None:
    for kind in (complex, ">i4,", "m8[s]"):
        np.save(tmp_path / "a.npy", np.zeros((2, 3), kind))
        refused("costs are real numbers", read_matrix, tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (f"\n{2**63},1\n", r"line 3: .* is no edge between spots"),
        ("\v0,1\n", "is no edge between spots"),  # was the end of a line as well: two edges of one
    ],
)
def test_more_at_the_end_of_the_last_edge_is_refused(more: str, said: str, tmp_path: Path) -> None:
    spots = written(tmp_path / "a-SPOTS.CSV", (FOLDER / "CAPITALS-SPOTS.CSV").read_text())
    written(tmp_path / "a-EDGES.CSV", (FOLDER / "CAPITALS-EDGES.CSV").read_text().rstrip("\n") + more)
    refused(said, read_tracks, spots)


def test_edges_stand_beside_spots_in_capital_letters() -> None:
    assert len(read_tracks(FOLDER / "CAPITALS-SPOTS.CSV").links) == 1


def test_many_digits_in_a_field_take_no_longer_than_others(tmp_path: Path) -> None:
    """They were read by a pattern that tries every way to divide them in two: minutes."""
    path = written(tmp_path / "digits.csv", f"frame,y,x\n0,1,{'9' * 60_000}a\n")
    start = time.perf_counter()
    refused("line 2: x is '999", read_tracks, path)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("name", ["ome-zarr 0.4", "hdf5"])
def test_chunks_of_images_that_are_damaged_are_refused_by_name(name: str, tmp_path: Path) -> None:
    """They are unpacked when frames are asked for, after the file was opened."""
    write, options, package = CONTAINERS[name]
    pytest.importorskip(
        {"zarr": "zarr", "hdf5": "h5py"}[str(package)], reason=f"the extra {package} is missing"
    )
    path = write(tmp_path)
    file = max((one for one in [path, *path.rglob("*")] if one.is_file()), key=lambda one: one.stat().st_size)
    content = bytearray(file.read_bytes())
    for place in range(len(content) // 3, len(content) - 40, 300):
        content[place : place + 40] = bytes(40)
    file.write_bytes(content)
    with pytest.raises(InputError, match=path.name):
        list(open_images(path, **options).frames())


def test_a_plane_that_is_not_stored_is_no_plane_of_zeros(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.ones((4, 8, 8), np.uint16), compression="zlib", photometric="minisblack")
    with tifffile.TiffFile(path) as tiff:
        tag = tiff.pages.get(1, aspage=True).tags["StripByteCounts"]
    content = bytearray(path.read_bytes())
    content[tag.valueoffset : tag.valueoffset + tag.valuebytecount] = bytes(tag.valuebytecount)
    path.write_bytes(content)
    with pytest.raises(InputError, match="plane 1 is not stored"):
        list(open_movie(path).frames())


def test_a_damaged_footer_of_one_column_ends_no_process() -> None:
    """Pyarrow ended the process when it was asked for a column's metadata."""
    reads = f"import outbid; outbid.read_tracks({str(FOLDER / 'damaged_footer.parquet')!r})"
    done = subprocess.run([sys.executable, "-c", reads], capture_output=True, text=True, check=False)
    assert "damaged_footer.parquet cannot be read as Parquet" in done.stderr
