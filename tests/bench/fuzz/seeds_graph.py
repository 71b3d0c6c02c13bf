"""Good files of graph formats, of arrays and archives, and records."""

from __future__ import annotations

import io
import json
import shutil
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .cases import Seed, collected
from .seeds import one_file, saved, tracks, written


def geff(folder: Path) -> list[Seed]:
    """GEFF: ours (zarr 2); in a container; zarr 3; as version 0.3 was, and before version 1."""
    own = written(folder, "own.geff", tracks(), {})
    inside = {f"all.zarr/tracks/{name.partition('/')[2]}": content for name, content in own.files.items()}
    inside["all.zarr/.zgroup"] = b'{"zarr_format": 2}'
    old = {"geff_version": "0.3.0", "directed": True}
    axes = [{"name": "t", "type": "time"}, *({"name": name, "type": "space"} for name in "yx")]
    numbers: dict[str, Any] = {"nodes/ids": np.arange(1, 5, dtype=np.uint32)}
    numbers["edges/ids"] = np.array([[1, 2], [2, 3]], np.uint32)
    rows = {"t": [0, 1, 2, 2], "y": [1.0, 2, 3, 4], "x": [5.0, 6, 7, 8]}
    half = numbers | _columns("nodes/props", rows | {"t": [0, 0.5, 1, 1]})
    of_old = numbers | _columns("nodes/props", rows)
    return [
        own,
        written(folder, "points.geff", tracks().detections, {}),
        Seed("all.zarr", inside, "all.zarr", {"graph": "tracks"}),
        *(_geff_3(folder, scaled=scaled) for scaled in (False, True)),
        _zarr_2(folder / "old.zarr", old | {"axes": axes}, of_old),
        _zarr_2(folder / "old_unnamed.zarr", old, of_old),
        replace(_zarr_2(folder / "old_half.zarr", old | {"axes": axes}, half), hint={"refused": True}),
        _named_geff(folder),
    ]


def _columns(place: str, rows: Mapping[str, Sequence[float]]) -> dict[str, np.ndarray]:
    return {f"{place}/{name}/values": np.array(of) for name, of in rows.items()}


def _zarr_2(where: Path, attributes: Mapping[str, Any], arrays: Mapping[str, Any], **how: object) -> Seed:
    import zarr

    group = zarr.open_group(where, mode="w", zarr_format=2, attributes=dict(attributes))
    for name, of in arrays.items():
        group.create_array(name, data=of, **how)
    return _taken(where)


def _taken(where: Path) -> Seed:
    """The seed of a folder that was written, which is removed."""
    files = {f"{where.name}/{name}": content for name, content in collected(where).items()}
    shutil.rmtree(where)
    return Seed(where.name, files, where.name)


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


def _named_geff(folder: Path) -> Seed:
    """Before version 1: text for numbers, declared as whole numbers; axes by hints; gzip."""
    import numcodecs

    axes = {"time": "minutes", "vertical": "down", "horizontal": "right"}
    about = {"geff_version": "0.2", "directed": True, "axis_names": list(axes.values())}
    about["display_hints"] = {f"display_{way}": name for way, name in axes.items()}
    names = np.array(["a", "b", "cc"])
    rows = {"minutes": [0.0, 5, 10], "down": [1.0, 2, 3], "right": [4.0, 5, 6], "frame": [0, 1, 2]}
    arrays = {"nodes/ids": names, "edges/ids": names[[[0, 1], [1, 2]]]}
    arrays |= _columns("nodes/attrs", {**rows, "mass": [1.0, 2, 3]})
    arrays["nodes/attrs/mass/missing"] = np.array([False, True, False])
    seed = _zarr_2(folder / "named.zarr", {"geff": about}, arrays, compressors=numcodecs.GZip())
    texts = (f"named.zarr/{name}/.zarray" for name, of in arrays.items() if of.dtype.kind == "U")
    stated = {name: json.loads(seed.files[name]) | {"dtype": "<i4", "fill_value": ""} for name in texts}
    return replace(
        seed, files={**seed.files, **{name: json.dumps(of).encode() for name, of in stated.items()}}
    )


def array(values: np.ndarray, version: tuple[int, int] = (1, 0)) -> bytes:
    """An array as NumPy stores it."""
    return saved(lambda file: np.lib.format.write_array(file, values, version=version))


def npy(folder: Path) -> list[Seed]:
    """Arrays of tracks in NumPy's versions and orders."""
    rows = np.array([[0, 0, 1.5, 2, 3], [0, 1, 1, 2, 4], [1, 0, 5, 5, 5], [1, 2, 5, 6, 5]])
    plane = np.asfortranarray(rows[:, [0, 1, 3, 4]])
    contents = [array(rows), array(plane, (2, 0)), array(rows.astype(">f4")), array(rows.astype(int))]
    return [one_file(f"{name}.npy", content) for name, content in zip("abcd", contents, strict=True)]


def matrices(folder: Path) -> list[Seed]:
    """Costs as numpy.save writes them."""
    costs = np.arange(12.0).reshape(3, 4), np.arange(6).reshape(2, 3).astype(">i4")
    return [one_file(f"{name}.npy", array(of)) for name, of in zip("ab", costs, strict=True)]


def archive(members: Mapping[str, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    """Members of a ZIP file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return file.getvalue()


def mastodon(folder: Path) -> list[Seed]:
    """A project with a division, in short blocks and in a long one."""
    place = [(1.5, 2, 3, 0), (1, 2, 4, 1), (1, 3, 4, 1), (9, 9, 9, 0)]
    spots = b"".join(struct.pack("<3di7d", *of[:3], of[3], *[0.0] * 6, 4.0) for of in place)
    model = struct.pack(">i", 4) + spots + struct.pack(">i", 2) + struct.pack(">8i", 0, 1, 0, 0, 0, 2, 0, 0)
    model += b"labels"
    blocks = (model[first : first + 200] for first in range(0, len(model), 200))
    short = b"\xac\xed\x00\x05" + b"".join(b"\x77" + bytes([len(block)]) + block for block in blocks)
    long = b"\xac\xed\x00\x05\x7a" + struct.pack(">i", len(model)) + model + b"\x75any object"
    about = {"project.xml": b"<MamutProject><SpaceUnits>um</SpaceUnits></MamutProject>"}
    return [
        one_file("short.mastodon", archive({"model.raw": short, **about}, zipfile.ZIP_DEFLATED)),
        one_file("long.mastodon", archive({"model.raw": long, **about})),
    ]


def book(rows: Sequence[Sequence[object]]) -> bytes:
    """A workbook with these rows."""
    import openpyxl

    made = openpyxl.Workbook()
    for row in rows:
        made.worksheets[0].append(row)
    return saved(made.save)


def excel(folder: Path) -> list[Seed]:
    """Tables on the first sheet of a workbook, with empty rows above one of them."""
    rows: list[list[object]] = [["track_id", "frame", "y", "x", "mass", "name"]]
    rows += [[k % 2, k // 2, 1.5 * k, 2.25, k / 4 if k else None, f"spot {k}"] for k in range(8)]
    return [one_file("plain.xlsx", book(rows)), one_file("lower.xlsx", book([[], [], *rows]))]


def records(folder: Path) -> list[Seed]:
    """Run records beside a table and by themselves."""
    made = written(folder, "own.csv", tracks(), {}).files["own.csv.json"]
    plain = {"command": "track", "version": "0.1", "input": {"n": [1, 2.5, None]}}
    return [one_file("own.csv.json", made), one_file("a.json", json.dumps(plain))]
