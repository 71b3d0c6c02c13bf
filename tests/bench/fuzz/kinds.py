"""Every format that Outbid reads, one entry a format: its seeds, how they are harmed, and its two readers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from outbid import Detections, InputError, Tracks, read_detections, read_record, read_tracks
from outbid.formats import FORMATS, format_of, holds_tracks
from outbid.formats.images.folders import open_movie
from outbid.formats.tables.npy import read_matrix

from . import (
    containers,
    harm,
    harm_binary,
    harm_text,
    second_binary,
    second_images,
    second_tables,
    second_xml,
    seeds,
    seeds_bad,
    seeds_graph,
    seeds_image,
)
from .cases import Harm, Kind, Seed
from .second import Found, Unsure, found
from .seeds import one_file

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from checkout import SAMPLES

_TEXT = harm.BYTES | harm_text.NUMBERS | harm_text.LINES | harm_text.ENCODING
_ARCHIVE = harm.BYTES | harm_binary.MEMBERS


def _rows(seen: Detections, features: tuple[str, ...] = ()) -> list[tuple[float, ...]]:
    columns = [seen.features[name].astype(float) for name in features]
    return [tuple(map(float, row)) for row in zip(seen.frame, *seen.position.T, *columns, strict=True)]


def _read(path: Path, seed: Seed) -> Found:
    """Detections, and the tracks if they are there and can be read."""
    named: Mapping[str, str] = seed.hint.get("named", {})  # type: ignore[assignment]
    seen = read_detections(path, columns=named)
    numbers = {name for name, values in seen.features.items() if values.dtype.kind in "iufb"}
    features = tuple(name for name in seed.hint.get("features", ()) if name in numbers)  # type: ignore[attr-defined]
    with suppress(InputError):  # which is no part of the data
        read_record(path)
    tracks = _tracks(path, named)
    if tracks is not None and not np.array_equal(tracks.detections.position, seen.position):
        raise AssertionError("read_tracks and read_detections differ")
    is_known = holds_tracks(path, columns=named) and tracks is not None
    links = tracks.links.tolist() if is_known else None  # type: ignore[union-attr]
    return found(_rows(seen, features), links, seed.hint.get("digits"))  # type: ignore[arg-type]


def _tracks(path: Path, named: Mapping[str, str]) -> Tracks | None:
    try:
        return read_tracks(path, columns=named)
    except InputError:
        return None


def _ptv(path: Path, seed: Seed) -> Found:
    """Detections; and the links as places, for tracks have rows of their own."""
    rows = found(_rows(read_detections(path)), None).rows
    tracks = _tracks(path, {}) if holds_tracks(path) else None
    return Found(rows, tracks and found(_rows(tracks.detections), tracks.links.tolist()).links)


def _clean(read: Callable[[Path], object], path: Path, seed: Seed) -> Found:
    """Of what is not compared."""
    read(path)
    return Found(())


def unjudged(path: Path, seed: Seed) -> Found:
    """Of formats without a second reader: damage must be refused cleanly, or read within limits."""
    raise Unsure("read")


def _image(path: Path, seed: Seed) -> Found:
    movie = open_movie(path, **seed.hint.get("open", {}))  # type: ignore[arg-type]
    return second_images.image_as_found(np.concatenate(list(movie.frames())))


def _every_seed(name: str, made: Callable[[Path], list[Seed]], folder: Path) -> list[Seed]:
    return [*made(folder), *seeds_bad.of(name)]


def _sampled(module: str, _folder: Path) -> list[Seed]:
    return [one_file(name, file.read_bytes()) for name, file in SAMPLES.items() if format_of(file) == module]


_CSV = ("csv", "csv_layout", "table", "columns", "axes", "units", "times", "decimals", "memory")
_WITH_FIELDS, _WITH_XML = _TEXT | harm_text.FIELDS, _TEXT | harm_text.XML
_BYTES_AND_NUMBERS, _FOLDER = harm.BYTES | harm_text.NUMBERS, harm.BYTES | harm.WHOLE
_IN_CTC = _FOLDER | harm_text.NUMBERS | harm_text.LINES | harm_binary.TAGS
_IMAGES = ("tiff", "tiff_scenes", "images", "frames", "counters")
_CONTAINERS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Harm]]] = {
    name: ((name,), _FOLDER) for name in containers.NAMES
} | {"zarr images": (("zarr", "stacks"), _FOLDER | harm_text.JSON)}
_ENTRIES = (
    ("csv", _CSV, seeds.csv, _WITH_FIELDS, _read, second_tables.read_csv),
    ("parquet", ("parquet",), seeds.parquet, harm.BYTES | harm_binary.COLUMNS, _read,
     second_tables.read_parquet),
    ("isbi", ("isbi", "xml_stream", "graph"), seeds.isbi, _WITH_XML, _read, second_xml.read_isbi),
    ("trackmate", ("trackmate",), seeds.trackmate, _WITH_XML, _read, second_xml.read_trackmate),
    ("trackmate_csv", ("trackmate_csv",), seeds.trackmate_csv, _WITH_FIELDS | harm.WHOLE, _read,
     second_tables.read_csv),
    ("geff", ("geff", "geff_checks"), seeds_graph.geff, _FOLDER | harm_text.JSON, _read,
     second_binary.read_geff),
    ("ctc", ("ctc",), seeds_image.ctc, _IN_CTC, _read, second_binary.read_ctc),
    ("openptv", ("openptv",), seeds_image.openptv, _TEXT | harm.WHOLE, _ptv, unjudged),
    ("myptv", ("myptv",), seeds_image.myptv, _TEXT, _read, unjudged),
    ("npy", ("npy",), seeds_graph.npy, _BYTES_AND_NUMBERS, _read, unjudged),
    ("excel", ("excel",), seeds_graph.excel, _ARCHIVE, _read, unjudged),
    ("mastodon", ("mastodon",), seeds_graph.mastodon, _ARCHIVE, _read, unjudged),
    ("tiff", _IMAGES, seeds_image.tiff, _FOLDER | harm_binary.TAGS, _image, second_images.read_tiff),
    ("png", ("images",), seeds_image.png, _FOLDER, _image, second_images.read_png),
    ("hdf5 tables", ("hdf5_tables",), containers.tables, _FOLDER, _read, containers.second),
    ("record", ("records",), seeds_graph.records, _TEXT | harm_text.JSON, partial(_clean, read_record),
     unjudged),
    ("matrix", ("npy",), seeds_graph.matrices, _BYTES_AND_NUMBERS, partial(_clean, read_matrix), unjudged),
    *((name, modules, partial(containers.images, name), harms, containers.ours, containers.second)
      for name, (modules, harms) in _CONTAINERS.items()),
)  # fmt: skip
_KNOWN = {module for _, modules, *_ in _ENTRIES for module in modules}
_SAMPLED = (
    (each.name, (module,), partial(_sampled, each.module), harm.BYTES | harm.WHOLE, _read, unjudged)
    for each in FORMATS
    if (module := each.module.rpartition(".")[2]) not in _KNOWN and not each.has_images
)
"""Formats that have no entry: from their samples."""
KINDS: Mapping[str, Kind] = {
    name: Kind(name, modules, partial(_every_seed, name, made), harms, ours, second)
    for name, modules, made, harms, ours, second in (*_ENTRIES, *_SAMPLED)
}
