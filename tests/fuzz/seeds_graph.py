"""Good files of graph formats, of arrays and archives, and records."""

from __future__ import annotations

import io
import json
import shutil
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from .cases import Seed, collected
from .seeds import tracks, written


def geff(folder: Path) -> list[Seed]:
    """GEFF: ours (zarr 2); zarr 3; in a container; and as version 0.3 was."""
    seeds = [
        written(folder, "own.geff", tracks(), {}),
        written(folder, "points.geff", tracks().detections, {}),
    ]
    seeds.append(_inside(seeds[0]))
    threes = [_geff_3(folder, scaled=scaled) for scaled in (False, True)]
    old = [_old_geff(folder, axes=axes) for axes in (True, False)]
    refused = replace(_old_geff(folder, axes=True, interval=0.5), hint={"refused": True})
    return [*seeds, *threes, *old, refused, _named_geff(folder)]


def _inside(seed: Seed) -> Seed:
    files = {f"all.zarr/tracks/{name.partition('/')[2]}": content for name, content in seed.files.items()}
    return Seed(
        "all.zarr", files | {"all.zarr/.zgroup": b'{"zarr_format": 2}'}, "all.zarr", {"graph": "tracks"}
    )


def _geff_3(folder: Path, *, scaled: bool) -> Seed:
    """As the package writes it; with scales of axes, two numbers a node, and links that are candidates."""
    import geff
    import zarr
    from geff.core_io import write_arrays

    axes = [{"name": name, "type": "time" if name == "t" else "space"} for name in "tzyx"]
    rows = {"t": [0, 1, 1, 2], "z": [0.0, 1, 2, 3], "y": [5.0, 6, 7, 8], "x": [1.5, 2, 3, 4]}
    rows |= {"mass": [1.0, 2, 3, 4]}
    of_edge: dict[str, np.ndarray] = {}
    if scaled:
        axes = [{**axis, "unit": "pixel", "scale": 0.5, "scaled_unit": "micrometer"} for axis in axes]
        axes[0] |= {"unit": "frame", "scaled_unit": "second"}
        rows |= {"z": [0.0] * 4, "nothing": [0.0] * 4, "box": [[k, k + 1] for k in range(4)]}
        of_edge = {"solution": np.array([1, 1, 0]), "probability": np.array([0.9, 0.8, 0.1])}
    about = {"geff_version": "1.1.0", "directed": True, "axes": axes}
    about |= {"node_props_metadata": {}, "edge_props_metadata": {}}
    missing = {"mass": np.array([False, True, False, False])}
    where = folder / ("scaled.geff" if scaled else "three.geff")
    write_arrays(
        where, np.arange(1, 5, dtype=np.uint64),
        {name: {"values": np.array(of), "missing": missing.get(name)} for name, of in rows.items()},
        np.array([[1, 2], [1, 3], [3, 4]], np.uint64),
        {name: {"values": of, "missing": None} for name, of in of_edge.items()},
        geff.GeffMetadata.model_validate(about), zarr_format=3,
    )  # fmt: skip
    if scaled:
        zarr.consolidate_metadata(where)
    return _taken(where)


def _taken(where: Path) -> Seed:
    """The seed of a folder that was written, which is removed."""
    files = {f"{where.name}/{name}": content for name, content in collected(where).items()}
    shutil.rmtree(where)
    return Seed(where.name, files, where.name)


def _old_geff(folder: Path, *, axes: bool, interval: float = 1) -> Seed:
    """As version 0.3 was; with or without a list of axes."""
    import zarr

    where = folder / f"old{'' if axes else '_unnamed'}{'' if interval == 1 else '_fractions'}.zarr"
    group = zarr.open_group(where, mode="w", zarr_format=2)
    group.attrs["geff_version"] = "0.3.0"
    group.attrs["directed"] = True
    if axes:
        spatial = ({"name": name, "type": "space"} for name in "yx")
        group.attrs["axes"] = [{"name": "t", "type": "time"}, *spatial]
    group.create_array("nodes/ids", data=np.arange(1, 5, dtype=np.uint32))
    group.create_array("edges/ids", data=np.array([[1, 2], [2, 3]], np.uint32))
    for name, of in {"t": [0, 1, 2, 2], "y": [1.0, 2, 3, 4], "x": [5.0, 6, 7, 8]}.items():
        group.create_array(f"nodes/props/{name}/values", data=np.array(of) * (interval if name == "t" else 1))
    return _taken(where)


def _named_geff(folder: Path) -> Seed:
    """Before version 1: text for numbers, declared as whole numbers; axes by hints; gzip."""
    import numcodecs
    import zarr

    where = folder / "named.zarr"
    group = zarr.open_group(where, mode="w", zarr_format=2)
    group.attrs["geff"] = {
        "geff_version": "0.2",
        "directed": True,
        "axis_names": ["minutes", "down", "right"],
        "display_hints": {
            "display_time": "minutes",
            "display_vertical": "down",
            "display_horizontal": "right",
        },
    }
    names = np.array(["a", "b", "cc"])
    arrays = {"nodes/ids": names, "edges/ids": names[[[0, 1], [1, 2]]]}
    columns = {
        "minutes": [0.0, 5, 10],
        "down": [1.0, 2, 3],
        "right": [4.0, 5, 6],
        "frame": [0, 1, 2],
        "mass": [1.0, 2, 3],
    }
    arrays |= {f"nodes/attrs/{name}/values": np.array(of) for name, of in columns.items()}
    arrays["nodes/attrs/mass/missing"] = np.array([False, True, False])
    for name, of in arrays.items():
        group.create_array(name, data=of, compressors=numcodecs.GZip())
        stated = where / name / ".zarray"
        if of.dtype.kind == "U":
            stated.write_text(json.dumps(json.loads(stated.read_text()) | {"dtype": "<i4", "fill_value": ""}))
    return _taken(where)


def npy(folder: Path) -> list[Seed]:
    """Arrays of tracks in NumPy's versions and orders."""
    rows = np.array([[0, 0, 1.5, 2, 3], [0, 1, 1, 2, 4], [1, 0, 5, 5, 5], [1, 2, 5, 6, 5]])
    arrays = {
        "a": rows,
        "b": np.asfortranarray(rows[:, [0, 1, 3, 4]]),
        "c": rows.astype(">f4"),
        "d": rows.astype(int),
    }
    found = []
    for name, array in arrays.items():
        file = io.BytesIO()
        np.lib.format.write_array(file, array, version=(2, 0) if name == "b" else (1, 0))
        found.append(Seed(name, {f"{name}.npy": file.getvalue()}, f"{name}.npy"))
    return found


def mastodon(folder: Path) -> list[Seed]:
    """A project with a division, in short blocks and in a long one."""
    place = [(1.5, 2, 3, 0), (1, 2, 4, 1), (1, 3, 4, 1), (9, 9, 9, 0)]
    spots = b"".join(struct.pack("<3di7d", *of[:3], of[3], *[0.0] * 6, 4.0) for of in place)
    model = struct.pack(">i", 4) + spots + struct.pack(">i", 2) + struct.pack(">8i", 0, 1, 0, 0, 0, 2, 0, 0)
    model += b"labels"
    short = b"\xac\xed\x00\x05" + b"".join(b"\x77" + bytes([len(p)]) + p for p in _pieces(model, 200))
    long = b"\xac\xed\x00\x05\x7a" + struct.pack(">i", len(model)) + model + b"\x75any object"
    found = []
    for name, content in (("short", short), ("long", long)):
        file = io.BytesIO()
        with zipfile.ZipFile(
            file, "w", zipfile.ZIP_DEFLATED if name == "short" else zipfile.ZIP_STORED
        ) as archive:
            archive.writestr("model.raw", content)
            archive.writestr("project.xml", "<MamutProject><SpaceUnits>um</SpaceUnits></MamutProject>")
        found.append(Seed(name, {f"{name}.mastodon": file.getvalue()}, f"{name}.mastodon"))
    return found


def excel(folder: Path) -> list[Seed]:
    """Tables on the first sheet of a workbook, with an empty row above one of them."""
    import openpyxl

    found = []
    for name, above in (("plain", 0), ("lower", 2)):
        book = openpyxl.Workbook()
        sheet = book.worksheets[0]
        for _ in range(above):
            sheet.append([])
        sheet.append(["track_id", "frame", "y", "x", "mass", "name"])
        for k in range(8):
            sheet.append([k % 2, k // 2, 1.5 * k, 2.25, k / 4 if k else None, f"spot {k}"])
        file = io.BytesIO()
        book.save(file)
        columns = {role: role for role in ("track_id", "frame", "y", "x")}
        hint = {"columns": columns, "others": ("mass", "name"), "features": ("mass",)}
        found.append(Seed(name, {f"{name}.xlsx": file.getvalue()}, f"{name}.xlsx", hint))
    return found


def _pieces(content: bytes, length: int) -> Iterator[bytes]:
    for first in range(0, len(content), length):
        yield content[first : first + length]


def records(folder: Path) -> list[Seed]:
    """Run records beside a table and by themselves."""
    made = written(folder, "own.csv", tracks(), {})
    content = {"own.csv.json": made.files["own.csv.json"]}
    plain = {
        "a.json": json.dumps({"command": "track", "version": "0.1", "input": {"n": [1, 2.5, None]}}).encode()
    }
    return [Seed("beside", content, "own.csv.json"), Seed("plain", plain, "a.json")]


def matrices(folder: Path) -> list[Seed]:
    """Costs as numpy.save writes them."""
    found = []
    for name, array in {
        "a": np.arange(12.0).reshape(3, 4),
        "b": np.arange(6).reshape(2, 3).astype(">i4"),
    }.items():
        file = io.BytesIO()
        np.save(file, array)
        found.append(Seed(name, {f"{name}.npy": file.getvalue()}, f"{name}.npy"))
    return found
