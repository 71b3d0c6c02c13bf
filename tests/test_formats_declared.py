"""All formats of the table `FORMATS`: its lines, what is made from them, and samples of files."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import renew
from checkout import REPOSITORY, SAMPLES
from commands import fresh_python, refused
from containers import CONTAINERS

from outbid import (
    InputError,
    read_detections,
    read_record,
    read_tracks,
    write_detections,
    write_tracks,
)
from outbid.formats import FORMATS, WRITTEN, holds_tracks
from outbid.formats.contract import PositionFormat
from outbid.formats.declared import TIFF, Format
from outbid.formats.images.stacks import ImageFormat
from outbid.viewers.plugin import layers_of_movie, layers_of_positions, read_movie, read_positions

READ = read_tracks(SAMPLES["tracks.csv"])
RECORD = {"command": "track", "settings": {"max_distance": 1.5}}


def needs(declared: Format) -> None:
    """Skip a test of a format whose package is not installed."""
    if declared.extra == "geff":
        pytest.importorskip("geff", reason="GEFF is not installed: pip install 'outbid[geff]'")


@pytest.mark.smoke
@pytest.mark.parametrize("declared", FORMATS, ids=lambda declared: declared.module)
def test_a_module_offers_what_its_line_says(declared: Format) -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    assert declared.extra in ("", *extras["optional-dependencies"])
    assert declared.about.endswith(".")
    assert declared.patterns or declared.suffixes
    if declared is TIFF:
        return
    offered = declared.load()
    assert isinstance(offered, ImageFormat if declared.has_images else PositionFormat)
    if isinstance(offered, PositionFormat):
        assert bool(declared.suffixes) <= bool(declared.writes)


def test_no_two_formats_have_one_suffix() -> None:
    assert len(WRITTEN) == sum(len(declared.suffixes) for declared in FORMATS)
    names = [*WRITTEN]
    later = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :] if b.endswith(a)]
    assert later == [], "the first would hide the second"


def test_the_manifest_names_what_is_declared() -> None:
    npe2 = pytest.importorskip("npe2")
    text = renew.MANIFEST.read_text("utf-8")
    assert renew.manifest(text) == text, "run python docs/renew.py"
    readers = npe2.PluginManifest.from_file(renew.MANIFEST).contributions.readers
    positions, movies = ({*reader.filename_patterns} for reader in readers)
    assert positions >= {"*.csv", "*.xlsx", "*.h5", "*.hdf5", "*.mastodon"}
    assert movies >= {"*.tif", "*.nd2", "*.czi", "*.lif", "*.ims", "*.h5", "*.zarr*"}


def test_a_table_loads_no_package_of_another_format() -> None:
    code = (
        f"import sys; from outbid import read_tracks; read_tracks({str(SAMPLES['tracks.csv'])!r}); "
        "print(sorted({'zarr', 'geff', 'h5py', 'nd2', 'czifile', 'liffile', 'tifffile', 'openpyxl', 'dask'} "
        "& {*sys.modules}))"
    )
    assert fresh_python(code) == "[]"
    code = "import sys; import outbid.formats; print([name for name in sys.modules if 'pyarrow' in name])"
    assert fresh_python(code) == "[]"


@pytest.mark.parametrize("suffix", WRITTEN)
def test_what_is_written_is_read_back(suffix: str, tmp_path: Path) -> None:
    needs(WRITTEN[suffix])
    path, again = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    write_tracks(path, READ, record=RECORD)
    back = read_tracks(path)
    np.testing.assert_array_equal(back.detections.frame, READ.detections.frame)
    assert {*map(tuple, back.detections.position)} == {*map(tuple, READ.detections.position)}
    assert len(back.links) == len(READ.links)
    assert holds_tracks(path)
    assert read_record(path) == RECORD
    write_tracks(again, READ, record=RECORD)
    if path.is_file():
        assert again.read_bytes() == path.read_bytes()
    write_detections(again, READ.detections, overwrite=True)
    assert not holds_tracks(again)
    refused("no run record", read_record, again)
    assert {name.name.removesuffix(".json") for name in tmp_path.iterdir()} == {path.name, again.name}


@pytest.mark.smoke
@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_holds_the_tracks(name: str) -> None:
    found = read_tracks(SAMPLES[name])
    np.testing.assert_array_equal(found.detections.frame, READ.detections.frame)
    np.testing.assert_array_equal(found.detections.position, READ.detections.position)
    np.testing.assert_array_equal(found.links, READ.links)
    assert holds_tracks(SAMPLES[name])
    np.testing.assert_array_equal(read_detections(SAMPLES[name]).position, READ.detections.position)
    assert len(READ.links) == 4


@pytest.mark.parametrize("name", SAMPLES)
def test_a_damaged_sample_is_read_or_refused(name: str, tmp_path: Path) -> None:
    content, path = SAMPLES[name].read_bytes(), tmp_path / name
    for place in range(len(content)):
        for harmed in (content[:place], content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]):
            path.write_bytes(harmed)
            try:
                found = read_tracks(path)
            except InputError as error:
                assert name in str(error)  # noqa: PT017
            else:
                assert len(found.detections) <= len(READ.detections)


def readers_offered(path: Path) -> list[str]:
    """Commands that napari would call for a file or folder."""
    npe2 = pytest.importorskip("npe2")
    manager = npe2.PluginManager()
    manager.register(npe2.PluginManifest.from_file(renew.MANIFEST))
    return sorted(reader.command for reader in manager.iter_compatible_readers(str(path)))


@pytest.mark.smoke
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in CONTAINERS if name != "zarr"])
def test_the_plugin_opens_images_of_every_container(name: str, tmp_path: Path) -> None:
    path = CONTAINERS[name][0](tmp_path)
    assert "outbid.read_movie" in readers_offered(path)
    assert read_movie(str(path)) is layers_of_movie
    frames, _, kind = layers_of_movie(str(path))[-1]
    assert (kind, len(frames)) == ("image", 3)
    assert read_positions(str(path)) is None


def test_the_plugin_opens_tables_of_other_programs(tmp_path: Path) -> None:
    openpyxl, h5py = pytest.importorskip("openpyxl"), pytest.importorskip("h5py")
    names, rows = ["track_id", "frame", "z", "y", "x"], [[1, 0, 0.5, 4, 5], [1, 1, 0.5, 4, 6]]
    book = openpyxl.Workbook()
    for row in [names, *rows]:
        book.active.append(row)
    book.save(tmp_path / "tracks.xlsx")
    with h5py.File(tmp_path / "tracks.h5", "w") as file:
        for name, values in zip(names, np.transpose(rows), strict=True):
            file[f"tracks/{name}"] = values
    for path in (tmp_path / "tracks.xlsx", tmp_path / "tracks.h5"):
        assert "outbid.read_positions" in readers_offered(path)
        assert read_positions(str(path)) is layers_of_positions
        ((data, _, kind),) = layers_of_positions(str(path))
        assert (kind, data.shape) == ("tracks", (2, 5))
        assert read_movie(str(path)) is None
