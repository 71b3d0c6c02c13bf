"""Files that are refused as they are: from them, damage leads to places that no good file has."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import tifffile

from .cases import Files, Seed
from .seeds_image import VOXELS

_CSV: Mapping[str, str] = {
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
    "merge.csv": "track_id,frame,y,x,parent,parent_2,link_cost,link_cost_2\n0,0,1,2,,,,\n1,0,2,2,,,,\n"
    "2,1,2,2,0,1,1,a\n",
    "mark.csv": "frame,y,x\n\ufeff0,1,2\n",
    "heading.csv": 'frame,y,"x\n0,1,2\n',
    "huge.csv": f"frame,y,x\n0,1,{'9' * 140000}a\n",
}
_HOSTILE = Path(__file__).resolve().parents[1] / "hostile"


def csv(folder: Path) -> list[Seed]:
    """Tables without what a table needs."""
    found = [_refused(name, {name: text.encode()}) for name, text in _CSV.items()]
    found.append(_refused("lost", {"other.csv": b"frame,y,x\n0,1,2\n"}, given="not_there.csv"))
    found.append(_refused("folder", {"folder/readme.md": b"text"}, given="folder"))
    every: tuple[Mapping[str, str], ...] = (
        {"depth": "z"}, {"z": "y", "x": "y"}, {"z": "none"}, {"z": " Y "},
    )  # fmt: skip
    table = {"a.csv": b"frame,y,x\n0,1,2\n"}
    return [*found, *(_refused("named", table, given="a.csv", named=named) for named in every)]


def isbi(folder: Path) -> list[Seed]:
    """XML of other kinds."""
    texts = {
        "a.isbi.xml": "<other/>", "b.xml": "<other/>",
        "c.xml": "<root><detection t='0' x='1' y='1' z='1'/></root>",
        "d.xml": "<root><particle><detection t='0.5' x='1' y='1' z='1'/></particle></root>",
        "e.xml": "<!DOCTYPE a [<!ENTITY b '1'>]><root>&b;</root>",
    }  # fmt: skip
    found = [_refused(name, {name: text.encode()}) for name, text in texts.items()]
    good = b"<root><particle><detection t='0' x='1' y='1' z='1'/></particle></root>"
    found.append(_refused("prefix", _of_hostile("prefix_that_nothing_declares.xml")))
    return [*found, _refused("named", {"f.xml": good}, given="f.xml", named={"z": "depth"})]


def trackmate(folder: Path) -> list[Seed]:
    """Models whose links make no sense."""
    spots = "".join(
        f'<Spot ID="{k}" POSITION_X="1" POSITION_Y="1" POSITION_Z="{k}" FRAME="{k // 2}" odd="x"/>\n'
        for k in range(4)
    )
    edges = {"same": (0, 1), "lost": (0, 9)}
    models = {
        name: f'<TrackMate>\n<Model>\n{spots}<Track>\n<Edge SPOT_SOURCE_ID="{a}" SPOT_TARGET_ID="{b}"/>\n'
        "</Track>\n</Model>\n</TrackMate>"
        for name, (a, b) in edges.items()
    }
    models["hidden"] = (
        '<TrackMate><Log>outbid record: {"a": [1}</Log><Model><FilteredTracks><TrackID TRACK_ID="3"/>'
    )
    models["hidden"] += "</FilteredTracks></Model></TrackMate>"
    models["infinite"] = (
        '<TrackMate><Model><Spot ID="1" POSITION_X="inf" POSITION_Y="1" POSITION_Z="1" FRAME="0"/>'
    )
    models["infinite"] += "</Model></TrackMate>"
    return [_refused(f"{name}.xml", {f"{name}.xml": text.encode()}) for name, text in models.items()]


def ctc(folder: Path) -> list[Seed]:
    """Folders with too many images, with none, or with images that are no labels."""
    images = {}
    for name, voxels in {"labels": np.ones((4, 4), np.uint16), "real": np.ones((4, 4), np.float32)}.items():
        file = io.BytesIO()
        tifffile.imwrite(file, voxels)
        images[name] = file.getvalue()
    table = b"1 0 0 0\n"
    return [
        _refused(
            "twice",
            {"r/mask0.tif": images["labels"], "r/mask000.tif": images["labels"], "r/res_track.txt": table},
            features=("size",),
            digits=9,
            given="r",
        ),
        _refused("none", {"r/res_track.txt": table}, given="r"),
        _refused(
            "empty table",
            {"r/res_track.txt": b"", "r/mask0.tif": images["labels"]},
            features=("size",),
            digits=9,
            given="r",
        ),
        _refused(
            "real",
            {"r/mask0.tif": images["real"], "r/res_track.txt": table},
            features=("size",),
            digits=9,
            given="r",
        ),
    ]


def openptv(folder: Path) -> list[Seed]:
    """Files under the names of others, and rows that are not there."""
    row = b"1\n 1 1.0 2.0 3.0 0 0 0 0\n"
    return [
        _refused("kind", {"ptv_is.1": row}, given="ptv_is.1"),
        _refused("points", {"rt_is.1": b"1\n -1 -2 1 2 3\n"}, given="rt_is.1"),
        _refused("lost", {"r/ptv_is.1": b"1\n -1 5 1 2 3\n", "r/ptv_is.2": b"1\n -1 -2 1 2 3\n"}, given="r"),
    ]


def myptv(folder: Path) -> list[Seed]:
    """Text that is something else."""
    return [
        _refused("words", {"particles": b"a b c d e f g h\n"}, given="particles"),
        _refused("suffix", {"trajectories.old": b"0 1 2\n"}, given="trajectories.old"),
        _refused("half", {"trajectories": b"0.5\t1\t2\t3\t0\t0\t0\t0\t0\n"}, given="trajectories"),
    ]


def npy(folder: Path) -> list[Seed]:
    """Arrays of other shapes, and one that declares more than the memory holds."""
    arrays = {"cube": np.zeros((2, 2, 2)), "half": np.full((2, 4), 0.5), "twice": np.zeros((2, 4))}
    found = []
    for name, array in arrays.items():
        file = io.BytesIO()
        np.save(file, array)
        found.append(_refused(name, {f"{name}.npy": file.getvalue()}, given=f"{name}.npy"))
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**8, 5)})
    objects = io.BytesIO()
    np.save(objects, np.array([None, 1]), allow_pickle=True)
    found.append(_refused("objects", {"objects.npy": objects.getvalue()}, given="objects.npy"))
    return [*found, _refused("large", {"large.npy": file.getvalue()}, given="large.npy")]


def matrix(folder: Path) -> list[Seed]:
    """The same, numbers that are not real, and a name that is no matrix's."""
    complexes = io.BytesIO()
    np.save(complexes, np.zeros((2, 2), complex))
    return [
        *npy(folder),
        _refused("name", {"a.txt": b"1 2\n"}, given="a.txt"),
        _refused("complex", {"c.npy": complexes.getvalue()}, given="c.npy"),
        _refused("not there", {}, given="b.npy"),
    ]


def mastodon(folder: Path) -> list[Seed]:
    """Archives without a model, or with something else for one."""
    models = {
        "none": None,
        "other": b"no stream",
        "early": b"\xac\xed\x00\x05sr",
        "short": b"\xac\xed\x00\x05\x77\x09ab",
    }
    found = []
    for name, model in models.items():
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("project.xml", "<a/>" if name != "early" else "no xml")
            if model is not None:
                archive.writestr("model.raw", model)
        found.append(_refused(name, {f"{name}.mastodon": file.getvalue()}))
    return found


def excel(folder: Path) -> list[Seed]:
    """Books without a table, or with one that is no table of detections."""
    import openpyxl

    tables: Mapping[str, list[list[object]]] = {
        "empty": [],
        "twice": [["frame", "y", "y", "x"], [0, 1, 1, 2]],
        "text": [["frame", "y", "x"], [0, "a", 2], [1, 2, 3]],
        "large": [["frame", "y", "x"], [0, 2**70, 1.5]],
        "blank": [["frame", "y", "x"], [0, None, 1]],
    }
    found = []
    for name, rows in tables.items():
        book, file = openpyxl.Workbook(), io.BytesIO()
        for row in rows:
            book.worksheets[0].append(row)
        book.save(file)
        found.append(_refused(name, {f"{name}.xlsx": file.getvalue()}))
    rows = ("row_that_goes_back.xlsx", "row_of_a_fraction.xlsx")
    return [*found, *(_refused(name, _of_hostile(name)) for name in rows)]


def geff(folder: Path) -> list[Seed]:
    """Folders that are no graph, or more than one, or whose axes make no sense."""
    group, none = b'{"zarr_format": 2}', json.dumps({"geff": {"geff_version": "0.3"}}).encode()
    shape = json.dumps(
        {"shape": [10**6], "chunks": [1], "dtype": "<f8", "compressor": None, "zarr_format": 2}
    ).encode()
    pickled, unshaped = ({"shape": [1], "dtype": "|O"}, {"shape": "x", "dtype": "<f8"})
    arrays = {"pickle": pickled, "unshaped": unshaped, "filters": {"shape": [1], "filters": 5}}
    return [
        *(
            _refused(
                name,
                {"a.geff/.zattrs": none, "a.geff/nodes/ids/.zarray": json.dumps(of).encode()},
                given="a.geff",
            )
            for name, of in arrays.items()
        ),
        _refused("none", {"a.geff/.zgroup": group}, given="a.geff"),
        _refused(
            "two", {f"a.zarr/{k}/.zattrs": none for k in "ab"} | {"a.zarr/.zgroup": group}, given="a.zarr"
        ),
        _refused(
            "many",
            {"a.geff/.zattrs": none, "a.geff/.zgroup": group, "a.geff/nodes/ids/.zarray": shape},
            given="a.geff",
        ),
        _refused(
            "shapeless",
            {"a.geff/.zattrs": none, "a.geff/.zgroup": group, "a.geff/nodes/ids/.zarray": b"{}"},
            given="a.geff",
        ),
        _refused("list", {"a.geff/.zattrs": b"[1]", "a.geff/.zgroup": group}, given="a.geff"),
    ]


def tiff(folder: Path) -> list[Seed]:
    """Folders of unlike images, and options that do not fit the file."""
    files: Files = {}
    for name, voxels in {
        "a.tif": VOXELS[0, 0],
        "b.tif": VOXELS[0, 0],
        "c.tif": VOXELS[0, 0, :4],
        "d.tif": VOXELS,
    }.items():
        file = io.BytesIO()
        tifffile.imwrite(
            file, voxels, metadata={"axes": "TZYX"} if name == "d.tif" else None, photometric="minisblack"
        )
        files[name] = file.getvalue()
    named = io.BytesIO()
    tifffile.imwrite(named, VOXELS, ome=True, metadata={"axes": "TZYX"}, photometric="minisblack")
    pair = {"m/1.tif": files["a.tif"], "m/2.tif": files["c.tif"]}
    opened: Mapping[str, Mapping[str, object]] = {
        "axes": {"axes": "TT"}, "count": {"axes": "YX"}, "channel": {"channel": 5}, "scene": {"scene": 7},
        "order": {"axes": "YXTZ"},
    }  # fmt: skip
    found = [
        _refused(name, {"a.tif": files["d.tif"]}, given="a.tif", open=how) for name, how in opened.items()
    ]
    return [
        *found,
        _refused("unlike", pair, given="m"),
        _refused("channel of two", pair, given="m", open={"channel": 5}),
        _refused("reduced", _of_hostile("frame_marked_as_reduced.tif")),
        _refused("cut", _of_hostile("header_cut.tif")),
        _refused("two ways", _of_hostile("strips_and_tiles.tif")),
        _refused("fraction", _of_hostile("tag_that_is_a_fraction.tif")),
        _refused("sizes", _of_hostile("more_strips_than_sizes.tif")),
        _refused("signed", _of_hostile("strip_before_the_file.tif")),
        _refused("sign", _of_hostile("sign_that_is_a_fraction.tif")),
        _refused("predictor", _of_hostile("predictor_of_nothing.tif")),
        _refused("shape", _of_hostile("shape_without_its_bracket.tif")),
        _refused("strips", _overwritten(folder, "RowsPerStrip", 4)),
        _refused("offset", _overwritten(folder, "StripOffsets", 0)),
        _refused("frames", {"m/1.tif": named.getvalue(), "m/2.tif": named.getvalue()}, given="m"),
        _refused(
            "mixed", {"m/1.tif": files["a.tif"], "m/2.tif": files["b.tif"], "m/3.png": b"\x89PNG"}, given="m"
        ),
        _refused("none", {"m/readme.md": b"text"}, given="m"),
        _refused("below", {"m/n/1.tif": files["a.tif"]}, given="m"),
        _refused("suffix", {"a.jpg": b"\xff\xd8"}, given="a.jpg"),
        _refused("lost", {}, given="a.tif"),
        _refused("empty", {"a.tif": b""}, given="a.tif"),
        _refused("no image", {"a.tif": b"II*\0\x08\0\0\0\0\0\0\0\0\0\0\0"}, given="a.tif"),
    ]


def _overwritten(folder: Path, tag: str, value: int) -> Files:
    """A plane with another value of a tag."""
    path = folder / "overwritten.tif"
    tifffile.imwrite(path, VOXELS[0, 0], metadata=None, photometric="minisblack")
    with tifffile.TiffFile(path, mode="r+b") as file:
        file.pages[0].tags[tag].overwrite(value)
    return {"a.tif": path.read_bytes()}


def record(folder: Path) -> list[Seed]:
    """JSON of another kind."""
    return [
        _refused("list", {"a.json": b"[1, 2]"}, given="a.json"),
        _refused("table", {"a.csv": b"frame,y,x\n"}, given="a.csv"),
    ]


def _of_hostile(name: str) -> Files:
    """A find that was fixed."""
    return {name: (_HOSTILE / name).read_bytes()}


def _refused(name: str, files: Mapping[str, bytes], *, given: str = "", **hint: object) -> Seed:
    hint = {"refused": True, "columns": {}, "separator": ",", "header": 0, **hint}
    return Seed(name, files, given or name_of(files), hint)


def name_of(files: Mapping[str, bytes]) -> str:
    """The only file."""
    (name,) = files
    return name


BAD: Mapping[str, Callable[[Path], list[Seed]]] = {
    one.__name__: one
    for one in (csv, isbi, trackmate, ctc, openptv, myptv, npy, matrix, mastodon, excel, geff, tiff, record)
}
