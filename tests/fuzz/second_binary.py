"""Second readers of folders: GEFF by zarr alone, label images and their table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from .cases import Seed
from .second import Broken, Found, Row, Unsure, finite, found, frame_of


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
    if any(axis.get("scale") for axis in metadata["axes"]) or "edges/props/solution" in group:
        raise Unsure("scales, or links that are candidates")
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
