"""Good files: from the writers of Outbid, and made by hand as other programs write them."""

from __future__ import annotations

import io
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from outbid import Detections, Tracks, write_detections, write_tracks

from .cases import Seed, collected

_OWN = {"frame": "frame", "z": "z", "y": "y", "x": "x", "track_id": "track_id", "parent": "parent"}


def tracks(*, divides: bool = True, unit: str = "micrometer") -> Tracks:
    """Four particles in five frames: one is missing for a frame, one divides; features whole and real."""
    rng = np.random.default_rng(3)
    frame = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4])
    place = np.round(rng.uniform(0, 20, (13, 3)), 3)
    place[4] = [1.0, 2.0, 3.0]
    links = [[0, 3], [3, 5], [1, 4], [4, 6], [6, 9], [9, 12], [2, 7]] + ([[4, 8]] if divides else [])
    features = {"mass": np.round(rng.random(13), 2), "count": np.arange(13) * 3}
    seen = Detections.from_table(frame, place, unit=unit, features=features)
    costs = np.arange(len(links)) / 4
    return Tracks(seen, np.array(sorted(links)), costs, costs + 1, np.full(len(links), 0.5))


def written(folder: Path, name: str, given: Tracks | Detections, hint: Mapping[str, object]) -> Seed:
    """What a writer makes of tracks or detections, with its record."""
    where = folder / "made"
    where.mkdir()
    record = {"command": "track", "settings": {"max_distance": float("inf"), "known": [1, 2]}}
    write = write_tracks if isinstance(given, Tracks) else write_detections
    write(where / name, given, record=record)  # type: ignore[arg-type]
    files = collected(where)
    shutil.rmtree(where)
    return Seed(name, files, name, hint)


def _text(
    name: str, text: str | bytes, separator: str, header: int, columns: Mapping[str, str], **more: object
) -> Seed:
    content = text if isinstance(text, bytes) else text.encode()
    return Seed(
        name, {name: content}, name, {"separator": separator, "header": header, "columns": columns, **more}
    )


def csv(folder: Path) -> list[Seed]:
    """Tables of text: ours, and those of TrackMate, Imaris, trackpy, btrack, napari and others."""
    own = {"separator": ",", "header": 0, "columns": _OWN, "features": ("mass", "count")}
    seeds = [
        written(folder, "own.csv", tracks(), own),
        written(folder, "own.tsv", tracks(divides=False), own | {"separator": "\t"}),
        written(folder, "points.csv", tracks().detections, own),
    ]
    rows = [(0, 1.5, 2.25, 7), (0, 4.0, 5.5, 8), (1, 1.75, 2.0, 7), (1, 4.25, 5.0, 8), (2, 2.0, 2.5, 7)]
    imaris = (
        "\nSpots\n ==================== \nPosition X,Position Y,Position Z,Unit,Category,Time,Parent,ID\n"
    )
    imaris += "".join(
        f"{x},{y},{t + 0.5},um,Spot,{t + 1},100{p},{k}\n" for k, (t, x, y, p) in enumerate(rows)
    )
    comma = "Frame;X;Y;Track\n" + "".join(f"{t};{x};{y};{p}\n".replace(".", ",") for t, x, y, p in rows)
    trackpy = ",y,x,mass,frame,particle\n" + "".join(
        f"{k},{y},{x},{k}.5,{t},{p}\n" for k, (t, x, y, p) in enumerate(rows)
    )
    btrack = "ID,t,x,y,z,parent,root\n" + "".join(f"{p},{t},{x},{y},0,{p},{p}\n" for t, x, y, p in rows)
    nodes = "id,parent_id,t,z,y,x\n1,-1,0,1,2,3\n2,1,1,1,2,4\n3,1,1,2,2,3\n4,,1,9,9,9\n5,3,2,2,3,3\n"
    napari = "index,axis-0,axis-1,axis-2,axis-3\n" + "".join(
        f"{k},{t}.0,1.0,{y},{x}\n" for k, (t, x, y, _) in enumerate(rows)
    )
    trackmate = "LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,POSITION_Z,FRAME\n"
    trackmate += "Label,Spot ID,Track ID,Quality,X,Y,Z,Frame\nLabel,Spot ID,Track ID,Quality,X,Y,Z,Frame\n"
    trackmate += ",,,(quality),(micron),(micron),(micron),\n"
    trackmate += "".join(f"ID{k},{k},{p},0.5,{x},{y},0.0,{t}\n" for k, (t, x, y, p) in enumerate(rows))
    odd = "when,posZ,py,px,num,z\n" + "".join(f"{t},{t}.5,{y},{x},{p},9\n" for t, x, y, p in rows)
    named = {"frame": "when", "z": "posZ", "y": "py", "x": "px", "track_id": "num"}
    mixed = "#note\nframe,x [um],y [um],z [um],x,y,unit\n" + "".join(
        f"{t},{x},{y},0.5,1,2,um\n" for t, x, y, _ in rows
    )
    quoted = '"t","x","y","name"\n' + "".join(f'"{t}",{x},{y},"a, ""{p}"""\n' for t, x, y, p in rows)
    times = {
        name: f"{name},y,x\n" + "".join(f"{t * 0.5},{y},{x}\n" for t, x, y, _ in rows)
        for name in ("time", "t [sec]")
    }
    place = {"y": "y", "x": "x"}
    of_imaris = {
        "frame": "Time",
        "x": "Position X",
        "y": "Position Y",
        "z": "Position Z",
        "track_id": "Parent",
    }
    of_comma = {"frame": "Frame", "x": "X", "y": "Y", "track_id": "Track"}
    of_trackpy = {"frame": "frame", **place, "track_id": "particle"}
    of_btrack = {"frame": "t", **place, "z": "z", "track_id": "ID", "parent": "parent"}
    of_nodes = {"frame": "t", **place, "z": "z", "node": "id", "node_parent": "parent_id"}
    of_napari = {"frame": "axis-0", "z": "axis-1", "y": "axis-2", "x": "axis-3"}
    of_trackmate = {axis: f"POSITION_{axis.upper()}" for axis in "xyz"}
    of_trackmate |= {"frame": "FRAME", "track_id": "TRACK_ID"}
    of_mixed = {"frame": "frame", **{axis: f"{axis} [um]" for axis in "zyx"}}
    return [
        *seeds,
        *(_text(f"{name}.csv", text, ",", 0, {}) for name, text in times.items()),
        _text("imaris.csv", imaris, ",", 3, of_imaris),
        _text("comma.csv", comma, ";", 0, of_comma),
        _text("wide.csv", comma.encode("utf-16"), ";", 0, of_comma),
        _text("trackpy.csv", trackpy, ",", 0, of_trackpy, features=("mass",)),
        _text("btrack.txt", btrack, ",", 0, of_btrack),
        _text("nodes.csv", nodes, ",", 0, of_nodes),
        _text("napari.csv", napari, ",", 0, of_napari),
        _text("spots.csv", trackmate, ",", 0, of_trackmate, skip=3),
        _text("odd.csv", odd, ",", 0, named, named=named),
        _text("mixed.csv", mixed, ",", 1, of_mixed),
        _text("quoted.csv", quoted, ",", 0, {"frame": "t", **place}),
    ]


def parquet(folder: Path) -> list[Seed]:
    """Ours; and tables of other types and other names, with a dictionary and text."""
    own: dict[str, object] = {"columns": _OWN, "features": ("mass", "count")}
    other = pa.table(
        {
            "t": pa.array([1, 0, 0, 1], pa.uint8()),
            "Y": pa.array([1.5, 2.5, 3.5, 4.5], pa.float32()),
            "X": pa.array([3, 4, 5, 6], pa.int16()),
            "name": pa.array(["a", "b", "a", "b"]).dictionary_encode(),
            "particle": pa.array([5, 5, 6, 6]),
            "unit": ["um"] * 4,
            "inside": [[1], [2], [3], [4]],
            "good": [True, False, True, True],
            "mass": [1.0, None, 2.0, 3.0],
        }
    )
    file = io.BytesIO()
    pq.write_table(other, file, write_page_checksum=True)
    names = {"frame": "t", "y": "Y", "x": "X", "track_id": "particle"}
    nodes = pa.table(
        {"id": [1, 2, 3], "parent_id": [None, 1, 1], "t": [0, 1, 1], "y": [1.0, 2.0, 3.0], "x": [1.0, 2, 3]}
    )
    second = io.BytesIO()
    pq.write_table(nodes, second, write_page_checksum=True)
    roles = {"frame": "t", "y": "y", "x": "x", "node": "id", "node_parent": "parent_id"}
    shards = {f"shards.parquet/part-{k}.parquet": file.getvalue() for k in range(2)}
    return [
        Seed("shards.parquet", shards, "shards.parquet", {"columns": names}),
        written(folder, "own.parquet", tracks(), own),
        written(folder, "points.pq", tracks().detections, own),
        Seed("other.parquet", {"other.parquet": file.getvalue()}, "other.parquet", {"columns": names}),
        Seed("nodes.parquet", {"nodes.parquet": second.getvalue()}, "nodes.parquet", {"columns": roles}),
    ]


def isbi(folder: Path) -> list[Seed]:
    """ISBI's XML as we write it, TrackMate's simple one, and Icy's."""
    particle = "".join(f'<detection t="{t}" x="{t}.5" y="2.25" z="0" />\n' for t in (0, 1, 3))
    simple = '<?xml version="1.0" encoding="UTF-8"?>\n<Tracks nTracks="2" spaceUnits="pixel">\n'
    simple += f'<particle nSpots="3">\n{particle}</particle>\n' * 2 + "</Tracks>\n"
    icy = '<root>\n<trackfile version="1"/>\n<trackgroup>\n<track id="1">\n'
    icy += f"{particle}</track>\n</trackgroup>\n<linklist/>\n</root>\n"
    return [
        written(folder, "own.isbi.xml", tracks(divides=False), {}),
        Seed("simple.xml", {"simple.xml": simple.encode()}, "simple.xml"),
        Seed("icy.xml", {"icy.xml": icy.encode()}, "icy.xml"),
    ]


def trackmate(folder: Path) -> list[Seed]:
    """TrackMate's XML as we write it, and as older versions do, with hidden spots and tracks."""
    spots = "".join(
        f'<SpotsInFrame frame="{t}">\n'
        + "".join(
            f'<Spot ID="{10 * t + k}" name="a" VISIBILITY="{int(k != 2)}" POSITION_X="{t}.5" '
            f'POSITION_Y="{k}" POSITION_Z="0.0" QUALITY="{k}.25" FRAME="{t}" POSITION_T="{t}.0"/>\n'
            for k in range(4)
        )
        + "</SpotsInFrame>\n"
        for t in range(3)
    )
    edges = "".join(
        f'<Track TRACK_ID="{k}" name="Track_{k}">\n<Edge SPOT_SOURCE_ID="{k}" SPOT_TARGET_ID="{10 + k}" '
        f'LINK_COST="0.5"/>\n<Edge SPOT_SOURCE_ID="{10 + k}" SPOT_TARGET_ID="{20 + k}"/>\n</Track>\n'
        for k in (0, 1, 3)
    )
    old = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<TrackMate version="3.6.0">\n<Log>none</Log>\n'
        f'<Model spatialunits="um" timeunits="s">\n<FeatureDeclarations>\n<SpotFeatures>\n<Feature '
        f'feature="QUALITY" name="Quality" isint="false"/>\n</SpotFeatures>\n</FeatureDeclarations>\n'
        f"<AllSpots>\n{spots}</AllSpots>\n<AllTracks>\n{edges}</AllTracks>\n<FilteredTracks>\n"
        f'<TrackID TRACK_ID="0"/>\n<TrackID TRACK_ID="3"/>\n</FilteredTracks>\n</Model>\n</TrackMate>\n'
    )
    return [
        written(folder, "own.xml", tracks(), {}),
        written(folder, "points.xml", tracks().detections, {}),
        Seed("old.xml", {"old.xml": old.encode()}, "old.xml"),
    ]


def trackmate_csv(folder: Path) -> list[Seed]:
    """Spots with edges beside them, with and without the further lines of the header."""
    heads = [
        "ID,FRAME,POSITION_X,POSITION_Y,POSITION_Z,QUALITY\n",
        "SPOT_SOURCE_ID,SPOT_TARGET_ID,LINK_COST\n",
    ]
    more = [
        "Spot ID,Frame,X,Y,Z,Quality\n" * 2 + ",,(um),(um),(um),\n",
        "Source,Target,Cost\n" * 2 + ",,(cost)\n",
    ]
    spots = "".join(f"{k},{k // 3},{k}.5,{k % 3},0,{k}.25\n" for k in range(9))
    edges = "0,3,0.5\n3,6,0.25\n1,4,0.5\n1,5,0.75\n"
    found = []
    for name, lines in (("a-spots.csv", ["", ""]), ("B-SPOTS.CSV", more)):
        beside = name.replace("spots", "edges").replace("SPOTS", "EDGES")
        files = {name: heads[0] + lines[0] + spots, beside: heads[1] + lines[1] + edges}
        columns = {"frame": "FRAME", "x": "POSITION_X", "y": "POSITION_Y", "z": "POSITION_Z"}
        hint = {
            "separator": ",",
            "header": 0,
            "columns": columns,
            "skip": 3 if lines[0] else 0,
            "edges": beside,
        }
        found.append(Seed(name, {one: text.encode() for one, text in files.items()}, name, hint))
    return found
