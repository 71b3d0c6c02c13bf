"""Second readers of binary files, folders and plain text: with zarr, struct and Python's own parser."""

from __future__ import annotations

import ast
import json
import re
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .cases import Seed
from .second import (
    Broken,
    Found,
    Row,
    Unsure,
    decimal,
    finite,
    found,
    frame_of,
    links_by_label,
    whole,
    with_links,
)

Table = list[list[float]]
Links = tuple[tuple[Row, Row], ...]


def read_geff(path: Path, seed: Seed) -> Found:
    """Numbers, places and links by the metadata's axes, once all chunks are there."""
    import zarr

    where = path / str(seed.hint.get("graph", ""))
    try:
        group = zarr.open_group(where, mode="r")
        metadata = dict(group.attrs).get("geff", dict(group.attrs))
        axes = {axis["name"]: axis.get("type") for axis in metadata["axes"]}
        arrays = {name: group[f"nodes/props/{name}/values"] for name in axes}
        ids, edges = group["nodes/ids"], group["edges/ids"]
        missing = [name for name in axes if "missing" in group[f"nodes/props/{name}"]]
        every: list[Any] = [*arrays.values(), ids, edges]
        lost = [array for array in every if array.nchunks_initialized < array.nchunks]
        columns = {name: array[:].tolist() for name, array in arrays.items()}
        numbers, pairs = ids[:].tolist(), edges[:].reshape(-1, 2).tolist()
    except Exception:
        raise Unsure("zarr cannot read it") from None
    if list(axes)[:1] != ["t"] or set(axes) - set("tzyx") or missing or metadata.get("display_hints"):
        raise Unsure("other axes")
    if axes["t"] != "time" or any(axes[name] != "space" for name in axes if name != "t"):
        raise Unsure("other axes")
    if any(array.fill_value is None or array.shape[0] > 1 for array in lost):
        if any(
            axis.get("min") is not None and axis.get("min") == axis.get("max") for axis in metadata["axes"]
        ):
            raise Unsure("a value that is known without its chunk")
        raise Broken("chunks are missing")
    return _graph(numbers, columns, pairs)


def _graph(numbers: list[Any], columns: dict[str, list[Any]], pairs: list[list[Any]]) -> Found:
    try:
        lengths = {len(values) for values in columns.values()} | {len(numbers)}
        flat = [number for pair in pairs for number in pair] + numbers
        plain = all(isinstance(number, int | float) for number in [*flat, *columns["t"]])
    except TypeError:
        raise Unsure("values that are no numbers") from None
    if not plain:
        raise Unsure("values that are no numbers")
    if len(lengths) > 1:
        raise Broken("columns of different lengths")
    if any(number != int(number) for number in flat if number == number) or any(
        number != number for number in flat
    ):
        raise Broken("numbers that are not whole")
    if any(abs(number) >= 2**63 for number in flat):
        raise Unsure("huge numbers")
    rows = [
        (frame_of(frame), *(finite(float(columns[axis][k])) if axis in columns else 0.0 for axis in "zyx"))
        for k, frame in enumerate(columns["t"])
    ]
    place = {int(number): k for k, number in enumerate(numbers)}
    if len(place) < len(numbers):
        raise Broken("a number twice")
    return found(rows, [(place.get(int(a), -1), place.get(int(b), -1)) for a, b in pairs])


def read_mastodon(path: Path, seed: Seed) -> Found:
    """The blocks of the Java stream, number by number."""
    try:
        with zipfile.ZipFile(path) as archive:
            model = archive.read("model.raw")
            archive.read("project.xml")
    except Exception:
        raise Broken("no archive with both files") from None
    data = _java(model)
    try:
        (count,) = struct.unpack_from(">i", data, 0)
        if count < 0:
            raise Broken("a negative count")
        spots = [struct.unpack_from("<3di", data, 4 + k * 84) for k in range(count)]
        place = 4 + count * 84
        (edges,) = struct.unpack_from(">i", data, place)
        if edges < 0 or len(data) < place:
            raise Broken("a negative count")
        pairs = [struct.unpack_from(">2i", data, place + 4 + k * 16) for k in range(edges)]
        struct.unpack_from(">2i", data, place + 4 + edges * 16 - 8) if edges else None
    except struct.error:
        raise Broken("the stream ends before") from None
    rows = [(frame_of(t), finite(z), finite(y), finite(x)) for x, y, z, t in spots]
    return with_links(rows, lambda: pairs)


def _java(model: bytes) -> bytes:
    if model[:4] != b"\xac\xed\x00\x05":
        raise Broken("no stream of Java")
    data, place = b"", 4
    while place < len(model) and model[place] in (0x77, 0x7A):
        head = "B" if model[place] == 0x77 else "I"
        try:
            (length,) = struct.unpack_from(">" + head, model, place + 1)
        except struct.error:
            raise Broken("it ends within a block") from None
        place += 1 + struct.calcsize(head)
        if place + length > len(model):
            raise Broken("it ends within a block")
        data += model[place : place + length]
        place += length
    return data


def _array(path: Path) -> np.ndarray:
    """An array of numbers by the documentation of NumPy's format."""
    content = path.read_bytes()
    if content[:6] != b"\x93NUMPY" or content[6:8] not in (b"\1\0", b"\2\0"):
        raise Broken("no array")
    form = "<H" if content[6] == 1 else "<I"
    try:
        (length,) = struct.unpack_from(form, content, 8)
        first = 8 + struct.calcsize(form)
        head = ast.literal_eval(content[first : first + length].decode("latin-1").strip())
        kind, shape = np.dtype(head["descr"]), head["shape"]
        values = np.frombuffer(content, kind, int(np.prod(shape, dtype=object)), first + length)
        return values.reshape(shape, order="F" if head["fortran_order"] else "C")
    except Exception:
        raise Unsure("another header") from None


def read_npy(path: Path, seed: Seed) -> Found:
    """Rows of an array of tracks."""
    array = _array(path)
    if array.ndim != 2 or array.shape[1] not in (4, 5) or array.dtype.kind not in "iuf":
        raise Broken("no rows of tracks")
    table = array.astype(float).tolist()
    rows = [
        (frame_of(row[1]), *(finite(value) for value in ([0.0] * (5 - len(row)) + row[2:]))) for row in table
    ]
    return with_links(
        rows, lambda: links_by_label([whole(row[0]) for row in table], [row[0] for row in rows])
    )


def read_matrix(path: Path, seed: Seed) -> Found:
    """Its values, row by row."""
    array = _array(path)
    if array.ndim != 2:
        raise Broken("no matrix")
    return matrix_as_found(array)


def matrix_as_found(array: np.ndarray) -> Found:
    """A matrix as what can be compared."""
    if array.dtype.kind not in "biuf":
        raise Unsure("no numbers")
    return found(
        [
            (float(r), 0.0, 0.0, float(c), float(array[r, c]))
            for r in range(array.shape[0])
            for c in range(array.shape[1])
        ],
        None,
    )


def read_myptv(path: Path, seed: Seed) -> Found:
    """Fields by the count of those in the first line."""
    lines = _ascii(path)
    wide = len(lines[0].split()) if lines else 0
    if wide not in (8, 9, 11):
        raise Broken("no such file")
    table = [[_number(field) for field in line.split()] for line in lines]
    if any(len(row) != wide for row in table):
        raise Broken("rows of another length")
    before = {8: 0, 9: 1, 11: 1}[wide]
    rows = [(frame_of(row[-1]), *(finite(v) for v in row[before : before + 3][::-1])) for row in table]
    if wide == 8:
        return found(rows, None)
    return with_links(
        rows, lambda: links_by_label([whole(row[0]) for row in table], [row[0] for row in rows])
    )


def _ascii(path: Path) -> list[str]:
    return path.read_text("ascii", "replace").splitlines()


def _number(field: str) -> float:
    return float(field) if field.lower().lstrip("+-") in ("nan", "inf", "infinity") else decimal(field)


def read_openptv(path: Path, seed: Seed) -> Found:
    """The files of points, and the rows that the files of links name."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    points: dict[int, Table] = {}
    linked: dict[int, Table] = {}
    broken = False
    for file in files:
        if name := re.fullmatch(r"(rt_is|ptv_is)\.([0-9]{1,9})", file.name):
            frame = int(name[2])
            kind = name[1]
            try:
                (points if kind == "rt_is" else linked)[frame] = _ptv_rows(file, kind == "rt_is")
            except Broken:
                if kind == "rt_is" or not (file.parent / f"rt_is.{name[2]}").is_file():
                    raise
                broken = True
    if not points and not linked:
        raise Unsure("no files")
    tables = {frame: [row[1:4] for row in of] for frame, of in points.items()}
    tables |= {frame: [row[2:5] for row in of] for frame, of in linked.items() if frame not in points}
    rows = [
        (frame_of(frame), *(finite(v) for v in place[::-1])) for frame, of in tables.items() for place in of
    ]
    places = found(rows, None).rows
    return Found(places, None, no_tracks=True) if broken else Found(places, *_ptv_links(points, linked))


def _ptv_links(points: dict[int, Table], linked: dict[int, Table]) -> tuple[Links | None, bool]:
    """Links from the rows that follow, by the files of links alone, and whether they are broken."""
    if not set(points) <= set(linked):
        return None, False
    links = []
    for frame, of in linked.items():
        for row in of if frame + 1 in linked else ():
            after = linked[frame + 1]
            try:
                follower = whole(row[1])
            except Broken:  # the points of other files are there all the same
                return None, True
            if follower >= len(after):
                return None, True
            if follower >= 0:
                ends = [
                    (float(t), *one[2:5][::-1]) for t, one in ((frame, row), (frame + 1, after[follower]))
                ]
                links.append((ends[0], ends[1]))
    return tuple(sorted(set(links))), False


def _ptv_rows(file: Path, points: bool) -> list[list[float]]:
    lines = [line for line in _ascii(file) if line.strip()]
    if not lines or not re.fullmatch(r"\s*[0-9]+\s*", lines[0]) or int(lines[0]) != len(lines) - 1:
        raise Broken("another count of rows")
    least = 4 if points else 5
    table = [line.split() for line in lines[1:]]
    if any(len(row) < least for row in table):
        raise Broken("too few numbers")
    return [[_number(field) for field in row[:least]] for row in table]


def read_ctc(path: Path, seed: Seed) -> Found:
    """Centroids of the labels that Pillow reads, and links by the table."""
    folder = path if path.is_dir() else path.parent
    table = next(
        (folder / name for name in ("res_track.txt", "man_track.txt") if (folder / name).is_file()), None
    )
    if table is None:
        raise Unsure("no table")
    rows: list[Row] = []
    labels: list[int] = []
    images: dict[int, Path] = {}
    for file in sorted(folder.iterdir()):
        if name := re.fullmatch(r"(?:mask|man_track)([0-9]+)\.tiff?", file.name):
            if int(name[1]) in images:
                raise Broken("two images of a frame")
            images[int(name[1])] = file
    for frame, file in sorted(images.items()):
        image = _labels(file)
        for label in sorted(set(image.ravel().tolist()) - {0}):
            place = np.argwhere(image == label).mean(axis=0)
            rows.append((frame, *[0.0] * (3 - len(place)), *place.tolist(), float((image == label).sum())))
            labels.append(label)
    _look_at_table(table, images)
    return found(rows, None, digits=9)


def _labels(file: Path) -> np.ndarray:
    from .second_images import pages

    return pages(file)


def _look_at_table(table: Path, images: dict[int, Path]) -> None:
    rows = []
    for line in table.read_text("ascii", "replace").splitlines():
        fields = line.split()
        if fields:
            if len(fields) != 4 or not all(re.fullmatch("[0-9]{1,9}", field) for field in fields):
                raise Broken("no four whole numbers")
            rows.append([int(field) for field in fields])
    if len({row[0] for row in rows}) < len(rows):
        raise Broken("a label with two rows")
    if rows:
        first, last = min(row[1] for row in rows), max(row[2] for row in rows)
        if last - first > 10**6 or any(frame not in images for frame in range(first, last + 1)):
            raise Broken("frames without an image")


def read_record(path: Path, seed: Seed) -> Found:
    """Python's own JSON, flattened."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise Broken("no JSON") from None
    if not isinstance(content, dict):
        raise Broken("no object")
    return record_as_found(
        {name: value for name, value in content.items() if (name, value) != ("written_by", "outbid")}
    )


def record_as_found(record: dict[str, Any]) -> Found:
    """A record as what can be compared: hashes of its text."""
    text = json.dumps(record, sort_keys=True)
    return found([(0.0, 0.0, 0.0, float(mark), float(k)) for k, mark in enumerate(text.encode())], None)
