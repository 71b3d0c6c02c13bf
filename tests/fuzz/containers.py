"""Containers of images: OME-Zarr, HDF5, Imaris, ND2, CZI, LIF; each holds the movie of tests/containers.py.

Only undamaged files have a second reader, for it is known what they hold. Damage must be refused or read,
within the limits, with a clean message: these formats have no checksums of pixels.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from outbid.images import open_images

from .cases import Seed, collected
from .second import Found, Unsure
from .second import found as found_of
from .second_images import image_as_found

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from containers import CONTAINERS, VOXELS


def _made(names: tuple[str, ...], folder: Path) -> list[Seed]:
    """What is written under these names, as far as the packages are installed."""
    found = []
    for name in names:
        write, options, _ = CONTAINERS[name]
        where = folder / name.replace(" ", "_")
        where.mkdir()
        try:
            path = write(where)
        except ModuleNotFoundError:
            continue
        files = collected(where)
        given = path.relative_to(where).as_posix()
        shutil.rmtree(where)
        found.append(Seed(name, files, given, {"channel": options.get("channel", 0)}))
    return found


SEEDS: dict[str, Callable[[Path], list[Seed]]] = {
    "zarr images": partial(_made, ("ome-zarr 0.4", "ome-zarr 0.5", "ome-zarr 0.5 sharded", "zarr")),
    **{name: partial(_made, (name,)) for name in ("hdf5", "imaris", "nd2", "czi", "lif")},
}
"""By the name of the kind."""


def tables(folder: Path) -> list[Seed]:
    """Tables in HDF5: objects and tracks of btrack, localisations of Picasso."""
    try:
        import h5py
    except ModuleNotFoundError:
        return []
    rows = [(float(t), 0.0, 5.0 + 9 * i, 5 + 9 * i + t / 2) for t in range(3) for i in range(2)]
    coords = np.array([(t, x, y, z, 5) for t, z, y, x in rows])
    member, spans = np.array([0, 2, 4, 1, 3, 5]), np.array([(0, 3), (3, 6)])
    kinds = [("frame", "u4"), ("x", "f4"), ("y", "f4"), ("photons", "f4")]
    held: dict[str, dict[str, np.ndarray]] = {
        "btrack.h5": {"tracks/obj_type_1/tracks": member, "tracks/obj_type_1/map": spans},
        "objects.h5": {},
        "lineage.h5": {"tracks/obj_type_1/tracks": member, "tracks/obj_type_1/map": spans,
                       "tracks/obj_type_1/LBEPR": np.array([(1, 0, 2, 1, 1, 0), (2, 0, 2, 2, 2, 0)])},
    }  # fmt: skip
    held = {name: {"objects/obj_type_1/coords": coords, **of} for name, of in held.items()}
    held["locs.hdf5"] = {"locs": np.array([(t, x, y, 9) for t, _, y, x in rows], kinds)}
    deep = [(axis, "f4") for axis in "tzyx"] + [("photons", "f4")]
    held["deep.hdf5"] = {"locs": np.array([(*row, 9) for row in rows], deep)}
    held["columns.h5"] = {f"points/{axis}": coords[:, "txyz".index(axis)] for axis in "tzyx"}
    linked = [(row, row + 2) for row in range(4)]
    found = []
    for name, arrays in held.items():
        with h5py.File(folder / name, "w") as file:
            for place, values in arrays.items():
                file[place] = values
        links = linked if name in ("btrack.h5", "lineage.h5") else None
        hint = {"links": links, "rows": rows}
        found.append(Seed(name, {name: (folder / name).read_bytes()}, name, hint))
    return found


def second_table(path: Path, seed: Seed) -> Found:
    """The table that was written, where nothing is harmed."""
    if path.read_bytes() != seed.files[seed.given]:
        raise Unsure("damaged, and read")
    return found_of(seed.hint["rows"], seed.hint["links"])  # type: ignore[arg-type]


def ours(path: Path, seed: Seed) -> Found:
    """All frames, one after the other."""
    movie = open_images(path, channel=seed.hint["channel"])  # type: ignore[arg-type]
    return image_as_found(np.concatenate([np.asarray(frame) for frame in movie.frames()]))


def second(path: Path, seed: Seed) -> Found:
    """The movie that was written, where nothing is harmed."""
    files = collected(path.parent) if path.parent.is_dir() else {}
    if files != dict(seed.files):
        raise Unsure("damaged, and read")
    return image_as_found(VOXELS.reshape(-1, *VOXELS.shape[2:]))
