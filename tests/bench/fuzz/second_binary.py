"""Second readers of folders: GEFF by its package, label images and their table."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from .cases import Seed
from .second import Broken, Found, Unsure, by_number, found, row_of
from .second_images import pages

_WHOLE = re.compile("[0-9]{1,9}")


def read_geff(path: Path, seed: Seed) -> Found:
    """Nodes and edges as the package geff reads them, once all chunks are there."""
    import geff
    import zarr

    where = path / str(seed.hint.get("graph", ""))
    try:
        about, group = geff.GeffMetadata.read(where), zarr.open_group(where, mode="r")
        axes = {axis.name: axis for axis in about.axes or ()}
        used = ["nodes/ids", "edges/ids", *(f"nodes/props/{name}/values" for name in axes)]
        lost = [array for name in used if (array := group[name]).nchunks_initialized < array.nchunks]
        has_candidates = "edges/props/solution" in group
    except Exception:
        raise Unsure("geff cannot read its metadata") from None
    types = {name: "time" if name == "t" else "space" for name in axes}
    if not {*"tyx"} <= set(axes) <= {*"tzyx"} or {name: axis.type for name, axis in axes.items()} != types:
        raise Unsure("other axes")
    if about.display_hints or any(axis.scale for axis in axes.values()) or has_candidates:
        raise Unsure("hints, scales, or links that are candidates")
    if any(array.fill_value is None or array.shape[0] > 1 for array in lost):
        if any(axis.min is not None and axis.min == axis.max for axis in axes.values()):
            raise Unsure("a value that is known without its chunk")
        raise Broken("chunks are missing")
    try:
        graph, _ = geff.read(where)
        known = [axis if axis in axes else None for axis in "tzyx"]
        places = [[float(of[axis]) if axis else 0.0 for axis in known] for of in graph.nodes.values()]
    except Exception:
        raise Unsure("geff cannot read it") from None
    return found([row_of(*place) for place in places], by_number([*graph.nodes], graph.edges))


def read_ctc(path: Path, seed: Seed) -> Found:
    """Centroids of the labels that Pillow reads, and frames of the table."""
    folder = path if path.is_dir() else path.parent
    tables = [folder / name for name in ("res_track.txt", "man_track.txt") if (folder / name).is_file()]
    if not tables:
        raise Unsure("no table")
    named = (
        (re.fullmatch(r"(?:mask|man_track)([0-9]+)\.tiff?", file.name), file) for file in folder.iterdir()
    )
    images = [(int(name[1]), file) for name, file in named if name]
    if len(dict(images)) < len(images):
        raise Broken("two images of a frame")
    rows = []
    for frame, file in images:
        image = pages(file)
        for label in {*image.ravel().tolist()} - {0}:
            place = np.argwhere(image == label).mean(axis=0).tolist()
            size = float((image == label).sum())
            rows.append((*row_of(frame, *[0.0] * (3 - len(place)), *place), size))
    _look_at_table(tables[0].read_text("ascii", "replace"), {frame for frame, _ in images})
    return found(rows, None, digits=9)


def _look_at_table(text: str, frames: set[int]) -> None:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if any(len(fields) != 4 or not all(map(_WHOLE.fullmatch, fields)) for fields in lines):
        raise Broken("no four whole numbers")
    if len({int(fields[0]) for fields in lines}) < len(lines):
        raise Broken("a label with two rows")
    if lines:
        first, last = min(int(fields[1]) for fields in lines), max(int(fields[2]) for fields in lines)
        if last - first > 10**6 or not {*range(first, last + 1)} <= frames:
            raise Broken("frames without an image")
