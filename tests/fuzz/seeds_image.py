"""Good images, and files that belong to label images or to what cameras saw."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import numpy as np
import tifffile

from .cases import Seed

VOXELS = np.random.default_rng(0).integers(0, 99, (3, 2, 9, 12)).astype(np.uint16)


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


def tiff(folder: Path) -> list[Seed]:
    """A movie as ImageJ, OME software and tifffile write it; channels, colours, series, a folder."""
    gray = {"photometric": "minisblack"}
    planes = VOXELS.reshape(-1, 9, 12)
    named = {
        "metadata": {"axes": "TZYX", "spacing": 2.0, "unit": "um", "finterval": 1.5},
        "resolution": (4.0, 4.0),
    }
    physical = {
        "axes": "TZYX",
        "PhysicalSizeX": 0.25,
        "PhysicalSizeY": 0.25,
        "PhysicalSizeZ": 2,
        "TimeIncrement": 1.5,
    }
    ways: dict[str, Callable[[io.BytesIO], object]] = {
        "imagej": lambda file: tifffile.imwrite(file, VOXELS, imagej=True, **named),
        "ome": lambda file: tifffile.imwrite(file, VOXELS, ome=True, metadata=physical, **gray),
        "ome zlib": lambda file: tifffile.imwrite(
            file, VOXELS, ome=True, metadata={"axes": "TZYX"}, compression="zlib", predictor=True, **gray
        ),
        "shaped": lambda file: tifffile.imwrite(file, VOXELS, **gray),
        "big-endian": lambda file: tifffile.imwrite(file, VOXELS, byteorder=">", **gray),
        "big": lambda file: tifffile.imwrite(file, planes, bigtiff=True, metadata=None, **gray),
        "bytes": lambda file: tifffile.imwrite(file, planes.astype(np.uint8), metadata=None, **gray),
        "tiles": lambda file: tifffile.imwrite(
            file, np.tile(planes, (1, 4, 4)), tile=(16, 16), metadata=None, **gray
        ),
        "real": lambda file: tifffile.imwrite(file, planes[:2].astype(np.float32), metadata=None, **gray),
        "colours": lambda file: tifffile.imwrite(
            file, np.stack([planes] * 3, -1).astype(np.uint8), photometric="rgb"
        ),
        "channels": lambda file: tifffile.imwrite(file, VOXELS, imagej=True, metadata={"axes": "TCYX"}),
        "pages": lambda file: _written_alone(file, list(planes)),
        "second": lambda file: _written_alone(file, [planes[0], planes[1], planes[1]]),
        "series of two": lambda file: _written_alone(file, [planes[0], planes[1, :5]]),
        "two of ome": lambda file: _twice(file, ome=True),
        "two shaped": _twice,
        "series": lambda file: _written_alone(file, [planes[0], planes[1, :5]]),
    }
    found = []
    for name, write in ways.items():
        file = io.BytesIO()
        write(file)
        judged = name not in ("channels", "colours", "series", "series of two", "two of ome", "two shaped")
        hint = {"judged": judged, "refused": name in _REFUSED, "open": _OPENED.get(name, {})}
        found.append(Seed(name, {"a.tif": file.getvalue()}, "a.tif", hint))
    stacks = {f"movie/t{t}.tif": _stack(stack) for t, stack in enumerate(VOXELS)}
    found += [_fewer(kind) for kind in ("imagej", "ome")]
    for name, (files, given) in _FOLDERS.items():
        movie = {f"movie/{file}.tif": _stack(planes[k % len(planes)]) for k, file in enumerate(files)}
        found.append(Seed(name, movie, "movie", {"open": given, "refused": name in _REFUSED}))
    return [*found, Seed("folder", stacks, "movie", {"judged": True})]


def _stack(stack: np.ndarray) -> bytes:
    """A file without a header."""
    file = io.BytesIO()
    tifffile.imwrite(file, stack, metadata=None, photometric="minisblack")
    return file.getvalue()


def _fewer(kind: str) -> Seed:
    """A file whose header declares three frames; two are there, and no more are asked for."""
    whole, file = io.BytesIO(), io.BytesIO()
    tifffile.imwrite(whole, VOXELS, **{kind: True}, metadata={"axes": "TZYX"}, photometric="minisblack")
    with tifffile.TiffFile(io.BytesIO(whole.getvalue())) as tiff:
        text = tiff.pages[0].description.encode()
    _written_alone(file, list(VOXELS.reshape(-1, 9, 12)[:4]), text)
    return Seed(f"fewer {kind}", {"a.tif": file.getvalue()}, "a.tif", {"open": {"partial": True}})


def _twice(file: io.BytesIO, **kind: bool) -> None:
    with tifffile.TiffWriter(file, **kind) as writer:
        for frame in VOXELS[:2]:
            writer.write(frame, photometric="minisblack", metadata={"axes": "ZYX"})


def _written_alone(file: io.BytesIO, planes: list[np.ndarray], text: bytes | None = None) -> None:
    with tifffile.TiffWriter(file) as writer:
        for k, plane in enumerate(planes):
            writer.write(plane, metadata=None, contiguous=False, description=None if k else text)


def png(folder: Path) -> list[Seed]:
    """Grey, deep and coloured pictures, and a folder of them."""
    from PIL import Image

    values = VOXELS[0, 0]
    shots = {
        "grey": values.astype(np.uint8),
        "deep": values,
        "colours": np.stack([values] * 3, -1).astype(np.uint8),
        "clear": np.stack([values, 2 * values, values, 255 - values], -1).astype(np.uint8),
    }
    contents = {}
    for name, shot in shots.items():
        file = io.BytesIO()
        Image.fromarray(shot).save(file, "PNG")
        contents[name] = file.getvalue()
    found = [Seed(name, {"a.png": content}, "a.png") for name, content in contents.items()]
    movie = {}
    for t in (1, 2, 10):
        file = io.BytesIO()
        Image.fromarray(values.astype(np.uint8) + t).save(file, "PNG")
        movie[f"movie/{t}.png"] = file.getvalue()
    return [*found, Seed("folder", movie, "movie")]


def ctc(folder: Path) -> list[Seed]:
    """Results and truth of the Cell Tracking Challenge, in a plane and in space."""
    return [_ctc("mask", "res_track.txt", "", (10, 12)), _ctc("man_track", "man_track.txt", "TRA", (3, 8, 9))]


def _ctc(stem: str, table: str, given: str, shape: tuple[int, ...]) -> Seed:
    files = {}
    for frame, labels in enumerate([(1, 2), (1, 2), (3, 4, 2)]):
        image = np.zeros(shape, np.uint16)
        for label in labels:
            image[..., 1 + frame : 3 + frame, 2 * label : 2 * label + 2] = label
        content = io.BytesIO()
        tifffile.imwrite(content, image, compression="zlib" if frame == 1 else None, photometric="minisblack")
        files[f"{given}{'/' * bool(given)}{stem}{frame:03d}.tif"] = content.getvalue()
    rows = "1 0 1 0\n2 0 2 0\n3 2 2 1\n4 2 2 1\n"
    files[f"{given}{'/' * bool(given)}{table}"] = rows.encode()
    return Seed(stem, files, given or table, {"features": ("size",), "digits": 9})


def openptv(folder: Path) -> list[Seed]:
    """A folder of points and links, and each file by itself."""
    points = {
        f"run/rt_is.{t}": f"3\n{''.join(f'{k} {k}.5 {t} 2.0 0 1 2 -1{chr(10)}' for k in range(1, 4))}"
        for t in (7, 8, 9)
    }
    rows = {7: [(-1, 0), (-1, 2), (-1, -2)], 8: [(0, 1), (-1, -2), (1, 0)], 9: [(2, -2), (0, -2), (-1, -2)]}
    links = {
        f"run/ptv_is.{t}": "3\n" + "".join(f" {a} {b} {k}.5 {t} 2.0\n" for k, (a, b) in enumerate(of, 1))
        for t, of in rows.items()
    }
    both = {name: text.encode() for name, text in (points | links).items()}
    return [
        Seed("folder", both, "run"),
        Seed("rt", {"rt_is.7": both["run/rt_is.7"]}, "rt_is.7"),
        Seed("ptv", {"ptv_is.7": both["run/ptv_is.7"]}, "ptv_is.7"),
    ]


def myptv(folder: Path) -> list[Seed]:
    """Its three kinds of files."""
    row = "{k}.5\t2.25\t{t}.0\t0\t0\t0\t0\t{t}.0\n"
    many = [(k, t) for t in range(3) for k in range(3)]
    particles = "".join(row.format(k=k, t=t) for k, t in many)
    tracked = "".join(f"{k or -1}\t{row.format(k=k, t=t)}" for k, t in many)
    smoothed = "".join(f"{k}\t0\t0\t{row.format(k=k, t=t)}" for k, t in many)
    texts = {"particles": particles, "trajectories": tracked, "smoothed_trajectories": smoothed}
    return [Seed(name, {name: text.encode()}, name) for name, text in texts.items()]
