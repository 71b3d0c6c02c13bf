"""Tables in HDF5: the tracks of btrack, the localisations of Picasso, and data sets of named columns."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...errors import InputError, OutbidError
from ..files.hdf5 import file_at, objects_in
from ..files.memory import refuse_if_larger_than_memory
from ..files.packages import damage_explained
from .columns import AS_NAMED, missing_roles, roles_of
from .rows import Rows, cells_of
from .table import format_of_tables

_LOG = logging.getLogger("outbid")
_COORDS = ("t", "x", "y", "z", "label")
"""Columns of the coordinates of objects in files of btrack."""


def recognises(path: Path, columns: Mapping[str, str] = AS_NAMED) -> bool:
    """Whether the file holds a table of positions."""
    try:
        with file_at(str(path)) as file, damage_explained(str(path), "HDF5"):
            return next(_kinds_of_table(file, columns), None) is not None
    except OutbidError:  # reading it says so
        return False


def read_table(path: Path, columns: Mapping[str, str]) -> Rows:
    """Read the first table of the file."""
    with file_at(str(path)) as file, damage_explained(str(path), "HDF5"):
        found = next(_kinds_of_table(file, columns), None)
        if found is None:
            raise InputError(f"{path} holds no table of frame, y and x. Export the tracks as CSV.")
        refuse_if_larger_than_memory(path, 3.0 * sum(each.nbytes for each in found.values()))
        made = pa.table({name: np.ascontiguousarray(values[()]) for name, values in found.items()})

    if {"photons", "z"} <= {*made.column_names}:
        _LOG.warning(
            "%s: in files of Picasso z is in nanometers, x and y are in pixels of the camera. To link in "
            "pixels: --spacing 1/NANOMETERS 1 1", path,
        )  # fmt: skip
    return Rows(path, made, cells_of(made), None, columns)


def _kinds_of_table(file: Any, columns: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """Columns by name, as data sets or arrays, of each table in the file."""
    for each in objects_in(file, {file}):
        names = getattr(getattr(each, "dtype", None), "names", None)
        if names and len(each.shape) == 1 and _is_table(list(names), columns):
            yield {name: each[name] for name in names if each.dtype[name].kind in "biuf"}
        elif each.name.startswith("/objects/") and each.name.endswith("/coords"):
            yield _of_btrack(file, each)
        elif hasattr(each, "keys"):
            flat = {name: each[name] for name in each if len(getattr(each[name], "shape", ())) == 1}
            kept = {name: of for name, of in flat.items() if of.dtype.kind in "biuf"}
            if len({len(of) for of in kept.values()}) == 1 and _is_table(list(kept), columns):
                yield kept


def _is_table(names: list[str], columns: Mapping[str, str]) -> bool:
    try:
        return not missing_roles(roles_of(names, columns), names)
    except InputError:
        return False


def _of_btrack(file: Any, coords: Any) -> dict[str, NDArray]:
    """Coordinates of btrack with the number of each object's track, and of that track's parent."""
    coordinates = coords[:]
    columns = {name: coordinates[:, k] for k, name in enumerate(_COORDS[: coordinates.shape[1]])}
    where = f"/tracks/{coords.name.split('/')[2]}"
    if where not in file:
        return columns
    members, spans = file[where]["tracks"][:], file[where]["map"][:]
    about = file[where]["LBEPR"][:] if "LBEPR" in file[where] else None
    number = np.arange(1, len(spans) + 1) if about is None else about[:, 0]
    track, parent = np.full((2, len(coordinates)), -1)
    for row, (first, last) in enumerate(spans):
        objects = members[first:last]
        objects = objects[objects >= 0]  # the others were interpolated
        if len(objects) and objects.max() >= len(coordinates):
            raise InputError(f"object {objects.max()} of a track is not there. Export the tracks again.")
        track[objects], parent[objects] = number[row], -1 if about is None else about[row, 3]
    return {**columns, "track_id": track, "parent": np.where(np.isin(parent, track), parent, -1)}


FORMAT = replace(format_of_tables(read_table), recognises=recognises)
