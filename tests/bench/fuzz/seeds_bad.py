"""Files that are refused as they are: from them, damage leads to places that no good file has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import numpy as np

from .cases import Files, Seed
from .seeds import saved
from .seeds_graph import archive, array, book
from .seeds_image import VOXELS, image

_HOSTILE = Path(__file__).resolve().parents[2] / "hostile"
_FOUND: Mapping[str, tuple[str, ...]] = {
    "isbi": ("prefix_that_nothing_declares.xml",),
    "excel": ("row_that_goes_back.xlsx", "row_of_a_fraction.xlsx"),
    "tiff": (
        "frame_marked_as_reduced.tif", "header_cut.tif", "strips_and_tiles.tif", "strips_twice.tif",
        "tag_that_is_a_fraction.tif", "more_strips_than_sizes.tif", "strip_before_the_file.tif",
        "sign_that_is_a_fraction.tif", "predictor_of_nothing.tif", "shape_without_its_bracket.tif",
    ),
}  # fmt: skip
"""Finds that were fixed, by the name of the kind."""
_SPOTS = "".join(
    f'<Spot ID="{k}" POSITION_X="1" POSITION_Y="1" POSITION_Z="{k}" FRAME="{k // 2}" odd="x"/>\n'
    for k in range(4)
)
_EDGE = (
    f"<TrackMate>\n<Model>\n{_SPOTS}<Track>\n"
    '<Edge SPOT_SOURCE_ID="0" SPOT_TARGET_ID="{}"/>\n</Track>\n</Model>\n</TrackMate>'
)
_TEXTS: Mapping[str, Mapping[str, str]] = {
    "csv": {
        "mixed.csv": "frame,posZ,y,x\n0,1,2,3\n",
        "case.csv": "frame,X,x_,y\n0,1,2,3\n",
        "hex.csv": "track,frame,y,x\n0x1F,0,1,2\n0x1F,1,1,2\n",
        "twice.csv": "frame,y,x,x\n0,1,2,3\n",
        "names.csv": "Frame,FRAME,y,x\n0,0,1,2\n",
        "numbers.csv": "0,1,2\n1,2,3\n",
        "notes.txt": "no table\n",
        "blank.csv": "\n \n",
        "open.csv": 'frame,y,x,name\n0,1,2,"a\n',
        "text.csv": "track,frame,y,x\n1,0,1,2\n1,one,1,2\n",
        "wide.csv": "frame,y,x\n0,1,2,3\n",
        "units.csv": "frame,y,x,unit\n0,1,2,um\n1,1,2,nm\n",
        "other.csv": "frame,y_um,x_um,unit\n0,1,2,nm\n",
        "lost.csv": "id,parent_id,t,y,x\n1,,0,1,2\n2,7,1,1,2\n",
        "same.csv": "id,parent_id,t,y,x\n1,,0,1,2\n1,,1,1,2\n",
        "late.csv": "track_id,frame,y,x,parent\n1,0,1,2,\n1,3,1,2,\n2,2,1,2,1\n",
        "zero.csv": "track_id,frame,y,x,parent\n0,0,1,2,0\n1,2,1,2,0\n0,4,1,2,0\n",
        "merge.csv": "track_id,frame,y,x,parent,parent_2,link_cost,link_cost_2\n"
        "0,0,1,2,,,,\n1,0,2,2,,,,\n2,1,2,2,0,1,1,a\n",
        "mark.csv": "frame,y,x\n\ufeff0,1,2\n",
        "heading.csv": 'frame,y,"x\n0,1,2\n',
        "huge.csv": f"frame,y,x\n0,1,{'9' * 140000}a\n",
    },
    "isbi": {
        "a.isbi.xml": "<other/>",
        "b.xml": "<other/>",
        "c.xml": "<root><detection t='0' x='1' y='1' z='1'/></root>",
        "d.xml": "<root><particle><detection t='0.5' x='1' y='1' z='1'/></particle></root>",
        "e.xml": "<!DOCTYPE a [<!ENTITY b '1'>]><root>&b;</root>",
    },
    "trackmate": {
        "same.xml": _EDGE.format(1),
        "lost.xml": _EDGE.format(9),
        "hidden.xml": '<TrackMate><Log>outbid record: {"a": [1}</Log><Model><FilteredTracks>'
        '<TrackID TRACK_ID="3"/></FilteredTracks></Model></TrackMate>',
        "infinite.xml": '<TrackMate><Model><Spot ID="1" POSITION_X="inf" POSITION_Y="1" POSITION_Z="1" '
        'FRAME="0"/></Model></TrackMate>',
    },
    "openptv": {"ptv_is.1": "1\n 1 1.0 2.0 3.0 0 0 0 0\n", "rt_is.1": "1\n -1 -2 1 2 3\n"},
    "myptv": {
        "particles": "a b c d e f g h\n",
        "trajectories.old": "0 1 2\n",
        "trajectories": "0.5\t1\t2\t3\t0\t0\t0\t0\t0\n",
    },
    "record": {"a.json": "[1, 2]", "a.csv": "frame,y,x\n"},
    "matrix": {"a.txt": "1 2\n"},
}
"""By the name of the kind, and of the file."""
_TABLE = {"a.csv": b"frame,y,x\n0,1,2\n"}
_XML = {"f.xml": b"<root><particle><detection t='0' x='1' y='1' z='1'/></particle></root>"}


def _arrays() -> list[Seed]:
    """Of other shapes; one declares more than the memory holds."""
    large = {"descr": "<f8", "fortran_order": False, "shape": (10**8, 5)}
    made = {
        "cube": array(np.zeros((2, 2, 2))),
        "half": array(np.full((2, 4), 0.5)),
        "twice": array(np.zeros((2, 4))),
        "objects": array(np.array([None, 1])),
        "complex": array(np.zeros((2, 2), complex)),
        "large": saved(lambda file: np.lib.format.write_array_header_1_0(file, large)),
    }
    return [_bad({f"{name}.npy": content}) for name, content in made.items()]


def _projects() -> list[Seed]:
    """Archives without a model, or with something else for one."""
    models = {"other": b"no stream", "early": b"\xac\xed\x00\x05sr", "short": b"\xac\xed\x00\x05\x77\x09ab"}
    members = {name: {"project.xml": b"<a/>", "model.raw": model} for name, model in models.items()}
    members |= {"none": {"project.xml": b"<a/>"}, "no xml": {"project.xml": b"no xml", "model.raw": b""}}
    return [_bad({f"{name}.mastodon": archive(inside)}) for name, inside in members.items()]


def _books() -> list[Seed]:
    """Without a table, or with one that is no table of detections."""
    head: list[object] = ["frame", "y", "x"]
    tables: Mapping[str, list[list[object]]] = {
        "empty": [],
        "twice": [["frame", "y", "y", "x"], [0, 1, 1, 2]],
        "text": [head, [0, "a", 2], [1, 2, 3]],
        "large": [head, [0, 2**70, 1.5]],
        "blank": [head, [0, None, 1]],
    }
    return [_bad({f"{name}.xlsx": book(rows)}) for name, rows in tables.items()]


def _labels() -> list[Seed]:
    """Folders with too many images, with none, or with images that are no labels."""
    good, real = image(np.ones((4, 4), np.uint16)), image(np.ones((4, 4), np.float32))
    table = {"r/res_track.txt": b"1 0 0 0\n"}
    folders: list[Files] = [
        table,
        {"r/mask0.tif": good, "r/mask000.tif": good, **table},
        {"r/mask0.tif": real, **table},
        {"r/mask0.tif": good, "r/res_track.txt": b""},
    ]
    return [_bad(files, "r", features=("size",), digits=9) for files in folders]


def _graphs() -> list[Seed]:
    """Folders that are no graph, or more than one, or whose axes make no sense."""
    group = {"a.geff/.zgroup": b'{"zarr_format": 2}'}
    stated = {"a.geff/.zattrs": b'{"geff": {"geff_version": "0.3"}}'}
    many = {"shape": [10**6], "chunks": [1], "dtype": "<f8", "compressor": None, "zarr_format": 2}
    arrays = ({"shape": [1], "dtype": "|O"}, {"shape": "x", "dtype": "<f8"}, {"shape": [1], "filters": 5})
    ids = "a.geff/nodes/ids/.zarray"
    two = {f"a.geff/{k}/.zattrs": stated["a.geff/.zattrs"] for k in "ab"}
    return [
        *(_bad({**stated, ids: json.dumps(of).encode()}, "a.geff") for of in arrays),
        *(_bad({**stated, **group, ids: json.dumps(of).encode()}, "a.geff") for of in ({}, many)),
        *(_bad({**group, **more}, "a.geff") for more in ({}, two, {"a.geff/.zattrs": b"[1]"})),
    ]


def _images() -> list[Seed]:
    """Folders of unlike images, and options that do not fit the file."""
    plane, cut = image(VOXELS[0, 0]), image(VOXELS[0, 0, :4])
    movie = image(VOXELS, metadata={"axes": "TZYX"})
    named = image(VOXELS, ome=True, metadata={"axes": "TZYX"})
    pair = {"m/1.tif": plane, "m/2.tif": cut}
    opened: list[dict[str, object]] = [*({"axes": axes} for axes in ("TT", "YX", "YXTZ"))]
    opened += [{"channel": 5}, {"scene": 7}]
    folders: list[Files] = [
        pair,
        {"m/1.tif": named, "m/2.tif": named},
        {"m/1.tif": plane, "m/2.tif": plane, "m/3.png": b"\x89PNG"},
        {"m/readme.md": b"text"},
        {"m/n/1.tif": plane},
    ]
    files: list[Files] = [{"a.jpg": b"\xff\xd8"}, {"a.tif": b""}, {"a.tif": b"II*\0\x08".ljust(16, b"\0")}]
    return [
        *(_bad({"a.tif": movie}, open=how) for how in opened),
        _bad(pair, "m", open={"channel": 5}),
        *(_bad(folder, "m") for folder in folders),
        *map(_bad, files),
        _bad({}, "a.tif"),
    ]


def _bad(files: Mapping[str, bytes], given: str = "", **hint: object) -> Seed:
    """Given is the only file, unless another one or a folder is named."""
    given = given or next(iter(files))
    return Seed(f"refused {given}", files, given, {"refused": True, **hint})


def of(kind: str) -> list[Seed]:
    """Seeds of a kind that are refused."""
    named = ({"depth": "z"}, {"z": "y", "x": "y"}, {"z": "none"}, {"z": " Y "})
    others = {
        "csv": lambda: [
            _bad({"other.csv": b"frame,y,x\n0,1,2\n"}, "not_there.csv"),
            _bad({"folder/readme.md": b"text"}, "folder"),
            *(_bad(_TABLE, named=of) for of in named),
        ],
        "isbi": lambda: [_bad(_XML, named={"z": "depth"})],
        "openptv": lambda: [
            _bad({"r/ptv_is.1": b"1\n -1 5 1 2 3\n", "r/ptv_is.2": b"1\n -1 -2 1 2 3\n"}, "r")
        ],
        "npy": _arrays, "matrix": lambda: [*_arrays(), _bad({}, "b.npy")], "mastodon": _projects,
        "excel": _books, "ctc": _labels, "geff": _graphs, "tiff": _images,
    }  # fmt: skip
    texts = ({name: text.encode()} for name, text in _TEXTS.get(kind, {}).items())
    found = ({name: (_HOSTILE / name).read_bytes()} for name in _FOUND.get(kind, ()))
    return [*map(_bad, chain(texts, found)), *others.get(kind, list)()]
