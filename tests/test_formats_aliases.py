"""Tables of other programs: real files, with counts that their authors or other readers give."""

from pathlib import Path

import numpy as np
import pytest
from commands import refused, written
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from outbid import read_detections, read_tracks

# file, detections, tracks, divisions, links that skip frames: as the data's READMEs give them
TIDY = [
    ("celegans/L1.csv", 22568, 824, 410, 0),
    ("celegans/L2.csv", 17708, 732, 365, 0),
    ("ascidian/Pm08.csv", 17052, 732, 334, 0),
    ("turbulence/subcube.csv", 52183, 2861, 0, 27),
    ("faketracks/tidy.csv", 233, 7, 0, 2),
    ("faketracks/tidy_ISBI.csv", 156, 6, 0, 1),  # has a track 0, and 0 for no parent
    ("ptv_small/tidy.csv", 248, 36, 0, 0),
    ("formats/tidy_trackmate_celegans5pc.csv", 87, 12, 4, 0),
    ("formats/tidy_mamut_lineagetree.csv", 2430, 18, 6, 0),
    ("tcells_imaris/tidy.csv", 29535, 321, 0, 1996),
]


@pytest.mark.parametrize("column", ["nm", "nanometer"])
def test_a_unit_has_its_full_name(column: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"frame,y,x,unit\n0,1,2,{column}\n")
    assert read_detections(tmp_path / "a.csv").unit == "nanometer"


@pytest.mark.smoke
@pytest.mark.parametrize(("name", "detections", "tracks", "divisions", "skips"), TIDY)
def test_our_own_columns(
    name: str, detections: int, tracks: int, divisions: int, skips: int, real_data: Path
) -> None:
    found = read_tracks(real_data / name)
    frame = found.detections.frame
    assert len(found.detections) == detections
    assert found.track_count == tracks
    assert (found.successors >= 2).sum() == divisions
    assert (np.diff(frame[found.links], axis=1) > 1).sum() == skips
    assert read_detections(real_data / name).features == {}


def links_by_place(path: Path) -> NDArray[np.float64]:
    """(E, 8): frame and place of source and target; frames far apart."""
    found = read_tracks(path)
    where = np.column_stack([found.detections.frame * 1e6, found.detections.position])
    return np.column_stack([where[found.links[:, 0]], where[found.links[:, 1]]])


@pytest.mark.parametrize(
    ("original", "tidy"),
    [
        ("formats/saspt/sample_tracks.csv", "formats/tidy_saspt.csv"),  # trajectory
        ("formats/motile_tracker/hela_example_tracks.csv", "formats/tidy_hela_motile.csv"),  # id, parent_id
        ("tcells_imaris/DemoDataset1_20190523_CD8green_Position.csv", "tcells_imaris/tidy.csv"),
    ],
)
def test_originals_give_the_same_links_as_their_tidy_copies(
    original: str, tidy: str, real_data: Path
) -> None:
    ours, theirs = links_by_place(real_data / original), links_by_place(real_data / tidy)
    away, which = cKDTree(theirs).query(ours)
    assert away.max() < 0.02  # the copies are rounded to two decimals
    assert sorted(which) == list(range(len(theirs)))


def test_imaris(real_data: Path) -> None:
    found = read_tracks(real_data / "tcells_imaris" / "DemoDataset1_20190523_CD8green_Position.csv")
    assert found.detections.unit == "micrometer"
    assert found.detections.position[0].tolist() == [14.2917, 572.108, 611.141]
    assert list(found.detections.features) == ["Category", "Collection", "ID"]
    assert found.track_count == 321


@pytest.mark.parametrize(("name", "count"), [("gap_closing", 134), ("splitting_merging", 183)])
def test_spots_without_tracks(name: str, count: int, real_data: Path) -> None:
    folder = real_data / "formats" / "laptrack"
    found = read_detections(folder / f"trackmate_tracks_with_{name}_spots.csv")
    assert len(found) == count
    assert list(found.features) == ["id"]
    refused("No column for frame", read_detections, folder / f"trackmate_tracks_with_{name}_edges.csv")


def test_trackmate_csv_with_four_header_rows(tmp_path: Path) -> None:
    """The layout of TrackMate 7's export of spots; None where a spot is in no track."""
    path = tmp_path / "spots.csv"
    path.write_text(
        "LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,POSITION_Z,POSITION_T,FRAME,RADIUS\n"
        "Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame,R\n"
        "Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame,R\n"
        ",,,(quality),(micron),(micron),(micron),(sec),,(micron)\n"
        "ID7,7,0,1.5,10.25,20.5,3.0,0.0,0,2.5\n"
        "ID8,8,0,1.5,11.25,21.5,3.5,2.5,1,2.5\n"
        "ID9,9,None,1.5,1.25,2.5,3.5,5.0,2,2.5\n"
    )
    found = read_tracks(path)
    assert found.detections.frame.tolist() == [0, 1, 2]
    assert found.detections.position[0].tolist() == [3.0, 20.5, 10.25]
    assert found.detections.unit == "micrometer"
    assert list(found.detections.features) == ["LABEL", "ID", "QUALITY", "POSITION_T", "RADIUS"]
    assert found.links.tolist() == [[0, 1]]
    path.write_text(path.read_text() + "ID9,9,None,1.5,1.25,2.5,bad,5.0,2,2.5\n")
    refused("line 8: POSITION_Z is 'bad'", read_tracks, path)


def test_imaris_newer_exports_name_the_track_parent(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "\nPosition\n ==================== \n"
        "Position X,Position Y,Position Z,Unit,Category,Collection,Time,Parent,ID,\n"
        "1.5,2.5,3.5,µm,Spot,Position,1,1000000007,1,\n2,3,4,µm,Spot,Position,2,1000000007,2,\n"
    )
    found = read_tracks(path)
    assert found.links.tolist() == [[0, 1]]
    assert found.detections.unit == "micrometer"
    path.write_text(path.read_text().replace("4,µm", "4,px"))
    refused("mixes", read_tracks, path)


def test_frame_goes_before_time(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "time,frame,x,y\n0.5,0,1,2\n1.0,1,1,2\n")
    found = read_detections(path)
    assert found.frame.tolist() == [0, 1]
    assert found.features["time"].tolist() == [0.5, 1.0]


def test_a_second_column_of_identities_is_no_feature(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "track_id,particle,Parent,frame,x,y,mass\n5,7,0,0,1,2,3\n")
    assert list(read_detections(path).features) == ["mass"]
