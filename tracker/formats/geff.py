"""GEFF, the graph exchange file format: a folder of zarr arrays (https://liveimagetrackingtools.org/geff).

Needs the extra: pip install 'outbid[geff]'. Read are versions 0.1 to 1, also inside a zarr container;
written is version 1 in zarr v2. The run record stands in ``extra``. Before anything is opened, the folder
is checked: no link leads out of it, no array is decoded by code that could run a program, all fit the memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..detections import Detections
from ..errors import InputError, OutbidError, ResourceError
from ..tracks import LINK_MEASURES, Tracks
from . import graph
from .chunks import refuse_bombs
from .folder import write_whole_folder
from .memory import refuse_if_larger_than_memory
from .records import record_bytes

MAKES_FOLDER = True
_HARMLESS = {
    None, "blosc", "zstd", "lz4", "zlib", "gzip", "bz2", "lzma", "shuffle", "delta", "vlen-utf8", "bytes",
    "crc32c", "transpose", "sharding_indexed", "default", "v2",
}  # fmt: skip
_TIME = ("t", "time", "frame")
_FRAME = ("frame", "timepoint")


def recognises(path: Path) -> bool:
    """Whether a folder is a zarr group or container."""
    return path.is_dir() and any(
        (folder / name).is_file() for folder in _inside(path) for name in (".zgroup", ".zattrs", "zarr.json")
    )


def read_detections(path: Path) -> Detections:
    """See `outbid.formats.read_detections`."""
    return read_tracks(path).detections


def read_tracks(path: Path) -> Tracks:
    """See `outbid.formats.read_tracks`."""
    where, metadata = _checked(path)
    with _explained(path):
        node, nodes, edges, of_edge = _read_old(where) if _is_old(metadata) else _read(where)
    axes = _axes(path, metadata, nodes)
    place = np.zeros((len(node), 3))
    for name, axis in axes.items():
        if axis in "zyx":
            place[:, "zyx".index(axis)] = nodes[name]
    frame = _frames(path, nodes, next(name for name, axis in axes.items() if axis == "t"))
    listed = metadata.get("axes") or ()
    unit = next((axis.get("unit") for axis in listed if axes.get(axis.get("name")) == "x"), None)
    # In the order of the metadata: that of the folder differs from machine to machine.
    order = [name for name in metadata.get("node_props_metadata", ()) if name in nodes]
    features = {
        name: nodes[name]
        for name in dict.fromkeys([*order, *sorted(nodes)])
        if name not in axes and nodes[name].dtype.kind in "biuf" and nodes[name].ndim == 1
        if name.lower() not in _FRAME or not np.array_equal(nodes[name], frame)  # the frame once more
    }
    measures = {name: of_edge[name] for name in LINK_MEASURES if name in of_edge}
    return graph.tracks_of(path, node, frame, place, edges, unit, features, measures)


def holds_tracks(path: Path) -> bool:
    """See `outbid.formats.holds_tracks`."""
    where, _ = _checked(path)
    return bool(_shape(where / "edges" / "ids")[0])


def read_record(path: Path) -> dict[str, Any] | None:
    """See `outbid.formats.read_record`."""
    record = (_checked(path)[1].get("extra") or {}).get("outbid")
    return record if isinstance(record, dict) else None


def write_detections(
    path: Path, detections: Detections, record: Mapping[str, object] | None, overwrite: bool
) -> None:
    """See `outbid.formats.write_detections`."""
    write_tracks(path, Tracks(detections, np.empty((0, 2), dtype=np.int64)), record, overwrite)


def write_tracks(path: Path, tracks: Tracks, record: Mapping[str, object] | None, overwrite: bool) -> None:
    """See `outbid.formats.write_tracks`."""
    package = _package()
    seen = tracks.detections
    if len(seen) and seen.frame[0] < 0:
        raise InputError(f"Frame {seen.frame[0]} is negative. Number frames from 0 up to write them.")
    graph.refuse_hidden(seen.features)
    values = {"t": seen.frame.astype(np.int64), **dict(zip("zyx", seen.position.T, strict=True))}
    values |= seen.features
    odd = [name for name in seen.features if "/" in name or name in (*"tzyx", ".", "..")]
    if odd:
        raise InputError(f"A feature called {odd[0]!r} cannot be an array's name. Rename it.")
    measures = tracks.measures
    axes = [{"name": "t", "type": "time", "unit": "frame"}]
    axes += [{"name": name, "type": "space", "unit": seen.unit} for name in "zyx"]
    metadata = package.GeffMetadata.model_validate(
        {
            "geff_version": "1.1.0", "directed": True, "axes": axes, "node_props_metadata": {},
            "edge_props_metadata": {},
            "extra": {} if record is None else {"outbid": json.loads(record_bytes(record))},
        }
    )  # fmt: skip

    def write(folder: Path) -> None:
        from geff.core_io import write_arrays

        write_arrays(
            folder,
            np.arange(len(seen), dtype=np.uint64),
            {name: {"values": np.ascontiguousarray(v), "missing": None} for name, v in values.items()},
            tracks.links.astype(np.uint64),
            {name: {"values": v, "missing": None} for name, v in measures.items()},
            metadata,
            zarr_format=2,
        )

    write_whole_folder(path, write, overwrite=overwrite, is_ours=recognises)


def _package() -> Any:
    try:
        import geff
    except ModuleNotFoundError:
        raise ResourceError(
            "GEFF needs a package that is not installed: pip install 'outbid[geff]'."
        ) from None
    return geff


class _explained:  # a context manager
    """What geff and zarr raise about a damaged folder, as an InputError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        _package()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, OutbidError):
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise InputError(f"{self._path} cannot be read as GEFF: {reason}. Export it again.") from None


def _inside(path: Path) -> Iterator[Path]:
    yield path
    yield from (child for child in sorted(path.iterdir()) if child.is_dir())


def _checked(path: Path) -> tuple[Path, dict[str, Any]]:
    """The folder with the graph, at `path` or one below, and its metadata, once all of it is harmless."""
    found = {folder: metadata for folder in _inside(path) if (metadata := _metadata(folder)) is not None}
    if len(found) != 1:
        names = ", ".join(folder.name for folder in found)
        raise InputError(
            f"{path} holds {f'several graphs ({names}): name one' if found else 'no GEFF'}. Give its folder."
        )
    ((where, metadata),) = found.items()
    needed = 0.0
    root = where.resolve()
    for file in where.rglob("*"):
        if not file.resolve().is_relative_to(root):
            raise InputError(f"{path}: {file.relative_to(path)} leads out of the folder: refused.")
        if file.name in (".zarray", "zarr.json"):
            needed += _size_if_harmless(path, file)
    refuse_if_larger_than_memory(path, 2 * needed)
    return where, metadata


def _metadata(folder: Path) -> dict[str, Any] | None:
    """What the folder states of its graph; None if it has none."""
    for name in (".zattrs", "zarr.json"):
        if (folder / name).is_file():
            attributes = _json(folder / name)
            attributes = attributes.get("attributes", {}) if name == "zarr.json" else attributes
            metadata = attributes if "geff_version" in attributes else attributes.get("geff")
            if isinstance(metadata, dict) and "geff_version" in metadata:
                return metadata
    return None


def _json(file: Path) -> dict[str, Any]:
    try:
        metadata = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is damaged: {error}. Export the graph again.") from None
    if not isinstance(metadata, dict):
        raise InputError(f"{file} is damaged: it holds no object. Export the graph again.")
    return metadata


def _size_if_harmless(path: Path, file: Path) -> float:
    """Bytes that an array takes, after a look at how it is decoded."""
    metadata = _json(file)
    if metadata.get("node_type") == "group":
        return 0.0
    parts = [metadata.get("compressor"), *(metadata.get("filters") or ()), *(metadata.get("codecs") or ())]
    names = {part.get("id", part.get("name")) if isinstance(part, dict) else part for part in parts}
    strange = sorted(str(name) for name in names - _HARMLESS)
    dtype = metadata.get("dtype", metadata.get("data_type"))
    if strange or "O" in str(dtype):
        raise InputError(
            f"{path}: {file.parent.relative_to(path)} is of type {dtype}, coded by "
            f"{', '.join(strange) or 'objects'}, which could run any program: refused. Export numbers."
        )
    shape = metadata.get("shape")
    if not isinstance(shape, list) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise InputError(f"{path}: {file.parent.relative_to(path)} has no shape. Export the graph again.")
    try:
        width = np.dtype(dtype).itemsize
    except TypeError:
        width = 8
    refuse_bombs(file.parent, metadata, width)
    return float(math.prod(shape)) * width


def _shape(array: Path) -> list[int]:
    file = array / ".zarray" if (array / ".zarray").is_file() else array / "zarr.json"
    if not file.is_file():
        raise InputError(f"{array} is missing. Export the graph again.")
    return list(_json(file)["shape"])


def _is_old(metadata: Mapping[str, Any]) -> bool:
    return "node_props_metadata" not in metadata


def _read(where: Path) -> tuple[NDArray, dict[str, NDArray], NDArray, dict[str, NDArray]]:
    from geff.core_io import read_to_memory

    found = read_to_memory(where)
    nodes = {name: _filled(prop["values"], prop["missing"]) for name, prop in found["node_props"].items()}
    edges = {name: _filled(prop["values"], prop["missing"]) for name, prop in found["edge_props"].items()}
    return _whole(found["node_ids"]), nodes, _whole(found["edge_ids"]).reshape(-1, 2), edges


def _filled(values: NDArray, missing: NDArray | None) -> NDArray:
    if missing is None or not missing.any() or values.dtype.kind not in "biuf":
        return values
    return np.where(missing, np.nan, values.astype(np.float64))


def _whole(ids: NDArray) -> NDArray[np.int64]:
    whole = ids.astype(np.int64)
    if not np.array_equal(whole, ids):
        raise InputError("node numbers are not whole")
    return whole


def _read_old(where: Path) -> tuple[NDArray, dict[str, NDArray], NDArray, dict[str, NDArray]]:
    """Layouts before 1.0, which the package does not read: no types declared, "attrs" for "props"."""
    import zarr
    from zarr.core.buffer import default_buffer_prototype

    # Arrays of texts may be declared as <i4 filled with "", at which zarr stumbles: corrected in a copy.
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
    ids, edges = group["nodes/ids"][:], group["edges/ids"][:].reshape(-1, 2)
    if ids.dtype.kind == "U":
        known, node = np.unique(ids, return_inverse=True)
        place = np.searchsorted(known, edges)
        if (known[np.minimum(place, len(known) - 1)] != edges).any():
            raise InputError("an edge names a node that is not there")
        return node.astype(np.int64), nodes, place.astype(np.int64), {}
    return _whole(ids), nodes, _whole(edges), {}


def _text_type(array: Path, metadata: Mapping[str, Any]) -> str:
    """The type of an array of texts, by the size of its first chunk: 4 bytes a character."""
    import numcodecs

    chunk = next(file for file in sorted(array.iterdir()) if not file.name.startswith("."))
    size = len(numcodecs.get_codec(metadata["compressor"]).decode(chunk.read_bytes()))
    return f"<U{size // 4 // math.prod(metadata['chunks'])}"


def _axes(path: Path, metadata: Mapping[str, Any], nodes: Mapping[str, NDArray]) -> dict[str, str]:
    """Which property is which of t, z, y, x: by the display hints, the type, and the name's last letter."""
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
    if "t" not in roles.values():
        roles |= {name: "t" for name in _TIME if name in nodes and "t" not in roles.values()}
    lost = [name for name in roles if name not in nodes]
    if lost or not {"t", "y", "x"} <= set(roles.values()):
        raise InputError(
            f"{path}: no {'array of ' + lost[0] if lost else 'axes t, y and x'} among {sorted(nodes)[:12]}. "
            "Export the graph again, with its axes."
        )
    return roles


def _frames(path: Path, nodes: Mapping[str, NDArray], time: str) -> NDArray:
    """Frame numbers: the axis of time, or a property called so where that is in minutes or the like."""
    named = [name for name in nodes if name.lower() in _FRAME and nodes[name].dtype.kind in "iu"]
    if time.lower() not in _TIME and named:
        time = named[0]
    frame = nodes[time]
    if not (np.isfinite(frame) & (frame == np.rint(frame))).all():
        raise InputError(f"{path}: time {time!r} is not in whole frames. Add a property called frame.")
    return frame.astype(np.int64)
