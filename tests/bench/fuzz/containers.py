"""Containers of images: OME-Zarr, HDF5, Imaris, ND2, CZI, LIF; each holds the movie of tests/containers.py.

Only undamaged files have a second reader, for it is known what they hold. Damage must be refused or read,
within the limits, with a clean message: these formats have no checksums of pixels. The same holds for tables
in HDF5.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

from outbid.formats.images.opening import open_images

from .cases import Seed, collected
from .second import Found, Unsure, found
from .second_images import image_as_found
from .seeds import one_file, saved

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from containers import CONTAINERS, VOXELS

_ZARR = ("ome-zarr 0.4", "ome-zarr 0.5", "ome-zarr 0.5 sharded", "zarr")
NAMES = {"zarr images": _ZARR, **{name: (name,) for name in ("hdf5", "imaris", "nd2", "czi", "lif")}}
"""Entries of tests/containers.py by the name of the kind."""


def images(kind: str, folder: Path) -> list[Seed]:
    """What is written under the names of a kind, as far as the packages are installed."""
    seeds = []
    for name in NAMES[kind]:
        write, options, _ = CONTAINERS[name]
        where = folder / "made"
        where.mkdir()
        try:
            given = write(where).relative_to(where).as_posix()
        except ModuleNotFoundError:
            continue
        else:
            seeds.append(Seed(name, collected(where), given, {"channel": options.get("channel", 0)}))
        finally:
            shutil.rmtree(where)
    return seeds


def tables(folder: Path) -> list[Seed]:
    """Tables in HDF5: objects and tracks of btrack, localisations of Picasso."""
    try:
        import h5py
    except ModuleNotFoundError:
        return []
    rows = [(float(t), 0.0, 5.0 + 9 * i, 5 + 9 * i + t / 2) for t in range(3) for i in range(2)]
    coords = np.array([(t, x, y, z, 5) for t, z, y, x in rows])
    objects = {"objects/obj_type_1/coords": coords}
    tracked = {**objects, "tracks/obj_type_1/tracks": np.array([0, 2, 4, 1, 3, 5])}
    tracked["tracks/obj_type_1/map"] = np.array([(0, 3), (3, 6)])
    lineage = np.array([(1, 0, 2, 1, 1, 0), (2, 0, 2, 2, 2, 0)])
    kinds = {axis: [(name, "f4") for name in (*axis, "photons")] for axis in ("xy", "tzyx")}
    flat, deep = [("frame", "u4"), *kinds["xy"]], kinds["tzyx"]
    held: dict[str, dict[str, Any]] = {
        "btrack.h5": tracked,
        "objects.h5": objects,
        "lineage.h5": {**tracked, "tracks/obj_type_1/LBEPR": lineage},
        "locs.hdf5": {"locs": np.array([(t, x, y, 9) for t, _, y, x in rows], flat)},
        "deep.hdf5": {"locs": np.array([(*row, 9) for row in rows], deep)},
        "columns.h5": {f"points/{axis}": coords[:, "txyz".index(axis)] for axis in "tzyx"},
    }

    def content(arrays: dict[str, Any]) -> bytes:
        def write(file: Any) -> None:
            with h5py.File(file, "w") as made:
                for place, values in arrays.items():
                    made[place] = values

        return saved(write)

    links = [(row, row + 2) for row in range(4)]
    return [
        one_file(
            name, content(arrays), {"made": found(rows, links if "tracks/obj_type_1/map" in arrays else None)}
        )
        for name, arrays in held.items()
    ]


def ours(path: Path, seed: Seed) -> Found:
    """All frames, one after the other."""
    movie = open_images(path, channel=seed.hint["channel"])  # type: ignore[arg-type]
    return image_as_found(np.concatenate([np.asarray(frame) for frame in movie.frames()]))


def second(path: Path, seed: Seed) -> Found:
    """What was written, where nothing is harmed."""
    if collected(path.parent) != dict(seed.files):
        raise Unsure("damaged, and read")
    made = seed.hint.get("made")
    return made if isinstance(made, Found) else image_as_found(VOXELS.reshape(-1, *VOXELS.shape[2:]))
