"""Write GEFF version 1 in zarr v2, with all chunks and no fill value; the run record is in ``extra``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._interrupt import undisturbed
from ..detections import Detections
from ..errors import InputError, ResourceError
from ..tracks import Tracks
from . import graph
from .chunks import declare_no_fill
from .geff_folder import foreign
from .outputs import write_whole_folder
from .records import record_bytes


def write_detections(
    path: Path, detections: Detections, record: Mapping[str, object] | None, overwrite: bool
) -> None:
    """See `outbid.formats.write_detections`."""
    write_tracks(path, Tracks(detections, np.empty((0, 2), dtype=np.int64)), record, overwrite)


def write_tracks(path: Path, tracks: Tracks, record: Mapping[str, object] | None, overwrite: bool) -> None:
    """See `outbid.formats.write_tracks`."""
    package()
    arrays_of(tracks.detections)  # refuses what cannot be written

    def write(folder: Path) -> None:
        import zarr

        with zarr.config.set({"array.write_empty_chunks": True}):
            new_graph(folder, tracks.detections, record, edges=(tracks.links, tracks.measures))
        declare_no_fill(folder)

    write_whole_folder(path, write, overwrite=overwrite, foreign=foreign)


def new_graph(
    folder: Path,
    seen: Detections,
    record: Mapping[str, object] | None,
    *,
    edges: tuple[NDArray[np.int64], Mapping[str, NDArray]],
) -> None:
    """Make a graph whose nodes are detections and whose edges are links with their measures.

    Raises
    ------
    InputError
        As `arrays_of`.
    """
    from geff.core_io import write_arrays

    links, measures = edges
    axes: list[dict[str, object]] = [{"name": "t", "type": "time", "unit": "frame"}]
    interval = graph.interval_of(seen.frame, seen.features)
    if interval is not None:
        axes[0] |= {"scale": interval, "scaled_unit": "second"}
    axes += [{"name": name, "type": "space", "unit": seen.unit} for name in "zyx"]
    metadata = package().GeffMetadata.model_validate(
        {
            "geff_version": "1.1.0", "directed": True, "axes": axes, "node_props_metadata": {},
            "edge_props_metadata": {},
            "extra": {} if record is None else {"outbid": json.loads(record_bytes(record))},
        }
    )  # fmt: skip
    with undisturbed():  # otherwise zarr's threads might write into a folder that is being removed
        write_arrays(
            folder,
            np.arange(len(seen), dtype=np.uint64),
            {name: {"values": of, "missing": None} for name, of in arrays_of(seen).items()},
            links.astype(np.uint64),
            {name: {"values": of, "missing": None} for name, of in measures.items()},
            metadata,
            zarr_format=2,
        )


def arrays_of(seen: Detections) -> dict[str, NDArray]:
    """Properties of the nodes: t, z, y, x and the features.

    Raises
    ------
    InputError
        If a frame is negative, or the name of a feature cannot be the name of an array.
    """
    if len(seen) and seen.frame[0] < 0:
        raise InputError(f"Frame {seen.frame[0]} is negative. Number frames from 0 up to write them.")
    graph.refuse_hidden(seen.features)
    odd = [name for name in seen.features if "/" in name or name in (*"tzyx", ".", "..")]
    if odd:
        raise InputError(f"A feature called {odd[0]!r} cannot be an array's name. Rename it.")
    values = {"t": seen.frame.astype(np.int64), **dict(zip("zyx", seen.position.T, strict=True))}
    features = {name: of if of.dtype.kind != "O" else of.astype(str) for name, of in seen.features.items()}
    return {name: np.ascontiguousarray(of) for name, of in {**values, **features}.items()}


def package() -> Any:
    """The package `geff`.

    Raises
    ------
    ResourceError
        If it is not installed.
    """
    try:
        import geff
    except ModuleNotFoundError:
        raise ResourceError(
            "GEFF needs a package that is not installed: pip install 'outbid[geff]'."
        ) from None
    return geff
