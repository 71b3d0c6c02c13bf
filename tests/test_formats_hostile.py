"""Files made to harm, or harmed: for every format an error or data; never a hang, a crash or a full memory.

What else is in the list of hostile cases stands with its format: TIFF cut short, in a circle and beyond
memory in test_images; entities, document types, nesting and missing coordinates in test_formats_xml; links
out of a GEFF folder, pickles, damaged and missing parts in test_formats_geff; pickles and sizes of arrays in
test_formats_readers; tables in test_bad_input and test_formats_bad_parquet.
"""

import json
import shutil
import time
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
from checkout import SAMPLES
from commands import assert_refused, fresh_python, refused, run, written

from outbid import (
    Detections,
    InputError,
    OutbidError,
    ResourceError,
    Tracks,
    read_detections,
    read_tracks,
    write_tracks,
)
from outbid.formats.files import memory
from outbid.formats.images.folders import open_movie

TWO = Tracks(
    Detections.from_table([0, 1, 2, 2], [[0, 5, 7], [1, 5, 8], [0, 6, 9], [0, 4, 9]]),
    np.array([[0, 1], [1, 2]]),
)
BOMB_XML = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">{}]><OME>&z;</OME>'.format(
    "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">'
        for a, b in zip("abcdefghij", "bcdefghijz", strict=True)
    )
)  # fmt: skip


UNIT = "<MamutProject><SpaceUnits>um</SpaceUnits></MamutProject>"


def java(content: bytes) -> bytes:
    """A stream of short blocks."""
    pieces = [content[k : k + 255] for k in range(0, len(content), 255)]
    return b"\xac\xed\x00\x05" + b"".join(b"\x77" + bytes([len(piece)]) + piece for piece in pieces)


def project(path: Path, model: bytes, xml: str = UNIT) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.raw", model)
        archive.writestr("project.xml", xml)
    return path


def spot(x: float, y: float, z: float, frame: int) -> bytes:
    return np.array([x, y, z], "<f8").tobytes() + np.array([frame], "<i4").tobytes() + bytes(48) + b"\0" * 8


def count(n: int) -> bytes:
    return n.to_bytes(4, signed=True)


def link(source: int, target: int) -> bytes:
    return b"".join(count(n) for n in (source, target, 0, 0))


MODEL = count(2) + spot(1, 2, 3, 0) + spot(4, 5, 6, 1) + count(1) + link(0, 1) + b"labels"


def a_file(kind: str, folder: Path) -> Path:
    """A good file of each format that is read."""
    path = folder / f"good{kind}"
    if kind in SAMPLES:
        return Path(shutil.copy(SAMPLES[kind], folder))
    if kind == ".mastodon":
        return project(path, java(MODEL))
    if kind == ".npy":
        np.save(path, [[0, 0, 1.0, 2.0, 3.0], [0, 1, 1.0, 2.0, 4.0]])
    elif kind == "traj":
        path.write_text("0\t1\t2\t3\t0\n0\t1\t2\t4\t1\n")
    elif kind == "ptv_is.7":
        path = written(folder / "ptv_is.7", "2\n -1 1 1.0 2.0 3.0\n -1 -2 9 9 9\n")
    elif kind == ".txt":
        path.write_text("track\tframe\ty\tx\n1\t0\t5\t5\n1\t1\t5\t6\n")
    else:
        write_tracks(path, TWO)
    return path


KINDS = [".csv", ".tsv", ".parquet", ".xml", ".isbi.xml", ".npy", ".mastodon", ".txt", "ptv_is.7", *SAMPLES]


# ---------------------------------------------------------------- whatever the format


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
def test_empty_files(kind: str, tmp_path: Path) -> None:
    path = written(a_file(kind, tmp_path), b"")
    with pytest.raises(InputError, match=path.name) as error:
        read_detections(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_folders_and_missing_files_in_their_place(kind: str, tmp_path: Path) -> None:
    path = a_file(kind, tmp_path)
    path.unlink()
    assert_refused(run("convert", path, tmp_path / "out.csv"), 3, path.name, "Check the")
    path.mkdir()
    assert_refused(run("convert", path, tmp_path / "out.csv"), 3, path.name, "folder")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_a_suffix_that_is_wrong(kind: str, other: str, tmp_path: Path) -> None:
    """A file of one format under the suffix of another: an error, or, between tables, the same points."""
    good = a_file(kind, tmp_path)
    wrong = tmp_path / f"wrong{other}" if other != "ptv_is.7" else tmp_path / "rt_is.9"
    shutil.copy(good, wrong)
    try:
        read = read_detections(wrong)
    except InputError as error:
        assert wrong.name in str(error)  # noqa: PT017
    else:
        np.testing.assert_array_equal(read.position, read_detections(good).position)


@pytest.mark.parametrize("kind", [".xml", ".isbi.xml", ".mastodon", ".npy", ".txt", *SAMPLES])
def test_what_does_not_fit_the_memory_is_refused_before_reading(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_file(kind, tmp_path)
    monkeypatch.setattr(memory, "free_memory", lambda: 10)
    refused("GB", read_detections, path, error=ResourceError)


# ---------------------------------------------------------------- archives


def test_a_project_made_by_hand(tmp_path: Path) -> None:
    tracks = read_tracks(a_file(".mastodon", tmp_path))
    assert tracks.detections.position.tolist() == [[3, 2, 1], [6, 5, 4]]
    assert tracks.detections.frame.tolist() == [0, 1]
    assert tracks.links.tolist() == [[0, 1]]
    assert tracks.detections.unit == "micrometer"


def test_blocks_of_any_length_are_one_stream(tmp_path: Path) -> None:
    long = b"\xac\xed\x00\x05\x7a" + count(100) + MODEL[:100] + b"\x77\x05" + MODEL[100:105]
    rest = MODEL[105:]
    model = long + b"\x7a" + count(len(rest)) + rest + b"\x75\x72any object"
    assert len(read_tracks(project(tmp_path / "a.mastodon", model)).links) == 1


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("model", "said"),
    [
        (b"", "no stream of Java"), (b"\xac\xed\x00\x05sr\x00evil", "before its spots"),
        (java(count(2**31 - 1)), "2147483647 spots"), (java(count(-5)), "-5 spots"),
        (java(MODEL[:90]), "2 spots"), (java(MODEL[:-20]), "1 links"),
        (b"\xac\xed\x00\x05\x7a\x7f\xff\xff\xffabc", "within a block"),
        (b"\xac\xed\x00\x05\x77\x05" + count(0), "within a block"),
        (java(count(1) + spot(1, np.nan, 2, 0) + count(0)), "finite"),
        (java(count(1) + spot(1, 1, 2, -3) + count(0)), "frame -3"),
        (java(MODEL[:172] + count(1) + link(0, 7)), "detection 7"),
        (java(MODEL[:172] + count(1) + link(-1, 0)), "detection -1"),
    ],
)  # fmt: skip
def test_hostile_projects(model: bytes, said: str, tmp_path: Path) -> None:
    refused(said, read_tracks, project(tmp_path / "a.mastodon", model))


def test_an_archive_of_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.mastodon", "w") as archive:
        archive.writestr("../../outside.txt", "x")
    refused(r"without model\.raw", read_tracks, tmp_path / "a.mastodon")
    assert [file.name for file in tmp_path.rglob("*")] == ["a.mastodon"]
    refused(r"project\.xml", read_tracks, project(tmp_path / "b.mastodon", java(MODEL), BOMB_XML))


def test_a_compression_bomb_in_an_archive(tmp_path: Path) -> None:
    """A kilobyte is declared, 300 MB are there: no more is unpacked than is declared."""
    path = project(tmp_path / "a.mastodon", bytes(300_000_000))
    assert path.stat().st_size < 500_000
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = content.find(mark) + offset
        content[place : place + 4] = (1000).to_bytes(4, "little")
    path.write_bytes(content)
    tracemalloc.start()
    refused(r"damaged|spots|stream", read_tracks, path)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "said"),
    [("a.zip", "unpack"), ("a.npz", "CSV"), ("a.tar.gz", "unpack"), ("a.xlsx", "Excel"),
     ("a.tif", "outbid detect")],
)  # fmt: skip
def test_archives_and_others_that_are_not_opened(name: str, said: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../outside.npy", bytes(50_000_000))
    start = time.perf_counter()
    assert_refused(run("track", tmp_path / name, "-o", tmp_path / "out.csv"), 3, name, said)
    assert time.perf_counter() - start < 5
    assert [file.name for file in tmp_path.rglob("*")] == [name]


# ---------------------------------------------------------------- images


def test_entities_in_the_header_of_ome(tmp_path: Path) -> None:
    path = tmp_path / "a.ome.tif"
    voxels = np.zeros((3, 8, 8), np.uint8)
    tifffile.imwrite(path, voxels, description=BOMB_XML, metadata=None, photometric="minisblack")
    start = time.perf_counter()
    refused("header", open_movie, path)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("decoder", ["that of imagecodecs", "that of Python"])
def test_a_compression_bomb_in_a_plane(tmp_path: Path, decoder: str) -> None:
    """16 x 16 pixels are declared; the stream holds 2 GB of zeros. No more than is declared is kept."""
    path = tmp_path / "a.tif"
    squeeze = zlib.compressobj(1)
    bomb = b"".join([*(squeeze.compress(bytes(1 << 24)) for _ in range(128)), squeeze.flush()])
    tifffile.imwrite(path, np.zeros((16, 16), np.uint8), compression="zlib", metadata=None)
    with tifffile.TiffFile(path) as tiff:
        tags = tiff.pages[0].tags
        places = {name: tags[name].valueoffset for name in ("StripOffsets", "StripByteCounts")}
        widths = {name: tags[name].valuebytecount for name in places}
    content = bytearray(path.read_bytes())
    for name, value in (("StripOffsets", len(content)), ("StripByteCounts", len(bomb))):
        content[places[name] : places[name] + widths[name]] = value.to_bytes(widths[name], "little")
    path.write_bytes(content + bomb)
    code = f"""
import resource, sys
from pathlib import Path
if {decoder == "that of Python"}:
    sys.modules["imagecodecs"] = None
from outbid.errors import InputError
from outbid.formats.images.folders import open_movie
resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))
try:
    print(next(open_movie(Path({str(path)!r})).frames()).shape)
except InputError as error:
    print("refused", error)
"""
    assert fresh_python(code, timeout=60).startswith(("(1, 16, 16)", "refused"))


def test_a_picture_that_declares_too_much(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pillow is not installed: pip install pillow")
    head = b"IHDR" + (60_000).to_bytes(4) * 2 + b"\x08\x00\x00\x00\x00"
    chunk = (13).to_bytes(4) + head + zlib.crc32(head).to_bytes(4)
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk)
    refused(r"a\.png", open_movie, tmp_path / "a.png", error=OutbidError)


# ---------------------------------------------------------------- GEFF


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    pytest.importorskip("geff", reason="GEFF is not installed: pip install 'outbid[geff]'")
    write_tracks(tmp_path / "a.geff", TWO)
    return tmp_path / "a.geff"


@pytest.mark.parametrize("codec", ["zlib", "gzip", "blosc", "lz4"])
def test_a_compression_bomb_in_a_graph(codec: str, graph: Path) -> None:
    """A chunk that unpacks to a quarter of a gigabyte where 32 bytes are declared."""
    numcodecs = pytest.importorskip("numcodecs")
    array = graph / "nodes/props/x/values"
    packed = numcodecs.get_codec({"id": codec})
    said = json.loads((array / ".zarray").read_text())
    (array / ".zarray").write_text(json.dumps(said | {"compressor": packed.get_config()}))
    chunk = next(file for file in array.iterdir() if file.name[0] != ".")
    chunk.write_bytes(packed.encode(bytes(1 << 28)))
    pytest.importorskip("geff").validate_structure(graph)
    tracemalloc.start()
    refused(r"a\.geff", read_tracks, graph, error=OutbidError)
    assert tracemalloc.get_traced_memory()[1] < 100_000_000
    tracemalloc.stop()


def test_a_chunk_beyond_memory(graph: Path) -> None:
    array = graph / "nodes/props/x/values/.zarray"
    array.write_text(json.dumps(json.loads(array.read_text()) | {"chunks": [10**14]}))
    refused("GB", read_tracks, graph, error=ResourceError)
