"""Formats that are only read: TrackMate's, Imaris' and other tables, OpenPTV, MyPTV, NumPy arrays."""

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import refused, written
from test_formats_xml import assert_same_points

from outbid import (
    Detections,
    InputError,
    ResourceError,
    read_detections,
    read_record,
    read_tracks,
    write_detections,
)
from outbid.formats import holds_tracks
from outbid.formats.files import memory
from outbid.work.jobs import stem_of


@pytest.mark.smoke
@pytest.mark.parametrize(("stem", "count"), [("splitting_merging", (183, 180)), ("gap_closing", (134, 128))])
def test_trackmate_spots_with_their_edges(stem: str, count: tuple[int, int], real_data: Path) -> None:
    """The tables and the XML come from the same run."""
    folder = real_data / "formats/laptrack"
    tracks = read_tracks(folder / f"trackmate_tracks_with_{stem}_spots.csv")
    xml = read_tracks(folder / f"trackmate_tracks_with_{stem}.xml")
    assert (len(tracks.detections), len(tracks.links)) == count
    assert_same_points(tracks.detections, xml.detections, 1e-9)
    assert tracks.track_count == xml.track_count
    np.testing.assert_allclose(np.sort(tracks.link_cost), np.sort(xml.link_cost))


def test_trackmate_spots_as_its_table_view_exports_them(tmp_path: Path) -> None:
    head = "LABEL,ID,TRACK_ID,POSITION_X,POSITION_Y,POSITION_Z,FRAME\n"
    units = "Label,Spot ID,Track ID,X,Y,Z,Frame\nLabel,ID,ID,X,Y,Z,Frame\n,,,(micron),(micron),(micron),\n"
    (tmp_path / "a-spots.csv").write_text(head + units + "a,7,0,1,2,3,0\nb,9,0,2,2,3,1\nc,8,0,1,3,3,1\n")
    edges = (
        "LABEL,SPOT_SOURCE_ID,SPOT_TARGET_ID,LINK_COST\nLabel,Source,Target,Cost\nLabel,S,T,C\n,,,(cost)\n"
    )
    (tmp_path / "a-edges.csv").write_text(edges + "e,7,9,0.5\nf,7,8,1.5\n")
    tracks = read_tracks(tmp_path / "a-spots.csv")
    assert tracks.detections.unit == "micrometer"
    assert tracks.links.tolist() == [[0, 1], [0, 2]]
    assert tracks.link_cost.tolist() == [0.5, 1.5]
    (tmp_path / "a-edges.csv").write_text(edges + "e,7,9,0.5\nf,7,eight,1.5\n")
    refused("line 6", read_tracks, tmp_path / "a-spots.csv")


def test_napari_tracks(real_data: Path) -> None:
    tracks = read_tracks(real_data / "faketracks/two_tracks_napari.csv")
    assert (len(tracks.detections), tracks.track_count, len(tracks.links)) == (29, 2, 27)
    assert tracks.detections.position[tracks.detections.frame == 17].tolist()[0] == [
        0, 51.6023835597057, 41.48425270538317,
    ]  # fmt: skip


def test_btrack(real_data: Path, tmp_path: Path) -> None:
    found = read_detections(real_data / "formats/btrack/test_data.csv")
    assert (len(found), list(found.features)) == (1399, ["states", "label"])
    file = tmp_path / "btrack.csv"
    file.write_text(
        "ID,t,x,y,z,parent,root,state,generation,dummy\n"
        "1,0,5,6,0,1,1,5,0,False\n2,1,5,7,0,1,1,5,1,False\n3,1,5,5,0,1,1,5,1,False\n"
    )
    assert read_tracks(file).links.tolist() == [[0, 1], [0, 2]]


def test_openptv_points(real_data: Path) -> None:
    folder = real_data / "formats/openptv_test_cavity"
    whole = read_detections(folder)
    assert [whole.rows_of(frame).stop - whole.rows_of(frame).start for frame in (818, 10001)] == [80, 672]
    assert len(whole) == 80 + 672 + 699 + 711 + 692
    assert whole.unit == "millimeter"
    table = read_detections(real_data / "formats/tidy_openptv_cavity_points_no_identity.csv")
    assert_same_points(whole.take(whole.frame > 818), table, 0.001, 0.99)
    assert not holds_tracks(folder), "three frames have points and no links"
    assert (len(read_tracks(folder / "ptv_is.818").detections), holds_tracks(folder / "ptv_is.818")) == (
        80,
        True,
    )


def test_openptv_links(tmp_path: Path) -> None:
    (tmp_path / "ptv_is.7").write_text("2\n -1 1 1.0 2.0 3.0\n -1 -2 9 9 9\n")
    (tmp_path / "ptv_is.8").write_text("2\n -1 -2 5.0 5.0 5.0\n 0 -2 1.5 2.0 3.0\n")
    tracks = read_tracks(tmp_path)
    assert tracks.links.tolist() == [[0, 3]]
    assert tracks.detections.position[3].tolist() == [3.0, 2.0, 1.5]
    (tmp_path / "ptv_is.8").write_text("1\n -1 -2 5.0 5.0 5.0\n")
    refused("row 1 of frame 8", read_tracks, tmp_path)
    for said in (0, 2):
        (tmp_path / "ptv_is.8").write_text(f"{said}\n -1 -2 5.0 5.0 5.0\n")
        refused(f"1 rows where line 1 says {said}", read_tracks, tmp_path)
    (tmp_path / "ptv_is.8").write_text("1\n -1 -2 5.0 five 5.0\n")
    refused("line 2", read_tracks, tmp_path)


def test_myptv(real_data: Path, tmp_path: Path) -> None:
    folder = real_data / "ptv_small"
    tracks = read_tracks(folder / "example/trajectories")
    reference = read_tracks(folder / "tidy.csv")
    assert len(tracks.links) == len(reference.links)
    linked = np.unique(tracks.links)
    assert_same_points(tracks.detections.take(linked), reference.detections, 0.001, 0.99)
    assert len(read_detections(folder / "example/particles")) == 281
    assert len(read_tracks(folder / "example_fibers/trajectories").links) == 2407
    assert len(read_tracks(folder / "example/smoothed_trajectories").detections) == 222
    refused("unknown", read_detections, folder / "example_fibers/fiber_orientations")
    shutil.copy(folder / "example/trajectories", tmp_path / "trajectories")
    with (tmp_path / "trajectories").open("a") as file:
        file.write("1\t2\n")
    refused("line 282", read_tracks, tmp_path / "trajectories")


@pytest.mark.smoke
def test_numpy_arrays(tmp_path: Path, real_data: Path) -> None:
    file = tmp_path / "tracks.npy"
    np.save(file, [[0, 0, 1, 2, 3], [0, 2, 1, 2, 4], [1, 0, 5, 5, 5]])
    tracks = read_tracks(file)
    assert tracks.links.tolist() == [[0, 2]]
    assert tracks.detections.position.tolist() == [[1, 2, 3], [5, 5, 5], [1, 2, 4]]
    np.save(file, [[0, 0, 2.0, 3.0], [0, 1, 2.0, 4.0]])
    assert read_detections(file).position.tolist() == [[0, 2, 3], [0, 2, 4]]
    np.save(file, [[0.5, 0, 2.0, 3.0]])
    refused("whole", read_tracks, file)
    np.save(file, np.zeros((2, 6)))
    refused("rows of track number", read_detections, file)
    pickled = real_data / "formats/laptrack/grouped_poss_molecule_tracking.npy"
    refused("Python objects", read_detections, pickled)


class Bomb:
    """Leaves a file behind where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (_leave, (str(self.file),))


def _leave(file: str) -> None:
    Path(file).write_text("executed")


def test_a_pickle_in_an_array_is_never_run(tmp_path: Path) -> None:
    np.save(tmp_path / "bomb.npy", np.array([[Bomb(tmp_path / "mark")] * 4], dtype=object), allow_pickle=True)
    refused("Python objects", read_tracks, tmp_path / "bomb.npy")
    assert not (tmp_path / "mark").exists()


def test_an_array_that_is_cut_short_or_promises_too_much(tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    np.save(file, np.zeros((100, 4)))
    content = file.read_bytes()
    for cut in (3, 8, 60, 128, len(content) - 1):
        file.write_bytes(content[:cut])
        with pytest.raises(InputError):
            read_detections(file)
    file.write_bytes(content.replace(b"(100, 4)", b"(9**9,4)").replace(b"9**9", b"9999"))
    with pytest.raises(InputError):
        read_detections(file)


SPOTS = "ID,FRAME,POSITION_X,POSITION_Y,POSITION_Z\n1,0,1,1,1\n2,1,1,1,1\n"
EDGES = "SPOT_SOURCE_ID,SPOT_TARGET_ID,LINK_COST\n"
ODD_NUMBERS = {  # underscores, and digits of other scripts, which Python's int and float take
    "trajectories": "0\t1\t2\t1_0\t0\t0\t0\t0\t1\n", "ptv_is.1": "1\n -1 1 1.0 2_0 3.0\n",
    "a.xml": '<Tracks><particle><detection t="1_0" x="1" y="1" z="1"/></particle></Tracks>',
    "b.xml": '<Tracks><particle><detection t="1" x="\u0661" y="1" z="1"/></particle></Tracks>',
    "c-edges.csv": EDGES + "1,2_0,0\n", "d-edges.csv": EDGES + "1,x,0\n", "e-edges.csv": EDGES + "1,2,1_0\n",
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_NUMBERS)
def test_numbers_are_plain_decimal(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, ODD_NUMBERS[name])
    if name.endswith("-edges.csv"):
        path = written(tmp_path / name.replace("edges", "spots"), SPOTS)
    refused(name[:4], read_tracks, path)


def test_packed_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tsv.gz"
    seen = Detections.from_table([0, 1], [[0, 1, 2], [0, 1, 2.5]], unit="micrometer")
    write_detections(path, seen, record={"seed": 1})
    assert path.read_bytes()[3:8] == bytes(5)  # neither a name nor a time
    text = gzip.decompress(path.read_bytes())
    assert text == b"frame\tz\ty\tx\n0\t0\t1\t2\n1\t0\t1\t2.5\n"
    assert read_record(tmp_path / "a.tsv.gz.json") == {"seed": 1, "unit": "micrometer"}
    assert read_detections(path).unit == "micrometer"
    assert stem_of("x/a.tsv.gz") == "a"
    path.write_bytes(gzip.compress(text[:20]) + gzip.compress(text[20:]))  # as some programs append
    assert read_detections(path).position.tolist() == seen.position.tolist()
    path.write_bytes(gzip.compress(b""))
    refused("is empty", read_detections, path)
    path.write_bytes(gzip.compress(text)[:-4])
    refused("cannot be unpacked", read_detections, path)
    path.write_bytes(text)
    refused("cannot be unpacked", read_detections, path)
    path.write_bytes(gzip.compress(text + b"1\t0\t1\tx\n"))
    refused(r"a\.tsv\.gz, line 4: x is 'x'", read_detections, path)
    path.write_bytes(gzip.compress(text + bytes(1 << 26)))
    monkeypatch.setattr(memory, "free_memory", lambda: 1 << 25)
    refused("GB", read_detections, path, error=ResourceError)
