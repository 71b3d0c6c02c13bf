"""Good files: from the writers of Outbid, and made by hand as other programs write them."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from outbid import Detections, Tracks, write_detections, write_tracks

from .cases import Seed, collected

OWN = {"frame": "frame", "z": "z", "y": "y", "x": "x", "track_id": "track_id", "parent": "parent"}
"""Names of our columns by their roles."""
_PLACE = {"y": "y", "x": "x"}


def saved(write: Callable[[io.BytesIO], object]) -> bytes:
    """What is written into a file."""
    file = io.BytesIO()
    write(file)
    return file.getvalue()


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


def one_file(name: str, content: str | bytes, hint: Mapping[str, object] | None = None) -> Seed:
    """The seed of a single file."""
    return Seed(name, {name: content.encode() if isinstance(content, str) else content}, name, hint or {})


def _table(head: str, row: str) -> str:
    """Five rows under a header: number k, frame t and n = t + 1, place, and number of the track p."""
    rows = [(0, 1.5, 2.25, 7), (0, 4.0, 5.5, 8), (1, 1.75, 2.0, 7), (1, 4.25, 5.0, 8), (2, 2.0, 2.5, 7)]
    lines = (row.format(k=k, t=t, n=t + 1, half=t / 2, x=x, y=y, p=p) for k, (t, x, y, p) in enumerate(rows))
    return "\n".join([head, *lines, ""])


def csv(folder: Path) -> list[Seed]:
    """Tables of text: ours, and those of TrackMate, Imaris, trackpy, btrack, napari and others."""
    own: Mapping[str, object] = {"columns": OWN, "features": ("mass", "count")}
    imaris = "\nSpots\n ==================== \n"
    imaris += "Position X,Position Y,Position Z,Unit,Category,Time,Parent,ID"
    axes = {axis: f"Position {axis.upper()}" for axis in "xyz"}
    comma = _table("Frame;X;Y;Track", "{t};{x};{y};{p}").replace(".", ",")
    of_comma = {"separator": ";", "columns": {"frame": "Frame", "x": "X", "y": "Y", "track_id": "Track"}}
    nodes = "id,parent_id,t,z,y,x\n1,-1,0,1,2,3\n2,1,1,1,2,4\n3,1,1,2,2,3\n4,,1,9,9,9\n5,3,2,2,3,3\n"
    trackmate = "LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,POSITION_Z,FRAME\n"
    trackmate += (
        "Label,Spot ID,Track ID,Quality,X,Y,Z,Frame\n" * 2 + ",,,(quality),(micron),(micron),(micron),"
    )
    of_trackmate = {"frame": "FRAME", "track_id": "TRACK_ID"}
    of_trackmate |= {axis: f"POSITION_{axis.upper()}" for axis in "xyz"}
    odd = {"frame": "when", "z": "posZ", "y": "py", "x": "px", "track_id": "num"}
    tables: Mapping[str, tuple[str, str, Mapping[str, str], Mapping[str, object]]] = {
        "time.csv": ("time,y,x", "{half},{y},{x}", {}, {}),
        "seconds.csv": ("t [sec],y,x", "{half},{y},{x}", {}, {}),
        "imaris.csv": (imaris, "{x},{y},{t}.5,um,Spot,{n},100{p},{k}",
                       {"frame": "Time", "track_id": "Parent", **axes}, {"header": 3}),
        "trackpy.csv": (",y,x,mass,frame,particle", "{k},{y},{x},{k}.5,{t},{p}",
                        {"frame": "frame", "track_id": "particle", **_PLACE}, {"features": ("mass",)}),
        "btrack.txt": ("ID,t,x,y,z,parent,root", "{p},{t},{x},{y},0,{p},{p}",
                       {"frame": "t", "z": "z", "track_id": "ID", "parent": "parent", **_PLACE}, {}),
        "napari.csv": ("index,axis-0,axis-1,axis-2,axis-3", "{k},{t}.0,1.0,{y},{x}",
                       {"frame": "axis-0", "z": "axis-1", "y": "axis-2", "x": "axis-3"}, {}),
        "spots.csv": (trackmate, "ID{k},{k},{p},0.5,{x},{y},0.0,{t}", of_trackmate, {"skip": 3}),
        "odd.csv": ("when,posZ,py,px,num,z", "{t},{t}.5,{y},{x},{p},9", odd, {"named": odd}),
        "mixed.csv": ("#note\nframe,x [um],y [um],z [um],x,y,unit", "{t},{x},{y},0.5,1,2,um",
                      {"frame": "frame", **{axis: f"{axis} [um]" for axis in "zyx"}}, {"header": 1}),
        "quoted.csv": ('"t","x","y","name"', '"{t}",{x},{y},"a, ""{p}"""', {"frame": "t", **_PLACE}, {}),
    }  # fmt: skip
    of_nodes = {"frame": "t", "z": "z", "node": "id", "node_parent": "parent_id", **_PLACE}
    return [
        written(folder, "own.csv", tracks(), own),
        written(folder, "own.tsv", tracks(divides=False), {**own, "separator": "\t"}),
        written(folder, "points.csv", tracks().detections, own),
        one_file("comma.csv", comma, of_comma),
        one_file("wide.csv", comma.encode("utf-16"), of_comma),
        one_file("nodes.csv", nodes, {"columns": of_nodes}),
        *(
            one_file(name, _table(head, row), {"columns": columns, **more})
            for name, (head, row, columns, more) in tables.items()
        ),
    ]


def _of_rows(rows: pa.Table) -> bytes:
    return saved(lambda file: pq.write_table(rows, file, write_page_checksum=True))


def parquet(folder: Path) -> list[Seed]:
    """Ours; and tables of other types and other names, with a dictionary and text."""
    own: dict[str, object] = {"columns": OWN, "features": ("mass", "count")}
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
    nodes = pa.table(
        {"id": [1, 2, 3], "parent_id": [None, 1, 1], "t": [0, 1, 1], "y": [1.0, 2.0, 3.0], "x": [1.0, 2, 3]}
    )
    first, second = (_of_rows(rows) for rows in (other, nodes))
    names = {"columns": {"frame": "t", "y": "Y", "x": "X", "track_id": "particle"}}
    roles = {"columns": {"frame": "t", "node": "id", "node_parent": "parent_id", **_PLACE}}
    shards = {f"shards.parquet/part-{k}.parquet": first for k in range(2)}
    return [
        Seed("shards.parquet", shards, "shards.parquet", names),
        written(folder, "own.parquet", tracks(), own),
        written(folder, "points.pq", tracks().detections, own),
        one_file("other.parquet", first, names),
        one_file("nodes.parquet", second, roles),
    ]


def isbi(folder: Path) -> list[Seed]:
    """ISBI's XML as we write it, TrackMate's simple one, and Icy's."""
    particle = "".join(f'<detection t="{t}" x="{t}.5" y="2.25" z="0" />\n' for t in (0, 1, 3))
    simple = '<?xml version="1.0" encoding="UTF-8"?>\n<Tracks nTracks="2" spaceUnits="pixel">\n'
    simple += f'<particle nSpots="3">\n{particle}</particle>\n' * 2 + "</Tracks>\n"
    icy = '<root>\n<trackfile version="1"/>\n<trackgroup>\n<track id="1">\n'
    icy += f"{particle}</track>\n</trackgroup>\n<linklist/>\n</root>\n"
    own = written(folder, "own.isbi.xml", tracks(divides=False), {})
    return [own, one_file("simple.xml", simple), one_file("icy.xml", icy)]


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
    own = [written(folder, "own.xml", tracks(), {}), written(folder, "points.xml", tracks().detections, {})]
    return [*own, one_file("old.xml", old)]


def trackmate_csv(folder: Path) -> list[Seed]:
    """Spots with edges beside them, with and without the further lines of the header."""
    spots, more_of_spots = (
        "ID,FRAME,POSITION_X,POSITION_Y,POSITION_Z,QUALITY\n",
        "Spot ID,Frame,X,Y,Z,Quality\n" * 2 + ",,(um),(um),(um),\n",
    )
    edges, more_of_edges = (
        "SPOT_SOURCE_ID,SPOT_TARGET_ID,LINK_COST\n",
        "Source,Target,Cost\n" * 2 + ",,(cost)\n",
    )
    rows = "".join(f"{k},{k // 3},{k}.5,{k % 3},0,{k}.25\n" for k in range(9))
    links = "0,3,0.5\n3,6,0.25\n1,4,0.5\n1,5,0.75\n"
    hint = {"columns": {"frame": "FRAME", "x": "POSITION_X", "y": "POSITION_Y", "z": "POSITION_Z"}}
    plain = {"a-spots.csv": spots + rows, "a-edges.csv": edges + links}
    full = {"B-SPOTS.CSV": spots + more_of_spots + rows, "B-EDGES.CSV": edges + more_of_edges + links}
    return [
        Seed(name, {one: text.encode() for one, text in files.items()}, name,
             {**hint, "skip": skip, "edges": beside})
        for files, skip in ((plain, 0), (full, 3)) for name, beside in [tuple(files)]
    ]  # fmt: skip
