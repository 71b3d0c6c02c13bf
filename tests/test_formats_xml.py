"""TrackMate's XML, ISBI's and Icy's: real files, round trips, hostile files."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run, written
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree
from strategies import any_tracks

from outbid import (
    Detections,
    InputError,
    Tracks,
    read_detections,
    read_record,
    read_tracks,
    write_detections,
    write_tracks,
)
from outbid.formats import holds_tracks
from outbid.formats.tables.edges import families

REAL = {  # spots that no filter hides, links, trees; counted with another XML library, by hand
    "faketracks/FakeTracks_TrackMate.xml": (268, 232, 6, 1),
    "faketracks/FakeTracks_geff_tests.xml": (106, 82, 2, 1),
    "faketracks/FakeTracks_mamutproject.xml": (233, 226, 7, 2),
    "faketracks/FakeTracks_mastodon_test.xml": (84, 82, 2, 1),
    "formats/laptrack/trackmate_tracks_with_gap_closing.xml": (134, 128, 5, 1),
    "formats/laptrack/trackmate_tracks_with_splitting_merging.xml": (183, 180, 4, 1),
    "formats/pycellin/Ecoli_growth_on_agar_pad_with_fusions.xml": (526, 526, 3, 1),
    "formats/pycellin/Ecoli_growth_on_agar_pad_with_gaps.xml": (523, 520, 3, 2),
    "formats/pycellin/Celegans-5pc-17timepoints.xml": (87, 83, 4, 0),
    "formats/lineagetree/test-mamut.xml": (2430, 2424, 6, 0),
    "formats/biotracks/TrackMate/example_1/FakeTracks.xml": (243, 230, 4, 1),
    "formats/biotracks/TrackMate/example_2/FakeTracks.xml": (133, 128, 5, 1),
}
TABLES = {
    "faketracks/FakeTracks_mamutproject.xml": "faketracks/tidy.csv",
    "faketracks/FakeTracks_ISBI.xml": "faketracks/tidy_ISBI.csv",
    "formats/pycellin/Celegans-5pc-17timepoints.xml": "formats/tidy_trackmate_celegans5pc.csv",
    "formats/pycellin/Ecoli_growth_on_agar_pad_with_fusions.xml": "formats/tidy_trackmate_ecoli_fusions.csv",
    "formats/lineagetree/test-mamut.xml": "formats/tidy_mamut_lineagetree.csv",
}


def assert_same_points(left: Detections, right: Detections, tolerance: float, distinct: float = 1) -> None:
    """Each point of one is near one of the other in its frame, whatever the order; tables round.

    `distinct` is the share of points that rounding leaves apart, at least.
    """
    assert len(left) == len(right)
    far_apart = [np.column_stack([d.frame * 1e6, d.position]) for d in (left, right)]
    distance, index = cKDTree(far_apart[0]).query(far_apart[1])
    assert distance.max() <= tolerance
    assert len(np.unique(index)) >= distinct * len(left)


@pytest.mark.smoke
@pytest.mark.parametrize("name", REAL)
def test_real_trackmate_files_are_read_whole(name: str, real_data: Path) -> None:
    tracks = read_tracks(real_data / name)
    frame = tracks.detections.frame
    gaps = (frame[tracks.links[:, 1]] - frame[tracks.links[:, 0]] > 1).sum()
    size = np.bincount(families(tracks))
    assert (len(tracks.detections), len(tracks.links), (size > 1).sum(), gaps) == REAL[name]
    assert len(read_detections(real_data / name)) == len(tracks.detections)
    assert holds_tracks(real_data / name)


@pytest.mark.parametrize("name", TABLES)
def test_positions_are_those_of_the_reference_table(name: str, real_data: Path) -> None:
    tracks, table = read_tracks(real_data / name), read_tracks(real_data / TABLES[name])
    assert_same_points(tracks.detections, table.detections, 0.01)
    if "fusions" in name:  # the table holds one parent a track: the second link into a merge is missing
        assert len(tracks.links) == len(table.links) + 3
    else:
        assert len(tracks.links) == len(table.links)
        assert tracks.track_count == table.track_count


def test_a_merge_survives(real_data: Path) -> None:
    tracks = read_tracks(real_data / "formats/pycellin/Ecoli_growth_on_agar_pad_with_fusions.xml")
    assert (tracks.predecessors > 1).sum() == 3
    assert tracks.detections.unit == "micrometer"


def test_icy_names_a_particle_track(real_data: Path) -> None:
    tracks = read_tracks(real_data / "faketracks/FakeTracks_Icy.xml")
    assert (len(tracks.detections), tracks.track_count, len(tracks.links)) == (237, 16, 221)
    np.testing.assert_array_equal(tracks.detections.position[tracks.detections.frame == 0, 0], 0)


def test_trackmate_simple_export(tmp_path: Path) -> None:
    file = tmp_path / "simple.xml"
    file.write_text(
        '<Tracks nTracks="1" spaceUnits="pixel"><particle nSpots="2">'
        '<detection t="3" x="1.5" y="2" z="0"/><detection t="5" x="2" y="3" z="1"/></particle></Tracks>'
    )
    tracks = read_tracks(file)
    assert tracks.detections.frame.tolist() == [3, 5]
    assert tracks.detections.position.tolist() == [[0, 2, 1.5], [1, 3, 2]]
    assert tracks.links.tolist() == [[0, 1]]


# ---------------------------------------------------------------- round trips

ANY_TRACKS = any_tracks(
    9,
    {"quality": (float, st.floats()), "Area (µm²)": (np.int64, st.integers(-(2**52), 2**52))},
    ["pixel", "micrometer", 'a"<&b'],
)


def assert_same_tracks(left: Tracks, right: Tracks) -> None:
    np.testing.assert_array_equal(left.detections.frame, right.detections.frame)
    np.testing.assert_array_equal(left.detections.position, right.detections.position)
    np.testing.assert_array_equal(left.links, right.links)
    assert left.detections.unit == right.detections.unit
    for name, values in left.detections.features.items() if len(left.detections) else ():
        np.testing.assert_array_equal(values, right.detections.features[name])
    assert list(left.measures) == list(right.measures)
    for name, values in left.measures.items():
        np.testing.assert_array_equal(values, right.measures[name])


@pytest.mark.smoke
@settings(max_examples=examples(30))
@given(ANY_TRACKS)
def test_trackmate_round_trip(tmp_path_factory: pytest.TempPathFactory, tracks: Tracks) -> None:
    file = tmp_path_factory.mktemp("xml") / "a.xml"
    record = {"command": "track", "settings": {"text": "</Log> ]]> \x01 é"}}
    write_tracks(file, tracks, record=record)
    back = read_tracks(file)
    assert_same_tracks(tracks, back)
    assert set(back.detections.features) == (
        set(tracks.detections.features) if len(tracks.detections) else set()
    )
    assert read_record(file) == record
    assert holds_tracks(file) == (len(tracks.links) > 0)


@pytest.mark.smoke
@settings(max_examples=examples(30))
@given(ANY_TRACKS)
def test_isbi_round_trip_keeps_chains(tmp_path_factory: pytest.TempPathFactory, tracks: Tracks) -> None:
    chains = Tracks.from_track_ids(tracks.detections, tracks.track_id)
    file = tmp_path_factory.mktemp("xml") / "a.isbi.xml"
    write_tracks(file, chains, record={"command": "track"})
    back = read_tracks(file)
    # Rows of a frame may change places: particles are written one after the other.
    key = np.column_stack([back.detections.frame, back.detections.position])
    order = np.lexsort(key.T)
    own = np.column_stack([chains.detections.frame, chains.detections.position])
    np.testing.assert_array_equal(key[order], own[np.lexsort(own.T)])
    assert (back.track_count, len(back.links)) == (chains.track_count, len(chains.links))
    assert back.detections.unit == tracks.detections.unit
    assert read_record(file)["command"] == "track"


def test_trackmate_finds_what_it_needs(tmp_path: Path) -> None:
    """What TrackMate's reader looks up, by the layout of real files of version 7."""
    seen = Detections.from_table([0, 1, 1], [[0, 5, 7], [1, 5, 8], [0, 6, 9]], unit="micrometer")
    file = tmp_path / "a.xml"
    write_tracks(file, Tracks(seen, np.array([[0, 1], [0, 2]])))
    root = ET.parse(file).getroot()
    assert [child.tag for child in root] == ["Log", "Model", "Settings", "GUIState"]
    model = root.find("Model")
    assert [c.tag for c in model] == ["FeatureDeclarations", "AllSpots", "AllTracks", "FilteredTracks"]
    assert model.attrib == {"spatialunits": "micrometer", "timeunits": "frame"}
    spots = list(model.iter("Spot"))
    needed = {
        "ID", "name", "FRAME", "POSITION_X", "POSITION_Y", "POSITION_Z", "POSITION_T", "RADIUS", "QUALITY",
    }  # fmt: skip
    assert all(needed | {"VISIBILITY"} <= set(spot.attrib) for spot in spots)
    assert model.find("AllSpots").attrib == {"nspots": "3"}  # type: ignore[union-attr]
    assert len(model.findall("AllTracks/Track")) == 1, "a division stays in one track"
    assert [e.attrib["TRACK_ID"] for e in model.findall("FilteredTracks/TrackID")] == ["0"]
    image = root.find("Settings/ImageData")
    assert (image.get("width"), image.get("height"), image.get("nframes")) == ("10", "7", "2")


def test_detections_alone(tmp_path: Path) -> None:
    seen = Detections.from_table([0, 4], [[0, 5, 7], [1, 5, 8]], features={"radius": [2.0, 3.0]})
    for name in ("a.xml", "b.isbi.xml"):
        write_detections(tmp_path / name, seen)
        back = read_detections(tmp_path / name)
        np.testing.assert_array_equal(back.position, seen.position)
        assert not holds_tracks(tmp_path / name)
    assert read_detections(tmp_path / "a.xml").features["radius"].tolist() == [2.0, 3.0]


# ---------------------------------------------------------------- hostile and damaged files

SPOT = '<Spot ID="1" FRAME="0" POSITION_X="1" POSITION_Y="2" POSITION_Z="3"/>'
TRACKMATE = (
    "<TrackMate><Model><AllSpots><SpotsInFrame frame='0'>{}</SpotsInFrame></AllSpots>{}</Model></TrackMate>"
)
BOMB = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;">]>'


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (BOMB + TRACKMATE.format(SPOT, "&c;"), "document type"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd">' + TRACKMATE.format(SPOT, ""), "document type"),
        ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><root>&x;</root>', "document type"),
        (
            TRACKMATE.format("\n" + SPOT.replace(' POSITION_X="1"', ""), ""),
            "line 2: spot 1 has no POSITION_X",
        ),
        (TRACKMATE.format(SPOT.replace('"3"', '"far"'), ""), "'far'"),
        (TRACKMATE.format(SPOT.replace('"3"', '"NaN"'), ""), "finite"),
        (TRACKMATE.format(SPOT.replace('"1" F', '"1.5" F'), ""), "whole"),
        (TRACKMATE.format(SPOT + SPOT, '<Edge SPOT_SOURCE_ID="1" SPOT_TARGET_ID="1"/>'), "two detections"),
        (
            TRACKMATE.format(SPOT, '<Edge SPOT_SOURCE_ID="1" SPOT_TARGET_ID="2"/>'),
            "detection 2, which is not",
        ),
        (TRACKMATE.format(SPOT, '<Edge SPOT_SOURCE_ID="1" SPOT_TARGET_ID="1"/>'), "stays in frame 0"),
        (TRACKMATE.format(SPOT, "")[:-20], "cut short"),
        ("<TrackMate>" + "<a>" * 100_000, "inside each other"),
        ("<SpimData/>", "another kind"),
        ("<root><particle><detection t='0' y='1' z='0'/></particle></root>", "line 1: detection has no x"),
        ("<root><particle><detection t='.5' x='1' y='1' z='0'/></particle></root>", "whole number"),
        ("<root><detection t='0' x='1' y='1' z='0'/></root>", "outside any particle"),
        (
            "<root><particle>" + "<detection t='0' x='1' y='1' z='0'/>" * 2 + "</particle></root>",
            "two detections",
        ),
        ("no xml", "well-formed"),
        ("<?xml version='1.0' encoding='klingon'?><root/>", "encoding"),
    ],
)
def test_hostile_xml_is_refused(content: str, said: str, tmp_path: Path) -> None:
    file = written(tmp_path / "a.xml", content)
    with pytest.raises(InputError) as refused:
        read_tracks(file)
    assert said in str(refused.value)
    assert str(file) in str(refused.value)


TWO_SPOTS = (
    SPOT + "</SpotsInFrame><SpotsInFrame frame='1'>" + SPOT.replace('"1" F', '"2" F').replace("0", "1")
)
TRACK = (
    '<AllTracks><Track TRACK_ID="{}">\n<Edge SPOT_SOURCE_ID="1" SPOT_TARGET_ID="2"/></Track></AllTracks>'
    '\n<FilteredTracks><TrackID TRACK_ID="{}"/></FilteredTracks>'
)


@pytest.mark.parametrize(
    "number", ["inf", "-inf", "NaN", "1e300", "1" * 23, "-" + "9" * 400, "0.5", "²", "x"]
)
@pytest.mark.parametrize("where", ["Track", "TrackID"])
def test_numbers_of_tracks_that_are_none(number: str, where: str, tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    numbers = (number, "0") if where == "Track" else ("0", number)
    file.write_text(TRACKMATE.format(TWO_SPOTS, TRACK.format(*numbers)))
    with pytest.raises(
        InputError, match=rf"line {1 if where == 'Track' else 3}: TRACK_ID of {where} is"
    ) as error:
        read_tracks(file)
    assert len(str(error.value)) < 250 + len(str(file))
    assert_refused(run("convert", file, tmp_path / "b.csv"), 3, str(file), "TRACK_ID")


def test_a_filter_that_names_a_track_that_is_not_there(tmp_path: Path) -> None:
    file = written(tmp_path / "a.xml", TRACKMATE.format(TWO_SPOTS, TRACK.format(0, 0)))
    assert len(read_tracks(file).links) == 1
    file.write_text(TRACKMATE.format(TWO_SPOTS, TRACK.format(0, 7)))
    with pytest.raises(InputError, match="FilteredTracks names track 7, which is not there"):
        read_tracks(file)
    file.write_text(TRACKMATE.format(TWO_SPOTS, TRACK.format(0, 7).replace('<TrackID TRACK_ID="7"/>', "")))
    assert len(read_tracks(file).links) == 0


@pytest.mark.parametrize("frame", ["1e300", "-1e300", "9" * 400, "1e18"])
def test_frames_beyond_all_whole_numbers(frame: str, tmp_path: Path) -> None:
    file = written(tmp_path / "a.xml", TRACKMATE.format(SPOT.replace('"0"', f'"{frame}"'), ""))
    assert_refused(run("convert", file, tmp_path / "b.csv"), 3, str(file), "frame")


@settings(max_examples=examples(20))
@given(st.data())
def test_a_file_cut_short_is_never_taken_for_whole(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("xml")
    seen = Detections.from_table([0, 1], [[0, 5, 7], [1, 5, 8]])
    write_tracks(folder / "a.xml", Tracks(seen, np.array([[0, 1]])))
    content = (folder / "a.xml").read_bytes()
    cut = data.draw(st.integers(1, len(content.rstrip()) - 1))
    (folder / "b.xml").write_bytes(content[:cut])
    with pytest.raises(InputError):
        read_tracks(folder / "b.xml")


def test_a_feature_that_would_hide_another_is_refused(tmp_path: Path) -> None:
    seen = Detections.from_table([0], [[0, 0, 0]], features={"a b": [1], "a_b": [2]})
    with pytest.raises(InputError, match="Rename"):
        write_detections(tmp_path / "a.xml", seen)
    assert not (tmp_path / "a.xml").exists()


def test_a_record_that_trackmate_saved_again(tmp_path: Path) -> None:
    """TrackMate keeps the log and appends to it."""
    file = tmp_path / "a.xml"
    write_detections(file, Detections.from_table([0], [[0, 0, 0]]), record={"command": "detect"})
    file.write_text(file.read_text().replace("</Log>", "\nSaved by TrackMate.</Log>"))
    assert read_record(file) == {"command": "detect"}
    assert json.dumps(read_record(file))
