"""Good images, and files that belong to label images or to what cameras saw."""

from __future__ import annotations

import io
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from .cases import Seed
from .seeds import one_file, saved

VOXELS = np.random.default_rng(0).integers(0, 99, (3, 2, 9, 12)).astype(np.uint16)
_PLANES = VOXELS.reshape(-1, 9, 12)
_AXES = {"metadata": {"axes": "TZYX"}}
_IMAGEJ = {"axes": "TZYX", "spacing": 2.0, "unit": "um", "finterval": 1.5}
_OME = {"axes": "TZYX", **{f"PhysicalSize{axis}": 0.25 for axis in "XYZ"}, "TimeIncrement": 1.5}
_WRITTEN: Mapping[str, tuple[np.ndarray, Mapping[str, Any]]] = {
    "imagej": (VOXELS, {"imagej": True, "metadata": _IMAGEJ, "resolution": (4.0, 4.0)}),
    "ome": (VOXELS, {"ome": True, "metadata": _OME}),
    "ome zlib": (VOXELS, {"ome": True, **_AXES, "compression": "zlib", "predictor": True}),
    "shaped": (VOXELS, {"metadata": {}}),
    "big-endian": (VOXELS, {"byteorder": ">", "metadata": {}}),
    "big": (_PLANES, {"bigtiff": True}),
    "bytes": (_PLANES.astype(np.uint8), {}),
    "tiles": (np.tile(_PLANES, (1, 4, 4)), {"tile": (16, 16)}),
    "real": (_PLANES[:2].astype(np.float32), {}),
}
"""What tifffile writes, and how."""
_OPENED: Mapping[str, Mapping[str, object]] = {
    "channels": {"channel": 1},
    "second": {"axes": "ZYX"},
    "series of two": {"scene": 1},
    "bytes": {"axes": "ZYX"},
}
"""What is given to the reader beside the file."""
_FOLDERS: Mapping[str, tuple[list[str], Mapping[str, object]]] = {
    "all axes": ([f"s{s}_t{t}_c{c}_z{z}" for s, t, c, z in product("01", repeat=4)], {"scene": 1}),
    "words": ([f"{word}_{t}" for word in ("GFP", "RFP") for t in range(3)], {"channel": 1}),
    "Micro-Manager": ([f"img_{t:09}_GFP_{z:03}" for t, z in product(range(3), range(2))], {}),
    "missing": ([f"a_f{t}_w{w}" for t in (0, 1, 3) for w in (1, 2)], {}),
    "far apart": ([f"a{t}" for t in (1, 2, 90)], {}),
    "other names": (["a_1", "b_1_2", "c"], {}),
    "mean beside": (["t0", "t1", "t2", "mean"], {}),
    "named": ([f"{t}_{z}" for t, z in product(range(3), range(2))], {"axes": "TZYX"}),
    "unnamed": ([f"{t}_{z}" for t, z in product(range(3), range(2))], {}),
    "twice": (["t1", "t01", "t2"], {}),
}
"""Names of the files of a folder, and what is given beside it."""
_REFUSED = ("series", "unnamed", "twice")


def image(voxels: np.ndarray, **how: Any) -> bytes:
    """A TIFF; without a header unless metadata are given."""
    how = {"metadata": None, "photometric": "minisblack", **how}
    return saved(lambda file: tifffile.imwrite(file, voxels, **how))


def tiff(folder: Path) -> list[Seed]:
    """A movie as ImageJ, OME software and tifffile write it; channels, colours, series, folders."""
    colours = np.stack([_PLANES] * 3, -1).astype(np.uint8)
    judged = {
        **{name: image(voxels, **how) for name, (voxels, how) in _WRITTEN.items()},
        "pages": _pages(*_PLANES),
        "second": _pages(_PLANES[0], _PLANES[1], _PLANES[1]),
    }
    others = {
        "colours": image(colours, photometric="rgb"),
        "channels": image(VOXELS, imagej=True, metadata={"axes": "TCYX"}),
        "series of two": _pages(_PLANES[0], _PLANES[1, :5]),
        "two of ome": _pages(*VOXELS[:2], ome=True, metadata={"axes": "ZYX"}),
        "two shaped": _pages(*VOXELS[:2], metadata={"axes": "ZYX"}),
        "series": _pages(_PLANES[0], _PLANES[1, :5]),
    }
    found = []
    for name, content in (judged | others).items():
        hint = {"judged": name in judged, "refused": name in _REFUSED, "open": _OPENED.get(name, {})}
        found.append(Seed(name, {"a.tif": content}, "a.tif", hint))
    for name, (files, given) in _FOLDERS.items():
        movie = {f"movie/{file}.tif": image(_PLANES[k % len(_PLANES)]) for k, file in enumerate(files)}
        found.append(Seed(name, movie, "movie", {"open": given, "refused": name in _REFUSED}))
    stacks = {f"movie/t{t}.tif": image(stack) for t, stack in enumerate(VOXELS)}
    return [*found, *map(_fewer, ("imagej", "ome")), Seed("folder", stacks, "movie", {"judged": True})]


def _fewer(kind: str) -> Seed:
    """A file whose header declares three frames; two are there, and no more are asked for."""
    with tifffile.TiffFile(io.BytesIO(image(VOXELS, **{kind: True}, **_AXES))) as whole:
        text = whole.pages.first.description.encode()
    content = _pages(*_PLANES[:4], description=text)
    return Seed(f"fewer {kind}", {"a.tif": content}, "a.tif", {"open": {"partial": True}})


def _pages(*planes: np.ndarray, ome: bool = False, description: bytes | None = None, **how: Any) -> bytes:
    """One plane or stack after the other."""
    how = {"metadata": None, "contiguous": False, "photometric": "minisblack", **how}
    file = io.BytesIO()
    with tifffile.TiffWriter(file, ome=ome) as writer:
        for k, plane in enumerate(planes):
            writer.write(plane, description=None if k else description, **how)
    return file.getvalue()


def png(folder: Path) -> list[Seed]:
    """Grey, deep and coloured pictures, and a folder of them."""
    from PIL import Image

    def shot(values: np.ndarray) -> bytes:
        return saved(lambda file: Image.fromarray(values).save(file, "PNG"))

    values, grey = VOXELS[0, 0], VOXELS[0, 0].astype(np.uint8)
    colours = np.stack([grey] * 3, -1), np.stack([grey, 2 * grey, grey, 255 - grey], -1)
    movie = {f"movie/{t}.png": shot(grey + np.uint8(t)) for t in (1, 2, 10)}
    return [*(one_file("a.png", shot(of)) for of in (grey, values, *colours)), Seed("movie", movie, "movie")]


def ctc(folder: Path) -> list[Seed]:
    """Results and truth of the Cell Tracking Challenge, in a plane and in space."""
    return [
        _ctc("mask", "res_track.txt", "res_track.txt", (10, 12)),
        _ctc("TRA/man_track", "TRA/man_track.txt", "TRA", (3, 8, 9)),
    ]


def _ctc(stem: str, table: str, given: str, shape: tuple[int, ...]) -> Seed:
    files = {table: b"1 0 1 0\n2 0 2 0\n3 2 2 1\n4 2 2 1\n"}
    for frame, labels in enumerate([(1, 2), (1, 2), (3, 4, 2)]):
        voxels = np.zeros(shape, np.uint16)
        for label in labels:
            voxels[..., 1 + frame : 3 + frame, 2 * label : 2 * label + 2] = label
        files[f"{stem}{frame:03d}.tif"] = image(voxels, compression="zlib" if frame == 1 else None)
    return Seed(stem, files, given, {"features": ("size",), "digits": 9})


def openptv(folder: Path) -> list[Seed]:
    """A folder of points and links, and each file by itself."""
    rows = {7: [(-1, 0), (-1, 2), (-1, -2)], 8: [(0, 1), (-1, -2), (1, 0)], 9: [(2, -2), (0, -2), (-1, -2)]}
    files = {}
    for t, of in rows.items():
        points = (f"{k} {k}.5 {t} 2.0 0 1 2 -1" for k in range(1, 4))
        links = (f" {a} {b} {k}.5 {t} 2.0" for k, (a, b) in enumerate(of, 1))
        files[f"rt_is.{t}"] = "\n".join(["3", *points, ""])
        files[f"ptv_is.{t}"] = "\n".join(["3", *links, ""])
    both = {f"run/{name}": text.encode() for name, text in files.items()}
    return [Seed("folder", both, "run"), *(one_file(name, files[name]) for name in ("rt_is.7", "ptv_is.7"))]


def myptv(folder: Path) -> list[Seed]:
    """Its three kinds of files."""
    heads = {"particles": "", "trajectories": "{p}\t", "smoothed_trajectories": "{k}\t0\t0\t"}
    row = "{k}.5\t2.25\t{t}.0\t0\t0\t0\t0\t{t}.0\n"
    many = [{"k": k, "t": t, "p": k or -1} for t in range(3) for k in range(3)]
    return [one_file(name, "".join((head + row).format(**of) for of in many)) for name, head in heads.items()]
