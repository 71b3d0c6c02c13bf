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
    with h5py.File(folder / "btrack.h5", "w") as file:
        file["objects/obj_type_1/coords"] = np.array([(t, x, y, z, 5) for t, z, y, x in rows])
        file["tracks/obj_type_1/tracks"] = np.array([0, 2, 4, 1, 3, 5])
        file["tracks/obj_type_1/map"] = np.array([(0, 3), (3, 6)])
    with h5py.File(folder / "locs.hdf5", "w") as file:
        kinds = [("frame", "u4"), ("x", "f4"), ("y", "f4"), ("photons", "f4")]
        file["locs"] = np.array([(t, x, y, 9) for t, _, y, x in rows], kinds)
    links = [(row, row + 2) for row in range(4)]
    return [
        Seed(
            "btrack",
            {"btrack.h5": (folder / "btrack.h5").read_bytes()},
            "btrack.h5",
            {"links": links, "rows": rows},
        ),
        Seed(
            "picasso",
            {"locs.hdf5": (folder / "locs.hdf5").read_bytes()},
            "locs.hdf5",
            {"links": None, "rows": rows},
        ),
    ]


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
