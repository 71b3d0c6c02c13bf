"""GEFF, the graph exchange file format: a folder of zarr arrays (https://liveimagetrackingtools.org/geff).

Needs the extra: pip install 'outbid[geff]'. Outbid reads versions 0.1 to 1, also inside a zarr container. It
writes version 1 in zarr v2, with all chunks and no fill value. The run record is stored in ``extra``.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...particles.calibration import Calibration
from ...particles.tracks import LINK_MEASURES, Tracks
from ..contract import PositionFormat
from ..files.packages import package
from ..files.units import TIMES, unit_of
from ..tables import columns
from ..tables import edges as numbered
from .geff_checks import absent_chunks, checked, explained, foreign, inside, row_count
from .geff_write import write_tracks

_LOG = logging.getLogger("outbid")
_TIME = ("t", "time", "frame")
_FRAME = ("frame", "timepoint")
_Read = tuple[
    NDArray[np.int64], dict[str, NDArray], NDArray[np.int64], dict[str, NDArray], dict[str, Any]
]  # fmt: skip
"""Node numbers, properties, links and link properties; and names of arrays that lack chunks."""


def recognises(path: Path, *_: object) -> bool:
    """Whether a folder is a zarr group or container."""
    return path.is_dir() and any(
        (folder / name).is_file() for folder in inside(path) for name in (".zgroup", ".zattrs", "zarr.json")
    )


def read_tracks(path: Path, *_: object) -> Tracks:
    """See `outbid.formats.read_tracks`."""
    package("geff", "GEFF", "geff")
    with explained(path):
        return _tracks(path)


def holds_tracks(path: Path, *_: object) -> bool:
    """See `outbid.formats.holds_tracks`."""
    with explained(path):
        return row_count(checked(path)[0] / "edges" / "ids") > 0


def read_record(path: Path) -> dict[str, Any] | None:
    """See `outbid.formats.read_record`."""
    with explained(path):
        extra = checked(path)[1].get("extra")
    record = extra.get("outbid") if isinstance(extra, dict) else None
    return record if isinstance(record, dict) else None


def _tracks(path: Path) -> Tracks:
    where, metadata = checked(path)
    read = _read if "node_props_metadata" in metadata else _read_old
    node, nodes, edges, of_edge, absent = read(where)
    if "solution" in of_edge:  # candidates, as Outbid and tracksdata write them
        chosen, named = of_edge.pop("solution") == 1, {"probability": "link_probability"}
        of_edge = {named.get(name, name): of[chosen] for name, of in of_edge.items() if name != "pin"}
        edges = edges[chosen]
    axes = _axes(path, metadata, nodes)
    position = np.zeros((len(node), 3))
    for name, axis in axes.items():
        if axis in "zyx":
            position[:, "zyx".index(axis)] = nodes[name]
    time = _time(nodes, next(name for name, axis in axes.items() if axis == "t"))
    frame = _frames(path, nodes, time)
    listed = metadata.get("axes") or ()
    of_axis = {axes[axis["name"]]: axis for axis in listed if axis.get("name") in axes}
    interval = _number(of_axis.get("t", {}).get("scale"))
    if interval:
        interval *= TIMES.get(str(of_axis["t"].get("scaled_unit")), 1.0)
    unit, scale, offset = _calibration(path, of_axis)
    position = position * scale + offset
    # Use the order in the metadata: the order in the folder differs from machine to machine.
    order = [name for name in metadata.get("node_props_metadata", ()) if name in nodes]
    features = {
        key: values
        for name in dict.fromkeys([*order, *sorted(nodes)])
        if name not in axes
        if name.lower() not in _FRAME or not np.array_equal(nodes[name], frame)  # duplicates the frame
        for key, values in _columns(name, nodes[name])
    }
    if interval and "time" not in features:
        features["time"] = frame * interval
    calibration = Calibration(unit_of(unit), interval=interval or None)
    measures = {name: of_edge[name] for name in LINK_MEASURES if name in of_edge}
    kept = {name.rpartition("_")[0] for name in features} | {*features, *axes, *_FRAME}
    lost = [name for name in nodes if name not in kept] + [name for name in of_edge if name not in measures]
    if lost:
        _LOG.warning(
            "%s: %s: left out, for a detection or link has one number or text", path, ", ".join(lost)
        )
    _refuse_lost(path, absent, listed, {*axes, time})
    _say_filled(path, absent, [*features, *measures])
    return numbered.tracks_of(path, node, frame, position, edges, calibration, features, measures)


def _calibration(
    path: Path, axes: Mapping[str, Mapping[str, Any]]
) -> tuple[str | None, NDArray[np.float64], NDArray[np.float64]]:
    """The unit of the positions, and what z, y and x are multiplied by and shifted by so that they are in it.

    Raises InputError if the axes have several units.
    """
    scales = {axis: _number(axes.get(axis, {}).get("scale")) for axis in "zyx"}
    shifts = [axes.get(axis, {}).get("offset") for axis in "zyx"]
    offset = np.array([by if isinstance(by, int | float) and math.isfinite(by) else 0.0 for by in shifts])
    used = "scaled_unit" if any(scales.values()) else "unit"
    units = {axis: of.get(used) or of.get("unit") for axis, of in axes.items() if axis in "zyx"}
    if len({unit_of(unit) for unit in units.values()}) > 1:
        raise InputError(f"{path}: its axes are in several units: {units}. Convert to one unit.")
    unit = units.get("x")
    scale = np.array([value or 1.0 for value in scales.values()])
    if any(scales.values()) or offset.any():
        _LOG.warning(
            "%s: positions are multiplied by the scale of its axes, z, y, x = %s %s, and shifted by %s",
            path, scale.tolist(), unit, offset.tolist(),
        )  # fmt: skip
    return unit, scale, offset


def _number(value: object) -> float | None:
    """A scale that is a number above 0."""
    return float(value) if isinstance(value, int | float) and 0 < value < math.inf else None


def _columns(name: str, values: NDArray) -> Iterator[tuple[str, NDArray]]:
    """The features of a property: numbers or text; of several numbers a node, one feature for each."""
    if values.ndim == 1 and (values.dtype.kind in "biuf" or numbered.is_text(values)):
        yield name, values
    elif values.ndim > 1 and values.dtype.kind in "biuf":
        flat = values.reshape(len(values), -1)
        yield from ((f"{name}_{k}", flat[:, k]) for k in range(flat.shape[1]))


def _refuse_lost(
    path: Path, absent: Mapping[str, Any], axes: Iterable[Mapping[str, Any]], needed: set[str]
) -> None:
    """Refuse missing chunks that cannot be distinguished from lost ones.

    zarr does not store chunks that contain only the fill value, so a lost chunk is read as fill values. The
    metadata of an axis state its range; a missing chunk is accepted only if this range is a single value.
    """
    constant = {axis["name"]: axis["min"] for axis in axes if axis.get("min") is not None
                if axis.get("min") == axis.get("max")}  # fmt: skip
    for name, array in absent.items():
        group, *_, last = name.split("/")
        of = _property_of(name)
        numbers = last == "ids" and (group == "edges" or array.shape[0] > 1)  # a single node may be 0
        position = group == "nodes" and last == "values" and of in needed
        if numbers or (position and constant.get(of) != array.fill_value) or array.fill_value is None:
            count = array.nchunks - array.nchunks_initialized
            raise InputError(
                f"{path}: {count} of {array.nchunks} chunks of {name} are missing. Copy the folder again, or "
                "export it with all chunks (in zarr: write_empty_chunks)."
            )


def _say_filled(path: Path, absent: Mapping[str, Any], names: Iterable[str]) -> None:
    """Log which properties are read as their fill value, wholly or in part."""
    for name, array in absent.items():
        if _property_of(name) in {*names}:
            _LOG.warning("%s: chunks of %s are not stored: read as %s", path, name, array.fill_value)


def _property_of(name: str) -> str:
    """Name of a property from the path of its array: nodes/props/x/values gives x."""
    return name.split("/")[2] if name.count("/") > 2 else ""


def _read(where: Path) -> _Read:
    import zarr
    from geff.core_io import read_to_memory

    found = read_to_memory(where)
    nodes = {name: _filled(prop["values"], prop["missing"]) for name, prop in found["node_props"].items()}
    edges = {name: _filled(prop["values"], prop["missing"]) for name, prop in found["edge_props"].items()}
    absent = absent_chunks(zarr.open_group(where, mode="r"))
    return _whole(found["node_ids"]), nodes, _whole(found["edge_ids"]).reshape(-1, 2), edges, absent


def _filled(values: NDArray, missing: NDArray | None) -> NDArray:
    if missing is None or not missing.any() or values.dtype.kind not in "biuf":
        return values
    return np.where(missing, np.nan, values.astype(np.float64))


def _whole(ids: NDArray) -> NDArray[np.int64]:
    whole = ids.astype(np.int64)
    if not np.array_equal(whole, ids):
        raise InputError("node numbers are not whole")
    return whole


def _read_old(where: Path) -> _Read:
    """Read layouts before 1.0, which the package geff cannot read: "attrs" for "props", no types."""
    import zarr
    from zarr.core.buffer import default_buffer_prototype

    # Arrays of strings may be declared as <i4 with fill value "", which zarr refuses; fix it in a copy.
    store, prototype = zarr.storage.MemoryStore(), default_buffer_prototype()
    for file in where.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            if file.name == ".zarray" and (metadata := json.loads(content)).get("fill_value") == "":
                content = json.dumps(metadata | {"dtype": _text_type(file.parent, metadata)}).encode()
            name = file.relative_to(where).as_posix()
            store._store_dict[name] = prototype.buffer.from_bytes(content)
    group: Any = zarr.open_group(store, mode="r", zarr_format=2)
    nodes = {}
    for kind in ("props", "attrs"):
        if f"nodes/{kind}" in group:
            for name, prop in group[f"nodes/{kind}"].groups():
                missing = prop["missing"][:].astype(bool) if "missing" in prop else None
                nodes[name] = _filled(prop["values"][:], missing)
    absent = absent_chunks(group)
    ids, edges = group["nodes/ids"][:], group["edges/ids"][:].reshape(-1, 2)
    if ids.dtype.kind == "U":
        known, node = np.unique(ids, return_inverse=True)
        index = np.searchsorted(known, edges)
        if (known[np.minimum(index, len(known) - 1)] != edges).any():
            raise InputError("an edge names a node that is not there")
        return node.astype(np.int64), nodes, index.astype(np.int64), {}, absent
    return _whole(ids), nodes, _whole(edges), {}, absent


def _text_type(array: Path, metadata: Mapping[str, Any]) -> str:
    """The dtype of an array of strings, from the size of its first chunk: 4 bytes per character."""
    import numcodecs

    chunk = next((file for file in sorted(array.iterdir()) if not file.name.startswith(".")), None)
    if chunk is None:
        raise InputError(f"{array} has no chunk. Export the graph again.")
    size = len(numcodecs.get_codec(metadata["compressor"]).decode(chunk.read_bytes()))
    return f"<U{size // 4 // math.prod(metadata['chunks'])}"


def _axes(path: Path, metadata: Mapping[str, Any], nodes: Mapping[str, NDArray]) -> dict[str, str]:
    """The properties for t, z, y, x, from display hints, axis types, or the last letter of the name."""
    hints = metadata.get("display_hints") or {}
    by_hint = {"display_time": "t", "display_depth": "z", "display_vertical": "y", "display_horizontal": "x"}
    roles = {hints[hint]: axis for hint, axis in by_hint.items() if isinstance(hints.get(hint), str)}
    listed = metadata.get("axes") or [{"name": name} for name in metadata.get("axis_names") or ()]
    for axis in listed:
        name = str(axis.get("name"))
        if axis.get("type") == "time":
            roles.setdefault(name, "t")
        elif name[-1:].lower() in "zyx" and axis.get("type") in ("space", None):
            roles.setdefault(name, name[-1:].lower())
    if not listed:
        found = columns.roles_of([*nodes])
        roles |= {found[axis]: axis for axis in "zyx" if axis in found and axis not in roles.values()}
    if "t" not in roles.values():
        roles |= {name: "t" for name in _TIME if name in nodes and "t" not in roles.values()}
    lost = [name for name in roles if name not in nodes]
    if lost or not {"t", "y", "x"} <= set(roles.values()):
        raise InputError(
            f"{path}: no {'array of ' + lost[0] if lost else 'properties for t, y and x'} among "
            f"{sorted(nodes)[:12]}. Export the graph again, with its axes."
        )
    return roles


def _time(nodes: Mapping[str, NDArray], axis: str) -> str:
    """The property with frame numbers: the time axis, or property frame if the axis has an unusual name."""
    named = [name for name in nodes if name.lower() in _FRAME and nodes[name].dtype.kind in "iu"]
    return named[0] if axis.lower() not in _TIME and named else axis


def _frames(path: Path, nodes: Mapping[str, NDArray], time: str) -> NDArray:
    frame = nodes[time]
    if not (np.isfinite(frame) & (frame == np.rint(frame))).all():
        raise InputError(f"{path}: time {time!r} is not in whole frames. Add a property called frame.")
    return frame.astype(np.int64)


FORMAT = PositionFormat(
    read_detections=lambda path, _: read_tracks(path).detections, read_tracks=read_tracks,
    holds_tracks=holds_tracks, recognises=recognises, write=write_tracks, read_record=read_record,
    foreign=foreign,
)  # fmt: skip
